/*
 * libpinfold: a command in a box, from C.
 *
 * A call leaves the caller's process as it found it: no signal handler, umask, working directory, environment, child,
 * descriptor or thread of it is touched. Structs that the caller fills begin with `size`, set to sizeof: they may grow
 * at their end in later versions; so may those that are handed out by pointer. Functions return 0 or a negative errno;
 * the sentence is in struct pinfold_error. Strings handed out belong to the object they came from. An object may be used
 * by one thread at a time.
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
    PINFOLD_ERROR_CANNOT,  /* this machine cannot enforce what was asked   */
    PINFOLD_ERROR_REFUSED, /* a rule of pinfold's own says no             */
    PINFOLD_ERROR_SYSTEM,  /* the kernel said no                          */
    PINFOLD_ERROR_BUG
};
/*
 * What went wrong, filled in by the call that failed. Its layout is part of the interface and
 * never changes, so it carries no size: whatever else there is to know of an error one day will be had from a function.
 */
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
    /*
     * What somebody without authority (a model) wishes: like `options`, but one that would loosen the policy that the rest
     * makes is refused (PINFOLD_ERROR_REFUSED). Variables are not expanded. Ended by a NULL name, or NULL.
     */
    const struct pinfold_option *wishes;
};

/* Reads the layers and merges them. `options` NULL: all defaults. */
PINFOLD_PUBLIC int pinfold_policy_load(const struct pinfold_policy_options *options, struct pinfold_policy **ret,
                                       struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_policy_free(struct pinfold_policy *policy);
/*
 * The merged policy in pinfold's own language; malloc()ed. `how`: bits. ORIGINS adds where each rule was said, as comments.
 * CONVERTED leaves out a workspace that nobody chose, and says ${WORKSPACE} of paths in it. ADDED is for a policy made of
 * settings alone (profile ""): what they add to the profile `workspace`, without what is so by itself.
 */
#define PINFOLD_TEXT_ORIGINS   1
#define PINFOLD_TEXT_CONVERTED 2
#define PINFOLD_TEXT_ADDED     4
PINFOLD_PUBLIC int pinfold_policy_text(struct pinfold_policy *policy, int how, char **ret, struct pinfold_error *error);

enum pinfold_explain_format {
    PINFOLD_EXPLAIN_TEXT,
    PINFOLD_EXPLAIN_JSON,
    PINFOLD_EXPLAIN_COMMAND,
    PINFOLD_EXPLAIN_BRIEF
};
/*
 * The plan: what would be done, needs, losses, digest. malloc()ed. COMMAND: the command line alone of an engine that is another
 * program, quoted for a shell. BRIEF: the text without the steps, and what the built-in profiles name only counted.
 */
PINFOLD_PUBLIC int pinfold_explain(struct pinfold_policy *policy, enum pinfold_explain_format format, int show_values,
                                   char **ret, struct pinfold_error *error);

/*
 * Where no engine here can honour the policy (pinfold_explain() said PINFOLD_ERROR_CANNOT): the plan as far as it goes, with what is
 * refused in it. -ENOENT where there is nothing to show. malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_explain_refused(struct pinfold_policy *policy, enum pinfold_explain_format format,
                                           int show_values, char **ret, struct pinfold_error *error);

/* What a person would be told about a run, one sentence or line at a time, without a newline. */
enum pinfold_say {
    PINFOLD_SAY_HEADER,  /* before the command: engine, network, workspace, limits        */
    PINFOLD_SAY_NOTE,    /* after it: a limit that was hit, a denial, each with its remedy */
    PINFOLD_SAY_CLOSING, /* last: how it ended, time, memory, denials                      */
    PINFOLD_SAY_WARNING  /* before the command: it runs without a box; not to be silenced  */
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
    /* Children that only tidy up after the box are not waited for: the caller does, with __WALL, or ends next and leaves them to
       who inherits them. */
    int leave;
    /* More runs under this policy follow, one after the other: a box without a network leaves its network namespace to the
       next one, provided that no socket is left in it. With `leave`, only for callers that wait before the next run. */
    int keep_network;
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
 * The same as values, for a reader in this process: the members of pinfold_result_json() under the same names. What is handed
 * out here lives as long as the result; NULL where there is nothing, or no memory. In the structs below a text is NULL where
 * the result has none.
 */
struct pinfold_value;
PINFOLD_PUBLIC const struct pinfold_value *pinfold_result_value(const struct pinfold_result *result);

struct pinfold_summary {
    size_t size;
    const char *ended; /* "exit", "signal", "timeout", "limit", "sandbox"                             */
    const char *limit; /* that ended it: "memory", "processes", "disk", "output", "timeout"           */
    const char *error; /* why the command could not be executed                                       */
    const char *engine, *session, *policy_digest, *plan_digest;
    uint64_t wall_ms, cpu_ms, peak_bytes, read_bytes, written_bytes;
    uint64_t left_not_kept, allowed_not_kept, events_lost; /* what the lists below could not hold */
    int stdout_truncated, stderr_truncated;
};
PINFOLD_PUBLIC void pinfold_result_summary(const struct pinfold_result *result, struct pinfold_summary *ret);

/* The lists of a result: entry `i`, counted from 0, into a struct whose `size` the caller has set. 1, or 0 behind the last. */
struct pinfold_denial {
    size_t size;
    const char *kind, *action, *target; /* "network", "connect", "pypi.org:443" */
    const char *rule, *origin;          /* what denied it, and where that was said */
    const char *how, *command, *address, *why;
    uint32_t pid; /* inside the box; 0: not known */
};
PINFOLD_PUBLIC int pinfold_result_denial(const struct pinfold_result *result, size_t i, struct pinfold_denial *ret);
struct pinfold_connection {
    size_t size;
    const char *action, *target, *address, *rule, *origin, *how;
    uint64_t count;
    int by_proxy;
};
PINFOLD_PUBLIC int pinfold_result_allowed(const struct pinfold_result *result, size_t i,
                                          struct pinfold_connection *ret);
/* What the box left that a person should look at. */
struct pinfold_leftover {
    size_t size;
    const char *kind, *path, *what;
};
PINFOLD_PUBLIC int pinfold_result_left(const struct pinfold_result *result, size_t i, struct pinfold_leftover *ret);
/* Guarantee number `i` that was enforced, and by what (`ret_by` may be NULL); one that was given up; NULL behind the last. */
PINFOLD_PUBLIC const char *pinfold_result_enforced(const struct pinfold_result *result, size_t i, const char **ret_by);
PINFOLD_PUBLIC const char *pinfold_result_lost(const struct pinfold_result *result, size_t i);
/* What refuses without being in the list of denials; an engine that was not taken, and why. */
PINFOLD_PUBLIC const char *pinfold_result_not_seen(const struct pinfold_result *result, size_t i);
PINFOLD_PUBLIC const char *pinfold_result_not_taken(const struct pinfold_result *result, size_t i,
                                                    const char **ret_why);

/*
 * Sentences that the person should read besides, a line each, or "": a persistent shell had to begin anew; of a command in
 * a session whose output was not captured: why it ended, limits, denials.
 */
PINFOLD_PUBLIC const char *pinfold_result_note(const struct pinfold_result *result);

/*
 * Sessions: a box with a name, kept alive by a small process of its own (the keeper) until it is stopped, into which
 * commands are sent. A name may be any text of 1 to 4096 bytes without NUL; it is nobody's path. An object is a
 * connection to a session, not its life: freeing it leaves the session running.
 */
struct pinfold_session;

struct pinfold_session_options {
    size_t size;
    const char *name;
    /* What becomes of a living session of that name whose policy or image is another one: 0: -ESTALE with a sentence; 1:
       it is stopped and made anew; what it has stored stays. */
    int recreate;
    const char *scope; /* names of one owner among several (an instance of a server); NULL: the user's own */
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence); /* called when one is started, or NULL */
    void *say_ctx;
};
/* The session of that name: started when there is none, found when there is one. Two callers at once get the same. */
PINFOLD_PUBLIC int pinfold_session_ensure(struct pinfold_policy *policy, const struct pinfold_session_options *options,
                                          struct pinfold_session **ret, struct pinfold_error *error);
/* The living session of that name; -ENOENT with a sentence that says what became of it. No policy is read. */
PINFOLD_PUBLIC int pinfold_session_open(const struct pinfold_session_options *options, struct pinfold_session **ret,
                                        struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_session_free(struct pinfold_session *session);
/* Ends it with every process in it; `remove`: and what it stored. -ENOENT when there is none. */
PINFOLD_PUBLIC int pinfold_session_stop(const struct pinfold_session_options *options, int remove,
                                        struct pinfold_error *error);
/* All sessions of the user (`options` NULL), or one whole: JSON, one schema with `pinfold session list|show --json`. malloc()ed. */
PINFOLD_PUBLIC int pinfold_session_list(const struct pinfold_session_options *options, char **ret,
                                        struct pinfold_error *error);

/*
 * Removes what sessions and runs whose owner is dead have left: boxes, containers, volumes, directories; and the caches of
 * projects whose directory is gone. `ret`: JSON: "removed", "removed_from_engines", "kept" (what has to wait, and why), "caches"
 * ("workspace", "bytes" freed, "whole"), "not_asked" (daemons that are not there), "not_asked_news" (those of
 * them that no call before has told: "why", "note", the file whose removal makes pinfold forget it). malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_session_prune(char **ret, struct pinfold_error *error);
/* The same JSON of what that would remove, and nothing is removed; "bytes" and "whole" are null. malloc()ed. */
PINFOLD_PUBLIC int pinfold_session_left(char **ret, struct pinfold_error *error);

/*
 * Rules of the session's network (net: allow), on top of its policy's: hosts as in the options `allow` and `deny`,
 * NULL-terminated, or NULL. All of them or none. What the policy denies stays denied; they go with the session.
 */
PINFOLD_PUBLIC int pinfold_session_update(struct pinfold_session *session, const char *const *allow,
                                          const char *const *deny, struct pinfold_error *error);

struct pinfold_exec_options {
    size_t size;
    const char *const *argv; /* NULL-terminated; with `shell`: one element, the text of the command */
    const char *const *env;  /* "NAME=value" besides the session's own; or NULL */
    const char *cwd;         /* as the box sees it; NULL: the session's */
    const char *shell; /* name of a persistent shell of the session, made on first use; NULL: a process of its own */
    int stdin_fd, stdout_fd, stderr_fd; /* as in struct pinfold_run_options */
    int use_fds;
    int capture;
    size_t capture_max;
    uint32_t timeout_ms; /* 0: none */
    int tty; /* 1: a terminal of the box between; 2: for those of the three that are terminals; needs foreground */
    int foreground;                     /* as in struct pinfold_run_options */
    int cancel_fd;                      /* readable or hung up: the command is ended as by a time-out; 0: none */
    uint64_t memory_max, processes_max; /* for this command, within the session's; 0: none */
    void (*output)(void *ctx, int which, const char *bytes, size_t n); /* with capture: as it comes (1, 2), or NULL */
    void *ctx;
};
/* One command in the session; `ret` as from pinfold_run(). -ESTALE: the session is gone, with a sentence. */
PINFOLD_PUBLIC int pinfold_exec(struct pinfold_session *session, const struct pinfold_exec_options *options,
                                struct pinfold_result **ret, struct pinfold_error *error);

/* Background commands: they outlive the caller and end with the session; output is kept in a bounded log. */
PINFOLD_PUBLIC int pinfold_job_start(struct pinfold_session *session, const struct pinfold_exec_options *options,
                                     uint32_t *ret_job, struct pinfold_error *error);
/* {"jobs":[{"job":1,"argv":[...],"state":"running"|"ended","result":{...}|null}]}; malloc()ed. */
PINFOLD_PUBLIC int pinfold_job_list(struct pinfold_session *session, char **ret, struct pinfold_error *error);
/*
 * What it wrote from byte `at` on (both streams in the order they came), at most `room` bytes into `to`; the number, 0 at
 * the end of what there is. *ret_first: the oldest byte that is still kept; *ret_ended: it has ended, and all was read.
 */
PINFOLD_PUBLIC int64_t pinfold_job_output(struct pinfold_session *session, uint32_t job, uint64_t at, char *to,
                                          size_t room, uint64_t *ret_first, int *ret_ended,
                                          struct pinfold_error *error);
/* A signal to it and its children. */
PINFOLD_PUBLIC int pinfold_job_kill(struct pinfold_session *session, uint32_t job, int signal,
                                    struct pinfold_error *error);

struct pinfold_attach_options {
    size_t size;
    uint32_t job;
    uint64_t from;  /* its output from this byte on */
    int watch_only; /* the terminal's keys are not for it */
};
/*
 * The caller's terminal and the job, until that ends or the caller leaves (-EINTR: Ctrl-P Ctrl-Q): its status as of
 * pinfold_result_status(). When the session ended with it, `error` has the sentence. `ret_notes` (may be NULL): what was denied to a
 * job that failed, a sentence a line, or NULL; malloc()ed. The shared library answers -EOPNOTSUPP, as for `foreground`.
 */
PINFOLD_PUBLIC int pinfold_job_attach(struct pinfold_session *session, const struct pinfold_attach_options *options,
                                      char **ret_notes, struct pinfold_error *error);
/*
 * Files of a session by the names the box has for them, worked on from outside by descriptor, under the session's policy:
 * what a command in it may not read or write is refused here, too, and no link or race leads out of its mounts.
 */
/* At most `max` bytes from `at`; malloc()ed, *ret_n their number, *ret_size the file's (NULL: not asked). */
PINFOLD_PUBLIC int pinfold_file_read(struct pinfold_session *session, const char *path, uint64_t at, size_t max,
                                     char **ret, size_t *ret_n, uint64_t *ret_size, struct pinfold_error *error);
/* Replaces the whole file in one step; `mode` for a new one (an old one keeps mode and owner); `parents`: makes directories. */
PINFOLD_PUBLIC int pinfold_file_write(struct pinfold_session *session, const char *path, const char *bytes, size_t n,
                                      unsigned mode, int parents, struct pinfold_error *error);
/*
 * The same as a stream: the file's bytes to descriptor `fd`, and what `fd` has until its end into the file. Directories are
 * removed with what is in them when `recursive`.
 */
PINFOLD_PUBLIC int pinfold_file_get(struct pinfold_session *session, const char *path, int fd,
                                    struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_put(struct pinfold_session *session, const char *path, int fd, unsigned mode,
                                    int parents, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_remove(struct pinfold_session *session, const char *path, int recursive,
                                       struct pinfold_error *error);
/*
 * A file or a whole tree between host and box, links as links; a target that is a directory gets it below itself. `ret`
 * (may be NULL): {"files":1,"bytes":2,"left_out":0}, left out is what is neither file nor directory nor link. malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_file_copy_in(struct pinfold_session *session, const char *host, const char *box, char **ret,
                                        struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_copy_out(struct pinfold_session *session, const char *box, const char *host, char **ret,
                                         struct pinfold_error *error);
/* One directory: {"entries":[{"name":"a","type":"file|directory|link|other","size":1,"mode":"0644","modified":"...","target":null}]} */
PINFOLD_PUBLIC int pinfold_file_list(struct pinfold_session *session, const char *path, char **ret,
                                     struct pinfold_error *error);
/*
 * What stands at a path after links were followed, for comparing: {"path":"/canonical","type":"file|directory|other|none",
 * "mode":"0644","size":1,"modified_ns":2,"device":3,"inode":4,"mounted":true,"writable":true}; of "none" the type alone. Device and
 * inode as stat(2) has them on the host; "mounted": a mount of the box begins there. malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_file_where(struct pinfold_session *session, const char *path, char **ret,
                                      struct pinfold_error *error);
/* Host path <-> box path over the session's mounts; unchanged outside the mapping. malloc()ed. */
PINFOLD_PUBLIC int pinfold_path_to_box(struct pinfold_session *session, const char *path, char **ret,
                                       struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_path_to_host(struct pinfold_session *session, const char *path, char **ret,
                                        struct pinfold_error *error);

/*
 * Agents: programs that answer prompts, known by name (docs/AGENTS.md): where their login and state are, what a box for them
 * needs, how they are called.
 */
struct pinfold_agent_options {
    size_t size;
    const char *agent;     /* "kiro-cli", "claude", "codex", "gemini" */
    const char *state;     /* prepare: directory of this session's own state, made when missing; absolute */
    const char *home;      /* of the box's user, as the box has it; NULL: the caller's */
    const char *directory; /* argv: where it works, as the box has it */
    const char *prompt;
    const char *profile, *model; /* NULL: its own choice */
    const char *response;        /* a file for its last answer, as the box has it; NULL: standard output alone */
    int resume;                  /* go on with the conversation of this directory */
    int unattended;              /* it asks nobody for leave: the box is what holds it */
};
/* {"agents":[{"name","title","state":[...],"servers":[...],"profile":true,"model":true,"resume":true,"response":"option|prompt|none"}]} malloc()ed. */
PINFOLD_PUBLIC int pinfold_agent_list(char **ret, struct pinfold_error *error);
/*
 * Brings the host's login into the state: everything at first, later the login alone; the host's own is not changed. `ret_options`
 * (may be NULL): what the box needs, ended by a NULL name; one free(). `ret` (may be NULL):
 * {"agent","state","first":[],"refreshed":[],"missing":[],"options":[{"name","value"}]}; malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_agent_prepare(const struct pinfold_agent_options *options,
                                         struct pinfold_option **ret_options, char **ret, struct pinfold_error *error);
/* The command line for a prompt, NULL-terminated; one free(). */
PINFOLD_PUBLIC int pinfold_agent_argv(const struct pinfold_agent_options *options, char ***ret,
                                      struct pinfold_error *error);

/*
 * What this machine can do, with remedies, and what git would run from the repository around the current directory, as text or
 * JSON; `verify` also tries to break a default box. malloc()ed.
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
/* Key number `i`, counted from 0; NULL behind the last. Read by pointer alone: the struct may grow at its end. */
PINFOLD_PUBLIC const struct pinfold_option_info *pinfold_option_at(size_t i);
/*
 * The real path of the host's `path`, which a flag named `what` gave; also of one that is yet to be made. -EPERM: it leads over a
 * symbolic link that a box may have made. malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_path_judge(const char *what, const char *path, char **ret, struct pinfold_error *error);
/* JSON Schema (draft 2020-12) of the policy language; malloc()ed. */
PINFOLD_PUBLIC int pinfold_policy_schema(char **ret, struct pinfold_error *error);
/*
 * Says that the project policy `path` (a file, or a directory that holds .pinfold/policy.yaml) may also loosen: bound to
 * its present content and its real path. `withdraw` takes that back. `ret` gets a sentence; malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_trust(const char *path, int withdraw, char **ret, struct pinfold_error *error);
/* Writes the audit events kept so far to descriptor `fd`, one JSON object per line; `follow`: and those to come. */
PINFOLD_PUBLIC int pinfold_log(int fd, int follow, struct pinfold_error *error);

/*
 * Answers as values. The functions above that answer in JSON have a twin here that hands out the same as a report: values under the
 * same names, to be read without a JSON parser. A report belongs to the caller (pinfold_report_free, which takes NULL); values, texts
 * and names belong to their report or result, do not change, and are gone with it. NULL may be given for any value: there is
 * nothing in it.
 */
struct pinfold_report;
PINFOLD_PUBLIC void pinfold_report_free(struct pinfold_report *report);
PINFOLD_PUBLIC const struct pinfold_value *pinfold_report_value(const struct pinfold_report *report);
PINFOLD_PUBLIC const char *pinfold_report_json(struct pinfold_report *report); /* in one line; "" without memory */

enum pinfold_value_type {
    PINFOLD_VALUE_NONE, /* null, or no value */
    PINFOLD_VALUE_BOOL,
    PINFOLD_VALUE_NUMBER,
    PINFOLD_VALUE_TEXT,
    PINFOLD_VALUE_LIST,
    PINFOLD_VALUE_OBJECT
};
PINFOLD_PUBLIC enum pinfold_value_type pinfold_value_type(const struct pinfold_value *value);
/* The member of an object; NULL when there is none. */
PINFOLD_PUBLIC const struct pinfold_value *pinfold_value_get(const struct pinfold_value *value, const char *name);
/* The entries of a list or an object, in their order. */
PINFOLD_PUBLIC const struct pinfold_value *pinfold_value_first(const struct pinfold_value *value);
PINFOLD_PUBLIC const struct pinfold_value *pinfold_value_next(const struct pinfold_value *value);
PINFOLD_PUBLIC size_t pinfold_value_count(const struct pinfold_value *value);
PINFOLD_PUBLIC const char *pinfold_value_name(const struct pinfold_value *value); /* of a member; else NULL */
/* UTF-8, or NULL when it is no text, or has a NUL in it and `ret_n` is NULL. */
PINFOLD_PUBLIC const char *pinfold_value_text(const struct pinfold_value *value, size_t *ret_n);
PINFOLD_PUBLIC int64_t pinfold_value_number(const struct pinfold_value *value); /* 0 when it is none */
PINFOLD_PUBLIC int pinfold_value_is_true(const struct pinfold_value *value);

PINFOLD_PUBLIC int pinfold_explain_report(struct pinfold_policy *policy, int show_values, struct pinfold_report **ret,
                                          struct pinfold_error *error);
/* Returns 1 as pinfold_doctor() does; there is a report then, too. */
PINFOLD_PUBLIC int pinfold_doctor_report(int verify, struct pinfold_report **ret, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_session_list_report(const struct pinfold_session_options *options,
                                               struct pinfold_report **ret, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_session_prune_report(int look, struct pinfold_report **ret, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_job_list_report(struct pinfold_session *session, struct pinfold_report **ret,
                                           struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_list_report(struct pinfold_session *session, const char *path,
                                            struct pinfold_report **ret, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_where_report(struct pinfold_session *session, const char *path,
                                             struct pinfold_report **ret, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_agent_list_report(struct pinfold_report **ret, struct pinfold_error *error);
/* What may stand in a policy by name: {"guarantees":[{"name","promises"}],"host_sets":["..."],"agents":["..."]}. */
PINFOLD_PUBLIC int pinfold_names_report(struct pinfold_report **ret, struct pinfold_error *error);

PINFOLD_PUBLIC const char *pinfold_version(void);

#ifdef __cplusplus
}
#endif
#endif
