/*
 * Sessions through libpinfold: ensure (two threads that race get one box), exec with all that a command may be given, jobs, a
 * persistent shell, list, storage, stop; and what is said when a session is gone.
 *
 *     sessions WORKSPACE     a directory to run in; exits 0 when all holds
 */
#include <errno.h>
#include <fcntl.h>
#include <pinfold.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define NAME        "../a name\n\xf0\x9f\x93\xa6"

static int failures;

static void check(const char *what, int holds)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        failures++;
    }
}

static int must(const char *call, int r, const struct pinfold_error *e)
{
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", call, e->text);
        failures++;
    }
    return r;
}

static const struct pinfold_session_options name = {.size = sizeof name, .name = NAME};
static const char *workspace;

static struct pinfold_policy *policy_of(const char *extra)
{
    struct pinfold_error e = {0};
    struct pinfold_policy *p = NULL;
    const struct pinfold_option options[] = {
        {"workspace", workspace}, {"storage", "/kept"}, {"hostname", extra}, {NULL, NULL}};
    const struct pinfold_policy_options o = {.size = sizeof o, .options = options};
    must("pinfold_policy_load", pinfold_policy_load(&o, &p, &e), &e);
    if (!p)
        exit(1);
    return p;
}

/* What the command wrote, when it ended with `status`; "" otherwise. */
static const char *output_of(struct pinfold_session *s, struct pinfold_exec_options *o, int status)
{
    static char text[4096];
    struct pinfold_error e = {0};
    struct pinfold_result *r = NULL;
    o->size = sizeof *o;
    o->capture = 1;
    text[0] = 0;
    if (must("pinfold_exec", pinfold_exec(s, o, &r, &e), &e) < 0)
        return text;
    if (pinfold_result_status(r) != status) {
        fprintf(stderr, "status %d, not %d: %s\n", pinfold_result_status(r), status, pinfold_result_json(r));
        failures++;
    }
    snprintf(text, sizeof text, "%s", pinfold_result_stdout(r, NULL));
    pinfold_result_free(r);
    return text;
}

static const char *said(struct pinfold_session *s, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct pinfold_exec_options o = {.argv = argv};
    return output_of(s, &o, 0);
}

/* ---- two threads */

struct racer {
    pthread_t thread;
    struct pinfold_policy *policy;
    struct pinfold_session *session;
    char box[64];
};

static void *race(void *ctx)
{
    struct racer *me = ctx;
    struct pinfold_error e = {0};
    must("pinfold_session_ensure", pinfold_session_ensure(me->policy, &name, &me->session, &e), &e);
    return NULL;
}

static void *ask_box(void *ctx)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* said() has one room for all */
    struct racer *me = ctx;
    struct pinfold_error e = {0};
    struct pinfold_result *r = NULL;
    const char *argv[] = {"/bin/sh", "-c", "readlink /proc/self/ns/mnt", NULL};
    const struct pinfold_exec_options o = {.size = sizeof o, .argv = argv, .capture = 1};
    int got = me->session ? pinfold_exec(me->session, &o, &r, &e) : -EINVAL;
    pthread_mutex_lock(&one);
    must("pinfold_exec in a thread", got, &e);
    pthread_mutex_unlock(&one);
    if (got == 0) {
        snprintf(me->box, sizeof me->box, "%s", pinfold_result_stdout(r, NULL));
        pinfold_result_free(r);
    }
    return NULL;
}

