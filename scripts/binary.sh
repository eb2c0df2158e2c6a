#!/bin/sh
# Makes pinfold-VERSION-linux-MACHINE.tar.gz, for machines on which pinfold cannot be built: scripts/binary.sh [DIRECTORY]
# The build needs Debian or Ubuntu (scripts/packages.sh): static libraries, and musl beside the system's C library. What starts boxes is
# static, and runs on any Linux. pinfold-login and pinfold-sqlite need the C library, libcurl and libsqlite3 of about this system or
# newer: `pinfold doctor` says whether they start. Unpack it with --strip-components=1 into a prefix, e.g. /usr/local or ~/.local.
# As root it installs the packages that it needs. DIRECTORY: release/ without a word. The bytes depend on the commit and the compiler.
set -eu
if [ $# -gt 1 ]; then
    echo "usage: scripts/binary.sh [DIRECTORY]" >&2
    exit 2
fi
to=${1-release}
case $to in
/*) ;;
*) to=$PWD/$to ;;
esac
cd "$(dirname "$0")/.."
version=$(sed -n "s/^project(.*, version: '\([^']*\)'.*/\1/p" meson.build)
name=pinfold-$version-linux-$(uname -m)

# shellcheck disable=SC2046 # a list of words
if [ -n "$(scripts/packages.sh missing build manual agents)" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "binary.sh: packages are missing; run this once, then again what you did: $(scripts/packages.sh by-hand $(scripts/packages.sh missing build manual agents))" >&2
        exit 1
    fi
    scripts/packages.sh install build manual agents >&2
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR=$stage scripts/install.sh --prefix /usr/local >&2
tree=$stage/usr/local
rm -rf "${tree:?}/lib" "${tree:?}/lib64" "${tree:?}/include" # libpinfold is of this system's C library
mkdir -p "$tree/share/doc/pinfold"
cp LICENSE README.md CHANGELOG.md "$tree/share/doc/pinfold/"
when=$(git log -1 --format=%ct 2>/dev/null) || when=$(stat -c %Y CHANGELOG.md)
tar -C "$tree" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=u,go-w --mtime="@$when" --transform="s,^\./,$name/,;s,^\.$,$name," -cf "$stage/tar" .
gzip -9n <"$stage/tar" >"$stage/gz"
# shellcheck source=scripts/owner.sh
. scripts/owner.sh
case $to/ in "$PWD"/*) ;; *) owner= ;; esac
as_owner mkdir -p "$to"
# shellcheck disable=SC2016 # for the shell inside
as_owner sh -c 'cat >"$1.new" && mv "$1.new" "$1"' sh "$to/$name.tar.gz" <"$stage/gz"
echo "made $to/$name.tar.gz; where it is to be used:"
echo "    sudo tar -xzf $name.tar.gz --strip-components=1 -C /usr/local && pinfold doctor"
