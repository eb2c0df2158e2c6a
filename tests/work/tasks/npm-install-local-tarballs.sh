#!/bin/sh
# needs: npm node
# fixture: npm-project
set -eu
cd npm-project
npm install --offline --no-audit --no-fund --silent
test -f node_modules/left/index.js
test -f package-lock.json
npm test --silent | grep -q "2 tests passed"
npm run --silent build
test -f dist/out.txt
