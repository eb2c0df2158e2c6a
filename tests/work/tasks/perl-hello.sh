#!/bin/sh
# needs: perl
set -eu
test "$(perl -MPOSIX -e 'my $p = fork; if (!$p) { exit 7 } waitpid $p, 0; print $? >> 8')" = 7
