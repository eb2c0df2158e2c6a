#!/bin/bash
# Sets up build-arm64/: unit and golden tests cross-compiled for arm64, to run under qemu-aarch64.
#
# Debian's arm64 libraries are unpacked into build-arm64/sysroot, not installed: no foreign architecture is added to this
# machine, nothing can conflict, and an ordinary user can do it too.
set -eu
cd "$(dirname "$0")/.."
build='build-arm64'
root=$PWD/$build/sysroot

fetch() {
    local work sources=()
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # now, not later
    trap "rm -rf '$work'" EXIT
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs"
    : >"$work/status"
    # Ubuntu keeps arm64 on another server than amd64; Debian has all of them in one place.
    if grep -q '^ID=ubuntu' /etc/os-release; then
        local codename
        # shellcheck source=/dev/null
        codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
        echo "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://ports.ubuntu.com/ubuntu-ports $codename main universe" >"$work/sources.list"
        sources=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-)
    fi
    local apt=(apt-get -q -o Acquire::Retries=3 -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=true -o APT::Sandbox::User=root "${sources[@]}")
    "${apt[@]}" update
    (cd "$work/debs" && "${apt[@]}" download libyaml-dev libmd-dev libsqlite3-dev libjansson-dev libcmocka-dev libcmocka0)
    mkdir -p "$root"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done
    touch "$root/complete"
}

[ -e "$root/complete" ] || fetch

lib=$root/usr/lib/aarch64-linux-gnu
libc=/usr/aarch64-linux-gnu/lib
# The loader is named in the programs, not found by qemu's -L, which would answer "/" with the place of that C library.
cat >"$build/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-E', 'LD_LIBRARY_PATH=$lib:$libc']
[built-in options]
c_args = ['-idirafter', '$root/usr/include']
c_link_args = ['-L$lib', '-Wl,-rpath-link,$lib', '-Wl,--dynamic-linker=$libc/ld-linux-aarch64.so.1']
[properties]
pkg_config_libdir = '$lib/pkgconfig'
libdir = ['$lib']
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
# shellcheck source=scripts/upgraded.sh
. scripts/upgraded.sh
if ! [ -f "$build/meson/build.ninja" ] || upgraded "$build/meson"; then
    rm -rf "$build/meson"
    meson setup "$build/meson" --cross-file "$build/cross.ini" -Dtests=true -Ddebug=false -Doptimization=g ${PINFOLD_WERROR:+-Dwerror=true}
fi
# -Og takes three quarters of -O1's time. Optimized as far as it goes: what the compiler warns of then is found there, in more than twice the time.
if [ "${PINFOLD_TEST_ALL-}" = 1 ] && ! [ -e "$build/meson/.far" ]; then
    meson configure "$build/meson" -Doptimization=3
    : >"$build/meson/.far"
fi
# shellcheck disable=SC2046 # a list of words
ninja -C "$build/meson" $(scripts/targets.py "$build/meson" unit golden)
