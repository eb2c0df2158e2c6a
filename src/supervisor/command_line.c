/*
 * A process's command line as one text for events: quoted where a shell would need it, and without what looks like a secret.
 * It is the process's own claim, and may have been cut.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "supervisor/parts.h"

#define HIDDEN_VALUE "***"
#define CHANCE_MIN   24 /* letters of both cases and digits, without a word between */

static bool says_secret(struct str name)
{
    static const char words[][12] = {"password", "passwd",      "passphrase",  "token",      "secret", "apikey",
                                     "api-key",  "api_key",     "access-key",  "access_key", "auth",   "credential",
                                     "bearer",   "private-key", "private_key", "cookie"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        for (size_t at = 0; at + n <= name.n; at++) {
            if (strncasecmp(name.p + at, words[i], n) == 0)
                return true;
        }
    }
    return false;
}

/* The length of a run at the start that looks like a key. */
static size_t chance_run(struct str s)
{
    bool upper = false, lower = false, digit = false;
    size_t n = 0;
    for (; n < s.n; n++) {
        const unsigned char c = (unsigned char)s.p[n];
        if (!isalnum(c) && c != '_' && c != '-' && c != '+' && c != '=')
            break;
        upper |= isupper(c) != 0;
        lower |= islower(c) != 0;
        digit |= isdigit(c) != 0;
    }
    return n >= CHANCE_MIN && upper && lower && digit ? n : 0;
}

/* The end of "user:password@" at the start, 0 if that is not what is there. */
static size_t userinfo(struct str s)
{
    for (size_t i = 0; i < s.n && s.p[i] != '/' && !isspace((unsigned char)s.p[i]); i++) {
        if (s.p[i] == '@')
            return i;
    }
    return 0;
}

/* One word without its secrets. */
static void put_public(struct buf *out, struct str word)
{
    const char *mark = memchr(word.p, '=', word.n), *colon = memchr(word.p, ':', word.n);
    const char *sep = mark && (!colon || mark < colon) ? mark : colon;
    const size_t name = sep ? (size_t)(sep - word.p) : 0;
    if (name && says_secret((struct str){word.p, name}) && name + 1 < word.n) {
        buf_put(out, word.p, name + 1);
        buf_text(out, HIDDEN_VALUE);
        return;
    }
    for (size_t i = 0; i < word.n;) {
        struct str rest = str_skip(word, i);
        size_t run = i == 0 || !isalnum((unsigned char)word.p[i - 1]) ? chance_run(rest) : 0;
        size_t user = i >= 3 && memcmp(word.p + i - 3, "://", 3) == 0 ? userinfo(rest) : 0;
        if (run || user) {
            buf_text(out, HIDDEN_VALUE);
            i += run > user ? run : user;
        } else {
            buf_char(out, word.p[i++]);
        }
    }
}

static bool needs_quotes(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!isalnum((unsigned char)s.p[i]) && !strchr("_-./:=@%+,*", s.p[i]))
            return true;
    }
    return s.n == 0;
}

static void put_word(struct buf *out, struct str s)
{
    if (needs_quotes(s))
        buf_shell_word(out, s);
    else
        buf_str(out, s);
}

char *box_command_line(const char *argv, size_t n)
{
    auto_buf struct buf out = BUF(4096);
    bool secret = false; /* the word before is an option whose value this is */
    size_t whole = n;
    while (whole > 0 && !argv[whole - 1])
        whole--;
    if (n - whole > 3) /* a program that shows a title in place of its arguments (npm) leaves the rest empty */
        n = whole;
    for (size_t at = 0; at < n;) {
        auto_buf struct buf word = BUF(2048);
        struct str s = {argv + at, strnlen(argv + at, n - at)};
        at += s.n + 1;
        if (secret && s.n && s.p[0] != '-')
            buf_text(&word, HIDDEN_VALUE);
        else
            put_public(&word, s);
        secret = s.n > 1 && s.p[0] == '-' && !memchr(s.p, '=', s.n) && says_secret(s);
        if (out.n)
            buf_char(&out, ' ');
        put_word(&out, buf_view(&word));
    }
    return out.n && buf_ok(&out) ? strdup(buf_cstr(&out)) : NULL;
}
