"""In the box: sends each line's bytes (hexadecimal: to the proxy, or to the resolver by UDP and TCP) and prints what comes back."""
import concurrent.futures
import socket
import struct
import sys


def stream(address, port, data):
    got = b""
    with socket.create_connection((address, port), timeout=20) as s:
        s.settimeout(3)
        try:
            s.sendall(data)
            while more := s.recv(65536):
                got += more
        except OSError:
            pass
    return got


def datagram(address, data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect((address, 53))
        s.send(data)
        try:
            return s.recv(65536)
        except OSError:
            return b""


with open("/etc/resolv.conf", encoding="ascii") as text:
    resolver = next(line.split()[1] for line in text if line.startswith("nameserver"))


def answer(line):
    kind, data = line.split()
    data = bytes.fromhex(data)
    if kind == "proxy":
        return stream("127.0.0.1", 61080, data)
    return datagram(resolver, data) if kind == "udp" else stream(resolver, 53, struct.pack(">H", len(data)) + data)[2:]


lines = sys.stdin.readlines()
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    for said in pool.map(answer, lines[:-2]):
        print(said.hex() or "-", flush=True)
for last in lines[-2:]:
    print(answer(last).hex() or "-", flush=True)
