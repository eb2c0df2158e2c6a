#!/bin/sh
# Builds pinfold: scripts/build.sh [product] [host] [asan] [faults]
#     product  build/        static, with musl: what is installed
#     host     build-host/   the system's C library: unit tests and test programs
#     asan     build-asan/   the same with AddressSanitizer and UndefinedBehaviorSanitizer
#     faults   build-faults/ the same where every kernel call can be made to fail
# Without a word: the product. A folder that exists is brought up to date.
set -eu
cd "$(dirname "$0")/.."

setup() { # folder, meson options ...
    folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then return 0; fi
    rm -rf "$folder"
    meson setup "$folder" "$@"
}

for what in "${@:-product}"; do
    case $what in
    product) CC=musl-gcc setup build && ninja -C build ;;
    host) setup build-host -Dtests=true && ninja -C build-host ;;
    asan)
        setup build-asan -Dtests=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
        ninja -C build-asan
        ;;
    faults) setup build-faults -Dtests=true -Dfaults=true && ninja -C build-faults ;;
    *)
        echo "build.sh: there is no build '$what' (product, host, asan, faults)" >&2
        exit 2
        ;;
    esac
done
