/*
 * Reads a project's Dockerfile for what it must not do: bring what the base image has, or what is mounted when it runs. Pure. It is
 * advice for whoever wrote the file: nothing rests on it, so a line that is written to deceive may.
 */
#include "run/image/image.h"

#include <string.h>

#include "base/buf.h"

enum { DOCKERFILE_LINE = 1 << 16 };

struct dockerfile {
    image_dockerfile_found *found;
    void *ctx;
    unsigned line, from_line, user_line; /* of this instruction, the last FROM and the last USER */
    bool from_base, user_back;
};

static void dockerfile_tell(const struct dockerfile *d, unsigned line, const char *id, bool note, const char *text,
                            const char *remedy)
{
    const struct image_finding f = {.id = id, .text = text, .remedy = remedy, .note = note};
    d->found(d->ctx, line, &f);
}

/* The next word of a shell's line or of a JSON array; a separator of commands is a word, too. */
static struct str dockerfile_word(struct str *s)
{
    static const char blank[] = " \t\",[]'()", separator[] = ";&|";
    while (s->n && strchr(blank, s->p[0]))
        *s = str_skip(*s, 1);
    size_t n = 0;
    while (n < s->n && !strchr(blank, s->p[n]) && !strchr(separator, s->p[n]))
        n++;
    if (n == 0 && s->n)
        n = 1;
    struct str word = {s->p, n};
    *s = str_skip(*s, n);
    return word;
}

/* "git=1:2.3", "git/bookworm-backports", "@openai/codex@1.2" without what follows the name. */
static struct str dockerfile_name(struct str word)
{
    size_t n = word.n && word.p[0] == '@' ? 1 : 0;
    for (bool scope = n > 0; n < word.n; n++) {
        if (strchr("=@", word.p[n]) || (word.p[n] == '/' && !scope))
            break;
        scope &= word.p[n] != '/';
    }
    return (struct str){word.p, n};
}

static bool dockerfile_in(struct str word, const char *const *list)
{
    for (; *list; list++) {
        if (str_is(word, *list))
            return true;
    }
    return false;
}

/* What the base image has: its list of packages, and the tools of npm. */
static const char *const base_packages[] = {
    "less",      "fzf",      "man-db", "unzip",          "jq",     "aggregate",       "procps",   "git",      "gh",
    "git-delta", "nano",     "vim",    "sudo",           "gnupg2", "gnupg",           "nftables", "iptables", "ipset",
    "iproute2",  "dnsutils", "curl",   "bind9-dnsutils", "bash",   "ca-certificates", NULL};
static const char *const base_tools[] = {"@anthropic-ai/claude-code", "@openai/codex", "@ast-grep/cli", NULL};
static const char *const base_scripts[] = {"init-firewall.sh", "git-wrapper.sh", "entrypoint.sh", NULL};

static void dockerfile_run(const struct dockerfile *d, struct str rest)
{
    enum { NOTHING, APT, APT_INSTALL, NPM } in = NOTHING;
    bool bare = false, cleans = false, installs = false;
    while (rest.n) {
        struct str word = dockerfile_word(&rest);
        if (word.n == 1 && strchr(";&|", word.p[0]))
            in = NOTHING;
        else if (str_is(word, "apt-get") || str_is(word, "apt"))
            in = APT, bare = true;
        else if (str_is(word, "npm") || str_is(word, "pnpm") || str_is(word, "yarn"))
            in = NPM;
        else if (in == APT && str_is(word, "install"))
            in = APT_INSTALL, installs = true;
        else if (str_is(word, "--no-install-recommends"))
            bare = false;
        else if (in == APT_INSTALL && word.p[0] != '-' && dockerfile_in(dockerfile_name(word), base_packages))
            dockerfile_tell(d, d->line, "reinstall", false, "it installs a package that the base image has",
                            "remove it from the list");
        else if (in == NPM && dockerfile_in(dockerfile_name(word), base_tools))
            dockerfile_tell(d, d->line, "reinstall", false,
                            "it installs an agent's program that the base image has, and hides its version",
                            "remove it; choose versions with pinfold build-base");
        cleans |= str_starts(word, STR("/var/lib/apt/lists"));
    }
    if (installs && bare)
        dockerfile_tell(d, d->line, "recommends", true, "it installs packages that are only recommended",
                        "apt-get install --no-install-recommends");
    if (installs && !cleans)
        dockerfile_tell(d, d->line, "apt-lists", true, "it leaves apt's lists in the layer",
                        "end it with: && rm -rf /var/lib/apt/lists/*");
}

