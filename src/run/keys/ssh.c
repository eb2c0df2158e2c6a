/*
 * Prepares the filter of the ssh-agent on the host's side, before the box is planned. Names of keys become keys here, and names of
 * hosts the keys that known_hosts has for them, so the filter itself looks nothing up.
 */
#include "run/keys/ssh.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/path.h"
#include "policy/set.h"
#include "ssh/known.h"

#define MAX_SSH_ARENA (16u << 20)
#define MAX_GPG_ARENA (80u << 20) /* a list of keys */
#define MAX_KEY_FILE  (16u << 10)
#define MAX_KNOWN     (4u << 20)
#define SAID_BY       "ssh_agent"
enum { AGENT_SECONDS = 10, MAX_SHOWN = 256 };

struct agent_key {
    struct str key, comment;
};
struct preparing {
    struct pinfold_policy *p;
    struct ssh_ready *ready;
    struct arena *mem;
    struct err *e;
    struct agent_key *has; /* what the agent lists */
    size_t n_has;
    struct ssh_named_key *keys;
    size_t n_keys;
    struct ssh_login *logins;
    size_t n_logins;
    struct str *revoked;
    size_t n_revoked;
    uint64_t mask; /* the keys that the hosts being looked up are for */
    struct layer_flag *flags;
    size_t n_flags;
};

static int ssh_no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot prepare the ssh-agent");
}

static const char *rule_origin(const struct preparing *s, uint32_t origin, char room[512])
{
    return policy_origin(s->p->policy, origin, room, 512);
}

/* ---- the agent ---- */

static int say_no_agent(const struct preparing *s, int no)
{
    char room[512];
    const char *by = rule_origin(s, s->p->policy->ssh_keys[0].origin, room);
    static const char remedy[] = "start one with: eval \"$(ssh-agent)\" && ssh-add";
    if (no == ENOENT && !s->ready->box.agent)
        return err_say(s->e, ERR_CANNOT, "ssh_agent (%s): there is no ssh-agent (SSH_AUTH_SOCK is not set); %s", by,
                       remedy);
    return err_say(s->e, ERR_CANNOT, "ssh_agent (%s): the ssh-agent at '%s' (SSH_AUTH_SOCK) does not answer: %s; %s",
                   by, s->ready->box.agent, strerror(no), remedy);
}

static bool read_all(int fd, char *to, size_t n)
{
    const int no = fd_read_exactly(fd, to, n);
    errno = no == -EAGAIN ? ETIMEDOUT : -no;
    return no == 0;
}

static int connect_agent(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = AGENT_SECONDS};
    if (strlen(path) >= sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(at.sun_path, path, strlen(path) + 1);
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return -1;
    return take_fd(&fd);
}

