/*
 * The tables of verbs and of the command line's own flags, from which parsing, help, completion and manual are
 * generated.
 */
#include "base/str.h"
#include "cli/cli.h"

static const char *const session_parts[] = {
    "start [OPTIONS] NAME",
    "start a session, or use the one that runs; one that has ended starts as before; options as for run",
    "list [--json|--names]",
    "list all sessions",
    "show [--json] NAME",
    "show one: policy, commands, storage",
    "stop NAME...",
    "stop it; its storage is kept for the next start",
    "rm NAME...",
    "stop it and delete it with its storage",
    "prune [--dry-run] [--json]",
    "remove what owners that have exited left behind, or list it",
    "update NAME [--allow HOST] [--deny HOST]",
    "allow or deny more hosts",
    NULL};
static const char *const job_parts[] = {"list SESSION",
                                        "list its jobs",
                                        "attach SESSION JOB",
                                        "print its output from the beginning, until it ends",
                                        "output [-f] SESSION JOB",
                                        "print its output so far",
                                        "kill [-s SIGNAL] SESSION JOB",
                                        "end it",
                                        NULL};
static const char *const policy_parts[] = {"check [FILE...]",
                                           "check policy files, or the policy in force here",
                                           "print [--origins] [OPTIONS]",
                                           "print the policy in force here",
                                           "schema",
                                           "print the JSON Schema, for editors",
                                           "convert --from FORMAT FILE",
                                           "translate another sandbox's settings",
                                           "convert --from bwrap -- OPTIONS",
                                           "translate bubblewrap's options",
                                           NULL};
static const char *const image_parts[] = {"check [--engine E] [--agent NAME] IMAGE",
                                          "say what an image lacks for boxes and agents, and how to fix it",
                                          "check ./DOCKERFILE|DIRECTORY",
                                          "say what is wrong in a project's Dockerfile",
                                          "print base|budgie [FILE]",
                                          "print the Dockerfile, or another file, of pinfold's images",
                                          NULL};
static const char *const agent_parts[] = {"list [--json]",
                                          "list the known agents",
                                          "prepare AGENT DIRECTORY",
                                          "copy its login there, for one session",
                                          "run [OPTIONS] NAME [--] [ARG...]",
                                          "start it in a box on this project (also: pinfold NAME)",
                                          "merge NAME [FILE[:KEY]...]",
                                          "list settings that boxes have changed; merge the named ones",
                                          NULL};
static const char *const hook_parts[] = {"install [--managed] [--dry-run] AGENT",
                                         "run its shell commands in the box of its project from now on",
                                         "remove [--managed] [--dry-run] AGENT",
                                         "undo that",
                                         "status AGENT",
                                         "say whether it is in force, also in this directory",
                                         NULL};
static const char *const volume_parts[] = {"[list]",
                                           "list what is kept, and agent-sandbox's volumes",
                                           "rm [--force] NAME",
                                           "remove one",
                                           "import [--branch B] [--dry-run] [PATH]",
                                           "import what agent-sandbox's volumes have for the project",
                                           NULL};
static const char *const why_parts[] = {"read|write|create|exec PATH",
                                        "an act on a file; a program's name is looked up in the box's PATH",
                                        "connect HOST:PORT|PATH",
                                        "a connection to a host, or to a Unix socket",
                                        "signal PID",
                                        "a signal to a process of the host",
                                        NULL};

