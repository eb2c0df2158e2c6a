"""HTTP/2 in the clear: gRPC and other clients, and requests for another host than the one that is allowed."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time

HERE = os.environ["PINFOLD_SCRATCH"] + "/clients"  # see run: main()
RAW = f"python3 -IS {HERE}/h2raw.py"
GRPC = f"/usr/bin/python3 {HERE}/grpc_echo.py"  # the distribution's python has the distribution's grpc
BARE = "env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u no_proxy -u NO_PROXY "
AT, NODE, ECHO = 8460, 8461, 8462
OK = f"ok.test:{AT}"

#   name, pieces, whether the last one may get through
ROWS = [
    ("request", "begin for=ok.test", True),
    ("with-its-port", f"begin for={OK}", True),
    ("in-capitals", "begin for=OK.Test for=ok.test", True),
    ("many", "begin for=ok.test for=ok.test split=ok.test data for=ok.test", True),
    ("another-host", "begin for=other.test", False),
    ("another-host-second", "begin for=ok.test for=other.test", False),
    ("another-host-behind-data", "begin for=ok.test data for=other.test", False),
    ("another-host-field", "begin host=other.test", False),
    ("another-host-in-pieces", "begin split=other.test", False),
    ("upgrade", "upgrade begin for=ok.test", True),
    ("upgrade-then-another-host", "upgrade begin for=other.test", False),
    ("upgrade-to-anything", "upgrade other", True),
]


def raw(t):
    for name, words, good in ROWS:
        last = "ok.test" if good and not words.endswith("other") else "other.test"
        out = t.outside(f"{RAW} direct {OK} {words}")
        if f"hello from {last}" not in out:
            t.report("h2/" + name, False, "does not work outside either: " + out[-2000:])
            continue
        for way, via in (("caught", "direct"), ("connect", "61080")):
            status, out = t.box(t.allow, f"timeout 20 {RAW} {via} {OK} {words}; echo \"== $?\"")
            through = f"hello from {last}" in out
            t.report(f"h2/{name}-{way}", through == good and "== 0" in out and (good or "ended" in out), (status, out[-2000:]))


def told(t):
    """A refusal says what was asked for."""
    subprocess.run([t.pinfold, "run", "-q", "--result", "r.json", *t.allow, "--", "sh", "-c", f"timeout 20 {RAW} direct {OK} begin for=other.test"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    with open("r.json", encoding="utf-8") as text:
        denials = json.load(text)["denials"]
    t.report("h2/denial", any("other.test" in d["target"] and "HTTP/2" in d["rule"] for d in denials), denials)


def curl(t):
    prior = "curl --http2-prior-knowledge -sS -m 60 "
    url = f"http://ok.test:{NODE}/"
    for name, command, good in (("curl", f"{BARE}{prior}{url}", True), ("curl-by-connect", f"{prior} -p -x http://127.0.0.1:61080 {url}", True),
                                ("curl-two", f"{BARE}{prior}{url} {url}", True), ("curl-upgrade", f"{BARE}curl --http2 -sS -m 60 http://ok.test:8099/f", True),
                                ("curl-another-host", f"{BARE}{prior} -H 'Host: other.test' {url}", False),
                                ("curl-another-host-by-connect", f"{prior} -p -x http://127.0.0.1:61080 -H 'Host: other.test' {url}", False)):
        if "hello" not in t.outside(command.replace("-p -x http://127.0.0.1:61080", "")):
            t.report("h2/" + name, False, "does not work outside either")
            continue
        status, out = t.box(t.allow, command)
        t.report("h2/" + name, ("hello" in out) == good, (status, out[-2000:]))


def grpc(t):
    if subprocess.run(["/usr/bin/python3", "-c", "import grpc"], stderr=subprocess.DEVNULL, check=False).returncode:
        t.skip("h2/grpc", "it takes the package python3-grpcio")
        return
    server = subprocess.Popen([*GRPC.split(), "serve", f"{t.public}:{ECHO}"], stdin=subprocess.DEVNULL)
    try:
        wait(t.public, ECHO)
        where = f"ok.test:{ECHO}"
        if "hello" not in t.outside(f"{BARE}{GRPC} {where}") or "hello" not in t.outside(f"{BARE}{GRPC} {where} other.test"):
            t.report("h2/grpc", False, "does not work outside either")
            return
        for name, flags, command, how in (("grpc-caught", t.allow, f"{BARE}{GRPC} {where}", "transparent"), ("grpc-connect", t.allow, f"{GRPC} {where}", "connect"),
                                          ("grpc-another-authority", t.allow, f"{BARE}{GRPC} {where} other.test", None),
                                          ("grpc-another-authority-by-connect", t.allow, f"{GRPC} {where} other.test", None),
                                          ("grpc-another-name", t.allow, f"{BARE}{GRPC} other.test:{ECHO}", None),
                                          ("grpc-port-refused", [*t.allow, "--deny-port", str(ECHO)], f"{BARE}{GRPC} {where}", None)):
            began = time.monotonic()
            done = subprocess.run([t.pinfold, "run", "-q", "--result", "r.json", *flags, "--", "sh", "-c", command], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
            out, took = done.stdout.decode("utf-8", "replace"), time.monotonic() - began
            with open("r.json", encoding="utf-8") as text:
                allowed = json.load(text)["network"]["allowed"]
            if how:
                right = "hello" in out and any(a["how"] == how and a["target"] == where for a in allowed)
            else:
                right = "hello" not in out and ("UNAVAILABLE" in out or "DEADLINE" in out) and took < 60
            t.report("h2/" + name, right, (out[-2000:], allowed, round(took, 1)))
    finally:
        server.terminate()
        server.wait()


def wait(address, port):
    for _ in range(600):
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nothing listens at {address}:{port}")


def run(t):
    shutil.rmtree("r.json", ignore_errors=True)
    servers = [subprocess.Popen([sys.executable, HERE + "/h2raw.py", "serve", t.public, str(AT)], stdin=subprocess.DEVNULL),
               subprocess.Popen(["node", HERE + "/h2.js", t.public, "8463", str(NODE), t.scratch + "/key", t.scratch + "/cert"], stdin=subprocess.DEVNULL)]
    try:
        wait(t.public, AT)
        wait(t.public, NODE)
        raw(t)
        told(t)
        curl(t)
        grpc(t)
    finally:
        for p in servers:
            p.terminate()
            p.wait()
