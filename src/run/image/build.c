/*
 * Builds an image with the engine's client. The files of pinfold's own images go into a directory of this run; a project's are where
 * they are. What the client prints is read for its steps (progress.c), of which the caller is told.
 */
#include "run/image/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/container/container_image.h"
#include "backends/tools/tool.h"
#include "base/fd.h"
#include "base/json.h"
#include "run/direct.h"
#include "run/image/files.h"
#include "sys/remove.h"

enum { BUILD_ARENA = 16 << 20, BUILD_WHOLE_LINE = 1 << 16 };

/* ---- pinfold's own images ---- */

static const struct own_image {
    const char *name;
    const struct image_file *files;
} own_images[] = {{"base", image_files_base}, {"budgie", image_files_budgie}};

static const struct image_file *own_image_files(const char *own)
{
    for (size_t i = 0; own && i < sizeof own_images / sizeof *own_images; i++) {
        if (same(own, own_images[i].name))
            return own_images[i].files;
    }
    return NULL;
}

const char *image_own_file(const char *own, const char *name)
{
    for (const struct image_file *f = own_image_files(own); f && f->name; f++) {
        if (same(f->name, name))
            return f->text;
    }
    return NULL;
}

/* A file of the same content has the same time, too: builders go by the content, but need not. */
static int put_own_file(int dir, const struct image_file *f)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    auto_fd int fd = openat(dir, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    int r = fd < 0 ? -errno : fd_write_all(fd, f->text, strlen(f->text));
    return r == 0 && (fchmod(fd, 0755) < 0 || futimens(fd, times) < 0) ? -errno : r;
}

static int make_context(const char *own, char path[64], struct err *e)
{
    const char *base = "/tmp/pinfold-build-XXXXXX";
    snprintf(path, 64, "%s", base);
    if (!mkdtemp(path)) {
        path[0] = 0;
        return err_sys(e, ERR_SYSTEM, errno, "cannot make a directory for the build in /tmp");
    }
    auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = dir < 0 ? -errno : 0;
    for (const struct image_file *f = own_image_files(own); r == 0 && f->name; f++)
        r = put_own_file(dir, f);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot write the image's files to '%s'", path) : 0;
}

/* ---- what the client prints ---- */

struct building {
    const struct image_build *ask;
    struct image_built *ret;
    struct image_step step;
    struct buf line;
    uint64_t began, step_began;
};

static void keep_line(struct building *b, struct str text)
{
    struct image_built *r = b->ret;
    auto_buf struct buf safe = BUF(8 * IMAGE_BUILD_LINE);
    utf8_safe(&safe, (struct str){text.p, text.n < IMAGE_BUILD_LINE - 1 ? text.n : IMAGE_BUILD_LINE - 1});
    if (r->n_last == IMAGE_BUILD_LINES) {
        memmove(r->last[0], r->last[1], sizeof r->last - sizeof r->last[0]);
        r->n_last--;
    }
    snprintf(r->last[r->n_last++], IMAGE_BUILD_LINE, "%s", buf_cstr(&safe));
}

static void say_step(struct building *b, enum image_build_say what)
{
    b->step.elapsed_ms = tool_now_ms() - b->step_began;
    if (b->step.number && b->ask->say)
        b->ask->say(b->ask->ctx, what, &b->step);
}

static void take_build_line(struct building *b, struct str line)
{
    struct image_step next = {0};
    struct str text;
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    switch (image_build_line(line, &text, &next)) {
    case IMAGE_LINE_STEP:
        if (next.number == b->step.number && same(next.text, b->step.text))
            return; /* BuildKit says it again */
        say_step(b, IMAGE_STEP_ENDED);
        b->step = next;
        b->step_began = tool_now_ms();
        b->ret->n_last = 0;
        say_step(b, IMAGE_STEP_BEGINS);
        return;
    case IMAGE_LINE_CACHED:
        b->step.cached = true;
        return;
    case IMAGE_LINE_OUTPUT:
        keep_line(b, text);
        return;
    case IMAGE_LINE_NOTHING:
        return;
    }
}

static void take_piece(void *ctx, const char *piece, size_t n)
{
    struct building *b = ctx;
    struct str rest = {piece, n};
    if (n == 0)
        say_step(b, IMAGE_STEP_GOES_ON);
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str part = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        if (b->line.n + part.n < BUILD_WHOLE_LINE)
            buf_str(&b->line, part); /* what is longer is cut */
        rest = str_skip(rest, part.n + (end != NULL));
        if (!end)
            return;
        take_build_line(b, buf_view(&b->line));
        b->line.n = 0;
    }
}

/* ---- the client's line ---- */

