/*
 * `pinfold why` in a box. The answer comes from pinfold outside, which knows more than the box may: names that are hidden,
 * where things are on the host, the policy's files. So what is said depends only on the policy's rule for the very path
 * that was asked for, and on what the box can see there itself:
 *
 * - A path of which any part is hidden or absent by a rule is "hidden", whether or not the host has it, and the host is not
 *   looked at. In a directory that is the box's own it is for the box to look.
 * - No link is followed for the box: whoever asks has resolved the path in the box. An answer about another path than the
 *   one that was asked for is thrown away.
 * - Reasons, remedies and words for rules are those below, never texts with other paths, contents or files of the policy.
 */
#include "run/asked/inquiry.h"

#include <stdio.h>
#include <unistd.h>

#include "match/path.h"
#include "run/asked/reason.h"

#define INQUIRY_MEMORY (16u << 20)

static const struct told_cause {
    enum why_cause cause;
    const char *name, *reason, *outside; /* `%s`: what was asked for */
} told_causes[] = {
    {WHY_CAUSE_HOST, "host", "it does not exist, or ordinary permissions refuse it: that is not the sandbox", ""},
    {WHY_CAUSE_ROOT, "root", "it belongs to another user, and root has no capabilities in a box",
     "whoever started the box can start it as that user"},
    {WHY_CAUSE_READ_ONLY, "read-only", "it is outside of what the box can write",
     "whoever started the box can allow it with --rw %s, if that exists; else do it outside the box"},
    {WHY_CAUSE_HIDDEN, "hidden", "a rule hides it; whether it exists the box is not told",
     "whoever started the box can show it with --ro %s"},
    {WHY_CAUSE_PROTECTED, "protected", "a rule protects it",
     "whoever started the box can change the rule, or do it outside the box"},
    {WHY_CAUSE_GUARDED, "guarded", "programs on the host run or obey this name by themselves",
     "do it outside the box, or whoever started the box can allow the name with --guard-allow"},
    {WHY_CAUSE_OWN, "own", "it is pinfold's own", "it cannot be changed in a box; change it outside"},
    {WHY_CAUSE_KERNEL, "kernel", "no box has the kernel's settings and devices, but for the usual ones",
     "do it outside the box: no option allows it"},
    {WHY_CAUSE_NO_NETWORK, "no-network", "the box has no network",
     "whoever started the box can allow the host with --allow %s"},
    {WHY_CAUSE_NO_RULE, "no-rule", "no rule allows this host and port",
     "whoever started the box can allow the host with --allow %s"},
    {WHY_CAUSE_ADDRESS, "no-rule", "no rule allows this host and port",
     "whoever started the box can allow the host with --allow %s"},
    {WHY_CAUSE_DENY_RULE, "deny-rule", "a rule denies it", "whoever started the box can remove the rule"},
    {WHY_CAUSE_METADATA, "metadata", "at this address a cloud hands out the machine's credentials",
     "give the command credentials of its own"},
    {WHY_CAUSE_LOOPBACK, "loopback", "this is the box's own loopback; the host's services are not there",
     "whoever started the box can let it reach one service of the host with --reach"},
    {WHY_CAUSE_SOCKET, "socket", "it is a socket of the host that no rule names",
     "whoever started the box can allow it with --unix-socket %s"},
};

static void inform(struct inquiry_answer *a, enum why_verdict verdict, const char *cause, const char *reason)
{
    a->verdict = (int32_t)verdict;
    snprintf(a->cause, sizeof a->cause, "%s", cause);
    snprintf(a->reason, sizeof a->reason, "%s", reason);
}

static void tell_cause(struct inquiry_answer *a, enum why_cause cause, const char *target)
{
    const struct told_cause *t = told_causes; /* the host's, for what is none of the box's */
    for (size_t i = 0; i < sizeof told_causes / sizeof *told_causes; i++) {
        if (told_causes[i].cause == cause)
            t = &told_causes[i];
    }
    inform(a, WHY_REFUSED, t->name, t->reason);
    const char *at = strstr(t->outside, "%s");
    const int head = at ? (int)(at - t->outside) : (int)strlen(t->outside);
    snprintf(a->outside, sizeof a->outside, "%.*s%s%s", head, t->outside, at ? target : "", at ? at + 2 : "");
}

