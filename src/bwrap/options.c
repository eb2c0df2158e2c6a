/*
 * The command line. Most options are a row of a table that says where their argument goes; operations on the file system
 * are kept in the order in which they are given.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "bwrap/bwrap.h"
#include "sys/fd.h"

enum { ARGUMENTS_MAX = 9000 };

struct reader {
    struct bw_line *l;
    int perms;
    uint64_t size;
    bool perms_said, size_said;
    unsigned total;   /* arguments so far */
    const char *name; /* this program's */
    char **args;      /* of the option that is read */
    const char *option;
};

enum line_how { FLAG, FD, PATH, OPERATION, CALL };
struct line_option {
    const char *name;
    enum line_how how;
    uint16_t at; /* FLAG, FD, PATH: in struct bw_line */
    const char
        *args; /* of an option: p path, s text that may not be empty as a path, f descriptor, o mode; t any text */
    enum bw_kind kind;
    unsigned flags;
    void (*call)(struct reader *);
};

static void read_words(struct reader *r, int argc, char **argv, bool inner);

static void add_fd(struct bw_fds *fds, const char *text)
{
    const int fd = bw_fd_of(text);
    fds->at = bw_more(fds->at, &fds->n, sizeof *fds->at);
    fds->at[fds->n - 1] = fd;
}

static void help(struct reader *r)
{
    bw_help(r->name, false);
    exit(0);
}

static void version(struct reader *r)
{
    (void)r;
    puts("bubblewrap " BWRAP_LIKE);
    exit(fflush(stdout) == 0 ? 0 : 1);
}

static void args_of_fd(struct reader *r)
{
    size_t n, words = 0;
    char *bytes = bw_read_all(bw_fd_of(r->args[0]), "--args data", &n), **argv = NULL;
    for (char *p = bytes; p < bytes + n; p += strlen(p) + 1) {
        argv = bw_more(argv, &words, sizeof *argv);
        argv[words - 1] = p;
    }
    read_words(r, (int)words, argv, true);
}

static void level_prefix(struct reader *r)
{
    (void)r;
    bw_levels(true);
}

static void unshare_all(struct reader *r)
{
    struct bw_line *l = r->l;
    l->user_try = l->unshare_ipc = l->unshare_pid = l->unshare_net = l->unshare_uts = l->cgroup_try = true;
}

static void share_net(struct reader *r)
{
    r->l->unshare_net = false;
}

static void change_dir(struct reader *r)
{
    if (r->l->chdir)
        bw_warn("Only the last --chdir option will take effect");
    r->l->chdir = r->args[0];
}

static void clear_environment(struct reader *r)
{
    (void)r;
    (void)clearenv();
}

static void set_variable(struct reader *r)
{
    if (setenv(r->args[0], r->args[1], 1) != 0)
        bw_die("setenv failed");
}

static void unset_variable(struct reader *r)
{
    if (unsetenv(r->args[0]) != 0)
        bw_die("unsetenv failed");
}

static void lock_file(struct reader *r)
{
    struct bw_line *l = r->l;
    l->locks = bw_more(l->locks, &l->n_locks, sizeof *l->locks);
    l->locks[l->n_locks - 1] = r->args[0];
}

static void sync_fd(struct reader *r)
{
    add_fd(&r->l->sync, r->args[0]);
}

static void label(struct reader *r)
{
    (void)r;
    bw_die("labeling not supported on this system");
}

static void add_filter(struct bw_line *l, int fd)
{
    l->filters = bw_more(l->filters, &l->n_filters, sizeof *l->filters);
    struct bw_filter *f = &l->filters[l->n_filters - 1];
    f->code = bw_read_all(fd, "seccomp data", &f->bytes);
    if (f->bytes % 8)
        bw_die("Invalid seccomp data, must be multiple of 8");
}

static void seccomp(struct reader *r)
{
    const int fd = bw_fd_of(r->args[0]);
    if (r->l->n_filters)
        bw_die("--seccomp cannot be combined with --add-seccomp-fd");
    if (r->l->seccomp >= 0)
        bw_warn("Only the last --seccomp option will take effect");
    r->l->seccomp = fd;
}

static void add_seccomp(struct reader *r)
{
    const int fd = bw_fd_of(r->args[0]);
    if (r->l->seccomp >= 0)
        bw_die("--add-seccomp-fd cannot be combined with --seccomp");
    add_filter(r->l, fd);
}

