#!/bin/sh
# needs: sqlite3
set -eu
test "$(sqlite3 db 'pragma journal_mode=wal')" = wal
sqlite3 db 'create table t(a); begin; insert into t values (1), (2); commit;'
for _ in 1 2 3 4; do sqlite3 db 'pragma busy_timeout=5000; insert into t values (3)' >/dev/null & done
wait
test "$(sqlite3 db 'select count(*) from t')" = 6
