/*
 * Parses a line of the control connection: a JSON object, with the parser of policies (which bounds depth and size),
 * with exactly the members that its op has.
 */
#include "base/arena.h"
#include "supervisor/network/live.h"
#include "policy/text/node.h"

const char *const control_ops[] = {"allow", "deny", "replace", "list", "answer", NULL};

/* The members of each op. */
static const char *const members[][4] = {[CONTROL_ALLOW] = {"op", "host"},
                                         [CONTROL_DENY] = {"op", "host"},
                                         [CONTROL_REPLACE] = {"op", "allow", "deny"},
                                         [CONTROL_LIST] = {"op"},
                                         [CONTROL_ANSWER] = {"op", "id", "allow", "remember"}};

static const char named[][28] = {[CONTROL_ALLOW] = "op and host",
                                 [CONTROL_DENY] = "op and host",
                                 [CONTROL_REPLACE] = "op, allow and deny",
                                 [CONTROL_LIST] = "op alone",
                                 [CONTROL_ANSWER] = "op, id, allow and remember"};

static bool is_text(const struct node *n)
{
    return n && n->kind == NODE_SCALAR && !n->plain;
}

static int take_hosts(const struct node *n, const char *member, struct arena *mem, struct str **ret, size_t *ret_n,
                      struct err *e)
{
    bool list = n->kind == NODE_LIST;
    size_t count = list ? n->n : 1;
    if (count > CONTROL_HOSTS_MAX)
        return err_say(e, ERR_POLICY, "'%s' has more than %d hosts", member, CONTROL_HOSTS_MAX);
    *ret = arena_zero(mem, (count + 1) * sizeof **ret);
    if (!*ret)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read a line of the control connection");
    for (size_t i = 0; i < count; i++) {
        const struct node *item = list ? &n->items[i] : n;
        if (!is_text(item))
            return err_say(e, ERR_POLICY, "'%s' must be a quoted host or a list of them", member);
        (*ret)[(*ret_n)++] = item->text;
    }
    return 0;
}

static int check_members(const struct node *root, enum control_op op, struct err *e)
{
    for (size_t i = 0; i < root->n; i++) {
        const struct node *key = &root->items[2 * i];
        bool known = false;
        for (size_t k = 0; k < 4 && members[op][k]; k++)
            known = known || (key->kind == NODE_SCALAR && str_is(key->text, members[op][k]));
        if (!known)
            return err_say(e, ERR_POLICY, "the op '%s' takes the members %s", control_ops[op], named[op]);
    }
    return 0;
}

static int take_answer_line(const struct node *root, struct control_line *ret, struct err *e)
{
    const struct node *id = node_get(root, "id"), *allow = node_get(root, "allow"),
                      *remember = node_get(root, "remember");
    uint64_t number = 0;
    if (!id || id->kind != NODE_SCALAR || !id->plain || !id->text.n || id->text.n > 10)
        return err_say(e, ERR_POLICY, "'id' must be the question's number");
    for (size_t i = 0; i < id->text.n; i++) {
        if (id->text.p[i] < '0' || id->text.p[i] > '9')
            return err_say(e, ERR_POLICY, "'id' must be the question's number");
        number = number * 10 + (uint64_t)(id->text.p[i] - '0');
    }
    if (number == 0 || number > UINT32_MAX)
        return err_say(e, ERR_POLICY, "'id' must be the question's number");
    bool plain = allow && allow->kind == NODE_SCALAR && allow->plain;
    if (!plain || (!str_is(allow->text, "true") && !str_is(allow->text, "false")))
        return err_say(e, ERR_POLICY, "'allow' must be true or false");
    if (remember && (!is_text(remember) || (!str_is(remember->text, "once") && !str_is(remember->text, "run"))))
        return err_say(e, ERR_POLICY, "'remember' must be \"once\" or \"run\"");
    ret->id = (uint32_t)number;
    ret->answer = (struct answer){str_is(allow->text, "true"), remember && str_is(remember->text, "run")};
    return 0;
}

static int take_op(const struct node *root, enum control_op *ret, struct err *e)
{
    const struct node *op = node_get(root, "op");
    for (size_t i = 0; is_text(op) && control_ops[i]; i++) {
        if (str_is(op->text, control_ops[i])) {
            *ret = (enum control_op)i;
            return 0;
        }
    }
    if (is_text(op) && (str_is(op->text, "reach") || str_is(op->text, "publish")))
        return err_say(e, ERR_POLICY,
                       "'%s' cannot be changed while the box runs: its sockets are created with the box's network; "
                       "start another box with --%s",
                       str_is(op->text, "reach") ? "reach" : "publish",
                       str_is(op->text, "reach") ? "reach" : "publish");
    return err_say(e, ERR_POLICY, "'op' must be \"allow\", \"deny\", \"replace\", \"list\" or \"answer\"");
}

static int take_members(const struct node *root, struct arena *mem, struct control_line *ret, struct err *e)
{
    const struct node *host = node_get(root, "host"), *allow = node_get(root, "allow"), *deny = node_get(root, "deny");
    switch (ret->op) {
    case CONTROL_ALLOW:
    case CONTROL_DENY:
        if (!host)
            return err_say(e, ERR_POLICY, "the op '%s' needs a 'host'", control_ops[ret->op]);
        return ret->op == CONTROL_ALLOW ? take_hosts(host, "host", mem, &ret->allow, &ret->n_allow, e)
                                        : take_hosts(host, "host", mem, &ret->deny, &ret->n_deny, e);
    case CONTROL_REPLACE: {
        if (!allow && !deny) /* by accident everything would be gone */
            return err_say(e, ERR_POLICY, "the op 'replace' needs 'allow' or 'deny', or both");
        int r = allow ? take_hosts(allow, "allow", mem, &ret->allow, &ret->n_allow, e) : 0;
        return r == 0 && deny ? take_hosts(deny, "deny", mem, &ret->deny, &ret->n_deny, e) : r;
    }
    case CONTROL_ANSWER:
        return take_answer_line(root, ret, e);
    case CONTROL_LIST:
        break;
    }
    return 0;
}

int control_parse(struct str line, struct arena *mem, struct control_line *ret, struct err *e)
{
    struct node root;
    struct err why = {0};
    *ret = (struct control_line){0};
    while (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
        line = str_skip(line, 1);
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    if (!line.n || line.p[0] != '{' || line.p[line.n - 1] != '}')
        return err_say(e, ERR_POLICY, "a line must be one JSON object");
    int r = node_read("line", line, "", mem, &root, &why);
    if (r < 0)
        return err_say(e, ERR_POLICY, "not a JSON object: %s", why.text);
    if (root.kind != NODE_MAP)
        return err_say(e, ERR_POLICY, "a line must be one JSON object");
    r = take_op(&root, &ret->op, e);
    if (r == 0)
        r = check_members(&root, ret->op, e);
    return r < 0 ? r : take_members(&root, mem, ret, e);
}
