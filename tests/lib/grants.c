/*
 * Writes that the caller grants while the command runs (`ask_writes`), through the shared library: only what the callback has
 * allowed, once, and nothing else than it was shown; in a box with a copy-on-write workspace, too.
 *
 *     grants DIRECTORY     an empty directory of the caller's; exits 0 when all holds
 */
#include <fcntl.h>
#include <pinfold.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *top;
static int failures;

struct asked {
    enum pinfold_answer answer;
    int writes, others;
    char target[4096];
};

static const char *in(const char *name)
{
    static char path[8][4096];
    static unsigned next;
    char *to = path[next++ % 8];
    snprintf(to, sizeof path[0], "%s/%s", top, name);
    return to;
}

static void put(const char *name, const char *text)
{
    int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    close(fd);
}

static int holds(const char *name, const char *text)
{
    char found[256];
    int fd = open(in(name), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof found - 1);
    if (fd >= 0)
        close(fd);
    return n >= 0 && (size_t)n == strlen(text) && memcmp(found, text, (size_t)n) == 0;
}

static enum pinfold_answer answer(void *ctx, const struct pinfold_question *q)
{
    struct asked *a = ctx;
    if (strcmp(q->how, "write") != 0) {
        a->others++;
        return PINFOLD_NO;
    }
    a->writes++;
    snprintf(a->target, sizeof a->target, "%s", q->target);
    return a->answer;
}

struct grant_case {
    const char *name, *script;
    enum pinfold_answer answer;
    int ask_writes;
    const char *cow, *hide;    /* of the box; NULL: none */
    int status, asked;         /* of the command; how often the callback */
    const char *outside, *own; /* what the host's two files hold then */
};

/* The script's $1 is a file beside the workspace; own.txt is in it. */
static const struct grant_case cases[] = {
    {"a yes", "echo new >>\"$1\"", PINFOLD_YES, 1, NULL, NULL, 0, 1, "old\nnew\n", "own\n"},
    {"a yes is for one open", "echo 1 >>\"$1\" && echo 2 >>\"$1\"", PINFOLD_ALWAYS, 1, NULL, NULL, 0, 2, "old\n1\n2\n",
     "own\n"},
    {"a no", "echo new 2>/dev/null >>\"$1\"", PINFOLD_NO, 1, NULL, NULL, 2, 1, "old\n", "own\n"},
    {"nobody is asked", "echo new 2>/dev/null >>\"$1\"", PINFOLD_YES, 0, NULL, NULL, 2, 0, "old\n", "own\n"},
    {"what a rule hides", "echo new 2>/dev/null >>\"$1\"", PINFOLD_YES, 1, NULL, "outside.txt", 2, 0, "old\n", "own\n"},
    {"what is not there", "echo new 2>/dev/null >\"$1.new\"", PINFOLD_YES, 1, NULL, NULL, 2, 0, "old\n", "own\n"},
    {"a yes in a layer's box", "echo new >>\"$1\" && echo more >>own.txt", PINFOLD_YES, 1, "", NULL, 0, 1, "old\nnew\n",
     "own\n"},
    {"a no in a layer's box", "echo more >>own.txt; echo new 2>/dev/null >>\"$1\"", PINFOLD_NO, 1, "", NULL, 2, 1,
     "old\n", "own\n"},
};

static void wrong(const struct grant_case *c, const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s: %s\n", c->name, what, detail);
    failures++;
}

static void try_case(const struct grant_case *c)
{
    struct asked asked = {.answer = c->answer};
    const char *argv[] = {"/bin/sh", "-c", c->script, "sh", in("outside.txt"), NULL};
    const struct pinfold_option options[] = {
        {"workspace", in("project")}, {c->hide ? "hide" : NULL, c->hide ? in(c->hide) : NULL}, {NULL, NULL}};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .no_layers = 1};
    const struct pinfold_run_options o = {.size = sizeof o,
                                          .argv = argv,
                                          .capture = 1,
                                          .cow = c->cow,
                                          .ask = answer,
                                          .ask_ctx = &asked,
                                          .ask_writes = c->ask_writes};
    struct pinfold_policy *policy = NULL;
    struct pinfold_result *r = NULL;
    struct pinfold_error e = {0};
    char counts[64];

    put("outside.txt", "old\n");
    put("project/own.txt", "own\n");
    if (pinfold_policy_load(&po, &policy, &e) < 0 || pinfold_run(policy, &o, &r, &e) < 0) {
        wrong(c, "no run", e.text);
        return;
    }
    snprintf(counts, sizeof counts, "%d of writes, %d of others", asked.writes, asked.others);
    if (pinfold_result_status(r) != c->status)
        wrong(c, "another status", pinfold_result_json(r));
    if (asked.writes != c->asked || asked.others != 0)
        wrong(c, "asked", counts);
    if (asked.writes && strcmp(asked.target, in("outside.txt")) != 0)
        wrong(c, "asked about", asked.target);
    if (!holds("outside.txt", c->outside) || !holds("project/own.txt", c->own))
        wrong(c, "the files", "they hold something else");
    pinfold_result_free(r);
    pinfold_policy_free(policy);
}

int main(int argc, char **argv)
{
    top = argc > 1 ? argv[1] : ".";
    if (mkdir(in("project"), 0700) < 0)
        abort();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        try_case(&cases[i]);
    if (!failures)
        puts("writes are granted as they were answered");
    return failures ? 1 : 0;
}
