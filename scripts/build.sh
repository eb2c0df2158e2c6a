#!/bin/sh
# Builds pinfold: scripts/build.sh [product] [host] [asan] [faults]
#     product  build/        static, with musl: what is installed; and pinfold-sqlite and pinfold-login, which build-library/ makes with the system's C library
#     host     build-host/   the system's C library: unit tests and test programs; an object for each source (see -Dseparate)
#     asan     build-asan/   unit, golden and fuzz tests with AddressSanitizer and UndefinedBehaviorSanitizer; with clang if it has them
#     faults   build-faults/ the program and its tests where every kernel call can be made to fail; with clang if there is one
# With CI=true what is built for tests has only lines for a debugger, and host is not optimized: compiling takes half the time, and the product and
# arm64's tests are optimized.
# Without a word: the product. A folder that exists is brought up to date. PINFOLD_WERROR=1 makes warnings errors, from then on.
# As root, another user's tree is built as that user. Of two that build the same in one tree the second waits.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/owner.sh
. scripts/owner.sh
# shellcheck source=scripts/upgraded.sh
. scripts/upgraded.sh
# shellcheck source=scripts/locked.sh
. scripts/locked.sh
# shellcheck source=scripts/musl.sh
. scripts/musl.sh
if [ -n "$owner" ]; then
    as_owner scripts/build.sh "$@"
    exit
fi

# With what a debugger shows besides lines it takes longer to compile and to link.
if [ "${CI-}" = true ]; then quick='-Dc_args=-g1'; else quick=; fi

# meson puts ccache before the system's compiler if it is there. A cache that belongs to somebody else must not end the build.
if command -v ccache >/dev/null; then
    place=$(ccache -k temporary_dir 2>/dev/null) || place=
    if [ -n "$place" ] && ! { mkdir -p "$place" && [ -w "$place" ]; } 2>/dev/null; then
        CCACHE_DISABLE=1
        export CCACHE_DISABLE
    fi
fi

cmocka() {
    [ -e /usr/include/cmocka.h ] || [ -e /usr/local/include/cmocka.h ]
}

setup() { # folder, meson options ...
    folder=$1
    shift
    if [ -e "$folder" ] && [ ! -w "$folder" ]; then
        echo "build.sh: error: '$PWD/$folder' was built by $(stat -c %U "$folder"), and is not writable for $(id -un 2>/dev/null || id -u); remove it: sudo rm -r '$PWD/$folder'" >&2
        exit 1
    fi
    if upgraded "$folder"; then rm -rf "$folder"; fi
    if [ -f "$folder/build.ninja" ]; then
        if [ "${PINFOLD_WERROR-}" = 1 ] && [ ! -e "$folder/.werror" ]; then
            meson configure "$folder" -Dwerror=true
            : >"$folder/.werror"
        fi
        # Tests that were left out because cmocka was not there.
        if [ -e "$folder/.without-cmocka" ] && cmocka; then
            rm "$folder/.without-cmocka"
            meson setup --reconfigure "$folder"
        fi
        return 0
    fi
    rm -rf "$folder"
    if [ "${PINFOLD_WERROR-}" = 1 ]; then set -- "$@" -Dwerror=true; fi
    meson setup "$folder" "$@"
    if [ "${PINFOLD_WERROR-}" = 1 ]; then : >"$folder/.werror"; fi
    cmocka || : >"$folder/.without-cmocka"
}

sanitizes() { # compiler: are its sanitizers' libraries there?
    command -v "$1" >/dev/null || return 1
    tried=$(mktemp)
    if echo 'int main(void) { return 0; }' | "$1" -x c -fsanitize=address,undefined -o "$tried" - 2>/dev/null; then found=0; else found=1; fi
    rm -f "$tried"
    return "$found"
}

has_curl() {
    [ -e /usr/include/curl/curl.h ] || [ -e "/usr/include/$(uname -m)-linux-gnu/curl/curl.h" ]
}

# A program that is no musl program. Without its library there is none, and pinfold says so where it needs it.
helper() { # program, the library's package, what it is for
    if ninja -C build-library -t query "$1" >/dev/null 2>&1; then
        ninja -C build-library "$1"
        cp -f "build-library/$1" "build/$1"
    else
        : >"build-library/.without-$1"
        rm -f "build/$1"
        echo "build.sh: $2 is not installed: $1, which $3, is left out" >&2
    fi
}

helpers() {
    if [ -e build-library/.without-pinfold-sqlite ] && [ -e /usr/include/sqlite3.h ]; then rm -rf build-library; fi
    if [ -e build-library/.without-pinfold-login ] && has_curl; then rm -rf build-library; fi
    setup build-library -Dprograms=disabled
    helper pinfold-sqlite libsqlite3-dev "copies agents' logins"
    helper pinfold-login libcurl4-openssl-dev "renews agents' logins"
}

for what in "${@:-product}"; do
    case $what in product | host | asan | faults) locked "$what" ;; esac
    case $what in
    product)
        (musl_environment && CC=musl-gcc setup build && ninja -C build)
        ln -sf pinfold build/agent-shell # for `hook install` of a program that is not installed
        helpers
        : >build/.built # for ./pinfold: younger than all that was built
        ;;
    host)
        # shellcheck disable=SC2086 # a word or none
        setup build-host -Dtests=true ${quick:+$quick -Doptimization=0}
        # Of what its cache has not, ccache would have the preprocessor's text first, and then compile from the beginning: a third of this build's time.
        # By that text alone it finds nothing here: a debugger's directory is in it.
        CCACHE_DEPEND=1 ninja -C build-host
        ;;
    asan)
        # Clang takes half of gcc's time for it, and gold half of bfd's.
        compiler=${CC-} linker=${CC_LD-bfd}
        if [ -z "$compiler" ] && sanitizes clang; then compiler=clang; fi
        if [ -z "${CC_LD-}" ] && command -v ld.gold >/dev/null; then linker=gold; fi
        # shellcheck disable=SC2086 # a word or none
        CC=${compiler:-cc} CC_LD=$linker setup build-asan -Dtests=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=0 $quick
        ninja -C build-asan build.ninja # in an older directory: targets that are new
        # shellcheck disable=SC2046 # a list of words
        ninja -C build-asan $(scripts/targets.py build-asan unit golden fuzz)
        ;;
    faults)
        # With clang where it is there: one of the builds that are tested is. A start that is not optimized takes half a millisecond longer.
        # Nobody reads lines of it: without them clang takes a fifth less.
        compiler=${CC-}
        if [ -z "$compiler" ] && command -v clang >/dev/null; then compiler=clang; fi
        # shellcheck disable=SC2086 # a word or none
        CC=${compiler:-cc} setup build-faults -Dtests=true -Dfaults=true -Doptimization=0 ${quick:+-Dc_args=-g0}
        ninja -C build-faults build.ninja
        # shellcheck disable=SC2046 # a list of words
        ninja -C build-faults pinfold pinfold-init $(scripts/targets.py build-faults fault)
        ;;
    *)
        echo "build.sh: there is no build '$what' (product, host, asan, faults)" >&2
        exit 2
        ;;
    esac 9>&-
done
