"""mycode's proposal 0034: SandboxConfig as its manager has it, the result's fields, what a user sees, and the limits."""
import json

import pf
import rows

DOC = rows.Document("mycode")
row = DOC.row

# The manager's constructor, in JSON, but for `enabled`, which is the user's.
DEFAULT = """{
  "type": "docker",
  "enabled": true,
  "limits": {"cpuPercent": 50, "memoryMB": 512, "diskMB": 1024, "timeoutSeconds": 60, "maxProcesses": 50},
  "network": {"enabled": false},
  "filesystem": {
    "readOnly": ["/"],
    "readWrite": ["/tmp"],
    "hidden": ["/etc/passwd", "/etc/shadow"],
    "tempDir": "/tmp/mycode-sandbox"
  }
}
"""
SETTINGS = "--from mycode --settings {path}/mycode.json"
NATIVE = "run --engine native " + SETTINGS + " -- "


def said(text=DEFAULT):
    return {"mycode.json": text}


# ---- the default configuration, by the engine that every machine has
row("default-project-is-read-only", NATIVE + "touch new", 1, r"Read-only file system|read-only in this box \({path}/mycode\.json:", files=said())
row("default-root-is-read-only", NATIVE + "sh -c 'touch /usr/x /etc/x 2>&1; exit 3'", 3, (r"/usr/x", r"/etc/x"), files=said())
row("default-tmp-is-writable-and-private", NATIVE + "sh -c 'echo x >/tmp/seeds-mycode && cat /tmp/seeds-mycode'", 0, "^x$", files=said(),
    after="test ! -e /tmp/seeds-mycode || echo 'it is on the host'")
row("default-hidden", NATIVE + "sh -c 'cat /etc/passwd /etc/shadow; exit 3'", 3, never=r"root:", files=said())
row("default-temporary-directory", NATIVE + "sh -c 'echo $TMPDIR; touch /tmp/mycode-sandbox/made; mktemp'", 0,
    (r"^/tmp/mycode-sandbox$", r"^/tmp/mycode-sandbox/tmp\."), files=said(), after="test ! -e /tmp/mycode-sandbox/made || echo 'it is on the host'")
row("default-no-network", NATIVE + "sh -c 'cat /proc/net/dev | grep -v lo: | grep -c :'", 1, "^0$", files=said())
row("default-image", "policy convert --from mycode {path}/mycode.json", 0, (r"^engine: docker$", r'^image: "ubuntu:22\.04"$', r"^workspace_read_only: true$"), files=said())
row("nothing-but-enabled-is-the-default", "policy convert --from mycode {path}/mycode.json", 0,
    (r"^engine: docker$", r'^image: "ubuntu:22\.04"$', r"^workspace_read_only: true$", r"/tmp/mycode-sandbox$", r"^  memory: 512M$", r"^  pids: 50$",
     r"^  disk: 1G$", r"^  timeout: 1m$", r"^  cpus: 0\.5", r"- /etc/passwd$", r"^  mode: none$"), files=said('{"enabled": true}'))
row("project-in-read-write", NATIVE + "sh -c 'touch new; touch ../beside'", 1, r"beside.*Read-only|outside the workspace",
    files=said(DEFAULT.replace('"/tmp"]', '"/tmp", "{work}"]')), after="test -e new || echo 'not written'")

# ---- `Sandbox not enabled` is an error, and not a bare run
row("disabled-is-an-error", NATIVE + "touch new", 125, r"mycode\.json:3:14: enabled is false: pinfold never runs a command without a box",
    files=said(DEFAULT.replace('"enabled": true', '"enabled": false', 1)), after="test ! -e new || echo 'it ran'")
row("unknown-type", NATIVE + "true", 125, r"mycode\.json:2:11: type must be docker, firejail, nsjail or vm, not 'chroot'", files=said(DEFAULT.replace('"docker"', '"chroot"')))

# ---- SandboxType, each
row("type-docker-is-refused-by-name-where-it-cannot-be", "run " + SETTINGS + " --docker-host {path}/nothing.sock -- true", 125, r"^pinfold: docker", files=said())
row("type-firejail", "run " + SETTINGS + " -- sh -c 'touch /tmp/x && echo boxed'", 0, r"^boxed$", files=said(DEFAULT.replace('"docker"', '"firejail"').replace('"diskMB": 1024, ', "")),
    needs="firejail")
row("type-nsjail-or-its-name", "run " + SETTINGS + " -- echo boxed", 0 if not pf.have("nsjail") else 125, "boxed" if not pf.have("nsjail") else r"nsjail", files=said(DEFAULT.replace('"docker"', '"nsjail"')))
row("profile-for-firejail-is-named", NATIVE + "true", 0, r"not enforced: profile \({path}/mycode\.json:2:\d+: firejail profiles cannot be used\)",
    files=said(DEFAULT.replace('"docker",', '"firejail", "profile": "default",')))

