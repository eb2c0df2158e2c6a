#!/bin/bash
# Runs pinfold's tests: ./test [SUITE...], all suites without a word. See tests/README.md.
#
# A suite is one program that prints a line per test (tests/lib/tally.py says in which forms); it finds what it needs
# in the environment:
#     PINFOLD            the product, staged where every user can reach it
#     PINFOLD_SOURCE     this tree          PINFOLD_BUILD       build/ (product)
#     PINFOLD_HOST_BUILD build-host/        PINFOLD_SCRATCH     an empty directory of its own, removed afterwards
#     PINFOLD_TEST_USER  an ordinary user that root's suites run things as; empty when not root
#     PINFOLD_MUST_RUN   1: a skip that tests/expected-skips does not name is a failure
# Suites run three at a time where the machine has two processors, but for those that measure ("alone"); the long ones begin.
#
# A suite of those marked "twice" runs other people's programs and servers, or waits for them. When no more than three of its
# tests fail it runs once more, after all others and alone, and that counts; what failed the first time is printed, and named
# again at the end. The others, whose every failure is a fault or a hole, have one try.
set -u
cd "$(dirname "$0")/.." || exit 1
exec </dev/null
umask 022
top=$PWD
export LC_ALL=C.UTF-8
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

#  suite        budget  lane     tries    program
suites() {
    cat <<'END'
lint         240      pair     once     tests/lint/run
mcp          240      pair     twice    tests/mcp/run
distro       240      pair     once     tests/distro/run --quick trixie
races        240      pair     twice    tests/races/run
docker       240      pair     twice    tests/docker/run
guard        150      pair     once     tests/unit/run.py guard build-host
conformance  240      pair     twice    tests/conformance/run --engine native --engine bwrap --engine firejail
sanitizers   180      pair     twice    tests/sanitizers/run
arm64        180      pair     once     tests/arm64/run
fault        240      pair     once     tests/fault/run
escape       180      pair     once     tests/escape/run
session      200      pair     twice    tests/session/run
egress       200      pair     twice    tests/egress/run
guests       240      pair     twice    tests/limits/guests
vm           240      pair     twice    tests/vm/run
vm-session   150      pair     twice    tests/vm/sessions
work         240      pair     twice    tests/work/run
paths        150      pair     once     tests/paths/run
unit         60       pair     once     tests/unit/run.py unit build-host
golden       60       pair     once     tests/unit/run.py golden build-host
fuzz-replay  60       pair     once     tests/unit/run.py fuzz build-host
lib          60       pair     twice    tests/unit/run.py lib build-host
box          90       pair     twice    tests/unit/run.py box build-host
reach        120      pair     twice    tests/egress/reach
engine       90       pair     twice    tests/unit/run.py engine build-host
engines      120      pair     twice    tests/engines/run
files        120      pair     twice    tests/files/run
bad          90       pair     twice    tests/bad/run
completion   60       pair     twice    tests/completion/run
names        120      pair     twice    tests/names/run
landlock     90       pair     once     tests/landlock/run
limits       120      alone    twice    tests/limits/run
END
}

die() {
    echo "test: $*" >&2
    exit 1
}

names=$(suites | awk '{ printf "%s%s", sep, $1; sep = " " }')
for wanted in "$@"; do
    case $wanted in
    -h | --help)
        echo "usage: ./test [SUITE...]   suites: $names"
        exit 0
        ;;
    esac
    case " $names " in *" $wanted "*) ;; *) die "there is no suite '$wanted'; there are: $names" ;; esac
done
is_wanted() {
    [ "${#chosen[@]}" = 0 ] && return 0
    local name
    for name in "${chosen[@]}"; do [ "$name" = "$1" ] && return 0; done
    return 1
}
chosen=("$@")

# ---- a place of our own; everything that tests make lies below it or in the build folders
if [ "$(id -u)" = 0 ]; then
    base=/var/lib/pinfold-test
else
    base=$HOME/.pinfold-test
fi
if ! mkdir -p "$base" || ! chmod 755 "$base"; then die "cannot make $base"; fi
run=$(mktemp -d "$base/run.XXXXXX") || die "cannot make a directory in $base"
chmod 755 "$run"
logs=$run/logs
mkdir "$logs" "$run/stage" "$run/scratch"
pids=()
# shellcheck disable=SC2329,SC2317 # called by the trap
tidy() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    chmod -R u+rwX "$run" 2>/dev/null
    # What podman stored without root has owners that are ours in its namespace only.
    rm -rf "$run" 2>/dev/null || podman unshare rm -rf "$run" 2>/dev/null || rm -rf "$run"
    rmdir "$base" 2>/dev/null
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP

