#!/bin/bash
# Runs in the container, with pinfold's programs in /opt/pinfold and the tests in /opt/tests: steps.sh TIER; a line per step.
# TIER: landlock or namespaces, what the container allows; or partly, namespaces without some of the calls that boxes are made with.
# shellcheck disable=SC2016,SC2088 # scripts for the shell in the box
set -u
tier=$1
PATH=/opt/pinfold:$PATH
unset XDG_RUNTIME_DIR
work=$HOME/work
mkdir -p "$work/.git/hooks" "$HOME/.ssh" && cd "$work" || exit 1
echo SECRET >"$HOME/.ssh/id"
echo text >"$HOME/text"
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(9); time.sleep(1000)' "$HOME/outside.socket" &
outside=$!
trap 'kill $outside' EXIT

said=/tmp/said.$$
step() { # name, pattern that the output matches ("nothing": there is none), status, command...
    local name=$1 want=$2 status=$3 is
    shift 3
    timeout 120 "$@" >"$said" 2>&1
    is=$?
    if [ $is = "$status" ] && { [ "$want" = nothing ] && [ ! -s "$said" ] || grep -qE -e "$want" "$said"; }; then echo "ok $name"; else
        echo "FAIL $name: status $is"
        sed 's/^/  | /' "$said" | head -n 12
    fi
}

step starts '^here$' 0 pinfold run -- echo here
if [ "$tier" = partly ]; then
    step connections 'refuses process_vm_writev.*start the container with --security-opt seccomp=unconfined.*--may-lose network-transparent' 125 pinfold run --allow example.com -- true
    step connections-by-proxy 'socks5h://localhost/' 0 pinfold run --may-lose network-transparent --allow example.com -- env
    step remedy 'enter .*pivot_root.*: start the container with --security-opt seccomp=unconfined' 125 pinfold run --mount /usr:/missing -- true
    exit
fi
step inside '^done$' 0 pinfold run -- python3 /opt/tests/inside.py "$tier"
[ "$(grep -vc '^pinfold: ' "$said")" = 1 ] || { echo "FAIL inside-holds:" && sed 's/^/  | /' "$said"; }
rm -rf "${work:?}"/* && mkdir -p .git/hooks
step says '.envrc. denied .*allow this name with --guard-allow' 2 pinfold run -- sh -c 'echo x >.envrc'
step timeout 'ran longer than 1.0 s' 124 pinfold run --timeout 1s -- sleep 110
step memory 'used more than 64M' 137 pinfold run --memory 64M -- python3 -c 'x = b"x" * 300000000; import time; time.sleep(90)'
step status '^$|^pinfold' 7 pinfold run -- sh -c 'echo; exit 7'
step terminal '/dev/pts|/dev/tty|not a tty' 1 script -qec 'pinfold run -- tty; exit 1' /dev/null
step session-start "$([ "$tier" = landlock ] && echo 'has no namespaces .Landlock only.' || echo nothing)" 0 pinfold session start one
step session-exec '^in it$' 0 pinfold exec one -- sh -c 'echo in it; echo kept >kept'
step session-again '^kept$' 0 pinfold exec one -- cat kept
step session-guarded 'Permission denied' 2 pinfold exec one -- sh -c 'echo x >.envrc'
step session-stop 'nothing' 0 pinfold session stop one
step session-over "session 'one'" 125 pinfold exec one -- true
step project-init 'wrote: +\.pinfold/policy\.yaml' 0 pinfold init
step project-start "$([ "$tier" = landlock ] && echo 'note: without mounts .lost: remap' || echo nothing)" 0 pinfold start
step project-list 'bind .*running' 0 pinfold list
step project-exec '^in the project$' 0 sh -c 'pinfold exec "$(pinfold session list --names | grep ^agent-sandbox-)" -- echo in the project'
step project-stop 'nothing' 0 pinfold stop
rm -rf .pinfold .gitignore
step mcp '"text":"from mcp' 0 sh -c '{
    echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
    echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
    echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"run\",\"arguments\":{\"command\":\"echo from mcp\"}}}"
    sleep 4; } | pinfold mcp'
pinfold doctor --verify >"$said.doctor" 2>&1
step doctor 'seccomp-notification' 0 cat "$said.doctor"
# What is lost here is named as lost, and breaks no promise.
step doctor-verify '^None of [0-9]+ attacks broke a box' 0 cat "$said.doctor"
# Control groups are read-only in a container, or absent: no login of systemd's and no root helps there.
step doctor-groups '^ +-> (the control groups below /sys/fs/cgroup are read-only here, as in a container|no control groups are mounted on /sys/fs/cgroup)$' 0 cat "$said.doctor"
if [ "$tier" = landlock ]; then
    step tier 'Landlock' 0 pinfold explain --verbose
    step lost 'pid-namespace' 0 pinfold explain
    step remedy 'seccomp=unconfined' 0 cat "$said.doctor"
    step names-refused '--may-lose network-transparent' 125 pinfold run --allow example.com -- true
    step layer-refused 'nothing can be mounted: .*seccomp=unconfined.*; or run without --cow' 125 pinfold run --cow -- true
    step names-by-proxy 'socks5h://localhost/' 0 pinfold run --may-lose network-transparent --allow example.com -- env
else
    step pids '^[1-4]$' 0 pinfold run -- sh -c 'echo $$'
fi
