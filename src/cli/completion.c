/*
 * Completion scripts, generated from the same tables as --help. While the user types, only names of sessions and of a
 * project's branches are requested from pinfold (session list --names, list --names).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"

/* What a verb's words are, one after the other; the last repeats. */
enum completion_word {
    WORD_END,
    WORD_NONE,
    WORD_PART,
    WORD_SESSION,
    WORD_BRANCH,
    WORD_PLACE,
    WORD_FILE,
    WORD_COMMAND,
    WORD_VERB,
    WORD_AGENT
};
static const struct {
    enum verb_id verb;
    enum completion_word words[3];
    const char *parts, *name; /* `name`: of the verb alone that has it, of several with one id */
} of_verbs[] = {{VERB_RUN, {WORD_COMMAND}, NULL},
                {VERB_SHELL, {WORD_FILE}, NULL},
                {VERB_INIT, {WORD_FILE}, NULL},
                {VERB_PROJECT, {WORD_FILE}, NULL},
                {VERB_PROJECT, {WORD_BRANCH, WORD_FILE}, NULL, "checkout"},
                {VERB_PROJECT, {WORD_PART, WORD_FILE}, "list rm import", "volume"},
                {VERB_PROJECT, {WORD_PART, WORD_FILE}, "check", "image"},
                {VERB_SESSION, {WORD_PART, WORD_SESSION}, "start list show stop rm prune update"},
                {VERB_EXEC, {WORD_SESSION, WORD_COMMAND}, NULL},
                {VERB_JOB, {WORD_PART, WORD_SESSION, WORD_NONE}, "list attach output kill"},
                {VERB_LAYERS, {WORD_PART, WORD_NONE}, "prune"},
                {VERB_CAT, {WORD_PLACE}, NULL},
                {VERB_WRITE, {WORD_PLACE}, NULL},
                {VERB_CP, {WORD_PLACE}, NULL},
                {VERB_LS, {WORD_PLACE}, NULL},
                {VERB_PATH, {WORD_PART, WORD_SESSION, WORD_FILE}, "to-box to-host"},
                {VERB_AGENT, {WORD_PART, WORD_AGENT, WORD_FILE}, "list run merge prepare"},
                {VERB_AGENT, {WORD_AGENT, WORD_NONE}, NULL, "agent-init-config"},
                {VERB_AGENT, {WORD_AGENT, WORD_NONE}, NULL, "agent-logout"},
                {VERB_AGENT, {WORD_NONE}, NULL, "codex-init-config"},
                {VERB_AGENT, {WORD_NONE}, NULL, "codex-logout"},
                {VERB_HOOK, {WORD_PART, WORD_NONE}, "install remove status"},
                {VERB_EXPLAIN, {WORD_COMMAND}, NULL},
                {VERB_WHY, {WORD_PART, WORD_FILE}, "read write create exec connect signal"},
                {VERB_SHOW_RUN, {WORD_COMMAND}, NULL},
                {VERB_POLICY, {WORD_PART, WORD_FILE}, "check print schema convert"},
                {VERB_TRUST, {WORD_FILE}, NULL},
                {VERB_COMPLETION, {WORD_PART, WORD_NONE}, "bash zsh fish"},
                {VERB_HELP, {WORD_VERB, WORD_NONE}, NULL}};
enum { N_OF_VERBS = sizeof of_verbs / sizeof *of_verbs };

#define PROFILES "workspace readonly untrusted restrictive permissive" /* files are possible, too */

/* Names that the tables of the options do not have: with spaces between. */
static struct {
    struct buf features, sets, agents;
} known_names;

static void put_name(struct buf *b, const char *before, const char *name)
{
    buf_printf(b, "%s%s%s", b->n ? " " : "", before, name);
}

static void put_names(struct buf *b, const char *before, const struct pinfold_value *list)
{
    for (const struct pinfold_value *v = pinfold_value_first(list); v; v = pinfold_value_next(v)) {
        const char *name =
            pinfold_value_text(pinfold_value_type(v) == PINFOLD_VALUE_OBJECT ? pinfold_value_get(v, "name") : v, NULL);
        put_name(b, before, name ? name : "");
    }
}