const struct verb verbs[] = {
    {VERB_RUN, "run", "[OPTIONS] [--] COMMAND...", "run a command in a new box", NULL},
    {VERB_SHELL, "shell", "[PATH] [--branch B] [OPTIONS]", "start a shell in a box (also plain `pinfold`)", NULL},
    {VERB_INIT, "init", "[PATH] [--engine E] [--force]", "write a policy for the project in PATH", NULL},
    {VERB_PROJECT, "start", "[PATH] [--branch B]", "start the project's session, or find the running one", NULL},
    {VERB_PROJECT, "stop", "[PATH] [--branch B]", "stop the project's session; its history is kept", NULL},
    {VERB_PROJECT, "checkout", "BRANCH [PATH]", "make or renew a branch's worktree for its box", NULL},
    {VERB_PROJECT, "rm", "[PATH] [--branch B] [--force]", "remove the boxes of a project or of a branch", NULL},
    {VERB_PROJECT, "list", "[--json]", "list projects, their branches and sessions", NULL},
    {VERB_PROJECT, "volume", "[list|rm NAME|import [PATH]]", "list or remove what is kept for projects", volume_parts},
    {VERB_PROJECT, "build-base", "[base|budgie] [OPTIONS]", "build the base image of projects' images", NULL},
    {VERB_PROJECT, "build", "[PATH] [--base-tag TAG]", "build the project's image", NULL},
    {VERB_PROJECT, "image", "check IMAGE|./DOCKERFILE", "say what an image lacks for boxes and agents", image_parts},
    {VERB_SESSION, "session", "start|list|show|stop|rm|...", "manage sessions, which are boxes that stay",
     session_parts},
    {VERB_EXEC, "exec", "[OPTIONS] SESSION COMMAND...", "run a command in a session", NULL},
    {VERB_JOB, "job", "list|attach|output|kill SESSION", "manage a session's background commands", job_parts},
    {VERB_DIFF, "diff", "[LAYER] [PATH...]", "show what a layer changes (run --cow)", NULL},
    {VERB_APPLY, "apply", "[LAYER] PATH...|--all|-p", "apply changes of a layer to the workspace", NULL},
    {VERB_UNDO, "undo", "[LAYER] [PATH...]", "undo the last apply", NULL},
    {VERB_LAYERS, "layers", "[prune [--older-than T]]", "list layers, their state and size; remove old ones", NULL},
    {VERB_DISCARD, "discard", "[LAYER]", "remove a layer and its changes", NULL},
    {VERB_CAT, "cat", "SESSION:/PATH...", "print a session's files", NULL},
    {VERB_WRITE, "write", "SESSION:/PATH", "replace a session's file with standard input", NULL},
    {VERB_CP, "cp", "FROM TO", "copy files into or out of a session", NULL},
    {VERB_LS, "ls", "SESSION:/PATH", "list a directory of a session", NULL},
    {VERB_PATH, "path", "to-box|to-host SESSION PATH", "translate a path between host and box", NULL},
    {VERB_START, "claude", "[OPTIONS] [--] [ARG...]",
     "start Claude Code in a box; also codex, gemini, opencode, copilot, qwen", NULL},
    {VERB_START, "login", "[OPTIONS] NAME [ARG...]", "log in to an agent, in a box; asks before it keeps the login",
     NULL},
    {VERB_AGENT, "agent", "list|run|merge|prepare", "list and start agents by name, merge their settings", agent_parts},
    {VERB_AGENT, "agent-init-config", "NAME [--auth] [--force]",
     "write the settings that an agent's boxes here start with; also codex-init-config", NULL},
    {VERB_AGENT, "agent-logout", "NAME", "remove an agent's login from boxes here; also codex-logout", NULL},
    {VERB_AGENT, "codex-init-config", "[--auth] [--force]", "the same as agent-init-config codex", NULL},
    {VERB_AGENT, "codex-logout", "", "the same as agent-logout codex", NULL},
    {VERB_HOOK, "hook", "install|remove|status AGENT", "make an agent on the host run its commands in boxes",
     hook_parts},
    {VERB_EXPLAIN, "explain", "[OPTIONS] [-- COMMAND]", "show what a box would allow, and which rule says so", NULL},
    {VERB_WHY, "why", "[OPTIONS] ACTION TARGET", "say whether a box may do something, and why", why_parts},
    {VERB_LEARN, "learn", "[OPTIONS] [--] COMMAND...", "run a command and print the rules that it needed", NULL},
    {VERB_SHOW_RUN, "show-run", "[OPTIONS] [-- COMMAND]", "print the engine's own command line", NULL},
    {VERB_DOCTOR, "doctor", "[--verify] [--json] [DIR]",
     "check what works here, and what git would run in DIR; --verify attacks test boxes", NULL},
    {VERB_POLICY, "policy", "check|print|schema|convert", "check, print and convert policies", policy_parts},
    {VERB_TRUST, "trust", "[--remove] PATH", "let a project's policy allow more than yours", NULL},
    {VERB_LOG, "log", "[-f] [--since T] [OPTIONS]", "print what was denied, as JSON lines", NULL},
    {VERB_MCP, "mcp", "[OPTIONS]", "serve boxes to a model, over MCP", NULL},
    {VERB_COMPLETION, "completion", "bash|zsh|fish", "print completion for a shell", NULL},
    {VERB_VERSION, "version", "", "print the version", NULL},
    {VERB_HELP, "help", "[COMMAND]", "print this help", NULL},
    {0, "", NULL, NULL, NULL}};

