"""daycare's Docker runtime: its settings, the mapping of paths, one box for each user, and srt's settings in it. What needs docker itself is
in tests/seeds/containers."""
import json
import os

import pf
import rows

DOC = rows.Document("daycare")
row = DOC.row

SETTINGS = """{
    "docker": {
        "enabled": true,
        "image": "daycare-sandbox",
        "tag": "latest",
        "socketPath": "/var/run/docker.sock",
        "runtime": "runsc"
    }
}
"""
HOST = SETTINGS.replace("true", "false")
FROM = "--from daycare --settings {path}/settings.json"
MAP = "--workspace {path}/users/u1/home --mount {path}/users/u1/home:/home/u1 --env HOME=/home/u1"


def said(text=SETTINGS):
    return {"settings.json": text}


# ---- settings: valid, missing, partial
row("settings", "policy convert --from daycare {path}/settings.json", 0,
    ("^engine: docker$", r'^image: "daycare-sandbox:latest"$', "^runtime: runsc$", r'^docker_host: "?/var/run/docker\.sock"?$'), files=said())
row("settings-partial", "policy convert --from daycare {path}/settings.json", 0, ("^engine: docker$", r'^image: "daycare-sandbox:latest"$'), "runtime|docker_host", files=said('{"docker": {"enabled": true}}'))
row("settings-missing", "run " + FROM + " -- echo boxed", 0, "^boxed$", files=said("{}"))
row("settings-disabled-is-the-host's-sandbox", "run -v " + FROM + " -- echo boxed", 0, ("^boxed$", "pinfold: native;"), files=said(HOST))
row("settings-of-a-wrong-type", "run " + FROM + " -- true", 125, r"settings\.json:3:20: docker\.enabled must be true or false, not 'yes'", files=said(SETTINGS.replace("true", '"yes"')))
row("settings-misspelt", "run " + FROM + " -- true", 125, r"unknown key 'docker\.imag' \(did you mean 'image'\?\)", files=said(SETTINGS.replace('"image"', '"imag"')))
row("socket-path-wins-over-docker-host", "run " + FROM + " -- true", 125, r"docker.*{path}/their\.sock", r"caller\.sock", needs="docker",
    files=said(SETTINGS.replace("/var/run/docker.sock", "{path}/their.sock")), env={"DOCKER_HOST": "unix://{path}/caller.sock"})
row("socket-path-as-it-stands-wins-too", "run " + FROM + " -- true", 125, r"docker", r"caller\.sock", files=said(SETTINGS.replace('"runtime": "runsc"', '"tag": "seeds-nowhere"').replace('"tag": "latest",', "")),
    env={"DOCKER_HOST": "unix://{path}/caller.sock"})

# ---- the mapping of paths, and one box for each user
START = "session start daycare-sandbox-u1 " + FROM + " " + MAP
FILES = {**said(HOST), "users/u1/home/desktop/project/file.ts": "text\n"}
HOME = "{path}/users/u1/home"


@DOC.check
def path_mapping(scene):
    """Host: <homeDir>/desktop/project/file.ts; box: /home/<userId>/desktop/project/file.ts; outside of it unchanged."""
    for name, text in FILES.items():
        scene.put(name, text)
    home = scene.fill(HOME)
    started = scene.pinfold(*scene.fill(START).split())
    try:
        if started.status:
            return started.said()
        for words, wanted in ((("path", "to-box", "daycare-sandbox-u1", home + "/desktop/project/file.ts"), "/home/u1/desktop/project/file.ts"),
                              (("path", "to-host", "daycare-sandbox-u1", "/home/u1/desktop/project/file.ts"), home + "/desktop/project/file.ts"),
                              (("path", "to-box", "daycare-sandbox-u1", "/etc/hosts"), "/etc/hosts"),
                              (("path", "to-host", "daycare-sandbox-u1", "/home/u10/x"), "/home/u10/x"),
                              (("path", "to-host", "daycare-sandbox-u1", "/home/u1"), home),
                              (("exec", "daycare-sandbox-u1", "--", "cat", "/home/u1/desktop/project/file.ts"), "text"),
                              (("exec", "--cwd", "/home/u1/desktop", "daycare-sandbox-u1", "--", "pwd"), "/home/u1/desktop"),
                              (("exec", "daycare-sandbox-u1", "--", "sh", "-c", "echo $HOME"), "/home/u1"),
                              (("cat", "daycare-sandbox-u1:/home/u1/desktop/project/file.ts"), "text")):
            got = scene.pinfold(*words)
            if got.status or got.out.decode().strip() != wanted:
                return f"{words}: not {wanted}: {got.said()}"
        wrote = scene.pinfold("write", "daycare-sandbox-u1:/home/u1/desktop/new", stdin=b"by the host")
        if wrote.status or pf.read(home + "/desktop/new") != b"by the host":
            return wrote.said()
        out = scene.pinfold("cat", "daycare-sandbox-u1:/home/u1/../../etc/shadow")
        return "" if out.status else "a path left the home: " + out.said()
    finally:
        scene.pinfold("session", "rm", "daycare-sandbox-u1")