static void gather_names(void)
{
    struct pinfold_error error;
    struct pinfold_report *report = NULL;
    (void)pinfold_names_report(&report, &error);
    const struct pinfold_value *all = pinfold_report_value(report);
    known_names.features = known_names.sets = known_names.agents = BUF(1u << 14);
    put_names(&known_names.features, "", pinfold_value_get(all, "guarantees"));
    put_names(&known_names.sets, "@", pinfold_value_get(all, "host_sets"));
    put_names(&known_names.agents, "", pinfold_value_get(all, "agents"));
    pinfold_report_free(report);
}

/* What may stand for an option's value besides what its table says; NULL. */
static const char *values_of(const char *option)
{
    return same(option, "profile")                                 ? PROFILES
           : same(option, "may-lose") || same(option, "must-have") ? buf_cstr(&known_names.features)
           : same(option, "allow") || same(option, "deny")         ? buf_cstr(&known_names.sets)
           : same(option, "agent")                                 ? buf_cstr(&known_names.agents)
           : same(option, "from")                                  ? "srt srt-strict dive mycode daycare bwrap"
                                                                   : NULL;
}

/* Whether entry `i` says what the words of this verb are. */
static bool is_of(size_t i, const struct verb *v)
{
    if (of_verbs[i].verb != v->id || (of_verbs[i].name && !same(of_verbs[i].name, v->name)))
        return false;
    for (size_t k = 0; k < N_OF_VERBS && !of_verbs[i].name; k++) {
        if (of_verbs[k].name && same(of_verbs[k].name, v->name))
            return false;
    }
    return true;
}

/* The place that stands for all that follow. */
static size_t last_word(size_t i)
{
    return of_verbs[i].words[2] ? 2 : of_verbs[i].words[1] ? 1 : 0;
}

static void verb_names(void)
{
    for (const struct verb *v = verbs; v->name[0]; v++)
        printf(" %s", v->name);
}

