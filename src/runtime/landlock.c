/*
 * Landlock. In the namespace tier pid 1 gets a ruleset that handles no files, only scopes and other rights that cost
 * nothing. In the Landlock tier the rules are the confinement: the builder applies the file rules before it starts
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
    struct sys_stat st;
    own_fd int place = sys_openat2(AT_FDCWD, step_text(r, s->a), O_PATH | O_CLOEXEC, 0, CALM);
    if (place < 0)
        return place;
    int e = sys_stat_at(place, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (e < 0)
        return e;
    struct sys_landlock_path rule = {.rights = 0, .parent = place};
    if (s->mode & RULE_READ)
        rule.rights |= read_rights;
    if (s->mode & RULE_WRITE)
        rule.rights |= write_rights;
    if (s->mode & RULE_READ_FILE_ONLY)
        rule.rights |= LANDLOCK_ACCESS_FS_READ_FILE;
    if (s->mode & RULE_DEVICE)
        rule.rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | SYS_LANDLOCK_IOCTL_DEV;
    rule.rights &= handled;
    if (!S_ISDIR(st.mode))
        rule.rights &= file_rights;
    return rule.rights ? sys_landlock_allow(ruleset, &rule) : 0;
}

int step_ruleset(struct runner *r, const struct step *s)
{
    struct sys_landlock_ruleset all = {.files = s->a, .network = s->b, .scopes = r->plan->tier ? 0 : s->mode};
    const struct step *end = plan_steps(r->plan) + r->plan->n_steps;
    if (r->plan->tier && s->mode) {
        struct sys_landlock_ruleset scopes = {.scopes = s->mode};
        int fd = sys_landlock_create(&scopes);
        if (fd < 0)
            return fd;
        r->command_ruleset = fd;
    }
    if (!all.files && !all.network && !all.scopes)
        return 0;
    own_fd int ruleset = sys_landlock_create(&all);
    if (ruleset < 0)
        return ruleset;
    for (const struct step *rule = s + 1; rule < end && rule->kind == STEP_RULE; rule++) {
        r->failed = (uint32_t)(rule - plan_steps(r->plan));
        int e = add_rule(r, ruleset, all.files, rule);
        if (e < 0 && !(e == -ENOENT && rule->flags & STEP_OPTIONAL))
            return e;
    }
    r->failed = (uint32_t)(s - plan_steps(r->plan));
    if (r->pty[1] >= 0) { /* its own terminal, and none of the host's others */
        struct sys_landlock_path rule = {.rights = all.files & (LANDLOCK_ACCESS_FS_READ_FILE |
                                                                LANDLOCK_ACCESS_FS_WRITE_FILE | SYS_LANDLOCK_IOCTL_DEV),
                                         .parent = r->pty[1]};
        int e = sys_landlock_allow(ruleset, &rule);
        if (e < 0)
            return e;
    }
    if (r->plan->tier) { /* an unprivileged process may restrict itself only with no_new_privs */
        int e = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (e < 0)
            return e;
    }
    return sys_landlock_restrict(ruleset);
}