static int list_agent_keys(struct preparing *s)
{
    const char *path = getenv("SSH_AUTH_SOCK");
    const char ask[5] = {0, 0, 0, 1, SSH_TYPE_LIST};
    char head[4];
    struct str rest = {head, sizeof head}, key, comment;
    uint32_t n, count;
    if (!path || path[0] != '/')
        return say_no_agent(s, ENOENT);
    s->ready->box.agent = arena_text(s->mem, path);
    if (!s->ready->box.agent)
        return ssh_no_memory(s->e);
    auto_fd int fd = connect_agent(path);
    if (fd < 0 || send(fd, ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask || !read_all(fd, head, sizeof head))
        return say_no_agent(s, errno);
    (void)ssh_take_number(&rest, &n);
    char *answer = n && n <= SSH_MAX_MESSAGE ? arena_zero(s->mem, n) : NULL;
    if (!answer || !read_all(fd, answer, n))
        return say_no_agent(s, answer ? errno : EBADMSG);
    rest = (struct str){answer + 1, n - 1};
    if (answer[0] != SSH_TYPE_IDENTITIES || !ssh_take_number(&rest, &count))
        return say_no_agent(s, EBADMSG);
    for (uint32_t i = 0; i < count; i++) {
        if (!ssh_take_string(&rest, &key) || !ssh_take_string(&rest, &comment))
            return say_no_agent(s, EBADMSG);
        struct agent_key *slot = arena_push(s->mem, &s->has, &s->n_has, sizeof *slot);
        if (!slot)
            return ssh_no_memory(s->e);
        *slot = (struct agent_key){key, comment};
    }
    return 0;
}

static void put_string(struct buf *out, const void *bytes, size_t n)
{
    const char head[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    buf_put(out, head, sizeof head);
    buf_put(out, bytes, n);
}

/*
 * Whether the agent verifies what a connection is bound to: there are agents that say yes to every extension. It gets a bind
 * whose signature is none (by the key that is Ed25519's base point). What does not answer binds nothing.
 */
static bool agent_verifies(const struct preparing *s)
{
    static const char type[] = "ssh-ed25519", name[] = "session-bind@openssh.com", forwarding = 0;
    char point[32], sum[64], head[4];
    auto_buf struct buf key = BUF(256), signature = BUF(256), ask = BUF(1024), frame = BUF(1024);
    memset(point, 0x66, sizeof point);
    point[0] = 0x58;
    for (size_t i = 0; i < sizeof sum; i++)
        sum[i] = (char)(i < 63 ? i + 1 : 0);
    put_string(&key, type, sizeof type - 1);
    put_string(&key, point, sizeof point);
    put_string(&signature, type, sizeof type - 1);
    put_string(&signature, sum, sizeof sum);
    buf_char(&ask, SSH_TYPE_EXTENSION);
    put_string(&ask, name, sizeof name - 1);
    put_string(&ask, key.p, key.n);
    put_string(&ask, sum, 32); /* the session's id */
    put_string(&ask, signature.p, signature.n);
    buf_put(&ask, &forwarding, 1);
    put_string(&frame, ask.p, ask.n);
    auto_fd int fd = buf_ok(&frame) ? connect_agent(s->ready->box.agent) : -1;
    char answer = SSH_TYPE_SUCCESS;
    return fd >= 0 && send(fd, frame.p, frame.n, MSG_NOSIGNAL) == (ssize_t)frame.n &&
           (!read_all(fd, head, sizeof head) || !read_all(fd, &answer, 1) || answer != SSH_TYPE_SUCCESS);
}

/* ---- keys by name ---- */

/* What a person sees of the agent: comments may have any bytes. */
static const char *printable(struct preparing *s, struct str text)
{
    char *copy = arena_str(s->mem, (struct str){text.p, text.n < 80 ? text.n : 80});
    for (char *c = copy; c && *c; c++)
        *c = (unsigned char)*c < ' ' || (unsigned char)*c >= 127 ? '?' : *c;
    return copy;
}

static void list_what_there_is(struct preparing *s, char *text, size_t n)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < s->n_has; i++) {
        char sum[SSH_FINGERPRINT];
        ssh_fingerprint(s->has[i].key, sum);
        const char *comment = printable(s, s->has[i].comment);
        int put = snprintf(text + at, n - at, "%s%s (%s)", i ? ", " : "", sum, comment ? comment : "");
        if (put < 0 || (size_t)put >= n - at) {
            snprintf(text + at, n - at, "%s", i ? " ..." : "");
            return;
        }
        at += (size_t)put;
    }
}

static int say_not_there(struct preparing *s, const struct ssh_key_rule *r, size_t found)
{
    char room[512], list[500];
    list_what_there_is(s, list, sizeof list);
    if (found > 1)
        return err_say(s->e, ERR_POLICY,
                       "ssh key '%s' (%s): %zu keys of the ssh-agent have this comment; name one by its "
                       "fingerprint: %s",
                       r->key, rule_origin(s, r->origin, room), found, list);
    if (!s->n_has)
        return err_say(s->e, ERR_CANNOT, "ssh key '%s' (%s): the ssh-agent has no keys; add it with: ssh-add", r->key,
                       rule_origin(s, r->origin, room));
    return err_say(s->e, ERR_CANNOT,
                   "ssh key '%s' (%s): the ssh-agent does not have it; add it with ssh-add, or name one "
                   "of: %s",
                   r->key, rule_origin(s, r->origin, room), list);
}

