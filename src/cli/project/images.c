/*
 * Images: `build-base` and `build` have the engine build them and show its steps; `image check` says what one lacks, or what a project's
 * Dockerfile must not do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "project/project.h"

enum { MAX_DOCKERFILE = 1 << 20, MAX_CHECK_JSON = 4 << 20, MAX_BUILD_ARGS = 40 };

/* ---- what of an image or a Dockerfile is said ---- */

struct findings {
    const struct ask *a;
    const char *file; /* a Dockerfile, or NULL */
    struct buf people;
    struct json *j;
    unsigned lacks, notes;
};

static void put_finding(struct findings *f, unsigned line, const struct image_finding *one)
{
    *(one->note ? &f->notes : &f->lacks) += 1;
    if (f->a->json) {
        json_object(f->j, NULL);
        json_text(f->j, "id", one->id);
        if (f->file)
            json_uint(f->j, "line", line);
        json_bool(f->j, "note", one->note);
        json_text(f->j, "text", one->text);
        json_text(f->j, "remedy", one->remedy);
        json_object_end(f->j);
        return;
    }
    if (f->file) {
        utf8_safe(&f->people, str_of(f->file));
        buf_printf(&f->people, ":%u: ", line);
    }
    buf_printf(&f->people, "%s%s: %s; %s\n", one->note ? "note: " : "", one->id, one->text, one->remedy);
}

static void dockerfile_finding(void *ctx, unsigned line, const struct image_finding *one)
{
    put_finding(ctx, line, one);
}

static int finish_findings(struct findings *f, struct buf *json)
{
    int status = STATUS_YES;
    if (f->a->json) {
        json_array_end(f->j);
        json_bool(f->j, "good", f->lacks == 0);
        json_object_end(f->j);
        buf_char(json, '\n');
        status = buf_ok(json) ? print(buf_cstr(json)) : STATUS_NO;
    } else {
        if (f->lacks)
            buf_printf(&f->people, "%u %s to mend\n", f->lacks, f->lacks == 1 ? "thing" : "things");
        else
            buf_printf(&f->people, "good: nothing to fix%s\n", f->notes ? ", the notes are for information only" : "");
        status = print(buf_cstr(&f->people));
    }
    buf_free(&f->people);
    return status != STATUS_YES ? status : f->lacks ? STATUS_NO : STATUS_YES;
}

/* ---- a Dockerfile ---- */

/* A regular file of at most 1 MiB, over no link in the last part. */
static bool read_dockerfile(const char *path, struct buf *ret)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        complain("%s: cannot read '%s': %s", verb_said, path, strerror(errno));
        return false;
    }
    const int no = S_ISREG(st.st_mode) ? fd_read_all(fd, ret) : -EFBIG;
    if (no == -EFBIG)
        complain("%s: '%s' is not a regular file of at most 1 MiB", verb_said, path);
    else if (no < 0)
        complain("%s: cannot read '%s': %s", verb_said, path, strerror(-no));
    return no == 0;
}

static int check_dockerfile(struct ask *a, const char *path)
{
    static const char *const places[] = {"", "/" PROJECT_SEED "/Dockerfile", "/.pinfold/Dockerfile", "/Dockerfile"};
    char file[PATH_MAX + 64] = "";
    struct stat st;
    auto_buf struct buf text = BUF(MAX_DOCKERFILE + 8192), out = BUF(MAX_CHECK_JSON);
    struct json j = JSON(&out);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(file, sizeof file, "%s%s", path, places[i]);
        if (lstat(file, &st) == 0 && !S_ISDIR(st.st_mode))
            break;
    }
    if (!read_dockerfile(file, &text))
        return STATUS_USAGE;
    struct findings f = {.a = a, .file = file, .people = BUF(MAX_CHECK_JSON), .j = &j};
    json_object(&j, NULL);
    json_text(&j, "file", file);
    json_array(&j, "findings");
    entry_image_dockerfile(buf_view(&text), dockerfile_finding, &f);
    return finish_findings(&f, &out);
}

/* ---- building ---- */

static void put_seconds(char ret[32], uint64_t ms)
{
    if (ms < 60000)
        snprintf(ret, 32, "%u.%u s", (unsigned)(ms / 1000), (unsigned)(ms % 1000 / 100));
    else
        snprintf(ret, 32, "%um%02us", (unsigned)(ms / 60000), (unsigned)(ms / 1000 % 60));
}

