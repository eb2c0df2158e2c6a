#!/bin/bash
# Runs a command inside a small virtual machine with a kernel of Debian's, and passes on its output and exit status.
# For what this machine's own kernel cannot show: control groups version 2, other kernel command lines, other kernels.
#
#     guest.sh [OPTIONS] [--] COMMAND [ARG...]
#       --file PATH[:INSIDE]  copies a file or directory into the machine (default: to the same path); may be repeated.
#                             Shared libraries of programs come along. COMMAND itself is copied when it is a file.
#       --user                runs COMMAND as an ordinary user (uid 1000) whose control group is delegated: memory, pids, cpu
#       --user-plain          the same without any delegation
#       --user-session        the same in a login session's scope, with systemd as pid 1 and the user's service manager running:
#                             nothing is delegated, but the manager can be asked
#       --cmdline "WORDS"     more kernel command line ("cgroup_disable=memory", "lsm=landlock")
#       --disk IMAGE          a raw image as /dev/vda, written to (with --module virtio_pci --module virtio_blk); nothing is mounted
#       --module NAME         loads a module and what it depends on, before (may be repeated)
#       --memory MIB          of the machine (default 512)
#       --cpus N              of the machine (default 2)
#       --timeout SECONDS     for all of it (default 120); status 124
#       --kernel PATH         default: the newest boot/vmlinuz-*-cloud-amd64 of the kit or of this machine
#       --kit DIR             a root directory (kit.sh) to take the kernel, its modules and systemd from, where it has them
#       --keep                prints the kernel's console to stderr at the end, also when all went well
#
# Inside: busybox for everything a shell script needs, /proc, /sys, /dev, /dev/pts, /dev/shm, a tmpfs as /, cgroup2 on
# /sys/fs/cgroup; no network, no disk but --disk's. stdout and stderr of COMMAND come out together, byte for byte; its stdin is empty.
# Environment passed on: variables named PINFOLD_*, ONLY, TERM.
# Status: COMMAND's own; 124 timeout; 125 the machine did not come up (the console is then printed to stderr).
# GUEST_ACCEL=kvm in the environment uses KVM instead of emulation; it is not tried by itself, for a nested one may hang.
# `true` takes 5 seconds emulated on an idle machine.
set -u

files=() modules=() disk=() as=root cmdline='' memory=512 cpus=2 limit=120 kernel='' keep='' kit=''
while [ $# -gt 0 ]; do
    case $1 in
    --file) files+=("$2"); shift ;;
    --user) as=user ;;
    --user-plain) as=plain ;;
    --user-session) as=session ;;
    --cmdline) cmdline=$2; shift ;;
    --disk) disk=(-drive "file=$2,format=raw,if=virtio,cache=unsafe"); shift ;;
    --module) modules+=("$2"); shift ;;
    --memory) memory=$2; shift ;;
    --cpus) cpus=$2; shift ;;
    --timeout) limit=$2; shift ;;
    --kernel) kernel=$2; shift ;;
    --kit) kit=$(realpath "$2"); shift ;;
    --keep) keep=1 ;;
    --) shift; break ;;
    -*) echo "guest.sh: unknown option $1" >&2; exit 125 ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || { echo "guest.sh: no command" >&2; exit 125; }
[ -n "$kernel" ] || kernel=$(find ${kit:+"$kit/boot"} /boot -name 'vmlinuz-*-cloud-amd64' 2>/dev/null | sort -V | tail -n 1)
for need in qemu-system-x86_64 busybox; do
    command -v $need >/dev/null || { echo "guest.sh: $need is missing (apt install qemu-system-x86 busybox-static)" >&2; exit 125; }
