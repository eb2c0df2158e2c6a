/*
 * libpinfold: run a command in a sandbox, from C.
 *
 * A call does not change the calling process: its signal handlers, umask, working directory, environment, children,
 * descriptors and threads stay as they were. Fill in `size` (sizeof the struct) in every struct that has it: later
 * versions may add members at the end of a struct, also of those that functions return by pointer.
 *
 * Unless its comment says otherwise, a function returns 0 or a negative errno and fills in struct pinfold_error; on
 * failure the `ret` arguments are not valid. A returned string belongs to the object it was read from, except where the
 * comment says malloc()ed: then the caller calls free(). Sizes are in bytes. Use one object from one thread at a time.
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
    PINFOLD_ERROR_POLICY,  /* the policy or an option is invalid */
    PINFOLD_ERROR_CANNOT,  /* this machine cannot enforce the policy */
    PINFOLD_ERROR_REFUSED, /* one of pinfold's own rules forbids it */
    PINFOLD_ERROR_SYSTEM,  /* a system call failed */
    PINFOLD_ERROR_BUG
};
/*
 * What went wrong, filled in by the call that failed: an errno (positive, or 0) and a sentence in English. This layout
 * never changes, so it needs no `size`; further details would get accessor functions.
 */
struct pinfold_error {
    enum pinfold_error_kind kind;
    int no;
    char text[1024];
};

struct pinfold_policy;
struct pinfold_result;

/* One option as on the command line, without its dashes: {"rw", "/data"}, {"net", "none"}. A flag without an
   argument has the value NULL. */
struct pinfold_option {
    const char *name, *value;
};

struct pinfold_policy_options {
    size_t size;
    const char *profile;      /* NULL: "workspace"; "": none */
    const char *const *files; /* policy files besides those of system, user and project; NULL-terminated, or NULL */
    const char *settings;     /* path of another program's settings file, or NULL */
    const struct pinfold_option *options; /* the last one has a NULL name; or NULL */
    const char *cwd; /* base of the workspace and of relative paths; NULL: the caller's working directory */
    int no_layers;   /* 1: ignore the policy files of system, user and project */
    /* the format of `settings`: "srt" (also if NULL), "dive", "mycode", "daycare" or "bwrap" */
    const char *settings_format;
    /* A complete policy in pinfold's language. If set, neither a profile nor a file is read; only `options` are
       added. */
    const char *text;
    /* the content to use instead of the file `settings`, whose name then appears in messages only */
    const char *settings_text;
    /*
     * Requests from somebody without authority, such as a model. They are like `options`, but one that would loosen the
     * policy made of all the rest is refused (PINFOLD_ERROR_REFUSED). Variables are not expanded. The last one has a
     * NULL name; or NULL.
     */
    const struct pinfold_option *wishes;
};

