"""A client of the suite's own that says exactly what it is told to, right or wrong: MCP 2025-11-25 over stdio and HTTP."""
import fcntl
import http.client
import json
import os
import re
import select
import subprocess
import termios
import time

import pf

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Stdio:
    def __init__(self, user, home, cwd, words=(), hello=True, capabilities=None, path=None, terminal=None, variables=None):
        """terminal: a pty's slave, which becomes the server's controlling terminal."""
        env = {**pf.environment(user, home), **(variables or {})}
        if path:
            env["PATH"] = path + ":" + env["PATH"]
        self.child = subprocess.Popen([pf.PINFOLD, "mcp", *words], cwd=cwd, env=env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                      preexec_fn=(lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)) if terminal else None, **user.popen())
        self.waiting, self.seen, self.ids, self.told = b"", [], 0, b""
        if hello:
            self.initialized = self.ask("initialize", {**HELLO, "capabilities": capabilities or {}})
            self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def raw(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def say(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def hear(self, limit=180):
        """The next message, or None at the end or when the time is up."""
        end = time.monotonic() + limit
        while b"\n" not in self.waiting:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                return None
            got = os.read(self.child.stdout.fileno(), 1 << 16)
            if not got:
                return None
            self.waiting += got
        line, self.waiting = self.waiting.split(b"\n", 1)
        return json.loads(line)

    def send(self, method, params=None):
        self.ids += 1
        self.say({"jsonrpc": "2.0", "id": self.ids, "method": method, **({} if params is None else {"params": params})})
        return self.ids

    def answer(self, wanted, limit=180):
        """The answer to that id, which may have come already; what comes before is kept in `seen`."""
        for message in self.seen:
            if message.get("id") == wanted and "method" not in message:
                self.seen.remove(message)
                return message
        end = time.monotonic() + limit
        while time.monotonic() < end:
            message = self.hear(end - time.monotonic())
            if message is None:
                return None
            if message.get("id") == wanted and "method" not in message:
                return message
            self.seen.append(message)
        return None

    def ask(self, method, params=None):
        return self.answer(self.send(method, params))

    def tool(self, name, arguments=None):
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}})

    def tells(self, words, limit=180):
        """Whether it says that to the person within a while."""
        end = time.monotonic() + limit
        while words.encode() not in self.told:
            if not select.select([self.child.stderr], [], [], max(0, end - time.monotonic()))[0]:
                return False
            got = os.read(self.child.stderr.fileno(), 1 << 16)
            if not got:
                return False
            self.told += got
        return True

    def end(self, limit=180):
        """Closes its input as a client does; the exit status, or None when it stays."""
        if self.child.stderr.closed:
            return self.child.returncode
        if not self.child.stdin.closed:
            self.child.stdin.close()
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            return None
        finally:
            self.err = (self.told + self.child.stderr.read()).decode(errors="replace")
            self.child.stdout.close()
            self.child.stderr.close()


class Http:
    """The server, and requests to it."""
    TOKEN = "a-token-of-the-tests"

    def __init__(self, user, home, cwd, words=(), files=None):
        token = os.path.join(home, "token")
        with open(token, "w", encoding="ascii") as text:
            text.write(self.TOKEN + "\n")
        os.chmod(token, 0o600)
        user.own(token)
        limited = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"] if files else []
        self.child = subprocess.Popen([*limited, pf.PINFOLD, "mcp", "--http", "127.0.0.1:0", "--http-token", token, *words], cwd=cwd,
                                      env=pf.environment(user, home), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, start_new_session=True, **user.popen())
        line = self.child.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line)
        if not found:
            raise RuntimeError("the server did not say where it listens: " + line)
        self.port, self.url, self.session = int(found.group(1)), found.group(0), None

    def send(self, method="POST", body=None, path="/mcp", drop=(), **headers):
        """(status, headers, body) of one request with everything in order but for what is said."""
        all_headers = {"Host": f"127.0.0.1:{self.port}", "Authorization": "Bearer " + self.TOKEN, "Content-Type": "application/json",
                       "Accept": "application/json, text/event-stream", **({"Mcp-Session-Id": self.session} if self.session else {})}
        all_headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        for name in drop:
            all_headers.pop(name, None)
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        wire.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        for name, value in all_headers.items():
            wire.putheader(name, value)
        if method == "POST" and "Transfer-Encoding" not in all_headers and "Content-Length" not in all_headers:
            wire.putheader("Content-Length", str(len(data)))
        wire.endheaders(data)
        reply = wire.getresponse()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()

    def hello(self):
        self.session = None
        status, headers, body = self.send(body={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        self.session = headers.get("mcp-session-id")
        return status, headers, body

    def end(self, limit=180):
        self.child.terminate()
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            return None
        finally:
            self.child.stderr.close()
