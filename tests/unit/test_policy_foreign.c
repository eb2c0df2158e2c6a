/*
 * Settings of other sandboxes. Each means the same as a text of ours, and what it cannot mean is named.
 */
#include "policy_help.h"

struct foreign_case {
    enum policy_format format;
    const char *text, *ours, *ignored; /* ignored: "key: why\n" in order */
};

static struct policy *from(enum policy_format format, const char *text, struct err *e)
{
    struct policy *p = NULL;
    struct layer_said said[] = {{LAYER_FLAGS, format, "/home/u/p/f", text, true}, {0}};
    return build_in(&test_world, said, NULL, &p, e) < 0 ? NULL : p;
}

static void check(const struct foreign_case *c)
{
    struct err e;
    struct policy *theirs = from(c->format, c->text, &e);
    if (!theirs)
        fail_msg("%s\n%s", c->text, e.text);
    struct policy *ours = from(POLICY_YAML, c->ours, &e);
    if (!ours)
        fail_msg("%s\n%s", c->ours, e.text);
    if (!policy_equal(theirs, ours))
        fail_msg("%s\n--- is\n%s\n--- not\n%s", c->text, printed(theirs), printed(ours));
    auto_buf struct buf ignored = BUF(1 << 16);
    for (size_t i = 0; i < theirs->n_ignored; i++)
        buf_printf(&ignored, "%s: %s\n", theirs->ignored[i].key, theirs->ignored[i].why);
    assert_string_equal(buf_cstr(&ignored), c->ignored ? c->ignored : "");
    policy_free(theirs);
    policy_free(ours);
}