/* Of a step that goes on a terminal has a line that is written over; everybody gets one of each that has ended. */
static void say_step(void *ctx, enum image_build_say what, const struct image_step *step)
{
    enum { SHOWN = 60 };
    const bool *terminal = ctx;
    char took[32];
    auto_buf struct buf line = BUF(8192);
    if (what != IMAGE_STEP_ENDED && !*terminal)
        return;
    put_seconds(took, step->elapsed_ms);
    if (*terminal)
        buf_text(&line, "\r\033[K");
    buf_printf(&line, "step %u/%u  %-8s  ", step->number, step->total, step->cached ? "cached" : took);
    utf8_safe(&line, (struct str){step->text, strnlen(step->text, SHOWN)});
    buf_text(&line, strlen(step->text) > SHOWN ? "..." : "");
    if (what == IMAGE_STEP_ENDED)
        buf_char(&line, '\n');
    (void)!write(2, line.p, line.n);
}

static void say_failed(const struct image_built *built)
{
    char took[32];
    const struct image_step *f = &built->failed;
    put_seconds(took, f->elapsed_ms);
    if (f->number)
        complain("%s: step %u/%u failed after %s: %s", verb_said, f->number, f->total, took, f->text);
    else
        complain("%s: %s failed before its first step", verb_said, built->engine);
    for (unsigned i = 0; i < built->n_last; i++)
        complain("  | %s", built->last[i]);
}

static int run_build(struct image_build *b)
{
    static struct image_built built;
    struct pinfold_error error = {0};
    bool terminal = isatty(2);
    char took[32];
    b->say = say_step;
    b->ctx = &terminal;
    int r = entry_image_build(b, &built, &error);
    if (terminal)
        (void)!write(2, "\r\033[K", 4);
    if (r < 0)
        return fail(&error);
    if (built.status != 0) {
        say_failed(&built);
        return STATUS_NO;
    }
    put_seconds(took, built.elapsed_ms);
    printf("built: %s (%s, %s)\n", b->tag, built.engine, took);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* As docker has tags. */
static bool tag_fits(const char *option, const char *tag)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t n = strlen(tag);
    if (n > 0 && n <= 128 && strspn(tag, plain) == n && tag[0] != '.' && tag[0] != '-')
        return true;
    complain(
        "%s: --%s '%s': a tag has up to 128 letters, digits, '_', '.' and '-', and begins with neither '.' nor '-'",
        verb_said, option, tag);
    return false;
}

/* The arguments of the Dockerfile, `n` of them so far. */
static bool take_build_args(const struct ask *a, const char **args, size_t n)
{
    for (size_t i = 0; i < a->image.n_build_args; i++) {
        const char *one = a->image.build_args[i], *equals = strchr(one, '=');
        if (!equals || equals == one || one[0] == '-' || n + 1 == MAX_BUILD_ARGS) {
            complain("%s: --build-arg '%s': write NAME=VALUE, at most %d of them", verb_said, one, MAX_BUILD_ARGS - 8);
            return false;
        }
        args[n++] = one;
    }
    return true;
}

static const struct {
    const char *option, *package, *arg;
} tools[] = {{"claude-code-version", "@anthropic-ai/claude-code", "CLAUDE_CODE_VERSION"},
             {"codex-version", "@openai/codex", "CODEX_VERSION"},
             {"git-delta-version", NULL, "GIT_DELTA_VERSION"},
             {"ast-grep-version", "@ast-grep/cli", "AST_GREP_VERSION"}};
_Static_assert(sizeof tools / sizeof *tools == IMAGE_TOOLS, "one for each member of struct image_said");

/* `latest` becomes a number, so that the layer is found again as long as there is no newer one. */
static int take_versions(const struct ask *a, char room[IMAGE_TOOLS][128], const char **args, size_t *n)
{
    struct pinfold_error error = {0};
    unsigned none = 0;
    for (size_t i = 0; i < IMAGE_TOOLS; i++) {
        char version[IMAGE_VERSION];
        if (!a->image.versions[i])
            continue;
        if (entry_image_version(tools[i].option, tools[i].package, a->image.versions[i], version, &error) < 0)
            return fail(&error);
        if (same(a->image.versions[i], "latest"))
            complain("%s: --%s latest is %s", verb_said, tools[i].option, version);
        none += tools[i].package && same(version, "none");
        snprintf(room[i], sizeof room[i], "%s=%s", tools[i].arg, version);
        args[(*n)++] = room[i];
    }
    if (none == 3)
        args[(*n)++] = "NODE_PACKAGES=none"; /* nothing needs npm */
    return STATUS_YES;
}

