#!/bin/sh
# needs: sudo
# outside: no
set -eu
if sudo -n true 2>said; then exit 1; fi
test -s said
