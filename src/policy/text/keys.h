/*
 * The one table of keys. Parser, flags, help, manual page, JSON Schema, completion, printing and the rule of what an
 * untrusted project may say are all expansions of it: a key that is not here does not exist.
 *
 *     X(identifier, path in a text, flag or NULL, metavariable, type, choices, repeats, takes a value, tightening, help)
 *
 * Choices stand in rising order of freedom, so that a TIGHTEN_RANK key is tightened by a choice further left.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/build.h"

/* What an untrusted project's file may say of a key. Saying again what holds already is always allowed. */
enum key_tighten {
    TIGHTEN_NEVER, /* any change is refused: it loosens, or nobody can tell                     */
    TIGHTEN_ADD,   /* more entries only ever forbid more                                        */
    TIGHTEN_RANK,  /* a choice (or false/true, "false" being freer where the name says so) that is not freer */
    TIGHTEN_LESS,  /* a smaller limit                                                           */
    TIGHTEN_TRUE,  /* only true                                                                 */
    TIGHTEN_FALSE, /* only false                                                                */
    TIGHTEN_PATH,  /* what may be done with the path must not become more (merge.c)             */
    TIGHTEN_SKIP   /* says nothing about the box (version)                                      */
};

#define POLICY_KEYS(X)                                                                                                 \
    X(VERSION, "version", NULL, "1", TYPE_COUNT, NULL, false, true, TIGHTEN_SKIP,                                      \
      "Version of the policy language; 1.")                                                                            \
    X(EXTENDS, "extends", "profile", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                              \
      "Start from this built-in profile or policy file.")                                                              \
    X(WORKSPACE, "workspace", "workspace", "DIR", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,                         \
      "The directory the command works in, and starts in when called from elsewhere; the current one by default.")     \
    X(READ_ONLY, "workspace_read_only", "read-only", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_TRUE,                \
      "Let the command read the workspace but not change it.")                                                         \
    X(RW, "files.rw", "rw", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                                        \
      "Let the command read and write PATH and everything below it.")                                                  \
    X(RO, "files.ro", "ro", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                                        \
      "Let the command read PATH, also inside something hidden, but not write it.")                                    \
    X(HIDE, "files.hide", "hide", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                                  \
      "Let the command neither read nor list PATH; **/NAME hides NAME at any depth, at a price on every open.")        \
    X(PROTECT, "files.protect", "protect", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                         \
      "Refuse to change, replace or create PATH, although what is around it is writable.")                             \
    X(CACHE, "files.cache", "cache", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_PATH,                               \
      "Give PATH a private writable layer per project; the host's files are never written.")                           \
    X(MOUNTS, "files.mounts", "mount", "SRC:DST[:ro]", TYPE_MOUNTS, NULL, true, true, TIGHTEN_NEVER,                   \
      "Show the host's SRC at DST inside.")                                                                            \
    X(STORAGE, "files.storage", "storage", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_NEVER,                        \
      "Keep what is written to PATH for the session until it is removed; a run without one has it to itself.")         \
    X(EXPAND, "files.expand", "expand", "WHEN", TYPE_CHOICE, "never|start", false, true, TIGHTEN_RANK,                 \
      "Look for any-depth names once at the start instead of judging every open (files made later escape).")           \
    X(GUARD, "guard", "guard", "MODE", TYPE_CHOICE, "strict|existing|off", false, true, TIGHTEN_RANK,                  \
      "How far guarded names are protected: also those that do not exist yet, existing ones only, or not at all.")     \
    X(GUARD_ROOT, "guard_names.root", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,                        \
      "Names guarded at the top of each writable tree; NAME/ is a directory and all below it.")                        \
    X(GUARD_DAILY, "guard_names.everyday_names", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,             \
      "Names of ordinary project files, guarded as those of guard_names.root where guard_names.everyday is guard.")    \
    X(GUARD_ANY, "guard_names.any_depth", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,                    \
      "Names guarded at every depth of writable trees.")                                                               \
    X(GUARD_GIT, "guard_names.git_config", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_ADD,                   \
      "Names guarded at every depth whose new content is judged key by key as a git configuration.")                   \
    X(GUARD_ALLOW, "guard_names.allow", NULL, "NAME", TYPE_GUARDS, NULL, true, true, TIGHTEN_NEVER,                    \
      "Names taken from the lists of guarded names.")                                                                  \
    X(GUARD_EVERYDAY, "guard_names.everyday", "guard-everyday", "LEVEL", TYPE_CHOICE, "guard|allow", false, true,      \
      TIGHTEN_RANK,                                                                                                    \
      "Whether ordinary project files that tools run by themselves (lefthook.yml, flake.nix) are guarded, too.")       \
    X(NET, "net.mode", "net", "MODE", TYPE_CHOICE, "none|allow|host", false, true, TIGHTEN_RANK,                       \
      "No network, the allowed hosts only, or the host's own network.")                                                \
    X(ALLOW, "net.allow", "allow", "DOMAIN[:PORT[/tcp]]", TYPE_DOMAINS, NULL, true, true, TIGHTEN_NEVER,               \
      "Let the command reach DOMAIN, *.DOMAIN, an address, a CIDR range or a @SET; turns --net allow on.")             \
    X(DENY, "net.deny", "deny", "DOMAIN[:PORT[/tcp]]", TYPE_DOMAINS, NULL, true, true, TIGHTEN_ADD,                    \
      "Refuse DOMAIN, *.DOMAIN, an address, a CIDR range, a @SET or * even where something allows it.")                \
    X(DENY_PORTS, "net.deny_ports", "deny-port", "PORT[-PORT]", TYPE_PORTS, NULL, true, true, TIGHTEN_ADD,             \
      "Refuse this port of every host.")                                                                               \
    X(NET_ASK, "net.ask", "ask", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE,                                   \
      "Ask, at the terminal or over --control-fd, before a host that no rule names is reached; turns --net allow on.") \
    X(NET_ASK_TIME, "net.ask_time", "ask-time", "TIME", TYPE_DURATION, NULL, false, true, TIGHTEN_NEVER,               \
      "How long a question waits for an answer before it is answered no; 30s by default.")                             \
    X(PUBLISH, "net.publish", "publish", "[ADDR:][HOST:]BOX", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,             \
      "Pass connections to the host's port HOST, on 127.0.0.1 unless ADDR is said, on to port BOX inside.")            \
    X(REACH, "net.reach", "reach", "HOST:PORT", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                           \
      "Let the command reach this service of this machine, at the same address: 127.0.0.1:PORT or [::1]:PORT.")        \
    X(CATCH, "net.catch", "net-catch", "WAY", TYPE_CHOICE, "auto|tproxy|routes|loopback", false, true, TIGHTEN_NEVER,  \
      "How connections that know no proxy are caught; without nf_tables by routes or stand-ins, at listed ports "      \
      "only.")                                                                                                         \
    X(UNIX_SOCKETS, "net.unix_sockets", "unix-socket", "PATH", TYPE_PATHS, NULL, true, true, TIGHTEN_NEVER,            \
      "Let the command connect to the host's socket PATH.")                                                            \
    X(MEMORY, "limits.memory", "memory", "SIZE", TYPE_SIZE, NULL, false, true, TIGHTEN_LESS,                           \
      "Memory of all its processes together, as 512M or 2G.")                                                          \
    X(CPUS, "limits.cpus", "cpus", "N", TYPE_CPUS, NULL, false, true, TIGHTEN_LESS,                                    \
      "Processors it may keep busy, as 0.5, 2 or 50%.")                                                                \
    X(PIDS, "limits.pids", "pids", "N", TYPE_COUNT, NULL, false, true, TIGHTEN_LESS,                                   \
      "Processes and threads at one time.")                                                                            \
    X(DISK, "limits.disk", "disk", "SIZE", TYPE_SIZE, NULL, false, true, TIGHTEN_LESS,                                 \
      "Bytes of private storage, and about how much the workspace may grow.")                                          \
    X(TIMEOUT, "limits.timeout", "timeout", "TIME", TYPE_DURATION, NULL, false, true, TIGHTEN_LESS,                    \
      "Wall time until the command is asked to end, as 90s or 1h30m.")                                                 \
    X(GRACE, "limits.grace", "grace", "TIME", TYPE_DURATION, NULL, false, true, TIGHTEN_LESS,                          \
      "Time between asking the command to end and ending it.")                                                         \
    X(OUTPUT, "limits.output", "output", "SIZE", TYPE_SIZE, NULL, false, true, TIGHTEN_LESS,                           \
      "Bytes it may write to stdout and stderr together.")                                                             \
    X(OPEN_FILES, "limits.open_files", "open-files", "N", TYPE_COUNT, NULL, false, true, TIGHTEN_LESS,                 \
      "Files one process may have open.")                                                                              \
    X(ENV_PASS, "env.pass", NULL, "NAME", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                                 \
      "Variables passed from the caller where they are set; NAME* passes all that begin so.")                          \
    X(ENV_SET, "env.set", "env", "NAME[=VALUE]", TYPE_ENV, NULL, true, true, TIGHTEN_NEVER,                            \
      "Pass the variable NAME, or set it to VALUE.")                                                                   \
    X(ENV_REMOVE, "env.remove", "unset", "NAME", TYPE_NAMES, NULL, true, true, TIGHTEN_ADD,                            \
      "Take the variable NAME, or all that begin as NAME*, out of the environment.")                                   \
    X(USER, "user", "user", "USER", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                                       \
      "Who the command is inside: keep, root (without capabilities) or UID:GID.")                                      \
    X(TTY, "tty", "tty", "WHEN", TYPE_CHOICE, "never|auto|always", false, true, TIGHTEN_RANK,                          \
      "Give the command a terminal of its own.")                                                                       \
    X(ENGINE, "engine", "engine", "NAME", TYPE_CHOICE, "auto|native|bwrap|firejail|nsjail|docker|podman|vm|seatbelt",  \
      false, true, TIGHTEN_NEVER, "What switches the box on.")                                                         \
    X(UNSANDBOXED, "unsandboxed_fallback", "unsandboxed-fallback", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE, \
      "Run the command without any box, with a warning, where no engine can honour the policy; no project may say "    \
      "this.")                                                                                                         \
    X(IMAGE, "image", "image", "IMAGE", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                                   \
      "The image whose files the command sees, for engines that have images.")                                         \
    X(VM_KERNEL, "vm.kernel", "vm-kernel", "FILE", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,                        \
      "The kernel that --engine vm boots; the newest of the distribution's packages by default.")                      \
    X(VM_MODULES, "vm.modules", "vm-modules", "DIR", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,                      \
      "Where the modules of that kernel are, a directory with modules.dep.")                                           \
    X(SEATBELT_BASE, "seatbelt.base", "seatbelt-base", "BASE", TYPE_CHOICE, "restrictive|permissive", false, true,     \
      TIGHTEN_RANK, "What --engine seatbelt begins with: everything refused, or everything but files and network.")    \
    X(SEATBELT_FILE, "seatbelt.file", "seatbelt-file", "FILE", TYPE_PATH, NULL, false, true, TIGHTEN_NEVER,            \
      "A Seatbelt profile to begin with instead; the policy's rules still come after it.")                             \
    X(PULL, "pull", "pull", "WHEN", TYPE_CHOICE, "never|missing|always", false, true, TIGHTEN_RANK,                    \
      "Whether docker or podman may fetch the image from its registry before the start; never by default.")            \
    X(PLATFORM, "platform", "platform", "OS/ARCH", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                        \
      "The platform of the image, as linux/arm64, where docker or podman can run it.")                                 \
    X(RUNTIME, "runtime", "runtime", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,                              \
      "The runtime that docker or podman starts the container with, as runc, crun, runsc or sysbox-runc.")             \
    X(DOCKER_HOST, "docker_host", "docker-host", "ADDRESS", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,               \
      "Where docker's daemon listens: a socket's path, or unix://PATH; DOCKER_HOST by default.")                       \
    X(DOCKER_CONTEXT, "docker_context", "docker-context", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER,         \
      "The docker context that says where the daemon is; the client's current one by default.")                        \
    X(HOSTNAME, "hostname", "hostname", "NAME", TYPE_TEXT, NULL, false, true, TIGHTEN_NEVER, "The host name inside.")  \
    X(NESTED_USERNS, "allow_nested_userns", "allow-nested-userns", NULL, TYPE_BOOL, NULL, false, false, TIGHTEN_FALSE, \
      "Let the command make user namespaces (browsers, other sandboxes); a named loss.")                               \
    X(MAY_LOSE, "may_lose", "may-lose", "GUARANTEE", TYPE_NAMES, NULL, true, true, TIGHTEN_NEVER,                      \
      "A guarantee that this run may do without where the machine cannot honour it.")                                  \
    X(MUST_HAVE, "must_have", "must-have", "GUARANTEE", TYPE_NAMES, NULL, true, true, TIGHTEN_ADD,                     \
      "A guarantee that this run may not do without, whatever was said before.")

enum key_id {
#define X(id, path, flag, value, type, choices, repeats, takes, tighten, help) KEY_##id,
    POLICY_KEYS(X)
#undef X
        KEY_COUNT
};

extern const struct policy_key key_table[KEY_COUNT];
enum key_tighten key_tightening(enum key_id id);

/* The key standing at `path` ("limits.memory") or KEY_COUNT. */
enum key_id key_find(struct str path);
/* Whether some key's path begins with `path` and a dot. */
bool key_is_section(struct str path);
/* The key nearest to the mistyped `path` as a full path, or NULL when none is near. */
const char *key_nearest(struct str path);
/* Appends the names that may stand in section `path` ("" at the top): "memory, cpus, pids". */
void key_siblings(struct str path, struct buf *out);
/* The index of `choice` in the key's choices, or -1. */
int key_choice(enum key_id id, struct str choice);
/* The choice at `index`. */
struct str key_choice_name(enum key_id id, unsigned index);
/* The nearest of the names in "a|b|c", or the empty slice when none is near. */
struct str nearest_choice(const char *choices, struct str name);
/* Whether a name at this distance is near enough to be offered instead of `asked`. */
bool is_near(unsigned distance, struct str asked);
