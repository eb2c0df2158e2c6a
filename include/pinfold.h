/*
 * libpinfold: a command in a box, from C.
 *
 * A call leaves the caller's process as it found it: no signal handler, umask, working directory, environment, child,
 * descriptor or thread of it is touched. Structs that the caller fills begin with `size`, set to sizeof: they may grow
 * at their end in later versions. Functions return 0 or a negative errno; the sentence is in struct pinfold_error.
 * Strings handed out belong to the object they came from. An object may be used by one thread at a time.
 *
 *     struct pinfold_policy *p;
 *     struct pinfold_result *r;
 *     const char *argv[] = {"make", "test", NULL};
 *     struct pinfold_run_options o = {.size = sizeof o, .argv = argv, .capture = 1};
 *     if (pinfold_policy_load(NULL, &p, &error) == 0 && pinfold_run(p, &o, &r, &error) == 0)
 *         printf("exit %d\n%s", pinfold_result_status(r), pinfold_result_stdout(r, NULL));
 */
#ifndef PINFOLD_H
#define PINFOLD_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PINFOLD_API_VERSION 1
#if defined __GNUC__
#define PINFOLD_PUBLIC __attribute__((visibility("default")))
#else
#define PINFOLD_PUBLIC
#endif

enum pinfold_error_kind {
    PINFOLD_ERROR_NONE,
    PINFOLD_ERROR_POLICY,  /* the policy or an option is wrong            */
    PINFOLD_ERROR_CANNOT,  /* this machine cannot honour what was asked   */
    PINFOLD_ERROR_REFUSED, /* a rule of pinfold's own says no             */
    PINFOLD_ERROR_SYSTEM,  /* the kernel said no                          */
    PINFOLD_ERROR_BUG
};
struct pinfold_error {
    enum pinfold_error_kind kind;
    int no;
    char text[1024];
};

struct pinfold_policy;
struct pinfold_result;

/* One option as on the command line, without dashes: {"rw", "/data"}, {"net", "none"}. A bare flag has value NULL. */
struct pinfold_option {
    const char *name, *value;
};

struct pinfold_policy_options {
    size_t size;
    const char *profile;                  /* NULL: "workspace"; "": none at all */
    const char *const *files;             /* policy files besides system, user and project; NULL-terminated, or NULL */
    const char *settings;                 /* an srt settings file, or NULL */
    const struct pinfold_option *options; /* ended by a NULL name, or NULL */
    const char *cwd;                      /* NULL: the caller's; workspace and relative paths start here */
    int no_layers;                        /* do not read system, user and project files */
    const char *settings_format;          /* what `settings` is: "srt" (NULL), "dive", "mycode", "daycare" or "bwrap" */
    /* A whole policy in pinfold's own language: neither profile nor any file is read, only `options` are added to it. */
    const char *text;
    const char *settings_text; /* what the file `settings` would hold; `settings` is then its name in messages */
};

