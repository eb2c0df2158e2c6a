#!/bin/sh
# needs: node curl
set -eu
node -e '
const s = require("http").createServer((q, a) => a.end("served " + q.url));
s.listen(3000, "127.0.0.1", () => console.log("up"));
' >log &
server=$!
for _ in $(seq 1200); do
    if grep -q up log; then break; fi
    sleep 0.05
done
test "$(curl -s --noproxy '*' http://127.0.0.1:3000/page)" = "served /page"
test "$(curl -s --noproxy '*' http://localhost:3000/)" = "served /"
kill "$server"
wait "$server" || true
