#!/usr/bin/env python3
"""The n-th call of the C library's that fails, for every n, in a box with a network, in one whose host's addresses come by TCP, and in the
MCP server over HTTP: services.py [NAME]

Of a box: a hidden file stays hidden and a host that is not allowed is not reached, whatever failed; the command has what it
should have, or its request fails at once, or pinfold ends with status 125 to 127 and a sentence; no hang, no signal, nothing is left.
Of the server: a request is answered, or its connection ends; the next one is answered, or the server has ended with a sentence.
"""
import ctypes
import functools
import http.client
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "mcp")]
import pf  # noqa: E402
import client  # noqa: E402

QUIET = 60 if os.environ.get("PINFOLD_TEST_ALL") == "1" else 15  # tries that met no failure in a row that end the search
FIRST_BY = 150  # the first calls of a program are often such as may fail: one that matters comes by then,
LEAST = 60  # and others after a row of such
SECRET = "what nobody inside may read"
COMMAND = "echo \"$(cat hidden 2>/dev/null)|$({0} {1} {2} 2>/dev/null)|$?|$({0} {1} {3} 2>/dev/null)|$?\""


class Server:
    """Answers each connection with one word, and counts them."""

    def __init__(self, word, address="127.0.0.1"):
        self.socket = socket.create_server((address, 0))
        self.port, self.word, self.seen = self.socket.getsockname()[1], word, 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                with self.socket.accept()[0] as one:
                    self.seen += 1
                    one.settimeout(30)
                    one.recv(4096)
                    one.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(self.word)}\r\n\r\n{self.word}".encode())
            except OSError:
                pass


PUBLIC = "203.0.113.7"


def dns_answer(query, truncated):
    end = query.index(b"\0", 12) + 5
    known = [PUBLIC] if query[end - 3] == 1 and not truncated else []
    answer = query[:2] + struct.pack(">HHHHH", 0x8380 if truncated else 0x8180, 1, len(known), 0, 0) + query[12:end]
    return answer + b"".join(b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(a) for a in known)


def dns_by_tcp(listener):
    while True:
        try:
            with listener.accept()[0] as one:
                one.settimeout(30)
                answer = dns_answer(one.recv(4096)[2:], False)
                one.sendall(struct.pack(">H", len(answer)) + answer)
        except (OSError, ValueError):
            pass


def dns_by_udp(s):
    while True:
        query, peer = s.recvfrom(4096)
        s.sendto(dns_answer(query, True), peer)


def own_network():
    """Only root can have one, with a name server that answers by TCP alone."""
    if os.getuid() != 0 or ctypes.CDLL(None).unshare(0x40000000 | 0x20000) != 0:
        return False
    for words in (["mount", "--make-rprivate", "/"], ["ip", "link", "set", "lo", "up"], ["ip", "addr", "add", PUBLIC + "/32", "dev", "lo"]):
        subprocess.run(words, check=True)
    conf = os.path.join(pf.SCRATCH, "services-resolv.conf")
    with open(conf, "w", encoding="ascii") as text:
        text.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    subprocess.run(["mount", "--bind", conf, os.path.realpath("/etc/resolv.conf")], check=True)
    listener, datagrams = socket.create_server(("127.0.0.1", 53)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 53))
    for serve, by in ((dns_by_tcp, listener), (dns_by_udp, datagrams)):
        threading.Thread(target=serve, args=(by,), daemon=True).start()
    return True


class Place:
    def __init__(self, user):
        base = "/srv" if os.getuid() == 0 and os.path.isdir("/srv") else pf.SCRATCH
        self.user, self.path = user, tempfile.mkdtemp(prefix="pinfold-fault-", dir=base)
        os.chmod(self.path, 0o755)
        self.failed, self.get = os.path.join(self.path, "failed"), os.path.join(self.path, "get")
        subprocess.run(["cc", "-O1", "-o", self.get, os.path.join(HERE, "get.c")], check=True)
        self.home, self.work = os.path.join(self.path, "home"), os.path.join(self.path, "home", "work")
        os.makedirs(self.work)
        with open(os.path.join(self.work, "hidden"), "w", encoding="ascii") as text:
            text.write(SECRET)
        user.own(self.home)

    def environment(self, nth):
        return pf.environment(self.user, self.home, LD_PRELOAD=LIBRARY, PINFOLD_LIBC_FAULT=f"{nth}:5", PINFOLD_LIBC_FAULT_LOG=self.failed)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def a_box(place, nth, allowed, denied, host="127.0.0.1"):
    """(whether it went as if nothing had failed, what was wrong)"""
    network = ["--reach", f"{host}:{allowed.port}"] if host == "127.0.0.1" else ["--allow", f"{host}:{allowed.port}", "--allow", PUBLIC + "/32"]
    before = denied.seen
    done = pf.run([PROGRAM, "run", "--workspace", place.work, "--hide", "hidden", *network, "--", "sh", "-c",
                   COMMAND.format(place.get, host, allowed.port, denied.port)], user=place.user, cwd=place.work, env=place.environment(nth), limit=120)
    out = done.out.decode("utf-8", "replace")
    said = [line for line in done.err.decode("utf-8", "replace").splitlines() if line.startswith("pinfold: ")]
    fields = out.strip().split("|")
    if SECRET in out or SECRET in done.err.decode("utf-8", "replace"):
        return False, "the hidden file was read"
    if denied.seen != before:
        return False, "the host that is not allowed was reached"
    if done.late or done.status not in (0, 125, 126, 127) or (done.status >= 125 and not said):
        return False, done.said()[:2000]
    if done.status:
        return False, None
    if len(fields) != 5:
        return False, "success without the command's output: " + done.said()[:2000]
    if "28" in (fields[2], fields[4]):
        return False, "a request in the box hung: " + done.said()[:2000]
    return fields[:3] == ["", "allowed", "0"], None


