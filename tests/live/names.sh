#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# names.sh PROGRAM GUESTS TCG - a domain can have any name, even one that looks like an option, a
# path, markup or a command
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

# A row is a domain, the name of its file, and the root of its stacks.
# shellcheck disable=SC2016
names=(
    '-rf'       '%2Drf'               '-rf'
    'a;b'       'a%3Bb'               'a:b'
    'a<b'       'a%3Cb'               'a<b'
    '$(id)'     '%24%28id%29'         '$(id)'
    'a b  c'    'a%20b%20%20c'        'a b  c'
    'web 12'    'web%2012'            'web_12'
    'a%n%s'     'a%25n%25s'           'a%n%s'
    '[idle]'    '%5Bidle%5D'          '{idle]'
    '..'        '%2E.'                '..'
    '#x'        '%23x'                '_x'
)

# define NAME: boots a guest; false if libvirt's QEMU driver refuses the name
define()
{
    define_guest "$1" TCG "$guest64" split 1 2>"$work/refused"
}

# The test has its own daemon, so that such names do no harm to other tests.
# shellcheck disable=SC2119
need_own_daemon

accepted=()
for ((i = 0; i < ${#names[@]}; i += 3)); do
    name=${names[i]} file=${names[i + 1]} root=${names[i + 2]}
    if ! define "$name"; then
        say "libvirt's QEMU driver takes no domain '$name': $(tail -n 1 "$work/refused")"
        continue
    fi
    accepted+=("$name")
    mkdir "$work/out.d"
    (
        cd "$work/out.d"
        "$program" record "${fast[@]}" -c "$libvirt_uri" -d 2 -o '%d.folded' -o '%d.meta.json' -- "$name"
    ) >"$work/out" 2>"$work/err" </dev/null || fail "'$name': exit $?"
    [ "$(ls -A "$work/out.d")" = "$file.folded"$'\n'"$file.meta.json" ] ||
        fail "'$name' gives files '$(ls -A "$work/out.d")', not '$file...'"
    result stacks "$root" 100 'guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?' \
        "$work/out.d/$file.folded"
    NAME=$name python3 - "$work/out.d/$file.meta.json" <<'PYTHON' || fail "'$name': its sidecar"
import json, os, sys
facts = json.load(open(sys.argv[1]))
assert facts["domain"]["name"] == os.environ["NAME"], facts["domain"]
PYTHON
    "$program" dump -c "$libvirt_uri" --json -- "$name" >"$work/out" 2>"$work/err" </dev/null ||
        fail "dump of '$name'"
    python3 -m json.tool "$work/out" >/dev/null || fail "dump --json of '$name'"
    "$program" list -c "$libvirt_uri" --json >"$work/out" 2>"$work/err" || fail 'list'
    NAME=$name python3 - "$work/out" <<'PYTHON' || fail "list --json with '$name'"
import json, os, sys
assert os.environ["NAME"] in [domain["name"] for domain in json.load(open(sys.argv[1]))]
PYTHON
    must_run "$name"
    destroy_guest "$name"
    rm -rf "$work/out.d"
done
say "libvirt took ${#accepted[@]} of $((${#names[@]} / 3)) names"
[ "${#accepted[@]}" -ge 6 ] || fail 'hardly any name was tried'

# libvirt's test driver accepts the names that the QEMU driver refuses. virt-uprof finds and lists
# such domains, cannot sample them for lack of an access method, and writes nothing.
cat >"$work/test.xml" <<'XML'
<node>
  <domain type='test'><name>..</name><memory>8192</memory><os><type>hvm</type></os></domain>
  <domain type='test'><name>-rf</name><memory>8192</memory><os><type>hvm</type></os></domain>
  <domain type='test'><name>$(touch x)</name><memory>8192</memory><os><type>hvm</type></os></domain>
</node>
XML
mkdir "$work/empty"
cd "$work/empty"
# shellcheck disable=SC2016
for name in '..' '-rf' '$(touch x)'; do
    profile 5 record -c "test://$work/test.xml" -d 1 -o '%d.folded' -- "$name"
    says 'cannot be sampled'
    [ -z "$(ls -A)" ] || fail "'$name' left $(ls -A)"
done
profile 0 list -c "test://$work/test.xml" --json
python3 -m json.tool "$work/out" >/dev/null || fail 'list --json of the test driver'
