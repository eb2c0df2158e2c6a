/*
 * The verb why: one question to the library, and its answer in words. In a box the question goes to the pinfold
 * outside, which knows the policy.
 */
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/json.h"
#include "cli/cli.h"

#define MAX_WHY_TEXT (1u << 20)

enum { STATUS_UNKNOWN = 3 }; /* neither yes nor no */

static const char *text_in(const struct pinfold_value *o, const char *name)
{
    size_t n;
    const char *text = pinfold_value_text(pinfold_value_get(o, name), &n);
    return text ? text : "";
}

static void put_line(struct buf *out, const char *head, const char *text)
{
    buf_printf(out, "  %-10s ", head);
    utf8_safe(out, str_of(text));
}

static void put_why(const struct pinfold_value *v, struct buf *out)
{
    const struct pinfold_value *remedy = pinfold_value_get(v, "remedy");
    const struct pinfold_value *option = pinfold_value_first(pinfold_value_get(remedy, "options"));
    const char *outside = text_in(remedy, "outside");
    buf_printf(out, "%s: %s ", text_in(v, "verdict"), text_in(v, "action"));
    utf8_safe(out, str_of(text_in(v, "target")));
    buf_char(out, '\n');
    if (*text_in(v, "when")) {
        put_line(out, "when", text_in(v, "when"));
        buf_char(out, '\n');
    }
    put_line(out, "because", text_in(v, "reason"));
    buf_char(out, '\n');
    if (*text_in(v, "host") && !same(text_in(v, "host"), text_in(v, "target"))) {
        put_line(out, "host", text_in(v, "host"));
        buf_char(out, '\n');
    }
    if (*text_in(v, "rule")) {
        put_line(out, "rule", text_in(v, "rule"));
        if (*text_in(v, "origin")) {
            buf_text(out, " (");
            utf8_safe(out, str_of(text_in(v, "origin")));
            buf_char(out, ')');
        }
        buf_char(out, '\n');
    }
    if (*text_in(v, "mechanism")) {
        put_line(out, "by", text_in(v, "mechanism"));
        if (*text_in(v, "errno"))
            buf_printf(out, " (%s)", text_in(v, "errno"));
        buf_char(out, '\n');
    }
    if (*text_in(v, "engine")) { /* no box is told */
        put_line(out, "engine", text_in(v, "engine"));
        buf_text(out, same(text_in(v, "tier"), "landlock") ? ", Landlock only\n" : "\n");
    }
    if (option) {
        char *const words[] = {(char *)(uintptr_t)pinfold_value_text(option, NULL),
                               (char *)(uintptr_t)pinfold_value_text(pinfold_value_next(option), NULL), NULL};
        put_line(out, "remedy", *outside ? outside : "allow it with: ");
        if (*outside)
            buf_text(out, ", or run with ");
        put_command(words, out);
        buf_char(out, '\n');
    } else if (*outside) {
        put_line(out, "remedy", outside);
        buf_char(out, '\n');
    }
}

/* The policy of a running session; the answer is for that one only if the options give the same. */
static int check_session(const struct ask *a, const char *digest)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    const struct pinfold_session_options o = {.size = sizeof o, .scope = a->scope};
    int status = STATUS_NO_SESSION;
    if (pinfold_session_list_report(&o, &report, &error) < 0)
        return fail(&error);
    const struct pinfold_value *s = pinfold_value_first(pinfold_value_get(pinfold_report_value(report), "sessions"));
    while (s && !(same(text_in(s, "name"), a->session) && same(text_in(s, "state"), "running")))
        s = pinfold_value_next(s);
    if (!s)
        complain("no session '%s' is running; list them with: pinfold session list", a->session);
    else if (!same(text_in(s, "policy_digest"), digest))
        complain(
            "the session '%s' was started with another policy than these options give; add the options that it was "
            "started with",
            a->session);
    if (s)
        status = same(text_in(s, "policy_digest"), digest) ? STATUS_YES : STATUS_USAGE;
    pinfold_report_free(report);
    return status;
}

static int answer(const struct ask *a, struct pinfold_policy *policy, const char *action, const char *target)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    auto_buf struct buf out = BUF(MAX_WHY_TEXT);
    static const int statuses[] = {STATUS_YES, STATUS_NO, STATUS_UNKNOWN};
    int r = pinfold_why(policy, action, target, &report, &error);
    if (r < 0)
        return fail(&error);
    const struct pinfold_value *v = pinfold_report_value(report);
    int status = a->session ? check_session(a, text_in(v, "policy_digest")) : STATUS_YES;
    if (status == STATUS_YES && a->json) {
        status = print_report(report);
    } else if (status == STATUS_YES) {
        put_why(v, &out);
        status = print(buf_cstr(&out));
    }
    pinfold_report_free(report);
    return status == STATUS_YES ? statuses[r] : status;
}

/* In a box: about that box, whose policy stays outside. */
static int answer_inside(const struct ask *a)
{
    if (a->n_policy || a->session || a->last || a->settings_format || a->text || a->no_layers) {
        complain("why: in a box it answers for that box: it takes no options of a policy, no --session and no --last");
        return STATUS_USAGE;
    }
    return answer(a, NULL, a->words[0], a->words[1]);
}

int verb_why(struct ask *a)
{
    struct pinfold_policy *policy;
    int status;
    if (a->last && a->n_words) {
        complain("why: --last takes no action and no target");
        return STATUS_USAGE;
    }
    if (!a->last && a->n_words != 2) {
        complain("why: %s (pinfold why read|write|create|exec|connect|signal TARGET)",
                 a->n_words < 2 ? "missing argument: the action and its target" : "too many arguments");
        return STATUS_USAGE;
    }
    const char *said = getenv("PINFOLD"); /* as a box has it */
    if (said && same(said, "1") && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER)
        return answer_inside(a);
    if (!ask_policy(a, &policy, &status))
        return status;
    status = a->last ? answer(a, policy, "last", NULL) : answer(a, policy, a->words[0], a->words[1]);
    pinfold_policy_free(policy);
    return status;
}
