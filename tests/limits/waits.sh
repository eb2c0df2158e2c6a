#!/bin/sh
# How often a start makes the kernel wait for all processors (RCU), counted by the kernel's own function tracer in a machine of its own
# (guest.sh, as root). A wait counts if it comes before pinfold's end and before that of the process that waits: the rest is in nobody's way. Lines of TAP.
#     waits.sh PINFOLD
# shellcheck disable=SC2016,SC2319 # words of an inner shell; say takes the status of a condition
set -u
pinfold=$1
at=/sys/kernel/tracing
number=0
mkdir -p $at /root/work
[ -e $at/trace ] || mount -t tracefs tracefs $at || exit 1
export HOME=/root
cd /root/work || exit 1

echo 'synchronize_rcu_expedited synchronize_rcu synchronize_srcu synchronize_srcu_expedited' >$at/set_ftrace_filter || exit 1
echo function >$at/current_tracer || exit 1
echo 1 >$at/events/sched/sched_process_exit/enable || exit 1
# What a session's daemon was asked for, to be seen beside its waits when there are too many.
for call in accept4 recvmsg sendmsg; do
    echo 1 >$at/events/syscalls/sys_enter_$call/enable || exit 1
done

say() { # whether, name, why
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        echo "$3" | sed 's/^/# /' # each line, so that it is seen when each wait was
    fi
}

# COMMAND..., a start that counts: leaves its waits before the end of its first process in $seen, a line each.
trace() {
    echo 0 >$at/tracing_on
    echo >$at/trace
    sh -c 'echo 1 >/sys/kernel/tracing/tracing_on; echo $$ >/root/pid; exec "$@"' sh "$@" >/root/out 2>&1
    ended=$?
    echo 0 >$at/tracing_on
    pid=$(cat /root/pid)
    seen=$(awk -v pid="$pid" '
        /sched_process_exit:/ {
            for (i = 5; i <= NF; i++) if ($i ~ /^pid=/) gone = substr($i, 5)
            if (gone == pid) exit
            ends[gone] = 1
            next
        }
        /synchronize_/ {
            who = $1
            sub(/.*-/, "", who)
            if ($1 !~ /^kworker/ && !(who in ends)) { sub(/^ */, ""); print }
        }' $at/trace)
}

# An unmount waits for certain.
trace umount -l /dev/shm
[ "$(echo "$seen" | grep -c synchronize_rcu)" -ge 1 ]
say $? the-tracer-counts "nothing seen of an unmount: $(head -n 30 $at/trace)"

most() { # name, the most, command...
    name=$1 most=$2
    shift 2
    "$@" >/root/out 2>&1 # what is made once
    sleep 1
    trace "$@"
    [ $ended = 0 ] && [ "$(echo "$seen" | grep -c expedited)" -le "$most" ] && ! echo "$seen" | grep synchronize | grep -qv expedited
    say $? "$name" "status $ended, at most $most: $seen; $(cat /root/out)"
    echo "# $name: $(echo "$seen" | tr -s ' ' | cut -d ' ' -f 1,5- | sort | uniq -c | tr -s ' ' | tr '\n' ';')"
}
most default 3 "$pinfold" run -- true
most guarded-file 3 "$pinfold" run -- touch x
most copy-on-write 3 "$pinfold" run --cow -- true
most egress 3 "$pinfold" run --allow example.org -- true
"$pinfold" session start s >/root/out 2>&1
# One for each mask, whose names are dropped (supervisor/fresh.c): while the caller puts the command together, if none was for a second, and
# when nothing runs in the box any more, which nobody waits for.
# On a slow machine they are looked at once more where the command comes later than 20 ms after its connection (sessiond/parts.h, FRESH_US),
# and again where it takes longer than a second: nine in any second.
busiest() { # the most lines of $seen within a second
    echo "$seen" | awk '/expedited/ {
        for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) at[++n] = $i + 0
        while (n && at[n] - at[first + 1] >= 1) first++
        if (n - first > most) most = n - first
    } END { print most + 0 }'
}
"$pinfold" exec s -- true >/root/out 2>&1
sleep 1
trace "$pinfold" exec s -- true
[ $ended = 0 ] && [ "$(busiest)" -le 9 ] && ! echo "$seen" | grep synchronize | grep -qv expedited
say $? exec "status $ended, at most 9 in a second: $seen; $(cat /root/out); $(grep -E 'sched_process_exit|sys_|synchronize' $at/trace | tr -s ' ')"
echo "# exec: $(echo "$seen" | tr -s ' ' | cut -d ' ' -f 1,5- | sort | uniq -c | tr -s ' ' | tr '\n' ';')"
# Nothing runs in the box: what changes on the host wakes the daemon, and nobody would notice if names were dropped.
sleep 1
trace sh -c 'for i in 1 2 3 4 5 6; do sleep 0.5; touch "changed-$i"; done'
[ $ended = 0 ] && ! echo "$seen" | grep -q synchronize
say $? idle-session "status $ended: $seen; $(grep -E 'sys_|synchronize' $at/trace | tr -s ' ')"
"$pinfold" session rm s >/root/out 2>&1
echo "1..$number"