/* The key of a public key file; `text` has MAX_KEY_FILE bytes. 0, or -errno; -EBADMSG: it is none. */
static int read_key(const char *path, char *text, char *room, struct str *ret)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    ssize_t n = S_ISREG(st.st_mode) ? read(fd, text, MAX_KEY_FILE) : 0;
    struct str rest = {text, n > 0 ? (size_t)n : 0};
    return n < 0 ? -errno : ssh_public_line(str_until(&rest, '\n'), room, ret) ? 0 : -EBADMSG;
}

/* Makes the private key's name the public one's: the private file is never opened. */
static const char *public_path(const struct preparing *s, const char *path)
{
    const char *also = arena_printf(s->mem, "%s.pub", path);
    return !str_ends(str_of(path), STR(".pub")) && also && access(also, F_OK) == 0 ? also : path;
}

static int key_of_file(struct preparing *s, const struct ssh_key_rule *r, struct str *ret)
{
    char room[512], text[MAX_KEY_FILE];
    char *key = arena_zero(s->mem, SSH_MAX_HOST_KEY);
    const char *path = public_path(s, r->key);
    if (!key)
        return ssh_no_memory(s->e);
    int no = read_key(path, text, key, ret);
    if (no == -EBADMSG)
        return err_say(
            s->e, ERR_POLICY,
            "ssh key '%s' (%s): this is not a public key file; name the file that ends in .pub, or the key's "
            "fingerprint as 'ssh-add -l' shows it",
            path, rule_origin(s, r->origin, room));
    return no < 0 ? err_sys(s->e, ERR_CANNOT, -no, "ssh key '%s' (%s): cannot read the public key file", path,
                            rule_origin(s, r->origin, room))
                  : 0;
}

/* The key that a rule names, as the agent has it. */
static int find_key(struct preparing *s, const struct ssh_key_rule *r, const struct agent_key **ret)
{
    const bool file = r->key[0] == '/', print = str_starts(str_of(r->key), STR("SHA256:"));
    struct str key = {0};
    size_t found = 0;
    int no = file ? key_of_file(s, r, &key) : 0;
    for (size_t i = 0; no == 0 && i < s->n_has; i++) {
        char sum[SSH_FINGERPRINT];
        ssh_fingerprint(s->has[i].key, sum);
        if (file ? !str_eq(s->has[i].key, key) : print ? !same(sum, r->key) : !str_is(s->has[i].comment, r->key))
            continue;
        *ret = &s->has[i];
        found++;
    }
    return no < 0 ? no : found == 1 || (found && print) ? 0 : say_not_there(s, r, found);
}

static int name_key(struct preparing *s, const struct ssh_key_rule *r, size_t *ret_index)
{
    const struct agent_key *key = NULL;
    char sum[SSH_FINGERPRINT], room[512];
    int no = find_key(s, r, &key);
    if (no < 0)
        return no;
    const struct ssh_rules so_far = {.keys = s->keys, .n_keys = s->n_keys};
    if (ssh_key_named(&so_far, key->key, ret_index))
        return 0;
    if (s->n_keys == SSH_MAX_KEYS)
        return err_say(s->e, ERR_POLICY, "ssh key '%s' (%s): more than %d keys", r->key,
                       rule_origin(s, r->origin, room), SSH_MAX_KEYS);
    ssh_fingerprint(key->key, sum);
    const char *name = key->comment.n ? printable(s, key->comment) : arena_text(s->mem, sum);
    struct ssh_named_key *slot = arena_push(s->mem, &s->keys, &s->n_keys, sizeof *slot);
    if (!slot || !name)
        return ssh_no_memory(s->e);
    *slot = (struct ssh_named_key){.key = key->key, .name = name};
    *ret_index = s->n_keys - 1;
    return 0;
}

/* ---- hosts ---- */

static bool take_host_key(void *ctx, const char *host, struct str key, bool revoked)
{
    struct preparing *s = ctx;
    const char *copy = arena_str(s->mem, key);
    if (!copy || s->n_logins >= SSH_MAX_LOGINS)
        return false;
    key.p = copy;
    if (revoked) {
        struct str *slot = arena_push(s->mem, &s->revoked, &s->n_revoked, sizeof *slot);
        if (slot)
            *slot = key;
        return slot != NULL;
    }
    for (size_t i = 0; i < s->n_logins; i++) {
        if (str_eq(s->logins[i].host_key, key) && same(s->logins[i].host, host)) {
            s->logins[i].keys |= s->mask;
            return true;
        }
    }
    struct ssh_login *slot = arena_push(s->mem, &s->logins, &s->n_logins, sizeof *slot);
    if (slot)
        *slot = (struct ssh_login){key, arena_text(s->mem, host), s->mask};
    return slot && slot->host;
}

