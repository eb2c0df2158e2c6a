#!/bin/sh
# What a hardened machine's settings do to boxes: each refusal names the setting, and its remedy works; what is left works. In a machine of
# its own (guest.sh), as root, for its ordinary user. Lines of TAP.
#     hardened.sh PINFOLD
# shellcheck disable=SC2016 # the inner shells' words
# shellcheck disable=SC2319 # say takes the status of a condition
set -u
export P="$1"
yama=/proc/sys/kernel/yama/ptrace_scope clone=/proc/sys/kernel/unprivileged_userns_clone
mkdir -p /home/user/project
chown -R 1000:1000 /home/user

part=hardened
# shellcheck source=tests/limits/rows.sh
. "${0%/*}/rows.sh"
as_user() { busybox su -s /bin/sh user -c "cd /home/user/project; export HOME=/home/user; $1" 2>&1; }
writes='$P run -q -- sh -c "echo yes >made && cat made"'

# ---- limits of namespaces: of each kind, not of user namespaces alone
for kind in user mnt net pid ipc uts cgroup; do
    limit=/proc/sys/user/max_${kind}_namespaces
    before=$(cat $limit)
    echo 0 >$limit
    # What runs says what it takes instead, doctor the rest.
    has "no-$kind-namespaces" "$(as_user '$P run -v -- true; $P doctor')" "instead: native (Landlock only)" "max_${kind}_namespaces is 0" "sysctl -w user.max_${kind}_namespaces=15000"
    echo "$before" >$limit
done
as_user '$P session start a; $P session start b' # before the limit, so that it is reached
echo 2 >/proc/sys/user/max_net_namespaces
has a-limit-that-is-reached "$(as_user '$P doctor')" "a limit of namespaces is reached (user.max_net_namespaces is the lowest)" "sysctl -w user.max_net_namespaces=15000"
as_user '$P session rm a; $P session rm b'
echo 15000 >/proc/sys/user/max_net_namespaces

# ---- what the guard reads
for scope in 0 1 2; do
    echo $scope >$yama
    has "ptrace-scope-$scope" "$(as_user "$writes")" yes
done
echo 0 >$clone
has ptrace-scope-2-without-namespaces "$(as_user "$writes; \$P doctor")" "ptrace_scope is 2" "sudo sysctl -w kernel.yama.ptrace_scope=1"
has ptrace-scope-2-as-root "$(cd /root 2>/dev/null || mkdir /root; mkdir -p /root/project; cd /root/project && HOME=/root $P run -q -- sh -c 'echo yes >made && cat made' 2>&1)" yes
echo 1 >$yama
has ptrace-scope-1-without-namespaces "$(as_user "$writes")" yes
echo 1 >$clone
# ---- parts of a machine that are missing
mv /dev/full /dev/other
has no-dev-full "$(as_user '$P run -- true')" "one of them is missing in /dev"
mv /dev/other /dev/full
umount /proc && mount -t proc -o subset=pid proc /proc
has proc-of-processes-alone "$(as_user '$P run -q --cow -- true')" "mount -t proc proc /proc"
umount /proc
has no-proc "$(as_user '$P run -- true')" "/proc is not mounted here"
has no-proc-session "$(as_user '$P session start s')" "/proc is not mounted here"
has no-proc-cow "$(as_user '$P run --cow -- true')" "mount -t proc proc /proc"
doctor=$(as_user '$P doctor')
has no-proc-doctor "$doctor" "/proc is not mounted"
case $doctor in *hidepid*) say 1 no-proc-is-no-hidepid "$doctor" ;; *) say 0 no-proc-is-no-hidepid ;; esac
mount -t proc proc /proc

# SELinux's boolean, as a machine with Fedora's policy shows it. What it forbids it forbids by a policy, which is not there.
mount -t tmpfs none /sys/fs && mkdir -p /sys/fs/selinux/booleans && echo "1 1" >/sys/fs/selinux/booleans/deny_ptrace && echo 1 >/sys/fs/selinux/enforce
has deny-ptrace "$(as_user "\$P run -q -- true; \$P doctor")" "guard, unix-sockets: SELinux's boolean deny_ptrace is on" "seccomp-notification   SELinux's boolean deny_ptrace is on" "-> sudo setsebool -P deny_ptrace off"
echo 0 >/sys/fs/selinux/enforce
has deny-ptrace-of-a-permissive-machine "$(as_user "$writes")" yes
umount /sys/fs

echo 3 >$yama # for as long as this machine runs
rm -f /home/user/project/made
has ptrace-scope-3 "$(as_user "$writes; ls; \$P doctor; \$P session start s")" "guard, unix-sockets: kernel.yama.ptrace_scope is 3" "restart the machine" "seccomp-notification   kernel.yama.ptrace_scope is 3"
[ ! -e /home/user/project/made ]
say $? ptrace-scope-3-starts-nothing "a command ran"
has ptrace-scope-3-without-the-guard "$(as_user '$P run -q --may-lose guard --may-lose unix-sockets -- sh -c "echo yes >made && cat made"')" yes
echo "1..$number"