# ---- ResourceLimits
row("memory", NATIVE + "python3 -c 'x = b\"x\" * (1 << 30)'", 137, r"memory: the box used more than 512M", files=said(), needs="python3")
row("processes", NATIVE + "sh -c 'i=0; while [ $i -lt 80 ]; do sleep 90 & i=$((i + 1)); done; wait; echo all'", 137, r"processes: the box made more than 50", files=said())
row("timeout", "run --engine native " + SETTINGS + " --timeout 1s -- sleep 110", 124, r"timeout: the command ran longer than 1\.0 s", files=said())
row("disk", NATIVE + "sh -c 'head -c 40M /dev/zero >/tmp/big; exit 3'", 3, r"No space left|disk: the box", files=said(DEFAULT.replace("1024", "16")), alone=True)
row("processor", NATIVE + "python3 -c 'import time\nb = time.process_time(); e = time.monotonic() + 2\nwhile time.monotonic() < e: pass\nprint(\"half\" if time.process_time() - b < 1.5 else \"more\")'",
    0, "^half$", files=said(), needs="python3")

# ---- NetworkPolicy
row("allowed-hosts", "explain --engine native " + SETTINGS, 0, r"It reaches  only a\.test", files=said(DEFAULT.replace('{"enabled": false}', '{"enabled": true, "allowedHosts": ["a.test"]}')))
row("no-allowed-hosts-is-none", "explain --engine native " + SETTINGS, 0, r"It reaches  only nothing: no host is allowed\.", files=said(DEFAULT.replace('{"enabled": false}', '{"enabled": true, "allowedHosts": []}')))
row("blocked-ports", "policy convert --from mycode {path}/mycode.json", 0, (r"^  deny_ports:", r'^ +- "?25"?$'), files=said(DEFAULT.replace('{"enabled": false}', '{"enabled": true, "blockedPorts": [25]}')))

# ---- what people see
row("header-and-summary", "run -v --engine native " + SETTINGS + " -- true", 0, (r"pinfold: native; network none; .*512M", r"pinfold: exit 0; .*wall, .*cpu, "), files=said())
row("limit-exceeded-says-so", NATIVE + "python3 -c 'import os\nfor i in range(4):\n  os.fork() or 0\nx = b\"x\" * (1 << 30)'", 137, r"memory: the box used more than 512M", files=said(), needs="python3")


@DOC.check
def sandbox_result(scene):
    """SandboxResult: success, stdout, stderr, exitCode, resourceUsage{cpuTime, memoryPeak, wallTime}."""
    scene.put("mycode.json", DEFAULT)
    done = scene.pinfold("run", "--json", "--engine", "native", "--from", "mycode", "--settings", scene.path + "/mycode.json", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    try:
        found = json.loads(done.out)
    except ValueError:
        return done.said()
    wanted = {"success": False, "stdout": "out\n", "stderr": "err\n", "exit_code": 3}
    if any(found[key] != value for key, value in wanted.items()):
        return str(found)
    return "" if {"cpu_ms", "peak_bytes", "wall_ms"} <= set(found["usage"]) and found["usage"]["peak_bytes"] > 0 else str(found["usage"])


@DOC.check
def bash_tool(scene):
    """executeInSandbox(command, {cwd, timeout}): the directory is the caller's, the timeout the call's."""
    scene.put("mycode.json", DEFAULT)
    scene.put("work/sub/there", "")
    words = ["run", "--json", "--engine", "native", "--from", "mycode", "--settings", scene.path + "/mycode.json", "--cwd", scene.work + "/sub"]
    here = json.loads(scene.pinfold(*words, "--", "sh", "-c", "pwd; ls").out)
    late = json.loads(scene.pinfold(*words, "--timeout", "500ms", "--", "sleep", "110").out)
    if here["stdout"] != scene.work + "/sub\nthere\n":
        return str(here)
    return "" if late["ended"] == "timeout" and late["usage"]["wall_ms"] >= 500 else str(late)


@DOC.check
def npm_install_and_test(scene):
    """The example of a sandboxed execution, with the project among what can be written, and no network."""
    if pf.have("npm"):
        return ""
    scene.put("mycode.json", DEFAULT.replace('"/tmp"]', '"/tmp", "{work}"]'))
    scene.put("work/package.json", '{"name": "x", "version": "1.0.0", "dependencies": {"y": "file:./y"}, "scripts": {"test": "node -e \\"require(\'y\')\\""}}')
    scene.put("work/y/package.json", '{"name": "y", "version": "1.0.0"}')
    scene.put("work/y/index.js", "console.log('tested')\n")
    done = scene.pinfold("run", "--engine", "native", "--from", "mycode", "--settings", scene.path + "/mycode.json", "--memory", "2G", "--pids", "200", "--", "sh", "-c", "npm install && npm test")
    return "" if done.status == 0 and "tested" in done.text() else done.said()