started=$SECONDS
fail_log() { # what, log
    echo "test: $1 failed; the last lines of its log:" >&2
    tail -n 40 "$2" | sed 's/^/  | /' >&2
    echo
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

# ---- packages and user
if [ "$(id -u)" = 0 ]; then
    if [ "${PINFOLD_NO_APT-}" != 1 ]; then
        scripts/packages.sh install build manual test >"$logs/packages" 2>&1 || fail_log "installing packages" "$logs/packages"
        absent=$(scripts/packages.sh missing manual test | tr '\n' ' ')
        [ -z "$absent" ] || echo "note: could not be installed (tests that need them are skipped): $absent"
    fi
    PINFOLD_TEST_USER=pinfold-test
    id "$PINFOLD_TEST_USER" >/dev/null 2>&1 || useradd -m -s /bin/bash "$PINFOLD_TEST_USER" || die "cannot make the user pinfold-test"
else
    absent=$(scripts/packages.sh missing build manual test | tr '\n' ' ')
    [ -z "$absent" ] || echo "note: not installed, only root can (tests that need them are skipped): $absent"
    PINFOLD_TEST_USER=
fi
PATH=$PATH:/usr/sbin:/sbin
# A python3 that is a script (pyenv's) takes five times as long to start as the one that it runs.
python=$(python3 -c 'import sys; print(sys.executable)') && [ -x "$python" ] && PATH=${python%/*}:$PATH
export PATH PINFOLD_TEST_USER

# ---- builds: product and tests at the same time
build() {
    scripts/build.sh "$1" >"$logs/build-$1" 2>&1
}
if [ -w . ]; then
    build host &
    host_pid=$!
    build product || fail_log "building the product" "$logs/build-product"
    wait "$host_pid" || fail_log "building the tests" "$logs/build-host"
fi
product=$(find build -maxdepth 3 -name pinfold -type f -perm -100 2>/dev/null | head -n 1)
[ -n "$product" ] || die "there is no build/pinfold"
cp "$product" "$run/stage/pinfold" || die "cannot copy $product"
find build -maxdepth 3 -name pinfold-init -type f -perm -100 -exec cp {} "$run/stage/" \;
chmod 755 "$run"/stage/*
echo "built in $((SECONDS - started)) s; $(uname -m), Linux $(uname -r), $(nproc) processors, uid $(id -u)"

export PINFOLD=$run/stage/pinfold PINFOLD_SOURCE=$top PINFOLD_BUILD=$top/build PINFOLD_HOST_BUILD=$top/build-host
export PYTHONPATH=$top/tests/lib PYTHONDONTWRITEBYTECODE=1

# ---- one suite: its output to a file, its lines through tally.py
run_suite() { # name, program...
    local name=$1 began=$SECONDS
    shift
    mkdir "$run/scratch/$name"
    chmod 755 "$run/scratch/$name"
    if [ ! -x "$1" ]; then
        echo "FAIL whole-suite: $1 is not there" >"$logs/$name"
        echo 1 >"$logs/$name.status"
    else
        PINFOLD_SCRATCH=$run/scratch/$name timeout -k 20 "$limit" "$@" </dev/null >"$logs/$name" 2>&1
        echo $? >"$logs/$name.status"
    fi
    times >"$logs/$name.cpu" # of this subshell, then of what it waited for
    python3 tests/lib/tally.py "$name" "$logs/$name.status" "$logs/$name.counts" <"$logs/$name" >"$logs/$name.lines"
    echo $((SECONDS - began)) >"$logs/$name.time"
}

report() { # name, budget, tries: prints what a finished suite said
    local ok failed skipped seconds cpu note=
    cat "$logs/$1.lines"
    if ! read -r ok failed skipped <"$logs/$1.counts"; then
        ok=0 failed=1 skipped=0
        echo "FAIL $1/whole-suite  could not be counted"
    fi
    read -r seconds <"$logs/$1.time"
    cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$logs/$1.cpu")
    [ "$seconds" -le "$2" ] || note=" OVER ITS BUDGET"
    if [ "$3" = twice ] && [ "$failed" -gt 0 ] && [ "$failed" -le 3 ] && [ "${#again[@]}" -lt 2 ]; then
        again+=("$1")
        note+=", RUNS AGAIN"
        ok=0 failed=0 skipped=0
    fi
    printf '==== %s: %d passed, %d failed, %d skipped in %d s (%d s of processor; budget %d s)%s\n' "$1" "$ok" "$failed" "$skipped" "$seconds" "$cpu" "$2" "$note"
    passed_all=$((passed_all + ok)) failed_all=$((failed_all + failed)) skipped_all=$((skipped_all + skipped))
}

passed_all=0 failed_all=0 skipped_all=0
again=()  # suites that have another try
limit=900 # seconds until a suite that hangs is ended
lanes=$(($(nproc) + 1)) # most suites wait for something half of their time
[ "$lanes" -gt 3 ] && lanes=3
declare -A running=()

reap_one() {
    local pid name budget tries
    wait -n "${!running[@]}"
    for pid in "${!running[@]}"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            read -r name budget tries <<<"${running[$pid]}"
            unset "running[$pid]"
            report "$name" "$budget" "$tries"
        fi
    done
}

for lane in pair alone; do
    slots=$lanes
    [ "$lane" = alone ] && slots=1
    while read -r name budget where tries program; do
        if [ "$where" != "$lane" ] || ! is_wanted "$name"; then continue; fi
        while [ "${#running[@]}" -ge "$slots" ]; do reap_one; done
        # shellcheck disable=SC2086 # a program and its words
        run_suite "$name" $program &
        running[$!]="$name $budget $tries"
        pids+=("$!")
    done < <(suites)
    while [ "${#running[@]}" -gt 0 ]; do reap_one; done
done
pids=()

# ---- the second tries
for name in "${again[@]}"; do
    read -r _ budget _ _ program < <(suites | grep "^$name ")
    grep '^FAIL' "$logs/$name.lines" >"$logs/$name.first"
    mv "$run/scratch/$name" "$run/scratch/$name.first"
    # shellcheck disable=SC2086 # a program and its words
    run_suite "$name" $program &
    pids+=("$!")
    wait "$!"
    report "$name" "$budget" once
    while read -r _ test _; do
        if ! awk -v test="$test" '$1 == "FAIL" && $2 == test { found = 1 } END { exit !found }' "$logs/$name.lines"; then
            echo "note: $test failed at first and passed when its suite ran alone: a race, of pinfold or of the test"
        fi
    done <"$logs/$name.first"
done
pids=()

echo "all in $((SECONDS - started)) s"
echo
echo "$passed_all passed, $failed_all failed, $skipped_all skipped"
[ "$failed_all" = 0 ]
