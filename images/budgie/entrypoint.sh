#!/bin/sh
# Entry point of budgie's image when it is started by hand: the first time the host's database is copied, later its login alone, so that
# conversations stay. In a box of pinfold's the login is there already, and nothing is done.
data=$HOME/.local/share/kiro-cli source=/auth/data.sqlite3
if [ -z "${PINFOLD-}" ] && [ -f "$source" ]; then
    mkdir -p "$data"
    if [ ! -f "$data/data.sqlite3" ]; then
        cp "$source" "$data/data.sqlite3"
    else
        sqlite3 "$data/data.sqlite3" "ATTACH '$source' AS login; BEGIN; DELETE FROM auth_kv; INSERT INTO auth_kv SELECT * FROM login.auth_kv; COMMIT;"
    fi || echo "entrypoint: the login could not be copied from $source" >&2
fi
exec "$@"