done
[ -r "$kernel" ] || { echo "guest.sh: no kernel (apt install linux-image-cloud-amd64)" >&2; exit 125; }
release=${kernel##*/vmlinuz-}
modules_of=${kernel%/boot/*}/lib/modules/$release
# Libraries of the kit go with the kit's programs.
[ -z "$kit" ] || export LD_LIBRARY_PATH=$kit/lib/x86_64-linux-gnu:$kit/usr/lib/x86_64-linux-gnu:$kit/usr/lib/x86_64-linux-gnu/systemd:$kit/lib/x86_64-linux-gnu/systemd
from_kit() { # PATH: the kit's, or this machine's
    if [ -n "$kit" ] && [ -e "$kit$1" ]; then echo "$kit$1"; else echo "$1"; fi
}

work=$(mktemp -d "${TMPDIR:-/tmp}/guest.XXXXXX") || exit 125
qemu=
trap '[ -n "$qemu" ] && kill -9 "$qemu" 2>/dev/null; rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,etc,mnt,proc,root,run,sys,tmp,var/tmp,home/user,lib64,usr/local/bin}
busybox=$(command -v busybox)
cp "$busybox" "$root/bin/busybox"
"$busybox" --list | while read -r applet; do ln -s busybox "$root/bin/$applet" 2>/dev/null; done
ln -s bin "$root/sbin"
ln -s ../bin "$root/usr/bin" && ln -s ../bin "$root/usr/sbin"
chmod 1777 "$root/tmp" "$root/var/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n' >"$root/etc/group"

libraries() { # of one program; a static one has none
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        inside=${library#"$kit"}
        mkdir -p "$root$(dirname "$inside")"
        cp -nL "$library" "$root$inside"
    done
}
add() { # PATH INSIDE
    mkdir -p "$root$(dirname "$2")"
    cp -aL "$1" "$root$2" || exit 125
    find "$root$2" -type f -perm -100 | while read -r program; do libraries "$program"; done
}
for file in "${files[@]}"; do
    inside=${file#*:}
    add "$(realpath -s "${file%%:*}")" "$(realpath -sm "$inside")"
done
command=$1
case $command in
*/*) command=$(realpath -s "$1"); add "$command" "$command" ;;
esac
shift

# systemd, just enough of it: the manager, a bus (the user's manager asks the system's over it), no logind, no PAM.
add_systemd() {
    local units=$root/etc/systemd/system
    for file in /lib/systemd/systemd /lib/systemd/systemd-executor /usr/lib/systemd/systemd-executor /usr/bin/systemctl /usr/bin/systemd-run /usr/bin/dbus-daemon \
        /usr/bin/busctl /usr/share/dbus-1 /lib/systemd/system/dbus.socket; do
        here=$(from_kit "$file")
        [ ! -e "$here" ] || add "$here" "$file"
    done
    rm -rf "$root"/usr/share/dbus-1/system-services/*
    mkdir -p "$units" "$root/var/log" "$root/usr/share/dbus-1/system.d"
    ln -s /run "$root/var/run"
    echo 'ID=guest' >"$root/etc/os-release"
    : >"$root/etc/machine-id"
    echo 'messagebus:x:100:100::/:/bin/false' >>"$root/etc/passwd"
    echo 'messagebus:x:100:' >>"$root/etc/group"
    cat >"$units/dbus.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Requires=dbus.socket
[Service]
Type=notify
ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation
UNIT
    cat >"$units/dbus.socket" <<'UNIT'
[Unit]
DefaultDependencies=no
[Socket]
ListenStream=/run/dbus/system_bus_socket
UNIT
    cat >"$units/user@.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=dbus.service
After=dbus.service
[Service]
User=%i
Type=notify
Environment=XDG_RUNTIME_DIR=/run/user/%i HOME=/home/user
ExecStartPre=+/bin/mkdir -p /run/user/%i
ExecStartPre=+/bin/chown %i:%i /run/user/%i
ExecStart=/lib/systemd/systemd --user
Slice=user-%i.slice
KillMode=mixed
Delegate=pids memory cpu
UNIT
    cat >"$units/guest.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=user@1000.service
After=user@1000.service
[Service]
Type=oneshot
ExecStart=/bin/sh /finish
UNIT
    printf '[Unit]\nDefaultDependencies=no\nWants=guest.service\nAllowIsolate=yes\n' >"$units/default.target"
    # The user's manager wants these of its own.
    mkdir -p "$root/usr/lib/systemd/user"
    printf '[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n' >"$root/usr/lib/systemd/user/default.target"
    for unit in basic sockets timers paths shutdown exit; do
        printf '[Unit]\nDefaultDependencies=no\n' >"$root/usr/lib/systemd/user/$unit.target"
    done
}
[ $as = session ] && add_systemd

load=()
add_module() { # NAME: with its dependencies first, from modules.dep
    local line path need
    line=$(grep -m1 -E "(^|/)${1//_/[_-]}\.ko(\.[gx]z)?:" "$modules_of/modules.dep") || {
        # Linux 7 in Debian has no such list: what it has no module of is in the kernel, or is missed by what needs it.
        if [ ! -e "$modules_of/modules.builtin" ] || grep -qE "/${1//_/[_-]}\.ko$" "$modules_of/modules.builtin"; then return 0; fi
        echo "guest.sh: no module $1 for $release" >&2
        exit 125
    }
    path=${line%%:*}
    for need in $(for p in ${line#*:}; do echo "$p"; done | tac) $path; do
        [ -e "$root/modules/${need##*/}" ] && continue
        mkdir -p "$root/modules"
        cp "$modules_of/$need" "$root/modules/"
        load+=("${need##*/}")
    done
}
for module in "${modules[@]}"; do add_module "$module"; done

