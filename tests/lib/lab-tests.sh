# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# lab-tests.sh - runs tests inside a lab and writes TAP
#
# A test is a function. It fails by `fail` or by any command that fails; its output is then
# shown. After each test `all_is_well`, which the lab's own scripts define, cleans up and fails
# if the test has left something behind. $lab_tests is the table of tests: a row is a name, a
# function and its arguments. The rows of $lab_measurements only run if they are named.

results=/lab/results.tap
# The output of the present test. The host shows this output if the lab does not come to its end.
test_log=/lab/test.log
work=/tmp/work
lab_measurements=()
n_tests=0
n_failed=0

say()
{
    read -r now _ </proc/uptime
    printf 'lab: %6s s: %s\n' "$now" "$*"
}

fail()
{
    printf 'FAILED: %s\n' "$*"
    [ ! -s "$work/err" ] || sed 's/^/    stderr of the last run: /' "$work/err"
    exit 1
}

# wait_until SECONDS COMMAND [ARGUMENT...]: runs COMMAND five times a second, or every $pause
# seconds, until it succeeds. A higher rate would take the processor from the guests.
wait_until()
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep "${pause:-0.2}"
    done
}

# check NAME FUNCTION [ARGUMENT...]: runs one test
check()
{
    local name=$1 status=0 began=$SECONDS line
    shift
    n_tests=$((n_tests + 1))
    rm -rf "$work"
    mkdir -p "$work"
    say "test: $name"
    # `set -e` has no effect inside a condition, so the test runs outside of one.
    (
        set -eE
        trap 'printf "FAILED: line %s: %s\n" "$LINENO" "$BASH_COMMAND"' ERR
        # A run that stays in the background would sample the next test's guest.
        trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT
        "$@"
    ) >"$test_log" 2>&1 &
    wait $! || status=1
    (
        set -e
        all_is_well
    ) >>"$test_log" 2>&1 &
    wait $! || status=1
    if [ "$status" = 0 ]; then
        printf 'ok %d - %s\n' "$n_tests" "$name" >>"$results"
    else
        n_failed=$((n_failed + 1))
        printf 'not ok %d - %s\n' "$n_tests" "$name" >>"$results"
        say "FAILED: $name"
    fi
    while IFS= read -r line; do
        printf '# %s\n' "$line"
    done <"$test_log" >>"$results"
    sed 's/^/    /' "$test_log"
    say "took $((SECONDS - began)) s"
}

# is_wanted WHICH INDEX NAME: WHICH is empty for all tests, a list of names, or "2/3" for the
# second of three shares
is_wanted()
{
    if [[ $1 =~ ^([0-9]+)/([0-9]+)$ ]]; then
        [ "$(($2 % BASH_REMATCH[2] + 1))" = "${BASH_REMATCH[1]}" ]
    else
        [ -z "$1" ] || [[ " $1 " == *" $3 "* ]]
    fi
}

# run_lab_tests: runs the wanted rows of $lab_tests, and fails if one of them fails
run_lab_tests()
{
    local rows=("${lab_tests[@]}") row name i which
    which=${UPROF_LAB_TESTS:-$(cat /lab/which 2>/dev/null)}
    [[ $which =~ ^[0-9/]*$ ]] || rows+=("${lab_measurements[@]}")
    : >"$results"
    for i in "${!rows[@]}"; do
        read -r name row <<<"${rows[$i]}"
        if is_wanted "$which" "$i" "$name"; then
            # shellcheck disable=SC2086 # words
            check "$name" $row
        fi
    done
    printf '1..%d\n' "$n_tests" >>"$results"
    [ "$n_failed" = 0 ]
}

# result COMMAND ARGUMENT...: runs result.py, which reports faults
result()
{
    python3 -IS "${result_py:-/lab/result.py}" "$@" || fail "result.py $*"
}

# says PATTERN: fails unless the last run's stderr has such a line
says()
{
    grep -qE -- "$1" "$work/err" || fail "no '$1' on stderr"
}
