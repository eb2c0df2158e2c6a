#!/bin/bash
# Supervision and limits with real boxes of the native engine, as whoever calls: run it as root and as an ordinary user.
#     supervision.sh PINFOLD [NAME...]     all checks, or those named; TAP on stdout, status 1 when one failed
#     supervision.sh PINFOLD measured      those that measure shares of processor time, which nothing else may run beside
#     supervision.sh PINFOLD others        all but those
# Functions are called by name.
# shellcheck disable=SC2317,SC2329,SC2016,SC2094
set -u
pinfold=$(realpath "$1")
shift
only=" $* "
work=$(mktemp -d /var/tmp/supervision.XXXXXX)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state
mkdir "$work/ws"
cd "$work/ws" || exit 2
number=0 failed=0

measured=' cpu_limit_is_kept cpu_limit_under_attack untrusted_works_for_everybody descriptors_nobody_takes '
wanted() { # NAME
    case $only in
    "  ") ;;
    " measured ") [[ $measured == *" $1 "* ]] ;;
    " others ") [[ $measured != *" $1 "* ]] ;;
    *) [[ $only == *" $1 "* ]] ;;
    esac
}

check() { # NAME: its function prints nothing and returns 0, or says what is wrong
    local words
    wanted "$1" || return
    number=$((number + 1))
    words=$("$1" 2>&1)
    local status=$?
    if [ $status = 77 ]; then
        echo "ok $number - $1 # SKIP $words"
    elif [ $status = 0 ] && [ -z "$words" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        while read -r line; do echo "# $line"; done <<<"$words"
        failed=1
    fi
}
box() { "$pinfold" run -q "$@"; }
is() { [ "$1" = "$2" ] || { echo "is '$1', not '$2'"; false; }; }
# The sleepers with this number: every check marks its own.
sleepers() {
    local dir program number
    for dir in /proc/[0-9]*; do
        { read -r -d '' program && read -r -d '' number; } 2>/dev/null <"$dir/cmdline" || continue
        [ "${program##*/} $number" = "sleep $1" ] && echo "${dir##*/}"
    done
}
# An emulated machine takes as long to look as to start half a box.
pause=0.01
[ -z "${PINFOLD_TEST_TRIES_BY-}" ] || pause=0.3
alive() { [ -n "$(sleepers "$1")" ]; }
gone() { # at once; a busy machine gets its time
    for _ in $(seq 6000); do
        alive "$1" || return 0
        sleep "$pause"
    done
    echo "sleep $1 is still alive"
    for pid in $(sleepers "$1"); do kill -9 "$pid"; done
    return 1
}
appears() {
    for _ in $(seq 6000); do
        alive "$1" && return 0
        sleep "$pause"
    done
    echo "sleep $1 never began"
    return 1
}
# A command that has so many bytes in its memory when it writes the first: a shell's variable would take a hundred times as long.
holding() { echo "dd if=/dev/zero bs=$1 count=1 2>/dev/null"; }
mark() { printf '9%07d%d' "$$" "$((number % 10))"; } # of this run: the other user's goes on beside it

exit_statuses() {
    for code in 0 1 2 77 124 126 255; do
        box -- sh -c "exit $code"
        is $? "$code"
    done
    for sig in 1 2 3 6 9 11 13 15 31; do
        (sh -c "ulimit -c 0; kill -$sig \$\$") 2>/dev/null
        outside=$?
        [ "$outside" = $((128 + sig)) ] || continue # some shells ignore some, some services ignore SIGPIPE
        box -- sh -c "ulimit -c 0; kill -$sig \$\$"
        is $? "$outside"
    done
    box -- /no/such/program 2>/dev/null
    is $? 127
    echo x >plain
    box -- ./plain 2>/dev/null
    is $? 126
}

background_processes_end() {
    local m
    m=$(mark)
    box -- sh -c "sleep $m & sleep 0.1"
    gone "$m"
}

daemons_end() { # double fork, own session, everything ignored
    local m
    m=$(mark)
    rm -f up
    box -- sh -c "trap '' HUP INT TERM QUIT; (setsid sh -c 'trap \"\" HUP INT TERM QUIT; echo >up; sleep $m' >/dev/null 2>&1 </dev/null &); until [ -s up ]; do sleep 0.01; done"
    gone "$m"
}

a_killed_pinfold_takes_the_box_along() {
    local m pid
    m=$(mark)
    "$pinfold" run -q -- sh -c "trap '' TERM HUP; setsid sleep $m & sleep $m" &
    pid=$!
    appears "$m" || { kill -9 "$pid"; return; }
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    gone "$m"
}

timeout_ends_everything() {
    local m
    m=$(mark)
    box --timeout 500ms --grace 300ms -- sh -c "trap '' TERM; setsid sleep $m & while :; do sleep 1; done" 2>/dev/null
    is $? 124
    gone "$m"
}

timeout_asks_first() {
    local said
    said=$(box --timeout 3s --grace 30s -- sh -c "trap 'echo tidy; exit 0' TERM; while :; do sleep 0.05; done" 2>/dev/null)
    is $? 124
    is "$said" tidy
}

memory_limit() {
    local said
    said=$(box --memory 64M -- sh -c "echo begun; $(holding 300000000) | sleep 90; echo survived" 2>/dev/null)
    is $? 137
    is "$said" begun
    # pinfold itself is not among what the kernel ends (137 would be its status, too): it says what happened.
    "$pinfold" run --memory 64M -- sh -c "$(holding 300000000) | sleep 90" 2>&1 | grep -q memory || echo "pinfold ended without a word"
    is "$(box --memory 256M -- sh -c "$(holding 10000000) | wc -c")" 10000000
}

memory_limit_says_so_in_json() {
    local json
    json=$(box --memory 64M --json -- sh -c "$(holding 300000000) | sleep 90")
    case $json in
    *'"ended":"limit","limit":"memory"'*) ;;
    *) echo "$json" ;;
    esac
}