static struct str dockerfile_base(struct str path)
{
    while (path.n && memchr(path.p, '/', path.n))
        (void)str_until(&path, '/');
    return path;
}

static void dockerfile_copy(const struct dockerfile *d, struct str rest)
{
    struct str last = {0};
    bool whole = false, script = false, stage = false;
    while (rest.n) {
        struct str word = dockerfile_word(&rest);
        if (str_starts(word, STR("--"))) {
            stage |= str_starts(word, STR("--from="));
            continue;
        }
        whole |= last.n && (str_is(last, ".") || str_is(last, "./") || str_is(last, "*"));
        script |= last.n && dockerfile_in(dockerfile_base(last), base_scripts);
        last = word.n ? word : last;
    }
    if (script || dockerfile_in(dockerfile_base(last), base_scripts))
        dockerfile_tell(d, d->line, "scripts", false, "it replaces a script of the base image",
                        "remove it; the base image's are used");
    if ((whole && !stage) || str_starts(last, STR("/workspace")))
        dockerfile_tell(d, d->line, "application", false, "it copies the project into the image",
                        "remove it; the project is mounted when the image runs");
}

static void dockerfile_instruction(struct dockerfile *d, struct str text)
{
    struct str rest = text, word = dockerfile_word(&rest);
    if (str_is_nocase(word, "FROM")) {
        struct str image = dockerfile_word(&rest);
        while (str_starts(image, STR("--")))
            image = dockerfile_word(&rest);
        d->from_line = d->line;
        d->from_base = str_starts(image, STR("agent-sandbox-base:"));
        d->user_line = 0;
        d->user_back = true;
    } else if (str_is_nocase(word, "USER")) {
        d->user_line = d->line;
        word = dockerfile_word(&rest);
        d->user_back = str_is(str_until(&word, ':'), IMAGE_USER);
    } else if (str_is_nocase(word, "RUN")) {
        dockerfile_run(d, rest);
    } else if (str_is_nocase(word, "COPY") || str_is_nocase(word, "ADD")) {
        dockerfile_copy(d, rest);
    } else if (str_is_nocase(word, "ENTRYPOINT")) {
        dockerfile_tell(d, d->line, "entrypoint", false,
                        "it has an ENTRYPOINT, so that the base image's, which sets up the firewall, does not run",
                        "remove it");
    }
}

void image_dockerfile_check(struct str text, image_dockerfile_found *found, void *ctx)
{
    struct dockerfile d = {.found = found, .ctx = ctx, .user_back = true};
    auto_buf struct buf whole = BUF(DOCKERFILE_LINE);
    unsigned line = 0;
    while (text.n) {
        struct str one = str_until(&text, '\n');
        line++;
        if (one.n && one.p[one.n - 1] == '\r')
            one.n--;
        struct str bare = str_trim(one);
        if (!bare.n || bare.p[0] == '#')
            continue; /* also between the lines of one instruction */
        if (!whole.n)
            d.line = line;
        bool more = bare.p[bare.n - 1] == '\\';
        buf_put(&whole, bare.p, bare.n - more);
        buf_char(&whole, ' ');
        if (more && text.n)
            continue;
        dockerfile_instruction(&d, buf_view(&whole));
        buf_free(&whole);
        whole = BUF(DOCKERFILE_LINE);
    }
    if (!d.from_base)
        dockerfile_tell(&d, d.from_line ? d.from_line : 1, "from", false, "it is not built on the base image",
                        "FROM agent-sandbox-base:${BASE_IMAGE_TAG}");
    if (!d.user_back)
        dockerfile_tell(&d, d.user_line, "user", false, "its last USER is another one than the base image's",
                        "end it with: USER " IMAGE_USER);
}