@DOC.check
def lazily_and_once(scene):
    """The box of a user is created by the first exec and used by the next, and users have boxes of their own."""
    for name, text in FILES.items():
        scene.put(name, text)
    scene.put("users/u2/home/theirs", "")
    words = scene.fill(FROM).split()

    def run(user, *command):
        home = f"{scene.path}/users/{user}/home"
        return scene.pinfold("run", "--session", "daycare-sandbox-" + user, *words, "--workspace", home, "--mount", f"{home}:/home/{user}", "--env", f"HOME=/home/{user}", "--", *command)
    try:
        if run("u1", "touch", "/tmp/kept").status:
            return "no first exec"
        again = run("u1", "sh", "-c", "ls /tmp/kept; ls /home/u1")
        if again.out != b"/tmp/kept\ndesktop\n":
            return again.said()
        other = run("u2", "sh", "-c", "ls /tmp/kept /home/u1 " + scene.path + "/users/u1; ls /home/u2; touch " + scene.path + "/users/u1/home/x")
        if b"theirs" not in other.out or b"kept\n" in other.out or os.path.exists(scene.path + "/users/u1/home/x"):
            return other.said()
        listed = scene.pinfold("session", "list", "--names")
        return "" if sorted(listed.out.split()) == [b"daycare-sandbox-u1", b"daycare-sandbox-u2"] else listed.said()
    finally:
        scene.pinfold("session", "rm", "daycare-sandbox-u1")
        scene.pinfold("session", "rm", "daycare-sandbox-u2")


# ---- srt's settings: those of the user, with paths of the host, and those of the container
SRT = json.dumps({"filesystem": {"denyRead": [], "allowWrite": ["{path}/users/uid/home", "{path}/users/uid/home/desktop"], "denyWrite": ["{path}/users/uid/home/desktop/kept"]},
                  "network": {"allowedDomains": [], "deniedDomains": []}})
UID = "--workspace {path}/users/uid/home --mount {path}/users/uid/home:/home/uid --env HOME=/home/uid --settings {path}/srt.json"
SRT_FILES = {"srt.json": SRT, "users/uid/home/desktop/kept/f": "x\n"}
row("srt-paths-are-the-box's-inside", "run " + UID + " -- sh -c 'touch /home/uid/a /home/uid/desktop/b && echo both; touch /home/uid/desktop/kept/c; exit 3'", 3, (r"^both$", r"kept/c"),
    files=SRT_FILES, cwd="{path}/users/uid/home", after="test -e ../users/uid/home/a && test -e ../users/uid/home/desktop/b && test ! -e ../users/uid/home/desktop/kept/c || echo 'not on the host'")
row("settings-of-user-and-container-layer", "run " + UID + " --settings {path}/tighter.json -- sh -c 'cat /home/uid/desktop/kept/f; touch /home/uid/a; exit 3'", 3, r"Permission denied", r"^x$",
    files={**SRT_FILES, "tighter.json": json.dumps({"filesystem": {"denyRead": ["{path}/users/uid/home/desktop/kept"], "allowWrite": ["{path}/users/uid/home"]}})}, cwd="{path}/users/uid/home")
row("srt-settings-leave-no-file", "run " + UID + " -- sh -c 'ls -A /home/uid'", 0, "^desktop$", r"tmp|srt-", files=SRT_FILES, cwd="{path}/users/uid/home")
row("deny-read-of-all-with-allow-read", "run --settings {path}/deny.json -- sh -c 'cat ok; touch new && echo made; ls /opt /srv {home}; exit 3'", 3, (r"^in$", r"^made$", r"{home}'?: (Permission|No such)"),
    files={"deny.json": json.dumps({"filesystem": {"denyRead": ["/"], "allowRead": ["/usr", "/bin", "/lib", "/lib64", "/etc", "."], "allowWrite": ["."], "denyWrite": []}, "network": {"allowedDomains": [], "deniedDomains": []}}),
           "work/ok": "in\n"})
row("allow-write-of-all-is-refused", "run --settings {path}/all.json -- true", 125, r"all\.json:1:\d+: files\.rw: '/' is the whole file system; name directories below it", files={"all.json": '{"filesystem": {"denyRead": [], "allowWrite": ["/"], "denyWrite": []}}'})
row("inspecting-proxy-is-named", "run --settings {path}/mitm.json -- true", 0, (r"not enforced: network\.mitmProxy \({path}/mitm\.json:", r"network\.httpProxyPort"),
    files={"mitm.json": '{"network": {"allowedDomains": ["a.test"], "deniedDomains": [], "mitmProxy": {"socketPath": "/x", "domains": ["a.test"]}, "httpProxyPort": 8080}, "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}'})
