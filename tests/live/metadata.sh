#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# metadata.sh PROGRAM GUESTS TCG - on libvirt's test driver, virt-uprof reads the metadata that
# virsh writes, and virsh reads the metadata that virt-uprof writes. The schema accepts the
# metadata.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

namespace=https://virt-uprof.org/xmlns/domain/1.0
schema=$here/../../xml/virt-uprof.rng
# shellcheck disable=SC2016 # names, not commands
names=('-rf' 'a;b' 'a<b>&"' '$(touch x)' 'a%n%s' ' x ' $'tab\there' '..')

skipped= # parts that could not be tested
command -v xmllint >/dev/null || skipped="'xmllint' is not installed, and the schema was not checked"

# configured PATTERN...: the last `configure` has printed such lines
configured()
{
    local pattern
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$work/out" || fail "no '$pattern' in: $(cat "$work/out")"
    done
}

# is_valid FILE: the schema accepts FILE
is_valid()
{
    [ -n "$skipped" ] || xmllint --nonet --noout --relaxng "$schema" "$1" 2>"$work/lint" ||
        fail "the schema does not accept $(cat "$1" "$work/lint")"
}

# written DOMAIN --live|--config: prints the element that virsh shows; the schema must accept it
written()
{
    quiet_virsh metadata --domain "$1" "$namespace" "$2" >"$work/element.xml"
    is_valid "$work/element.xml"
    cat "$work/element.xml"
}

# shellcheck disable=SC2119
need_own_daemon
# The test driver keeps its state as long as a client is connected.
libvirt_uri="test+unix:///default?socket=$work/d/run/libvirt/libvirt-sock"
mkfifo "$work/stay"
LC_ALL=C virsh -q -c "$libvirt_uri" <"$work/stay" >"$work/stay.out" &
exec {stay}>"$work/stay"
echo 'domstate test' >&"$stay"
wait_until 20 grep -q running "$work/stay.out" || fail 'no connection stays'
mark=(--config "$work/config.xml" -c "$libvirt_uri")
echo '<virt-uprof/>' >"$work/config.xml"

say 'from virsh to the program'
quiet_virsh metadata test "$namespace" --key uprof --live \
    --set '<profile enabled="no" rate="77"><symbols file="/a"/><unwind method="fp"/></profile>' >/dev/null
profile 0 configure "${mark[@]}" test
configured '^test \(.*\) while it runs:$' '^  enabled +no +metadata$' '^  rate +77 Hz +metadata$' \
    '^  unwind +fp +metadata$' "^  symbols +/a +symbols '/a' are outside the folders" \
    '^test \(.*\) after its next start:$' '^  enabled +no +nothing enables it$'

say 'from the program to virsh, in both places'
profile 0 enable "${mark[@]}" -F 24.75 -d 1500ms --budget 0.5 test
says '^test: enabled: 1500ms at 24.75 Hz in each round'
[ "$(written test --live | tr -d '\n')" = '<profile enabled="yes" rate="24.75" duration="1500ms" budget="0.5">  <symbols file="/a"/>  <unwind method="fp"/></profile>' ] ||
    fail "live: $(written test --live)"
[ "$(written test --config)" = '<profile enabled="yes" rate="24.75" duration="1500ms" budget="0.5"/>' ] ||
    fail "config: $(written test --config)"
quiet_virsh dumpxml test | sed -n '/<uprof:profile/,/<\/uprof:profile>/p' >"$work/qualified.xml"
is_valid "$work/qualified.xml"
profile 0 disable "${mark[@]}" test
[ "$(written test --config)" = '<profile enabled="no" rate="24.75" duration="1500ms" budget="0.5"/>' ] ||
    fail "config: $(written test --config)"
profile 0 configure "${mark[@]}" -d 2m test
profile 0 configure "${mark[@]}" test
configured '^  enabled +no +metadata$' '^  duration +60s +limited by <limits>'

say 'what cannot be understood'
quiet_virsh metadata test "$namespace" --key uprof --live --config --set '<profile enabled="perhaps"/>' >/dev/null
profile 0 configure "${mark[@]}" test
configured "^  metadata: enabled='perhaps' is not yes or no; the profile element is ignored$" '^  enabled +no '
profile 1 configure "${mark[@]}" -F 5 test
says "enabled='perhaps' is not yes or no"
profile 0 enable "${mark[@]}" test
[ "$(written test --live)" = '<profile enabled="yes"/>' ] || fail "$(written test --live)"

say 'names that are options, markup or commands elsewhere'
for name in "${names[@]}"; do
    printf '<domain type="test"><name>%s</name><memory>8192</memory><os><type>hvm</type></os></domain>' \
        "$(xml_escape "$name")" >"$work/domain.xml"
    quiet_virsh define "$work/domain.xml" >/dev/null || fail "the test driver takes no '$name'"
    profile 0 enable "${mark[@]}" -F 7 -- "$name"
    [ "$(written "$name" --config)" = '<profile enabled="yes" rate="7"/>' ] || fail "'$name'"
    profile 0 configure "${mark[@]}" -- "$name"
    configured '^  rate +7 Hz +metadata$'
done
[ ! -e x ] || fail 'a name was run'
exec {stay}>&-
[ -z "$skipped" ] || skip "$skipped"
