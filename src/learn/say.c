/*
 * What was found: lines like a diff of the policy, each with its reason, and what there is no rule for. The same as
 * JSON; names that a box made are cleaned for a terminal.
 */
#include <string.h>

#include "base/json.h"
#include "learn/learn.h"

void learn_reason(const struct learn *l, const struct learn_rule *rule, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    static const char *const acts[][3] = {{"read", "read", "reads"},           {"write", "write", "writes"},
                                          {"create", "creation", "creations"}, {"connect", "connection", "connections"},
                                          {"exec", "start", "starts"},         {"remove", "removal", "removals"}};
    const char *one = "act", *many = "acts";
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        if (strcmp(acts[i][0], rule->act) == 0) {
            one = acts[i][1];
            many = acts[i][2];
        }
    }
    buf_printf(out, "%u %s %s", rule->count, rule->count == 1 ? one : many, rule->granted ? "allowed" : "refused");
    if (*l->command && !l->command[strspn(l->command, plain)])
        buf_printf(out, " (%s)", l->command);
}

static void put_safe(struct buf *out, const char *text)
{
    utf8_safe(out, str_of(text));
}

static void put_rules(const struct learn *l, enum learn_answer answer, bool named, const char *sign, struct buf *out)
{
    size_t wide = 0;
    for (size_t i = 0; i < l->n_rules; i++) {
        size_t n = strlen(l->rules[i]->text);
        wide = !l->rules[i]->gone && n > wide && n < 60 ? n : wide;
    }
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct learn_rule *r = l->rules[i];
        if (r->gone || r->answer != answer || (answer == LEARN_OPEN && (r->care == LEARN_NAMED) != named) ||
            (r->care == LEARN_SECRET && answer != LEARN_ALLOW))
            continue;
        buf_text(out, sign);
        put_safe(out, r->text);
        buf_printf(out, "%*s   # ", (int)(strlen(r->text) < wide ? wide - strlen(r->text) : 0), "");
        learn_reason(l, r, out);
        if (named && r->why)
            buf_printf(out, "; %s", r->why);
        if (r->still)
            buf_text(out, "; still refused with it");
        buf_char(out, '\n');
    }
}

static bool any(const struct learn *l, enum learn_answer answer, bool named)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct learn_rule *r = l->rules[i];
        if (!r->gone && r->answer == answer && !(r->care == LEARN_SECRET && answer != LEARN_ALLOW) &&
            (answer != LEARN_OPEN || (r->care == LEARN_NAMED) == named))
            return true;
    }
    return false;
}

static bool is_left(const struct learn_left *left)
{
    return !left->rule || (left->rule->answer != LEARN_ALLOW && !left->rule->gone);
}

static void put_left(const struct learn *l, struct buf *out)
{
    for (size_t i = 0; i < l->n_left; i++) {
        const struct learn_left *left = &l->left[i];
        if (!is_left(left))
            continue;
        buf_printf(out, "# left out: %s ", left->action);
        put_safe(out, left->target);
        buf_text(out, ": ");
        put_safe(out, left->why);
        buf_text(out, left->rule ? "; only its own line in --answers allows it\n" : "\n");
    }
    if (l->not_kept)
        buf_printf(out, "# and %llu more refusal%s that %s not kept\n", (unsigned long long)l->not_kept,
                   l->not_kept == 1 ? "" : "s", l->not_kept == 1 ? "was" : "were");
}

static void put_kept(const struct learn *l, struct buf *out)
{
    for (size_t i = 0; i < l->n_kept; i++) {
        const struct learn_kept *k = &l->kept[i];
        if (k->use == LEARN_USED)
            continue;
        buf_text(out, k->use == LEARN_UNUSED ? "- " : "# not known: ");
        put_safe(out, k->text);
        buf_text(out, k->use == LEARN_UNUSED ? "   # no pass used it\n" : "   # nothing tells whether it was used\n");
    }
}

void learn_words(const struct learn *l, struct buf *out)
{
    bool some = any(l, LEARN_ALLOW, false) || any(l, LEARN_OPEN, false) || any(l, LEARN_OPEN, true);
    buf_printf(out, "# %u pass%s, the last with status %d%s\n", l->passes, l->passes == 1 ? "" : "es", l->status,
               l->untried ? "; the last answers were not tried (--passes)" : "");
    if (any(l, LEARN_ALLOW, false))
        put_rules(l, LEARN_ALLOW, false, "+ ", out);
    if (any(l, LEARN_OPEN, false)) {
        buf_text(out, l->asking ? "# not answered:\n" : "# proposed; nothing was allowed:\n");
        put_rules(l, LEARN_OPEN, false, l->asking ? "# + " : "+ ", out);
    }
    if (any(l, LEARN_OPEN, true)) {
        buf_text(out, "# with care; to allow one, put its own line (allow KEY: VALUE) into a file for --answers:\n");
        put_rules(l, LEARN_OPEN, true, "# + ", out);
    }
    if (any(l, LEARN_DENY, false)) {
        buf_text(out, "# denied:\n");
        put_rules(l, LEARN_DENY, false, "# + ", out);
    }
    put_left(l, out);
    put_kept(l, out);
    if (!some && !l->n_left)
        buf_text(out, "# nothing was refused\n");
}

void learn_json(const struct learn *l, const char *written, struct buf *out)
{
    static const char *const answers[] = {"open", "allowed", "denied"};
    static const char *const uses[] = {"used", "unused", "not known"};
    struct json j = JSON(out);
    json_object(&j, NULL);
    json_int(&j, "v", 1);
    json_uint(&j, "passes", l->passes);
    json_int(&j, "exit_code", l->status);
    json_bool(&j, "untried", l->untried);
    json_array(&j, "add");
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct learn_rule *r = l->rules[i];
        auto_buf struct buf reason = BUF(1024);
        if (r->gone || (r->care == LEARN_SECRET && r->answer != LEARN_ALLOW))
            continue;
        learn_reason(l, r, &reason);
        json_object(&j, NULL);
        json_text(&j, "key", r->key);
        json_text(&j, "value", r->written);
        json_text(&j, "answer", answers[r->answer]);
        json_bool(&j, "care", r->care != LEARN_PLAIN);
        json_text_or_null(&j, "why", r->why);
        json_uint(&j, "count", r->count);
        json_text(&j, "reason", buf_cstr(&reason));
        json_bool(&j, "guess", r->guess);
        json_bool(&j, "still_refused", r->still);
        json_bool(&j, "granted", r->granted);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_array(&j, "left_out");
    for (size_t i = 0; i < l->n_left; i++) {
        if (!is_left(&l->left[i]))
            continue;
        json_object(&j, NULL);
        json_text(&j, "action", l->left[i].action);
        json_text(&j, "target", l->left[i].target);
        json_text(&j, "why", l->left[i].why);
        json_bool(&j, "care", l->left[i].rule != NULL);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_uint(&j, "not_kept", l->not_kept);
    json_array(&j, "rules");
    for (size_t i = 0; i < l->n_kept; i++) {
        json_object(&j, NULL);
        json_text(&j, "rule", l->kept[i].text);
        json_text(&j, "origin", l->kept[i].origin);
        json_text(&j, "use", uses[l->kept[i].use]);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_text_or_null(&j, "written", written);
    json_object_end(&j);
    buf_char(out, '\n');
}
