/*
 * The line of srt as its own parser reads it (commander, which allows unknown options there): its options count wherever
 * they stand before `--`, also behind the first word of the command. Whoever writes `srt make -s strict.json` gets those
 * rules; to give the command an option of the same name, put `--` before it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "srt/srt.h"

static const char HELP[] =
    "Usage: srt [options] [command...]\n"
    "\n"
    "Run a command in a sandbox with network and filesystem restrictions. This is pinfold's srt: pinfold-srt(1).\n"
    "\n"
    "Options:\n"
    "  -V, --version          output the version of srt whose line and settings these are\n"
    "  -d, --debug            say what the box is, and why the command was refused something\n"
    "  -s, --settings <path>  settings file (default: ~/.srt-settings.json)\n"
    "  -c <command>           run a command line as it stands (like sh -c)\n"
    "  --control-fd <fd>      read updates of the settings from an inherited descriptor (3 or higher), JSON lines\n"
    "  -h, --help             display this help\n";

enum srt_option {
    OPTION_NONE,
    OPTION_VERSION,
    OPTION_DEBUG,
    OPTION_SETTINGS,
    OPTION_COMMAND,
    OPTION_CONTROL,
    OPTION_HELP
};

static const struct srt_known {
    enum srt_option id;
    char letter;
    const char *name, *said;
    bool takes_value;
} known_options[] = {{OPTION_VERSION, 'V', "version", "-V, --version", false},
                     {OPTION_DEBUG, 'd', "debug", "-d, --debug", false},
                     {OPTION_SETTINGS, 's', "settings", "-s, --settings <path>", true},
                     {OPTION_COMMAND, 'c', NULL, "-c <command>", true},
                     {OPTION_CONTROL, 0, "control-fd", "--control-fd <fd>", true},
                     {OPTION_HELP, 'h', "help", "-h, --help", false}};

static const struct srt_known *find(struct str name, char letter)
{
    for (size_t i = 0; i < sizeof known_options / sizeof *known_options; i++) {
        const struct srt_known *k = &known_options[i];
        if (letter ? k->letter == letter : k->name && str_is(name, k->name))
            return k;
    }
    return NULL;
}

static bool end_with(int *ret, int status)
{
    *ret = status;
    return false;
}

static bool take_control(struct srt_line *l, const char *value, int *ret_status)
{
    char *end;
    errno = 0;
    long fd = value && value[0] >= '0' && value[0] <= '9' ? strtol(value, &end, 10) : -1;
    if (fd < 3 || fd > 1 << 20 || errno || *end) {
        fprintf(
            stderr,
            "error: option '--control-fd <fd>' argument '%s' is invalid. must be an integer file descriptor >= 3 (0-2 "
            "are stdin, stdout and stderr).\n",
            value ? value : "");
        return end_with(ret_status, SRT_FAILED);
    }
    l->control = (int)fd;
    return true;
}

static bool take(struct srt_line *l, const struct srt_known *k, const char *value, int *ret_status)
{
    switch (k->id) {
    case OPTION_VERSION:
        puts(SRT_VERSION);
        return end_with(ret_status, fflush(stdout) == 0 ? 0 : SRT_FAILED);
    case OPTION_HELP:
        fputs(HELP, stdout);
        return end_with(ret_status, fflush(stdout) == 0 ? 0 : SRT_FAILED);
    case OPTION_DEBUG:
        l->debug = true;
        return true;
    case OPTION_SETTINGS:
        l->settings = value;
        return true;
    case OPTION_COMMAND:
        l->command = value;
        return true;
    case OPTION_CONTROL:
        return take_control(l, value, ret_status);
    case OPTION_NONE:
        break;
    }
    return true;
}

/*
 * One word that begins with a dash. *rest: what remains of several letters in one word (`-dc`), to be read next, or NULL.
 * *ret_known: it was an option of srt's.
 */
