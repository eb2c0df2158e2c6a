#!/bin/sh
# needs: pytest-3 python3
# fixture: python-project
set -eu
cd python-project
pytest-3 -q -p no:cacheprovider | grep -q "4 passed"