process_limit() {
    box --pids 8 -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 90 & done; sleep 90; exit 1' >/dev/null 2>&1
    is $? 137
    box --pids 8 -- sh -c 'sleep 0.1 & sleep 0.1 & wait'
    is $? 0
}

cpu_limit() {
    local said status
    said=$(box --cpus 0.2 --timeout 2s --grace 10ms -- sh -c 'while :; do :; done' 2>&1)
    status=$?
    case $said in
    *limit-cpu*) echo "no cpu controller for this user, and no pauses in its place: $said"; return 1 ;;
    esac
    is "$status" 124
}

# Processor time in thousandths of the wall-clock time.
share() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["usage"]; print(round(1000 * r["cpu_ms"] / r["wall_ms"]))' "$1"; }

# What the machine gives at the moment to one that is not limited, in thousandths, and a lower bound made of it: at most $1. Where much
# else runs, a box gets less than its limit for that reason alone.
least() {
    box --timeout 700ms --grace 10ms --result bare -- sh -c 'while :; do :; done' >/dev/null 2>&1
    local given
    given=$(($(share bare) / 6))
    echo $((given < $1 ? given : $1))
}

cpu_limit_is_kept() {
    local n low
    low=$(least 150)
    box --cpus 0.3 --timeout 3s --grace 10ms --result one -- sh -c 'while :; do :; done' >/dev/null 2>&1
    is $? 124
    n=$(share one)
    if [ "$n" -lt "$low" ] || [ "$n" -gt 450 ]; then echo "least $low, one: $n thousandths"; cat one; return 1; fi
    # Several, and such as end: what they used counts by those that waited for them.
    box --cpus 0.5 --timeout 3s --grace 10ms --result many -- sh -c 'for i in 1 2 3; do (while :; do sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i+1)); done"; done) & done; wait' >/dev/null 2>&1
    is $? 124
    n=$(share many)
    if [ "$n" -lt "$low" ] || [ "$n" -gt 800 ]; then echo "least $low, many: $n thousandths"; cat many; return 1; fi
    # What is stopped inside by somebody else is not continued.
    box --cpus 0.3 --timeout 20s -- sh -c 'sleep 50 & kill -STOP $!; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; grep State /proc/$!/status; kill -KILL $!' >out 2>/dev/null
    is $? 0
    grep -q 'T (stopped)' out || { cat out; return 1; }
    # A session's commands together.
    "$pinfold" session start -q --cpus 0.3 paced >/dev/null || return 1
    "$pinfold" exec paced -- sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; cut -d" " -f14 /proc/$$/stat; cut -d" " -f22 /proc/$$/stat; cut -d" " -f1 /proc/uptime' >out
    is $? 0
    "$pinfold" session stop -q paced >/dev/null
    python3 -c 'import sys; used, born, now = open("out").read().split(); share = int(used) / (100 * float(now) - int(born)); assert int(sys.argv[1]) / 1500 < share < 0.5, share' "$low"
}

