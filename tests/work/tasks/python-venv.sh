#!/bin/sh
# needs: python3
set -eu
python3 -m venv --without-pip env
# shellcheck source=/dev/null
. env/bin/activate
test "$(python -c 'import sys; print(sys.prefix)')" = "$PWD/env"
