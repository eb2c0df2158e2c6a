#!/bin/bash
# What the guests of guest.sh are made of, where this machine does not have it: Debian's cloud kernel with its modules, and
# systemd. The packages are downloaded and unpacked, never installed: a test is no reason for another kernel in /boot.
#
#     kit.sh DIR [SUITE]   fills DIR (once: what is there already stays) and prints the directory that stands for the root;
#                          SUITE: with the kernel and AppArmor's parser of that Debian (trixie: Linux 6.12) instead of this one's;
#                          ubuntu:SUITE (ubuntu:noble: Linux 6.8): of that Ubuntu, from its archive or PINFOLD_UBUNTU_MIRROR
set -u
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: kit.sh DIR [SUITE]" >&2; exit 2; }
mkdir -p "$1" || exit 1
kit=$(realpath "$1")
suite=${2-} flavour=cloud-amd64
# What apt makes of its lists, which a container's settings have it make anew for each of the calls below.
of=(-o "Dir::Cache::pkgcache=$kit/pkgcache.bin" -o "Dir::Cache::srcpkgcache=$kit/srcpkgcache.bin")
of_suite() { # apt with an index of its own, and of that Debian alone
    local mirror trust=''
    # shellcheck disable=SC2016 # apt's words
    mirror=${PINFOLD_DEBIAN_MIRROR-$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null | awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')}
    if [ "${suite#ubuntu:}" != "$suite" ]; then # Debian has no keys of Ubuntu's; what comes runs in a machine of its own
        suite=${suite#ubuntu:} flavour=generic trust='[trusted=yes] ' mirror=${PINFOLD_UBUNTU_MIRROR-http://archive.ubuntu.com/ubuntu}
    fi
    mkdir -p "$kit/apt/lists/partial" "$kit/apt/cache/archives/partial" || return 1
    echo "deb $trust$mirror $suite main" >"$kit/apt/sources.list"
    of+=(-o "Dir::Etc::sourcelist=$kit/apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$kit/apt/lists" -o "Dir::Cache=$kit/apt/cache"
        -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::Check-Valid-Until=false)
    if ! apt-get "${of[@]}" update -qq >"$kit/log" 2>&1; then
        tail -n 5 "$kit/log" >&2
        echo "kit.sh: cannot read the index of $suite on $mirror" >&2
        return 1
    fi
}

newest() { # the package that linux-image-cloud-amd64 (or -generic) stands for now, and those that it is split into (Linux 7, Ubuntu)
    local package
    package=$(apt-cache "${of[@]}" depends "linux-image-$flavour" 2>/dev/null | sed -n "s/^ *Depends: \(linux-image-[0-9][^ ]*-$flavour\)\$/\1/p" | head -n 1)
    [ -n "$package" ] || return
    echo "$package"
    apt-cache "${of[@]}" depends "$package" | sed -n 's/^ *Depends: \(linux-\(binary\|modules\)-[^ ]*\)$/\1/p'
}

# That Debian's parser of AppArmor, which knows more rules, with its libraries: in parser/, because programs of this machine cannot use them.
parser=(apparmor libapparmor1 libc6 libgcc-s1 libstdc++6)
wanted() {
    [ -z "$suite" ] || { newest; printf '%s\n' "${parser[@]}"; return; }
    [ -n "$(find /boot -name 'vmlinuz-*-cloud-amd64' 2>/dev/null)" ] || newest
    # What systemd needs and this machine lacks, in versions that fit each other.
    [ -x /lib/systemd/systemd ] ||
        apt-get "${of[@]}" -s install --no-install-recommends systemd dbus-daemon dbus-system-bus-common 2>/dev/null | sed -n 's/^Inst \(systemd\|lib[^ ]*\|dbus[^ ]*\) .*/\1/p'
}

packages=()
if [ ! -e "$kit/complete" ]; then
    [ -z "$suite" ] || of_suite || exit 1
    mapfile -t packages < <(wanted | sort -u)
fi
if [ "${#packages[@]}" -gt 0 ]; then
    rm -rf "$kit/root" "$kit/packages"
    mkdir -p "$kit/root" "$kit/packages" || exit 1
    # apt's own user downloads where it can; a directory that only we can enter is refused to it with a warning.
    if ! (cd "$kit/packages" && apt-get "${of[@]}" download -q -o Acquire::Retries=3 "${packages[@]}") >"$kit/log" 2>&1; then
        tail -n 5 "$kit/log" >&2
        echo "kit.sh: cannot download ${packages[*]}" >&2
        exit 1
    fi
    mkdir -p "$kit/parser"
    for package in "$kit"/packages/*.deb; do
        to=$kit/root
        for name in "${parser[@]}"; do [[ ${package##*/} != "$name"_* || -z $suite ]] || to=$kit/parser; done
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$to" --exclude=./usr/share/doc --exclude=./usr/share/locale --exclude=./usr/share/man || exit 1
    done
    rm -rf "$kit/packages"
    # Debian 13 has them there.
    if [ -d "$kit/root/usr/lib/modules" ]; then mkdir -p "$kit/root/lib" && mv "$kit/root/usr/lib/modules" "$kit/root/lib/" || exit 1; fi
    # Linux 7 has the kernel there, until it is installed.
    for image in "$kit"/root/lib/modules/*/vmlinuz; do
        if [ -e "$image" ]; then mkdir -p "$kit/root/boot" && mv "$image" "$kit/root/boot/vmlinuz-$(basename "${image%/*}")" || exit 1; fi
    done
    # As guest.sh's busybox loads them.
    find "$kit/root/lib/modules" -name '*.ko.zst' -print0 | xargs -0 -r zstd -q -d --rm -- || exit 1
    for modules in "$kit"/root/lib/modules/*; do
        [ -e "$modules" ] && { busybox depmod -b "$kit/root" "${modules##*/}" || exit 1; }
    done
    : >"$kit/complete"
fi
# An emulated machine takes half as long to start a kernel that it need not unpack (zstd; Documentation/arch/x86/boot.rst, payload_offset).
unpacked() { # IMAGE
    python3 -c '
import struct, sys
image = open(sys.argv[1], "rb").read()
if image[0x202:0x206] == b"HdrS":
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = 512 * ((image[0x1f1] or 4) + 1) + offset
    if image[start:start + 4] == b"\x28\xb5\x2f\xfd":
        sys.stdout.buffer.write(image[start:start + length - 4])  # behind it is its length' "$1" | zstd -q -d
}
for image in "$kit"/root/boot/vmlinuz-*-cloud-amd64; do
    if [ -z "$suite" ] || [ ! -e "$image" ]; then continue; fi
    if unpacked "$image" >"$kit/unpacked.$$" 2>/dev/null && [ "$(head -c 4 "$kit/unpacked.$$" | tail -c 3)" = ELF ]; then mv "$kit/unpacked.$$" "$image"; else rm -f "$kit/unpacked.$$"; fi
done
mkdir -p "$kit/root"
echo "$kit/root"
