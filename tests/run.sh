#!/bin/bash
# Runs pinfold's tests: ./test [--quick] [SUITE...], all suites without a word. See tests/README.md.
#
# A suite is one program that prints a line per test (tests/lib/tally.py says in which forms); it finds what it needs
# in the environment:
#     PINFOLD            the product, staged where every user can reach it
#     PINFOLD_SOURCE     this tree          PINFOLD_BUILD       build/ (product)
#     PINFOLD_HOST_BUILD build-host/        PINFOLD_SCRATCH     an empty directory of its own, removed afterwards
#     PINFOLD_SHARED     a directory of the whole run, for what several suites need (tests/lib/npm.py)
#     PINFOLD_TEST_USER  an ordinary user that root's suites run things as; empty when not root
#     PINFOLD_MUST_RUN   1: a skip that tests/expected-skips does not name is a failure
# tests/suites is the table of the suites. They run four at a time where the machine has two processors, and beside these one of
# those that mostly wait ("wait"); those that measure ("alone") run last. Each runs once.
#
# PINFOLD_NO_APT=1 installs nothing, PINFOLD_NO_BUILD=1 builds nothing; PINFOLD_TEST_SUITES is another table; PINFOLD_TEST_ROWS are
# regular expressions, for suites that take them.
set -u
cd "$(dirname "$0")/.." || exit 1
exec </dev/null
umask 022
top=$PWD
export LC_ALL=C.UTF-8
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

table=${PINFOLD_TEST_SUITES:-tests/suites}
suites() { # name, budget, lane, when, boxes or none, program
    grep -vE '^(#|$)' "$table"
}

die() {
    echo "test: $*" >&2
    exit 1
}

names=$(suites | awk '{ printf "%s%s", sep, $1; sep = " " }')
chosen=() quick=0
for wanted in "$@"; do
    case $wanted in
    -h | --help)
        echo "usage: ./test [--quick] [SUITE...]   suites: $names"
        exit 0
        ;;
    --quick) quick=1 ;;
    *)
        case " $names " in *" $wanted "*) ;; *) die "there is no suite '$wanted'; there are: $names" ;; esac
        chosen+=("$wanted")
        ;;
    esac
done
is_wanted() { # name, when
    local name
    for name in "${chosen[@]}"; do [ "$name" = "$1" ] && return 0; done
    case $2 in
    both) [ "$quick" = 1 ] || [ "${#chosen[@]}" = 0 ] ;;
    quick) [ "$quick" = 1 ] ;;
    *) [ "$quick" = 0 ] && [ "${#chosen[@]}" = 0 ] ;;
    esac
}

# ---- a place of our own; everything that tests make lies below it or in the build folders
if [ "$(id -u)" = 0 ]; then
    base=/var/lib/pinfold-test