def request(port, body, session=None):
    """The status of a request, or None: its connection ended."""
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    headers = {"Authorization": "Bearer " + client.Http.TOKEN, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        wire.request("POST", "/mcp", client.json.dumps(body), {**headers, **({"Mcp-Session-Id": session} if session else {})})
        reply = wire.getresponse()
        return reply.status, reply.getheader("mcp-session-id"), reply.read().decode("utf-8", "replace")
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException):
        return None, None, ""
    finally:
        wire.close()


def talk(port, done):
    """Both requests of a client that has just come; whether all was well."""
    good = True
    for _ in range(2):
        status, session, _ = request(port, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client.HELLO})
        if status == 200 and session:
            status, _, text = request(port, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                "name": "run", "arguments": {"command": "echo in the box"}}}, session)
            if status == 200 and "in the box" in text and '"isError":true' not in text.replace(" ", ""):
                return good, None
        good = False
    try:
        done.wait(30)
    except subprocess.TimeoutExpired:
        return False, f"two clients in a row were not served ({status}): {text[:200] if status else 'the connection ended'}"
    return False, None


def a_server(place, nth):
    token = os.path.join(place.home, "token")
    with open(token, "w", encoding="ascii") as text:
        text.write(client.Http.TOKEN + "\n")
    os.chmod(token, 0o600)
    place.user.own(token)
    errors = os.path.join(place.path, "errors")
    with open(errors, "wb") as to:
        child = subprocess.Popen([PROGRAM, "mcp", "--http", "127.0.0.1:0", "--http-token", token], cwd=place.work, env=place.environment(nth), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=to, start_new_session=True, **place.user.popen())
    good, wrong, end, port = False, None, time.monotonic() + 90, None
    while child.poll() is None and not port and time.monotonic() < end:
        time.sleep(0.005)
        port = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", told(errors))
    try:
        if port:
            good, wrong = talk(int(port[1]), child)
    except TimeoutError:
        wrong = "a request was not answered within 30 s"
    ended = child.poll()
    child.terminate()
    try:
        child.wait(90)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        wrong = wrong or "it did not end within 90 s of SIGTERM"
    # Its first lines may be what could not be written.
    if not wrong and told(place.failed) != "write" and (ended is not None or not port) and not re.search("(?m)^pinfold: (?!mcp: (serving|listening))", told(errors)):
        wrong = f"it ended with status {ended} and said: {told(errors)!r}"
    if child.returncode < 0 and child.returncode != -15:
        wrong = f"signal {-child.returncode}"
    return good, wrong


def told(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.read()


def search(name, place, attempt, tally):
    nth, quiet, failed, wrong, label = 0, 0, 0, [], f"services/{name}/{place.user.label}"
    before = pf.temp_names(), pf.cgroups(place.user.uid)

    def one(number):
        for file in (place.failed, place.failed + ".count"):
            with open(file, "wb"):
                os.chmod(file, 0o666)
        return attempt(number)

    good, complaint = one(0)
    if not good or complaint:  # otherwise the search would not end
        tally.fail(label, "it does not go well where nothing fails", complaint or "")
        return
    while (quiet < QUIET or nth < (LEAST if failed else FIRST_BY)) and len(wrong) < 5:
        nth += 1
        pids = set(pf.children())
        good, complaint = one(nth)
        quiet, failed = (quiet + 1, failed) if good else (0, failed + 1)
        left = pf.leftovers(allowed=pids, patience=30)
        if complaint or left:
            wrong.append(f"call {nth} ({told(place.failed)}): " + (complaint or f"left over: {left}").replace("\n", " | "))
    left = [sorted(pf.came(old, look)) for old, look in zip(before, (pf.temp_names, functools.partial(pf.cgroups, place.user.uid)))]
    if any(left):
        wrong.append(f"left on the host: {left}")
    if wrong:
        tally.fail(label, f"{len(wrong)} of {nth} went wrong", "\n".join(wrong))
    elif not failed:
        tally.fail(label, "nothing failed: nothing was injected")
    else:
        tally.ok(label, f"{nth - QUIET} calls, {failed} noticed")


def main():
    pf.become_subreaper()
    tally = pf.Tally()
    user = pf.users()[-1]  # the same calls as root's
    named = own_network()
    allowed, denied = Server("allowed"), Server("denied")
    place = Place(user)
    try:
        if named and (not sys.argv[1:] or "names" in sys.argv[1:]):
            far, shut = Server("allowed", PUBLIC), Server("denied", PUBLIC)
            search("names", place, lambda nth: a_box(place, nth, far, shut, "many.test"), tally)
        for name, attempt in (("box", lambda nth: a_box(place, nth, allowed, denied)), ("mcp-http", lambda nth: a_server(place, nth))):
            if not sys.argv[1:] or name in sys.argv[1:]:
                search(name, place, attempt, tally)
    finally:
        place.remove()
    pf.finish(tally)


PROGRAM = os.path.join(pf.SCRATCH, "pinfold-services")
LIBRARY = os.path.join(pf.SCRATCH, "libfault.so")
shutil.copy(os.path.join(pf.SOURCE, "build-faults", "pinfold"), PROGRAM)
shutil.copy(os.path.join(pf.SOURCE, "build-faults", "pinfold-init"), pf.SCRATCH)
subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", LIBRARY, os.path.join(HERE, "libc.c"), "-ldl"], check=True)
main()