{
    echo '#!/bin/sh'
    env | grep -E '^(PINFOLD_[A-Z_]*|ONLY|TERM)=' | while IFS='=' read -r name value; do printf 'export %s=%q\n' "$name" "$value"; done
    printf 'export HOME=%s USER=%s PATH=/bin:/sbin\n' "$([ $as = root ] && echo /root || echo /home/user)" "$([ $as = root ] && echo root || echo user)"
    printf 'cd /tmp\nexec'
    printf ' %q' "$command" "$@"
    echo
} >"$root/command"
# The kernel's initial root file system cannot be left by pivot_root(2), which boxes need: a mount of it on top can.
cat >"$root/init" <<'INIT'
#!/bin/sh
mkdir /top
mount -o bind / /top
cd /top
mount -o move . /
exec chroot . /second
INIT
cat >"$root/second" <<INIT
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for m in ${load[*]-}; do insmod /modules/\$m || echo "insmod \$m failed" >/dev/console; done
ip link set lo up
stty raw -echo </dev/ttyS1
stty raw -echo </dev/ttyS2
chown -R 1000:1000 /home/user
cd /
INIT
if [ $as = user ]; then
    cat >>"$root/second" <<'INIT'
cg=/sys/fs/cgroup/user
mkdir $cg $cg/shell
for c in memory pids cpu; do echo +$c >/sys/fs/cgroup/cgroup.subtree_control; done 2>/dev/null
for f in "" /cgroup.procs /cgroup.subtree_control /cgroup.threads /shell /shell/cgroup.procs; do chown 1000:1000 $cg$f; done
INIT
fi
if [ $as = session ]; then
    echo 'export XDG_RUNTIME_DIR=/run/user/1000' | sed -i '1r /dev/stdin' "$root/command"
    run='systemd-run -q --scope --slice=user-1000.slice --unit=session-1.scope --uid=1000 --gid=1000 sh /command'
fi
case $as in
root) run='setsid sh /command' ;;
user) run='echo 0 >/sys/fs/cgroup/user/shell/cgroup.procs; exec setsid setpriv_user' ;;
plain) run='exec setsid setpriv_user' ;;
esac
run=${run/setpriv_user/busybox su -s \/bin\/sh user \/command}
cat >"$root/finish" <<FINISH
{ ( $run ); echo "status \$?" >/run/status; } </dev/null 2>&1 | cat >/dev/ttyS1 # a pipe: a serial line would be a terminal
cat /run/status >/dev/ttyS2
busybox sleep 0.1
busybox reboot -f
FINISH
if [ $as = session ]; then
    echo 'exec /lib/systemd/systemd --log-target=console --log-level=warning' >>"$root/second"
else
    echo 'sh /finish' >>"$root/second"
fi
chmod +x "$root/init" "$root/second" "$root/command"

(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initrd"
# A kernel patches its own code while its other processors run (static branches). Emulated by a thread each, one of them may execute the
# half-written instruction, which ends the machine ("Fatal exception in interrupt", seen at sched_clock_idle_wakeup_event): one thread for all.
accel=${GUEST_ACCEL:-tcg,thread=single}
cpu=max
[ "$accel" = kvm ] && cpu=host
timeout -k 1 "$limit" qemu-system-x86_64 -accel "$accel" -cpu $cpu -M q35 -m "$memory" -smp "$cpus" -nodefaults -no-user-config -display none -no-reboot \
    "${disk[@]}" -kernel "$kernel" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet cryptomgr.notests no_timer_check panic=-1 reboot=t 8250.nr_uarts=4 $cmdline" \
    -serial file:"$work/console" -serial file:"$work/output" -serial file:"$work/status" >"$work/qemu" 2>&1 </dev/null &
qemu=$!
wait $qemu
ended=$?
qemu=
[ -f "$work/output" ] && cat "$work/output"
status=$(sed -n 's/^status \([0-9]*\).*/\1/p' "$work/status" 2>/dev/null | head -n 1)
if [ -n "$keep" ] || [ -z "$status" ]; then
    cat "$work/qemu" "$work/console" >&2 2>/dev/null
fi
[ -n "$status" ] && exit "$status"
if [ $ended = 124 ] || [ $ended = 137 ]; then
    echo "guest.sh: no end within $limit seconds" >&2
    exit 124
fi
echo "guest.sh: the machine ended without a status" >&2
exit 125