else
    home=${HOME-}
    [ -n "$home" ] || home=$(getent passwd "$(id -u)" | cut -d : -f 6)
    case $home in /*) ;; *) die "user $(id -u) has no home directory; set HOME to a directory that you can write" ;; esac
    export HOME=$home
    base=${home%/}/.pinfold-test
fi
if ! mkdir -p "$base" || ! chmod 755 "$base"; then die "cannot make $base; set HOME to a directory that you can write"; fi
run=$(mktemp -d "$base/run.XXXXXX") || die "cannot make a directory in $base"
chmod 755 "$run"
logs=$run/logs
mkdir "$logs" "$run/stage" "$run/scratch" "$run/shared"
declare -A pids=() # what runs in the background, by its number; each ends with all that it has started
# shellcheck disable=SC2329,SC2317 # called by the trap
tidy() {
    trap '' INT TERM HUP
    if [ "${#pids[@]}" -gt 0 ]; then
        kill "${!pids[@]}" 2>/dev/null
        wait "${!pids[@]}" 2>/dev/null
    fi
    # A suite that was killed may have left mounts, of the whole machine too: nothing may be removed through them.
    awk -v below="$run/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r -d '\n' -n 1 umount -l 2>/dev/null
    if grep -qF " $run/" /proc/self/mountinfo; then
        echo "test: $run stays, something is mounted below it: unmount it, then remove the directory" >&2
        return
    fi
    chmod -R u+rwX "$run" 2>/dev/null
    # What podman stored without root has owners that are ours in its namespace only.
    rm -rf "$run" 2>/dev/null || podman unshare rm -rf "$run" 2>/dev/null || rm -rf "$run"
    rmdir "$base" 2>/dev/null
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

started=$SECONDS
# Hundredths of a second that the machine's processors have worked, and have had, since it was switched on: proc_stat(5).
processors() { awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all - $5 - $6, all; exit }' /proc/stat; }
read -r worked_before had_before < <(processors)
fail_log() { # what, log
    echo "test: $1 failed; the last lines of its log:" >&2
    tail -n 40 "$2" | sed 's/^/  | /' >&2
    echo
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

# ---- whatever runs in the background: ended whole when this is ended
under() { # seconds, program...
    local child=
    trap '[ -z "$child" ] || { kill "$child"; wait "$child"; }; exit 143' TERM
    python3 tests/lib/suite.py "$@" &
    child=$!
    wait "$child"
}

# Most tests start boxes of an ordinary user, by programs in many places, which no profile names.
if [ "$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null)" = 1 ]; then
    die "AppArmor lets no ordinary user's program create user namespaces on this machine, and most tests need them; allow it while they run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (and 1 when they have run)"
fi

# ---- packages and user
if [ "$(id -u)" = 0 ]; then
    if [ "${PINFOLD_NO_APT-}" != 1 ]; then
        # What the builds need, and g++, which may ask for another gcc; the rest beside them.
        first=$(scripts/packages.sh missing build manual agents libcmocka-dev g++)
        scripts/packages.sh install build manual agents libcmocka-dev g++ >"$logs/packages" 2>&1 || fail_log "installing packages" "$logs/packages"
        PINFOLD_APT_UPDATED=${first:+1} under 3600 scripts/packages.sh install test >"$logs/packages-test" 2>&1 &
        pids[$!]=packages
    fi
    PINFOLD_TEST_USER=pinfold-test
    id "$PINFOLD_TEST_USER" >/dev/null 2>&1 || useradd -m -s /bin/bash "$PINFOLD_TEST_USER" || die "cannot make the user pinfold-test"
else
    needed=$({ scripts/packages.sh missing build && { command -v python3 >/dev/null || echo python3; }; } | tr '\n' ' ')
    # shellcheck disable=SC2086 # a list of words
    [ -z "$needed" ] || die "packages are missing without which nothing can be built and no test can run; run this once, then again ./test: $(scripts/packages.sh by-hand $needed)"
    absent=$(scripts/packages.sh missing manual agents test | tr '\n' ' ')
    [ -z "$absent" ] || echo "note: not installed, only root can (tests that need them are skipped): $absent"
    PINFOLD_TEST_USER=
fi
PATH=$PATH:/usr/sbin:/sbin
# The distribution's python3: the modules that the tests need are packages of it, and another one (pyenv's, with what pip has given it) takes five to ten times as
# long to start, some thousand times in a run. The directories of others come last.
if [ -x /usr/bin/python3 ]; then
    first='' last=''
    while read -r -d : entry; do
        case $entry in
        /usr/bin | /bin) first+=$entry: ;;
        *) if [ -e "${entry:-.}/python3" ]; then last+=$entry:; else first+=$entry:; fi ;;
        esac
    done <<<"$PATH:"
    PATH=$first$last
    PATH=${PATH%:}
fi
export PATH PINFOLD_TEST_USER

# ---- builds: product and tests at the same time
if [ -w . ] && [ "${PINFOLD_NO_BUILD-}" != 1 ]; then
    for what in host product; do
        under 3600 scripts/build.sh "$what" >"$logs/build-$what" 2>&1 &
        pids[$!]=$what
    done
    for pid in "${!pids[@]}"; do
        [ "${pids[$pid]}" != packages ] || continue
        wait "$pid" || fail_log "building (scripts/build.sh ${pids[$pid]})" "$logs/build-${pids[$pid]}"
        unset "pids[$pid]"
    done
fi
for pid in "${!pids[@]}"; do # of root's packages
    wait "$pid" || fail_log "installing packages" "$logs/packages-test"
    unset "pids[$pid]"
    absent=$(scripts/packages.sh missing manual agents test | tr '\n' ' ')
    [ -z "$absent" ] || echo "note: could not be installed (tests that need them are skipped): $absent"
done
product=$(find build -maxdepth 3 -name pinfold -type f -perm -100 2>/dev/null | head -n 1)
[ -n "$product" ] || die "'$top' is not built, and not writable for you; build it as its owner, then again what you did: $top/scripts/build.sh host product"
cp "$product" "$run/stage/pinfold" || die "cannot copy $product"
find build -maxdepth 3 \( -name pinfold-init -o -name pinfold-bwrap -o -name pinfold-sqlite -o -name pinfold-login \) -type f -perm -100 -exec cp {} "$run/stage/" \;
chmod 755 "$run"/stage/*
echo "built in $((SECONDS - started)) s; $(uname -m), Linux $(uname -r), $(nproc) processors, uid $(id -u)"

export PINFOLD=$run/stage/pinfold PINFOLD_SHARED=$run/shared PINFOLD_SOURCE=$top PINFOLD_BUILD=$top/build PINFOLD_HOST_BUILD=$top/build-host
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
        PINFOLD_SCRATCH=$run/scratch/$name under "$limit" "$@" </dev/null >"$logs/$name" 2>&1
        echo $? >"$logs/$name.status"
    fi
    times >"$logs/$name.cpu" # of this subshell, then of what it waited for
    python3 tests/lib/tally.py "$name" "$logs/$name.status" "$logs/$name.counts" <"$logs/$name" >"$logs/$name.lines"
    echo $((SECONDS - began)) >"$logs/$name.time"
}

report() { # name, budget: prints what a finished suite said
    local ok failed skipped seconds cpu note=
    cat "$logs/$1.lines"
    grep -E '^(FAIL|       \|)' "$logs/$1.lines" >>"$logs/all-failures" # each test with its details
    if ! read -r ok failed skipped <"$logs/$1.counts"; then
        ok=0 failed=1 skipped=0
        echo "FAIL $1/whole-suite  could not be counted" | tee -a "$logs/all-failures"
    fi
    read -r seconds <"$logs/$1.time"
    cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$logs/$1.cpu")
    [ "$seconds" -le "$2" ] || note=", over its budget"
    printf '==== %s: %d passed, %d failed, %d skipped in %d s (%d s of processor; budget %d s)%s\n' "$1" "$ok" "$failed" "$skipped" "$seconds" "$cpu" "$2" "$note"
    passed_all=$((passed_all + ok)) failed_all=$((failed_all + failed)) skipped_all=$((skipped_all + skipped))
}

passed_all=0 failed_all=0 skipped_all=0
limit=1500 # seconds until a suite that hangs is ended
lanes=$(($(nproc) + 2)) # most suites wait for something half of their time
[ "$lanes" -gt 4 ] && lanes=4

declare -A running=([pair]=0 [wait]=0 [alone]=0)
reap_one() {
    local pid name budget where
    wait -n "${!pids[@]}"
    for pid in "${!pids[@]}"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            read -r name budget where <<<"${pids[$pid]}"
            unset "pids[$pid]"
            running[$where]=$((running[$where] - 1))
            report "$name" "$budget"
        fi
    done
}

# Starts the next suites of a lane as long as it has room; what is left of them stays in `queue`.
declare -A queue=()
start_some() { # lane, how many at a time
    local line name budget program
    while [ -n "${queue[$1]-}" ] && [ "${running[$1]}" -lt "$2" ]; do
        line=${queue[$1]%%$'\n'*}
        queue[$1]=${queue[$1]#*$'\n'}
        read -r name budget _ _ _ program <<<"$line"
        # shellcheck disable=SC2086 # a program and its words
        run_suite "$name" $program ${PINFOLD_TEST_ROWS-} &
        pids[$!]="$name $budget $1"
        running[$1]=$((running[$1] + 1))
    done
}

while read -r line; do
    read -r name _ where when _ <<<"$line"
    [ -n "${running[$where]-}" ] || die "$table: suite '$name': '$where' is no lane"
    if is_wanted "$name" "$when"; then queue[$where]+=$line$'\n'; fi
done < <(suites)
while
    start_some pair "$lanes"
    start_some wait 1
    [ "${#pids[@]}" -gt 0 ] || start_some alone 1
    [ "${#pids[@]}" -gt 0 ]
do reap_one; done

read -r worked had < <(processors)
had=$((had - had_before))
echo "all in $((SECONDS - started)) s; of the processors $((had > 0 ? 100 * (worked - worked_before) / had : 0)) % were used"
if [ "$failed_all" != 0 ]; then
    echo
    echo "==== what failed, again:"
    head -n 400 "$logs/all-failures"
fi
echo
echo "$passed_all passed, $failed_all failed, $skipped_all skipped"
[ "$failed_all" = 0 ]
