/*
 * The program srt: its settings as a policy, the command in a box of it, and srt's exit statuses. It uses pinfold.h
 * as any other program would.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "srt/srt.h"

#define MEMORY_MAX (64u << 20)

bool srt_named(const char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    return name && same(slash ? slash + 1 : name, "srt");
}

struct srt_told {
    bool debug;
    struct buf notes; /* lines about what was refused, each with a NUL; they explain a failure, and wait for it */
};

/* A workspace that the settings do not name is read-only; the key is the same as for other places. */
static bool add_workspace(struct buf *notes, const char *sentence)
{
    const char *end = strstr(sentence, "' failed: the workspace is read-only in this box ("),
               *name = strchr(sentence, '\'');
    if (!end || !name || name >= end)
        return false;
    name++;
    const char *slash = memrchr(name, '/', (size_t)(end - name));
    buf_put(notes, sentence, (size_t)(end - sentence));
    buf_text(notes, "' failed: it is read-only in the box; allow with filesystem.allowWrite: ");
    buf_put(notes, name, slash && slash > name ? (size_t)(slash - name) : 1);
    buf_char(notes, 0);
    return true;
}

/* The remedy in the settings' words; one that they have no words for is left out. */
static void add_note(struct buf *notes, const char *sentence)
{
    static const struct {
        const char *option, *key;
    } keys[] = {{"--allow ", "network.allowedDomains"},
                {"--rw ", "filesystem.allowWrite"},
                {"--ro ", "filesystem.allowRead"},
                {"--unix-socket ", "network.allowUnixSockets"}};
    /* The settings that weaken a box are the only ones that are left out (POLICY_SRT_STRICT). */
    static const char ignored[] = "not enforced: ";
    if (strncmp(sentence, ignored, sizeof ignored - 1) == 0) {
        buf_text(notes, "not given: ");
        sentence += sizeof ignored - 1;
    }
    static const char any_host[] = "; allow hosts with --allow HOST";
    const char *any = strstr(sentence, any_host);
    if (any) {
        buf_put(notes, sentence, (size_t)(any - sentence));
        buf_text(notes, "; allow hosts with network.allowedDomains");
        buf_char(notes, 0);
        return;
    }
    if (add_workspace(notes, sentence))
        return;
    const char *remedy = strstr(sentence, "; allow with --");
    buf_put(notes, sentence, remedy ? (size_t)(remedy - sentence) : strlen(sentence));
    const char *option = remedy ? remedy + strlen("; allow with ") : "";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t n = strlen(keys[i].option);
        if (strncmp(option, keys[i].option, n) == 0 && !strstr(option, " --"))
            buf_printf(notes, "; allow with %s: %s", keys[i].key, option + n);
    }
    buf_char(notes, 0);
}

static void say_line(void *ctx, enum pinfold_say what, const char *sentence)
{
    struct srt_told *told = ctx;
    if (what == PINFOLD_SAY_NOTE)
        add_note(&told->notes, sentence);
    else if (what == PINFOLD_SAY_WARNING || told->debug)
        srt_say("%s", sentence);
}

static void say_notes(const struct srt_told *told)
{
    for (size_t at = 0; at < told->notes.n; at += strlen(told->notes.p + at) + 1)
        srt_say("%s", told->notes.p + at);
}

/* The place of TMPDIR, which srt leaves to its caller: made, and only a directory of ours. In it all boxes of this user meet. */
static bool is_own_tmp(const char *path)
{
    struct stat s;
    (void)mkdir(path, 0700);
    return lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid();
}

static const char *find_shell(void)
{
    static const char *const shells[] = {"/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash"};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (access(shells[i], X_OK) == 0)
            return shells[i];
    }
    return "/bin/sh";
}

/* `path` as a pattern that matches this path alone. */
static const char *literal(const char *path, struct arena *mem)
{
    char *text = arena_zero(mem, 2 * strlen(path) + 1), *to = text;
    for (; text && *path; path++) {
        if (strchr("*?[\\", *path))
            *to++ = '\\';
        *to++ = *path;
    }
    return text;
}