/* The rule's first word, and where it is from as far as that names no file. A guarded name is in the path that was asked for. */
static void tell_rule(struct inquiry_answer *a, const struct why *said)
{
    const char *rule = said->rule ? said->rule : "", *from = said->origin ? said->origin : "";
    const bool whole = str_starts(str_of(rule), STR("guarded name ")) || same(rule, "net none") ||
                       same(rule, "net allow") || same(rule, "net host") || same(rule, "unix socket");
    snprintf(a->rule, sizeof a->rule, "%.*s", whole ? (int)strlen(rule) : (int)strcspn(rule, " "), rule);
    if (from[0] == '-')
        snprintf(a->origin, sizeof a->origin, "%.*s", (int)strcspn(from, " ="), from);
    else
        snprintf(a->origin, sizeof a->origin, "%s", strchr(from, '/') ? "a policy file" : from);
    snprintf(a->mechanism, sizeof a->mechanism, "%s", said->mechanism ? said->mechanism : "");
    a->no = said->no;
}

static void answer_file(const struct pinfold_policy *p, enum why_act act, const char *asked, struct arena *mem,
                        struct inquiry_answer *a)
{
    struct prepared n;
    struct why said;
    struct err ignored = {0};
    const char *path = asked[0] == '/' ? path_clean(mem, asked) : NULL;
    if (!path || !same(path, asked)) {
        inform(a, WHY_UNKNOWN, "none", "the path contains a symbolic link, '.' or '..'");
        a->verdict = -1;
        return;
    }
    if (reason_ask(p, WHY_READ, "/", mem, &said, &n, &ignored) < 0) /* for the plan */
        return;
    const bool other_user = geteuid() == 0 && n.plan->image->uid != 0; /* who may see less than we do */
    switch (other_user ? WHY_SHOWN_NOT_KNOWN : why_shown(n.plan, path, mem)) {
    case WHY_SHOWN_NOT:
        tell_cause(a, WHY_CAUSE_HIDDEN, path);
        snprintf(a->rule, sizeof a->rule, "hide");
        break;
    case WHY_SHOWN_OWN:
        if (act == WHY_WRITE || act == WHY_CREATE)
            inform(a, WHY_ALLOWED, "none", "the box has a directory of its own there");
        else
            inform(a, WHY_UNKNOWN, "none", "the box has a directory of its own there: it has what the box put there");
        break;
    case WHY_SHOWN_NOT_KNOWN:
        snprintf(a->reason, sizeof a->reason, "this box is not told about files; ask whoever started it");
        break;
    case WHY_SHOWN:
        if (why_ask(n.plan, act, path, mem, &said, &ignored) < 0)
            break;
        if (said.verdict == WHY_ALLOWED)
            inform(a, WHY_ALLOWED, "none", "it is allowed");
        else if (said.verdict == WHY_UNKNOWN)
            inform(a, WHY_UNKNOWN, "none", "it depends on contents that are judged, or on the box's own processes");
        else
            tell_cause(a, said.cause, path);
        if (!same(said.target, path)) { /* a link of the host's, or it changed meanwhile */
            inform(a, WHY_UNKNOWN, "none", "it leads elsewhere; ask for the path that it leads to");
            a->outside[0] = 0;
        } else {
            tell_rule(a, &said);
        }
    }
    prepared_free(&n);
}

static void answer_connect(const struct pinfold_policy *p, const char *target, struct arena *mem,
                           struct inquiry_answer *a)
{
    struct prepared n;
    struct why said;
    struct err e = {0};
    if (reason_ask(p, WHY_CONNECT, target, mem, &said, &n, &e) < 0) {
        snprintf(a->reason, sizeof a->reason, "%.250s", e.text);
        return;
    }
    if (said.verdict == WHY_ALLOWED)
        inform(a, WHY_ALLOWED, "none", "it is allowed");
    else if (said.verdict == WHY_UNKNOWN)
        inform(a, WHY_UNKNOWN, "none", "a person is asked");
    else
        tell_cause(a, said.cause, target);
    tell_rule(a, &said);
    prepared_free(&n);
}

void inquiry_answer(void *ctx, const char *act_name, const char *target, struct inquiry_answer *ret)
{
    const struct pinfold_policy *p = ctx;
    const enum why_act act = why_act_of(act_name);
    auto_arena struct arena *mem = arena_new(INQUIRY_MEMORY);
    ret->verdict = -1;
    snprintf(ret->reason, sizeof ret->reason, "pinfold cannot answer that now");
    if (!mem || act == WHY_ACTS)
        return;
    if (act == WHY_SIGNAL)
        inform(ret, WHY_UNKNOWN, "none", "a process that the box sees can be signalled, and no other");
    else if (act == WHY_CONNECT && !strchr(target, '/'))
        answer_connect(p, target, mem, ret);
    else
        answer_file(p, act, target, mem, ret);
}
