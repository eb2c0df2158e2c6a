#!/bin/sh
# needs: git
set -eu
cd repo
test -z "$(git status --porcelain --ignored)"