# What a hostile command can do about being counted and stopped: children that nobody waits for, a chain of processes of which each lives
# for half a millisecond, and a parent that they let have no processor, and which stops so late.
cpu_limit_under_attack() {
    cat >attack.py <<'P'
import os, signal, sys, time
def burn(ms):
    begin = time.process_time()
    while time.process_time() - begin < ms / 1000:
        pass
begin, (ours, theirs) = time.monotonic(), os.pipe()
used = 0
if sys.argv[1] == "unwaited":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while time.monotonic() - begin < 4:
        if os.fork() == 0:
            burn(20)
            os.write(theirs, b"x")
            os._exit(0)
        os.read(ours, 1)
        used += 20
elif sys.argv[1] == "starved":
    for processor in sorted(os.sched_getaffinity(0)) * 3:
        if os.fork() == 0:
            os.sched_setaffinity(0, [processor])
            while time.monotonic() - begin < 20:
                burn(5)
                os.write(theirs, b"x")
            os._exit(0)
    os.close(theirs)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while time.monotonic() - begin < 20:
        pass
    while more := len(os.read(ours, 65536)):
        used += more * 5
else:
    if os.fork() == 0:
        while time.monotonic() - begin < 4:
            burn(0.5)
            os.write(theirs, b"x")
            if os.fork():
                os._exit(0)
        os._exit(0)
    os.close(theirs)
    while more := len(os.read(ours, 65536)):
        used += more / 2
print(round(used / (time.monotonic() - begin)))
P
    local way n most=450
    for way in unwaited chain starved; do
        n=$(box --cpus 0.2 --timeout 60s -- python3 attack.py "$way" 2>err)
        is $? 0 || cat err
        [ "$way" != starved ] || most=300
        [ "$n" -lt "$most" ] || echo "$way: $n thousandths"
    done
}

# No shell takes the pauses for a Ctrl-Z. Usage: paused_shell TEXT [COMMAND...], which runs the shell.
paused_shell() {
    python3 - "$pinfold" "$@" <<'P' >out 2>&1 || { cat out; return 1; }
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "run", "--cpus", "0.2", "--", *sys.argv[3:], "bash", "--norc", "-i"])
said = b""
def read_until(word, seconds):
    global said
    end = time.time() + seconds
    import select
    while word not in said and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                said += os.read(fd, 4096)
            except OSError:
                break
    return word in said
os.write(fd, sys.argv[2].encode() + b"; echo ov''er=$?\n")
assert read_until(b"over=0", 300), said
os.write(fd, b"exit 7\n")
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 7 and b"topped" not in said and b"ontinued" not in said, (status, said)
P
}

cpu_limit_in_a_terminal() {
    paused_shell "n=0; while [ \$n -lt 300000 ]; do n=\$((n+1)); done; sh -c 'i=0; while [ \$i -lt 300000 ]; do i=\$((i+1)); done'"
}

# The shell waits for a processor when it is to stop, and for a child in wait(2).
cpu_limit_in_a_terminal_of_a_busy_machine() {
    local hogs=() bad=0 i
    for ((i = 0; i < 4 * $(nproc); i++)); do
        python3 -c 'while True: pass' &
        hogs+=($!)
    done
    paused_shell "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sh -c 'i=0; while [ \$i -lt 20000 ]; do i=\$((i+1)); done'; done" nice -n 19 || bad=1
    kill "${hogs[@]}"
    wait "${hogs[@]}" 2>/dev/null
    return "$bad"
}

untrusted_works_for_everybody() {
    local n low
    low=$(least 250)
    box --profile untrusted --timeout 2s --grace 10ms --result result -- sh -c 'while :; do :; done' >/dev/null 2>err
    is $? 124 || { cat err; return 1; }
    n=$(share result)
    if [ "$n" -lt "$low" ] || [ "$n" -gt 750 ]; then echo "least $low: $n thousandths"; return 1; fi
}

output_limit() {
    local n
    n=$(box --output 100K -- yes 2>/dev/null | wc -c)
    is "$n" 102400
    box --output 100K -- sh -c 'yes | head -c 102400' | wc -c >n
    is "$(cat n)" 102400
    box --output 1000 -- yes >/dev/null 2>&1
    is $? 137
}

