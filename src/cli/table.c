/*
 * The verbs, and the flags that belong to the command line: what parsing, help, completion and manual are made of.
 */
#include "base/str.h"
#include "cli/cli.h"

const struct verb verbs[] = {{VERB_RUN, "run", "[OPTIONS] [--] COMMAND...", "one command in a fresh box"},
                             {VERB_SHELL, "shell", "[PATH] [OPTIONS]", "a shell in a box (plain `pinfold`)"},
                             {VERB_EXPLAIN, "explain", "[OPTIONS] [-- COMMAND]", "what would be done, and by what"},
                             {VERB_DOCTOR, "doctor", "[--verify] [--json]", "what works here; attacks a box"},
                             {VERB_POLICY, "policy", "check|print|schema|convert", "the policy language"},
                             {VERB_TRUST, "trust", "[--remove] PATH", "let a project's policy loosen"},
                             {VERB_LOG, "log", "[-f]", "what was denied, as JSON lines"},
                             {VERB_COMPLETION, "completion", "bash|zsh|fish", "completion for a shell"},
                             {VERB_VERSION, "version", "", "the version"},
                             {VERB_HELP, "help", "[VERB]", "this"},
                             {0, NULL, NULL, NULL}};

const struct own_flag own_flags[] = {
    {0, "policy", "FILE", VERBS_WITH_POLICY, "Read this policy file after the system's, the user's and the project's."},
    {0, "settings", "FILE", VERBS_WITH_POLICY, "Read another sandbox's settings (srt, or as --from says)."},
    {0, "from", "FORMAT", VERBS_WITH_POLICY, "What the settings are: srt, dive, mycode, daycare or bwrap."},
    {0, "no-layers", NULL, VERBS_WITH_POLICY, "Read neither the system's, nor the user's, nor the project's policy."},
    {0, "policy-text", "TEXT", VERBS_WITH_POLICY, "Take this whole policy instead of profile and files."},
    {0, "json", NULL, VERB_RUN | VERB_EXPLAIN | VERB_DOCTOR,
     "Print one JSON object; run: with the command's output in it."},
    {0, "result", "FILE|fd:N", VERB_RUN | VERB_SHELL, "Write the result as JSON there; the streams stay direct."},
    {0, "control-fd", "N", VERB_RUN | VERB_SHELL,
     "Take JSON lines from descriptor N, a socket: rules of the network, answers to questions."},
    {0, "show-values", NULL, VERB_EXPLAIN, "Print values of variables, not only their names."},
    {0, "origins", NULL, VERB_POLICY, "Print where each rule was said, as comments."},
    {0, "verify", NULL, VERB_DOCTOR, "Try to break default boxes, and say what held."},
    {'f', "follow", NULL, VERB_LOG, "Go on with events to come."},
    {0, "remove", NULL, VERB_TRUST, "Take the trust back."},
    {'q', "quiet", NULL, VERB_RUN | VERB_SHELL | VERB_POLICY | VERB_TRUST, "Say nothing but errors."},
    {'v', "verbose", NULL, VERB_RUN | VERB_SHELL, "Print the lines before and after also where stderr is no terminal."},
    {'h', "help", "all", ~0u, "Print help; --help=all: every option."},
    {0, NULL, NULL, 0, NULL}};

const struct verb *verb_find(const char *name)
{
    for (const struct verb *v = verbs; v->name; v++) {
        if (same(v->name, name))
            return v;
    }
    return NULL;
}
