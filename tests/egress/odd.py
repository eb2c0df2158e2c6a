"""Bytes that no client sends, at the proxies and the resolver of one box: each has its refusal, and afterwards both still answer."""
import os
import re
import struct
import subprocess

HERE = os.environ["PINFOLD_SCRATCH"] + "/clients"  # see run: main()
GOOD = b"GET http://ok.test:8099/f HTTP/1.1\r\nHost: ok.test:8099\r\nConnection: close\r\n\r\n"
BAD = rb"\AHTTP/1\.1 400 (?!.*hello)"
NO = rb"\AHTTP/1\.1 40[03] (?!.*hello)"
SOCKS5 = rb"\A\x05\x00\x05[\x01-\x08]\x00\x01\0{6}\Z"
SOCKS4 = rb"\A\x00\x5b\0{6}\Z"


def request(target="http://ok.test:8099/f", host="ok.test:8099", more="", body=b""):
    return f"POST {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode() + body


def heads():
    """Two servers could read these differently, or two parsers could find another host in them."""
    for name, target in (("percent", "http://other%2etest:8099/f"), ("user", "http://ok.test:8099@other.test:8099/f"), ("backslash", "http://ok.test:8099\\@other.test/f"),
                         ("fragment", "http://ok.test:8099#@other.test/f"), ("no-authority", "http:///ok.test:8099/f"), ("two-dots", "http://ok.test..:8099/f"),
                         ("letters", "http://\u00f6k.test:8099/f"), ("wide-dot", "http://ok\u3002test:8099/f"), ("https", "https://ok.test:8099/f"), ("ftp", "ftp://ok.test:8099/f"),
                         ("origin", "/f"), ("all", "*")):
        yield "target-" + name, request(target, re.sub("^[a-z]+://|/f$", "", target))
    for name, more in (("two-lengths", "Content-Length: 3\r\nContent-Length: 3\r\n"), ("length-and-chunks", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"),
                       ("plus", "Content-Length: +3\r\n"), ("list", "Content-Length: 3, 3\r\n"), ("tab-in-encoding", "Transfer-Encoding:\x0bchunked\r\n"),
                       ("two-encodings", "Transfer-Encoding: chunked\r\nTransfer-encoding: identity\r\n"), ("gzip", "Transfer-Encoding: gzip, chunked\r\n"),
                       ("folded", "X: a\r\n Host: other.test:8099\r\n"), ("bare-cr", "X: a\rHost: other.test:8099\r\n"), ("bare-lf", "X: a\nHost: other.test:8099\r\n"),
                       ("nul", "X: a\0b\r\n"), ("space-before-colon", "X : a\r\n"), ("no-colon", "X\r\n"), ("two-hosts", "Host: ok.test:8099\r\n"),
                       ("host-is-of-the-hop", "Connection: Host\r\n"), ("length-is-of-the-hop", "Content-Length: 0\r\nConnection: close, content-length\r\n")):
        yield "field-" + name, request(more=more, body=b"abc")
    yield "http2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield "connect-to-a-path", b"CONNECT /f HTTP/1.1\r\nHost: ok.test:8099\r\n\r\n"


def addresses():
    """This machine, its neighbours and its cloud, in each spelling."""
    for a in ("169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "0.0.0.0", "0", "127.1", "0x7f000001", "0177.0.0.1", "2130706433",
              "127.0.0.1", "127.0.0.1.", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[2002:7f00:1::]", "localhost", "localhost.", "a.localhost", "[fe80::1]", "[fe80::1%25lo]",
              "metadata.google.internal", "10.77.0.7", "[::ffff:10.77.0.7]", "[::ffff:0:10.77.0.7]", "255.255.255.255", "224.0.0.1", "[ff02::1]", "240.0.0.1", "100.100.100.200", "[fd00:ec2::254]",
              "198.18.255.254", "[fd5a::1:0:0]"):
        yield a, f"CONNECT {a}:8097 HTTP/1.1\r\nHost: {a}:8097\r\n\r\nGET /f HTTP/1.1\r\nHost: ok.test\r\n\r\n".encode()


def socks():
    def five(command, kind, address, port=8099, reserved=0):
        return b"\5\1\0" + bytes([5, command, reserved, kind]) + address + struct.pack(">H", port)

    def four(command, address, rest, port=8099):
        return bytes([4, command]) + struct.pack(">H", port) + bytes(address) + rest
    ok = b"\7ok.test"
    for name, data in (("bind", five(2, 3, ok)), ("udp", five(3, 3, ok)), ("resolve", five(0xF0, 3, ok)), ("no-command", five(0, 3, ok)), ("nul", five(1, 3, b"\x0aok.test\0ab")),
                       ("empty", five(1, 3, b"\0")), ("number-as-a-name", five(1, 3, b"\x09127.0.0.1", 8097)), ("metadata", five(1, 1, b"\xa9\xfe\xa9\xfe", 80)),
                       ("metadata-mapped", five(1, 4, bytes(10) + b"\xff\xff\xa9\xfe\xa9\xfe", 80)), ("any", five(1, 1, bytes(4), 8097)), ("reserved", five(1, 3, ok, reserved=1)),
                       ("kind", five(1, 9, ok)), ("no-port", five(1, 3, ok, 0))):
        yield "5-" + name, data, SOCKS5
    for name, data in (("bind", four(2, (0, 0, 0, 1), b"u\0ok.test\0")), ("loopback", four(1, (127, 0, 0, 1), b"u\0", 8097)), ("localhost", four(1, (0, 0, 0, 1), b"u\0localhost\0", 8097)),
                       ("not-allowed", four(1, (0, 0, 0, 1), b"\0other.test\0"))):
        yield "4-" + name, data, SOCKS4


def longest():
    """The refusal of the longest name is whole, and nothing comes behind it."""
    name = ".".join(c * n for c, n in (("a", 63), ("b", 63), ("c", 63), ("d", 61)))
    for how, data, port in (("connect", f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n", 443), ("get", f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n", 80)):
        said = f"{name}:{port} is not allowed"
        yield how, data.encode(), rf"\AHTTP/1\.1 403 .*X-Pinfold: {said}\r\nContent-Length: {len(said) + 10}\r\n\r\npinfold: {said}\n\Z".encode()


def query(name, kind=1, code=b"\1\0", questions=1, group=1, raw=None, more=b""):
    raw = raw or b"".join(bytes([len(part)]) + part for part in name.split(b".") if part) + b"\0"
    return b"\x12\x34" + code + struct.pack(">HHHH", questions, 0, 0, 0) + raw + struct.pack(">HH", kind, group) + more


def questions():
    """No answer has anything but an address of an allowed name; nothing else is asked of anybody."""
    none, no_name, no, silence = rb"\A\x12\x34\x81\x80..\0\0", rb"\A\x12\x34\x81\x83..\0\0", rb"\A\x12\x34.\x84\0\0\0\0", rb"\A\Z"
    for name, data, like in (("text", query(b"ok.test", 16), none), ("any", query(b"ok.test", 255), none), ("transfer", query(b"ok.test", 252), none), ("service", query(b"ok.test", 65), none),
                             ("below", query(b"c2VjcmV0." + b"x" * 60 + b".ok.test"), no_name), ("null", query(b"c2VjcmV0.ok.test", 10), no_name), ("chaos", query(b"version.bind", 16, group=3), no_name),
                             ("reverse", query(b"1.0.0.127.in-addr.arpa", 12), no_name), ("root", query(b"", raw=b"\0"), no_name), ("dot-in-a-label", query(b"", raw=b"\7ok.test\0"), no_name),
                             ("two", query(b"ok.test", questions=2, more=b"\7ok.test\0\0\1\0\1"), no), ("update", query(b"ok.test", code=b"\x28\0"), no), ("loop", query(b"", raw=b"\xc0\x0c"), silence),
                             ("to-itself", query(b"", raw=b"\1a\xc0\x0e"), silence), ("long", query(b"", raw=(b"\x3f" + b"a" * 63) * 5 + b"\0"), silence), ("answer", query(b"ok.test", code=b"\x81\0"), silence)):
        for kind in ("udp", "tcp"):
            yield kind, f"{name}-by-{kind}", data, like


def run(t):
    rows = [("proxy", "head/" + name, data, BAD) for name, data in heads()]
    rows += [("proxy", "address/" + name, data, NO) for name, data in addresses()]
    rows += [("proxy", "longest/" + name, data, like) for name, data, like in longest()]
    rows += [("proxy", "socks/" + name, data, like) for name, data, like in socks()]
    rows += [(kind, "dns/" + name, data, like) for kind, name, data, like in questions()]
    rows += [("proxy", "afterwards/proxy", GOOD, rb"\AHTTP/1\.1 200 .*hello\n\Z"), ("udp", "afterwards/resolver", query(b"ok.test"), rb"\A\x12\x34\x81\x80\x00\x01\x00\x01.*\xc6\x12..\Z")]
    done = subprocess.run([t.pinfold, "run", "-q", "--workspace", ".", *t.allow, "--", "python3", HERE + "/odd.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=600, check=False,
                          input="".join(f"{kind} {data.hex()}\n" for kind, _, data, _ in rows).encode())
    answers = done.stdout.decode().split()
    for i, (_, name, _, like) in enumerate(rows):
        answer = b"" if i >= len(answers) or answers[i] == "-" else bytes.fromhex(answers[i])
        t.report("odd/" + name, i < len(answers) and re.search(like, answer, re.DOTALL) is not None, answer[:300])