# On any kernel: a tmpfs with what was there at the start takes the overlay's place only where there can be no overlay.
hidden_names_are_held_by_an_overlay() {
    is "$(box -- grep -c ' /etc .* - overlay ' /proc/self/mountinfo)" 1
}

open_files_limit() {
    box --open-files 20 -- sh -c 'ulimit -n' >n 2>/dev/null || { echo "no such flag"; return 77; }
    is "$(cat n)" 20
}

groups() { find /sys/fs/cgroup -maxdepth 5 -name "pinfold-*" 2>/dev/null | sort; }
groups_before=$(groups)
new_groups() {
    local dir owner
    for dir in $(groups); do
        [[ $'\n'$groups_before$'\n' == *$'\n'$dir$'\n'* ]] && continue
        owner=${dir##*/pinfold-}
        # Boxes of others may be running meanwhile.
        [ ! -d "$dir" ] || [ -d "/proc/${owner%%-*}" ] || echo "$dir"
    done
}
no_group_is_left() { # systemd takes its own scopes away a little later
    for _ in $(seq 450); do
        [ -z "$(new_groups)" ] && return
        sleep 0.2
    done
    new_groups
}

stdin_of_any_size() {
    is "$(head -c 100000000 /dev/zero | box -- wc -c)" 100000000
    is "$(head -c 100000000 /dev/zero | "$pinfold" run --json -- wc -c | grep -o '"stdout":"[0-9]*')" '"stdout":"100000000'
}

a_file_as_stdin_is_read_from_its_place() {
    printf '1\n2\n3\n4\n' >lines
    is "$({ read -r _; box -- sh -c 'read -r x; echo $x'; cat; } <lines | tr '\n' ' ')" "2 3 4 "
}

a_file_the_box_cannot_see_as_stdin() {
    printf 'secret\n' >"$work/outside"
    is "$(box --hide "$work/outside" -- cat <"$work/outside")" secret
}

a_file_as_stdout_keeps_its_place() {
    { echo one; box -- sh -c 'echo two; echo three >&2'; echo four; } >out 2>&1
    is "$(tr '\n' ' ' <out)" "one two three four "
    box -- echo five >>out
    is "$(tail -n 1 out)" five
}

closed_descriptors() { # nothing of ours may take their numbers, and what is written there goes nowhere
    box -- sh -c 'cat' <&- >/dev/null
    is "$(box -- sh -c 'echo x; echo y >&2' 2>&1 >&- | grep -c x)" 0
    is "$(box -- sh -c 'ls -l /proc/self/fd' <&- 2>&1 | grep -c "socket:")" 0
}

refused_descriptors() {
    local said
    said=$(box -- true </ 2>&1)
    is $? 125
    case $said in
    *"stdin is a directory"*) ;;
    *) echo "$said" ;;
    esac
}

signals_are_forwarded() {
    local pid status
    for sig in HUP INT QUIT TERM USR1 USR2; do
        : >up
        # In the background a script's children ignore INT and QUIT, and so does pinfold then: a job of its own is needed.
        set -m
        "$pinfold" run -q -- sh -c "trap 'exit 9' $sig; echo >up; while :; do sleep 0.02; done" </dev/null &
        pid=$!
        set +m
        for _ in $(seq 6000); do [ -s up ] && break; sleep 0.01; done
        kill "-$sig" "$pid"
        wait "$pid"
        status=$?
        [ "$status" = 9 ] || echo "$sig: status $status"
    done
}

stop_and_continue() {
    local pid n
    : >ticks
    rm -f over
    set -m
    "$pinfold" run -q -- sh -c 'while ! [ -e over ]; do echo x >>ticks; sleep 0.1; done; exit 6' </dev/null >/dev/null 2>&1 &
    pid=$!
    set +m
    for _ in $(seq 6000); do [ -s ticks ] && break; sleep 0.01; done
    kill -TSTP "$pid"
    for _ in $(seq 6000); do [ "$(awk '{print $3}' "/proc/$pid/stat")" = T ] && break; sleep 0.01; done
    is "$(awk '{print $3}' "/proc/$pid/stat")" T
    for _ in $(seq 10); do # what was on its way may still come, and then nothing
        n=$(wc -l <ticks)
        sleep 0.5
        [ "$(wc -l <ticks)" = "$n" ] && break
    done
    is "$(wc -l <ticks)" "$n"
    kill -CONT "$pid"
    for _ in $(seq 6000); do [ "$(wc -l <ticks)" -gt "$n" ] && break; sleep 0.01; done
    [ "$(wc -l <ticks)" -gt "$n" ] || echo "it does not go on"
    : >over
    wait "$pid"
    is $? 6
}

