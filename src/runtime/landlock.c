/*
 * Landlock. In the namespace tier pid 1 gets a ruleset of scopes, and of the right to open files for writing where the guard
 * is not asked about that (fifos_hold() in plan/finish.c); neither costs anything where files are read. In the Landlock tier the rules are the confinement: the builder applies the file rules before it starts
 * anything, so that the guard can do nothing that the box could not; pid 1 enters the scopes, so that kill(-1) reaches
 * only the box; and each command enters them again, so that it cannot signal pid 1.
 */
#include "runtime/runner.h"
#include "sys/landlock.h"

static const uint64_t read_rights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t write_rights =
    (SYS_LANDLOCK_ALL_FILES_1 & ~(uint64_t)(LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_CHAR)) |
    SYS_LANDLOCK_REFER | SYS_LANDLOCK_TRUNCATE;
/* Rights that a rule for a non-directory may name; others are refused with EINVAL. */
static const uint64_t file_rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                    LANDLOCK_ACCESS_FS_WRITE_FILE | SYS_LANDLOCK_TRUNCATE | SYS_LANDLOCK_IOCTL_DEV;

static int add_rule(const struct runner *r, int ruleset, uint64_t handled, const struct step *s)
{
    own_fd int place = sys_openat2(AT_FDCWD, step_text(r, s->a), O_PATH | O_CLOEXEC, 0, CALM);
    if (place < 0)
        return place;
    struct sys_landlock_path rule = {.rights = 0, .parent = place};
    if (s->mode & RULE_READ)
        rule.rights |= read_rights;
    if (s->mode & RULE_WRITE)
        rule.rights |= write_rights;
    if (s->mode & RULE_READ_FILE_ONLY)
        rule.rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
    if (s->mode & RULE_MEMORY)
        rule.rights |= LANDLOCK_ACCESS_FS_WRITE_FILE;
    if (s->mode & RULE_DEVICE)
        rule.rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | SYS_LANDLOCK_IOCTL_DEV;
    rule.rights &= handled;
    struct sys_stat st = {.mode = 0}; /* asked for only if there are rights that only a directory may have */
    const int e = rule.rights & ~file_rights ? sys_stat_fd(place, SYS_STAT_BASIC, &st) : 0;
    if (e < 0)
        return e;
    rule.rights &= S_ISDIR(st.mode) ? rule.rights : file_rights;
    return rule.rights ? sys_landlock_allow(ruleset, &rule) : 0;
}

static int add_terminal(const struct runner *r, int ruleset, uint64_t handled)
{
    struct sys_landlock_path rule = {
        .rights = handled & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | SYS_LANDLOCK_IOCTL_DEV),
        .parent = r->pty[1]};
    return r->pty[1] >= 0 && rule.rights ? sys_landlock_allow(ruleset, &rule) : 0;
}

/* The rules after step `s`, and that of the box's own terminal; none of the host's others. */
static int add_rules(struct runner *r, int ruleset, uint64_t handled, const struct step *s, bool for_guard)
{
    const struct step *end = plan_steps(r->plan) + r->plan->n_steps;
    for (const struct step *rule = s + 1; rule < end && rule->kind == STEP_RULE; rule++) {
        if (rule->mode & RULE_MEMORY && !for_guard)
            continue;
        r->failed = (uint32_t)(rule - plan_steps(r->plan));
        int e = add_rule(r, ruleset, handled, rule);
        /* Where /dev/ptmx is a link, as in containers, its target has a rule of its own. */
        const bool absent = (e == -ENOENT || e == -ELOOP) && rule->flags & STEP_OPTIONAL;
        /* What cannot be reached here cannot be written to without its rule, either. */
        if (e < 0 && !absent && (e != -EACCES || r->plan->tier))
            return e;
    }
    r->failed = (uint32_t)(s - plan_steps(r->plan));
    return add_terminal(r, ruleset, handled);
}

static bool guard_writes_memory(const struct runner *r, const struct step *s)
{
    const struct step *end = plan_steps(r->plan) + r->plan->n_steps;
    for (const struct step *rule = s + 1; rule < end && rule->kind == STEP_RULE; rule++) {
        if (rule->mode & RULE_MEMORY)
            return true;
    }
    return false;
}

/* What pid 1 and each command enter besides: scopes where the kernel has them, and where the guard may write to files in /proc,
   the files that the box may write to once more, without those. A right that no rule gives is always in it: whatever is
   outside of this domain, the guard among it, cannot be traced, and its limits are not the box's to set (guard/calls/peer.c). */
static int make_command_ruleset(struct runner *r, const struct step *s)
{
    const bool again = guard_writes_memory(r, s);
    struct sys_landlock_ruleset own = {
        .files = s->a & (LANDLOCK_ACCESS_FS_MAKE_BLOCK | (again ? LANDLOCK_ACCESS_FS_WRITE_FILE : 0)),
        .scopes = s->mode};
    if (!own.files && !own.scopes)
        return 0;
    r->command_ruleset = sys_landlock_create(&own);
    if (r->command_ruleset < 0)
        return r->command_ruleset;
    r->scoping = own.scopes & SYS_LANDLOCK_SCOPE_SIGNAL;
    return again ? add_rules(r, r->command_ruleset, own.files, s, false) : 0;
}

static int apply_ruleset(struct runner *r, const struct step *s)
{
    struct sys_landlock_ruleset all = {.files = s->a, .network = s->b, .scopes = r->plan->tier ? 0 : s->mode};
    int e = r->plan->tier ? make_command_ruleset(r, s) : 0;
    if (e < 0)
        return e;
    if (!all.files && !all.network && !all.scopes)
        return 0;
    own_fd int ruleset = sys_landlock_create(&all);
    if (ruleset < 0)
        return ruleset;
    e = add_rules(r, ruleset, all.files, s, true);
    if (e < 0)
        return e;
    if (r->plan->tier) { /* an unprivileged process may restrict itself only with no_new_privs */
        e = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (e < 0)
            return e;
    }
    return sys_landlock_restrict(ruleset);
}

int step_ruleset(struct runner *r, const struct step *s)
{
    return !r->plan->tier && s->a ? 0 : apply_ruleset(r, s);
}

int rulesets_of_trees(struct runner *r)
{
    const struct step *s = plan_steps(r->plan);
    for (uint32_t i = 0; !r->plan->tier && i < r->plan->n_steps; i++) {
        int e = s[i].kind == STEP_RULESET && s[i].a ? apply_ruleset(r, s + i) : 0;
        if (e < 0)
            return e;
    }
    return 0;
}