static struct pinfold_session *try_race(void)
{
    enum { RACERS = 2, ROUNDS = 5 };
    struct racer racers[RACERS];
    struct pinfold_error e = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.policy = policy_of("box")};
            pthread_create(&racers[i].thread, NULL, race, &racers[i]);
        }
        for (int i = 0; i < RACERS; i++)
            pthread_join(racers[i].thread, NULL);
        for (int i = 0; i < RACERS; i++)
            pthread_create(&racers[i].thread, NULL, ask_box, &racers[i]);
        for (int i = 0; i < RACERS; i++)
            pthread_join(racers[i].thread, NULL);
        check("two that raced have two boxes", racers[0].box[0] && strcmp(racers[0].box, racers[1].box) == 0);
        for (int i = 0; i < RACERS; i++) {
            pinfold_policy_free(racers[i].policy);
            if (i || round + 1 < ROUNDS)
                pinfold_session_free(racers[i].session);
        }
        if (round + 1 < ROUNDS)
            must("pinfold_session_stop", pinfold_session_stop(&name, 1, &e), &e);
    }
    return racers[0].session;
}

/* ---- commands */

static char heard[64];
static void hear(void *ctx, int which, const char *bytes, size_t n)
{
    (void)ctx;
    size_t at = strlen(heard);
    if (which == 1 && at + n < sizeof heard)
        memcpy(heard + at, bytes, n);
}

static void try_exec(struct pinfold_session *s)
{
    const char *seven[] = {"/bin/sh", "-c", "echo out; echo err >&2; exit 7", NULL};
    struct pinfold_exec_options o = {.argv = seven, .output = hear};
    check("exec: output", strcmp(output_of(s, &o, 7), "out\n") == 0);
    check("exec: output as it comes", strcmp(heard, "out\n") == 0);

    const char *show[] = {"/bin/sh", "-c", "echo \"$A $PWD\"", NULL}, *env[] = {"A=b c", NULL};
    o = (struct pinfold_exec_options){.argv = show, .env = env, .cwd = "/tmp"};
    check("exec: variable and directory", strcmp(output_of(s, &o, 0), "b c /tmp\n") == 0);

    const char *slow[] = {"/bin/sleep", "100", NULL};
    o = (struct pinfold_exec_options){.argv = slow, .timeout_ms = 200};
    (void)output_of(s, &o, 124);

    const char *dies[] = {"/bin/sh", "-c", "kill -9 $$", NULL};
    o = (struct pinfold_exec_options){.argv = dies};
    (void)output_of(s, &o, 137);

    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        abort();
    close(ends[1]); /* hung up: cancelled at once */
    o = (struct pinfold_exec_options){.argv = slow, .cancel_fd = ends[0]};
    o.size = sizeof o;
    struct pinfold_error e = {0};
    struct pinfold_result *r = NULL;
    if (must("pinfold_exec, cancelled", pinfold_exec(s, &o, &r, &e), &e) == 0)
        check("a cancelled command ended well", pinfold_result_status(r) != 0);
    if (r)
        pinfold_result_free(r);
    close(ends[0]);

    o = (struct pinfold_exec_options){.size = sizeof o, .argv = show, .cwd = "relative"};
    r = NULL;
    check("a relative directory was taken", pinfold_exec(s, &o, &r, &e) < 0 && strstr(e.text, "absolute"));
}

static void try_shell(struct pinfold_session *s)
{
    const char *first[] = {"cd /tmp; A=kept", NULL}, *then[] = {"echo \"$A $PWD\"", NULL}, *end[] = {"exit 5", NULL};
    struct pinfold_exec_options o = {.argv = first, .shell = "main"};
    (void)output_of(s, &o, 0);
    o = (struct pinfold_exec_options){.argv = then, .shell = "main"};
    check("shell: what was said before", strcmp(output_of(s, &o, 0), "kept /tmp\n") == 0);
    o = (struct pinfold_exec_options){.argv = end, .shell = "main"};
    (void)output_of(s, &o, 5);
}

/* ---- jobs */

static void moment(void)
{
    const struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
}

/* Until the list of jobs holds the text. */
static void wait_for(struct pinfold_session *s, const char *what)
{
    struct pinfold_error e = {0};
    for (int i = 0; i < PATIENCE_MS / 20; i++) {
        char *text = NULL;
        if (must("pinfold_job_list", pinfold_job_list(s, &text, &e), &e) < 0)
            return;
        int found = strstr(text, what) != NULL;
        free(text);
        if (found)
            return;
        moment();
    }
    fprintf(stderr, "no job says %s\n", what);
    failures++;
}

