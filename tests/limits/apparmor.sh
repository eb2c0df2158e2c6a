#!/bin/sh
# AppArmor's rules on what boxes are made of: a box without namespaces is started where they refuse them, the reason names what refuses and
# what helps, and the profile of Debian's package helps. In a machine of its own (guest.sh), as root, for its ordinary user. Lines of TAP.
#     apparmor.sh PINFOLD DIR      DIR: compiled profiles (profiles.sh)
# shellcheck disable=SC2016 # the inner shells' words
set -u
# Where a profile may be attached: the guest's /usr/bin is a link.
export P=/usr/local/bin/pinfold
profiles=$2 kernel=/sys/kernel/security/apparmor
mkdir -p /home/user/project /opt/session /opt/own /c
cp /bin/busybox /opt/session/sh
cp "$1" $P
cp "$1" /opt/own/pinfold
chown -R 1000:1000 /home/user
mount -t securityfs none /sys/kernel/security

part=apparmor
# shellcheck source=tests/limits/rows.sh
. "${0%/*}/rows.sh"
as_user() { # with this shell, these words
    busybox su -s "$1" user -c "cd /home/user/project; export HOME=/home/user; $2" 2>&1
}
load() { cat "$profiles/$1" >$kernel/.replace; }
remove() { printf %s "$1" >$kernel/.remove; }

load denied
has no-userns "$(as_user /bin/sh '$P run -v -- echo yes; $P doctor | grep -A 1 user-namespaces')" "instead: native (Landlock only)" yes "the profile denied of AppArmor confines pinfold here" \
    "-> add the rules userns, mount, umount, pivot_root, capability and file to the profile denied"
remove denied
load stripped
has no-capabilities "$(as_user /bin/sh '$P run -v -- echo yes; $P doctor | grep -A 1 user-namespaces')" "instead: native (Landlock only)" yes "the profile stripped of AppArmor confines pinfold here"
remove stripped
load docker-default
has no-mount "$(as_user /bin/sh '$P run -v -- echo yes; $P doctor | grep -A 1 user-namespaces')" "instead: native (Landlock only)" yes "-> start the container with --security-opt apparmor=unconfined"
remove docker-default

# A user's programs may not, as on Ubuntu: with its own profile pinfold may, and what runs in a box still needs to be allowed it.
load session
has a-session-that-may-not "$(as_user /opt/session/sh '$P run -v -- echo yes; $P doctor | grep -A 1 user-namespaces')" "without pid-namespace" yes "the profile session of AppArmor confines pinfold here"
load pinfold
out=$(as_user /opt/session/sh '$P run -v -- cat /proc/self/attr/apparmor/current')
has the-packages-profile "$out" "pinfold (unconfined)"
case $out in *instead*) say 1 the-packages-profile-is-enough "$out" ;; *) say 0 the-packages-profile-is-enough ;; esac
has no-namespace-in-a-box "$(as_user /opt/session/sh '$P run -q -- unshare -U echo made')" "Operation not permitted"
remove pinfold
remove session

# Ubuntu's switch, which Debian's kernel lacks, with a refusal that is the same: in a chroot. The profile's words are those of the package.
mount -t tmpfs none /proc/sys/kernel && echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns
mount -o rbind / /c
attached=$(sed -n 's/^profile pinfold \(.*\) flags=.*/\1/p' "$profiles/text")
in_chroot='cd /home/user/project; export HOME=/home/user;'
has ubuntu "$(chroot /c busybox su -s /bin/sh user -c "$in_chroot \$P doctor | grep -A 1 user-namespaces" 2>&1)" "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns)" \
    "profile pinfold $attached flags=(unconfined) {\\n  userns,\\n}" "sudo apparmor_parser -r /etc/apparmor.d/pinfold"
has ubuntu-program-elsewhere "$(chroot /c busybox su -s /bin/sh user -c "$in_chroot /opt/own/pinfold doctor | grep -A 1 user-namespaces" 2>&1)" "profile pinfold /{${attached#/},opt/own/pinfold} flags"
umount -l /c
umount /proc/sys/kernel
echo "1..$number"