/* The rules about one key's hosts: `host`, or what the network allows; whatever is denied stays so. */
static int host_rules(struct preparing *s, const char *host, struct host_rule **ret, size_t *ret_n)
{
    const struct policy *p = s->p->policy;
    struct host_rule *rules = NULL;
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; i < p->n_net_rules; i++)
        n += host_rule_count(str_of(p->net_rules[i].text));
    rules = arena_zero(s->mem, (n + 1) * sizeof *rules);
    if (!rules)
        return ssh_no_memory(s->e);
    n = 0;
    if (host)
        r = host_rule_parse(str_of(host), RULE_ALLOW, &rules[n++], s->e);
    for (size_t i = 0; r == 0 && i < p->n_net_rules; i++) {
        const struct net_rule *said = &p->net_rules[i];
        char ports[32];
        const bool allows = said->verb == NET_RULE_ALLOW || said->verb == NET_RULE_REACH;
        struct str text = str_of(said->text);
        if (said->verb == NET_RULE_PUBLISH || (allows && (host || p->net != NET_ALLOW)))
            continue;
        if (said->verb == NET_RULE_DENY_PORT) {
            snprintf(ports, sizeof ports, "*:%s", said->text);
            text = str_of(ports);
        }
        r = host_rules_parse(text, allows ? RULE_ALLOW : RULE_DENY, said->origin, &rules[n], s->e);
        n += host_rule_count(text);
    }
    *ret = rules;
    *ret_n = n;
    return r;
}

static int read_known(struct preparing *s, const char *path, struct buf *out)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(s->e, ERR_CANNOT, errno, "cannot read '%s', which says what keys hosts have", path);
    if (!S_ISREG(st.st_mode))
        return 0;
    const int no = fd_read_all(fd, out);
    if (no < 0 && buf_ok(out))
        return err_sys(s->e, ERR_CANNOT, -no, "cannot read '%s', which says what keys hosts have", path);
    buf_char(out, '\n');
    return buf_ok(out) ? 0
                       : err_say(s->e, ERR_CANNOT, "'%s' is too large (the limit is %u MiB)", path, MAX_KNOWN >> 20);
}

static int read_all_known(struct preparing *s, struct buf *out)
{
    const char *home = s->p->layers.world.home;
    const char *const files[] = {arena_printf(s->mem, "%s/.ssh/known_hosts", home),
                                 arena_printf(s->mem, "%s/.ssh/known_hosts2", home), "/etc/ssh/ssh_known_hosts",
                                 "/etc/ssh/ssh_known_hosts2"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof files / sizeof *files; i++)
        r = files[i] ? read_known(s, files[i], out) : ssh_no_memory(s->e);
    return r;
}

static int look_up(struct preparing *s, const struct buf *known, const char *host, uint64_t mask)
{
    struct host_rule *rules = NULL;
    size_t n = 0;
    s->mask = mask;
    int r = mask ? host_rules(s, host, &rules, &n) : 0;
    if (r == 0 && mask && !ssh_known_hosts(buf_view(known), rules, n, take_host_key, s))
        r = s->n_logins >= SSH_MAX_LOGINS
                ? err_say(s->e, ERR_CANNOT, "ssh_agent: known_hosts has more than %d keys of allowed hosts",
                          SSH_MAX_LOGINS)
                : ssh_no_memory(s->e);
    return r;
}

static void drop_revoked(struct preparing *s)
{
    for (size_t i = 0; i < s->n_logins; i++) {
        for (size_t k = 0; k < s->n_revoked; k++) {
            if (str_eq(s->logins[i].host_key, s->revoked[k]))
                s->logins[i].keys = 0;
        }
    }
}