/* letter, name, value, subcommands, help */
#define OWN_FLAGS(F)                                                                                                   \
    F(0, "policy", "FILE", VERBS_WITH_POLICY,                                                                          \
      "Also read this policy file, after the system's, the user's and the project's.")                                 \
    F(0, "settings", "FILE", VERBS_WITH_POLICY,                                                                        \
      "Read another sandbox's settings (srt, or the format of --from); of several, each can only tighten.")            \
    F(0, "from", "FORMAT", VERBS_WITH_POLICY,                                                                          \
      "Format of the settings: srt, srt-strict, dive, mycode, daycare or bwrap.")                                      \
    F(0, "no-layers", "", VERBS_WITH_POLICY, "Ignore the policies of the system, the user and the project.")           \
    F(0, "policy-text", "TEXT", VERBS_WITH_POLICY, "Use exactly this policy, without profile and policy files.")       \
    F(0, "json", "",                                                                                                   \
      VERB_RUN | VERB_EXPLAIN | VERB_WHY | VERB_DOCTOR | VERB_SESSION | VERB_EXEC | VERB_JOB | VERB_LS | VERB_AGENT |  \
          VERB_LOG | VERB_LEARN | VERB_PROJECT | VERBS_OF_LAYERS,                                                      \
      "Print one JSON object; run and exec: with the command's output in it.")                                         \
    F(0, "session", "NAME", VERB_RUN | VERB_SHELL, "Run in the session of that name; start it if it does not exist.")  \
    F(0, "session", "NAME", VERB_WHY,                                                                                  \
      "Answer for this running session; give the policy options that it was started with.")                            \
    F(0, "cow", "[=NAME]", VERB_RUN | VERB_SHELL | VERB_SESSION | VERB_START,                                          \
      "Copy-on-write: changes to the workspace go to a layer (pinfold diff, apply, discard); a named one stays.")      \
    F(0, "cow-from", "LAYER", VERB_RUN | VERB_SHELL | VERB_SESSION | VERB_START,                                       \
      "Make a new layer on top of this kept one: the box sees the workspace with its changes (implies --cow).")        \
    F(0, "cow-then", "ask|keep|apply|discard", VERB_RUN | VERB_SHELL | VERB_START,                                     \
      "After --cow: ask, keep the layer (default), apply it if the command ended with status 0, or remove it.")        \
    F(0, "recreate", "", VERB_RUN | VERB_SHELL | VERB_SESSION,                                                         \
      "Recreate the session if its policy, engine or image differs.")                                                  \
    F(0, "as-before", "", VERB_SESSION,                                                                                \
      "start: reuse the options of its last start; those given now are added, or replace single-valued ones.")         \
    F(0, "scope", "OWNER", VERB_RUN | VERB_SHELL | VERB_WHY | VERB_SESSION | VERB_EXEC | VERB_JOB | VERBS_OF_FILES,    \
      "Use this owner's sessions; owners have separate session names.")                                                \
    F(0, "dry-run", "", VERB_SESSION | VERB_HOOK | VERB_LAYERS | VERB_PROJECT,                                         \
      "Print what would be done; do nothing (session prune, layers prune, hook, volume import).")                      \
    F(0, "older-than", "TIME", VERB_LAYERS,                                                                            \
      "prune: also remove layers last used that long ago, applied or not: 30d, 12h.")                                  \
    F(0, "managed", "", VERB_HOOK, "Change the settings of the machine, which no project overrides (as root).")        \
    F(0, "names", "", VERB_SESSION, "list: print only the names, one per line.")                                       \
    F(0, "cwd", "DIR", VERB_RUN | VERB_SHELL | VERB_EXEC | VERB_SESSION,                                               \
      "Start in this directory, as the box sees it.")                                                                  \
    F(0, "names", "", VERB_DIFF, "Print only the paths, one per line.")                                                \
    F(0, "stat", "", VERB_DIFF, "Print how many lines were added and removed.")                                        \
    F('p', "patch", "", VERB_DIFF, "Print a patch that `git apply` accepts.")                                          \
    F(0, "all", "", VERB_APPLY, "Apply every change but guarded names, which are named one by one.")                   \
    F('p', "hunks", "", VERB_APPLY,                                                                                    \
      "Ask about each hunk of a text and each other change, like `git add -p`; answers come from standard input.")     \
    F(0, "to", "DIR", VERB_APPLY | VERB_UNDO,                                                                          \
      "Apply to a copy or another checkout of the workspace instead, where its files are as the box began with them.") \
    F(0, "branch", "NAME", VERB_APPLY,                                                                                 \
      "Commit the chosen changes to this new branch of the repository; the work tree stays as it is.")                 \
    F(0, "merge", "", VERB_APPLY,                                                                                      \
      "Also merge texts that the host has changed, where it is known what the box began with; the others are "         \
      "refused.")                                                                                                      \
    F(0, "conflicts", "leave|mark", VERB_APPLY,                                                                        \
      "With --merge: leave out texts with conflicts (default), or mark them.")                                         \
    F(0, "tool", "COMMAND", VERB_DIFF,                                                                                 \
      "Compare copies of both sides with this program, in a box of its own: COMMAND old new.")                         \
    F(0, "no-pager", "", VERB_DIFF, "Do not show it in a pager (PAGER) on a terminal.")                                \
    F(0, "patch", "FILE", VERB_APPLY,                                                                                  \
      "Apply nothing: write the chosen changes as a patch to this new file (-: standard output), for `git apply`.")    \
    F(0, "apply", "N", VERB_UNDO, "Take this apply back, not the last one.")                                           \
    F(0, "env", "NAME=VALUE", VERB_EXEC, "Set a variable for this command; may be repeated.")                          \
    F(0, "timeout", "TIME", VERB_EXEC, "End the command after this time: 500ms, 30s, 5m.")                             \
    F(0, "memory", "SIZE", VERB_EXEC, "Limit the command's memory, within the session's.")                             \
    F(0, "processes", "N", VERB_EXEC, "Limit the command's processes, within the session's.")                          \
    F(0, "tty", "auto|always|never", VERB_EXEC, "Give the command a terminal inside the box.")                         \
    F(0, "shell", "NAME", VERB_EXEC,                                                                                   \
      "Run the text in this persistent shell of the session; directory, variables and functions are kept.")            \
    F(0, "detach", "", VERB_EXEC, "Run in the background and print the job's number.")                                 \
    F(0, "result", "FILE|fd:N", VERB_RUN | VERB_SHELL | VERB_EXEC | VERB_START,                                        \
      "Write the result as JSON to this file or descriptor; output is not captured.")                                  \
    F(0, "events", "WHERE", VERB_RUN | VERB_SHELL,                                                                     \
      "Write each refusal there as it happens: FILE, fd:N, otlp:FILE, otlp:fd:N, otlp:http://127.0.0.1:PORT or "       \
      "journald.")                                                                                                     \
    F(0, "id", "TEXT", VERB_RUN | VERB_SHELL | VERB_EXEC,                                                              \
      "Your own name for this command, in its result and in the audit log.")                                           \
    F(0, "control-fd", "N", VERB_RUN | VERB_SHELL,                                                                     \
      "Read JSON lines from descriptor N, a socket: network rules, answers to questions.")                             \
    F(0, "mode", "MODE", VERB_WRITE, "Permissions of a new file, octal; an existing file keeps its own.")              \
    F('p', "parents", "", VERB_WRITE, "Create missing parent directories.")                                            \
    F(0, "show-values", "", VERB_EXPLAIN, "Print values of variables, not only their names.")                          \
    F(0, "origins", "", VERB_POLICY, "Print where each rule comes from, as comments.")                                 \
    F(0, "verify", "", VERB_DOCTOR, "Attack default boxes and report what held.")                                      \
    F(0, "agent", "NAME[:PROFILE]", VERB_MCP,                                                                          \
      "Offer this agent as a tool (pinfold agent list), in a box of its own; may be repeated.")                        \
    F(0, "agent", "NAME", VERB_PROJECT, "image check: this agent or program must be there; may be repeated.")          \
    F(0, "engine", "docker|podman", VERB_PROJECT | VERB_INIT,                                                          \
      "init: boxes here are containers of this engine. build-base, build, image: this engine; default: the policy's, " \
      "or "                                                                                                            \
      "podman where it works and has the image, else "                                                                 \
      "docker.")                                                                                                       \
    F(0, "tag", "TAG", VERB_PROJECT, "build-base: the image's tag; default: latest.")                                  \
    F(0, "base-image", "IMAGE", VERB_PROJECT, "build-base: the image to begin with, instead of the Dockerfile's.")     \
    F(0, "build", "", VERB_PROJECT | VERB_SHELL, "start, shell: build the project's image first.")                     \
    F(0, "base-tag", "TAG", VERB_PROJECT | VERB_SHELL,                                                                 \
      "build, and start and shell with --build: the tag of the base image; default: latest.")                          \
    F(0, "claude-code-version", "V", VERB_PROJECT,                                                                     \
      "build-base: Claude Code's version: a number, latest (looked up at npm) or none.")                               \
    F(0, "codex-version", "V", VERB_PROJECT, "build-base: Codex's version, likewise.")                                 \
    F(0, "git-delta-version", "V", VERB_PROJECT, "build-base: git-delta's version: a number or none.")                 \
    F(0, "ast-grep-version", "V", VERB_PROJECT, "build-base: ast-grep's version, as Claude Code's.")                   \
    F(0, "build-arg", "NAME=VALUE", VERB_PROJECT,                                                                      \
      "build-base, build: an argument of the Dockerfile; may be repeated.")                                            \
    F(0, "network", "NET", VERB_PROJECT,                                                                               \
      "build-base, build: the network of the build's steps; default: the engine's.")                                   \
    F(0, "base", "DIR", VERB_MCP, "Let agents work in DIR and below only; may be repeated; default: the workspace.")   \
    F(0, "sandbox", "", VERB_MCP,                                                                                      \
      "Use containers as boxes: whichever of podman and docker works and has the image; with no image the native "     \
      "engine's.")                                                                                                     \
    F(0, "sandbox-image", "IMAGE", VERB_MCP,                                                                           \
      "Image of these containers, with the agents in it; default budgie-sandbox:latest.")                              \
    F(0, "http", "ADDRESS:PORT", VERB_MCP,                                                                             \
      "Serve streamable HTTP at this address instead of stdio; 8931 means 127.0.0.1:8931.")                            \
    F(0, "http-token", "FILE", VERB_MCP,                                                                               \
      "File whose first line clients must send as bearer token; without it a token is generated and printed.")         \
    F(0, "http-origin", "ORIGIN", VERB_MCP, "Also let pages of this origin (https://app.example.com) use the server.") \
    F('f', "follow", "", VERB_LOG | VERB_JOB, "Keep printing new entries.")                                            \
    F(0, "unattended", "", VERB_START, "Let the agent work without asking: the box is its limit.")                     \
    F(0, "explain", "", VERB_START, "Print what the agent's box would be; start nothing.")                             \
    F(0, "session", "NAME", VERB_LOG, "Print only what was denied in the session of that name.")                       \
    F(0, "since", "TIME", VERB_LOG,                                                                                    \
      "Print only what is newer: 90s, 10m, 2h, 3d, or a time in UTC such as 2026-01-31T12:00.")                        \
    F(0, "verify", "", VERB_LOG, "Check the log instead: say whether events were changed or are missing.")             \
    F(0, "head", "", VERB_LOG, "Print one word that stands for the log's present content; keep it elsewhere.")         \
    F(0, "head-was", "WORD", VERB_LOG,                                                                                 \
      "With --verify: also find out whether the log was cut off or rewritten since --head printed WORD.")              \
    F(0, "last", "", VERB_WHY, "Explain the last refusal in this workspace that is in the audit log.")                 \
    F(0, "passes", "N", VERB_LEARN, "Run the command at most this many times; default 5.")                             \
    F(0, "answers", "FILE", VERB_LEARN,                                                                                \
      "Answer with the lines of FILE: allow RULE, deny RULE, with patterns; what neither matches stays refused.")      \
    F(0, "write", "", VERB_LEARN, "Add what was allowed to the project's .pinfold/policy.yaml, and trust it.")         \
    F(0, "shrink", "", VERB_LEARN, "Also name rules of that file that no pass used.")                                  \
    F(0, "force", "", VERB_INIT, "Move a policy that is there to a backup and write a new one.")                       \
    F(0, "force", "", VERB_PROJECT, "rm: also remove commits and changes that exist only there.")                      \
    F(0, "auth", "", VERB_AGENT,                                                                                       \
      "agent-init-config: copy this machine's login, without its refresh token, over theirs.")                         \
    F(0, "force", "", VERB_AGENT, "agent-init-config: overwrite settings that boxes of this project have already.")    \
    F(0, "branch", "NAME", VERB_SHELL | VERB_SHOW_RUN | VERB_PROJECT | VERB_START,                                     \
      "The project's box of that branch, with a worktree of its own; the checkout is read-only there.")                \
    F(0, "names", "", VERB_PROJECT, "list: print only the names of branches here, one per line.")                      \
    F(0, "remove", "", VERB_TRUST, "Withdraw the trust.")                                                              \
    F('s', "signal", "SIGNAL", VERB_JOB, "kill: send this one instead of TERM.")                                       \
    F('q', "quiet", "",                                                                                                \
      VERB_RUN | VERB_SHELL | VERB_POLICY | VERB_TRUST | VERB_SESSION | VERB_EXEC | VERB_MCP | VERB_START,             \
      "Print only errors of starting the box.")                                                                        \
    F('v', "verbose", "", VERB_RUN | VERB_SHELL | VERB_START,                                                          \
      "Print the summary lines even if stderr is not a terminal.")                                                     \
    F('v', "verbose", "", VERB_EXPLAIN,                                                                                \
      "Also print every built-in name, the directories created first and the steps.")                                  \
    F('h', "help", "all", ~0u, "Print help; --help=all: every option.")

