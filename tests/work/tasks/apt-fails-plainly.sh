#!/bin/sh
# needs: apt-get
# outside: no
set -eu
if timeout 30 apt-get -q install -y no-such-package-pinfold >said 2>&1; then exit 1; fi
test -s said