static int build_base(struct ask *a)
{
    const char *name = a->n_words ? a->words[0] : "base", *tag = a->image.tag ? a->image.tag : "latest";
    const char *args[MAX_BUILD_ARGS] = {NULL};
    char room[IMAGE_TOOLS][128], base[512], whole[256];
    size_t n = 0;
    const bool own = same(name, "base");
    if (a->n_words > 1 || !(own || same(name, "budgie"))) {
        complain("build-base: pinfold has no image '%s'; it has base (the default) and budgie",
                 a->words[a->n_words > 1]);
        return STATUS_USAGE;
    }
    for (size_t i = 0; !own && i < IMAGE_TOOLS; i++) {
        if (a->image.versions[i]) {
            complain(
                "build-base budgie: --%s is for base; see the arguments of its Dockerfile: pinfold image print budgie",
                tools[i].option);
            return STATUS_USAGE;
        }
    }
    if (!tag_fits("tag", tag))
        return STATUS_USAGE;
    int status = take_versions(a, room, args, &n);
    if (status != STATUS_YES)
        return status;
    if (a->image.base_image) {
        if ((size_t)snprintf(base, sizeof base, "BASE_IMAGE=%s", a->image.base_image) >= sizeof base ||
            !a->image.base_image[0]) {
            complain("build-base: --base-image '%s' is not a valid image name", a->image.base_image);
            return STATUS_USAGE;
        }
        args[n++] = base;
    }
    if (!take_build_args(a, args, n))
        return STATUS_USAGE;
    snprintf(whole, sizeof whole, "%s:%s", own ? PROJECT_BASE_IMAGE : "budgie-sandbox", tag);
    struct image_build b = {
        .engine = a->image.engine, .own = name, .tag = whole, .network = a->image.network, .args = args};
    return run_build(&b);
}

/* A finding is told and stops nothing: a project may have its reason. */
static void warn_finding(void *ctx, unsigned line, const struct image_finding *one)
{
    bool *ret_foreign = ctx;
    complain("%s:%u: %s%s: %s; %s", "Dockerfile", line, one->note ? "note: " : "", one->id, one->text, one->remedy);
    *ret_foreign |= same(one->id, "from");
}

/* The directory of the project's Dockerfile, by no link. */
static bool find_context(const char *real, char ret[PATH_MAX + 32])
{
    static const char *const places[] = {PROJECT_SEED, ".pinfold"};
    struct stat dir, file;
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_MAX + 64];
        snprintf(ret, PATH_MAX + 32, "%s/%s", real, places[i]);
        snprintf(path, sizeof path, "%s/Dockerfile", ret);
        if (lstat(path, &file) < 0)
            continue;
        if (lstat(ret, &dir) == 0 && S_ISDIR(dir.st_mode) && S_ISREG(file.st_mode))
            return true;
        complain("%s: '%s' must be a file in a directory, no link", verb_said, path);
        return false;
    }
    complain("%s: '%s' has no Dockerfile in " PROJECT_SEED
             " or .pinfold; write one with: pinfold init --engine docker%s",
             verb_said, real, project_is(real) ? " --force" : "");
    return false;
}

int image_of_project(const struct ask *a, const char *real)
{
    const char *tag = a->image.base_tag ? a->image.base_tag : "latest", *args[MAX_BUILD_ARGS] = {NULL};
    char context[PATH_MAX + 32], file[PATH_MAX + 64], base[256], arg[256], name[PROJECT_IMAGE];
    auto_buf struct buf text = BUF(MAX_DOCKERFILE + 8192);
    bool foreign = false;
    if (!tag_fits("base-tag", tag) || !find_context(real, context))
        return STATUS_USAGE;
    snprintf(file, sizeof file, "%s/Dockerfile", context);
    if (!read_dockerfile(file, &text))
        return STATUS_USAGE;
    entry_image_dockerfile(buf_view(&text), warn_finding, &foreign);
    snprintf(base, sizeof base, PROJECT_BASE_IMAGE ":%s", tag);
    snprintf(arg, sizeof arg, "BASE_IMAGE_TAG=%s", tag);
    args[0] = arg;
    if (!take_build_args(a, args, 1))
        return STATUS_USAGE;
    project_image(real, name);
    struct image_build b = {.engine = a->image.engine,
                            .context = context,
                            .base = foreign ? NULL : base,
                            .tag = name,
                            .network = a->image.network,
                            .args = args};
    return run_build(&b);
}

