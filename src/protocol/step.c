/*
 * Reading a plan image: whether it may be trusted to be one, and its steps in words. One table says what the arguments
 * of each kind of step are; the check and the printer are two readers of it.
 */
#include "protocol/step.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "protocol/egress.h"
#include "protocol/guard_table.h"

enum argument { NOTHING, NUMBER, PATH /* absolute */, RELATIVE /* a path without "." and ".." */, TEXT, SLOT };

static const char *const step_names[STEP_COUNT] = {
#define X(id, name, text) [STEP_##id] = name,
    STEPS(X)
#undef X
};

/* What `a` and `b` are; STEPS says it in words. */
static const uint8_t arguments[STEP_COUNT][2] = {
    [STEP_SOURCE] = {PATH, SLOT},      [STEP_ATTACH] = {PATH, SLOT},  [STEP_VEIL] = {PATH, NUMBER},
    [STEP_STUB] = {RELATIVE, TEXT},    [STEP_COVER] = {PATH, NUMBER}, [STEP_DENY] = {PATH, NOTHING},
    [STEP_TMPFS] = {PATH, NUMBER},     [STEP_OVERLAY] = {PATH, TEXT}, [STEP_READONLY] = {PATH, NOTHING},
    [STEP_DIR] = {PATH, NOTHING},      [STEP_FILE] = {PATH, TEXT},    [STEP_SYMLINK] = {PATH, TEXT},
    [STEP_DEVICES] = {PATH, NUMBER},   [STEP_HOSTNAME] = {TEXT, 0},   [STEP_PROC] = {PATH, NOTHING},
    [STEP_PROC_LOCK] = {PATH, 0},      [STEP_DEVPTS] = {PATH, 0},     [STEP_MQUEUE] = {PATH, 0},
    [STEP_RULESET] = {NUMBER, NUMBER}, [STEP_RULE] = {PATH, NOTHING}, [STEP_FILTER] = {NUMBER, NOTHING},
    [STEP_RLIMIT] = {NUMBER, NUMBER},  [STEP_CWD] = {PATH, NOTHING},  [STEP_CATCH] = {NUMBER, NUMBER},
    [STEP_REACH] = {NUMBER, NUMBER},   [STEP_LAYER] = {PATH, PATH},   [STEP_PART] = {PATH, NOTHING},
    [STEP_LISTEN] = {NUMBER, NUMBER},  [STEP_OWN] = {PATH, NOTHING},
};

const char *step_name(enum step_kind kind)
{
    return kind > STEP_NONE && kind < STEP_COUNT ? step_names[kind] : "none";
}

/* Whether a relative path names something below where it starts: components, none of them empty, "." or "..". */
static bool stays_below(const char *s)
{
    while (*s) {
        size_t n = strcspn(s, "/");
        if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        s += n;
        if (*s && !*++s)
            return false;
    }
    return true;
}

static bool argument_fits(const struct plan_image *p, enum argument what, uint32_t value)
{
    switch (what) {
    case NOTHING:
    case NUMBER:
        return true;
    case SLOT:
        return value < p->n_steps;
    case TEXT:
        return value < p->strings_bytes;
    case PATH:
        return value < p->strings_bytes && plan_string(p, value)[0] == '/' && stays_below(plan_string(p, value) + 1);
    case RELATIVE:
        return value < p->strings_bytes && plan_string(p, value)[0] && stays_below(plan_string(p, value));
    }
    return false;
}

static bool image_part_fits(const struct plan_image *p, uint64_t at, uint64_t bytes, unsigned align)
{
    return at >= sizeof *p && at % align == 0 && at + bytes <= p->bytes;
}

/* VEIL and COVER are followed by as many STUBs as they say, CATCH by as many REACHes and LISTENs; none stands alone. */
static bool parts_fit(const struct plan_image *p)
{
    const struct step *s = plan_steps(p);
    uint64_t expected = 0;
    unsigned part = STEP_NONE;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        bool of_catch = s[i].kind == STEP_REACH || s[i].kind == STEP_LISTEN;
        bool is_part = s[i].kind == STEP_STUB || of_catch;
        if (is_part != (expected > 0) || (is_part && of_catch != (part == STEP_REACH)))
            return false;
        if (is_part)
            expected--;
        else if (s[i].kind == STEP_VEIL || s[i].kind == STEP_COVER || s[i].kind == STEP_CATCH)
            expected = s[i].b;
        if (!is_part)
            part = s[i].kind == STEP_CATCH ? STEP_REACH : STEP_STUB;
    }
    return expected == 0;
}