static int make_rules(struct preparing *s)
{
    const struct policy *p = s->p->policy;
    auto_buf struct buf known = BUF(MAX_KNOWN);
    uint64_t everywhere = 0;
    int r = read_all_known(s, &known);
    for (size_t i = 0; r == 0 && i < p->n_ssh_keys; i++) {
        const struct ssh_key_rule *rule = &p->ssh_keys[i];
        size_t key;
        r = name_key(s, rule, &key);
        if (r < 0)
            break;
        if (!rule->host || same(rule->host, "git"))
            s->keys[key].git = true;
        if (!rule->host)
            everywhere |= (uint64_t)1 << key;
        else if (!same(rule->host, "git"))
            r = look_up(s, &known, rule->host, (uint64_t)1 << key);
    }
    if (r == 0)
        r = look_up(s, &known, NULL, everywhere);
    drop_revoked(s);
    s->ready->box.rules = (struct ssh_rules){.keys = s->keys,
                                             .n_keys = s->n_keys,
                                             .logins = s->logins,
                                             .n_logins = s->n_logins,
                                             .confirm = p->ssh_confirm,
                                             .gullible = r == 0 && s->n_logins && !agent_verifies(s)};
    return r;
}

/* ---- what the box sees ---- */

static int add_layer_flag(struct preparing *s, const char *name, const char *value)
{
    struct layer_flag *f = value ? arena_push(s->mem, &s->flags, &s->n_flags, sizeof *f) : NULL;
    if (!f)
        return ssh_no_memory(s->e);
    *f = (struct layer_flag){.name = name, .value = value};
    return 0;
}

/* A file that is hidden by a rule around it becomes readable; one that a rule names stays as that says. */
static int show_file(struct preparing *s, const char *path)
{
    const struct path_rule *rule = NULL;
    if (!path || access(path, R_OK) < 0 || policy_access(s->p->policy, path, &rule) != PATH_HIDE ||
        (rule && same(rule->path, path)))
        return path ? 0 : ssh_no_memory(s->e);
    for (size_t i = 0; i < s->n_flags; i++) {
        if (same(s->flags[i].value, path))
            return 0;
    }
    return add_layer_flag(s, "ro", path);
}

static int show_public_keys(struct preparing *s, const char *dir)
{
    char text[MAX_KEY_FILE], room[SSH_MAX_HOST_KEY];
    DIR *d = opendir(dir);
    int r = 0;
    for (struct dirent *entry; r == 0 && d && s->n_flags < MAX_SHOWN && (entry = readdir(d));) {
        struct str key;
        size_t i;
        if (!str_ends(str_of(entry->d_name), STR(".pub")))
            continue;
        const char *path = arena_printf(s->mem, "%s/%s", dir, entry->d_name);
        if (path && read_key(path, text, room, &key) == 0 && ssh_key_named(&s->ready->box.rules, key, &i))
            r = show_file(s, path);
    }
    if (d)
        (void)closedir(d);
    return r;
}

static int make_socket(struct preparing *s)
{
    int r = agent_place_make("ssh", &s->ready->place, &s->ready->box.listener, s->e);
    if (r < 0)
        return r;
    const char *path = arena_printf(s->mem, "%s/" AGENT_SOCKET, s->ready->place.dir);
    r = add_layer_flag(s, "unix-socket", path);
    return r < 0 ? r : add_layer_flag(s, "env", arena_printf(s->mem, "SSH_AUTH_SOCK=%s", path));
}

static int show_key_files(struct preparing *s)
{
    const struct policy *p = s->p->policy;
    const char *dir = arena_printf(s->mem, "%s/.ssh", s->p->layers.world.home);
    int r = dir ? show_file(s, arena_printf(s->mem, "%s/known_hosts", dir)) : ssh_no_memory(s->e);
    if (r == 0)
        r = show_file(s, arena_printf(s->mem, "%s/known_hosts2", dir));
    for (size_t i = 0; r == 0 && i < p->n_ssh_keys; i++) {
        if (p->ssh_keys[i].key[0] == '/')
            r = show_file(s, public_path(s, p->ssh_keys[i].key));
    }
    return r < 0 ? r : show_public_keys(s, dir);
}