#define OWN_FLAG(letter, name, value, verbs, help) {letter, name, value, verbs},
#define OWN_HELP(letter, name, value, verbs, help) {help},

const struct own_flag own_flags[] = {OWN_FLAGS(OWN_FLAG){0, "", "", 0}};

/* Apart, because a start looks for names and never reads these. */
static const struct {
    char text[180];
} own_helps[] = {OWN_FLAGS(OWN_HELP)};

const char *own_help(const struct own_flag *f)
{
    return own_helps[f - own_flags].text;
}

/* The options of a project's verbs, each besides --help. */
enum { TAKES_MOST = 9 };
static const struct {
    const char *verb, *options[TAKES_MOST];
} of_project[] = {{"start", {"branch", "build", "base-tag"}},
                  {"stop", {"branch"}},
                  {"checkout", {NULL}},
                  {"rm", {"branch", "force"}},
                  {"list", {"json", "names"}},
                  {"volume", {"branch", "dry-run", "force", "json", "names"}},
                  {"build-base",
                   {"engine", "tag", "base-image", "build-arg", "network", "claude-code-version", "codex-version",
                    "git-delta-version", "ast-grep-version"}},
                  {"build", {"engine", "base-tag", "build-arg", "network"}},
                  {"image", {"engine", "agent", "json"}}};

