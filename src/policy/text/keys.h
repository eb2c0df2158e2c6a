/*
 * The table of all keys. Parser, flags, help, manual page, JSON Schema, completion, printing and the rules for
 * untrusted projects are generated from it.
 *
 *   X(identifier, path in a text, flag or NULL, metavariable, type, choices, repeats, takes a value, tightening, help)
 *
 * Choices are in rising order of freedom, so that a TIGHTEN_RANK key is tightened by a choice further left.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/build.h"

/* What an untrusted project's file may set. Repeating the present value is always allowed. */
enum key_tighten {
    TIGHTEN_NEVER, /* any change is refused: it loosens, or that cannot be determined */
    TIGHTEN_ADD,   /* more entries can only forbid more */
    TIGHTEN_RANK,  /* a choice (or false/true, in the order that the key defines) that is not freer */
    TIGHTEN_LESS,  /* a smaller limit */
    TIGHTEN_TRUE,  /* only true */
    TIGHTEN_FALSE, /* only false */
    TIGHTEN_PATH,  /* the access to the path may not grow (merge_paths.c) */
    TIGHTEN_SKIP   /* does not affect the box (version) */
};

#define POLICY_KEYS(X)                                                                                                 \
    X(VERSION, "version", NULL, "1", TYPE_COUNT, NULL, false, true, TIGHTEN_SKIP,                                      \
      "Version of the policy language; 1.")                                                                            \
    X(EXTENDS, "extends", "profile", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                              \
      "Start from this built-in profile or policy file.")                                                              \
    X(WORKSPACE, "workspace", "workspace", "DIR", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,                         \
      "The directory the command works in, and starts in if called from elsewhere; default: the current one.")         \
    X(READ_ONLY, "workspace_read_only", "read-only", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_TRUE,                \
      "Let the command read the workspace but not change it.")                                                         \
    X(RW, "files.rw", "rw", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                                        \
      "Let the command read and write PATH and everything below it.")                                                  \
    X(RO, "files.ro", "ro", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                                        \
      "Let the command read PATH, even inside a hidden directory, but not write it.")                                  \
    X(HIDE, "files.hide", "hide", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                                  \
      "Do not let the command read or list PATH; **/NAME hides NAME at any depth, which slows down every open.")       \
    X(PROTECT, "files.protect", "protect", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                         \
      "Do not let PATH be changed, replaced or created, even in a writable directory.")                                \
    X(CACHE, "files.cache", "cache", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                               \
      "Give PATH a private writable layer per project; the host's files are never changed.")                           \
    X(MOUNTS, "files.mounts", "mount", "SRC:DST[:ro|:nolinks]", TYPE_MOUNTS, NULL, true, true, TIGHTEN_NEVER,          \
      "Show the host's SRC at DST inside.")                                                                            \
    X(STORAGE, "files.storage", "storage", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_NEVER,                        \
      "Keep what is written to PATH until the session is removed; without a session it is private to the run.")        \
    X(EXPAND, "files.expand", "expand", "WHEN", TYPE_CHOICE, "never|start", false, true, TIGHTEN_RANK,                 \
      "Find any-depth names once at the start instead of checking every open (misses files created later).")           \
    X(ENV_FILES, "files.env_files", "env-files", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE,                   \
      "Let the command read .env, .env.local and .env.*.local at the top of the workspace, which are hidden "          \
      "otherwise.")                                                                                                    \
    X(COW, "files.cow", "cow", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_TRUE,                                      \
      "Copy-on-write: changes to the workspace go to a layer, which pinfold diff shows and pinfold apply applies.")    \
    X(GUARD, "guard", "guard", "MODE", TYPE_CHOICE, "strict|existing|off", false, true, TIGHTEN_RANK,                  \
      "Which guarded names are protected: also those that do not exist yet, existing ones only, or none.")             \
    X(GUARD_ROOT, "guard_names.root", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,                        \
      "Names guarded at the top of each writable tree; NAME/ is a directory and everything below it.")                 \
    X(GUARD_DAILY, "guard_names.everyday_names", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,             \
      "Names of ordinary project files, guarded like guard_names.root if guard_names.everyday is guard.")              \
    X(GUARD_ANY, "guard_names.any_depth", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,                    \
      "Names guarded at every depth of writable trees.")                                                               \
    X(GUARD_GIT, "guard_names.git_config", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,                   \
      "Names guarded at every depth whose new content is checked key by key as git configuration.")                    \
    X(GUARD_ALLOW, "guard_names.allow", "guard-allow", "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_NEVER,           \
      "Do not guard this name, as a refusal shows it, such as .envrc or .idea.")                                       \
    X(GUARD_EVERYDAY, "guard_names.everyday", "guard-everyday", "LEVEL", TYPE_CHOICE, "guard|allow", false, true,      \
      TIGHTEN_RANK, "Whether to guard ordinary project files that tools run automatically (lefthook.yml, flake.nix).") \
    X(GIT_VERIFY, "git.verify", "git-verify", "HOW", TYPE_CHOICE, "required|told|off", false, true, TIGHTEN_RANK,      \
      "Whether commits must pass the caller's hooks before a protected branch of the repository moves to them.")       \
    X(GIT_PROTECT, "git.protect_branches", "protect-branch", "BRANCH", TYPE_NAMES, NULL, true, true, TIGHTEN_ADD,      \
      "Branches that are neither rewritten nor deleted, such as main or release/*; default: all of them.")             \
    X(GIT_FORCE, "git.allow_force", "git-allow-force", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE,             \
      "Let a push to the remote host rewrite branches that are not protected, and tags.")                              \
    X(GIT_DELETE, "git.allow_delete", "git-allow-delete", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE,          \
      "Let a push to the remote host delete branches that are not protected, and tags.")                               \
    X(NET, "net.mode", "net", "MODE", TYPE_CHOICE, "none|allow|host", false, true, TIGHTEN_RANK,                       \
      "No network, the allowed hosts only, or the host's own network.")                                                \
    X(ALLOW, "net.allow", "allow", "DOMAIN[:PORT[/tcp]]", TYPE_DOMAINS, NULL, true, true, TIGHTEN_NEVER,               \
      "Let the command reach DOMAIN, *.DOMAIN, an address, a CIDR range or a @SET; implies --net allow.")              \
    X(DENY, "net.deny", "deny", "DOMAIN[:PORT[/tcp]]", TYPE_DOMAINS, NULL, true, true, TIGHTEN_ADD,                    \
      "Refuse DOMAIN, *.DOMAIN, an address, a CIDR range, a @SET or *, even if another rule allows it.")               \
    X(DENY_PORTS, "net.deny_ports", "deny-port", "PORT[-PORT]", TYPE_PORTS, NULL, true, true, TIGHTEN_ADD,             \
      "Refuse this port on every host.")                                                                               \
    X(NET_ASK, "net.ask", "ask", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE,                                   \
      "Ask, at the terminal or over --control-fd, before connecting to a host that no rule names; implies --net "      \
      "allow.")                                                                                                        \
    X(NET_ASK_TIME, "net.ask_time", "ask-time", "TIME", TYPE_DURATION, NULL, false, true, TIGHTEN_NEVER,               \
      "How long to wait for an answer before refusing; default 30s.")                                                  \
    X(PUBLISH, "net.publish", "publish", "[ADDR:][HOST:]BOX", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,             \
      "Forward connections to the host's port HOST (on 127.0.0.1 unless ADDR is given) to port BOX inside; none: no "  \
      "port that was published so far.")                                                                               \
    X(REACH, "net.reach", "reach", "HOST:PORT", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                           \
      "Let the command reach this service of this machine, at the same address: 127.0.0.1:PORT or [::1]:PORT.")        \
    X(CATCH, "net.catch", "net-catch", "WAY", TYPE_CHOICE, "auto|tproxy|routes|loopback", false, true, TIGHTEN_NEVER,  \
      "How to redirect connections of programs without proxy support; without nf_tables by routes or fake IPs, at "    \
      "listed ports "                                                                                                  \
      "only.")                                                                                                         \
    X(UNIX_SOCKETS, "net.unix_sockets", "unix-socket", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_NEVER,            \
      "Let the command connect to the host's socket PATH.")                                                            \
    X(SSH_AGENT, "ssh_agent", "ssh-agent", "KEY[=HOST]", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                  \
      "Let the command use this key of the caller's ssh-agent: to log in at allowed hosts (or HOST) and for git.")     \
    X(GPG_AGENT, "gpg_agent", "gpg-agent", "KEY", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                         \
      "Let the command sign with this key of the caller's gpg-agent: a keygrip, fingerprint or user id.")              \
    X(GPG_CONFIRM, "gpg_confirm", "gpg-confirm", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_TRUE,                    \
      "Ask before each signature of the gpg-agent.")                                                                   \
    X(SSH_CONFIRM, "ssh_confirm", "ssh-confirm", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_TRUE,                    \
      "Ask before each signature of the ssh-agent.")                                                                   \
    X(MEMORY, "limits.memory", "memory", "SIZE", TYPE_SIZE, NULL, false, true, TIGHTEN_LESS,                           \
      "Memory of all processes together, such as 512M or 2G.")                                                         \
    X(CPUS, "limits.cpus", "cpus", "N", TYPE_CPUS, NULL, false, true, TIGHTEN_LESS,                                    \
      "Processor time per second, such as 0.5, 2 or 50%.")                                                             \
    X(PIDS, "limits.pids", "pids", "N", TYPE_COUNT, NULL, false, true, TIGHTEN_LESS,                                   \
      "Maximum number of processes and threads.")                                                                      \
    X(DISK, "limits.disk", "disk", "SIZE", TYPE_SIZE, NULL, false, true, TIGHTEN_LESS,                                 \
      "Size of private storage, and approximately how much the workspace may grow.")                                   \
    X(TIMEOUT, "limits.timeout", "timeout", "TIME", TYPE_DURATION, NULL, false, true, TIGHTEN_LESS,                    \
      "Wall-clock time limit, such as 90s or 1h30m; then the command is asked to end.")                                \
    X(GRACE, "limits.grace", "grace", "TIME", TYPE_DURATION, NULL, false, true, TIGHTEN_LESS,                          \
      "Time between asking the command to end and killing it.")                                                        \
    X(OUTPUT, "limits.output", "output", "SIZE", TYPE_SIZE, NULL, false, true, TIGHTEN_LESS,                           \
      "Bytes it may write to stdout and stderr together.")                                                             \
    X(OPEN_FILES, "limits.open_files", "open-files", "N", TYPE_COUNT, NULL, false, true, TIGHTEN_LESS,                 \
      "Maximum number of open files per process.")                                                                     \
    X(ENV_PASS, "env.pass", NULL, "NAME", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                                 \
      "Variables passed from the caller if set; NAME* passes all with that prefix.")                                   \
    X(ENV_SET, "env.set", "env", "NAME[=VALUE]", TYPE_ENV, NULL, true, true, TIGHTEN_NEVER,                            \
      "Pass the variable NAME, or set it to VALUE.")                                                                   \
    X(ENV_REMOVE, "env.remove", "unset", "NAME", TYPE_NAMES, NULL, true, true, TIGHTEN_ADD,                            \
      "Remove the variable NAME, or all that match NAME*, from the environment.")                                      \
    X(USER, "user", "user", "USER", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                                       \
      "User inside the box: keep, root (without capabilities) or UID:GID.")                                            \
    X(TTY, "tty", "tty", "WHEN", TYPE_CHOICE, "never|auto|always", false, true, TIGHTEN_RANK,                          \
      "Give the command its own terminal.")                                                                            \
    X(ENGINE, "engine", "engine", "NAME", TYPE_CHOICE, "auto|native|bwrap|firejail|nsjail|docker|podman|vm|seatbelt",  \
      false, true, TIGHTEN_NEVER, "What creates the box.")                                                             \
    X(UNSANDBOXED, "unsandboxed_fallback", "unsandboxed-fallback", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE, \
      "Run the command without a box, with a warning, if no engine can enforce the policy; no project may set "        \
      "this.")                                                                                                         \
    X(IMAGE, "image", "image", "IMAGE", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                                   \
      "The image whose files the command sees, for engines that use images.")                                          \
    X(VM_KERNEL, "vm.kernel", "vm-kernel", "FILE", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,                        \
      "The kernel that --engine vm boots; default: the newest of the distribution's packages.")                        \
    X(VM_MODULES, "vm.modules", "vm-modules", "DIR", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,                      \
      "Directory of that kernel's modules (contains modules.dep).")                                                    \
    X(SEATBELT_BASE, "seatbelt.base", "seatbelt-base", "BASE", TYPE_CHOICE, "restrictive|permissive", false, true,     \
      TIGHTEN_RANK, "Default of --engine seatbelt: refuse everything, or allow everything except files and network.")  \
    X(SEATBELT_FILE, "seatbelt.file", "seatbelt-file", "FILE", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,            \
      "A Seatbelt profile to start from instead; the policy's rules follow it.")                                       \
    X(PULL, "pull", "pull", "WHEN", TYPE_CHOICE, "never|missing|always", false, true, TIGHTEN_RANK,                    \
      "Whether docker or podman may pull the image before the start; default: never.")                                 \
    X(ENTRYPOINT, "entrypoint", "entrypoint", "WHICH", TYPE_CHOICE, "none|image", false, true, TIGHTEN_RANK,           \
      "Whether the command is passed to the image's ENTRYPOINT, as docker run does; default: none. Without a "         \
      "command, the image's own runs.")                                                                                \
    X(PLATFORM, "platform", "platform", "OS/ARCH", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                        \
      "Platform of the image, such as linux/arm64, if docker or podman can run it.")                                   \
    X(RUNTIME, "runtime", "runtime", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                              \
      "Container runtime of docker or podman, such as runc, crun, runsc or sysbox-runc.")                              \
    X(DOCKER_HOST, "docker_host", "docker-host", "ADDRESS", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,               \
      "Docker daemon's address: a socket's path or unix://PATH; default: DOCKER_HOST.")                                \
    X(DOCKER_CONTEXT, "docker_context", "docker-context", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,         \
      "Docker context with the daemon's address; default: the client's current one.")                                  \
    X(HOSTNAME, "hostname", "hostname", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER, "The host name inside.")  \
    X(NESTED_USERNS, "allow_nested_userns", "allow-nested-userns", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE, \
      "Let the command create user namespaces (browsers, other sandboxes); a named loss.")                             \
    X(MONITOR, "monitor", "monitor", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_TRUE,                                \
      "Report every refusal while it happens, also those by mounts and permissions; opens and execs cost more.")       \
    X(MAY_LOSE, "may_lose", "may-lose", "GUARANTEE", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                      \
      "A guarantee this run may lose if this machine cannot enforce it.")                                              \
    X(MUST_HAVE, "must_have", "must-have", "GUARANTEE", TYPE_NAMES, NULL, true, true, TIGHTEN_ADD,                     \
      "A guarantee this run must have, overriding may_lose.")

enum key_id {
#define X(id, path, flag, value, type, choices, repeats, takes, tighten, help) KEY_##id,
    POLICY_KEYS(X)
#undef X
        KEY_COUNT
};

extern const struct policy_key key_table[KEY_COUNT];
enum key_tighten key_tightening(enum key_id id);

/* The key with the path `path` ("limits.memory"), or KEY_COUNT. */
enum key_id key_find(struct str path);
/* Whether some key's path begins with `path` and a dot. */
bool key_is_section(struct str path);
/* The full path of the key nearest to the mistyped `path`, or NULL. */
const char *key_nearest(struct str path);
/* Appends the names valid in section `path` ("" at the top): "memory, cpus, pids". */
void key_siblings(struct str path, struct buf *out);
/* The index of `choice` in the key's choices, or -1. */
int key_choice(enum key_id id, struct str choice);
/* The choice at `index`. */
struct str key_choice_name(enum key_id id, unsigned index);
/* The nearest of the names in "a|b|c", or the empty slice. */
struct str nearest_choice(const char *choices, struct str name);
/* Whether a name at this distance is near enough to be suggested for `asked`. */
bool is_near(unsigned distance, struct str asked);
