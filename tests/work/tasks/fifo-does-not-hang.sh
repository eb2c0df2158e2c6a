#!/bin/sh
set -eu
mkfifo f
(echo through >f) &
test "$(cat f)" = through
wait