/* Other verbs of one kind share their options; these have no use for some of them. */
static const struct {
    const char *verb, *options[4];
} without[] = {{"login", {"cow", "cow-from", "unattended", "json"}},
               {"agent", {"auth", "force"}},
               {"agent-init-config", {"json"}},
               {"codex-init-config", {"json"}},
               {"agent-logout", {"auth", "force", "json"}},
               {"codex-logout", {"auth", "force", "json"}}};

static bool is_among(const char *option, const char *const *options, size_t most)
{
    for (size_t k = 0; k < most && options[k]; k++) {
        if (same(options[k], option))
            return true;
    }
    return false;
}

bool verb_takes(const char *verb, const char *option)
{
    for (size_t i = 0; i < sizeof of_project / sizeof *of_project; i++) {
        if (same(of_project[i].verb, verb))
            return same(option, "help") || is_among(option, of_project[i].options, TAKES_MOST);
    }
    return true;
}

bool verb_has(const char *verb, const char *option)
{
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        if (same(without[i].verb, verb) && is_among(option, without[i].options, 4))
            return false;
    }
    return verb_takes(verb, option);
}

const char *verb_said;

const struct verb *verb_find(const char *name)
{
    for (const struct verb *v = verbs; v->name[0]; v++) {
        if (same(v->name, name))
            return v;
    }
    return NULL;
}
