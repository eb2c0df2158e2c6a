#!/bin/sh
# Builds pinfold: scripts/build.sh [product] [host] [asan] [faults]
#     product  build/        static, with musl: what is installed
#     host     build-host/   the system's C library: unit tests and test programs; an object for each source (see -Dseparate)
#     asan     build-asan/   unit, golden and fuzz tests with AddressSanitizer and UndefinedBehaviorSanitizer
#     faults   build-faults/ the program and its tests where every kernel call can be made to fail; with clang if there is one
# Without a word: the product. A folder that exists is brought up to date. PINFOLD_WERROR=1 makes warnings errors, from then on.
set -eu
cd "$(dirname "$0")/.."

cmocka() {
    [ -e /usr/include/cmocka.h ] || [ -e /usr/local/include/cmocka.h ]
}

setup() { # folder, meson options ...
    folder=$1
    shift
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

for what in "${@:-product}"; do
    case $what in
    product) CC=musl-gcc setup build && ninja -C build ;;
    host) setup build-host -Dtests=true && ninja -C build-host ;;
    asan)
        setup build-asan -Dtests=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
        # shellcheck disable=SC2046 # a list of words
        ninja -C build-asan $(scripts/targets.py build-asan unit golden fuzz)
        ;;
    faults)
        # With clang where it is there: one of the builds that are tested is.
        if [ -z "${CC-}" ] && command -v clang >/dev/null; then
            CC=clang setup build-faults -Dtests=true -Dfaults=true
        else
            setup build-faults -Dtests=true -Dfaults=true
        fi
        # shellcheck disable=SC2046 # a list of words
        ninja -C build-faults pinfold pinfold-init $(scripts/targets.py build-faults fault)
        ;;
    *)
        echo "build.sh: there is no build '$what' (product, host, asan, faults)" >&2
        exit 2
        ;;
    esac
done
