# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# package.sh - the tests of the Debian package on a host whose process 1 is systemd; the table at
# the end lists them
#
# The tests run in this order, because each test needs the results of those before it.

units=(virt-uprof-collect.timer virt-uprof-collect.service
    virt-uprof-prune.timer virt-uprof-prune.service virt-uprof-push.service virt-uprof-watch.service)
store=/var/lib/virt-uprof
namespace=https://virt-uprof.org/xmlns/domain/1.0
chain='guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?'
guest=web-1
other=db-1
user=alice

# suspend_guest, resume_guest: $guest is suspended while no test needs it, because a guest that
# computes takes half of the time that the emulator has for the other machines
suspend_guest()
{
    virsh -q suspend "$guest"
    touch /run/guest-suspended
}

resume_guest()
{
    rm -f /run/guest-suspended
    virsh -q resume "$guest"
}

# all_is_well: no guest is paused but the one that a test has suspended, and no thread of a QEMU is
# traced or stopped
all_is_well()
{
    local name pid held wanted
    for name in $(virsh -q list --name); do
        wanted=running
        [ "$name" != "$guest" ] || [ ! -e /run/guest-suspended ] || wanted=paused
        [ "$(virsh -q domstate "$name")" = "$wanted" ] || fail "'$name' is not $wanted"
    done
    for pid in $(pgrep -f '^[^ ]*qemu-system.* -uuid '); do
        held=$(grep -HE '^TracerPid:[[:space:]]*[1-9]|^State:[[:space:]]*[tT]' \
            "/proc/$pid"/task/*/status || true)
        [ -z "$held" ] || fail "threads are traced or stopped: $held"
    done
}

# profile STATUS ARGUMENT...: runs the installed program, which must exit with STATUS
profile()
{
    local want=$1 status=0
    shift
    /usr/bin/virt-uprof "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ "$status" = "$want" ] || fail "virt-uprof $* exits $status, not $want"
}

# property UNIT NAME: prints a property that systemd reports for the unit
property()
{
    systemctl show --property "$2" --value "$1"
}

# must_have_mode MODE PATH...
must_have_mode()
{
    local path
    for path in "${@:2}"; do
        [ "$(stat -c '%a %U:%G' "$path")" = "$1 root:root" ] ||
            fail "$path has $(stat -c '%a %U:%G' "$path"), not $1 root:root"
    done
}

# run_unit UNIT: starts the unit, which ends by itself and must succeed
run_unit()
{
    systemctl start "$1" || fail "$1: $(journalctl -u "$1" -n 20 --no-pager)"
    must_have_succeeded "$1"
}

must_have_succeeded()
{
    [ "$(property "$1" Result) $(property "$1" ExecMainStatus)" = 'success 0' ] ||
        fail "$1: $(property "$1" Result), $(journalctl -u "$1" -n 20 --no-pager)"
}

# slices DOMAIN: prints the sidecars of the domain's slices, the oldest first
slices()
{
    find "$store/data/$1" -name '*Z.meta.json' 2>/dev/null | sort
}

count_slices()
{
    slices "$1" | grep -c . || true
}

has_slices()
{
    [ "$(count_slices "$1")" -ge "$2" ]
}

# must_be_right SIDECAR: the slice has the guest's stacks, and was sampled by access `direct`
must_be_right()
{
    journalctl -u virt-uprof-collect.service --no-pager -o cat
    cat "$1"
    result sidecar "$1" "access == 'direct'" "samples['running'] > 5" "images[0]['matched']"
    gzip -dc "${1%.meta.json}.folded.gz" >"$work/x.folded"
    result stacks "$guest" 95 "$chain" "$work/x.folded"
}

list_files()
{
    find /etc /usr /lib/systemd /var/lib /run -xdev \
        \( -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /run/systemd -o -path /run/udev \
        -o -path /var/lib/libvirt -o -path /run/libvirt -o -path /usr/local \) -prune \
        -o -name '*uprof*' -print | sort
}

debs_are_there()
{
    [ ! -e /lab/debs.failed ] || fail "the packages were not built: $(tail -n 30 /lab/source.log)"
    [ -d /lab/debs ]
}

# install_package: dpkg installs the package; no unit is active or enabled afterwards
install_package()
{
    local unit
    pause=2 wait_until 600 debs_are_there || fail 'the packages are not built in time'
    list_files >/run/files.before
    dpkg -i /lab/debs/virt-uprof_*.deb
    virt-uprof --version
    for unit in "${units[@]}"; do
        [ "$(property "$unit" LoadState) $(property "$unit" ActiveState)" = 'loaded inactive' ] ||
            fail "$unit: $(property "$unit" LoadState) $(property "$unit" ActiveState)"
    done
    for unit in virt-uprof-collect.timer virt-uprof-prune.timer virt-uprof-push.service; do
        [ "$(systemctl is-enabled "$unit")" = disabled ] || fail "$unit is enabled"
    done
    must_have_mode 700 /run/virt-uprof
    must_have_mode 750 "$store" "$store/symbols"
}

# boot_guest NAME LOAD: boots a guest of known stacks. The kernel is not in /var/tmp, because the unit
# has a private /var/tmp. A guest that computes without a pause would slow down the host, so the guest
# has the lowest priority.
boot_guest()
{
    local folder=/var/lib/lab-guests/$1 qemu
    mkdir -p "$folder"
    cp "$guests/guest64.elf" "$folder/kernel"
    guest_xml "$1" "$(cat /proc/sys/kernel/random/uuid)" kvm "$folder" "$2" 1 '' 128 \
        >"$folder/domain.xml"
    virsh -q create "$folder/domain.xml"
    qemu=$(pgrep -f "^[^ ]*qemu-system.*guest=$1,")
    # renice changes the priority of one thread only.
    ls "/proc/$qemu/task" | xargs renice -n 19 -p >/dev/null
    wait_until 300 grep -qa 'virt-uprof guest:' "$folder/serial" || fail "'$1' does not boot"
}

# boot_guests: boots two guests. A later test opts in $guest; no test opts in $other.
boot_guests()
{
    boot_guest "$other" idle
    boot_guest "$guest" 'split unit=1000'
    suspend_guest
    cp "$guests/guest64.elf" "$store/symbols/"
}

# opt_in: a round samples the domain that was opted in and no other; the unit runs the round, and
# the user of the package analyzes the samples
opt_in()
{
    local unit=virt-uprof-collect.service
    # Holds take milliseconds here, so the default budget allows few samples.
    sed -i -e 's|<profile .*/>|<profile rate="500" duration="4s" budget="50"/>|' \
        -e 's|<limits .*/>|<limits rate="500" duration="60s" budget="50"/>|' /etc/virt-uprof.xml
    # The time limits of the unit are for a real machine.
    mkdir -p "/etc/systemd/system/$unit.d"
    printf '[Service]\nTimeoutStartSec=20min\nTimeoutStopSec=10min\n' \
        >"/etc/systemd/system/$unit.d/slow.conf"
    systemctl daemon-reload
    profile 0 enable "$guest"
    virsh -q metadata "$guest" "$namespace" | grep -q 'enabled="yes"'
    resume_guest
    systemctl start --no-block "$unit"
    wait_until 300 pgrep -u virt-uprof -x uprof-worker || fail 'no process has the user virt-uprof'
    pause=2 wait_until 1200 is_in_state "$unit" inactive
    must_have_succeeded "$unit"
    [ "$(slices "$guest" | wc -l)" = 1 ] || fail "no slice: $(journalctl -u "$unit" -n 20 --no-pager)"
    [ ! -e "$store/data/$other" ] || fail "'$other' was sampled, too"
    must_be_right "$(slices "$guest")"
    journalctl -u "$unit" --no-pager -o cat | grep -E "^$guest \(.*\): ok: "
}

# move_clock TIMER SECONDS: sets the clock to SECONDS after the next start of TIMER, or before it if
# SECONDS is negative. `wait_until` uses the same clock, so the clock moves before a wait begins.
move_clock()
{
    local next
    next=$(property "$1" NextElapseUSecRealtime)
    [ -n "$next" ] || fail "$1 does not elapse"
    date -s "@$(($(date -d "$next" +%s) + $2))"
}

has_pushed()
{
    journalctl -u virt-uprof-push.service --no-pager -o cat | grep -q 'no destination is configured'
}

# collect_timer: the enabled timer starts a round at its time, and the round starts the enabled push
collect_timer()
{
    local before unit=virt-uprof-collect.service
    before=$(slices "$guest" | wc -l)
    systemctl enable virt-uprof-push.service
    systemctl enable --now virt-uprof-collect.timer
    move_clock virt-uprof-collect.timer -3
    pause=2 wait_until 300 has_slices "$guest" $((before + 1)) ||
        fail "no round: $(journalctl -u "$unit" -n 20 --no-pager)"
    pause=2 wait_until 300 is_in_state "$unit" inactive
    must_have_succeeded "$unit"
    # The enabled unit of push has waited for the end of the round.
    pause=2 wait_until 300 has_pushed || fail "no push: $(journalctl -u virt-uprof-push.service -n 20 --no-pager)"
    must_have_succeeded virt-uprof-push.service
    systemctl disable virt-uprof-push.service
    # A round would disturb the next tests.
    systemctl stop virt-uprof-collect.timer
    suspend_guest
}

is_in_state()
{
    [ "$(property "$1" ActiveState)" = "$2" ]
}

# merged_days DOMAIN: prints the sidecars of its merged days
merged_days()
{
    find "$store/data/$1" -name '*.meta.json' ! -name '*Z.meta.json'
}

has_merged_day()
{
    [ -n "$(merged_days "$1")" ]
}

# prune_timer: after midnight the enabled timer closes the day
prune_timer()
{
    local day unit=virt-uprof-prune.service
    day=$(date -u +%F)
    # No random delay. When the clock jumps, systemd adds a new random delay of up to ten minutes to
    # a recomputed time of boot, so the timer may start later than move_clock expects.
    mkdir -p /etc/systemd/system/virt-uprof-prune.timer.d
    printf '[Timer]\nRandomizedDelaySec=0\n' >/etc/systemd/system/virt-uprof-prune.timer.d/lab.conf
    systemctl daemon-reload
    systemctl enable --now virt-uprof-prune.timer
    move_clock virt-uprof-prune.timer -3
    [ "$(date -u +%F)" != "$day" ] || fail 'the clock is still in the same day'
    pause=2 wait_until 300 has_merged_day "$guest" ||
        fail "no merged day: $(journalctl -u "$unit" -n 20 --no-pager)"
    pause=2 wait_until 300 is_in_state "$unit" inactive
    must_have_succeeded "$unit"
    journalctl -u "$unit" --no-pager -o cat | grep -E ': 2 profiles merged into 1 days, '
    profile 0 summary "$day"
    grep -qF "$guest (" "$work/out" || fail "no '$guest' in the summary: $(cat "$work/out")"
    run_unit "$unit"
}

# enable_examples: installs the polkit rule and the hook, as their comments say
enable_examples()
{
    local examples=/usr/share/doc/virt-uprof/examples
    groupadd virt-uprof-users
    useradd -m -G virt-uprof-users "$user"
    useradd -m mallory
    cp "$examples/polkit.rules" /etc/polkit-1/rules.d/50-virt-uprof.rules
    echo 'access_drivers = [ "polkit" ]' >>/etc/libvirt/libvirtd.conf
    install -d /etc/libvirt/hooks/qemu.d
    cp "$examples/hooks/qemu.d/virt-uprof" /etc/libvirt/hooks/qemu.d/
    sed 's/^TimeoutStartSec=.*/TimeoutStartSec=20min/' "$examples/virt-uprof-boot@.service" \
        >/etc/systemd/system/virt-uprof-boot@.service
    systemctl daemon-reload
    systemctl restart libvirtd polkit
    virsh -q list
}

# as_user USER STATUS ARGUMENT...: the program exits with STATUS, which may be a pattern
as_user()
{
    local status=0
    runuser -u "$1" -- /usr/bin/virt-uprof -c qemu:///system "${@:3}" >"$work/out" 2>"$work/err" \
        </dev/null || status=$?
    [[ $status = $2 ]] || fail "virt-uprof ${*:3} of $1 exits $status, not $2"
}

# polkit_rule: a user of the group samples the domains of the rule, and no other. Such a user reads
# memory through the monitor, which is so slow here that stacks may be truncated.
polkit_rule()
{
    resume_guest
    as_user "$user" 0 dump --max-pause 1s "$guest"
    grep -qE "^$guest vcpu0 kernel: [0-9]+ frame" "$work/out" || fail "no stack: $(cat "$work/out")"
    as_user "$user" 0 record -F 10 --budget 100 --max-pause 1s -d 20 -o - -f folded "$guest"
    grep -q "^$guest;" "$work/out" || fail "no sample: $(cat "$work/out")"
    says ", access monitor"
    as_user "$user" '[34]' dump "$other"
    as_user mallory 4 dump "$guest"
    suspend_guest
}

has_picture()
{
    compgen -G "/var/lib/virt-uprof-boot/$1-*.svg" >/dev/null
}

# hook: the hook makes a picture of the first seconds of a domain that starts
hook()
{
    local name=web-2
    boot_guest "$name" 'split unit=1000'
    pause=2 wait_until 300 has_picture "$name" ||
        fail "no picture: $(journalctl -u 'virt-uprof-boot@*' -n 20 --no-pager)"
    grep -q guest_main /var/lib/virt-uprof-boot/"$name"-*.svg || fail 'the picture has no guest_main'
    must_have_mode 750 /var/lib/virt-uprof-boot
    virsh -q destroy "$name"
}

# watch_unit: the unit keeps samples of the domains that its file names, gives a domain to another run, and
# writes what it keeps when it is asked
watch_unit()
{
    local unit=virt-uprof-watch.service
    resume_guest
    printf 'OPTIONS="%s --when '"'busy < 1 %%'"' -F 20 --budget 20"\n' "$guest" \
        >/etc/default/virt-uprof-watch
    systemctl start "$unit"
    wait_until 120 asks_watch || fail "watch keeps nothing: $(cat "$work/asked")"
    virt-uprof -d 2s -o "$work/beside.folded" "$guest" || fail 'another run does not get the domain'
    wait_until 120 asks_watch || fail 'watch does not go on after another run'
    [ "$(find "$store/watch/data/$guest" -name '*.meta.json' | wc -l)" -ge 2 ] ||
        fail "profiles: $(ls "$store/watch/data/$guest")"
    systemctl stop "$unit"
    [ "$(property "$unit" Result)" = success ] || fail "$unit: $(property "$unit" Result)"
    rm /etc/default/virt-uprof-watch
    virt-uprof report --store "$store/watch" --since today "$guest" | grep -E ' (work|function_[123])$'
    suspend_guest
}

asks_watch()
{
    virt-uprof watch --now "$guest" >"$work/asked" 2>&1
}

# remove: the timers end with the program; the configuration and the profiles stay
remove()
{
    local unit
    # The timer of rounds stays stopped. It would at once start a round that it has missed, and a
    # round that is stopped before its first sample fails.
    is_in_state virt-uprof-prune.timer active || fail 'virt-uprof-prune.timer is not active'
    rm -r /etc/libvirt/hooks/qemu.d/virt-uprof /etc/polkit-1/rules.d/50-virt-uprof.rules \
        /etc/systemd/system/virt-uprof-boot@.service /var/lib/virt-uprof-boot \
        /etc/systemd/system/virt-uprof-{collect.service,prune.timer}.d
    dpkg --remove virt-uprof
    for unit in "${units[@]}"; do
        is_in_state "$unit" inactive || fail "$unit is $(property "$unit" ActiveState)"
    done
    [ ! -e /usr/bin/virt-uprof ] && [ -e /etc/virt-uprof.xml ] && [ -n "$(slices "$guest")" ]
}

# purge: removes everything except the files that an administrator has added to the symbols
purge()
{
    dpkg --purge virt-uprof
    [ -s "$store/symbols/guest64.elf" ]
    [ ! -e "$store/data" ] && [ ! -e "$store/summary" ] && [ ! -e "$store/watch" ] && [ ! -e /run/virt-uprof ]
    rm -r "$store"
    list_files >"$work/files.after"
    diff /run/files.before "$work/files.after"
}

lab_tests=(
    'install        install_package'
    'boot           boot_guests'
    'opt-in         opt_in'
    'collect-timer  collect_timer'
    'prune-timer    prune_timer'
    'examples       enable_examples'
    'polkit         polkit_rule'
    'hook           hook'
    'watch          watch_unit'
    'remove         remove'
    'purge          purge'
)
