#!/usr/bin/env python3
"""`pinfold mcp` whose boxes are containers: mcp.py PINFOLD WORK WORDS...; prints what is wrong, nothing when all is well.

The image has busybox, /etc/kit-image and a kiro-cli of its own; WORK is mounted at /workspace.
"""
import json
import os
import select
import sqlite3
import subprocess
import sys
import time

PINFOLD, WORK, WORDS = sys.argv[1], sys.argv[2], sys.argv[3:]
WRONG = []


def login():
    place = os.path.expanduser("~/.local/share/kiro-cli")
    os.makedirs(place, exist_ok=True)
    db = sqlite3.connect(os.path.join(place, "data.sqlite3"))
    db.execute("CREATE TABLE IF NOT EXISTS auth_kv (key TEXT PRIMARY KEY, value TEXT)")
    db.execute("INSERT OR REPLACE INTO auth_kv VALUES ('token', 'of-the-host')")
    db.commit()
    db.close()
    settings = os.path.expanduser("~/.kiro/settings")
    os.makedirs(settings, exist_ok=True)
    with open(os.path.join(settings, "mcp.json"), "w", encoding="utf-8") as out:
        json.dump({"mcpServers": {"s": {"command": "/bin/sh", "args": [WORK + "/server"]}}}, out)
    with open(os.path.join(WORK, "server"), "w", encoding="ascii") as out:
        out.write("x")


class Client:
    def __init__(self):
        self.child = subprocess.Popen([PINFOLD, "mcp", "--agent", "kiro-cli", "--mount", WORK + ":/workspace", *WORDS], cwd=WORK,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ids, self.waiting = 0, b""
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})

    def ask(self, method, params, limit=180):
        self.ids += 1
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}).encode() + b"\n")
        self.child.stdin.flush()
        end = time.monotonic() + limit
        while True:
            while b"\n" not in self.waiting:
                if not select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))[0]:
                    raise TimeoutError(method)
                got = os.read(self.child.stdout.fileno(), 1 << 16)
                if not got:
                    raise EOFError(self.child.stderr.read().decode())
                self.waiting += got
            line, self.waiting = self.waiting.split(b"\n", 1)
            message = json.loads(line)
            if message.get("id") == self.ids:
                return message

    def tool(self, name, **arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        return result["isError"], result["content"][0]["text"], result.get("structuredContent", {})


def must(good, what):
    if not good:
        WRONG.append(str(what)[:1500])


login()
c = Client()
got = c.tool("run", command="cat /etc/kit-image; pwd; touch by-run")
must(not got[0] and got[1] == "box image\n/workspace\n" and os.path.exists(WORK + "/by-run"), f"run: {got}")
got = c.tool("bash", command="X=1; cat /etc/kit-image")
must(not got[0] and got[1].startswith("box image"), f"bash: {got}")
must(c.tool("bash", command="echo $X")[1].startswith("1\n"), "the shell does not stay")
got = c.tool("write_file", path="/workspace/file", content="one")
must(not got[0] and os.path.exists(WORK + "/file"), f"write_file: {got}")
got = c.ask("resources/read", {"uri": "pinfold://session/default/files/workspace/file"})
must(got.get("result", {}).get("contents", [{}])[0].get("text") == "one", f"a resource: {got}")
got = c.ask("resources/read", {"uri": "pinfold://session/default/files" + WORK + "/file"})
must(got.get("result", {}).get("contents", [{}])[0].get("text") == "one", f"a resource by this machine's name, which the box has under another: {got}")
with open(os.path.dirname(WORK) + "/outside", "w", encoding="ascii") as file:
    file.write("secret")
for name in (os.path.dirname(WORK) + "/outside", WORK + "/../outside", WORK + "/none"):
    must("error" in c.ask("resources/read", {"uri": "pinfold://session/default/files" + name}), f"a resource that the box does not have: {name}")
os.unlink(os.path.dirname(WORK) + "/outside")
got = c.tool("kiro-cli", prompt="do it", directory=WORK)
must(not got[0] and "agent in box image, cwd /workspace, login" in got[1] and "In directory /workspace, do it" in got[1], f"agent: {got}")
must(got[2].get("directory") == "/workspace" and got[2].get("settings") == [
    {"server": "s", "file": "~/.kiro/settings/mcp.json", "place": "args[0]", "path": "/workspace/server", "done": "translated"}], f"settings: {got}")
must(os.path.exists(WORK + "/by-the-agent"), "the agent did not work in the directory")
got = c.tool("kiro-cli", prompt="fail", directory=WORK)
must(got[0] and "broken" in got[1] and "exit status 9" in got[1] and got[2].get("resumed"), f"a failure: {got}")
c.child.stdin.close()
must(c.child.wait(90) == 0, "the end")
print("; ".join(WRONG) or "all is well")
if WRONG:
    print(c.child.stderr.read().decode()[-1500:], file=sys.stderr)
