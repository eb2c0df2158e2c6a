#!/bin/sh
# needs: tmux
set -eu
TERM=screen tmux -S "$PWD/t.sock" new-session -d 'echo inside >seen; sleep 60'
for _ in $(seq 600); do
    if grep -qs inside seen; then break; fi
    sleep 0.05
done
grep -q inside seen
TERM=screen tmux -S "$PWD/t.sock" kill-server
