#!/bin/sh
# A package manager's cache below a home that cannot be written.
set -eu
mkdir -p ~/.cache/pinfold-work ~/.npm/_cacache
echo x >~/.cache/pinfold-work/file
test "$(cat ~/.cache/pinfold-work/file)" = x
