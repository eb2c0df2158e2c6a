/*
 * Completion scripts, written out of the same tables as --help: no shell starts pinfold while somebody types.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

static void verb_names(void)
{
    for (const struct verb *v = verbs; v->name; v++)
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

static void bash_flags(enum verb_id verb)
{
    size_t n;
    const struct pinfold_option_info *list = pinfold_option_list(&n);
    for (size_t i = 0; (verb & VERBS_WITH_POLICY) && i < n; i++) {
        if (list[i].name)
            printf(" --%s", list[i].name);
    }
    for (const struct own_flag *f = own_flags; f->name; f++) {
        if (f->verbs & verb)
            printf(" --%s", f->name);
    }
}

static void bash_values(void)
{
    size_t n;
    const struct pinfold_option_info *list = pinfold_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        if (!list[i].name)
            continue;
        if (list[i].choices) {
            printf("    --%s) COMPREPLY=($(compgen -W '", list[i].name);
            choices_spaced(list[i].choices);
            printf("' -- \"$cur\")); return;;\n");
        } else if (is_path(list[i].value)) {
            printf("    --%s) COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n", list[i].name);
        } else if (list[i].takes_value) {
            printf("    --%s) return;;\n", list[i].name);
        }
    }
    for (const struct own_flag *f = own_flags; f->name; f++) {
        if (is_path(f->value))
            printf("    --%s) COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n", f->name);
    }
}

static void bash(void)
{
    printf("# bash completion for pinfold\n_pinfold() {\n"
           "    local cur prev verb i\n    COMPREPLY=()\n"
           "    cur=${COMP_WORDS[COMP_CWORD]}\n    prev=${COMP_WORDS[COMP_CWORD-1]}\n    verb=${COMP_WORDS[1]}\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then COMPREPLY=($(compgen -W '");
    verb_names();
    printf(" --help --version' -- \"$cur\")); return; fi\n"
           "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
           "        if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
           "            COMPREPLY=($(compgen -c -f -- \"$cur\")); return\n        fi\n    done\n"
           "    case $prev in\n");
    bash_values();
    printf("    esac\n    case $verb in\n");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("    %s) words='", v->name);
        bash_flags(v->id);
        if (v->id == VERB_POLICY)
            printf(" check print schema convert");
        if (v->id == VERB_COMPLETION)
            printf(" bash zsh fish");
        if (v->id == VERB_HELP)
            verb_names();
        printf("';;\n");
    }
    printf("    *) words=;;\n    esac\n"
           "    if [ \"${cur#-}\" != \"$cur\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    elif [ \"$verb\" = run ]; then COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
           "    else COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\")); fi\n"
           "}\ncomplete -o filenames -F _pinfold pinfold\n");
}

static void zsh_option(const char *name, const char *value, const char *choices, const char *help, bool repeats)
{
    printf("    '%s--%s%s[", repeats ? "*" : "", name, value || choices ? "=" : "");
    for (const char *h = help; *h; h++) {
        if (strchr("[]:", *h))
            printf("\\%c", *h);
        else
            printf(*h == '\'' ? "'\\''" : "%c", *h);
    }
    printf("]");
    if (choices) {
        printf(":%s:(", name);
        choices_spaced(choices);
        printf(")");
    } else if (value) {
        printf(":%s:%s", name, is_path(value) ? "_files" : " ");
    }
    printf("'\n");
}

static void zsh(void)
{
    size_t n;
    const struct pinfold_option_info *list = pinfold_option_list(&n);

    printf("#compdef pinfold\nlocal -a verbs policy\nverbs=(\n");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("    '%s:", v->name);
        single_quoted(v->sentence);
        printf("'\n");
    }
    printf(")\npolicy=(\n");
    for (size_t i = 0; i < n; i++) {
        if (list[i].name)
            zsh_option(list[i].name, list[i].takes_value ? list[i].value : NULL, list[i].choices, list[i].help,
                       list[i].repeats);
    }
    printf(")\nif (( CURRENT == 2 )); then _describe verb verbs; return; fi\nlocal verb=$words[2]\n"
           "shift words; (( CURRENT-- ))\ncase $verb in\n");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("%s) _arguments -S %s\\\n", v->name, v->id & VERBS_WITH_POLICY ? "$policy " : "");
        for (const struct own_flag *f = own_flags; f->name; f++) {
            if (f->verbs & v->id) {
                zsh_option(f->name, same(f->name, "help") ? NULL : f->value, NULL, f->help, false);
                printf("\\\n");
            }
        }
        printf("    %s;;\n", v->id == VERB_RUN || v->id == VERB_EXPLAIN ? "'*::command:_normal'"
                             : v->id == VERB_POLICY     ? "'1:part:(check print schema convert)' '*:file:_files'"
                             : v->id == VERB_COMPLETION ? "'1:shell:(bash zsh fish)'"
                                                        : "'*:file:_files'");
    }
    printf("esac\n");
}

static void fish_option(const char *verbs_of, const char *name, char letter, bool takes, const char *choices,
                        const char *help)
{
    printf("complete -c pinfold -n '__fish_seen_subcommand_from %s' -l %s", verbs_of, name);
    if (letter)
        printf(" -s %c", letter);
    if (choices) {
        printf(" -x -a '");
        choices_spaced(choices);
        printf("'");
    } else if (takes) {
        printf(" -r");
    }
    printf(" -d '");
    for (const char *h = help; *h; h++)
        printf(*h == '\'' ? "\\'" : "%c", *h);
    printf("'\n");
}

static void fish(void)
{
    size_t n;
    const struct pinfold_option_info *list = pinfold_option_list(&n);

    printf("# fish completion for pinfold\n");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("complete -c pinfold -f -n __fish_use_subcommand -a %s -d '", v->name);
        for (const char *h = v->sentence; *h; h++)
            printf(*h == '\'' ? "\\'" : "%c", *h);
        printf("'\n");
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].name)
            fish_option("run shell explain policy", list[i].name, 0, list[i].takes_value, list[i].choices,
                        list[i].help);
    }
    for (const struct own_flag *f = own_flags; f->name; f++) {
        char names[256] = "";
        for (const struct verb *v = verbs; v->name; v++) {
            if (f->verbs & v->id)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? " " : "", v->name);
        }
        fish_option(names, f->name, f->letter, f->value && !same(f->name, "help"), NULL, f->help);
    }
    printf("complete -c pinfold -f -n '__fish_seen_subcommand_from policy' -a 'check print schema convert'\n"
           "complete -c pinfold -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n"
           "complete -c pinfold -n '__fish_seen_subcommand_from run' -a '(__fish_complete_subcommand)'\n");
}

int verb_completion(struct ask *a)
{
    const char *shell = a->n_words == 1 ? a->words[0] : "";
    if (same(shell, "bash"))
        bash();
    else if (same(shell, "zsh"))
        zsh();
    else if (same(shell, "fish"))
        fish();
    else {
        complain("completion: for which shell? (pinfold completion bash|zsh|fish)");
        return STATUS_USAGE;
    }
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}
