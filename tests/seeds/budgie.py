"""Budgie's sandbox: an MCP server whose tools are agents, each in a box of its own for each session. The agent is tests/mcp/bin/kiro-cli, with
the command line and the database of kiro-cli; what needs docker is in tests/seeds/containers."""
import json
import os
import shutil
import sqlite3
import sys

import pf
import rows

sys.path.insert(0, os.path.join(pf.SOURCE, "tests/mcp"))
import client  # noqa: E402

DOC = rows.Document("budgie")
row = DOC.row

SCHEMA = """
CREATE TABLE conversations_v2 (
    key TEXT NOT NULL,           -- working directory path
    conversation_id TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (key, conversation_id)
);

CREATE TABLE auth_kv (
    key TEXT PRIMARY KEY,
    value TEXT
);
"""
# An agent that a person defines, with the document's command line: kiro-cli chat --agent <name> --no-interactive [--resume] '<prompt>'
DEFINITION = """title: My agent
command: [kiro-cli, chat, --no-interactive]
profile: [--agent, "{profile}"]
resume: [--resume]
prompt: ["{prompt}"]
text: "In directory {directory}, {prompt}"
state:
  - name: data
    at: ~/.local/share/kiro-cli
    linux: ~/.local/share/kiro-cli
    macos: ~/Library/Application Support/kiro-cli
    databases:
      - file: data.sqlite3
        refresh: [auth_kv]
read_only: [~/.kiro]
"""


def login(scene, token):
    place = scene.home + "/.local/share/kiro-cli"
    new = not os.path.exists(place)
    os.makedirs(place, exist_ok=True)
    db = sqlite3.connect(place + "/data.sqlite3")
    if new:
        db.executescript(SCHEMA)
    db.execute("INSERT OR REPLACE INTO auth_kv VALUES ('token', ?)", (token,))
    db.commit()
    db.close()
    scene.user.own(scene.home)


def server(scene, *words, hello=True, program=True):
    place = scene.path + "/bin"
    os.makedirs(place, exist_ok=True)
    if program:
        shutil.copy(os.path.join(pf.SOURCE, "tests/mcp/bin/kiro-cli"), place + "/kiro-cli")
        os.chmod(place + "/kiro-cli", 0o755)
    return client.Stdio(scene.user, scene.home, scene.work, words, hello=hello, path=place)


def text_of(answer):
    return answer["result"]["content"][0]["text"]


@DOC.check
def one_tool_for_each_agent(scene):
    """input{prompt, directory, sessionId}; `--agent <name>` of the agent's own after a colon."""
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli", "--agent", "kiro-cli:reviewer")
    tools = {tool["name"]: tool for tool in c.ask("tools/list")["result"]["tools"]}
    c.end()
    if not {"kiro-cli", "kiro-cli_reviewer"} <= set(tools):
        return str(sorted(tools))
    return "" if {"prompt", "directory", "sessionId"} <= set(tools["kiro-cli"]["inputSchema"]["properties"]) else str(tools["kiro-cli"])


@DOC.check
def prompt_names_the_directory_of_the_host_outside_a_container(scene):
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli")
    said = text_of(c.tool("kiro-cli", {"prompt": "do it", "directory": scene.work}))
    c.end()
    return "" if f"now: In directory {scene.work}, do it" in said else said


@DOC.check
def resume_finds_the_history_and_only_the_login_is_refreshed(scene):
    """First run: the whole database; later: auth_kv alone, conversations_v2 stay, and each session has its own."""
    login(scene, "first")
    c = server(scene, "--agent", "kiro-cli")
    one = text_of(c.tool("kiro-cli", {"prompt": "remember blue", "directory": scene.work, "sessionId": "a"}))
    login(scene, "second")
    again = text_of(c.tool("kiro-cli", {"prompt": "which", "directory": scene.work, "sessionId": "a"}))
    other = text_of(c.tool("kiro-cli", {"prompt": "which", "directory": scene.work, "sessionId": "b"}))
    stored = scene.home + "/.local/state/pinfold-agents"
    kept = os.path.isdir(stored) and os.listdir(stored)
    c.end()
    if "login first" not in one or "login second" not in again or f"before: In directory {scene.work}, remember blue" not in again:
        return one + again
    if "before:" in other:
        return "another session's history: " + other
    if not kept or os.listdir(stored):
        return "a session's state is not removed when the server ends"
    db = sqlite3.connect(scene.home + "/.local/share/kiro-cli/data.sqlite3")
    count = db.execute("SELECT count(*) FROM conversations_v2").fetchone()[0]
    db.close()
    return "the host's database was written" if count else ""


