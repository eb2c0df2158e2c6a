#!/bin/sh
# needs: python3
set -eu
python3 - <<'END'
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("sh", "-c", "echo out; echo err >&2; exit 3", stdout=-1, stderr=-1)
    out, err = await p.communicate()
    assert (out, err, p.returncode) == (b"out\n", b"err\n", 3)
    server = await asyncio.start_unix_server(lambda r, w: w.close(), "sock")
    r, w = await asyncio.open_unix_connection("sock")
    assert await r.read() == b""
asyncio.run(main())
END
