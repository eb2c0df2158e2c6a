#!/bin/sh
# The day after, with a clock that was wrong: what waits in layers is the host's to take, whatever the clock did meanwhile. In a machine of
# its own (guest.sh), as root. Lines of TAP.
#     clock.sh PINFOLD
# shellcheck disable=SC2319 # say takes the status of a condition
set -u
pinfold=$1
export HOME=/root
mkdir -p /root/project
cd /root/project || exit 1

part=clock
# shellcheck source=tests/limits/rows.sh
. "${0%/*}/rows.sh"
clock() { date -s "$1" >/dev/null; }
now_is() { # DATE: the clock has been set to it, and the machine is started anew
    umount /proc/sys/kernel/random/boot_id 2>/dev/null
    clock "$1"
    cat /proc/sys/kernel/random/uuid >/tmp/boot_id
    mount -o bind /tmp/boot_id /proc/sys/kernel/random/boot_id
}
box() { "$pinfold" run -q "--cow=$1" -- sh -c "$2"; }

clock "2025-01-01"
echo before >edited && echo before >left && echo before >removed
clock "2030-01-01"
box first 'echo box >edited; echo box >left; echo box >removed; echo box >made'
clock "2026-01-01"
echo host >edited && rm removed
out=$("$pinfold" apply first --all 2>&1)
[ "$(cat edited)" = host ] && [ ! -e removed ] && [ "$(cat made)" = box ] && [ "$(cat left)" = box ]
say $? set-back-while-a-layer-waits "$out; edited: $(cat edited), left: $(cat left)"

clock "2040-01-01"
box later 'echo later >which'
clock "2027-01-01"
box second 'echo second >which'
out=$("$pinfold" diff 2>&1)
newest=$("$pinfold" layers | sed -n 's/ .*(second)$//p')
case $out in "layer $newest "*) true ;; *) false ;; esac
say $? the-newest-is-the-newest "$out"
out=$("$pinfold" layers 2>&1)
case $out in *" -"[0-9]*) false ;; *"m  "*) true ;; *) false ;; esac
say $? no-age-below-nothing "$out"

now_is "2050-01-01"
echo before >edited
box third 'echo box >edited'
now_is "2028-01-01"
echo host >edited
out=$("$pinfold" apply third --all 2>&1)
[ "$(cat edited)" = host ] && case $out in *"clock was set back"*) true ;; *) false ;; esac
say $? set-back-while-the-machine-was-off "$out; edited: $(cat edited)"

now_is "2052-01-01"
echo before >edited
box fourth 'echo box >edited'
now_is "2052-01-02"
out=$("$pinfold" apply fourth --all 2>&1)
[ "$(cat edited)" = box ]
say $? a-clock-that-goes-on "$out"
umount /proc/sys/kernel/random/boot_id
echo "1..$number"