static void uid(struct reader *r)
{
    r->l->uid = bw_id_of(r->args[0], "uid");
}

static void gid(struct reader *r)
{
    r->l->gid = bw_id_of(r->args[0], "gid");
}

static void cap_add(struct reader *r)
{
    r->l->caps |= bw_caps_of(r->args[0]);
    r->l->caps_said = true;
}

static void cap_drop(struct reader *r)
{
    r->l->caps &= ~bw_caps_of(r->args[0]);
    r->l->caps_said = true;
}

static void perms(struct reader *r)
{
    if (r->perms_said)
        bw_die("--perms given twice for the same action");
    r->perms = bw_octal("--perms", r->args[0]);
    r->perms_said = true;
}

static void size(struct reader *r)
{
    if (r->size_said)
        bw_die("--size given twice for the same action");
    r->size = bw_size_of(r->args[0]);
    r->size_said = true;
}

#define AT(member) offsetof(struct bw_line, member)
static const struct line_option known[] = {
    {"--help", CALL, 0, "", .call = help},
    {"--version", CALL, 0, "", .call = version},
    {"--args", CALL, 0, "t", .call = args_of_fd},
    {"--argv0", PATH, AT(argv0), "t"},
    {"--level-prefix", CALL, 0, "", .call = level_prefix},
    {"--unshare-all", CALL, 0, "", .call = unshare_all},
    {"--share-net", CALL, 0, "", .call = share_net},
    {"--unshare-user", FLAG, AT(unshare_user), ""},
    {"--unshare-user-try", FLAG, AT(user_try), ""},
    {"--unshare-ipc", FLAG, AT(unshare_ipc), ""},
    {"--unshare-pid", FLAG, AT(unshare_pid), ""},
    {"--unshare-net", FLAG, AT(unshare_net), ""},
    {"--unshare-uts", FLAG, AT(unshare_uts), ""},
    {"--unshare-cgroup", FLAG, AT(unshare_cgroup), ""},
    {"--unshare-cgroup-try", FLAG, AT(cgroup_try), ""},
    {"--userns", FD, AT(userns), "t"},
    {"--userns2", FD, AT(userns2), "t"},
    {"--disable-userns", FLAG, AT(disable_userns), ""},
    {"--assert-userns-disabled", FLAG, AT(assert_userns_disabled), ""},
    {"--pidns", FD, AT(pidns), "t"},
    {"--uid", CALL, 0, "t", .call = uid},
    {"--gid", CALL, 0, "t", .call = gid},
    {"--hostname", PATH, AT(hostname), "t"},
    {"--chdir", CALL, 0, "p", .call = change_dir},
    {"--clearenv", CALL, 0, "", .call = clear_environment},
    {"--setenv", CALL, 0, "tt", .call = set_variable},
    {"--unsetenv", CALL, 0, "t", .call = unset_variable},
    {"--lock-file", CALL, 0, "p", .call = lock_file},
    {"--sync-fd", CALL, 0, "t", .call = sync_fd},
    {"--bind", OPERATION, 0, "sd", BW_BIND},
    {"--bind-try", OPERATION, 0, "sd", BW_BIND, BW_TRY},
    {"--dev-bind", OPERATION, 0, "sd", BW_BIND, BW_DEVICES},
    {"--dev-bind-try", OPERATION, 0, "sd", BW_BIND, BW_DEVICES | BW_TRY},
    {"--ro-bind", OPERATION, 0, "sd", BW_BIND, BW_READ_ONLY},
    {"--ro-bind-try", OPERATION, 0, "sd", BW_BIND, BW_READ_ONLY | BW_TRY},
    {"--bind-fd", OPERATION, 0, "fd", BW_BIND_FD},
    {"--ro-bind-fd", OPERATION, 0, "fd", BW_BIND_FD, BW_READ_ONLY},
    {"--remount-ro", OPERATION, 0, "d", BW_REMOUNT_RO},
    {"--overlay-src", OPERATION, 0, "s", BW_OVERLAY_SRC},
    {"--overlay", OPERATION, 0, "swd", BW_OVERLAY},
    {"--tmp-overlay", OPERATION, 0, "d", BW_TMP_OVERLAY},
    {"--ro-overlay", OPERATION, 0, "d", BW_RO_OVERLAY},
    {"--exec-label", CALL, 0, "t", .call = label},
    {"--file-label", CALL, 0, "t", .call = label},
    {"--proc", OPERATION, 0, "d", BW_PROC},
    {"--dev", OPERATION, 0, "d", BW_DEV},
    {"--tmpfs", OPERATION, 0, "d", BW_TMPFS},
    {"--mqueue", OPERATION, 0, "d", BW_MQUEUE},
    {"--dir", OPERATION, 0, "d", BW_DIR},
    {"--file", OPERATION, 0, "fd", BW_FILE},
    {"--bind-data", OPERATION, 0, "fd", BW_BIND_DATA},
    {"--ro-bind-data", OPERATION, 0, "fd", BW_BIND_DATA, BW_READ_ONLY},
    {"--symlink", OPERATION, 0, "sd", BW_SYMLINK},
    {"--seccomp", CALL, 0, "t", .call = seccomp},
    {"--add-seccomp-fd", CALL, 0, "t", .call = add_seccomp},
    {"--block-fd", FD, AT(block), "t"},
    {"--userns-block-fd", FD, AT(userns_block), "t"},
    {"--info-fd", FD, AT(info), "t"},
    {"--json-status-fd", FD, AT(json), "t"},
    {"--new-session", FLAG, AT(new_session), ""},
    {"--die-with-parent", FLAG, AT(die_with_parent), ""},
    {"--as-pid-1", FLAG, AT(as_pid_1), ""},
    {"--cap-add", CALL, 0, "t", .call = cap_add},
    {"--cap-drop", CALL, 0, "t", .call = cap_drop},
    {"--perms", CALL, 0, "t", .call = perms},
    {"--size", CALL, 0, "t", .call = size},
    {"--chmod", OPERATION, 0, "od", BW_CHMOD},
    {"--not-a-security-boundary", FLAG, AT(not_boundary), ""},
};

