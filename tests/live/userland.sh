#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# userland.sh PROGRAM GUESTS TCG|DIRECT - a usual Debian system, of which no files are given: stacks of
# its programs are complete, and functions have their names, out of the guest's memory
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lib/cache.sh
source "$here/../lib/cache.sh"
# shellcheck source=tests/lib/debian-root.sh
source "$here/../lib/debian-root.sh"
# shellcheck source=tests/lib/lab-image.sh
source "$here/../lib/lab-image.sh"
# shellcheck source=tests/debian/image.sh
source "$here/../debian/image.sh"

name=${guest_prefix}userland-$way
linux_words='root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 random.trust_cpu=on no_timer_check'
boot_seconds=600

# serve_files FOLDER...: a server of the programs in FOLDERs, on $port
serve_files()
{
    port=$((20000 + RANDOM % 10000))
    debuginfod -F -p "$port" -d :memory: -t 0 -g 0 "$@" >"$work/server.log" 2>&1 &
    at_exit kill "$!"
    for ((i = 0; i < 600; i++)); do
        ! grep -q 'fts traversed source paths' "$work/server.log" || return 0
        sleep 0.1
    done
    fail 'the server of files does not start'
}

# install_helper: lets $program find the helper that downloads files, in a folder of a mount namespace
install_helper()
{
    local folder
    folder=$(dirname "$(grep -aoE '/[[:graph:]]+/debuginfod-helper' "$program" | head -n 1)")
    [ -d "$folder" ] || {
        mkdir -p "$folder"
        at_exit rmdir "$folder"
    }
    cat >"$work/virt-uprof" <<SH
#!/bin/bash
# shellcheck disable=SC2016
exec unshare -m bash -ec '
    mount -t tmpfs -o mode=755 none $folder
    cp $(dirname "$program")/debuginfod-helper $folder/
    exec $program "\$@"' - "\$@"
SH
    chmod 755 "$work/virt-uprof"
    program=$work/virt-uprof
}

# prepare_appliance: gives libguestfs a kernel for its virtual machine, if this host has none
prepare_appliance()
{
    local folder=$work/appliance release
    ! compgen -G '/boot/vmlinuz-*' >/dev/null || return 0
    # libguestfs needs this folder, even if the modules are elsewhere.
    [ -d /lib/modules ] || {
        mkdir -p /lib/modules
        at_exit rmdir /lib/modules
    }
    release=$(apt-cache depends linux-image-cloud-amd64 | sed -nE 's/^ *Depends: linux-image-(.*)$/\1/p' | head -n 1)
    mkdir -p "$folder"
    (cd "$folder" && try_often apt-get -q -o APT::Sandbox::User=root download "linux-image-$release" &&
        dpkg-deb -x "linux-image-$release"_*.deb . && depmod -b "$folder" "$release") >"$work/appliance.log" 2>&1 ||
        fail "no kernel for libguestfs: $(tail -n 5 "$work/appliance.log")"
    # The user of the disks builds the virtual machine.
    chmod 755 "$folder"
    chmod 711 "$work"
    export SUPERMIN_KERNEL=$folder/boot/vmlinuz-$release SUPERMIN_MODULES=$folder/lib/modules/$release
    export SUPERMIN_KERNEL_VERSION=$release
}