/* Reads the layers and merges them. `options` NULL: all defaults. */
PINFOLD_PUBLIC int pinfold_policy_load(const struct pinfold_policy_options *options, struct pinfold_policy **ret,
                                       struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_policy_free(struct pinfold_policy *policy);
/* The merged policy in pinfold's own language; malloc()ed. `origins` adds where each rule was said, as comments. */
PINFOLD_PUBLIC int pinfold_policy_text(struct pinfold_policy *policy, int origins, char **ret,
                                       struct pinfold_error *error);

enum pinfold_explain_format { PINFOLD_EXPLAIN_TEXT, PINFOLD_EXPLAIN_JSON };
/* The plan: what would be done, needs, losses, digest. malloc()ed. */
PINFOLD_PUBLIC int pinfold_explain(struct pinfold_policy *policy, enum pinfold_explain_format format, int show_values,
                                   char **ret, struct pinfold_error *error);

/* What a person would be told about a run, one sentence or line at a time, without a newline. */
enum pinfold_say {
    PINFOLD_SAY_HEADER, /* before the command: engine, network, workspace, limits        */
    PINFOLD_SAY_NOTE,   /* after it: a limit that was hit, a denial, each with its remedy */
    PINFOLD_SAY_CLOSING /* last: how it ended, time, memory, denials                      */
};

/* A host that no rule names, which the box wants to reach now; its connection waits. */
struct pinfold_question {
    size_t size;         /* of what is filled in                                                       */
    const char *target;  /* "api.example.com:443", "[2001:db8::1]:443": canonical, as a rule would say it */
    const char *how;     /* "transparent", "connect", "http", "socks"                                  */
    const char *command; /* what the kernel calls the process, printable ASCII; "" when it is not known */
    uint32_t pid;        /* inside the box; 0 when it is not known                                     */
    uint32_t timeout_ms; /* a later answer is a no (policy: net.ask_time)                              */
};
enum pinfold_answer {
    PINFOLD_NO,     /* this time                                   */
    PINFOLD_YES,    /* this time                                   */
    PINFOLD_NEVER,  /* no, and the same to it for the rest of the run */
    PINFOLD_ALWAYS, /* yes, and so on                              */
};

struct pinfold_run_options {
    size_t size;
    const char *const *argv;            /* NULL-terminated */
    const char *const *env;             /* the environment the policy chooses from; NULL: the caller's */
    const char *cwd;                    /* inside; NULL: the policy's */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null for stdin; ignored for output with capture. 0 is taken as given
                                           only when `use_fds` is set, otherwise the caller's 0, 1, 2 */
    int use_fds;
    int capture;                                                         /* stdout and stderr into the result */
    size_t capture_max;                                                  /* bytes of each; 0: 16 MiB */
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence); /* called during pinfold_run(), or NULL */
    void *say_ctx;
    /*
     * The calling program is a command line and does nothing else meanwhile: its terminal becomes raw and is restored,
     * SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH and SIGTSTP are forwarded. Only in the program that has pinfold linked
     * into it; the shared library answers -EOPNOTSUPP: start what pinfold_wrap() returns instead.
     */
    int foreground;
    /*
     * Answers where no rule of a network 'allow' decides; NULL: whoever the policy's net.ask says, or nobody. Called on the
     * thread in pinfold_run(), which passes on no output meanwhile: who cannot answer at once takes control_fd.
     */
    enum pinfold_answer (*ask)(void *ctx, const struct pinfold_question *question);
    void *ask_ctx;
    /* A connected stream socket for JSON lines: rules that change while the command runs, and questions (pinfold(1),
       CONTROL CONNECTION). It stays the caller's. 0: none. */
    int control_fd;
};
PINFOLD_PUBLIC int pinfold_run(struct pinfold_policy *policy, const struct pinfold_run_options *options,
                               struct pinfold_result **ret, struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_result_free(struct pinfold_result *result);

/*
 * The argv that runs `argv` under `policy` when given to execve: for callers that start processes themselves. The policy
 * goes with it as flags, so it holds without any file. malloc()ed, NULL-terminated, one allocation; free() it.
 */
PINFOLD_PUBLIC int pinfold_wrap(struct pinfold_policy *policy, const char *const *argv, char ***ret,
                                struct pinfold_error *error);

enum pinfold_end { PINFOLD_EXITED, PINFOLD_SIGNALED, PINFOLD_TIMED_OUT, PINFOLD_LIMIT, PINFOLD_SANDBOX };
PINFOLD_PUBLIC enum pinfold_end pinfold_result_end(const struct pinfold_result *result);
PINFOLD_PUBLIC int pinfold_result_code(const struct pinfold_result *result);   /* exit status or signal number  */
PINFOLD_PUBLIC int pinfold_result_status(const struct pinfold_result *result); /* as `pinfold run` would exit   */
/* A signal by which a command line now ends itself (the command died of the terminal's Ctrl-C or quit key), or 0. */
PINFOLD_PUBLIC int pinfold_result_reraise(const struct pinfold_result *result);
PINFOLD_PUBLIC const char *pinfold_result_stdout(const struct pinfold_result *result,
                                                 size_t *ret_n); /* NUL-terminated */
PINFOLD_PUBLIC const char *pinfold_result_stderr(const struct pinfold_result *result, size_t *ret_n);
PINFOLD_PUBLIC const char *pinfold_result_json(const struct pinfold_result *result); /* the whole result, one schema */

/*
 * What this machine can do, with remedies, as text or JSON; `verify` also tries to break a default box. malloc()ed.
 * Returns 1 when a box cannot be made here or an attack succeeded, otherwise 0 or a negative errno.
 */
PINFOLD_PUBLIC int pinfold_doctor(enum pinfold_explain_format format, int verify, char **ret,
                                  struct pinfold_error *error);

/*
 * The keys of the policy. Those with a name are the options of struct pinfold_option and the flags of `pinfold run`: one
 * table for help, completion and manual. `name` is NULL where a key stands in policy files only.
 */
struct pinfold_option_info {
    const char *name;    /* "memory"                                                  */
    const char *value;   /* what stands for the value in a manual ("SIZE"); NULL: none */
    const char *choices; /* "none|allow|host", or NULL                                 */
    const char *key;     /* where it stands in a policy file: "limits.memory"          */
    const char *help;    /* one sentence                                               */
    int takes_value, repeats;
};
PINFOLD_PUBLIC const struct pinfold_option_info *pinfold_option_list(size_t *ret_n);
/* JSON Schema (draft 2020-12) of the policy language; malloc()ed. */
PINFOLD_PUBLIC int pinfold_policy_schema(char **ret, struct pinfold_error *error);
/*
 * Says that the project policy `path` (a file, or a directory that holds .pinfold/policy.yaml) may also loosen: bound to
 * its present content and its real path. `withdraw` takes that back. `ret` gets a sentence; malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_trust(const char *path, int withdraw, char **ret, struct pinfold_error *error);
/* Writes the audit events kept so far to descriptor `fd`, one JSON object per line; `follow`: and those to come. */
PINFOLD_PUBLIC int pinfold_log(int fd, int follow, struct pinfold_error *error);
PINFOLD_PUBLIC const char *pinfold_version(void);

#ifdef __cplusplus
}
#endif
#endif
