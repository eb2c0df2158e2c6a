"""Ways to catch connections without nf_tables, and the proxy's socket where there are no namespaces.

What a way cannot do is refused before the command starts, or a loss that the result names.
"""
import errno
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BARE = "curl --noproxy '*' -sS -m 60 "
PORTS = ["--allow", "ok.test:8099"]
LANDLOCK = ["unshare", "--user", "--map-root-user", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"", "sh"]
OUTSIDE = {name: value for name, value in os.environ.items() if name != "PINFOLD"}  # with it and a filter, this would be a box
WITHOUT_NFT = ["python3", HERE + "/without_nft.py"]


def run(t):
    for way in ("tproxy", "routes", "loopback"):
        caught(t, way)
    chosen(t)
    doctor(t)
    socket_only(t)
    alone(t)


def ask(t, flags, command, before=(), seconds=90):
    """Status, output and result of one box started below the command `before`."""
    if os.path.exists("result"):
        os.unlink("result")
    done = subprocess.run([*before, t.pinfold, "run", "-q", "--workspace", ".", "--result", "result", *flags, "--", "sh", "-c", command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=OUTSIDE, timeout=seconds, check=False)
    result = {}
    if os.path.exists("result"):
        with open("result", encoding="utf-8") as text:
            result = json.load(text)
    return done.returncode, done.stdout.decode("utf-8", "replace"), result


def caught(t, way):
    flags = ["--net-catch", way, *PORTS]
    exact = [] if way == "loopback" else t.exact
    lose = ["--may-lose", "network-ports"]
    if way == "loopback":
        lose += ["--may-lose", "network-addresses"]
    own = [*flags, *t.exact, *lose]  # the server is at an address of this machine, which takes a rule for that address

    def check(name, ok, *why):
        t.report(f"fallbacks/{way}-{name}", ok, why)

    _, out, result = ask(t, own, BARE + "http://ok.test:8099/f; getent ahosts ok.test")
    check("reaches-a-name", "hello" in out, out[-2000:])
    word = {"tproxy": "nftables", "routes": "local routes", "loopback": "127.64.0.0/10"}[way]
    check("is-in-the-result", word in result.get("enforced", {}).get("network-transparent", ""), result.get("enforced"))
    lost = result.get("lost", [])
    check("losses-are-named", ("network-ports" in lost) == (way != "tproxy") and ("network-addresses" in lost) == (way == "loopback"), lost)
    check("stands-in", ("127.64." in out) == (way == "loopback") and ("198.18." in out) == (way != "loopback"), out[-2000:])
    if exact:
        _, out, _ = ask(t, [*flags, *exact, *lose, "--allow", f"{t.public}:8099"], BARE + f"http://{t.public}:8099/f")
        check("reaches-an-address", "hello" in out, out[-2000:])
    for name, command in (("name", BARE + "http://other.test:8099/f"), ("address", BARE + "http://10.77.0.7:8099/f"),
                          ("unlisted-port", BARE + "http://ok.test:8098/"), ("loopback-of-the-host", BARE + "http://127.0.0.1:8099/f"),
                          ("stand-in-of-no-name", BARE + "http://198.18.200.1:8099/f; " + BARE + "http://127.64.200.1:8099/f"),
                          ("host-field", BARE + "-H 'Host: other.test' http://ok.test:8099/f")):
        _, out, _ = ask(t, own, f"{command}; echo \"== $?\"")
        check("refuses-" + name, "hello" not in out and "== 28" not in out and "curl: (" in out, out[-2000:])
    _, out, _ = ask(t, own, "timeout 10 python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 443))\"; echo \"== $?\"")
    check("refuses-udp-at-once", "Error" in out and "== 124" not in out, out[-2000:])
    _, out, _ = ask(t, own, "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.sendto(b'hello', s.getsockname()); print(s.recv(9))\"")
    check("leaves-udp-of-the-box-alone", "hello" in out, out[-2000:])
    _, out, _ = ask(t, own, "curl -sS -m 60 http://ok.test:8099/f; curl -sS -m 60 http://other.test:8099/f")
    check("has-the-proxy", "hello" in out and "403" in out or "not allowed" in out, out[-2000:])
    _, out, _ = ask(t, [*own, "--reach", "127.0.0.1:8099"], BARE + "http://127.0.0.1:8099/f; " + BARE + "http://ok.test:8099/g")
    check("has-reach-at-the-same-port", "hello" in out and "first" in out, out[-2000:])
    _, out, _ = ask(t, own, "echo hello > h; python3 -m http.server 8123 --bind 127.0.0.1 2>/dev/null & sleep 1; " + BARE + "--retry-connrefused --retry 5 http://localhost:8123/h; rm h")
    check("leaves-localhost-alone", "hello" in out, out[-2000:])
    status, out, _ = ask(t, ["--net-catch", way, "--allow", "ok.test", *exact], "true")
    check("every-port", status == 0 if way == "tproxy" else status == 125 and "--may-lose network-ports" in out and "--allow HOST:443" in out, status, out[-2000:])
    status, out, _ = ask(t, [*flags, "--allow", "10.0.0.0/8:443"], "true")
    check("addresses", status == 125 and "network-addresses" in out if way == "loopback" else status == 0, status, out[-2000:])


def chosen(t):
    """Where nf_tables is missing the next way is found by itself, and said."""
    _, out, result = ask(t, [*PORTS, *t.exact, "--may-lose", "network-ports"], BARE + "http://ok.test:8099/f", WITHOUT_NFT)
    t.report("fallbacks/chosen-by-itself", "hello" in out and "local routes" in result.get("enforced", {}).get("network-transparent", ""), (out[-2000:], result))
    status, out, _ = ask(t, t.allow, "true", WITHOUT_NFT)
    t.report("fallbacks/never-weaker-silently", status == 125 and "nf_tables" in out and "--may-lose network-ports" in out, (status, out))
    status, out, _ = ask(t, ["--net-catch", "tproxy", *t.allow], "true", WITHOUT_NFT)
    t.report("fallbacks/what-was-asked-for-or-nothing", status == 125 and "catch" in out, (status, out))
    done = subprocess.run([*WITHOUT_NFT, t.pinfold, "doctor"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=OUTSIDE, check=False)
    t.report("fallbacks/doctor-tells", b"local routes" in done.stdout, done.stdout[-2000:])


def doctor(t):
    """doctor --verify tries a box with a network, also where connections are caught in another way."""
    for name, before in (("", []), ("-without-nft", WITHOUT_NFT)):
        done = subprocess.run([*before, t.pinfold, "doctor", "--verify", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=OUTSIDE, check=False)
        held = {a["attack"]: a["held"] for a in json.loads(done.stdout)["attacks"] if a["attack"].startswith("net-")}
        t.report("fallbacks/doctor-verifies" + name, len(held) == 6 and set(held.values()) == {"held"}, held)


def socket_only(t):
    """Without namespaces there are no inet sockets; a proxy at a Unix socket serves programs that can use one."""
    status, out, _ = ask(t, t.allow, "true", LANDLOCK)
    t.report("fallbacks/landlock-takes-a-loss", status == 125 and "--may-lose network-transparent" in out, (status, out))
    flags = [*t.allow, "--may-lose", "network-transparent"]
    _, out, result = ask(t, flags, "curl -sS -m 60 http://ok.test:8099/f", LANDLOCK)
    t.report("fallbacks/landlock-proxy-at-a-socket", "hello" in out, out[-2000:])
    t.report("fallbacks/landlock-loss-is-named", "network-transparent" in result.get("lost", []) and "Unix socket" in result.get("enforced", {}).get("network", ""), result)
    _, out, result = ask(t, flags, "curl -sS -m 60 http://other.test:8099/f", LANDLOCK)
    denied = [d["target"] for d in result.get("denials", [])]
    t.report("fallbacks/landlock-refuses", "hello" not in out and "curl: (97)" in out and "other.test:8099" in denied, (out[-2000:], denied))
    for name, command in (("name", BARE + "http://ok.test:8099/f"), ("address", BARE + f"http://{t.public}:8099/f"), ("loopback", BARE + "http://127.0.0.1:8099/f")):
        _, out, _ = ask(t, flags, command, LANDLOCK)
        t.report("fallbacks/landlock-nothing-past-it-by-" + name, "hello" not in out and "curl: (" in out, out[-2000:])
    left = os.path.expanduser(os.environ.get("XDG_STATE_HOME") or "~/.local/state") + "/pinfold/tmp"
    t.report("fallbacks/landlock-leaves-no-socket", not os.path.isdir(left) or not os.listdir(left), left)


def alone(t):
    """Stand-ins in 127/8 hold a box only where nothing leads out: routes of each kind are noticed."""
    program = os.path.join(os.environ["PINFOLD_HOST_BUILD"], "tests/egress/alone")
    for name, setup, expect in (("bare", "true", 0), ("loopback", "ip link set lo up; ip addr add 198.19.255.254/32 dev lo", 0),
                                ("refusing-routes", "ip link set lo up; ip route add unreachable 10.0.0.0/8; ip -6 route add blackhole 2001:db8::/32", 0),
                                ("default-route", "ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up && ip addr add 10.1.1.1/24 dev d0 && ip route add default via 10.1.1.2", errno.ENOTUNIQ),
                                ("one-host-v6", "ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up && ip -6 route add 2001:db8::1/128 dev d0", errno.ENOTUNIQ),
                                ("other-table", "ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up && ip route add 10.2.0.0/16 dev d0 table 77", errno.ENOTUNIQ)):
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "sh", "-c", f"{{ {setup}; }} >&2; \"$0\"", program],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        t.report("fallbacks/alone-" + name, done.stdout.decode().strip() == str(expect), (done.stdout, done.stderr))
