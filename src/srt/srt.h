/*
 * `srt`: the command line of Anthropic's sandbox-runtime (0.0.78), for programs and people that start their sandboxes with
 * it. Its settings are the policy, over the profile `srt`; a box of pinfold's enforces them. See pinfold-srt(1).
 *
 *     options.c   the line, parsed as srt parses it
 *     settings.c  the file: found, read, and what of it this program honours itself
 *     channel.c   --control-fd: updates of the settings while the command runs
 *     run.c       the box
 *     say.c       its lines
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "policy/text/node.h"
#include "pinfold.h"

#define SRT_VERSION "0.0.78" /* the version whose line and settings these are */

enum { SRT_FAILED = 1 }; /* the exit status for everything that is wrong before the command runs */

struct srt_line {
    bool debug;
    const char *settings; /* -s; NULL: the default file */
    const char *command;  /* -c; NULL: words */
    const char **words;   /* ended by NULL; they point into argv */
    size_t n_words;
    int control; /* --control-fd, or -1 */
};

struct srt_settings {
    const char *path; /* absolute: of the file that counts, there or not */
    const char *name; /* for messages */
    const char *text;
    struct node root;
};

/* Says "srt: ..." on standard error, in one write and with control characters shown. */
void srt_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parses the line. false: *ret_status is what to exit with, and all is said (--help, a wrong option). */
bool srt_parse(char **argv, struct arena *mem, struct srt_line *ret, int *ret_status);
/* The words as one command line for a shell, each of them quoted as far as it needs it; NULL: no memory. */
const char *srt_quote(const struct srt_line *line, struct arena *mem);

/* Finds and reads the settings; messages and texts are srt's own. false: said. */
bool srt_read(const struct srt_line *line, struct arena *mem, struct srt_settings *ret);
/*
 * parentProxy and git.safeDirectories become this process's environment, from which the box takes its own. `has_channel`: hosts
 * may be allowed later. false: said.
 */
bool srt_environment(const struct srt_settings *s, bool has_channel, struct arena *mem);
/* Says the settings' deniedDomainReasons of what was denied. */
void srt_reasons(const struct srt_settings *s, const struct pinfold_result *result);
/* Adds the texts of the list `key` below network to *list, which grows; false: no memory. */
bool srt_hosts(const struct node *root, const char *key, struct arena *mem, const char ***list, size_t *n);

/* The policy of settings `text`. NULL: *error says why. */
struct pinfold_policy *srt_policy(const char *name, const char *text, const struct pinfold_option *options,
                                  struct pinfold_error *error);

/*
 * Divides this process: in the child, which runs the box, it returns 0 and *ret_fd is the box's control connection; the
 * parent reads `fd` until the child has ended, and returns its process id with the status to exit with in *ret_status.
 * Negative: said.
 */
pid_t srt_channel(int fd, const struct srt_settings *s, int *ret_fd, int *ret_status);

/* The program. `closed` are the bits of standard descriptors that were closed when it started. */
int srt_main(char **argv, unsigned closed);
/* Whether a program that was started as `name` is srt: the last component counts. */
bool srt_named(const char *name);