/* PART: somewhere in the one LAYER that came before. */
static bool lies_below(const char *path, const char *layer)
{
    size_t n = layer ? strlen(layer) : 0;
    return n > 1 && strncmp(path, layer, n) == 0 && path[n] == '/';
}

static bool steps_fit(const struct plan_image *p)
{
    const struct step *s = plan_steps(p);
    const char *layer = NULL;
    for (uint32_t i = 0; i < p->n_steps; i++, s++) {
        if (s->kind == STEP_NONE || s->kind >= STEP_COUNT || !argument_fits(p, arguments[s->kind][0], s->a) ||
            !argument_fits(p, arguments[s->kind][1], s->b))
            return false;
        if ((s->kind == STEP_STUB || s->kind == STEP_DENY) && s->mode > STUB_LINK)
            return false;
        if (s->kind == STEP_OVERLAY && s->mode > OVERLAY_SECRET)
            return false;
        if (s->kind == STEP_LAYER && layer)
            return false;
        if (s->kind == STEP_LAYER)
            layer = plan_string(p, s->a);
        if (s->kind == STEP_PART && !lies_below(plan_string(p, s->a), layer))
            return false;
        if ((s->kind == STEP_FILTER && s->a >= FILTER_VARIANTS) || (s->kind == STEP_CATCH && s->a > CATCH_LOOPBACK))
            return false;
    }
    return parts_fit(p);
}

static bool guard_fits(const struct plan_image *p)
{
    if (p->guard_bytes == 0)
        return true;
    const struct guard_table *t = (const void *)((const char *)p + p->guard_at);
    if (p->guard_bytes < sizeof *t || (p->guard_bytes - sizeof *t) / sizeof t->rules[0] < t->n_rules)
        return false;
    for (uint32_t i = 0; i < t->n_rules; i++) {
        const struct guard_rule *r = &t->rules[i];
        if (r->kind > GUARD_RULE_BRANCH || !argument_fits(p, TEXT, r->text) || !argument_fits(p, TEXT, r->below))
            return false;
        if (r->below && !argument_fits(p, PATH, r->below))
            return false;
        bool relative = r->kind == GUARD_RULE_NAME || r->kind == GUARD_RULE_HIDE_NAME || r->kind == GUARD_RULE_BRANCH;
        if (r->kind == GUARD_RULE_BRANCH && !r->below)
            return false;
        if (!argument_fits(p, relative ? RELATIVE : PATH, r->text))
            return false;
    }
    return true;
}

int plan_image_check(const void *bytes, size_t n)
{
    const struct plan_image *p = bytes;
    if (n < sizeof *p || (uintptr_t)bytes % _Alignof(struct plan_image))
        return -EBADMSG;
    if (p->magic != PLAN_MAGIC || p->bytes != n || p->filter >= FILTER_VARIANTS || p->tier > 1)
        return -EBADMSG;
    if (!image_part_fits(p, p->steps_at, (uint64_t)p->n_steps * sizeof(struct step), 4) ||
        !image_part_fits(p, p->strings_at, p->strings_bytes, 1) ||
        (p->guard_bytes && !image_part_fits(p, p->guard_at, p->guard_bytes, 4)))
        return -EBADMSG;
    /* Every offset below strings_bytes is then a terminated string. */
    if (p->strings_bytes == 0 || plan_string(p, 0)[0] || plan_string(p, p->strings_bytes - 1)[0])
        return -EBADMSG;
    return steps_fit(p) && guard_fits(p) ? 0 : -EBADMSG;
}

static void put_flags(struct buf *out, unsigned flags)
{
    static const char *const names[] = {"ro",        "nosuid",   "nodev",     "noexec",
                                        "recursive", "optional", "workspace", "by the tool"};
    const char *before = " (";
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (flags & 1u << i) {
            buf_text(out, before);
            buf_text(out, names[i]);
            before = ", ";
        }
    }
    if (flags)
        buf_char(out, ')');
}

static void put_bits(struct buf *out, unsigned bits, const char *const *names, unsigned n)
{
    const char *before = " ";
    for (unsigned i = 0; i < n; i++) {
        if (bits & 1u << i) {
            buf_text(out, before);
            buf_text(out, names[i]);
            before = "+";
        }
    }
}

static const char *stub_name(unsigned stub)
{
    static const char names[][24] = {"absent",      "denied directory",   "denied file",
                                     "mount point", "mount point (file)", "a file of the box's own",
                                     "link"};
    return stub < sizeof names / sizeof names[0] ? names[stub] : "?";
}

