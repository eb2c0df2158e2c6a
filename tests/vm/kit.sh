#!/bin/bash
# The kernel of Debian's linux-image-amd64 (the cloud kernel has no 9p) with the modules a microvm needs: downloaded and
# unpacked, never installed.
#
#     kit.sh DIR      fills DIR (once: what is there already stays) and prints the path of the kernel
set -u
[ $# = 1 ] || { echo "usage: kit.sh DIR" >&2; exit 2; }
mkdir -p "$1" || exit 1
kit=$(realpath "$1")
kernel() { find "$kit/root/boot" -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1; }

exec 9>"$kit/lock" && flock 9 || exit 1 # several suites begin with this at the same time
if [ ! -e "$kit/complete" ]; then
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*-amd64\)$/\1/p' | head -n 1)
    # And those that it is split into (Linux 7).
    mapfile -t packages < <(echo "$package" && apt-cache depends "$package" 2>/dev/null | sed -n 's/^ *Depends: \(linux-\(binary\|modules\)-[^ ]*\)$/\1/p')
    rm -rf "$kit/root" "$kit/packages"
    mkdir -p "$kit/root" "$kit/packages" || exit 1
    if [ -z "$package" ] || ! (cd "$kit/packages" && apt-get download -q -o Acquire::Retries=3 "${packages[@]}") >"$kit/log" 2>&1; then
        tail -n 5 "$kit/log" >&2
        echo "kit.sh: cannot download linux-image-amd64" >&2
        exit 1
    fi
    for package in "$kit"/packages/*.deb; do
        dpkg-deb --fsys-tarfile "$package" >"$kit/packages/tar" || exit 1
        # Debian 13 has them in /usr/lib, and not each folder is in each version.
        tar -tf "$kit/packages/tar" | grep -E '^\./(boot/vmlinuz-|(usr/)?lib/modules/[^/]*/(modules\.(builtin|order)|kernel/(drivers/(virtio/.|char/virtio|net/(virtio_net|net_failover))|net/(core/failover|9p/.)|fs/(9p|netfs|fscache)/.)))' |
            tar -x -f "$kit/packages/tar" -C "$kit/root" --no-recursion -T - --transform 's,^\./usr/lib/,./lib/,' || exit 1
    done
    rm -rf "$kit/packages"
    # Linux 7 has the kernel there, until it is installed.
    for image in "$kit"/root/lib/modules/*/vmlinuz; do
        if [ -e "$image" ]; then mkdir -p "$kit/root/boot" && mv "$image" "$kit/root/boot/vmlinuz-$(basename "${image%/*}")" || exit 1; fi
    done
    for modules in "$kit"/root/lib/modules/*; do busybox depmod -b "$kit/root" "${modules##*/}" || exit 1; done
    chmod -R go+rX "$kit/root"
    : >"$kit/complete"
fi
kernel