/* ---- an image ---- */

static void put_image(const struct image_checked *c, struct json *j)
{
    json_object(j, NULL);
    json_text(j, "image", c->image);
    json_text(j, "id", c->id);
    json_text(j, "engine", c->engine);
    json_text(j, "system", c->system);
    json_text(j, "user", c->user);
    json_text(j, "base", c->base);
    json_array(j, "programs");
    for (const char *const *p = c->programs; *p; p++)
        json_text(j, NULL, *p);
    json_array_end(j);
    json_array(j, "findings");
}

static int check_image(struct ask *a, const char *image)
{
    const struct image_check_ask asked = {.engine = a->image.engine, .image = image, .agents = a->agents};
    auto_buf struct buf out = BUF(MAX_CHECK_JSON);
    struct json j = JSON(&out);
    struct findings f = {.a = a, .people = BUF(MAX_CHECK_JSON), .j = &j};
    struct image_checked c;
    struct pinfold_error error = {0};
    if (entry_image_check(&asked, &c, &error) < 0)
        return fail(&error);
    put_image(&c, &j);
    buf_printf(&f.people, "image:  %s (%s; %s; USER %s)\n", c.image, c.engine, c.system[0] ? c.system : "no os-release",
               c.user);
    buf_text(&f.people, "has:   ");
    for (const char *const *p = c.programs; *p; p++)
        buf_printf(&f.people, " %s", *p);
    buf_text(&f.people, c.programs[0] ? "\n" : " none of the programs that are looked for\n");
    for (size_t i = 0; i < c.n; i++)
        put_finding(&f, 0, &c.findings[i]);
    int status = finish_findings(&f, &out);
    entry_image_checked_free(&c);
    return status;
}

/* The files of pinfold's own images, for who wants to build or change them without it. */
static int print_image(const char *name, const char *file)
{
    const char *text = entry_image_own_file(name, file ? file : "Dockerfile");
    if (text)
        return print(text);
    if (!entry_image_own_file(name, "Dockerfile"))
        complain("image print: pinfold has no image '%s'; it has base and budgie", name);
    else
        complain("image print: the image %s has no file '%s'; base has Dockerfile, entrypoint.sh, init-firewall.sh, "
                 "git_wrapper.sh, bashrc and allowed-hosts, budgie has Dockerfile and entrypoint.sh",
                 name, file ? file : "Dockerfile");
    return STATUS_USAGE;
}

bool image_said_fits(const struct ask *a)
{
    const char *engine = a->image.engine;
    if (same(verb_said, "start") && a->image.base_tag && !a->image.build) {
        complain("'start' has no option --base-tag without --build; see: pinfold start --help");
        return false;
    }
    if (!engine || same(engine, "docker") || same(engine, "podman"))
        return true;
    complain("%s: --engine '%s' has no images; write docker or podman", verb_said, engine);
    return false;
}

int verb_image(struct ask *a)
{
    char real[PATH_MAX];
    const char *what = a->n_words > 1 ? a->words[1] : NULL;
    if (same(verb_said, "build-base"))
        return build_base(a);
    if (same(verb_said, "build"))
        return project_directory(a, 0, real) ? image_of_project(a, real) : STATUS_USAGE;
    if ((a->n_words == 2 || a->n_words == 3) && same(a->words[0], "print"))
        return print_image(what, a->n_words == 3 ? a->words[2] : NULL);
    if (a->n_words != 2 || !same(a->words[0], "check")) {
        complain("image: write 'pinfold image check IMAGE', 'pinfold image check ./DOCKERFILE' or 'pinfold image print "
                 "base|budgie [FILE]'");
        return STATUS_USAGE;
    }
    if (what[0] == '/' || what[0] == '.')
        return check_dockerfile(a, what);
    if (what[0] == '-' || !what[0]) {
        complain("image check: '%s' is not a valid image name", what);
        return STATUS_USAGE;
    }
    return check_image(a, what);
}