static bool creates(enum bw_kind kind)
{
    return kind == BW_TMPFS || kind == BW_DIR || kind == BW_FILE || kind == BW_BIND_DATA;
}

static void check_overlay(const struct bw_line *l, const struct bw_op *op)
{
    size_t sources = 0;
    while (op - sources > l->ops && op[-1 - (ptrdiff_t)sources].kind == BW_OVERLAY_SRC)
        sources++;
    if (op->kind == BW_RO_OVERLAY && sources < 2)
        bw_die("--ro-overlay requires at least two --overlay-src");
    if (sources < 1)
        bw_die("%s requires at least one --overlay-src", op->option);
}

static bool is_overlay(enum bw_kind kind)
{
    return kind == BW_OVERLAY || kind == BW_TMP_OVERLAY || kind == BW_RO_OVERLAY;
}

static void add_operation(struct reader *r, const struct line_option *o)
{
    struct bw_line *l = r->l;
    l->ops = bw_more(l->ops, &l->n_ops, sizeof *l->ops);
    struct bw_op *op = &l->ops[l->n_ops - 1];
    *op = (struct bw_op){.kind = o->kind, .flags = o->flags, .option = o->name, .fd = -1, .perms = -1, .tree = -1};
    for (size_t i = 0; o->args[i]; i++) {
        switch (o->args[i]) {
        case 's':
            op->src = r->args[i];
            break;
        case 'w':
            op->work = r->args[i];
            break;
        case 'd':
            op->dest = r->args[i];
            break;
        case 'f':
            op->fd = bw_fd_of(r->args[i]);
            break;
        default:
            op->perms = bw_octal(o->name, r->args[i]);
            break;
        }
    }
    if (is_overlay(op->kind))
        check_overlay(l, op);
    if (r->perms_said && !creates(op->kind))
        bw_die("--perms must be followed by an option that creates a file");
    if (r->size_said && op->kind != BW_TMPFS)
        bw_die("--size must be followed by --tmpfs");
    if (r->perms_said)
        op->perms = r->perms;
    op->size = r->size;
    r->perms_said = r->size_said = false;
    r->size = 0;
}

