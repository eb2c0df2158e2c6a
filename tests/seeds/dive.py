"""dive's design: its YAML block, SandboxConfig, the tables of mounts and profiles, command lines of its backends, and its tests."""
import rows

DOC = rows.Document("dive")
row = DOC.row

BLOCK = """# In dive.yaml or agent config
sandbox:
  enabled: true
  allow_network: false
  allowed_write_paths:
    - ~/.cache/go-build
    - ~/.npm

  docker:
    image: "node:20-slim"
    ports:
      - "3000"
      - "9229" # Node debugger

  seatbelt:
    profile: restrictive
"""
# The same without what is the containers' own: the native engine has no image.
NO_IMAGE = BLOCK.replace('    image: "node:20-slim"\n', "")
# And without its ports, which one box at a time can have.
NO_PORTS = NO_IMAGE.replace("    ports:\n      - \"3000\"\n      - \"9229\" # Node debugger\n", "    memory: 2g\n")
SETTINGS = "--from dive --settings {path}/dive.yaml"
RUN = "run " + SETTINGS + " -- "


def said(text=NO_PORTS):
    return {"dive.yaml": text}


# ---- the block as it stands
row("block", "policy convert --from dive {path}/dive.yaml", 0, (r'^image: "node:20-slim"$', r'- "3000:3000"$', r'- "9229:9229"$', r"^  mode: none$", r"/\.npm\""), files=said(BLOCK))
row("block-with-an-image-that-no-engine-has", "run " + SETTINGS + " --docker-host {path}/nothing.sock --engine docker -- true", 125, r"^pinfold: docker", files=said(BLOCK))
row("write-paths", RUN + "sh -c 'touch ~/.cache/go-build/x ~/.npm/x'", 0, never="not writable", files=said(), before="mkdir -p ~/.cache/go-build ~/.npm",
    after="test -e ~/.npm/x && test -e ~/.cache/go-build/x || echo 'not on the host'")
row("write-paths-that-are-missing-are-said", RUN + "true", 0,
    r"not writable, because nothing exists there: {home}/\.cache/go-build \({path}/dive\.yaml:6:\d+\); {home}/\.npm \({path}/dive\.yaml:7:\d+\); create it, or give the box a private one with --storage {home}/\.cache/go-build$",
    files=said())
row("write-paths-by-the-flag-that-is-said", "run " + SETTINGS + " --storage {home}/.cache/go-build -- touch {home}/.cache/go-build/x", 0, files=said(), before="mkdir -p ~/.cache",
    after="test ! -e ~/.cache/go-build/x || echo 'it is the host's")
row("write-paths-said-by-a-session", "session start seeds-dive " + SETTINGS, 0, r"not writable, because nothing exists there: {home}/\.cache/go-build", files=said(),
    after="{pinfold} session rm seeds-dive >/dev/null")
row("write-paths-no-others", RUN + "sh -c 'touch ~/.config/x; exit 3'", 3, r"\.config/x", files=said(), before="mkdir -p ~/.config", after="test ! -e ~/.config/x || echo written")

# ---- the table of mounts
row("project-at-the-same-path", RUN + "sh -c 'pwd; touch made'", 0, r"^{work}$", files=said(), after="test -e made || echo 'not made'")
row("tmp-is-writable", RUN + "touch /tmp/x", 0, files=said())
row("config-dive-is-writable", RUN + "touch {home}/.config/dive/x", 0, files=said(), before="mkdir -p ~/.config/dive", after="test -e ~/.config/dive/x || echo 'not there'")
row("gitconfig-is-readable", RUN + "sh -c 'git config --get user.name; echo x >>~/.gitconfig; exit 3'", 3, r"^me$", files=said(), before="git config --global user.name me",
    after="grep -q x$ ~/.gitconfig && echo 'it was changed'", needs="git")

# ---- SandboxConfig
row("enabled-false", RUN + "true", 125, r"dive\.yaml:3:12: sandbox\.enabled is false: pinfold never runs a command without a box", files=said(NO_PORTS.replace("enabled: true", "enabled: false")))
row("allow-network", "explain " + SETTINGS, 0, r"It reaches  every host that is not denied\.", files=said(NO_PORTS.replace("allow_network: false", "allow_network: true")))
row("work-dir", "run " + SETTINGS + " -- sh -c 'pwd; touch {path}/other/x'", 0, r"^{path}/other$", cwd="{path}/other",
    files={**said(NO_PORTS.replace("  enabled: true", "  enabled: true\n  work_dir: {path}/other")), "other/f": ""})
row("environment", RUN + "sh -c 'echo v=$API_KEY'", 0, "^v=sesame$", files=said(NO_PORTS + "  environment:\n    API_KEY: sesame\n"))
row("environment-is-else-a-list", RUN + "sh -c 'echo v=$SECRET_TOKEN'", 0, "^v=$", files=said(), env={"SECRET_TOKEN": "x"})
row("docker-command", "run " + SETTINGS + " --docker-host {path}/nothing.sock -- true", 125, r"^pinfold: docker", files=said(NO_PORTS.replace("  docker:\n", "  docker:\n    command: docker\n")))
row("docker-command-has-a-default-image", "policy convert --from dive {path}/dive.yaml", 0, (r'^image: "ubuntu:22\.04"$', "^engine: podman$"), files=said(NO_PORTS.replace("  docker:\n", "  docker:\n    command: podman\n")))
row("additional-mounts", RUN + "sh -c 'cat /mnt/data/f; touch /mnt/data/x; exit 3'", 3, (r"^in$", r"/mnt/data/x"),
    files={**said(NO_PORTS.replace("    memory: 2g\n", '    additional_mounts: ["{path}/data:/mnt/data:ro"]\n')), "data/f": "in\n"})