/* How much of an option is whose: the settings file is never the box's to change, for the next box obeys it. */
static bool add_options(const struct srt_line *line, const struct srt_settings *s, struct arena *mem,
                        struct pinfold_option ret[6])
{
    const char *tmp = getenv("CLAUDE_CODE_TMPDIR"), *file = literal(s->path, mem);
    size_t n = 0;
    if (!tmp || !*tmp)
        tmp = getenv("CLAUDE_TMPDIR");
    ret[n++] = (struct pinfold_option){"protect", file};
    if (!is_own_tmp("/tmp/claude")) {
        ret[n++] = (struct pinfold_option){"ro", "/tmp/claude"};
        if (!tmp || !*tmp)
            tmp = "/var/tmp"; /* the box's own */
    }
    const char *set = tmp && *tmp ? arena_printf(mem, "TMPDIR=%s", tmp) : NULL;
    if (set)
        ret[n++] = (struct pinfold_option){"env", set};
    if (line->control >= 0)
        ret[n++] = (struct pinfold_option){"net", "allow"};
    ret[n] = (struct pinfold_option){0};
    return !arena_failed(mem);
}

static int run(const struct srt_line *line, const struct srt_settings *s, struct pinfold_policy *policy,
               const char *command, int control_fd, unsigned closed)
{
    const char *const argv[] = {find_shell(), "-c", command, NULL};
    struct srt_told told = {.debug = line->debug, .notes = BUF(64u << 10)};
    struct pinfold_error error = {0};
    struct pinfold_result *result = NULL;
    struct pinfold_run_options o = {.size = sizeof o,
                                    .argv = argv,
                                    .say = say_line,
                                    .say_ctx = &told,
                                    .foreground = 1,
                                    .use_fds = 1,
                                    .stdin_fd = closed & 1 ? -1 : 0,
                                    .stdout_fd = closed & 2 ? -1 : 1,
                                    .stderr_fd = closed & 4 ? -1 : 2,
                                    .control_fd = control_fd};
    if (pinfold_run(policy, &o, &result, &error) < 0) {
        srt_say("Error: %s", error.text);
        return SRT_FAILED;
    }
    /* srt takes Ctrl-C for an end that was asked for. */
    int status = pinfold_result_reraise(result) ? 0 : pinfold_result_status(result);
    if (status != 0 || line->debug) {
        say_notes(&told);
        srt_reasons(s, result);
    }
    buf_free(&told.notes);
    pinfold_result_free(result);
    return status;
}

int srt_main(char **argv, unsigned closed)
{
    struct srt_line line;
    struct srt_settings s;
    struct pinfold_option options[6];
    struct pinfold_error error = {0};
    int status = SRT_FAILED, control_fd = 0;
    struct arena *mem = arena_new(MEMORY_MAX); /* left to exit */
    if (!mem) {
        srt_say("Error: out of memory");
        return SRT_FAILED;
    }
    if (!srt_parse(argv, mem, &line, &status) || !srt_read(&line, mem, &s))
        return status;
    const char *command = line.command && *line.command ? line.command : line.n_words ? srt_quote(&line, mem) : NULL;
    if (!command) {
        srt_say("Error: No command specified. Use -c <command> or provide command arguments.");
        return SRT_FAILED;
    }
    if (!srt_environment(&s, line.control >= 0, mem) || !add_options(&line, &s, mem, options))
        return SRT_FAILED;
    if (line.control >= 0) {
        pid_t child = srt_channel(line.control, &s, &control_fd, &status);
        if (child)
            return status;
    }
    struct pinfold_policy *policy = srt_policy(s.name, s.text, options, &error);
    if (!policy) {
        srt_say("Error: %s", error.text);
        srt_say("Refusing to run with the built-in defaults, which would drop this file's rules (its denyRead, "
                "allowRead and credential entries included).");
        return SRT_FAILED;
    }
    status = run(&line, &s, policy, command, control_fd, closed);
    pinfold_policy_free(policy);
    return status;
}
