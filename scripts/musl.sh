# Read by sh: musl_environment, before meson sets up a build with musl-gcc, drops what the environment has for the system's compiler alone:
#     LD_PRELOAD            made for another C library: no program that musl-gcc makes runs with it, which meson tries first
#     CC_LD, -fuse-ld=...   the linker for that compiler: lld does for clang, but links nothing that gcc has made with -flto
#     -fexceptions          in the CFLAGS of Arch and Fedora: to unwind asks for functions that only glibc has, and C has no exceptions
# shellcheck shell=sh
without() { # words
    printf '%s\n' "$1" | sed -E 's/(^| )-f(exceptions|use-ld=[^ ]*)//g'
}
musl_environment() {
    unset LD_PRELOAD CC_LD
    if [ -n "${CFLAGS-}" ]; then CFLAGS=$(without "$CFLAGS"); fi
    if [ -n "${LDFLAGS-}" ]; then LDFLAGS=$(without "$LDFLAGS"); fi
}
