/*
 * `cat`, `write`, `cp`, `ls`, `path`: files of a session from outside. Exit status: 0, 1 on failure, 2 for a usage
 * error or a refusal by a rule, 4 if there is no such session.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"

static int file_failed(const struct pinfold_error *error, int r)
{
    int status = fail(error);
    if (r == -ESTALE)
        return STATUS_NO_SESSION;
    return error->kind == PINFOLD_ERROR_SYSTEM ? STATUS_NO : status;
}

static int usage(const char *what)
{
    complain("%s", what);
    return STATUS_USAGE;
}

/* What stands before ":/" is a session's name, what follows from the slash on a path in it. */
static char *place_of(const char *word, char **ret_path)
{
    const char *colon = word[0] == '/' || word[0] == '.' ? NULL : strstr(word, ":/");
    if (!colon || colon == word)
        return NULL;
    char *name = strdup(word);
    if (!name)
        return NULL;
    name[colon - word] = 0;
    *ret_path = name + (colon - word) + 1;
    return name;
}

static int open_named(const struct ask *a, const char *name, struct pinfold_session **ret)
{
    struct pinfold_error error = {0};
    const struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = a->scope};
    int r = pinfold_session_open(&o, ret, &error);
    if (r >= 0)
        return STATUS_YES;
    int status = file_failed(&error, r);
    return r == -ENOENT ? STATUS_NO_SESSION : status;
}

/* Does `work` for the place that a word names. */
static int at_place(const struct ask *a, const char *word,
                    int (*work)(const struct ask *a, struct pinfold_session *s, const char *path,
                                struct pinfold_error *error))
{
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    char *path, *name = place_of(word, &path);
    if (!name) {
        complain("'%s' is not a file in a session; write SESSION:/PATH (the program %s in a box: pinfold run -- %s)",
                 word, verb_said, verb_said);
        return STATUS_USAGE;
    }
    int status = open_named(a, name, &session);
    if (status == STATUS_YES) {
        int r = work(a, session, path, &error);
        status = r < 0 ? file_failed(&error, r) : STATUS_YES;
        pinfold_session_free(session);
    }
    free(name);
    return status;
}

static int cat_one(const struct ask *a, struct pinfold_session *s, const char *path, struct pinfold_error *error)
{
    (void)a;
    return pinfold_file_get(s, path, 1, error);
}

int verb_cat(struct ask *a)
{
    int status = STATUS_YES;
    if (a->n_words == 0)
        return usage("cat: missing argument: a file, as SESSION:/PATH");
    for (int i = 0; i < a->n_words; i++) {
        int one = at_place(a, a->words[i], cat_one);
        status = one != STATUS_YES ? one : status;
    }
    return status;
}

static int write_one(const struct ask *a, struct pinfold_session *s, const char *path, struct pinfold_error *error)
{
    unsigned mode = a->mode ? (unsigned)strtoul(a->mode, NULL, 8) : 0644;
    return pinfold_file_put(s, path, 0, mode, a->parents, error);
}

int verb_write(struct ask *a)
{
    if (a->n_words != 1)
        return usage("write: name one file as SESSION:/PATH; its new content comes from standard input");
    if (a->mode && (strspn(a->mode, "01234567") != strlen(a->mode) || !*a->mode || strlen(a->mode) > 4))
        return usage("write: --mode is octal, such as 644");
    return at_place(a, a->words[0], write_one);
}

static const char *safe_text(struct buf *room, const struct pinfold_value *entry, const char *name)
{
    struct str text = {0};
    buf_free(room);
    text.p = pinfold_value_text(pinfold_value_get(entry, name), &text.n);
    utf8_safe(room, text);
    return buf_cstr(room);
}

static int print_entries(const struct pinfold_value *list)
{
    int status = STATUS_YES;
    for (const struct pinfold_value *e = pinfold_value_first(list); e && status == STATUS_YES;
         e = pinfold_value_next(e)) {
        auto_buf struct buf line = BUF(1u << 17), name = BUF(1u << 16), target = BUF(1u << 16);
        const char *type = pinfold_value_text(pinfold_value_get(e, "type"), NULL);
        const char *mode = pinfold_value_text(pinfold_value_get(e, "mode"), NULL);
        const char *when = pinfold_value_text(pinfold_value_get(e, "modified"), NULL);
        bool link = same(type, "link") && pinfold_value_text(pinfold_value_get(e, "target"), NULL);
        buf_printf(&line, "%-9s  %4s  %12lld  %s  %s%s%s\n", type ? type : "?", mode ? mode : "?",
                   (long long)pinfold_value_number(pinfold_value_get(e, "size")), when ? when : "?",
                   safe_text(&name, e, "name"), link ? " -> " : "", link ? safe_text(&target, e, "target") : "");
        status = print(buf_cstr(&line));
    }
    return status;
}

static int list_one(const struct ask *a, struct pinfold_session *s, const char *path, struct pinfold_error *error)
{
    struct pinfold_report *report;
    int r = pinfold_file_list_report(s, path, &report, error);
    if (r < 0)
        return r;
    if (a->json)
        (void)print_report(report);
    else
        (void)print_entries(pinfold_value_get(pinfold_report_value(report), "entries"));
    pinfold_report_free(report);
    return 0;
}

int verb_ls(struct ask *a)
{
    if (a->n_words != 1)
        return usage("ls: name one directory as SESSION:/PATH (the program ls in a box: pinfold run -- ls)");
    return at_place(a, a->words[0], list_one);
}

static int copy_in(const struct ask *a, struct pinfold_session *s, const char *path, struct pinfold_error *error)
{
    return pinfold_file_copy_in(s, a->words[0], path, NULL, error);
}

static int copy_out(const struct ask *a, struct pinfold_session *s, const char *path, struct pinfold_error *error)
{
    return pinfold_file_copy_out(s, path, a->words[1], NULL, error);
}

int verb_cp(struct ask *a)
{
    char *path;
    if (a->n_words != 2)
        return usage("cp: two paths are required: source and destination, one of them SESSION:/PATH");
    char *from = place_of(a->words[0], &path), *to = place_of(a->words[1], &path);
    int status = from && to ? usage("cp: cannot copy from one session to another; copy to this machine first")
                 : from     ? at_place(a, a->words[0], copy_out)
                 : to       ? at_place(a, a->words[1], copy_in)
                      : usage("cp: one of the paths must be in a session: SESSION:/PATH (the program cp in a box: "
                              "pinfold run -- cp)");
    free(from);
    free(to);
    return status;
}

int verb_path(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    char *text;
    bool to_box = a->n_words > 0 && same(a->words[0], "to-box");
    if (a->n_words && !to_box && !same(a->words[0], "to-host")) {
        complain("path: unknown action '%s'; it is to-box or to-host", a->words[0]);
        return STATUS_USAGE;
    }
    if (a->n_words != 3)
        return usage("path: a session and a path are required (pinfold path to-box|to-host SESSION PATH)");
    int status = open_named(a, a->words[1], &session);
    if (status != STATUS_YES)
        return status;
    int r = to_box ? pinfold_path_to_box(session, a->words[2], &text, &error)
                   : pinfold_path_to_host(session, a->words[2], &text, &error);
    pinfold_session_free(session);
    if (r < 0)
        return file_failed(&error, r);
    status = print_free(text);
    return status == STATUS_YES ? print("\n") : status;
}