/* After --overlay-src only such options may come. */
static void check_sequence(const struct reader *r, const struct line_option *o)
{
    const struct bw_line *l = r->l;
    if (l->n_ops && l->ops[l->n_ops - 1].kind == BW_OVERLAY_SRC &&
        !(o && o->how == OPERATION && (o->kind == BW_OVERLAY_SRC || is_overlay(o->kind))))
        bw_die("--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or "
               "--ro-overlay");
}

static const struct line_option *find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (same(known[i].name, name))
            return &known[i];
    }
    bw_die("Unknown option %s", name);
}

static void apply(struct reader *r, const struct line_option *o)
{
    char *to = (char *)r->l + o->at;
    for (size_t i = 0; o->args[i]; i++) {
        if (strchr("pswd", o->args[i]) && !*r->args[i])
            bw_die("%s does not take an empty path argument", o->name);
    }
    check_sequence(r, o);
    switch (o->how) {
    case FLAG:
        *(bool *)(void *)to = true;
        break;
    case FD:
        *(int *)(void *)to = bw_fd_of(r->args[0]);
        break;
    case PATH:
        *(const char **)(void *)to = r->args[0];
        break;
    case OPERATION:
        add_operation(r, o);
        break;
    case CALL:
        o->call(r);
        break;
    }
}

/* `inner`: from --args, where options alone count up to the first other word. */
static void read_words(struct reader *r, int argc, char **argv, bool inner)
{
    static const char how_many[][16] = {"no", "an argument", "two arguments", "three arguments"};
    int i = 0;
    while (i < argc && argv[i][0] == '-') {
        if (same(argv[i], "--")) {
            i++;
            break;
        }
        const struct line_option *o = find(argv[i]);
        const int n = (int)strlen(o->args);
        r->total += (unsigned)n + 1;
        if (r->total > ARGUMENTS_MAX)
            bw_die("Exceeded maximum number of arguments %d", ARGUMENTS_MAX);
        if (argc - i - 1 < n)
            bw_die("%s takes %s", o->name, how_many[n]);
        r->args = argv + i + 1;
        i += n + 1;
        apply(r, o);
    }
    if (!inner)
        r->l->command = argv + i;
}

static void check_line(const struct bw_line *l, bool root)
{
    const bool user = l->unshare_user || l->user_try || (!root && l->userns < 0);
    if (l->unshare_user && l->userns >= 0)
        bw_die("--userns is not compatible with --unshare-user");
    if (l->disable_userns && !l->unshare_user)
        bw_die("--disable-userns requires --unshare-user");
    if (l->disable_userns && l->userns_block >= 0)
        bw_die("--disable-userns is not compatible with  --userns-block-fd");
    if (l->userns_block >= 0 && l->info < 0)
        bw_die("--userns-block-fd requires --info-fd");
    if (l->userns_block >= 0 && !l->unshare_user)
        bw_die("--userns-block-fd requires --unshare-user");
    if (l->uid >= 0 && !user && l->userns < 0)
        bw_die("Specifying --uid requires --unshare-user or --userns");
    if (l->gid >= 0 && !user && l->userns < 0)
        bw_die("Specifying --gid requires --unshare-user or --userns");
    if (l->hostname && !l->unshare_uts)
        bw_die("Specifying --hostname requires --unshare-uts");
    if (l->as_pid_1 && !l->unshare_pid)
        bw_die("Specifying --as-pid-1 requires --unshare-pid");
    if (l->as_pid_1 && l->n_locks)
        bw_die("Specifying --as-pid-1 and --lock-file is not permitted");
}

void bw_read_line(struct bw_line *l, int argc, char **argv)
{
    const bool root = sys_call(SYS_getuid, 0, 0, 0, 0, 0, 0) == 0;
    struct reader r = {.l = l, .name = argc ? argv[0] : "bwrap"};
    *l = (struct bw_line){.userns = -1,
                          .userns2 = -1,
                          .pidns = -1,
                          .block = -1,
                          .userns_block = -1,
                          .info = -1,
                          .json = -1,
                          .seccomp = -1,
                          .uid = -1,
                          .gid = -1};
    l->caps = root ? bw_caps_permitted() : 0;
    if (argc)
        read_words(&r, argc - 1, argv + 1, false);
    if (!l->command || !*l->command) {
        bw_help(r.name, true);
        exit(1);
    }
    check_sequence(&r, NULL);
    check_line(l, root);
    if (l->seccomp >= 0)
        add_filter(l, l->seccomp);
}