/* "a|b|c" with spaces. */
static void choices_spaced(const char *choices)
{
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

static void single_quoted(const char *text)
{
    for (; *text; text++)
        printf(*text == '\'' ? "'\\''" : "%c", *text);
}

static bool is_path(const char *value)
{
    return value && (same(value, "PATH") || same(value, "DIR") || same(value, "FILE") || strstr(value, "FILE|"));
}

/* One option of either table: what the scripts need of it. */
struct flag {
    const char *name, *value, *choices, *help;
    char letter;
    bool repeats;
    unsigned verbs;
};

/* Whether it stands among those of the policy already: --cow. */
static bool is_of_policy(const struct own_flag *own, unsigned only)
{
    const struct pinfold_option_info *policy;
    if (only & ~(unsigned)VERBS_WITH_POLICY || own->verbs & ~(unsigned)VERBS_WITH_POLICY)
        return false;
    for (size_t i = 0; (policy = pinfold_option_at(i)) != NULL; i++) {
        if (policy->name && same(policy->name, own->name))
            return true;
    }
    return false;
}

/* Whose options are printed; NULL: those of all. */
static const char *of_verb;

/* Calls `each` for every option, those of the policy first. */
static void all_flags(void (*each)(const struct flag *f, unsigned only), unsigned only)
{
    const struct pinfold_option_info *policy;
    for (size_t i = 0; (only & VERBS_WITH_POLICY) && (policy = pinfold_option_at(i)) != NULL; i++) {
        const struct flag f = {.name = policy->name,
                               .value = policy->takes_value ? policy->value ? policy->value : "VALUE" : NULL,
                               .choices =
                                   policy->name && values_of(policy->name) ? values_of(policy->name) : policy->choices,
                               .help = policy->help,
                               .repeats = policy->repeats,
                               .verbs = VERBS_WITH_POLICY};
        if (f.name)
            each(&f, only);
    }
    for (const struct own_flag *o = own_flags; o->name[0]; o++) {
        bool choices = strchr(o->value, '|') && !is_path(o->value);
        const struct flag f = {.name = o->name,
                               /* A value that may be left out never stands apart: --cow=NAME. */
                               .value = same(o->name, "help") || o->value[0] == '[' ? NULL : own_value(o),
                               .choices = values_of(o->name) ? values_of(o->name)
                                          : choices          ? o->value
                                                             : NULL,
                               .help = own_help(o),
                               .letter = o->letter,
                               .repeats = o->value[0] != 0,
                               .verbs = o->verbs};
        if (o->verbs & only && !is_of_policy(o, only) && (!of_verb || verb_has(of_verb, o->name)))
            each(&f, only);
    }
}

/* Agents that are started by their names, and are no verbs. */
static void agent_names(const char *before, const char *after)
{
    struct str rest = buf_view(&known_names.agents);
    while (rest.n) {
        char name[64];
        struct str one = str_until(&rest, ' ');
        snprintf(name, sizeof name, "%.*s", (int)one.n, one.p);
        if (one.n && !verb_find(name))
            printf("%s%s%s", before, name, after);
    }
}

static void bash_name(const struct flag *f, unsigned only)
{
    (void)only;
    printf(" --%s", f->name);
}

static void bash_takes(const struct flag *f, unsigned only)
{
    (void)only;
    if (f->value || f->choices)
        printf("--%s|", f->name);
}

static void bash_value(const struct flag *f, unsigned only)
{
    (void)only;
    if (f->choices) {
        printf("    --%s) COMPREPLY=($(compgen -W '", f->name);
        choices_spaced(f->choices);
        printf("' -- \"$cur\")%s); return;;\n", same(f->name, "profile") ? " $(compgen -f -- \"$cur\")" : "");
    } else if (is_path(f->value)) {
        printf("    --%s) COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n", f->name);
    } else if (same(f->name, "session")) {
        printf("    --session) _pinfold_lines \"$(pinfold session list --names 2>/dev/null)\"; return;;\n");
    } else if (same(f->name, "branch")) {
        printf("    --branch) _pinfold_lines \"$(pinfold list --names 2>/dev/null)\"; return;;\n");
    } else if (f->value) {
        printf("    --%s) return;;\n", f->name);
    }
}

/* What stands at one place of a verb's words. */
static void bash_word(enum completion_word w, const char *parts)
{
    static const char *const how[] = {[WORD_NONE] = ":",
                                      [WORD_SESSION] = "_pinfold_lines \"$(pinfold session list --names 2>/dev/null)\"",
                                      [WORD_BRANCH] = "_pinfold_lines \"$(pinfold list --names 2>/dev/null)\"",
                                      [WORD_PLACE] = "_pinfold_places",
                                      [WORD_FILE] = "COMPREPLY=($(compgen -f -- \"$cur\"))",
                                      [WORD_COMMAND] = "COMPREPLY=($(compgen -c -f -- \"$cur\"))"};
    if (w == WORD_PART || w == WORD_VERB || w == WORD_AGENT) {
        printf("COMPREPLY=($(compgen -W '%s", w == WORD_AGENT ? buf_cstr(&known_names.agents) : parts ? parts : "");
        if (w == WORD_VERB)
            verb_names();
        printf("' -- \"$cur\"))");
    } else {
        printf("%s", how[w]);
    }
    printf(";;\n");
}

static void bash(void)
{
    printf("# bash completion for pinfold\n"
           "_pinfold_lines() {\n    local line\n"
           "    while IFS= read -r line; do\n"
           "        [ -z \"$line\" ] || [ \"${line#\"$cur\"}\" = \"$line\" ] && [ -n \"$cur\" ] || "
           "[ -z \"$line\" ] || COMPREPLY+=(\"$line\")\n"
           "    done <<<\"$1\"\n}\n"
           "_pinfold_places() {\n"
           "    _pinfold_lines \"$(pinfold session list --names 2>/dev/null | sed 's/$/:/')\"\n"
           "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n}\n"
           "_pinfold() {\n"
           "    local last=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i\n    local -a w=()\n"
           "    # \"@npm\" comes as two words, \"=@npm\" as \"=@\" and one more: here they are \"@npm\", and \"=\" "
           "before it\n"
           "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
           "        case $i:${COMP_WORDS[i-(i>0)]} in\n"
           "        0:*) w+=(\"${COMP_WORDS[i]}\");;\n"
           "        *:@|*:=@) w[${#w[@]}-1]+=${COMP_WORDS[i]};;\n"
           "        *) if [ \"${COMP_WORDS[i]}\" = =@ ]; then w+=(= @); else w+=(\"${COMP_WORDS[i]}\"); fi;;\n"
           "        esac\n    done\n"
           "    _pinfold_words $((${#w[@]} - 1))\n"
           "    # what is typed of it stands behind the @ already\n"
           "    case $last:$before in @:*|=@:*|*:@|*:=@) COMPREPLY=(\"${COMPREPLY[@]#@}\");; esac\n}\n"
           "_pinfold_words() {\n"
           "    local cur prev verb words i n=0 c=$1\n    COMPREPLY=()\n"
           "    cur=${w[c]}\n    prev=${w[c-1]}\n    verb=${w[1]}\n"
           "    # \"--net=a\" comes as three words\n"
           "    if [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then prev=${w[c-2]}; fi\n"
           "    if [ \"$c\" = 1 ]; then COMPREPLY=($(compgen -W '");
    verb_names();
    agent_names(" ", "");
    printf(" --help --version' -- \"$cur\")); return; fi\n"
           "    for ((i = 2; i < c; i++)); do\n        case ${w[i]} in\n"
           "        --) case $verb in exec) ;; *) COMPREPLY=($(compgen -c -f -- \"$cur\")); return;; esac;;\n        ");
    all_flags(bash_takes, ~0u);
    printf("--) [ \"${w[i+1]}\" = = ] && ((i += 2)) || ((i++));;\n"
           "        -*|=) ;;\n        *) ((n++));;\n        esac\n    done\n"
           "    [ \"$n\" = 0 ] || [ \"$verb\" != run ] && case $prev in\n");
    all_flags(bash_value, ~0u);
    printf("    esac\n    case $verb in\n");
    for (const struct verb *v = verbs; v->name[0]; v++) {
        printf("    %s) words='", v->name);
        of_verb = v->name;
        all_flags(bash_name, v->id);
        printf("';;\n");
    }
    of_verb = NULL;
    printf("    *) words=;;\n    esac\n"
           "    if [ \"${cur#-}\" != \"$cur\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return; fi\n"
           "    case $verb:$n in\n");
    for (size_t i = 0; i < N_OF_VERBS; i++) {
        const size_t last = last_word(i);
        for (size_t k = 0; k <= last; k++) {
            const char *between = "    ";
            for (const struct verb *v = verbs; v->name[0]; v++) {
                if (!is_of(i, v))
                    continue;
                printf(k == last ? "%s%s:*" : "%s%s:%zu", between, v->name, k);
                between = "|";
            }
            printf(") ");
            bash_word(of_verbs[i].words[k], of_verbs[i].parts);
        }
    }
    printf("    esac\n}\ncomplete -o filenames -F _pinfold pinfold\n");
}

/* In a specification of _arguments; inside single quotes. */
static void zsh_option(const struct flag *f, unsigned only)
{
    (void)only;
    printf("    '%s--%s%s[", f->repeats ? "*" : "", f->name, f->value || f->choices ? "=" : "");
    for (const char *h = f->help; *h; h++) {
        if (strchr("[]:\\", *h))
            printf("\\%c", *h);
        else
            printf(*h == '\'' ? "'\\''" : "%c", *h);
    }
    printf("]");
    if (f->choices) {
        printf(":%s:(", f->name);
        choices_spaced(f->choices);
        printf(")");
    } else if (f->value) {
        printf(":%s:%s", f->name,
               is_path(f->value)          ? "_files"
               : same(f->name, "session") ? "_pinfold_sessions"
               : same(f->name, "branch")  ? "_pinfold_branches"
                                          : " ");
    }
    printf("'\n");
}

static void zsh_word(size_t at, bool last, enum completion_word w, const char *parts)
{
    static const char how[][20] = {[WORD_NONE] = " ",
                                   [WORD_SESSION] = "_pinfold_sessions",
                                   [WORD_BRANCH] = "_pinfold_branches",
                                   [WORD_PLACE] = "_pinfold_places",
                                   [WORD_FILE] = "_files",
                                   [WORD_COMMAND] = "_normal"};
    char place[8] = "*";
    if (!last)
        snprintf(place, sizeof place, "%zu", at + 1);
    printf(" '%s:%s:", last && w == WORD_COMMAND ? "*::" : place, w == WORD_COMMAND ? "command" : "word");
    if (w == WORD_PART || w == WORD_VERB || w == WORD_AGENT) {
        printf("(%s", w == WORD_AGENT ? buf_cstr(&known_names.agents) : parts ? parts : "");
        if (w == WORD_VERB)
            verb_names();
        printf(")'");
    } else {
        printf("%s'", how[w]);
    }
}

static void zsh(void)
{
    printf("#compdef pinfold\n"
           "_pinfold_sessions() {\n    local -a names\n"
           "    names=(${(f)\"$(pinfold session list --names 2>/dev/null)\"})\n    compadd -a names\n}\n"
           "_pinfold_branches() {\n    local -a names\n"
           "    names=(${(f)\"$(pinfold list --names 2>/dev/null)\"})\n    compadd -a names\n}\n"
           "_pinfold_places() {\n    local -a names\n"
           "    names=(${(f)\"$(pinfold session list --names 2>/dev/null)\"})\n    names=(${^names}:)\n    compadd -S "
           "'' -a names\n    _files\n}\n"
           "_pinfold() {\nlocal -a verbs policy own\nverbs=(\n");
    for (const struct verb *v = verbs; v->name[0]; v++) {
        printf("    '%s:", v->name);
        single_quoted(v->sentence);
        printf("'\n");
    }
    agent_names("    '", ":start this agent in a box'\n");
    printf(")\nif (( CURRENT == 2 )); then _describe verb verbs; return; fi\nlocal verb=$words[2]\n"
           "shift words; (( CURRENT-- ))\ncase $verb in\n");
    for (const struct verb *v = verbs; v->name[0]; v++) {
        printf("%s)\nown=(\n", v->name);
        of_verb = v->name;
        all_flags(zsh_option, v->id);
        printf(")\n_arguments -S -s $own");
        for (size_t i = 0; i < N_OF_VERBS; i++) {
            const size_t last = last_word(i);
            for (size_t k = 0; is_of(i, v) && k <= last; k++)
                zsh_word(k, k == last, of_verbs[i].words[k], of_verbs[i].parts);
        }
        printf(";;\n");
    }
    printf("esac\n}\n"
           "if [[ $funcstack[1] = _pinfold ]]; then _pinfold \"$@\"; else compdef _pinfold pinfold; fi\n");
}

static void fish_text(const char *text)
{
    for (; *text; text++)
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void fish_option(const struct flag *f, unsigned only)
{
    (void)only;
    printf("complete -c pinfold -n '__fish_seen_subcommand_from");
    for (const struct verb *v = verbs; v->name[0]; v++) {
        if (f->verbs & v->id && verb_has(v->name, f->name))
            printf(" %s", v->name);
    }
    printf("' -l %s", f->name);
    if (f->letter)
        printf(" -s %c", f->letter);
    if (f->choices) {
        printf(" -x -a '");
        choices_spaced(f->choices);
        printf("'");
    } else if (same(f->name, "session")) {
        printf(" -x -a '(pinfold session list --names 2>/dev/null)'");
    } else if (same(f->name, "branch")) {
        printf(" -x -a '(pinfold list --names 2>/dev/null)'");
    } else if (f->value) {
        printf(is_path(f->value) ? " -r -F" : " -x");
    }
    printf(" -d '");
    fish_text(f->help);
    printf("'\n");
}

/* The word after `n` plain ones of verb `name`. */
static void fish_word(const char *name, size_t n, bool last, enum completion_word w, const char *parts)
{
    static const char *const how[] = {
        [WORD_NONE] = "-f",
        [WORD_SESSION] = "-f -a '(pinfold session list --names 2>/dev/null)'",
        [WORD_BRANCH] = "-f -a '(pinfold list --names 2>/dev/null)'",
        [WORD_PLACE] = "-F -a '(for n in (pinfold session list --names 2>/dev/null); echo $n:; end)'",
        [WORD_FILE] = "-F",
        [WORD_COMMAND] = "-x -a '(__pinfold_command)'"};
    printf("complete -c pinfold -n '__pinfold_at %s %zu%s' ", name, n, last ? " more" : "");
    if (w == WORD_PART || w == WORD_VERB || w == WORD_AGENT) {
        printf("-f -a '%s", w == WORD_AGENT ? buf_cstr(&known_names.agents) : parts ? parts : "");
        if (w == WORD_VERB)
            verb_names();
        printf("'\n");
    } else {
        printf("%s\n", how[w]);
    }
}

static void fish_takes(const struct flag *f, unsigned only)
{
    (void)only;
    if (f->value || f->choices)
        printf(" --%s", f->name);
}

static void fish(void)
{
    printf("# fish completion for pinfold\n"
           "# the plain words after the verb: what is neither an option nor the value of one\n"
           "function __pinfold_words\n"
           "    set -l takes");
    all_flags(fish_takes, ~0u);
    printf("\n    set -l skip 0\n    set -l rest (commandline -opc)[3..-1]\n"
           "    while set -q rest[1]\n"
           "        if test $skip = 1\n            set skip 0\n"
           "        else if test $rest[1] = --\n            set -e rest[1]\n            set -q rest[1]; and printf "
           "'%%s\\n' $rest\n        "
           "    return\n"
           "        else if contains -- $rest[1] $takes\n            set skip 1\n"
           "        else if not string match -q -- '-*' $rest[1]\n"
           "            printf '%%s\\n' $rest\n            return\n        end\n"
           "        set -e rest[1]\n    end\nend\n"
           "# __pinfold_at VERB N [more]: whether N plain words of VERB (or more) are there\n"
           "function __pinfold_at\n"
           "    set -l line (commandline -opc)\n    test \"$line[2]\" = $argv[1]; or return 1\n"
           "    set -l n (count (__pinfold_words))\n"
           "    test $n = $argv[2]; or begin; set -q argv[3]; and test $n -gt $argv[2]; end\nend\n"
           "# completes the command that the plain words begin\n"
           "function __pinfold_command\n"
           "    set -l words (__pinfold_words)\n    set -l line (commandline -opc)\n"
           "    if test \"$line[2]\" = exec\n        set -e words[1]\n    end\n"
           "    set -l line (string join ' ' -- (string escape -- $words) (commandline -ct))\n"
           "    string match -q -- '-*' \"$line\"; or complete -C \"$line\"\nend\n"); /* an option is no command */
    for (const struct verb *v = verbs; v->name[0]; v++) {
        printf("complete -c pinfold -f -n __fish_use_subcommand -a %s -d '", v->name);
        fish_text(v->sentence);
        printf("'\n");
    }
    agent_names("complete -c pinfold -f -n __fish_use_subcommand -a ", " -d 'start this agent in a box'\n");
    all_flags(fish_option, ~0u);
    for (size_t i = 0; i < N_OF_VERBS; i++) {
        const size_t last = last_word(i);
        for (const struct verb *v = verbs; v->name[0]; v++) {
            for (size_t k = 0; is_of(i, v) && k <= last; k++)
                fish_word(v->name, k, k == last, of_verbs[i].words[k], of_verbs[i].parts);
        }
    }
}

int verb_completion(struct ask *a)
{
    const char *shell = a->n_words ? a->words[0] : "";
    if (a->n_words > 1) {
        complain("completion: unexpected argument '%s' (pinfold completion bash|zsh|fish)", a->words[1]);
        return STATUS_USAGE;
    }
    gather_names();
    if (same(shell, "bash"))
        bash();
    else if (same(shell, "zsh"))
        zsh();
    else if (same(shell, "fish"))
        fish();
    else {
        complain("completion: %s%s%s (pinfold completion bash|zsh|fish)",
                 a->n_words ? "there is none for '" : "missing argument: the shell", shell, a->n_words ? "'" : "");
        return STATUS_USAGE;
    }
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}
