/*
 * The settings file of srt: which one, what it says, and those of its keys that are not a policy's. A file that was named
 * and is not there, or that cannot be read or understood, never becomes the defaults: these are other rules, not weaker ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "srt/srt.h"

enum { TEXT_MAX = 1 << 20 };

/* What srt assumes without a file: nothing can be written but its own places, and nothing reached. */
static const char DEFAULTS[] = "{\"network\":{\"allowedDomains\":[],\"deniedDomains\":[]},"
                               "\"filesystem\":{\"denyRead\":[],\"allowRead\":[],\"allowWrite\":[],\"denyWrite\":[]}}";
static const char FILE_RULES[] = "this file's rules (its denyRead, allowRead and credential entries included)";

static bool refuse(const char *lost, const char *name, const char *why)
{
    srt_say("Error: %s%s", name, why);
    srt_say("Refusing to run with the built-in defaults, which would drop %s.", lost);
    return false;
}

static const char *default_path(struct arena *mem)
{
    const char *home = getenv("HOME");
    if (!home || !*home) {
        const struct passwd *me = getpwuid(geteuid());
        home = me ? me->pw_dir : "/";
    }
    return arena_printf(mem, "%s/.srt-settings.json", home);
}

/* Reads the file; -errno. */
static int read_file(const char *path, struct arena *mem, const char **ret)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat s;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &s) < 0)
        return -errno;
    if (S_ISDIR(s.st_mode))
        return -EISDIR;
    (void)fcntl(fd, F_SETFL, 0); /* a pipe's writer may be slow: /dev/fd/63 of a shell */
    auto_buf struct buf text = BUF(TEXT_MAX);
    const int no = fd_read_all(fd, &text);
    if (no < 0)
        return no;
    if (memchr(buf_cstr(&text), 0, text.n))
        return -EILSEQ;
    *ret = arena_str(mem, buf_view(&text));
    return *ret ? 0 : -ENOMEM;
}

static bool parse(struct srt_settings *s, struct arena *mem)
{
    struct err e = {0};
    if (node_read(s->name, str_of(s->text), NULL, mem, &s->root, &e) < 0)
        return refuse(FILE_RULES, "", e.text);
    return true;
}

bool srt_read(const struct srt_line *line, struct arena *mem, struct srt_settings *ret)
{
    struct pinfold_error error = {0};
    char *real = NULL;
    struct srt_settings s = {.name = line->settings ? line->settings : default_path(mem), .text = ""};
    if (!s.name || pinfold_path_judge("--settings", s.name, &real, &error) < 0) {
        srt_say("Error: %s", s.name ? error.text : "out of memory");
        return false;
    }
    s.path = real ? arena_text(mem, real) : NULL;
    free(real);
    int r = s.path ? read_file(s.path, mem, &s.text) : -ENOMEM;
    if (r == -ENOENT && line->settings)
        return refuse("the rules --settings asked for", s.name, " does not exist.");
    if (r == -ENOENT)
        s.text = DEFAULTS;
    else if (r < 0) {
        const char *why = arena_printf(mem, " could not be read (%s).", strerror(-r));
        return refuse(FILE_RULES, s.name, why ? why : " could not be read.");
    } else if (!s.text[strspn(s.text, " \t\r\n")])
        return refuse(FILE_RULES, s.name, " is empty. Delete it, or put a config in it.");
    if (!parse(&s, mem))
        return false;
    *ret = s;
    return true;
}

/* The node at two keys, or NULL. */
static const struct node *below(const struct node *root, const char *key, const char *inner)
{
    const struct node *n = root->kind == NODE_MAP ? node_get(root, key) : NULL;
    return n && n->kind == NODE_MAP ? node_get(n, inner) : NULL;
}

bool srt_hosts(const struct node *root, const char *key, struct arena *mem, const char ***list, size_t *n)
{
    const struct node *from = below(root, "network", key);
    for (size_t i = 0; from && from->kind == NODE_LIST && i < from->n; i++) {
        const char **slot = arena_push(mem, list, n, sizeof *slot);
        if (slot)
            *slot = arena_str(mem, from->items[i].text);
    }
    return !arena_failed(mem);
}

