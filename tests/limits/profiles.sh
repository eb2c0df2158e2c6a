#!/bin/bash
# AppArmor's profiles for apparmor.sh, compiled: profiles.sh KIT DIR [FILE...]     KIT: kit.sh's of a Debian with AppArmor 4, whose parser runs with its
# own C library; FILE: profiles of others
set -eu
kit=$1/parser to=$2
libraries=$kit/usr/lib/x86_64-linux-gnu
mkdir -p "$to"
compiled() { # name, or a file
    "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$kit/usr/sbin/apparmor_parser" --config-file /dev/null --base "$kit/etc/apparmor.d" \
        --kernel-features "$kit/etc/apparmor.d/abi/4.0" --skip-kernel-load --skip-cache --stdout >"$to/$1"
}
of() { # name, where, rules besides those that no test is about
    printf 'abi <abi/4.0>,\nprofile %s %s flags=(attach_disconnected,mediate_deleted) {\n  network, unix, ptrace, signal, mqueue, umount, pivot_root, io_uring,\n  %s\n}\n' "$@" |
        compiled "$1"
}
of denied /usr/local/bin/pinfold 'file, capability, mount,'
of stripped /usr/local/bin/pinfold 'file, mount, userns,'
of docker-default /usr/local/bin/pinfold 'file, capability, userns, deny mount,'
of session /opt/session/sh 'capability, mount, / r, /** rwlkm, /** pix,'
compiled pinfold <debian/apparmor/pinfold
cp debian/apparmor/pinfold "$to/text"
shift 2
for file; do compiled "${file##*/}" <"$file"; done