static void try_jobs(struct pinfold_session *s)
{
    struct pinfold_error e = {0};
    const char *argv[] = {"/bin/sh", "-c", "echo one; echo two >&2; exit 3", NULL},
               *slow[] = {"/bin/sleep", "1000", NULL};
    struct pinfold_exec_options o = {.size = sizeof o, .argv = argv};
    char bytes[64] = "";
    uint32_t job = 0;
    uint64_t first = 1;
    int ended = 0;
    if (must("pinfold_job_start", pinfold_job_start(s, &o, &job, &e), &e) < 0)
        return;
    wait_for(s, "\"exit_code\":3");
    int64_t n = pinfold_job_output(s, job, 0, bytes, sizeof bytes - 1, &first, &ended, &e);
    check("job: output", n == 8 && first == 0 && memcmp(bytes, "one\ntwo\n", 8) == 0);
    o.argv = slow;
    if (must("pinfold_job_start", pinfold_job_start(s, &o, &job, &e), &e) < 0)
        return;
    must("pinfold_job_kill", pinfold_job_kill(s, job, SIGKILL, &e), &e);
    wait_for(s, "\"signal\":9");
    check("a job that is none was killed", pinfold_job_kill(s, 4711, SIGKILL, &e) < 0 && e.text[0]);
}

/* ---- other policies, the end */

static void try_end(struct pinfold_session *s)
{
    struct pinfold_error e = {0};
    struct pinfold_session *again = NULL;
    struct pinfold_policy *other = policy_of("another"), *first = policy_of("box");
    char *text = NULL;

    (void)said(s, "echo stored >/kept/file");
    check("another policy was taken for the session's",
          pinfold_session_ensure(other, &name, &again, &e) == -ESTALE && strstr(e.text, "--recreate"));
    struct pinfold_session_options anew = name;
    anew.recreate = 1;
    if (must("pinfold_session_ensure, anew", pinfold_session_ensure(other, &anew, &again, &e), &e) == 0) {
        check("what is stored did not stay", strcmp(said(again, "cat /kept/file"), "stored\n") == 0);
        pinfold_session_free(again);
    }
    must("pinfold_session_list", pinfold_session_list(&name, &text, &e), &e);
    check("list: no storage", text && strstr(text, "\"storage\":[{\"path\":\"/kept\",\"directory\":"));
    free(text);
    text = NULL;
    must("pinfold_session_stop", pinfold_session_stop(&name, 0, &e), &e);
    check("a stopped session was opened", pinfold_session_open(&name, &again, &e) == -ENOENT && e.text[0]);
    must("pinfold_session_ensure, again", pinfold_session_ensure(first, &name, &again, &e), &e);
    check("what is stored did not outlast a stop", again && strcmp(said(again, "cat /kept/file"), "stored\n") == 0);
    pinfold_session_free(again);
    must("pinfold_session_stop", pinfold_session_stop(&name, 1, &e), &e);
    const char *argv[] = {"/bin/true", NULL};
    const struct pinfold_exec_options o = {.size = sizeof o, .argv = argv};
    struct pinfold_result *r = NULL;
    check("a command ran in a session that is gone",
          pinfold_exec(s, &o, &r, &e) < 0 && strstr(e.text, "session start"));
    must("pinfold_session_prune", pinfold_session_prune(&text, &e), &e);
    check("prune: found something", text && strstr(text, "\"removed\":[]"));
    free(text);
    pinfold_policy_free(first);
    pinfold_policy_free(other);
}

int main(int argc, char **argv)
{
    workspace = argc > 1 ? argv[1] : ".";
    struct pinfold_session *s = try_race();
    if (!s)
        return 1;
    try_exec(s);
    try_shell(s);
    try_jobs(s);
    try_end(s);
    pinfold_session_free(s);
    if (!failures)
        puts("sessions work through the library");
    return failures ? 1 : 0;
}
