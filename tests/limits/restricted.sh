#!/bin/sh
# Ubuntu's restriction of user namespaces, on its kernel: restricted.sh PINFOLD DIR      DIR: compiled profiles (profiles.sh)
# A program without a profile may make one there and gets no capability in it: mounts fail with EACCES. In a machine of its own (guest.sh), as
# root, for its ordinary user. Lines of TAP.
# shellcheck disable=SC2016 # the inner shells' words
set -u
P=/usr/local/bin/pinfold
profiles=$2 kernel=/sys/kernel/security/apparmor
mkdir -p /home/user/project
cp "$1" $P
echo words >/home/user/project/file
chown -R 1000:1000 /home/user
mount -t securityfs none /sys/kernel/security 2>/dev/null

part=ubuntu
# shellcheck source=tests/limits/rows.sh
. "${0%/*}/rows.sh"
as_user() { busybox su -s /bin/sh user -c "cd /home/user/project; export P=$P HOME=/home/user; $1" 2>&1; }
lacks() { # NAME, output, words that may not be in it
    case $2 in *"$3"*) say 1 "$1" "'$3' is in: $2" ;; *) say 0 "$1" ;; esac
}
once() { # NAME, output, words that must be in it once
    case ${2#*"$3"} in "$2") say 1 "$1" "no '$3' in: $2" ;; *"$3"*) say 1 "$1" "'$3' twice in: $2" ;; *) say 0 "$1" ;; esac
}
switch() { echo "$1" >/proc/sys/kernel/apparmor_restrict_unprivileged_userns; }

lacks without-the-restriction "$(as_user '$P doctor')" "AppArmor restricts"
cat "$profiles/unprivileged_userns" >$kernel/.replace
switch 1
has a-namespace-without-capabilities "$(as_user 'unshare -U echo made; unshare -U -m true')" made "Permission denied"
out=$(as_user '$P run -- cat file')
if [ "$(uname -r | awk -F . '{ print ($1 > 6 || ($1 == 6 && $2 >= 12)) }')" = 1 ]; then
    has works-by-landlock "$out" words
else # Landlock has no scopes before Linux 6.12
    has what-lacks "$out" "abstract-sockets, signals: without namespaces, Landlock's scopes are needed (Linux 6.12): AppArmor restricts user namespaces" \
        "--may-lose abstract-sockets --may-lose signals"
    once the-remedy-once "$out" "sudo apparmor_parser -r /etc/apparmor.d/pinfold"
    has works-by-landlock "$(as_user '$P run --may-lose abstract-sockets --may-lose signals -- cat file')" words
fi
has doctor "$(as_user '$P doctor')" "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns)" "sudo tee /etc/apparmor.d/pinfold"

cat "$profiles/pinfold" >$kernel/.replace
out=$(as_user '$P run -v -- cat file /proc/self/attr/apparmor/current')
has with-the-profile "$out" words "pinfold (unconfined)"
lacks with-the-profile-nothing-is-lost "$out" without
has no-namespace-in-a-box "$(as_user '$P run -q -- unshare -U echo made')" "Operation not permitted"
has nested "$(as_user '$P run -q --allow-nested-userns -- unshare -U echo made')" made
has cow "$(as_user '$P run --cow -- sh -c "echo x >new"; $P diff')" "+ new"
has session "$(as_user '$P session start one && $P exec one echo in it; $P session rm one')" "in it"
has doctor-with-the-profile "$(as_user '$P doctor')" "Verdict: boxes work here, and a default box loses nothing"
mkdir -p /root/project
has root "$(cd /root/project && HOME=/root $P run -- echo words 2>&1)" words
echo "1..$number"
