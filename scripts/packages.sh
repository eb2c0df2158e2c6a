#!/bin/sh
# The packages of Debian and Ubuntu that pinfold needs, in sections:
#     build     what the program cannot be built without
#     manual    what it is built without, too: the manual pages are left out
#     agents    likewise: logins in agents' SQLite databases are not copied, and no login is renewed
#     test      what tests need: those whose package is not there are left out, and say so
#
#     scripts/packages.sh list SECTION...      prints their names; a package's name may stand where a section does
#     scripts/packages.sh missing SECTION...   prints those that are not installed
#     scripts/packages.sh by-hand NAME...      prints the command with which an ordinary user has them installed
#     scripts/packages.sh install SECTION...   installs them (as root), and names on standard error what cannot be had.
#                                              It fails only where one of `build` is still missing.
# A line is "section package proof": the package counts as present when the command or file `proof` exists, so that
# a node or a java that came from elsewhere is left alone; one of the user's own (cargo's place is a home) is none for others. Words joined by commas are other names, the best one first: of
# packages the first that this machine's apt knows is taken, of proofs any will do.
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
build libmd-dev /usr/include/sha256.h
build libjansson-dev /usr/include/jansson.h
build libseccomp-dev /usr/include/seccomp.h
manual scdoc scdoc
agents libsqlite3-dev /usr/include/sqlite3.h
agents libcurl4-openssl-dev /usr/include/curl/curl.h,/usr/include/x86_64-linux-gnu/curl/curl.h,/usr/include/aarch64-linux-gnu/curl/curl.h
test libcmocka-dev /usr/include/cmocka.h
test python3 python3
test bubblewrap bwrap
test python3-seccomp /usr/share/doc/python3-seccomp
test firejail firejail
test bats bats
test clang clang
test libclang-rt-dev /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.a,/usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.asan.a
test clang-format-14,clang-format clang-format-14,clang-format
test clang-tidy clang-tidy
test shellcheck shellcheck
test debhelper dh
test dpkg-dev dpkg-buildpackage
test lintian lintian
test binutils nm
test gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc
test libc6-dev-arm64-cross /usr/aarch64-linux-gnu/include/stdio.h
test qemu-user qemu-aarch64
test git git
test e2fsprogs mkfs.ext4
test btrfs-progs mkfs.btrfs
test attr setfattr
test acl setfacl
test xfsprogs mkfs.xfs
test btrfs-progs mkfs.btrfs
test nodejs node
test npm npm
test make make
test g++ g++
test gdb gdb
test strace strace
test tmux tmux
test socat socat
test ripgrep rg
test direnv direnv
test universal-ctags ctags
test global gtags
test mercurial hg
test zsh zsh
test fish fish
test curl curl
test wget wget
test sqlite3 sqlite3
test gnupg gpg
test openssl openssl
test python3-pytest pytest-3
test perl perl
test default-jdk-headless javac
test openssh-client ssh-keygen
test openssh-server sshd
test postgresql pg_lsclusters
test golang-go go
test cargo /usr/bin/cargo
test cmake cmake
test ruby ruby
test python3-requests /usr/lib/python3/dist-packages/requests
test python3-grpcio /usr/lib/python3/dist-packages/grpc
test nghttp2-client nghttp
test rsync rsync
test zip zip
test unzip unzip
test xz-utils xz
test zstd zstd
test less less
test vim-tiny vi
test sudo sudo
test procps ps
test util-linux setpriv
test util-linux-extra pivot_root
test iproute2 ip
test tinyproxy tinyproxy
test squid squid
test microsocks microsocks
test inotify-tools inotifywait
test qemu-system-x86 qemu-system-x86_64
test busybox-static busybox
test docker.io dockerd
test docker-cli,docker.io docker
test podman podman
test runc runc
test uidmap newuidmap
test dpkg dpkg-deb
test mmdebstrap mmdebstrap
test dbus-daemon dbus-daemon
test dbus-system-bus-common,dbus /usr/share/dbus-1/system.conf
END
}

present() { # proofs
    for one in $(echo "$1" | tr , ' '); do
        case $one in
        /*) [ -e "$one" ] && return 0 ;;
        *) if command -v "$one" >/dev/null 2>&1 || [ -x "/usr/sbin/$one" ] || [ -x "/sbin/$one" ]; then return 0; fi ;;
        esac
    done
    return 1
}

# Can apt install it, as far as its lists say? Names that are only asked for by others are not in them.
exists() {
    [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]
}

# Of several names the one to install. Without lists nothing is known: the name that is in every Debian, the last.
choose() {
    for one in $(echo "$1" | tr , ' '); do
        case $1 in *,*) ! exists "$one" || break ;; esac
    done
    echo "$one"
}

wanted() { # section, sections
    for one in $2; do [ "$1" != "$one" ] || return 0; done
    return 1
}

# Prints the packages of the sections given that are not there.
missing() {
    table | while read -r section package proof; do
        if { wanted "$section" "$*" || wanted "$package" "$*"; } && ! present "$proof"; then choose "$package"; fi
    done | awk '!seen[$0]++'
}

words() {
    tr '\n' ' ' | sed 's/ *$//'
}

get() { # packages
    # A machine for continuous integration is not there any more after its power failed.
    if [ "${CI-}" = true ]; then set -- -o Dpkg::Options::=--force-unsafe-io "$@"; fi
    apt-get install -y -q --no-install-recommends "$@"
}

install() { # sections
    want=
    lost=
    [ "${PINFOLD_APT_UPDATED-}" = 1 ] || apt-get update -q || echo "packages.sh: apt's lists could not be renewed; going on with those that are there" >&2
    all=$(missing "$@") # anew: names depend on the lists
    # shellcheck disable=SC2086 # a list of words
    known=$(apt-cache madison $all 2>/dev/null | awk '{ printf " %s ", $1 }')
    for package in $all; do
        case $known in *" $package "*) want="$want $package" ;; *) lost="$lost $package" ;; esac
    done
    [ -z "$lost" ] || echo "packages.sh: this system has no package$lost" >&2
    # shellcheck disable=SC2086 # a list of words
    if [ -n "$want" ] && ! get $want; then
        # One of them cannot be installed here: each by itself, so that the others are.
        for package in $want; do
            get "$package" || echo "packages.sh: $package could not be installed" >&2
        done
    fi
    left=$(missing build | words)
    if [ -n "$left" ] && wanted build "$*"; then
        echo "packages.sh: needed to build, and not installed: $left" >&2
        return 1
    fi
}

case ${1-} in
list)
    shift
    [ $# -gt 0 ] || set -- build
    table | while read -r section package _; do if wanted "$section" "$*" || wanted "$package" "$*"; then choose "$package"; fi; done
    ;;
missing)
    shift
    missing "$@"
    ;;
by-hand) # packages: the command with which an ordinary user has them installed; without lists apt knows no package
    shift
    if command -v sudo >/dev/null 2>&1; then become="sudo "; else become=; fi
    line="${become}apt-get install -y $*"
    exists "$1" || line="${become}apt-get update && $line"
    if [ -n "$become" ]; then echo "$line"; else echo "su -c '$line'"; fi
    ;;
install)
    shift
    want=$(missing "$@" | words)
    [ -n "$want" ] || exit 0
    if [ "$(id -u)" != 0 ]; then
        echo "packages.sh: only root can install what is missing: $want" >&2
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
    install "$@"
    ;;
*)
    echo "usage: packages.sh list|missing|by-hand|install build|manual|agents|test ..." >&2
    exit 2
    ;;
esac