/* The upstream proxy: the box's egress takes it from the environment, as srt does where the settings have none. */
static bool put_proxy(const struct srt_settings *s, struct arena *mem)
{
    static const struct {
        const char *key, *names[2];
    } proxies[] = {{"http", {"HTTP_PROXY", "http_proxy"}},
                   {"https", {"HTTPS_PROXY", "https_proxy"}},
                   {"noProxy", {"NO_PROXY", "no_proxy"}}};
    const struct node *proxy = below(&s->root, "network", "parentProxy");
    if (!proxy)
        return true;
    if (proxy->kind != NODE_MAP)
        return refuse(FILE_RULES, s->name, ": network.parentProxy must be a mapping");
    const struct node *http = node_get(proxy, "http"), *https = node_get(proxy, "https");
    for (size_t i = 0; i < proxy->n; i++) {
        const struct node *key = &proxy->items[2 * i];
        if (key[1].kind != NODE_SCALAR ||
            !(str_is(key->text, "http") || str_is(key->text, "https") || str_is(key->text, "noProxy")))
            return refuse(FILE_RULES, s->name, ": network.parentProxy has http, https and noProxy, which are texts");
    }
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) {
        const struct node *value = i == 0 ? http : i == 1 ? (https ? https : http) : node_get(proxy, "noProxy");
        const char *text = value ? arena_str(mem, value->text) : NULL;
        for (size_t k = 0; k < 2; k++) {
            if (text ? setenv(proxies[i].names[k], text, 1) : unsetenv(proxies[i].names[k]))
                return false;
        }
    }
    return !arena_failed(mem);
}

/* As git's own GIT_CONFIG_COUNT (git-config(1)), behind what the caller has put there. */
static bool put_safe_directories(const struct srt_settings *s, struct arena *mem)
{
    const struct node *list = below(&s->root, "git", "safeDirectories");
    const char *before = getenv("GIT_CONFIG_COUNT");
    long n = before ? strtol(before, NULL, 10) : 0;
    if (list && list->kind != NODE_LIST)
        return refuse(FILE_RULES, s->name, ": git.safeDirectories must be a list");
    for (size_t i = 0; list && i < list->n; i++, n++) {
        const char *key = arena_printf(mem, "GIT_CONFIG_KEY_%ld", n),
                   *value = arena_printf(mem, "GIT_CONFIG_VALUE_%ld", n), *count = arena_printf(mem, "%ld", n + 1),
                   *text = arena_str(mem, list->items[i].text);
        if (!key || !value || !count || !text || setenv(key, "safe.directory", 1) != 0 || setenv(value, text, 1) != 0 ||
            setenv("GIT_CONFIG_COUNT", count, 1) != 0)
            return false;
    }
    return true;
}

/* Without a network nothing takes the place of the caller's proxy, whose URL may have a password in it. */
static bool drop_proxy(const struct srt_settings *s, struct arena *mem)
{
    static const char names[][12] = {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"};
    const char **hosts = NULL;
    size_t n = 0;
    if (!srt_hosts(&s->root, "allowedDomains", mem, &hosts, &n))
        return false;
    for (size_t i = 0; n == 0 && i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
    return true;
}

bool srt_environment(const struct srt_settings *s, bool has_channel, struct arena *mem)
{
    if (put_proxy(s, mem) && (has_channel || drop_proxy(s, mem)) && put_safe_directories(s, mem))
        return true;
    if (arena_failed(mem))
        srt_say("Error: out of memory");
    return false;
}

void srt_reasons(const struct srt_settings *s, const struct pinfold_result *result)
{
    const struct node *reasons = below(&s->root, "network", "deniedDomainReasons");
    for (size_t i = 0; reasons && reasons->kind == NODE_MAP && i < reasons->n; i++) {
        const struct node *host = &reasons->items[2 * i];
        struct pinfold_denial d = {.size = sizeof d};
        for (size_t k = 0; host[1].kind == NODE_SCALAR && pinfold_result_denial(result, k, &d) == 1; k++) {
            if (!d.rule || !str_ends(str_of(d.rule), host->text) || !d.kind || !same(d.kind, "network"))
                continue;
            srt_say("%.*s: %.*s", (int)host->text.n, host->text.p, (int)host[1].text.n, host[1].text.p);
            break;
        }
    }
}

struct pinfold_policy *srt_policy(const char *name, const char *text, const struct pinfold_option *options,
                                  struct pinfold_error *error)
{
    struct pinfold_policy_options o = {.size = sizeof o,
                                       .profile = "srt",
                                       .no_layers = 1,
                                       .settings = name,
                                       .settings_text = text,
                                       .settings_format = "srt-strict",
                                       .options = options};
    struct pinfold_policy *policy = NULL;
    return pinfold_policy_load(&o, &policy, error) == 0 ? policy : NULL;
}
