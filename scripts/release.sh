#!/bin/sh
# Makes a release of what is committed: scripts/release.sh VERSION [DIRECTORY]
# Checks that the tree is clean, that meson.build has this version, that CHANGELOG.md says with a date what is in it, and that what
# libpinfold has from now on is recorded. Puts
# pinfold-VERSION.tar.gz and SHA256SUMS into DIRECTORY (release/ without a word) and prints what is left to do by hand. The tarball
# depends on the commit alone: the same commit gives the same bytes.
set -eu

die() {
    echo "release.sh: $*" >&2
    exit 1
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: scripts/release.sh VERSION [DIRECTORY]" >&2
    exit 2
fi
version=$1
to=${2-release}
case $to in
/*) ;;
*) to=$PWD/$to ;;
esac
cd "$(dirname "$0")/.."

echo "$version" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || die "'$version' is not a version; it has three numbers, as 1.2.3"
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] || die "this tree is not a git repository: a release is made of a commit"
changed=$(git status --porcelain | head -n 5)
[ -z "$changed" ] || die "the tree is not clean; commit or remove first: $(echo "$changed" | cut -c 4- | tr '\n' ' ')"
has=$(sed -n "s/^project(.*, version: '\([^']*\)'.*/\1/p" meson.build)
[ "$has" = "$version" ] || die "meson.build has version '$has', not '$version'; change it in project() and commit"
dated="## $(echo "$version" | sed 's/\./\\./g') - [0-9]{4}-[0-9]{2}-[0-9]{2}"
grep -qxE "$dated" CHANGELOG.md || die "CHANGELOG.md has no heading '## $version - YYYY-MM-DD'; give what is under [Unreleased] this heading and commit"
awk -v heading="^## $version " '/^## / { inside = $0 ~ heading; next } inside && NF { said = 1 } END { exit !said }' CHANGELOG.md ||
    die "CHANGELOG.md says nothing under its heading for $version; list what users notice and commit"
awk '/^## / { inside = $2 == "[Unreleased]"; next } inside && NF { said = 1 } END { exit said }' CHANGELOG.md ||
    die "CHANGELOG.md has entries under [Unreleased]; put them under the heading for $version and commit"
debian=$(sed -n '1s/^pinfold (\([^)-]*\).*/\1/p' debian/changelog)
[ "$debian" = "$version" ] || die "the first entry of debian/changelog is for version '$debian', not '$version'; add one and commit"
[ -r tests/lint/abi-record ] || die "there is no tests/lint/abi-record"
! grep -q '^next ' tests/lint/abi-record || die "tests/lint/abi-record has lines of no release; sed -i 's/^next /$version /' tests/lint/abi-record and commit"
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null && [ "$(git rev-parse "v$version^{commit}")" != "$(git rev-parse HEAD)" ]; then
    die "the tag v$version is another commit than HEAD; take the next version"
fi

mkdir -p "$to"
git archive --format=tar --prefix="pinfold-$version/" HEAD | gzip -9n >"$to/pinfold-$version.tar.gz"
(cd "$to" && sha256sum "pinfold-$version.tar.gz" >SHA256SUMS && cat SHA256SUMS)
cat <<NEXT

Made of commit $(git rev-parse HEAD). What is left to do:
    git tag -s v$version -m 'pinfold $version'
    gpg --armor --detach-sign $to/SHA256SUMS
    git push origin v$version
then publish pinfold-$version.tar.gz, SHA256SUMS and SHA256SUMS.asc with the text of CHANGELOG.md. Programs for other
distributions: scripts/binary.sh on the oldest Debian that is to be supported, for each processor.
NEXT
