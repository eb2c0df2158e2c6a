/* Commands of a push: "OLD NEW REF", the first one followed by NUL and capabilities.
   Pure: what a push from a box may do is judged by them alone (project/push/). */
#include "git/gitpush.h"

#include <errno.h>

#include "git/gitconfig.h"
#include "match/path.h"

enum { LENGTH = 4, SHA1 = 40, SHA256 = 64, PKT_MAX = 65520 };

static bool is_id(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (hex_digit(s.p[i]) < 0)
            return false;
    }
    return s.n == SHA1 || s.n == SHA256;
}

static int command(struct str line, struct gitpush_command *ret)
{
    struct gitpush_command c;
    struct str said = str_until(&line, 0);
    if (said.n && said.p[said.n - 1] == '\n')
        said.n--;
    c.wants = line;
    c.old_id = str_until(&said, ' ');
    c.new_id = str_until(&said, ' ');
    c.ref = said;
    if (str_is(c.old_id, "shallow"))
        return is_id(c.new_id) && !c.ref.n ? GITPUSH_OTHER : -EBADMSG;
    if (!is_id(c.old_id) || !is_id(c.new_id) || c.old_id.n != c.new_id.n || !c.ref.n)
        return -EBADMSG;
    *ret = c;
    return GITPUSH_COMMAND;
}

int gitpush_next(struct str *text, struct gitpush_command *ret)
{
    size_t n = 0;
    if (text->n < LENGTH)
        return GITPUSH_MORE;
    for (size_t i = 0; i < LENGTH; i++) {
        int d = hex_digit(text->p[i]);
        if (d < 0)
            return -EBADMSG;
        n = n * 16 + (size_t)d;
    }
    if (n == 0) {
        *text = str_skip(*text, LENGTH);
        return GITPUSH_FLUSH;
    }
    if (n <= LENGTH || n > PKT_MAX)
        return -EBADMSG;
    if (text->n < n)
        return GITPUSH_MORE;
    int r = command((struct str){text->p + LENGTH, n - LENGTH}, ret);
    if (r > 0)
        *text = str_skip(*text, n);
    return r;
}

static bool is_zero(struct str id)
{
    for (size_t i = 0; i < id.n; i++) {
        if (id.p[i] != '0')
            return false;
    }
    return true;
}

bool gitpush_protects(const struct gitpush_rules *rules, struct str ref)
{
    struct str branch = str_starts(ref, STR("refs/heads/")) ? str_skip(ref, 11) : (struct str){0};
    size_t end;
    if (rules->n_protect == 0)
        return true;
    for (size_t i = 0; branch.n && i < rules->n_protect; i++) {
        if (names_fit(str_of(rules->protect[i]), true, branch, 0, &end))
            return true;
    }
    return false;
}

bool gitpush_may_rewrite(const struct gitpush_rules *rules, const struct gitpush_command *c)
{
    return rules->allow_force && !gitpush_protects(rules, c->ref);
}

static const char *refusal_of_kind(const struct gitpush_rules *rules, const struct gitpush_command *c)
{
    bool branch = str_starts(c->ref, STR("refs/heads/"));
    if (gitpush_deletes(c) && gitpush_protects(rules, c->ref))
        return branch ? "deletion of a protected branch" : "deletion of a tag";
    if (gitpush_deletes(c))
        return rules->allow_delete ? NULL : "deletion, which the policy does not allow (git.allow_delete)";
    if (!branch && !is_zero(c->old_id) && !gitpush_may_rewrite(rules, c))
        return "a tag that exists stays as it is";
    return NULL; /* whether a branch goes on from where it was is known when its commits are there */
}

const char *gitpush_refusal(const struct gitpush_rules *rules, const struct gitpush_command *c)
{
    if (!str_starts(c->ref, STR("refs/heads/")) && !str_starts(c->ref, STR("refs/tags/")))
        return "only branches and tags can be pushed";
    if (gitref_is_option(c->ref))
        return "a name that begins with '-' is an option to git";
    for (size_t i = 0; i < c->ref.n; i++) {
        if ((unsigned char)c->ref.p[i] < ' ' || c->ref.p[i] == 0x7f)
            return "a name with control characters";
    }
    return refusal_of_kind(rules, c);
}

bool gitpush_wants(struct str wants, const char *capability)
{
    while (wants.n) {
        struct str word = str_until(&wants, ' ');
        if (word.n && word.p[word.n - 1] == '\n')
            word.n--;
        if (word.n == strlen(capability) && memcmp(word.p, capability, word.n) == 0)
            return true;
    }
    return false;
}

bool gitpush_deletes(const struct gitpush_command *c)
{
    return is_zero(c->new_id);
}

void gitpush_put(struct buf *out, unsigned band, struct str line)
{
    if (line.n > 65515) /* what a packet can hold (LARGE_PACKET_MAX) */
        line.n = 65515;
    buf_printf(out, "%04zx", LENGTH + line.n + (band ? 1 : 0));
    if (band)
        buf_char(out, (char)band);
    buf_str(out, line);
}