@DOC.check
def crash_leaves_orphans_that_the_next_one_removes(scene):
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli")
    c.tool("kiro-cli", {"prompt": "x", "directory": scene.work, "sessionId": "a"})
    c.child.kill()
    c.child.wait()
    other = server(scene, "--agent", "kiro-cli")
    other.tool("kiro-cli", {"prompt": "x", "directory": scene.work, "sessionId": "a"})
    alive = os.listdir(scene.home + "/.local/state/pinfold-agents")
    other.end()
    left = os.listdir(scene.home + "/.local/state/pinfold-agents")
    return f"alive: {alive}, left: {left}" if len(alive) != 1 or left else ""


@DOC.check
def working_directory_is_absolute_and_permitted(scene):
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli", "--base", scene.work)
    wrong = []
    for place in ("work", "./", scene.path, scene.work + "/nothing", "/"):
        answer = c.tool("kiro-cli", {"prompt": "x", "directory": place})["result"]
        if not answer["isError"]:
            wrong.append(place)
    c.end()
    return f"allowed: {wrong}" if wrong else ""


@DOC.check
def response_comes_back_from_the_box(scene):
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli")
    said = text_of(c.tool("kiro-cli", {"prompt": "x", "directory": scene.work}))
    c.end()
    return said if "noise" in said or "now: " not in said else ""


@DOC.check
def agent_configuration_is_read_only(scene):
    """~/.kiro: all of kiro's configuration, which a box may read."""
    login(scene, "t")
    scene.put("home/.kiro/agents/reviewer.json", '{"name": "reviewer"}')
    done = scene.pinfold("agent", "prepare", "kiro-cli", scene.home + "/state")
    options = [f"--{o['name']}={o['value']}" for o in json.loads(done.out)["options"]]
    seen = scene.pinfold("run", *options, "--", "sh", "-c", "cat ~/.kiro/agents/reviewer.json; echo x >~/.kiro/agents/new; ls ~/.local/share/kiro-cli; exit 3")
    return "" if seen.status == 3 and b"reviewer" in seen.out and b"data.sqlite3" in seen.out and not os.path.exists(scene.home + "/.kiro/agents/new") else seen.said()


@DOC.check
def missing_login_is_told_at_the_start_and_in_a_failed_call(scene):
    c = server(scene, "--agent", "kiro-cli")
    sentence = "kiro-cli: Kiro CLI has no login on this machine (~/.local/share/kiro-cli/data.sqlite3 is missing): start kiro-cli once outside of a box and log in"
    told = c.tells(sentence)
    answer = c.tool("kiro-cli", {"prompt": "x", "directory": scene.work})
    c.end()
    if not told:
        return "not told: " + c.err
    return "" if answer["result"]["isError"] and text_of(answer).startswith("[Kiro CLI has no login on this machine") else str(answer)


@DOC.check
def login_that_is_there_is_not_mentioned(scene):
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli")
    c.tool("kiro-cli", {"prompt": "fail", "directory": scene.work})
    c.end()
    return c.err if "no login" in c.err else ""


@DOC.check
def absent_program_is_said_by_name(scene):
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli", program=False)
    answer = c.tool("kiro-cli", {"prompt": "x", "directory": scene.work})
    c.end()
    return "" if answer["result"]["isError"] and "no program 'kiro-cli'" in text_of(answer) else str(answer)


@DOC.check
def program_beside_path_is_found(scene):
    """A client of a desktop has not the PATH of a shell; where the program is missing the start says so, and an empty end is no promise."""
    login(scene, "t")
    c = server(scene, "--agent", "kiro-cli", program=False)
    told = c.tells("--agent kiro-cli: Kiro CLI is not installed: no program 'kiro-cli' in PATH, ~/.local/bin")
    absent = text_of(c.tool("kiro-cli", {"prompt": "x", "directory": scene.work}))
    c.end()
    place = scene.home + "/.local/bin"
    os.makedirs(place)
    shutil.copy(os.path.join(pf.SOURCE, "tests/mcp/bin/kiro-cli"), place + "/kiro-cli")
    os.chmod(place + "/kiro-cli", 0o755)
    scene.user.own(scene.home)
    c = server(scene, "--agent", "kiro-cli", program=False)
    found = c.tool("kiro-cli", {"prompt": "do it", "directory": scene.work})
    c.end()
    return "" if told and not found["result"]["isError"] and "~/.local/bin" in absent and "standard error:" not in absent else f"{told} {c.err} {absent} {found}"