static void srt(void **state)
{
    (void)state;
    static const struct foreign_case cases[] = {
        {POLICY_SRT,
         "{\"network\": {\"allowedDomains\": [\"github.com\", \"*.npmjs.org\", \"api.example.com:443\", "
         "\"[::1]:80\"],\n"
         "  \"deniedDomains\": [\"malicious.com\", \"*:22\"], \"deniedResolvedAddresses\": [\"10.0.0.0/8\"],\n"
         "  \"allowUnixSockets\": [\"/var/run/docker.sock\"], \"allowLocalBinding\": false, \"strictAllowlist\": "
         "true},\n"
         " \"filesystem\": {\"denyRead\": [\"~/.ssh\"], \"allowRead\": [], \"allowWrite\": [\".\", \"src/\", "
         "\"test/**\", \"/tmp\"],\n"
         "  \"denyWrite\": [\".env\", \"config/production.json\", \"**/*.pem\"]}}",
         "workspace_read_only: false\n"
         "net: {mode: allow, allow: [github.com, '*.npmjs.org', 'api.example.com:443'], deny: "
         "[malicious.com, "
         "'*:22', 10.0.0.0/8], unix_sockets: [/var/run/docker.sock]}\n"
         "files: {hide: [~/.ssh], rw: [{path: src, optional: true}, {path: test, optional: true}, {path: /tmp, "
         "optional: "
         "true}], protect: [.env, config/production.json, './**/*.pem']}\n",
         "the allowed host '[::1]:80': inside the box this address is the box itself; for a service of this machine: "
         "net.reach (--reach 127.0.0.1:PORT)\n"},
        /* Empty lists allow nothing, and absent ones neither. */
        {POLICY_SRT,
         "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": []}, \"filesystem\": {\"denyRead\": [], "
         "\"allowWrite\": [], \"denyWrite\": []}}",
         "workspace_read_only: true\nnet: {mode: none}\n", NULL},
        {POLICY_SRT, "{}", "workspace_read_only: true\nnet: {mode: none}\n", NULL},
        /* allowRead uncovers inside denyRead; the nearer wins; at one place allowRead wins. */
        {POLICY_SRT,
         "{\"filesystem\": {\"denyRead\": [\"/home\", \"./secrets\", \"/d\"], \"allowRead\": [\".\", \"/d\", "
         "\"/other\"], \"allowWrite\": [\".\"]}}",
         "workspace_read_only: false\nnet: {mode: none}\nfiles: {hide: [/home, secrets]}\n", NULL},
        {POLICY_SRT,
         "{\"filesystem\": {\"denyRead\": [\"/x\"], \"allowRead\": [\"/x/a\", \"/x/b\", \"/x/b/c\"], \"allowWrite\": "
         "[\"/x/b\"]}}",
         "workspace_read_only: true\nnet: {mode: none}\n"
         "files: {hide: [/x], ro: [{path: /x/a, optional: true}], rw: [{path: /x/b, optional: true}]}\n",
         NULL},
        /* All of the root: what is opened lies below its names. */
        {POLICY_SRT,
         "{\"filesystem\": {\"denyRead\": [\"/\"], \"allowRead\": [\"/usr\", \".\"], \"allowWrite\": [\".\"]}}",
         "workspace_read_only: false\nnet: {mode: none}\nfiles: {hide: ['/*'], ro: [{path: /usr, optional: true}]}\n",
         NULL},
        /* denyWrite beats allowWrite wherever it stands, and a hidden place needs no protection. */
        {POLICY_SRT,
         "{\"filesystem\": {\"denyRead\": [\"/h\"], \"allowWrite\": [\"/a\", \"/b/c\", \"/e\", \"/h\"], \"denyWrite\": "
         "[\"/a\", \"/b\", \"/e/f\", \"/h\"]}}",
         "workspace_read_only: true\nnet: {mode: none}\nfiles: {hide: [/h], protect: [/a, /b, /e/f], rw: [{path: /e, "
         "optional: true}]}\n",
         "filesystem.allowWrite '/h': denyRead hides the same path\n"},
        /* The current directory is writable when something above it is. */
        {POLICY_SRT, "{\"filesystem\": {\"allowWrite\": [\"/home/u\", \"/home/u\"]}}",
         "workspace_read_only: false\nnet: {mode: none}\nfiles: {rw: [{path: ~, optional: true}]}\n", NULL},
        {POLICY_SRT,
         "{\"filesystem\": {\"allowWrite\": [\".\"], \"denyRead\": [\"**/build/**\"], \"allowGitConfig\": true, "
         "\"disabled\": false}}",
         "workspace_read_only: false\nnet: {mode: none}\nfiles: {hide: ['./**/build']}\nguard_names: {allow: "
         "[.git/config]}\n",
         NULL},
        {POLICY_SRT,
         "{\"credentials\": {\"files\": [{\"path\": \"~/.netrc\", \"mode\": \"deny\"}, {\"path\": \"~/t\", \"mode\": "
         "\"mask\"}],\n"
         "\"envVars\": [{\"name\": \"GH_TOKEN\", \"mode\": \"deny\"}], \"awsPairs\": []}}",
         "workspace_read_only: true\nnet: {mode: none}\nfiles: {hide: [~/.netrc, ~/t]}\nenv: {remove: [GH_TOKEN]}\n",
         "credentials.awsPairs: credentials are kept out of the box; they are not injected by a "
         "proxy\ncredentials.files.mode mask of '~/t': it is hidden completely instead\n"},
        {POLICY_SRT,
         "{\"network\": {\"strictAllowlist\": false, \"allowAllUnixSockets\": true, \"deniedDomainReasons\": {}, "
         "\"allowMachLookup\": [],\n"
         "\"httpProxyPort\": 1, \"socksProxyPort\": 2, \"mitmProxy\": {}, \"parentProxy\": {}, \"filterRequest\": 1, "
         "\"tlsTerminate\": {}},\n"
         "\"filesystem\": {\"disabled\": true, \"allowWrite\": [\"*.ts\"], \"denyRead\": [\"a*/b/c\"]},\n"
         "\"ignoreViolations\": {}, \"enableWeakerNestedSandbox\": true, \"enableWeakerNetworkIsolation\": true, "
         "\"allowAppleEvents\": true,\n"
         "\"allowPty\": true, \"ripgrep\": {}, \"mandatoryDenySearchDepth\": 3, \"seccomp\": {}, \"bwrapPath\": "
         "\"/b\", \"socatPath\": \"/s\",\n"
         "\"javaAgentJarPath\": \"/j\", \"windows\": {}, \"git\": {}, \"somethingNew\": 1}",
         "workspace_read_only: true\nnet: {mode: none}\n",
         "network.strictAllowlist: no questions are asked: what is not allowed is "
         "refused\nnetwork.allowAllUnixSockets: sockets are allowed individually "
         "(net.unix_sockets)\nnetwork.deniedDomainReasons: denial messages are pinfold's own\nnetwork.allowMachLookup: "
         "applies to macOS only\nnetwork.httpProxyPort: pinfold's own egress proxy decides; another proxy cannot "
         "replace it\nnetwork.socksProxyPort: pinfold's own egress proxy decides; another proxy cannot replace "
         "it\nnetwork.mitmProxy: pinfold's own egress proxy decides; another proxy cannot replace "
         "it\nnetwork.parentProxy: the parent proxy is read from the caller's environment\nnetwork.filterRequest: is "
         "code of the embedding program\nnetwork.tlsTerminate: TLS is never decrypted\nfilesystem.disabled: files are "
         "always confined\nfilesystem.allowWrite '*.ts': the pattern cannot be enforced; name the path, or NAME at any "
         "depth\nfilesystem.denyRead 'a*/b/c': the pattern cannot be enforced; name the path, or NAME at any "
         "depth\nignoreViolations: denials are always reported\nenableWeakerNestedSandbox: guarantees that a nested "
         "box lacks are listed by name (may_lose)\nenableWeakerNetworkIsolation: applies to macOS "
         "only\nallowAppleEvents: applies to macOS only\nallowPty: applies to macOS only\nripgrep: guarded names are "
         "checked when they are used; nothing is searched\nmandatoryDenySearchDepth: guarded names apply at every "
         "depth; nothing is searched\nseccomp: pinfold's filters are its own\nbwrapPath: pinfold finds its engines "
         "itself\nsocatPath: socat is not used\njavaAgentJarPath: programs need no agent: the network enforces the "
         "rules\nwindows: applies to Windows only\ngit: the command keeps the caller's user, so git needs no "
         "safe.directory\nsomethingNew: unknown key\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

#define SRT_NETWORK "\"network\": {\"allowedDomains\": [], \"deniedDomains\": []}"
#define SRT_FILES   "\"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": []}"

/* As the program srt reads them: what would mean something else is an error (see mistakes()), and what is not needed is not named. */
static void srt_strict(void **state)
{
    (void)state;
    static const struct foreign_case cases[] = {
        {POLICY_SRT_STRICT, "{" SRT_NETWORK ", " SRT_FILES "}", "workspace_read_only: true\nnet: {mode: none}\n", NULL},
        {POLICY_SRT_STRICT,
         "{\"network\": {\"allowedDomains\": [\"localhost:80\", \"127.0.0.1:81\", \"[::1]:82\", \"a.b\"], "
         "\"deniedDomains\": [], \"deniedDomainReasons\": {}, \"strictAllowlist\": true}, " SRT_FILES ", "
         "\"ripgrep\": {}, \"seccomp\": {}, \"git\": {}, \"allowPty\": true}",
         "workspace_read_only: true\nnet: {mode: allow, allow: [a.b], reach: ['localhost:80', '127.0.0.1:81', "
         "'[::1]:82']}\n",
         NULL},
        {POLICY_SRT_STRICT,
         "{\"network\": {\"allowedDomains\": [\"localhost\"], \"deniedDomains\": [], \"allowAllUnixSockets\": "
         "true}, "
         "\"filesystem\": {\"denyRead\": [], \"allowRead\": [\"a*/b\"], \"allowWrite\": [\"*.ts\"], "
         "\"denyWrite\": "
         "[], \"disabled\": true}}",
         "workspace_read_only: true\nnet: {mode: allow}\n",
         "the allowed host 'localhost': inside the box this is the box itself; a service of this machine is "
         "localhost:PORT\nnetwork.allowAllUnixSockets: sockets are allowed individually "
         "(net.unix_sockets)\nfilesystem.allowRead 'a*/b': the pattern cannot be enforced; name the path, or NAME at "
         "any "
         "depth\nfilesystem.allowWrite '*.ts': the pattern cannot be enforced; name the path, or NAME at any "
         "depth\nfilesystem.disabled: files are always confined\n"},
        {POLICY_SRT_STRICT, /* the places that srt makes writable, hidden by denyRead */
         "{" SRT_NETWORK ", \"filesystem\": {\"denyRead\": [\"~\"], \"allowWrite\": [\".\"], \"denyWrite\": []}}",
         "workspace_read_only: false\nnet: {mode: none}\nfiles: {hide: [~, ~/.npm/_logs, ~/.claude/debug]}\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* What dive mounts besides. */
#define DIVE_RW "{path: ~/.config/dive, optional: true}"
#define DIVE_RO "ro: [{path: ~/.gitconfig, optional: true}]"

static void dive(void **state)
{
    (void)state;
    static const struct foreign_case cases[] = {
        {POLICY_DIVE,
         "# In dive.yaml\nmodel: x\nsandbox:\n  enabled: true\n  allow_network: false\n  allowed_write_paths:\n"
         "    - ~/.cache/go-build\n    - ~/.npm\n  docker:\n    image: \"node:20-slim\"\n    ports:\n      - \"3000\"\n"
         "      - \"9229\" # Node debugger\n  seatbelt:\n    profile: restrictive\n",
         "extends: restrictive\nimage: 'node:20-slim'\nnet: {mode: none, publish: ['3000:3000', '9229:9229']}\n"
         "files: {rw: [{path: ~/.cache/go-build, optional: true}, {path: ~/.npm, optional: true}, " DIVE_RW
         "], " DIVE_RO "}\n",
         NULL},
        {POLICY_DIVE,
         "sandbox:\n  allow_network: true\n  work_dir: /w\n  environment: {A: '1', B: x}\n  mode: auto\n"
         "  max_command_duration_ms: 5000\n  audit_log: true\n  excluded_commands: [git]\n"
         "  allow_unsandboxed_commands: true\n  mount_cloud_credentials: true\n  allowed_unix_sockets: [/s]\n"
         "  docker: {command: podman, memory: 512m, cpus: '1.5', pids_limit: 100, enable_user_mapping: true,\n"
         "    additional_mounts: ['/a:/b:ro,z', '/c:/d']}\n"
         "  seatbelt: {profile: permissive, custom_profile_path: /x}\n",
         "extends: restrictive\nworkspace: /w\nengine: podman\nimage: 'ubuntu:22.04'\nseatbelt: {base: permissive, "
         "file: /x}\nenv: {set: {A: "
         "1, B: x}}\n"
         "limits: {timeout: 5s, memory: 512M, cpus: 1.5, pids: 100}\n"
         "net: {mode: allow, allow: ['*'], unix_sockets: [/s]}\n"
         "files: {mounts: [{from: /a, to: /b, read_only: true}, '/c:/d'], rw: [" DIVE_RW "], " DIVE_RO "}\n",
         "sandbox.mode: approvals are handled by the agent\nsandbox.audit_log: denials are always "
         "logged\nsandbox.excluded_commands: commands never run outside the box\nsandbox.allow_unsandboxed_commands: "
         "commands never run outside the box\nsandbox.mount_cloud_credentials: credentials stay hidden; make single "
         "files readable with files.ro\nsandbox.docker.additional_mounts option 'z': only ro and rw are supported\n"},
        {POLICY_DIVE, "sandbox: {allow_network: true, network: {allowed_domains: [a.com], http_proxy: x}}",
         "extends: restrictive\nnet: {mode: allow, allow: [a.com]}\nfiles: {rw: [" DIVE_RW "], " DIVE_RO "}\n",
         "sandbox.network.http_proxy: pinfold's own egress proxy decides; another proxy cannot replace it\n"},
        {POLICY_DIVE, "{docker: {command: docker, image: ''}}",
         "extends: restrictive\nengine: docker\nimage: 'ubuntu:22.04'\nnet: {mode: none}\nfiles: {rw: [" DIVE_RW
         "], " DIVE_RO "}\n",
         NULL},
        {POLICY_DIVE, "{enabled: true}",
         "extends: restrictive\nnet: {mode: none}\nfiles: {rw: [" DIVE_RW "], " DIVE_RO "}\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* The manager's defaults where a file says nothing of them: only the box's own directory can be written. */
#define MYCODE_TEMP   "files: {storage: [/tmp/mycode-sandbox]}\nenv: {set: {TMPDIR: /tmp/mycode-sandbox}}\n"
#define MYCODE_CLOSED "workspace_read_only: true\n"
#define MYCODE_DOCKER "engine: docker\nimage: 'ubuntu:22.04'\n"

static void mycode(void **state)
{
    (void)state;
    static const struct foreign_case cases[] = {
        {POLICY_MYCODE,
         "{\"type\": \"docker\", \"enabled\": true, \"image\": \"ubuntu:22.04\",\n"
         "\"limits\": {\"cpuPercent\": 50, \"memoryMB\": 512, \"diskMB\": 1024, \"timeoutSeconds\": 60, "
         "\"maxProcesses\": 50},\n"
         "\"network\": {\"enabled\": false},\n"
         "\"filesystem\": {\"readOnly\": [\"/\"], \"readWrite\": [\"/tmp\"], \"hidden\": [\"/etc/passwd\", "
         "\"/etc/shadow\"],\n"
         " \"tempDir\": \"/tmp/mycode-sandbox\"}}",
         "extends: untrusted\n" MYCODE_DOCKER MYCODE_CLOSED MYCODE_TEMP, NULL},
        {POLICY_MYCODE, "{\"enabled\": true}", "extends: untrusted\n" MYCODE_DOCKER MYCODE_CLOSED MYCODE_TEMP, NULL},
        {POLICY_MYCODE, "{\"type\": \"firejail\"}", "extends: untrusted\nengine: firejail\n" MYCODE_CLOSED MYCODE_TEMP,
         NULL},
        /* The nearest rule decides about the project; a temporary directory in it is the project's. */
        {POLICY_MYCODE,
         "{\"type\": \"vm\", \"filesystem\": {\"readOnly\": [\"/\"], \"readWrite\": [\"/home/u\"], \"tempDir\": "
         "\"tmp\"}}",
         "extends: untrusted\nengine: vm\nfiles: {rw: [{path: /home/u, optional: true}, {path: /home/u/p/tmp, "
         "optional: "
         "true}]}\nenv: {set: {TMPDIR: /home/u/p/tmp}}\n",
         NULL},
        {POLICY_MYCODE,
         "{\"type\": \"vm\", \"filesystem\": {\"readOnly\": [\".\"], \"readWrite\": [\"/home/u\"], \"tempDir\": "
         "\"/tmp\"}}",
         "extends: untrusted\nengine: vm\n" MYCODE_CLOSED
         "files: {rw: [{path: /home/u, optional: true}], ro: [{path: ., "
         "optional: true}]}\nenv: {set: {TMPDIR: /tmp}}\n",
         NULL},
        {POLICY_MYCODE,
         "{\"profile\": \"x\", \"limits\": {\"memoryMB\": 1024, \"cpuPercent\": 12.5}, \"network\": {\"enabled\": "
         "true, \"blockedPorts\": [25]},\n"
         "\"filesystem\": {\"readOnly\": [\"/data\"]}}",
         "extends: untrusted\nlimits: {memory: 1G, cpus: 12.5%}\nnet: {mode: allow, allow: ['*'], deny_ports: [25]}\n"
         "files: {ro: [{path: /data, optional: true}]}\n" MYCODE_DOCKER MYCODE_CLOSED,
         "profile: firejail profiles cannot be used\n"},
        /* An empty list of hosts allows nothing. */
        {POLICY_MYCODE, "{\"network\": {\"enabled\": true, \"allowedHosts\": []}}",
         "extends: untrusted\nnet: {mode: allow}\n" MYCODE_DOCKER MYCODE_CLOSED MYCODE_TEMP, NULL},
        {POLICY_MYCODE, "{\"network\": {\"enabled\": true, \"allowedHosts\": [\"a.com\"]}}",
         "extends: untrusted\nnet: {mode: allow, allow: [a.com]}\n" MYCODE_DOCKER MYCODE_CLOSED MYCODE_TEMP, NULL},
        {POLICY_MYCODE, "{\"network\": {\"enabled\": false, \"allowedHosts\": []}}",
         "extends: untrusted\n" MYCODE_DOCKER MYCODE_CLOSED MYCODE_TEMP, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static void daycare(void **state)
{
    (void)state;
    static const struct foreign_case cases[] = {
        {POLICY_DAYCARE,
         "{\"docker\": {\"enabled\": true, \"image\": \"box\", \"tag\": \"1.2\", \"socketPath\": "
         "\"/var/run/docker.sock\", \"runtime\": \"runsc\"}, \"other\": {}}",
         "engine: docker\nimage: 'box:1.2'\nruntime: runsc\ndocker_host: /var/run/docker.sock\n", NULL},
        {POLICY_DAYCARE, "{\"docker\": {\"enabled\": true, \"socketPath\": \"/s\", \"runtime\": \"runc\"}}",
         "engine: docker\nimage: 'daycare-sandbox:latest'\nruntime: runc\ndocker_host: /s\n", NULL},
        {POLICY_DAYCARE, "{\"docker\": {\"enabled\": false, \"image\": \"x\"}}", "engine: native\n", NULL},
        {POLICY_DAYCARE, "{\"docker\": {}}", "engine: native\n", NULL},
        {POLICY_DAYCARE, "{}", "engine: native\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static void bwrap(void **state)
{
    (void)state;
    static const struct foreign_case cases[] = {
        {POLICY_BWRAP,
         "[\"--unshare-all\", \"--share-net\", \"--ro-bind\", \"/\", \"/\", \"--dev\", \"/dev\", \"--proc\", "
         "\"/proc\", \"--tmpfs\", \"/tmp\", \"--bind\", \"src\", \"src\", \"--bind\", \"/home/u/p/src\", "
         "\"/home/u/p/src\", \"true\"]",
         "workspace: /home/u/p/src\nfiles: {rw: [/home/u/p/src], mounts: [\"/home/u/p/src:/src\"]}\nguard: off\nnet: "
         "{mode: host}\nenv: {pass: [\"*\"]}\n",
         "true: a policy does not contain the command; run it with: pinfold run --policy FILE -- COMMAND\n"},
        {POLICY_BWRAP,
         "[\"bwrap\", \"--unshare-net\", \"--unshare-user\", \"--unshare-ipc\", \"--unshare-pid\", \"--unshare-uts\", "
         "\"--unshare-cgroup-try\", \"--disable-userns\", \"--new-session\", \"--cap-drop\", \"ALL\", \"--ro-bind\", "
         "\"/usr\", \"/usr\", \"--ro-bind-try\", \"/nix\", \"/nix\", \"--symlink\", \"usr/bin\", \"/bin\", "
         "\"--symlink\", \"/usr/lib64\", \"/lib64\", \"--dev-bind-try\", \"/dev/dri\", \"/dev/dri\", \"--mqueue\", "
         "\"/dev/mqueue\", \"--clearenv\", \"--setenv\", \"A\", \"1\", \"--setenv\", \"A\", \"2\", \"--setenv\", "
         "\"B\", \"x\", \"--unsetenv\", \"B\", \"--hostname\", \"h\", \"--uid\", \"0\", \"--gid\", \"0\"]",
         "workspace: /usr\nworkspace_read_only: true\nfiles: {hide: [\"/*\"], ro: [/usr, {path: /nix, optional: true}, "
         "{path: /bin, optional: true}, {path: /lib64, optional: true}], rw: [{path: /dev/dri, optional: true}, {path: "
         "/dev/mqueue, optional: true}]}\nguard: off\nnet: {mode: none}\nenv: {set: {A: \"2\"}, remove: "
         "[B]}\nhostname: h\nuser: root\n",
         "a workspace: none of the bound paths can be a project: use --workspace DIR\n"},
        {POLICY_BWRAP,
         "[\"--bind\", \"/\", \"/\", \"--ro-bind\", \"/usr/lib\", \"/usr/lib\", \"--tmpfs\", \"/usr\", \"--bind\", "
         "\"/a*b\", \"/a*b\", \"--bind-try\", \"/x\", \"/y\", \"--remount-ro\", \"/\", \"--uid\", \"7\", \"--gid\", "
         "\"8\"]",
         "workspace: \"/a\\\\*b\"\nfiles: {hide: [/usr], rw: [\"/a\\\\*b\"], mounts: [\"/x:/y\"]}\nguard: off\nnet: "
         "{mode: host}\nenv: {pass: [\"*\"]}\nuser: \"7:8\"\n",
         "--tmpfs /usr: it is empty, but read-only: only /tmp, /var/tmp and /run are writable\nbind-try /x /y: the "
         "source of a mount must exist\n"},
        {POLICY_BWRAP,
         "[\"--ro-bind\", \"/home/u\", \"/home/u\", \"--chdir\", \"/home/u/p\", \"--bind\", \"/home/u/p\", "
         "\"/home/u/p\", \"--dev-bind\", \"/dev\", \"/dev\", \"--bind\", \"/proc\", \"/proc\", \"--bind\", \"/sys\", "
         "\"/sys\", \"--dev-bind\", \"/data\", \"/data\", \"--uid\", \"5\", \"--proc\", \"/p\", \"--tmpfs\", \"/run\", "
         "\"--remount-ro\", \"/run\"]",
         "workspace: /home/u/p\nfiles: {hide: [\"/*\"], ro: [/home/u, /sys], rw: [/home/u/p, /data]}\nguard: off\nnet: "
         "{mode: host}\nenv: {pass: [\"*\"]}\n",
         "--chdir /home/u/p: a command starts in the caller's directory, or in the workspace if the box has no such "
         "directory\n--proc /p: every box has its own, at the usual path only\n--remount-ro /run: what is private to "
         "the box cannot be changed\nbind /dev on /dev: the host's /proc, /sys and /dev are not available: name single "
         "devices below /dev\nbind /proc on /proc: the host's /proc, /sys and /dev are not available: name single "
         "devices below /dev\nbind /sys on /sys: it is read-only\n--dev-bind /data /data: its device files cannot be "
         "opened: name devices below /dev\n--uid 5: a user and a group must be chosen together\n"},
        /* The workspace: --chdir's by this machine's name, the first that may be written, and of the system only when all is. */
        {POLICY_BWRAP,
         "[\"--ro-bind\", \"/usr\", \"/usr\", \"--bind\", \"/home/u/.cache\", \"/home/u/.cache\", \"--bind\", "
         "\"/home/u/p\", \"/work\", \"--chdir\", \"/work/src\"]",
         "workspace: /home/u/p/src\nfiles: {hide: [\"/*\"], ro: [/usr], rw: [/home/u/.cache], mounts: "
         "[\"/home/u/p:/work\"]}\nguard: off\nnet: {mode: host}\nenv: {pass: [\"*\"]}\n",
         "--chdir /work/src: a command starts in the caller's directory, or in the workspace if the box has no such "
         "directory\n/home/u/p at /work alone: --chdir makes it the workspace, which is also visible at its own "
         "path\n"},
        {POLICY_BWRAP,
         "[\"--ro-bind\", \"/usr\", \"/usr\", \"--bind\", \"/var/lib/x\", \"/var/lib/x\", \"--ro-bind\", "
         "\"/home/u/q\", \"/home/u/q\", \"--bind\", \"/home/u/p\", \"/work\"]",
         "workspace: /home/u/p\nfiles: {hide: [\"/*\"], ro: [/usr, /home/u/q], rw: [/var/lib/x], mounts: "
         "[\"/home/u/p:/work\"]}\nguard: off\nnet: {mode: host}\nenv: {pass: [\"*\"]}\n",
         "/home/u/p at /work alone: as the first directory that can be a project it is the workspace, which is also "
         "visible at its own path\n"},
        {POLICY_BWRAP, "[\"--ro-bind\", \"/usr\", \"/usr\", \"--ro-bind\", \"/home/u/q\", \"/home/u/q\"]",
         "workspace: /home/u/q\nworkspace_read_only: true\nfiles: {hide: [\"/*\"], ro: [/usr, /home/u/q]}\nguard: "
         "off\nnet: {mode: host}\nenv: {pass: [\"*\"]}\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* What has no meaning here is named, each with a reason, in the order said. */
static void bwrap_names_what_it_cannot(void **state)
{
    (void)state;
    static const char text[] =
        "[\"--ro-bind\", \"/usr\", \"/usr\", \"--args\", \"3\", \"--userns\", \"4\", \"--userns2\", \"5\", "
        "\"--pidns\", \"6\", \"--lock-file\", \"/l\", \"--sync-fd\", \"7\", \"--perms\", \"0700\", \"--size\", \"9\", "
        "\"--tmpfs\", \"/tmp\", \"--dir\", \"/d\", \"--file\", \"8\", \"/f\", \"--bind-data\", \"9\", \"/g\", "
        "\"--ro-bind-data\", \"9\", \"/h\", \"--symlink\", \"a\", \"/b\", \"--chmod\", \"0\", \"/c\", \"--seccomp\", "
        "\"9\", \"--add-seccomp-fd\", \"9\", \"--exec-label\", \"l\", \"--file-label\", \"m\", \"--block-fd\", \"1\", "
        "\"--userns-block-fd\", \"2\", \"--info-fd\", \"3\", \"--json-status-fd\", \"4\", \"--die-with-parent\", "
        "\"--as-pid-1\", \"--cap-add\", \"ALL\", \"--assert-userns-disabled\", \"--bind-fd\", \"3\", \"/i\", "
        "\"--ro-bind-fd\", \"3\", \"/j\", \"--symlink\", \"a\", \"/z\"]";
    static const char *const named[] = {
        "--args 3",           "--userns 4",        "--userns2 5",         "--pidns 6",
        "--lock-file /l",     "--sync-fd 7",       "--perms 0700",        "--size 9",
        "--dir /d",           "--file 8 /f",       "--bind-data 9 /g",    "--ro-bind-data 9 /h",
        "--chmod 0 /c",       "--seccomp 9",       "--add-seccomp-fd 9",  "--exec-label l",
        "--file-label m",     "--block-fd 1",      "--userns-block-fd 2", "--info-fd 3",
        "--json-status-fd 4", "--die-with-parent", "--as-pid-1",          "--cap-add ALL",
        "--bind-fd 3 /i",     "--ro-bind-fd 3 /j", "a workspace",         "--symlink a /b",
        "--symlink a /z"};
    struct err e;
    struct policy *p = from(POLICY_BWRAP, text, &e);
    if (!p)
        fail_msg("%s", e.text);
    size_t n = 0;
    for (size_t i = 0; i < p->n_ignored; i++) {
        assert_true(n < sizeof named / sizeof *named && strlen(p->ignored[i].why) > 10);
        assert_string_equal(p->ignored[i].key, named[n++]);
    }
    assert_int_equal(n, sizeof named / sizeof *named);
    policy_free(p);
}

static void mistakes(void **state)
{
    (void)state;
    static const struct {
        enum policy_format format;
        const char *text, *sentence;
    } cases[] = {
        {POLICY_SRT, "", "/home/u/p/f: there is nothing in it"},
        {POLICY_SRT, "[]", "/home/u/p/f:1:1: the settings must be a mapping, not a list"},
        {POLICY_SRT, "{\"filesystem\": []}", "/home/u/p/f:1:16: filesystem must be a mapping, not a list"},
        {POLICY_SRT, "{\"filesystem\": {\"denyRead\": \"x\"}}",
         "/home/u/p/f:1:29: filesystem.denyRead must be a list, not 'x'"},
        {POLICY_SRT, "{\"filesystem\": {\"denyRead\": [[]]}}",
         "/home/u/p/f:1:30: filesystem.denyRead must be a list of strings, not a list"},
        {POLICY_SRT, "{\"filesystem\": {\"denyReed\": []}}",
         "/home/u/p/f:1:17: unknown key 'filesystem.denyReed' (did you mean 'denyRead'?)"},
        {POLICY_SRT, "{\"filesystem\": {\"denyRead\": [\"~bob/x\"]}}",
         "/home/u/p/f:1:30: filesystem.denyRead: '~bob/x': only ~ and ~/ are supported, not another user's home; write "
         "\\~ for the character"},
        {POLICY_SRT, "{\"filesystem\": {\"allowWrite\": [\"/\"]}}",
         "/home/u/p/f:1:32: files.rw: '/' is the whole file system; name directories below it"},
        {POLICY_SRT, "{\"filesystem\": {\"disabled\": 1}}",
         "/home/u/p/f:1:29: filesystem.disabled must be true or false, not '1'"},
        {POLICY_SRT, "{\"network\": {\"allowedDomains\": [\"http://x\"]}}",
         "/home/u/p/f:1:33: net.allow: 'http://x' is a URL; write the name of its host"},
        {POLICY_SRT, "{\"credentials\": {\"files\": [{\"path\": \"x\"}]}}",
         "/home/u/p/f:1:28: credentials.files: an entry has path and mode"},
        {POLICY_SRT, "{\"credentials\": {\"files\": [{\"path\": \"x\", \"mode\": \"hide\"}]}}",
         "/home/u/p/f:1:50: credentials.files.mode: 'hide' must be deny or mask"},
        {POLICY_SRT_STRICT, "{}", "/home/u/p/f:1:1: network is missing"},
        {POLICY_SRT_STRICT, "{" SRT_NETWORK "}", "/home/u/p/f:1:1: filesystem is missing"},
        {POLICY_SRT_STRICT, "{\"network\": {\"allowedDomains\": []}, " SRT_FILES "}",
         "/home/u/p/f:1:13: network.deniedDomains is missing; an empty list is []"},
        {POLICY_SRT_STRICT, "{" SRT_NETWORK ", " SRT_FILES ", \"somethingNew\": 1}",
         "/home/u/p/f:1:125: somethingNew cannot be honoured: it is not a key of sandbox-runtime 0.0.78; remove it"},
        {POLICY_SRT_STRICT,
         "{" SRT_NETWORK ", " SRT_FILES ", \"credentials\": {\"files\": [{\"path\": \"x\", \"mode\": "
         "\"mask\"}]}}",
         "/home/u/p/f:1:173: credentials.files.mode mask of 'x' cannot be honoured: mode deny hides it completely"},
        {POLICY_SRT_STRICT,
         "{" SRT_NETWORK ", \"filesystem\": {\"denyRead\": [\"a*/b\"], \"allowWrite\": [], \"denyWrite\": []}}",
         "/home/u/p/f:1:86: filesystem.denyRead 'a*/b' cannot be honoured: the pattern cannot be enforced; name the "
         "path, or NAME at any depth"},
        {POLICY_SRT_STRICT,
         "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"mitmProxy\": {}}, " SRT_FILES "}",
         "/home/u/p/f:1:57: network.mitmProxy cannot be honoured: pinfold's own egress proxy decides; another proxy "
         "cannot replace it"},
        {POLICY_DIVE, "sandbox: {enabled: false}",
         "/home/u/p/f:1:20: sandbox.enabled is false: pinfold never runs a command without a box (set it to true)"},
        {POLICY_DIVE, "sandbox: []", "/home/u/p/f:1:10: sandbox must be a mapping, not a list"},
        {POLICY_DIVE, "sandbox: {docker: {command: nerdctl}}",
         "/home/u/p/f:1:29: sandbox.docker.command must be docker or podman, not 'nerdctl'"},
        {POLICY_DIVE, "sandbox: {docker: {additional_mounts: [/a]}}",
         "/home/u/p/f:1:40: sandbox.docker.additional_mounts must be a list of host:container[:opts], not '/a'"},
        {POLICY_DIVE, "sandbox: {seatbelt: {profile: open}}",
         "/home/u/p/f:1:31: sandbox.seatbelt.profile must be restrictive or permissive, not 'open'"},
        {POLICY_DIVE, "sandbox: {max_command_duration_ms: soon}",
         "/home/u/p/f:1:36: sandbox.max_command_duration_ms must be a number of milliseconds, not 'soon'"},
        {POLICY_MYCODE, "{\"enabled\": false}",
         "/home/u/p/f:1:13: enabled is false: pinfold never runs a command without a box (set it to true)"},
        {POLICY_MYCODE, "{\"type\": \"chroot\"}",
         "/home/u/p/f:1:10: type must be docker, firejail, nsjail or vm, not 'chroot'"},
        {POLICY_MYCODE, "{\"limits\": {\"memoryMB\": \"lots\"}}",
         "/home/u/p/f:1:25: limits.memoryMB must be a number, not 'lots'"},
        {POLICY_MYCODE, "{\"limits\": {\"cpuPercent\": 0}}",
         "/home/u/p/f:1:27: limits.cpus: '0%' is less than the minimum of 0.01; write none for no limit"},
        {POLICY_BWRAP, "{}", "/home/u/p/f:1:1: bwrap's options must be a list of strings, not a mapping"},
        {POLICY_BWRAP, "[--ro-bind, [x]]", "/home/u/p/f:1:13: an option of bwrap must be a string, not a list"},
        {POLICY_BWRAP, "[--ro-bnd, /, /]", "/home/u/p/f:1:2: '--ro-bnd': unknown option (bwrap 0.12)"},
        {POLICY_BWRAP, "[--ro-bind, /]", "/home/u/p/f:1:2: '--ro-bind': two values are expected"},
        {POLICY_BWRAP, "[--tmpfs]", "/home/u/p/f:1:2: '--tmpfs': a value is missing"},
        {POLICY_BWRAP, "[--uid, me]", "/home/u/p/f:1:2: 'me': a number is expected"},
        {POLICY_BWRAP, "[--remount-ro, /x]", "/home/u/p/f:1:2: '/x': nothing was mounted there before"},
        {POLICY_BWRAP, "[--setenv, 'a=b', c]", "/home/u/p/f:1:2: env.set: 'a=b' is not a variable's name"},
        {POLICY_DAYCARE, "{\"docker\": {\"enabled\": \"yes\"}}",
         "/home/u/p/f:1:24: docker.enabled must be true or false, not 'yes'"},
        {POLICY_DAYCARE, "{\"docker\": {\"tagg\": 1}}",
         "/home/u/p/f:1:13: unknown key 'docker.tagg' (did you mean 'tag'?)"},
        {POLICY_DAYCARE, "{\"docker\": {\"enabled\": true, \"image\": \"-v\"}}",
         "/home/u/p/f:1:39: image: '-v:latest' is not an image's name, such as debian:12"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        struct policy *p = from(cases[i].format, cases[i].text, &e);
        if (p)
            fail_msg("'%s' was taken", cases[i].text);
        if (!same(e.text, cases[i].sentence))
            fail_msg("\n text: %s\n says: %s\nwants: %s", cases[i].text, e.text, cases[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(srt),     cmocka_unit_test(srt_strict),
                                       cmocka_unit_test(dive),    cmocka_unit_test(mycode),
                                       cmocka_unit_test(bwrap),   cmocka_unit_test(bwrap_names_what_it_cannot),
                                       cmocka_unit_test(daycare), cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