/* The policy with what was found; the one that was loaded stays for the next time. */
static int extend(struct preparing *s)
{
    struct pinfold_policy *p = s->p;
    struct policy *with = NULL;
    int r = layers_build_with(&p->layers, s->flags, s->n_flags, SAID_BY, &with, s->e);
    if (r < 0)
        return r;
    struct policy **slot = arena_push(p->mem, &p->extended, &p->n_extended, sizeof *slot);
    if (!slot) {
        (void)policy_free(with);
        return ssh_no_memory(s->e);
    }
    *slot = with;
    s->ready->said = p->policy;
    p->policy = with;
    return 0;
}

/* What confirms nothing, and what no engine can do. */
static int judge_agents(const struct policy *p, struct err *e)
{
    char room[512];
    const bool alone = (p->ssh_confirm && !p->n_ssh_keys && p->origins[p->ssh_confirm_origin].layer == LAYER_FLAGS) ||
                       (p->gpg_confirm && !p->n_gpg_keys && p->origins[p->gpg_confirm_origin].layer == LAYER_FLAGS);
    const bool ssh = p->ssh_confirm && !p->n_ssh_keys;
    if (alone)
        return err_say(e, ERR_POLICY, "%s: there is no key to ask for; name one with --%s-agent KEY",
                       policy_origin(p, ssh ? p->ssh_confirm_origin : p->gpg_confirm_origin, room, sizeof room),
                       ssh ? "ssh" : "gpg");
    if (same(p->engine, "vm") && (p->n_ssh_keys || p->n_gpg_keys))
        return err_say(
            e, ERR_CANNOT, "%s (%s): a virtual machine cannot connect to a socket of this machine; use another engine",
            p->n_ssh_keys ? "ssh_agent" : "gpg_agent",
            policy_origin(p, p->n_ssh_keys ? p->ssh_keys[0].origin : p->gpg_keys[0].origin, room, sizeof room));
    return 0;
}

static int add_gpg(struct preparing *s)
{
    const char **flags = NULL;
    int r = gpg_begin(s->p, s->mem, &s->ready->gpg, &flags, s->e);
    for (size_t i = 0; r == 0 && flags[i]; i += 2)
        r = add_layer_flag(s, flags[i], flags[i + 1]);
    return r;
}

int ssh_begin(struct pinfold_policy *p, struct ssh_ready *ret, struct err *e)
{
    const struct policy *policy = p->policy;
    *ret = SSH_READY;
    int r = judge_agents(policy, e);
    if (r < 0 || (!policy->n_ssh_keys && !policy->n_gpg_keys))
        return r;
    ret->mem = arena_new(MAX_SSH_ARENA + (policy->n_gpg_keys ? MAX_GPG_ARENA : 0));
    struct preparing s = {.p = p, .ready = ret, .mem = ret->mem, .e = e};
    r = ret->mem ? 0 : ssh_no_memory(e);
    if (r == 0 && policy->n_ssh_keys) {
        r = list_agent_keys(&s);
        if (r == 0)
            r = make_rules(&s);
        if (r == 0)
            r = make_socket(&s);
        if (r == 0)
            r = show_key_files(&s);
    }
    if (r == 0 && policy->n_gpg_keys)
        r = add_gpg(&s);
    return r < 0 ? r : extend(&s);
}

int ssh_digest(const struct ssh_ready *s, struct plan *plan, struct err *e)
{
    const struct facts *f = plan->facts;
    plan->said = s->said;
    return s->said ? policy_digest(s->said, f->engine, f->image ? f->image->id : NULL, plan->policy_digest, e) : 0;
}

const struct box_ssh *ssh_box(const struct ssh_ready *s)
{
    return s->box.listener >= 0 ? &s->box : NULL;
}

const struct box_gpg *gpg_box(const struct ssh_ready *s)
{
    return s->gpg.box.listener >= 0 ? &s->gpg.box : NULL;
}

void ssh_end(struct pinfold_policy *p, struct ssh_ready *s)
{
    gpg_end(&s->gpg);
    s->box.listener = close_fd(s->box.listener);
    agent_place_end(&s->place);
    if (s->said)
        p->policy = s->said;
    s->mem = arena_free(s->mem);
    *s = SSH_READY;
}
