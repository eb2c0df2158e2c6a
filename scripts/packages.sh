#!/bin/sh
# The packages of Debian and Ubuntu that pinfold needs, in two sections:
#     scripts/packages.sh list build|test      prints their names
#     scripts/packages.sh install build test   installs what is missing (as root)
# A line is "section package proof": the package counts as present when the command or file `proof` exists, so that
# a node or a java that came from elsewhere is left alone.
set -eu

table() {
    cat <<'END'
build gcc cc
build libc6-dev /usr/include/stdio.h
build musl-tools musl-gcc
build meson meson
build ninja-build ninja
build pkg-config pkg-config
build libyaml-dev /usr/include/yaml.h
build libsqlite3-dev /usr/include/sqlite3.h
build libmd-dev /usr/include/sha256.h
build libjansson-dev /usr/include/jansson.h
build libseccomp-dev /usr/include/seccomp.h
build scdoc scdoc
test libcmocka-dev /usr/include/cmocka.h
test python3 python3
test bubblewrap bwrap
test firejail firejail
test bats bats
test clang clang
test clang-format-14 clang-format-14
test clang-tidy clang-tidy
test shellcheck shellcheck
test binutils nm
test gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc
test libc6-dev-arm64-cross /usr/aarch64-linux-gnu/include/stdio.h
test qemu-user qemu-aarch64
test git git
test nodejs node
test npm npm
test make make
test g++ g++
test gdb gdb
test strace strace
test tmux tmux
test zsh zsh
test fish fish
test curl curl
test sqlite3 sqlite3
test python3-pytest pytest-3
test perl perl
test default-jdk-headless javac
test openssh-client ssh-keygen
test openssh-server sshd
test postgresql pg_lsclusters
test golang-go go
test python3-requests /usr/lib/python3/dist-packages/requests
test python3-grpcio /usr/lib/python3/dist-packages/grpc
test nghttp2-client nghttp
test rsync rsync
test zip zip
test unzip unzip
test xz-utils xz
test less less
test vim-tiny vi
test sudo sudo
test procps ps
test e2fsprogs mke2fs
test util-linux setpriv
test iproute2 ip
test tinyproxy tinyproxy
test squid squid
test microsocks microsocks
test inotify-tools inotifywait
test qemu-system-x86 qemu-system-x86_64
test busybox-static busybox
test docker.io dockerd
test podman podman
test runc runc
test uidmap newuidmap
test dpkg dpkg-deb
test dbus-daemon dbus-daemon
END
}

present() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] ;;
    esac
}

# Prints the packages of the sections given that are not there.
missing() {
    table | while read -r section package proof; do
        for wanted in "$@"; do
            if [ "$section" = "$wanted" ] && ! present "$proof"; then echo "$package"; fi
        done
    done
}

case ${1-} in
list)
    shift
    for wanted in "${@:-build}"; do table | awk -v s="$wanted" '$1 == s { print $2 }'; done
    ;;
missing)
    shift
    missing "$@"
    ;;
install)
    shift
    want=$(missing "$@")
    [ -n "$want" ] || exit 0
    if [ "$(id -u)" != 0 ]; then
        echo "packages.sh: only root can install what is missing: $(echo "$want" | tr '\n' ' ')" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    # Tests start the servers they need themselves: installing one (sshd, PostgreSQL) must not.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    apt-get install -y -q --no-install-recommends $want
    ;;
*)
    echo "usage: packages.sh list|missing|install build|test ..." >&2
    exit 2
    ;;
esac