a_terminal_inside() {
    command -v script >/dev/null || { echo "no script(1)"; return 77; }
    local said
    said=$(script -qec "$pinfold run -q -- sh -c 'tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all'" /dev/null </dev/null | tr -d '\r' | tr '\n' ' ')
    case $said in
    *"/dev/pts/0 "*all*) ;;
    *) echo "$said" ;;
    esac
}

peak_and_cpu_are_reported() {
    local json turns=200000
    [ -z "${PINFOLD_TEST_TRIES_BY-}" ] || turns=$((turns / PINFOLD_TEST_TRIES_BY))
    json=$("$pinfold" run --json --memory 500M -- sh -c "$(holding 51000000) >/dev/null; i=0; while [ \$i -lt $turns ]; do i=\$((i+1)); done")
    local peak cpu
    peak=$(grep -o '"peak_bytes":[0-9]*' <<<"$json" | cut -d: -f2)
    cpu=$(grep -o '"cpu_ms":[0-9]*' <<<"$json" | cut -d: -f2)
    [ "$peak" -gt 50000000 ] && [ "$peak" -lt 500000000 ] || echo "peak $peak"
    [ "$cpu" -gt 50 ] || echo "cpu $cpu"
}

many_boxes_at_once() {
    local i pids=() bad=0 boxes=40
    [ -z "${PINFOLD_TEST_TRIES_BY-}" ] || boxes=16
    for i in $(seq "$boxes"); do
        box --memory 100M --pids 20 -- sh -c "exit $((i % 7))" &
        pids+=("$!:$((i % 7))")
    done
    for i in "${pids[@]}"; do
        wait "${i%%:*}"
        [ $? = "${i##*:}" ] || bad=$((bad + 1))
    done
    is "$bad" 0
}

# The kernel counts what a user has sent and nobody has taken, over all of his boxes; of root it does not.
descriptors_nobody_takes() {
    local full="" send='import array, os, socket, sys
def send(s): s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 250))])
null, pairs = os.open("/dev/null", os.O_RDONLY), []
try:
    while True:
        pairs.append(socket.socketpair())
        pairs[-1][0].setblocking(False)
        try:
            while True: send(pairs[-1][0])
        except BlockingIOError: pass
        if sys.argv[1:]: sys.exit("nothing refuses")
except OSError as e: print(os.strerror(e.errno), flush=True)
'
    ulimit -Sn 1024
    coproc FILL { box --open-files 3000 -- python3 -c "$send"'sys.stdin.read()'; }
    local filler=$FILL_PID out=${FILL[0]} in=${FILL[1]}
    read -r full <&"$out"
    is "$full" "Too many references: cannot splice"
    is "$(python3 -c "$send" once)" "$full" # so it is for others of the same user
    is "$(box -- echo started)" started
    "$pinfold" session start "refs-$$" >/dev/null || echo "no session starts"
    is "$(echo in | "$pinfold" exec "refs-$$" -- cat)" in
    "$pinfold" exec "refs-$$" -- echo file >"$work/taken" && is "$(cat "$work/taken")" file
    "$pinfold" session rm "refs-$$"
    exec {in}>&-
    wait "$filler"
}

for name in exit_statuses background_processes_end daemons_end a_killed_pinfold_takes_the_box_along timeout_ends_everything \
    timeout_asks_first memory_limit memory_limit_says_so_in_json process_limit cpu_limit cpu_limit_is_kept cpu_limit_under_attack cpu_limit_in_a_terminal cpu_limit_in_a_terminal_of_a_busy_machine untrusted_works_for_everybody output_limit hidden_names_are_held_by_an_overlay open_files_limit \
    stdin_of_any_size a_file_as_stdin_is_read_from_its_place a_file_the_box_cannot_see_as_stdin a_file_as_stdout_keeps_its_place \
    closed_descriptors refused_descriptors signals_are_forwarded stop_and_continue a_terminal_inside peak_and_cpu_are_reported \
    many_boxes_at_once no_group_is_left; do
    check $name
done
[ "$(id -u)" = 0 ] || check descriptors_nobody_takes
echo "1..$number"
exit $failed