row("misspelt-key", RUN + "true", 125, r"dive\.yaml:4:3: unknown key 'sandbox\.allow_networks' \(did you mean 'allow_network'\?\)", files=said(NO_PORTS.replace("allow_network:", "allow_networks:")))

# ---- Seatbelt: the command line and the parameters of the document, printed on any machine
PERMISSIVE = NO_PORTS.replace("profile: restrictive", "profile: permissive")
row("seatbelt-restrictive", "show-run --engine seatbelt --net none --from dive --settings {path}/dive.yaml", 0, (r"^/?.*sandbox-exec -p", r"\(version 1\)", r"\(deny default\)"),
    files=said(NO_PORTS))
row("seatbelt-permissive", "show-run --engine seatbelt --from dive --settings {path}/dive.yaml", 0, (r"\(allow default\)", r"\(deny file-write\* file-link\)"),
    files=said(PERMISSIVE))
row("seatbelt-permissive-is-macos's-alone", RUN + "sh -c 'unshare -U true; mkdir .claude; exit 3'", 3, (r"unshare", r"\.claude"), r"allow_nested", files=said(PERMISSIVE))
row("seatbelt-permissive-is-no-other-policy", "policy convert --from dive {path}/dive.yaml", 0, (r"^guard: strict$", r"^allow_nested_userns: false$", r"base: permissive"), files=said(PERMISSIVE))
CUSTOM = """(version 1)
;; Default deny - explicit allowlist approach
(deny default)
;; Allow reading files from anywhere
(allow file-read*)
;; Allow process execution (children inherit policy)
(allow process-exec)
(allow process-fork)
;; Allow signals to self
(allow signal (target self))
;; Allow writes only to specific parameterized paths
(allow file-write*
    (subpath (param "TARGET_DIR"))
    (subpath (param "TMP_DIR"))
    (literal "/dev/stdout")
    (literal "/dev/stderr")
    (literal "/dev/null"))
;; Terminal/PTY access for interactive commands
(allow file-ioctl (regex #"^/dev/tty.*"))
;; Optional: allow network access
(allow network-outbound)
"""
row("seatbelt-custom-profile", "show-run --engine seatbelt --seatbelt-file {path}/custom.sb", 0,
    (r"-D TARGET_DIR={work}\b", r"-D HOME_DIR={home}\b", r"-D TMP_DIR={home}/\.local/state/pinfold/tmp/", r"-D CACHE_DIR={home}/\.local/state/pinfold/caches/[^ ]*/\.cache/upper",
     r"-D ALLOWED_DIR_0=/dev/null", r"-D ALLOWED_DIR_4=/dev/null"), files={"custom.sb": CUSTOM}, before="mkdir -p ~/.cache ~/.bun ~/.npm")
row("seatbelt-custom-profile-of-the-block", "show-run --engine seatbelt --from dive --settings {path}/dive.yaml", 0, (r"-D TMP_DIR={home}/\.local/state/pinfold/tmp/", r"-D ALLOWED_DIR_[0-4]={home}/\.npm"),
    files={"custom.sb": CUSTOM, **said('sandbox:\n  allowed_write_paths: ["~/.npm"]\n  seatbelt:\n    custom_profile_path: {path}/custom.sb\n')}, before="mkdir -p ~/.npm")

# ---- what sandboxing prevents, and the integration test
row("isolation-allowed", RUN + "bash -c 'touch allowed.txt'", 0, files=said(), after="test -e allowed.txt || echo 'not made'")
row("isolation-refused", RUN + "bash -c 'touch /tmp/outside-project/bad.txt'", 1, files=said(), before="mkdir -p /tmp/outside-project", after="test ! -e /tmp/outside-project/bad.txt || echo made; rm -rf /tmp/outside-project")
row("echo-hello", RUN + "echo hello", 0, "^hello$", files=said())
row("user-command-in-a-shell", 'run --net none --mount {work}:/workspace --cwd /workspace -- bash -c "pwd; touch made"', 0, r"^/workspace$", after="test -e made || echo 'not made'")
row("files-belong-to-the-caller", RUN + "touch mine", 0, files=said(), after='test "$(stat -c %u mine)" = "$(id -u)" || echo "another owner"')
row("no-network", RUN + "sh -c 'grep -v lo: /proc/net/dev | grep :; exit 3'", 3, never=r"eth|veth|docker", files=said())
row("no-sandbox-is-no-run", "run --engine docker --image x --docker-host {path}/nothing.sock -- touch made", 125, r"^pinfold: docker", after="test ! -e made || echo 'it ran without one'")
row("resource-limits", "run " + SETTINGS + " --memory 64M -- python3 -c 'x = b\"x\" * (1 << 28)'", 137, r"memory: the box used more than 64M", files=said(), needs="python3")