/* Reads the policy files and merges them. `options` may be NULL. Free the result with pinfold_policy_free(). */
PINFOLD_PUBLIC int pinfold_policy_load(const struct pinfold_policy_options *options, struct pinfold_policy **ret,
                                       struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_policy_free(struct pinfold_policy *policy);
/*
 * The merged policy in pinfold's language; malloc()ed. `how` is a set of bits. ORIGINS adds, as comments, where each
 * rule comes from. CONVERTED leaves out a workspace that was not set explicitly, and writes ${WORKSPACE} for paths in
 * it. ADDED is for a policy made from settings alone (profile ""): it prints only what they add to the profile
 * `workspace`.
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
 * Describes what a run would do: steps, requirements, losses, digest. malloc()ed. COMMAND: only the command line,
 * quoted for a shell, of an engine that is another program. BRIEF: the text without the steps and with the names of the
 * built-in profiles only counted.
 */
PINFOLD_PUBLIC int pinfold_explain(struct pinfold_policy *policy, enum pinfold_explain_format format, int show_values,
                                   char **ret, struct pinfold_error *error);

/*
 * If no engine here can enforce the policy (pinfold_explain() failed with PINFOLD_ERROR_CANNOT): the plan as far as it
 * could be made, with the reasons for the refusal. -ENOENT if there is none. malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_explain_refused(struct pinfold_policy *policy, enum pinfold_explain_format format,
                                           int show_values, char **ret, struct pinfold_error *error);

/* Messages for a person about a run: one sentence or line per call, without a newline. */
enum pinfold_say {
    PINFOLD_SAY_HEADER,  /* before the command: engine, network, workspace, limits */
    PINFOLD_SAY_NOTE,    /* after it: a limit that was reached or a denial, with its remedy */
    PINFOLD_SAY_CLOSING, /* last: exit status, time, memory, denials */
    PINFOLD_SAY_WARNING  /* before the command: it runs without a box; always show it */
};

/* The box wants to reach a host that no rule names. The connection waits for the answer. */
struct pinfold_question {
    size_t size;         /* of the members that are filled in */
    const char *target;  /* "api.example.com:443", "[2001:db8::1]:443"; canonical, as in a rule */
    const char *how;     /* "transparent", "connect", "http", "socks" */
    const char *command; /* the name of the process (comm in proc(5)), printable ASCII; "" if unknown */
    uint32_t pid;        /* in the box's process namespace; 0 if unknown */
    uint32_t timeout_ms; /* after this time the answer is taken as no (policy: net.ask_time) */
};
enum pinfold_answer {
    PINFOLD_NO,     /* deny this connection */
    PINFOLD_YES,    /* allow this connection */
    PINFOLD_NEVER,  /* deny this target for the rest of the run */
    PINFOLD_ALWAYS, /* allow this target for the rest of the run */
};

struct pinfold_denial;
struct pinfold_run_options {
    size_t size;
    const char *const
        *argv; /* NULL-terminated; empty or NULL: the image's own (ENTRYPOINT and CMD), for engines with images */
    const char *const *env; /* from which the policy selects variables; NULL: the caller's */
    const char *cwd;        /* a path in the box; NULL: the policy's */
    /* -1: /dev/null for stdin. Output descriptors are ignored with `capture`. Used only if `use_fds` is set;
       otherwise the box gets the caller's 0, 1 and 2 */
    int stdin_fd, stdout_fd, stderr_fd;
    int use_fds;
    int capture;                                                         /* put stdout and stderr into the result */
    size_t capture_max;                                                  /* bytes kept of each stream; 0: 16 MiB */
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence); /* called during pinfold_run(), or NULL */
    void *say_ctx;
    /*
     * Set this if the calling program is a command line that only waits for the box: its terminal becomes raw and is
     * restored at the end; SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH and SIGTSTP are forwarded. Works only in a
     * program that pinfold is linked into statically. The shared library returns -EOPNOTSUPP: start the command line
     * from pinfold_wrap() instead.
     */
    int foreground;
    /*
     * Decides where no rule of `net: allow` matches. NULL: as the policy's net.ask says, or no. It is called on the
     * thread of pinfold_run(), and no output is relayed meanwhile; if an answer may take long, use control_fd.
     */
    enum pinfold_answer (*ask)(void *ctx, const struct pinfold_question *question);
    void *ask_ctx;
    /* A connected stream socket for JSON lines: changes of rules while the command runs, and questions (CONTROL
       CONNECTION in pinfold-network(7)). The caller keeps and closes it. 0: none. */
    int control_fd;
    /* Do not wait for child processes that only clean up after the box. The caller waits for them with __WALL
       (wait(2)), or exits soon, so that they are reparented. */
    int leave;
    /* More runs under this policy follow, one after the other: a box without a network leaves its network namespace
       to the next one if no socket remains in it. With `leave`, the caller must have waited before the next run. */
    int keep_network;
    /* With `capture`: called with output of stream 1 or 2 as it arrives, on the thread of pinfold_run(); or NULL. */
    void (*output)(void *ctx, int which, const char *bytes, size_t n);
    void *output_ctx;
    /*
     * Copy-on-write: the command sees the workspace, and its changes go to a layer (pinfold_layer_diff_report() and
     * following). "": a layer of its own, removed at the end if nothing was changed; otherwise the name of one that stays and
     * is taken up by further runs. NULL: changes go to the workspace.
     */
    const char *cow;
    /* The caller's own name for this command, at most 128 bytes without control characters: `caller_id` of its result and of
       its events in the audit log. NULL: none. */
    const char *id;
    /* With `capture`: also look for refusals in the text of a command that succeeded, and in both streams; up to 64 of them, marked
       `guess`. */
    int guess_all;
    /* Where events go besides the audit log, as they happen: "fd:N" (JSON lines), "otlp:fd:N" (OpenTelemetry's logs in JSON, one request a
       line), "otlp:http://127.0.0.1:4318/v1/logs" (a collector on this machine, once the box has ended) or "journald". NULL:
       nowhere. The shared library takes no descriptors here. */
    const char *events;
    /* Called for each refusal as it is found, on the thread of pinfold_run(); its texts are valid during the call. NULL: not. */
    void (*denied)(void *ctx, const struct pinfold_denial *denial);
    void *denied_ctx;
    /* A kept layer (ID, the beginning of one, or name) that the new layer of `cow` stands on: the command sees the workspace
       through it, and it is not changed. With `cow` NULL a layer without a name is made. NULL: none. */
    const char *cow_from;
    /*
     * With `ask`: it is also called for a write to a regular file that is there and that only its place keeps the box from
     * writing: `how` is "write", `target` its path. What it allows is opened by pinfold, this one time, as the object that
     * `target` named when the question was made. Never called for what a rule hides, protects or guards, and for files with
     * several names. With `cow` it is the file itself that is written, not the layer. Nobody is asked about commands in sessions:
     * their writes are refused as always.
     */
    int ask_writes;
};
PINFOLD_PUBLIC int pinfold_run(struct pinfold_policy *policy, const struct pinfold_run_options *options,
                               struct pinfold_result **ret, struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_result_free(struct pinfold_result *result);

/*
 * The argument vector that runs `argv` under `policy`, for callers that call execve() themselves. It contains the whole
 * policy as flags and depends on no file. NULL-terminated; one allocation, free it with one free().
 */
PINFOLD_PUBLIC int pinfold_wrap(struct pinfold_policy *policy, const char *const *argv, char ***ret,
                                struct pinfold_error *error);

enum pinfold_end { PINFOLD_EXITED, PINFOLD_SIGNALED, PINFOLD_TIMED_OUT, PINFOLD_LIMIT, PINFOLD_SANDBOX };
PINFOLD_PUBLIC enum pinfold_end pinfold_result_end(const struct pinfold_result *result);
PINFOLD_PUBLIC int pinfold_result_code(const struct pinfold_result *result);   /* exit status, or signal number */
PINFOLD_PUBLIC int pinfold_result_status(const struct pinfold_result *result); /* the exit status of `pinfold run` */
/* The signal with which a command line should now kill itself, because the command died of Ctrl-C or the quit key;
   or 0. */
PINFOLD_PUBLIC int pinfold_result_reraise(const struct pinfold_result *result);
/* Captured output, NUL-terminated; its length goes to *ret_n if that is not NULL. */
PINFOLD_PUBLIC const char *pinfold_result_stdout(const struct pinfold_result *result, size_t *ret_n);
PINFOLD_PUBLIC const char *pinfold_result_stderr(const struct pinfold_result *result, size_t *ret_n);
PINFOLD_PUBLIC const char *pinfold_result_json(const struct pinfold_result *result); /* the whole result as JSON */
/*
 * The result as values, so that the caller needs no JSON parser: the members of pinfold_result_json() under the same
 * names. Values live as long as the result. NULL: the result has none, or there is no memory. In the structs below, a
 * text that the result does not have is NULL.
 */
struct pinfold_value;
PINFOLD_PUBLIC const struct pinfold_value *pinfold_result_value(const struct pinfold_result *result);

struct pinfold_summary {
    size_t size;
    const char *ended; /* "exit", "signal", "timeout", "limit", "sandbox"                             */
    const char *limit; /* the limit that ended it: "memory", "processes", "disk", "output", "timeout"           */
    const char *error; /* why the command could not be executed                                       */
    const char *engine, *session, *policy_digest, *plan_digest;
    uint64_t wall_ms, cpu_ms, peak_bytes, read_bytes, written_bytes;
    uint64_t left_not_kept, allowed_not_kept, events_lost; /* entries that did not fit into the lists below */
    int stdout_truncated, stderr_truncated;
};
PINFOLD_PUBLIC void pinfold_result_summary(const struct pinfold_result *result, struct pinfold_summary *ret);

/* The lists of a result: fills in entry `i`, counted from 0; the caller has set `size`. Returns 1, or 0 after the last. */
struct pinfold_denial {
    size_t size;
    const char *kind, *action, *target; /* "network", "connect", "pypi.org:443" */
    const char *rule, *origin;          /* the rule that denied it, and where that rule was written */
    const char *how, *command, *address, *why;
    uint32_t pid; /* in the box; 0: unknown */
    /* The process's own words, without what looks like a secret; where the target is on the host, if it has another name there; what would
       allow it: an option, or words; "EROFS". "": unknown. */
    const char *command_line, *host, *remedy, *error;
    uint64_t count; /* how often; 0: once */
    int monitor, guess;
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
/* Something that the box left behind and that the user should look at. */
struct pinfold_leftover {
    size_t size;
    const char *kind, *path, *what;
};
PINFOLD_PUBLIC int pinfold_result_left(const struct pinfold_result *result, size_t i, struct pinfold_leftover *ret);
/* The `i`th guarantee that was enforced, and the means (`ret_by` may be NULL); the `i`th that was given up. NULL after the
   last. */
PINFOLD_PUBLIC const char *pinfold_result_enforced(const struct pinfold_result *result, size_t i, const char **ret_by);
PINFOLD_PUBLIC const char *pinfold_result_lost(const struct pinfold_result *result, size_t i);
/* The `i`th mechanism whose denials cannot be listed; the `i`th engine that was not chosen, and why. NULL after the last. */
PINFOLD_PUBLIC const char *pinfold_result_not_seen(const struct pinfold_result *result, size_t i);
PINFOLD_PUBLIC const char *pinfold_result_not_taken(const struct pinfold_result *result, size_t i,
                                                    const char **ret_why);

/*
 * Further lines for the user, or "": that a persistent shell had to be restarted; for a command in a session whose
 * output was not captured, how it ended, limits and denials.
 */
PINFOLD_PUBLIC const char *pinfold_result_note(const struct pinfold_result *result);

/*
 * A session is a named box that stays until it is stopped; commands run in it. A session daemon keeps each one alive. A
 * name is any text of 1 to 4096 bytes without NUL and is never used as a path. A struct pinfold_session is only a
 * connection: freeing it does not stop the session.
 */
struct pinfold_session;

struct pinfold_session_options {
    size_t size;
    const char *name;
    /* If a session of this name runs with another policy or image: 0: fail with -ESTALE; 1: stop it and start a new
       one, which keeps the stored files. */
    int recreate;
    const char *scope; /* separates the names of several owners (instances of a server); NULL: the user's own */
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence); /* called when a session is started, or NULL */
    void *say_ctx;
    /* As of struct pinfold_run_options: the session writes to a layer, held until it ends; its id is "layer" in
       pinfold_session_list(). -ESTALE if the session runs without one, or with one of another name. */
    const char *cow;
    /* Where its commands start, as a path in the box; NULL: as the policy says. For a session that is started. */
    const char *cwd;
    /* As of struct pinfold_run_options. -ESTALE if the session runs with a layer that does not stand on this one. */
    const char *cow_from;
};
/* Finds the session, or starts it if there is none. Concurrent callers get the same session. */
PINFOLD_PUBLIC int pinfold_session_ensure(struct pinfold_policy *policy, const struct pinfold_session_options *options,
                                          struct pinfold_session **ret, struct pinfold_error *error);
/* Finds a running session and reads no policy. -ENOENT if there is none; the message says what happened to it. */
PINFOLD_PUBLIC int pinfold_session_open(const struct pinfold_session_options *options, struct pinfold_session **ret,
                                        struct pinfold_error *error);
PINFOLD_PUBLIC void pinfold_session_free(struct pinfold_session *session);
/* Ends the session and all its processes; with `remove`, deletes its stored files, too. -ENOENT if there is none. */
PINFOLD_PUBLIC int pinfold_session_stop(const struct pinfold_session_options *options, int remove,
                                        struct pinfold_error *error);
/* All sessions of the user (`options` NULL), or all details of one, as in `pinfold session list|show --json`.
   malloc()ed. */
PINFOLD_PUBLIC int pinfold_session_list(const struct pinfold_session_options *options, char **ret,
                                        struct pinfold_error *error);

/*
 * Removes what sessions and runs with a dead owner left behind (boxes, containers, volumes, directories) and the caches
 * of projects whose directory is gone. `ret` is JSON, malloc()ed: "removed", "removed_from_engines", "kept" (sessions
 * with storage whose owner is dead, each said once, with the reason), "caches" ("workspace", "bytes" freed, "whole"),
 * "not_asked" (container daemons that do not answer), "not_asked_news" (those of them that no earlier call reported:
 * "why", "note", and the file to delete so that pinfold forgets the daemon).
 */
PINFOLD_PUBLIC int pinfold_session_prune(char **ret, struct pinfold_error *error);
/* The same JSON without removing anything; "bytes" and "whole" are null. malloc()ed. */
PINFOLD_PUBLIC int pinfold_session_left(char **ret, struct pinfold_error *error);

/*
 * Adds rules to the session's network (`net: allow`), written as in the options `allow` and `deny`; each list is
 * NULL-terminated, or NULL. Either all are added or none. What the policy denies stays denied. The rules last as long
 * as the session.
 */
PINFOLD_PUBLIC int pinfold_session_update(struct pinfold_session *session, const char *const *allow,
                                          const char *const *deny, struct pinfold_error *error);

struct pinfold_exec_options {
    size_t size;
    const char *const *argv; /* NULL-terminated; with `shell`: one element, the text of the command */
    const char *const *env;  /* "NAME=value" in addition to the session's variables; NULL-terminated, or NULL */
    const char *cwd;         /* a path in the box; NULL: the session's */
    const char *shell;       /* a persistent shell of the session, started on first use; NULL: no shell */
    int stdin_fd, stdout_fd, stderr_fd; /* as in struct pinfold_run_options */
    int use_fds;
    int capture;
    size_t capture_max;
    uint32_t timeout_ms; /* 0: none */
    /* 1: give the command a terminal; 2: only for those of the three descriptors that are terminals. Needs
       `foreground` */
    int tty;
    int foreground; /* as in struct pinfold_run_options */
    int cancel_fd;  /* once this is readable or hung up, the command is ended as by a timeout; 0: none */
    uint64_t memory_max, processes_max; /* for this command, within the session's limits; 0: none */
    /* with capture: called with output of stream 1 or 2 as it arrives, or NULL */
    void (*output)(void *ctx, int which, const char *bytes, size_t n);
    void *ctx;
    const char
        *id; /* as in struct pinfold_run_options, for the result and the events of this process; not with `shell` */
};
/* Runs one command in the session. *ret is as from pinfold_run(). -ESTALE: the session no longer exists. */
PINFOLD_PUBLIC int pinfold_exec(struct pinfold_session *session, const struct pinfold_exec_options *options,
                                struct pinfold_result **ret, struct pinfold_error *error);

/* Jobs are background commands. They outlive the caller and end with the session. Their output is kept in a bounded
   log. */
PINFOLD_PUBLIC int pinfold_job_start(struct pinfold_session *session, const struct pinfold_exec_options *options,
                                     uint32_t *ret_job, struct pinfold_error *error);
/* JSON, malloc()ed: {"jobs":[{"job":1,"argv":[...],"state":"running"|"ended","result":{...}|null}]} */
PINFOLD_PUBLIC int pinfold_job_list(struct pinfold_session *session, char **ret, struct pinfold_error *error);
/*
 * Copies output of the job from byte `at` on into `to`, at most `room` bytes, both streams in the order of arrival.
 * Returns the number of bytes; 0 means nothing new yet. *ret_first is the oldest byte still kept (if it is greater than
 * `at`, nothing is copied); *ret_ended is 1 once the job has ended and all of its output was read.
 */
PINFOLD_PUBLIC int64_t pinfold_job_output(struct pinfold_session *session, uint32_t job, uint64_t at, char *to,
                                          size_t room, uint64_t *ret_first, int *ret_ended,
                                          struct pinfold_error *error);
/* Sends a signal to the job and its child processes. */
PINFOLD_PUBLIC int pinfold_job_kill(struct pinfold_session *session, uint32_t job, int signal,
                                    struct pinfold_error *error);

struct pinfold_attach_options {
    size_t size;
    uint32_t job;
    uint64_t from;  /* show its output from this byte on */
    int watch_only; /* do not pass on what is typed */
};
/*
 * Connects the caller's terminal to the job until the job ends or the user detaches with Ctrl-P Ctrl-Q (-EINTR). Returns
 * the job's status as pinfold_result_status() does. If the session ended too, `error` says why. `ret_notes` (may be NULL)
 * gets what was denied to a job that failed, one sentence per line, or NULL; malloc()ed. The shared library returns
 * -EOPNOTSUPP, as for `foreground`.
 */
PINFOLD_PUBLIC int pinfold_job_attach(struct pinfold_session *session, const struct pinfold_attach_options *options,
                                      char **ret_notes, struct pinfold_error *error);
/*
 * Files of a session, named as in the box. They are opened from outside under the session's policy: what a command in
 * the box may not read or write is refused here, too, and no symbolic link or race leads out of the box's mounts.
 */
/* At most `max` bytes from offset `at`; malloc()ed, their number in *ret_n. *ret_size, if not NULL, gets the size of
   the file. */
PINFOLD_PUBLIC int pinfold_file_read(struct pinfold_session *session, const char *path, uint64_t at, size_t max,
                                     char **ret, size_t *ret_n, uint64_t *ret_size, struct pinfold_error *error);
/* Replaces the whole file atomically. `mode` is for a new file; an existing one keeps mode and owner. `parents`:
   creates missing directories. */
PINFOLD_PUBLIC int pinfold_file_write(struct pinfold_session *session, const char *path, const char *bytes, size_t n,
                                      unsigned mode, int parents, struct pinfold_error *error);
/*
 * The same as streams: get copies the file to `fd`, put copies from `fd` until its end. remove with `recursive` removes
 * a directory and all below it.
 */
PINFOLD_PUBLIC int pinfold_file_get(struct pinfold_session *session, const char *path, int fd,
                                    struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_put(struct pinfold_session *session, const char *path, int fd, unsigned mode,
                                    int parents, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_remove(struct pinfold_session *session, const char *path, int recursive,
                                       struct pinfold_error *error);
/*
 * Copies a file or a tree between host and box; symbolic links are copied as links. If the target is a directory, the
 * copy is put into it. `ret` (or NULL) gets JSON, malloc()ed: {"files":1,"bytes":2,"left_out":0}; left out is
 * everything that is not a file, directory or symbolic link. Out of a box all is copied but what the box cannot read; then an
 * error names that.
 */
PINFOLD_PUBLIC int pinfold_file_copy_in(struct pinfold_session *session, const char *host, const char *box, char **ret,
                                        struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_file_copy_out(struct pinfold_session *session, const char *box, const char *host, char **ret,
                                         struct pinfold_error *error);
/* JSON, malloc()ed:
       {"entries":[{"name":"a","type":"file|directory|link|other","size":1,"mode":"0644","modified":"...","target":null}]} */
PINFOLD_PUBLIC int pinfold_file_list(struct pinfold_session *session, const char *path, char **ret,
                                     struct pinfold_error *error);
/*
 * What a path leads to once symbolic links are resolved, as JSON, malloc()ed:
 * {"path":"/canonical","type":"file|directory|other|none",
 * "mode":"0644","size":1,"modified_ns":2,"device":3,"inode":4,"mounted":true,"writable":true}; for "none" only the
 * type. Device and inode are those of stat(2) on the host. "mounted": it is a mount point of the box.
 */
PINFOLD_PUBLIC int pinfold_file_where(struct pinfold_session *session, const char *path, char **ret,
                                      struct pinfold_error *error);
/* Translates between paths of the host and of the box by the session's mounts. A path outside of them is returned as
   it is. malloc()ed. */
PINFOLD_PUBLIC int pinfold_path_to_box(struct pinfold_session *session, const char *path, char **ret,
                                       struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_path_to_host(struct pinfold_session *session, const char *path, char **ret,
                                        struct pinfold_error *error);

/*
 * Agents: programs that answer prompts, known by name (docs/AGENTS.md). The library knows where their login and state
 * are, what their box needs and how to start them.
 */
struct pinfold_agent_options {
    size_t size;
    const char *agent;     /* "claude", "codex": a name of pinfold_agent_list() */
    const char *state;     /* prepare: absolute path of the directory for this session's state; created if missing */
    const char *home;      /* home of the box's user, as a path in the box; NULL: the caller's */
    const char *directory; /* argv: its working directory, as a path in the box */
    const char *prompt;
    const char *profile, *model; /* NULL: the agent's default */
    const char *response;        /* file for its last answer, as a path in the box; NULL: only standard output */
    int resume;                  /* continue the last conversation of this directory */
    int unattended;              /* never ask for permission: the box is the limit */
};
/* JSON, malloc()ed:
       {"agents":[{"name","title","state":[...],"servers":[...],"prompt":true,"start":true,"profile":true,"model":true,"resume":true,
       "response":"option|prompt|none","program","path":"..."|null,"on_path":true,"not_installed":"..."|null,
       "login":"there|missing|none","login_files":[...],"login_variables":[...]}],"wrong":[{"name","error"}]};
   wrong: definitions of the person's own that cannot be used.
   the person's own definitions are among them. path: where the program was found on this machine, on PATH or beside it;
   not_installed: else where it was looked for, and how to install it. login: whether a file of the login is on this machine, or a variable is set */
PINFOLD_PUBLIC int pinfold_agent_list(char **ret, struct pinfold_error *error);
/*
 * Copies the host's login into `state`: everything the first time, later only the login. The host's files are not
 * changed. `ret_options` (or NULL): the options the box needs, the last one with a NULL name; one free(). `ret` (or
 * NULL): JSON, malloc()ed: {"agent","state","first":[],"refreshed":[],"missing":[],"options":[{"name","value"}]}.
 */
PINFOLD_PUBLIC int pinfold_agent_prepare(const struct pinfold_agent_options *options,
                                         struct pinfold_option **ret_options, char **ret, struct pinfold_error *error);
/* The command line for a prompt, NULL-terminated; one free(). */
PINFOLD_PUBLIC int pinfold_agent_argv(const struct pinfold_agent_options *options, char ***ret,
                                      struct pinfold_error *error);

/*
 * Reports, as text or JSON, what this machine can enforce, with remedies, and which programs git would run from the
 * repository around the current directory. `verify` also attacks a default box. malloc()ed. Returns 1 if no box can be
 * created here or an attack succeeded, otherwise 0 or a negative errno.
 */
PINFOLD_PUBLIC int pinfold_doctor(enum pinfold_explain_format format, int verify, char **ret,
                                  struct pinfold_error *error);

/*
 * The keys of the policy. Those with a name are the options of struct pinfold_option and the flags of `pinfold run`;
 * help, completion and manual use the same table. `name` is NULL if a key exists in policy files only.
 */
struct pinfold_option_info {
    const char *name;    /* "memory" */
    const char *value;   /* what stands for the value in the manual ("SIZE"); NULL: takes none */
    const char *choices; /* "none|allow|host", or NULL */
    const char *key;     /* its name in a policy file: "limits.memory" */
    const char *help;    /* one sentence */
    int takes_value, repeats;
};
/* Key number `i`, counted from 0; NULL after the last. Use it only by pointer: the struct may grow at its end. */
PINFOLD_PUBLIC const struct pinfold_option_info *pinfold_option_at(size_t i);
/*
 * The real path of `path` on the host, which was given with the flag `what`; it need not exist yet. -EPERM: it leads
 * through a symbolic link that a box may have made. malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_path_judge(const char *what, const char *path, char **ret, struct pinfold_error *error);
struct pinfold_report;
/*
 * Copy-on-write layers (pinfold run --cow): what a box changed in its workspace waits in a layer of its own, is looked at, applied
 * and taken back. A layer is named by its ID, the beginning of one, or its name.
 */
struct pinfold_layer_options {
    size_t size;
    const char *layer;        /* NULL: the newest one of the workspace around `cwd` */
    const char *cwd;          /* NULL: the process's */
    const char *const *paths; /* only these and what is below them, relative to `cwd` or absolute; NULL or empty: all */
    int all;                  /* apply: without paths, everything; otherwise it is an error */
    const char
        *to; /* apply, undo: in this directory instead of the workspace, relative to `cwd` or absolute; or NULL */
    /* apply: only these changes and hunks of pinfold_layer_hunks_report(), NULL-terminated: "WORD" or "WORD:1,3"; NULL: whole
       changes, as `paths` says */
    const char *const *choices;
    int chosen; /* patch: only what apply would take, with `paths` or `all` as there */
    /* apply: the name of a new branch that gets a commit of the changes, while the work tree stays as it is; or NULL */
    const char *branch;
    /* apply: merge texts that the host has changed, too, where it is known what the box began with. 1: those without a conflict;
       2: all, with conflicts marked in the file */
    int merge;
};
/*
 * What the layer changes:
 *     {"layer":{"id","name"|null,"workspace","created","from"|null},"interrupted":false,"changes":[{"path","kind":"added|edited|deleted",
 *      "what":["content","mode","type","attributes","owner"],"alarms":["guarded","link-out","special","setuid",
 *      "executable","git","link-place","hooks"],"waits":false,"old":{"type","mode","size","target"}|null,"new":...,"conflict":null|"..."}],
 *      "git":["sentence"]}
 * A path that is no UTF-8 also has "path_base64". "waits": apply wants this path named itself. "conflict": what the host did
 * meanwhile, or that a layer below ("from") has not landed there. A new file with the bytes of a deleted one has "renamed_from", that one "renamed_to". `count` adds "lines_added" and "lines_removed" of texts. -ENOENT: there is no such layer.
 */
PINFOLD_PUBLIC int pinfold_layer_diff_report(const struct pinfold_layer_options *options, int count,
                                             struct pinfold_report **ret, struct pinfold_error *error);
/*
 * Writes a patch to `fd` that `git apply` accepts. The report says what is in it, and what a patch cannot hold or, with `chosen`,
 * apply would not take: {"layer":...,"done":[{"path"}],"left_out":[{"path","why"}]}. Nothing is applied.
 */
PINFOLD_PUBLIC int pinfold_layer_patch(const struct pinfold_layer_options *options, int fd, struct pinfold_report **ret,
                                       struct pinfold_error *error);
/*
 * Runs `tool` (for a shell) in a box of its own with two arguments, directories of copies: "old" has what the workspace has, "new" what
 * the layer has. It gets the caller's terminal, as with `foreground`; the shared library returns -EOPNOTSUPP. The report:
 * {"layer":...,"status":0,"done":[{"path"}],"left_out":[{"path","why"}]}
 */
PINFOLD_PUBLIC int pinfold_layer_tool(const struct pinfold_layer_options *options, const char *tool,
                                      struct pinfold_report **ret, struct pinfold_error *error);
/*
 * What can be applied in parts:
 *     {"layer":...,"changes":[{"path","kind","word","whole":null|"why","text":null|"...","hunks":["@@ ..."]}],
 *      "refused":[{"path","why"}]}
 * A text that is edited has hunks, and everything else is applied whole; "text" is its patch then, if it is text. "word" stands for
 * this change as it is now. What is below .git is only there if `paths` names it.
 */
PINFOLD_PUBLIC int pinfold_layer_hunks_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                                              struct pinfold_error *error);
/*
 * Applies changes to the workspace, each path completely or not at all, and completes first what was interrupted. What the
 * host changed meanwhile is refused, and guarded names unless one of `paths` is that very path:
 *     {"layer":...,"resumed":false,"number":1,"done":[{"path"}],"refused":[{"path","why"}],"git":["sentence"]}
 * While a box uses the layer it is refused with -EBUSY, unless that is a session, which is told afterwards.
 * With `to` a copy or another checkout of the workspace gets the changes, where a path is there what the box began with; undo with the
 * same `to` takes them back.
 */
PINFOLD_PUBLIC int pinfold_layer_apply_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                                              struct pinfold_error *error);
/* Takes back the apply `number`, or with 0 the last one; nothing of it if the host has changed any of the paths since. The
   report is of the same form. */
PINFOLD_PUBLIC int pinfold_layer_undo_report(const struct pinfold_layer_options *options, uint64_t number,
                                             struct pinfold_report **ret, struct pinfold_error *error);
/*
 * All layers: {"layers":[{"id","name"|null,"workspace","created","from"|null,"state":"kept|used|unsynced|doubtful","bytes","applies","undo_bytes"}]}. "unsynced": its
 * box was killed, and the machine has not stopped since; "doubtful": it has, so files may be damaged. "bytes" on the disk. "applies":
 * those that undo can take back, and "undo_bytes" what is kept for that.
 */
PINFOLD_PUBLIC int pinfold_layers_report(struct pinfold_report **ret, struct pinfold_error *error);
/*
 * Removes layers that change nothing any more (empty, or all of it has landed and that is more than a day ago), and with `older` those that
 * were used and applied last that many seconds ago or earlier. Never one that a box uses, that another stands on, or that is half
 * applied. `look`: removes nothing. {"removed":[{"id","name"|null,"workspace","bytes","why":"empty|landed|old"}],"kept":1}
 */
PINFOLD_PUBLIC int pinfold_layers_prune_report(uint64_t older, int look, struct pinfold_report **ret,
                                               struct pinfold_error *error);
/* Removes the layer with its changes and what undo kept: {"layer":...}. Refused while a box uses it, another layer stands on
   it, or an apply of it is not finished. */
PINFOLD_PUBLIC int pinfold_layer_discard_report(const struct pinfold_layer_options *options,
                                                struct pinfold_report **ret, struct pinfold_error *error);
/* JSON Schema (draft 2020-12) of the policy language; malloc()ed. */
PINFOLD_PUBLIC int pinfold_policy_schema(char **ret, struct pinfold_error *error);
/*
 * Allows the project policy `path` (a file, or a directory that has .pinfold/policy.yaml) to loosen the policy, too.
 * Trust is bound to its real path and its present content. `withdraw` revokes it. `ret` gets a sentence, malloc()ed.
 */
PINFOLD_PUBLIC int pinfold_trust(const char *path, int withdraw, char **ret, struct pinfold_error *error);
/* Writes the audit events recorded so far to descriptor `fd`, one JSON object per line; with `follow`, also those to
   come. */
PINFOLD_PUBLIC int pinfold_log(int fd, int follow, struct pinfold_error *error);
struct pinfold_log_options {
    size_t size;
    int fd;              /* where to write */
    int follow;          /* 1: also events to come */
    const char *session; /* only those of the session of this name; NULL: all */
    const char
        *since; /* only those since "90s", "10m", "2h", "3d" ago, or a time in UTC ("2026-01-31T12:00"); NULL: all */
    int verify; /* 1: writes one sentence about damaged and missing events instead, and returns 1 if there are any */
    int head;   /* 1: writes one word for what the log holds now instead; kept elsewhere, it is for `head_was` */
    const char
        *head_was; /* with verify: such a word; also finds that the log was cut off or written anew. NULL: none */
};
/* The same, selected. -ENOENT: there is no session of that name, and the log has no event of one. */
PINFOLD_PUBLIC int pinfold_log_select(const struct pinfold_log_options *options, struct pinfold_error *error);

/*
 * Reports: for each function above that returns JSON there is one here that returns the same as values, under the same
 * names. The caller frees a report with pinfold_report_free(), which accepts NULL. Values, texts and names belong to their
 * report or result and are valid as long as it is. Every function accepts NULL as a value: an empty one.
 */
struct pinfold_report;
PINFOLD_PUBLIC void pinfold_report_free(struct pinfold_report *report);
PINFOLD_PUBLIC const struct pinfold_value *pinfold_report_value(const struct pinfold_report *report);
PINFOLD_PUBLIC const char *pinfold_report_json(struct pinfold_report *report); /* one line; "" if there is no memory */

enum pinfold_value_type {
    PINFOLD_VALUE_NONE, /* null, or no value */
    PINFOLD_VALUE_BOOL,
    PINFOLD_VALUE_NUMBER,
    PINFOLD_VALUE_TEXT,
    PINFOLD_VALUE_LIST,
    PINFOLD_VALUE_OBJECT
};
PINFOLD_PUBLIC enum pinfold_value_type pinfold_value_type(const struct pinfold_value *value);
/* A member of an object; NULL if there is none of that name. */
PINFOLD_PUBLIC const struct pinfold_value *pinfold_value_get(const struct pinfold_value *value, const char *name);
/* The entries of a list or an object, in order; NULL after the last. */
PINFOLD_PUBLIC const struct pinfold_value *pinfold_value_first(const struct pinfold_value *value);
PINFOLD_PUBLIC const struct pinfold_value *pinfold_value_next(const struct pinfold_value *value);
PINFOLD_PUBLIC size_t pinfold_value_count(const struct pinfold_value *value);
PINFOLD_PUBLIC const char *pinfold_value_name(const struct pinfold_value *value); /* of a member; otherwise NULL */
/* UTF-8. NULL if it is not a text, or if it contains NUL and `ret_n` is NULL. */
PINFOLD_PUBLIC const char *pinfold_value_text(const struct pinfold_value *value, size_t *ret_n);
PINFOLD_PUBLIC int64_t pinfold_value_number(const struct pinfold_value *value); /* 0 if it is not a number */
PINFOLD_PUBLIC int pinfold_value_is_true(const struct pinfold_value *value);

/*
 * Would a box of this policy be allowed `action` on `target`, and by what? `action`: read, write, create, exec (a path in
 * the box; a name is looked up in its PATH), connect (HOST:PORT or the path of a socket), signal (a process id of the
 * host). `action` "last", without a target: the last refusal in the audit log of a box of this policy's workspace.
 * Nothing is started. Returns 0 if it is allowed, 1 if it is refused, 2 if that depends on what cannot be known
 * before; with a report. `policy` NULL, in a box: the pinfold outside of it is asked about that box, and tells what a
 * box may know.
 */
PINFOLD_PUBLIC int pinfold_why(struct pinfold_policy *policy, const char *action, const char *target,
                               struct pinfold_report **ret, struct pinfold_error *error);
PINFOLD_PUBLIC int pinfold_explain_report(struct pinfold_policy *policy, int show_values, struct pinfold_report **ret,
                                          struct pinfold_error *error);
/* Returns 1 like pinfold_doctor(), with a report. */
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
/* Names that a policy can use: {"guarantees":[{"name","promises"}],"host_sets":["..."],"agents":["..."]}. */
PINFOLD_PUBLIC int pinfold_names_report(struct pinfold_report **ret, struct pinfold_error *error);

PINFOLD_PUBLIC const char *pinfold_version(void);

#ifdef __cplusplus
}
#endif
#endif