static int build_words(const struct image_build *ask, const struct container_ask *engine, const char *context,
                       const char *const **ret, struct err *e)
{
    struct tool_words w = {.mem = engine->mem};
    tool_word(&w, "build");
    tool_two(&w, "--tag", ask->tag);
    tool_two(&w, "--file", arena_printf(w.mem, "%s/Dockerfile", context));
    tool_word(&w, "--force-rm"); /* also the container of a step that failed */
    if (engine->podman && ask->base)
        tool_word(&w, "--pull-never"); /* a short name could be anybody's at a registry */
    if (ask->network)
        tool_two(&w, "--network", ask->network);
    for (const char *const *a = ask->args; a && *a; a++)
        tool_two(&w, "--build-arg", *a);
    tool_word(&w, context);
    if (!arena_push(w.mem, &w.at, &w.n, sizeof *w.at) || w.failed)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the image");
    *ret = w.at;
    return 0;
}

/* The base image of a project's must be there: neither engine may look for it at a registry. */
static int choose_builder(const struct image_build *ask, const struct policy *p, struct container_ask *ret,
                          struct arena *mem, struct err *e)
{
    struct node image = {.kind = NODE_MAP};
    int r = container_choose(p, mem, ret, ask->base ? &image : NULL, e);
    return r == -ENOENT ? err_hint(e, -ENOENT, "or build it with: pinfold build-base") : r;
}

static int build(const struct image_build *ask, const struct policy *p, struct image_built *ret, struct err *e)
{
    static const char *const more[] = {"BUILDKIT_PROGRESS=plain", NULL};
    auto_arena struct arena *mem = arena_new(BUILD_ARENA);
    char own[64] = "";
    struct container_ask engine;
    const char *const *words = NULL;
    struct building b = {.ask = ask, .ret = ret, .line = BUF(BUILD_WHOLE_LINE + 16), .began = tool_now_ms()};
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the image");
    int r = choose_builder(ask, p, &engine, mem, e);
    if (r == 0 && ask->own)
        r = make_context(ask->own, own, e);
    if (r == 0)
        r = build_words(ask, &engine, ask->own ? own : ask->context, &words, e);
    if (r == 0) {
        r = container_watch(&engine, words, more, take_piece, &b);
        if (b.line.n)
            take_build_line(&b, buf_view(&b.line));
        ret->status = r;
        ret->engine = engine.podman ? "podman" : "docker";
        ret->elapsed_ms = tool_now_ms() - b.began;
        if (r == 0)
            say_step(&b, IMAGE_STEP_ENDED);
        b.step.elapsed_ms = tool_now_ms() - b.step_began;
        ret->failed = b.step;
        r = r < 0 ? err_sys(e, ERR_CANNOT, -r, "cannot start %s", engine.program) : 0;
    }
    buf_free(&b.line);
    if (own[0])
        remove_tree(AT_FDCWD, own);
    return r;
}

int image_build(const struct image_build *ask, struct image_built *ret, struct pinfold_error *error)
{
    struct pinfold_option options[3] = {{0}};
    const struct pinfold_policy_options o = {.size = sizeof o, .options = options};
    struct pinfold_policy *policy;
    struct err e = {0};
    size_t n = 0;
    memset(ret, 0, sizeof *ret);
    if (ask->base)
        options[n++] = (struct pinfold_option){"image", ask->base};
    if (ask->engine)
        options[n++] = (struct pinfold_option){"engine", ask->engine};
    int r = pinfold_policy_load(&o, &policy, error);
    if (r < 0)
        return r;
    r = build(ask, policy->policy, ret, &e);
    pinfold_policy_free(policy);
    return tell(error, &e, r);
}

/* ---- versions ---- */

static bool is_version(const char *text)
{
    const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-";
    return text[0] >= '0' && text[0] <= '9' && text[strspn(text, plain)] == 0;
}

int image_version(const char *option, const char *package, const char *said, char ret[IMAGE_VERSION],
                  struct pinfold_error *error)
{
    struct err e = {0};
    char line[256] = "", answer[IMAGE_VERSION] = "";
    if (strlen(said) >= IMAGE_VERSION || !(is_version(said) || same(said, "latest") || same(said, "none")))
        return tell(error, &e,
                    err_say(&e, ERR_POLICY, "--%s %s: write a number such as 1.2.3, or latest, or none", option, said));
    snprintf(ret, IMAGE_VERSION, "%s", said);
    if (!same(said, "latest"))
        return 0;
    if (!package)
        return tell(
            error, &e,
            err_say(&e, ERR_POLICY,
                    "--%s latest: npm does not have it, so its newest version cannot be looked up; write the number",
                    option));
    /* In a directory without settings of a project; the package is one of ours. */
    snprintf(line, sizeof line,
             "cd / && exec npm --fetch-timeout=20000 --fetch-retries=1 view %s@latest version 2>/dev/null", package);
    FILE *npm = popen(line, "re"); // NOLINT(cert-env33-c): the person's own npm, as their shell finds it
    if (!npm || !fgets(answer, sizeof answer, npm))
        answer[0] = 0;
    int status = npm ? pclose(npm) : -1;
    answer[strcspn(answer, "\n")] = 0;
    if (status != 0 || !is_version(answer))
        return tell(error, &e,
                    err_say(&e, ERR_CANNOT,
                            "--%s latest: npm does not say which version of %s that is (npm view %s version); install "
                            "npm, or write the number",
                            option, package, package));
    snprintf(ret, IMAGE_VERSION, "%s", answer);
    return 0;
}