static bool take_word(struct srt_line *l, const char *word, char ***next, const char **rest, bool *ret_known,
                      int *ret_status)
{
    const bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    const struct str name =
        is_long ? (struct str){word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2)} : STR("");
    const struct srt_known *k = is_long ? find(name, 0) : find(name, word[1]);
    const char *value = NULL;

    *rest = NULL;
    *ret_known = k != NULL && (k->takes_value || !equals);
    if (!*ret_known)
        return true;
    if (k->takes_value && equals) {
        value = equals + 1;
    } else if (k->takes_value && !is_long && word[2]) {
        value = word + 2;
    } else if (k->takes_value) {
        if (!**next) {
            fprintf(stderr, "error: option '%s' argument missing\n", k->said);
            return end_with(ret_status, SRT_FAILED);
        }
        value = *(*next)++;
    } else if (!is_long && word[2]) {
        *rest = word + 2;
    }
    return take(l, k, value, ret_status);
}

/* Subcommands of srt's, which stand first. */
static bool take_subcommand(const char *word, int *ret_status)
{
    if (same(word, "help")) {
        fputs(HELP, stdout);
        return end_with(ret_status, fflush(stdout) == 0 ? 0 : SRT_FAILED);
    }
    if (same(word, "windows-install") || same(word, "windows-uninstall")) {
        srt_say("%s is for Windows; here nothing needs to be installed", word);
        return end_with(ret_status, SRT_FAILED);
    }
    return true;
}

bool srt_parse(char **argv, struct arena *mem, struct srt_line *ret, int *ret_status)
{
    struct srt_line l = {.control = -1};
    size_t n = 0;
    while (argv[n])
        n++;
    l.words = arena_zero(mem, (n + 2) * sizeof *l.words);
    if (!l.words) {
        srt_say("out of memory");
        return end_with(ret_status, SRT_FAILED);
    }
    bool unknown = false; /* srt keeps a `--` that follows an option which it does not know */
    for (char **next = argv + (argv[0] != NULL); *next;) {
        const char *word = *next++, *rest = NULL;
        bool known = false;
        if (same(word, "--")) {
            if (unknown)
                l.words[l.n_words++] = word;
            while (*next)
                l.words[l.n_words++] = *next++;
            break;
        }
        while (word[0] == '-' && word[1]) {
            if (!take_word(&l, word, &next, &rest, &known, ret_status))
                return false;
            if (!rest)
                break;
            word = arena_printf(mem, "-%s", rest);
            if (!word) {
                srt_say("out of memory");
                return end_with(ret_status, SRT_FAILED);
            }
        }
        if (known)
            continue;
        unknown = unknown || (word[0] == '-' && word[1]);
        l.words[l.n_words++] = word;
        if (l.n_words == 1 && !take_subcommand(word, ret_status))
            return false;
    }
    *ret = l;
    return true;
}

/* Whether a shell reads the word as itself. One that begins with '=' is not one for zsh. */
static bool is_plain(const char *word)
{
    for (const char *p = word; *p; p++) {
        bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                    strchr("_./:@+,-", *p) || (*p == '=' && p > word);
        if (!fine)
            return false;
    }
    return *word != 0;
}

const char *srt_quote(const struct srt_line *line, struct arena *mem)
{
    size_t bytes = 1;
    for (size_t i = 0; i < line->n_words; i++)
        bytes += 5 * strlen(line->words[i]) + 3;
    char *text = arena_zero(mem, bytes), *to = text;
    for (size_t i = 0; text && i < line->n_words; i++) {
        const char *word = line->words[i];
        if (i)
            *to++ = ' ';
        if (is_plain(word)) {
            to = stpcpy(to, word);
            continue;
        }
        *to++ = '\'';
        for (; *word; word++) {
            if (*word == '\'')
                to = stpcpy(to, "'\"'\"'");
            else
                *to++ = *word;
        }
        *to++ = '\'';
    }
    return text;
}