/* The source that an ATTACH takes, by its slot. */
static const char *slot_source(const struct plan_image *p, uint32_t slot)
{
    const struct step *s = plan_steps(p);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (s[i].kind == STEP_SOURCE && s[i].b == slot)
            return plan_string(p, s[i].a);
    }
    return "?";
}

static const char *rlimit_name(uint32_t resource)
{
    /* asm-generic/resource.h, which x86-64 and arm64 use. */
    static const char names[][12] = {"cpu",     "fsize", "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
                                     "memlock", "as",    "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"};
    return resource < sizeof names / sizeof names[0] ? names[resource] : "?";
}

static void put_kib(struct buf *out, uint32_t kib)
{
    if (kib)
        buf_printf(out, " %u KiB", kib);
}

/* What follows the first path of a step; the path is printed by the caller. */
static void put_rest(const struct plan_image *p, const struct step *s, struct buf *out)
{
    static const char *const rights[] = {"read", "write", "read-file", "device"};
    switch (s->kind) {
    case STEP_SOURCE:
        buf_printf(out, " as %u", s->b);
        break;
    case STEP_VEIL:
    case STEP_COVER:
        buf_printf(out, " with %u name%s", s->b, s->b == 1 ? "" : "s");
        break;
    case STEP_STUB:
    case STEP_DENY:
        buf_printf(out, ": %s", stub_name(s->mode));
        if (s->kind == STEP_STUB && s->mode == STUB_LINK) {
            buf_text(out, " to ");
            utf8_safe(out, str_of(plan_string(p, s->b)));
        }
        break;
    case STEP_TMPFS:
        buf_printf(out, " mode %04o", s->mode);
        put_kib(out, s->b);
        break;
    case STEP_DEVICES:
        put_kib(out, s->b);
        break;
    case STEP_DIR:
    case STEP_FILE:
        buf_printf(out, " mode %04o", s->mode);
        break;
    case STEP_SYMLINK:
        buf_text(out, " -> ");
        utf8_safe(out, str_of(plan_string(p, s->b)));
        break;
    case STEP_OVERLAY:
    case STEP_LAYER:
        buf_text(out, " from ");
        utf8_safe(out, str_of(plan_string(p, s->b)));
        break;
    case STEP_RULE:
        put_bits(out, s->mode, rights, 4);
        break;
    }
}

void step_print(const struct plan_image *p, const struct step *s, struct buf *out)
{
    static const char *const filters[] = {"guard", "reads",   "no-inet", "userns",
                                          "peers", "devices", "layered", "monitor"};
    static const char *const scopes[] = {"abstract-sockets", "signals"};

    buf_text(out, step_name(s->kind));
    if (s->kind == STEP_NONE || s->kind >= STEP_COUNT)
        return;
    if (s->kind == STEP_ATTACH) {
        buf_char(out, ' ');
        utf8_safe(out, str_of(slot_source(p, s->b)));
        buf_text(out, " on ");
        utf8_safe(out, str_of(plan_string(p, s->a)));
    } else if (s->kind == STEP_RLIMIT) {
        buf_printf(out, " %s %u%s", rlimit_name(s->a), s->b, s->mode == 1024 ? " KiB" : "");
    } else if (s->kind == STEP_FILTER) {
        put_bits(out, s->a, filters, sizeof filters / sizeof *filters);
    } else if (s->kind == STEP_CATCH) {
        static const char *const ways[] = {"every connection and name", "names and connections to listed ports",
                                           "names and connections to listed ports of fake IPs in 127.64.0.0/10"};
        buf_printf(out, " %s for the egress proxy", ways[s->a <= CATCH_LOOPBACK ? s->a : 0]);
    } else if (s->kind == STEP_REACH) {
        buf_printf(out, " %s:%u of the host", s->a ? "[::1]" : "127.0.0.1", s->b);
    } else if (s->kind == STEP_LISTEN) {
        buf_printf(out, " port %u", s->b);
    } else if (s->kind == STEP_RULESET) {
        buf_printf(out, " files %s, network %s, scopes", s->a ? "handled" : "free", s->b ? "handled" : "free");
        put_bits(out, s->mode, scopes, 2);
    } else if (arguments[s->kind][0] != NOTHING) {
        buf_char(out, ' ');
        utf8_safe(out, str_of(plan_string(p, s->a)));
        put_rest(p, s, out);
    }
    put_flags(out, s->flags);
}