@DOC.check
def agent_of_a_file(scene):
    """--agent FILE.yaml[:PROFILE]; read once, so that a box cannot change it."""
    login(scene, "t")
    place = scene.put("work/mine.yaml", DEFINITION)
    c = server(scene, "--agent", place + ":reviewer")
    with open(place, "w", encoding="utf-8") as file:
        file.write("nothing: true\n")
    answer = c.tool("mine_reviewer", {"prompt": "do it", "directory": scene.work})
    c.end()
    said = text_of(answer)
    return "" if "profile reviewer" in said and f"now: In directory {scene.work}, do it" in said and "login t" in said else said


@DOC.check
def agent_of_the_configuration(scene):
    login(scene, "t")
    scene.put("home/.config/pinfold/agents/mine.yaml", DEFINITION)
    c = server(scene, "--agent", "mine")
    said = text_of(c.tool("mine", {"prompt": "do it", "directory": scene.work}))
    c.end()
    listed = scene.pinfold("agent", "list")
    return "" if "login t" in said and b"\nmine " in listed.out else said + listed.said()


row("agent-of-a-file-that-is-wrong", "mcp --agent {path}/mine.yaml", 2, r"--agent {path}/mine\.yaml: {path}/mine\.yaml:3:1: unknown key 'profil' in an agent \(known: ", files={"mine.yaml": DEFINITION.replace("profile:", "profil:")})
row("agent-of-a-file-of-others", "mcp --agent {path}/mine.yaml", 2, r"--agent {path}/mine\.yaml: .*writable by", files={"mine.yaml": DEFINITION}, before="chmod 666 ../mine.yaml")
row("agent-of-no-file", "mcp --agent {path}/none.yaml", 2, r"--agent {path}/none\.yaml: .*No such file")
row("agent-unknown", "mcp --agent nobody", 2, r"--agent nobody: unknown agent; see: pinfold agent list")

# ---- engine and network
row("engine-missing-ends-the-start", "mcp --sandbox --engine docker --docker-host {path}/nothing.sock --agent kiro-cli --http 127.0.0.1:0", 3, (r"pinfold: mcp: docker", r"--sandbox-image IMAGE"), files={"home/x": ""}, seconds=60)
row("sandbox-obeys-the-engine", "mcp --sandbox --engine podman --sandbox-image seeds/nowhere:1 --http 127.0.0.1:0", 3, (r"pinfold: mcp: podman",), r"docker", needs="podman",
    # podman leaves a process of its own, one for each user and runtime directory, and says where.
    before="mkdir -m 700 ../run", env={"XDG_RUNTIME_DIR": "{path}/run"}, after="pause={path}/run/libpod/tmp/pause.pid; [ ! -r $pause ] || kill $(cat $pause)")
row("sandbox-without-an-image-is-native", "mcp --sandbox --agent kiro-cli", 0, r"mcp --sandbox: no engine here can make boxes of the image 'budgie-sandbox:latest'.*--sandbox-image IMAGE",
    before="mkdir -m 700 ../run2", env={"XDG_RUNTIME_DIR": "{path}/run2"}, after="pause={path}/run2/libpod/tmp/pause.pid; [ ! -r $pause ] || kill $(cat $pause)")
row("sandbox-with-the-native-engine-needs-no-image", "mcp --sandbox --engine native", 0)
row("sandbox-image-of-the-native-engine", "mcp --sandbox --engine native --sandbox-image x --http 127.0.0.1:0", 3, r"the engine 'native' has no use for --image")
row("agents-reach-their-own-hosts", "why connect api.kiro.dev:443 --allow *.kiro.dev", 0, "allowed|yes")
row("sessions-of-other-instances-stay", "session prune --dry-run", 0)

# ---- the document's docker run, by the engine that every machine has
row("mounts", "run --net none --mount {path}/dir:/workspace:rw --mount {path}/session:{home}/.local/share/kiro-cli:rw --mount {path}/auth:/auth:ro --mount {path}/kiro:{home}/.kiro:ro --cwd /workspace "
    "-- sh -c 'cat /auth/data.sqlite3; touch /workspace/made {home}/.local/share/kiro-cli/made; touch /auth/x; touch {home}/.kiro/x; pwd; exit 3'", 3, (r"^login$", r"/auth/x", r"\.kiro/x", r"^/workspace$"),
    files={"dir/f": "", "session/f": "", "auth/data.sqlite3": "login\n", "kiro/f": ""}, after="test -e ../dir/made && test -e ../session/made && test ! -e ../auth/x && test ! -e ../kiro/x || echo wrong")