# libguestfs would take KVM, if there is one. A nested KVM may not run Linux.
[ "$machine" = KVM ] || export LIBGUESTFS_BACKEND_SETTINGS=force_tcg
helpers=$(dirname "$program")
need_daemon
build_image || fail 'no image'
image=$(image_folder)
guest_disk=$image/lab.img
guest_word='^READY|Kernel panic'
define_debian()
{
    create_guest "$name" "$machine" "$image/kernel" "$linux_words" 1 max 2048 "$image/initrd" &&
        await_guest "$name" "$boot_seconds"
}
define_debian || fail 'no guest'
mkdir "$work/empty"
# Without the empty sysroot, this host's files would be used, which can be the same.
sample 1400 "$work/all" --sysroot "$work/empty" -o "$work/all.capture" "$name"
# Programs, and functions that they must show. The functions of a row call each other.
rows=(
    python.py '<module> \(python\.py\);main \(python\.py\);Shop\.checksum \(python\.py\);Shop\.serialize \(python\.py\);dumps \(json/__init__\.py\);'
    python.py 'main \(python\.py\);fibonacci \(python\.py\);fibonacci \(python\.py\);'
    python.py 'sum_squares \(python\.py\);squares \(python\.py\)'
    node.js '[A-Za-z]+:\*fibonacci /srv/node\.js:[0-9:]+'
    prometheus-node 'runtime\.goexit;(.*;)?net/http\.\(\*conn\)\.serve;'
    prometheus-node 'runtime\.goexit;(.*;)?runtime\.systemstack;'
    prometheus-node 'runtime\.goexit;(.*;)?net/http[^;]+;(.*;)?[^;]+_\[i\][; ]'
    openssl '__libc_start_main;(.*;)?EVP_Digest[; ]'
)
for ((i = 0; i < ${#rows[@]}; i += 2)); do
    grep -qE "^$name;${rows[i]};(.*;)?${rows[i + 1]}" "$work/all.folded" ||
        fail "no '${rows[i + 1]}' of ${rows[i]} in $(grep ";${rows[i]};" "$work/all.folded" | head -c 2000)"
done
# The first samples of a process are without functions of Python.
grep -E "^$name;python\.py;" "$work/all.folded" >"$work/python.folded"
result stacks "$name" 90 'python\.py;(.*;)?<module> \(python\.py\);.*' "$work/python.folded"
result sidecar "$work/all.meta.json" "linux['user_complete'] * 100 >= linux['user_stacks'] * 97" \
    "stacks['complete'] * 100 >= samples['running'] * 97" \
    "call_sites['agreed'] * 100 >= call_sites['checked'] * 97"

sample 200 "$work/lines" --lines --sysroot "$work/empty" "$name"
grep -qE ';main \(python\.py:[0-9]+\);' "$work/lines.folded" || fail 'no lines of Python'
grep -qE ';net/http\.\(\*conn\)\.serve \(server\.go:[0-9]+\);' "$work/lines.folded" || fail 'no lines of Go'
sample 200 "$work/native" --native --sysroot "$work/empty" "$name"
grep -qE ';_PyEval_EvalFrameDefault;<module> \(python\.py\);' "$work/native.folded" ||
    fail 'no frames of the interpreter'

# The guest's own files, with all their unwind tables, give the same stacks of the same samples.
mkdir "$work/root"
debugfs -R "rdump /usr $work/root" "$image/lab.img" >"$work/debugfs.log" 2>&1 || fail 'no files'
ln -s usr/bin usr/sbin usr/lib usr/lib64 "$work/root"
profile 0 report --sysroot "$work/empty" -o "$work/memory.folded" -o "$work/memory.svg" -o "$work/memory.perf" \
    "$work/all.capture"
grep -qE '<title>[^<]+ \([0-9]+ samples, [0-9.]+ %, in lib(c|node|crypto)\.so\.[0-9]+\)' "$work/memory.svg" ||
    fail "no module in the picture: $(grep -oE '<title>[^<]*' "$work/memory.svg" | head)"
grep -qE '^\s+[0-9a-f]+ EVP_Digest[A-Za-z_]*(\+0x[0-9a-f]+)? \(libcrypto\.so\.3\)$' "$work/memory.perf" ||
    fail "no module in: $(grep -m 3 EVP_ "$work/memory.perf")"
profile 0 report --sysroot "$work/root" -o "$work/files.folded" -o "$work/files.meta.json" "$work/all.capture"
result same 98 "$work/memory.folded" "$work/files.folded"
result sidecar "$work/files.meta.json" \
    "any(i['name'].startswith('[libcrypto.so') and i['symbols'].startswith('/') for i in images)"

# A server of these files gives the same stacks, in a report and in a run.
serve_files "$work/root/usr/bin" "$work/root/usr/lib/x86_64-linux-gnu"
install_helper
export DEBUGINFOD_URLS=http://127.0.0.1:$port VIRT_UPROF_CACHE=$work/cache
profile 0 report --sysroot "$work/empty" -o "$work/fetched.folded" -o "$work/fetched.meta.json" \
    "$work/all.capture"
grep -qE 'debuginfod: [1-9][0-9]* symbol files fetched' "$work/err" || fail "no file was fetched"
result same 98 "$work/fetched.folded" "$work/files.folded"
from_cache="any(i['name'].startswith('[libcrypto.so') and i['symbols'].startswith('$work/cache/') for i in images)"
result sidecar "$work/fetched.meta.json" "$from_cache"
[ -z "$(find "$work/cache" -type f ! -perm 644)" ] || fail 'modes of the cache'
# The cache gives the same files again, without a server.
DEBUGINFOD_URLS= profile 0 report --sysroot "$work/empty" -o "$work/cached.folded" "$work/all.capture"
cmp "$work/cached.folded" "$work/fetched.folded" || fail 'the cache gives other stacks'
export VIRT_UPROF_CACHE=$work/cache-of-run
sample 400 "$work/late" --sysroot "$work/empty" "$name"
grep -qE 'debuginfod: [1-9][0-9]* symbol files fetched' "$work/err" || fail "no file was fetched in a run"
result sidecar "$work/late.meta.json" "${from_cache//cache/cache-of-run}"

# The guest's own disk has these files, too. Copies of them serve this domain alone.
[ -e "$helpers/disk-helper" ] || skip 'the build is without libguestfs'
DEBUGINFOD_URLS=
export VIRT_UPROF_CACHE=$work/cache-of-disks
prepare_appliance
profile 0 symbols -c "$libvirt_uri" --sysroot "$work/empty" "$name"
grep -qE "^$name: [1-9][0-9]* files copied from its disks \([0-9.]+ MB\)$" "$work/err" || fail 'no file was copied'
[ "$(find "$work/cache-of-disks" -type f ! -path "*/domains/${guest_uuids[$name]}/*" | wc -l)" = 0 ] ||
    fail 'a copy is in the folder of all domains'
profile 0 report --sysroot "$work/empty" -o "$work/copied.folded" -o "$work/copied.meta.json" "$work/all.capture"
result same 98 "$work/copied.folded" "$work/files.folded"
from_disks=${from_cache//cache/cache-of-disks/domains}
result sidecar "$work/copied.meta.json" "$from_disks"
sample 200 "$work/own" --sysroot "$work/empty" "$name"
result sidecar "$work/own.meta.json" "$from_disks"
rules=$work/cache-of-disks/domains/${guest_uuids[$name]}/rules
[ -s "$rules" ] && [ "$(stat -c %a "$rules")" = 600 ] || fail 'no rules for the next run'
profile 0 symbols -c "$libvirt_uri" --sysroot "$work/root" "$name"
says 'nothing to copy: '
must_be_free "$name"
