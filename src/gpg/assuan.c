/* Parses what gpg asks. Only commands that a signature with a key takes are understood, each argument to its last byte. */
#include "gpg/assuan.h"

#include <stdio.h>
#include <string.h>

static bool is_hex(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!strchr("0123456789ABCDEFabcdef", s.p[i]) || !s.p[i])
            return false;
    }
    return s.n > 0;
}

static struct str word_of(struct str *rest)
{
    while (rest->n && rest->p[0] == ' ')
        *rest = str_skip(*rest, 1);
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ')
        n++;
    const struct str word = {rest->p, n};
    *rest = str_skip(*rest, n);
    return word;
}

static bool is_grip(struct str word)
{
    return word.n == GPG_GRIP && is_hex(word);
}

/* Words that are all keygrips, at least one. */
static bool all_grips(struct str rest)
{
    size_t n = 0;
    for (struct str word = word_of(&rest); word.n; word = word_of(&rest), n++) {
        if (!is_grip(word))
            return false;
    }
    return n > 0;
}

static void refuse(struct gpg_request *r, const char *why)
{
    r->what = GPG_REFUSED;
    r->why = why;
}

/* "GETINFO version" and the questions about options of commands, which say nothing of keys. */
static void parse_info(struct str rest, struct gpg_request *r)
{
    const struct str what = word_of(&rest);
    const struct str command = word_of(&rest), option = word_of(&rest);
    bool plain = command.n <= 40 && option.n <= 40 && !word_of(&rest).n;
    for (size_t i = 0; i < command.n + option.n; i++) {
        char c = i < command.n ? command.p[i] : option.p[i - command.n];
        plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_');
    }
    if (str_is(what, "version") && !command.n) {
        r->what = GPG_PASS;
        snprintf(r->line, sizeof r->line, "GETINFO version\n");
    } else if (str_is(what, "cmd_has_option") && plain && option.n) {
        r->what = GPG_PASS;
        snprintf(r->line, sizeof r->line, "GETINFO cmd_has_option %.*s %.*s\n", (int)command.n, command.p,
                 (int)option.n, option.p);
    } else {
        refuse(r, "a question about the agent itself");
    }
}

/* Where it asks for a passphrase is the caller's matter, not the box's; that it asks is nobody's to change. */
static void parse_option(struct str rest, struct gpg_request *r)
{
    static const char fine[][24] = {"agent-awareness", "allow-pinentry-notify", "display",   "lc-ctype",
                                    "lc-messages",     "pinentry-user-data",    "putenv",    "ttyname",
                                    "ttytype",         "use-cache-for-signing", "xauthority"};
    struct str name = word_of(&rest);
    if (str_starts(name, STR("--")))
        name = str_skip(name, 2);
    const char *equals = memchr(name.p, '=', name.n);
    name.n = equals ? (size_t)(equals - name.p) : name.n;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        if (str_is(name, fine[i])) {
            r->what = GPG_FINE;
            return;
        }
    }
    refuse(r, "an option of the agent");
}

/* "HAVEKEY GRIP...", "HAVEKEY --list[=N]". */
static void parse_have(struct str rest, struct gpg_request *r)
{
    struct str list = rest;
    const struct str word = word_of(&list);
    if (str_is(word, "--list") || str_starts(word, STR("--list="))) {
        r->what = GPG_LIST;
    } else if (all_grips(rest)) {
        r->what = GPG_HAVE;
        r->grips = rest;
    } else {
        refuse(r, "a malformed list of keys");
    }
}

/* "KEYINFO [options] GRIP", "READKEY [options] GRIP": what they show is of this key. */
static void parse_about(struct str rest, const char *command, struct gpg_request *r)
{
    struct str word = word_of(&rest);
    const bool bare = str_is(word, "--no-data") && command[0] == 'R';
    while (str_is(word, "--no-data") || str_is(word, "--ssh-fpr") || str_is(word, "--"))
        word = word_of(&rest);
    if (!is_grip(word) || word_of(&rest).n) {
        refuse(r, "a question about keys that names no single key");
        return;
    }
    r->what = GPG_ABOUT;
    r->grips = word;
    snprintf(r->line, sizeof r->line, "%s %s%.*s\n", command, bare ? "--no-data -- " : "", GPG_GRIP, word.p);
}

static void parse_key(struct str rest, struct gpg_request *r)
{
    const struct str word = word_of(&rest);
    if (!is_grip(word) || word_of(&rest).n) {
        refuse(r, "a key that is not a keygrip");
        return;
    }
    r->what = GPG_KEY;
    r->grips = word;
    snprintf(r->line, sizeof r->line, "SIGKEY %.*s\n", GPG_GRIP, word.p);
}

/* "SETHASH ALGORITHM HEX", "SETHASH --hash=NAME HEX". */
static void parse_hash(struct str rest, struct gpg_request *r)
{
    static const char names[][16] = {"--hash=sha1", "--hash=sha224", "--hash=sha256", "--hash=sha384", "--hash=sha512"};
    const struct str how = word_of(&rest), hash = word_of(&rest);
    bool number = how.n > 0 && how.n <= 3, named = false;
    for (size_t i = 0; i < how.n; i++)
        number = number && how.p[i] >= '0' && how.p[i] <= '9';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        named = named || str_is(how, names[i]);
    if ((!number && !named) || !is_hex(hash) || hash.n < 40 || hash.n > 128 || hash.n % 2 || word_of(&rest).n) {
        refuse(r, "data to sign that is not a hash");
        return;
    }
    r->what = GPG_HASH;
    snprintf(r->line, sizeof r->line, "SETHASH %.*s %.*s\n", (int)how.n, how.p, (int)hash.n, hash.p);
}

void gpg_request_parse(struct str line, struct gpg_request *ret)
{
    static const char dangerous[][20] = {"PKDECRYPT",
                                         "EXPORT_KEY",
                                         "IMPORT_KEY",
                                         "GENKEY",
                                         "PASSWD",
                                         "DELETE_KEY",
                                         "GET_PASSPHRASE",
                                         "CLEAR_PASSPHRASE",
                                         "SCD",
                                         "KILLAGENT",
                                         "RELOADAGENT",
                                         "KEYTOCARD",
                                         "KEYTOTPM",
                                         "KEYWRAP_KEY",
                                         "PRESET_PASSPHRASE",
                                         "GET_CONFIRMATION",
                                         "GETVAL",
                                         "PUTVAL",
                                         "ISTRUSTED",
                                         "LISTTRUSTED",
                                         "MARKTRUSTED",
                                         "LEARN",
                                         "UPDATESTARTUPTTY",
                                         "GETEVENTCOUNTER",
                                         "KEYATTR",
                                         "PKAUTH",
                                         "DIVERT"};
    *ret = (struct gpg_request){.what = GPG_REFUSED, .why = "a malformed request", .name = STR("request")};
    if (line.n > GPG_MAX_LINE || memchr(line.p ? line.p : "", 0, line.n) || memchr(line.p ? line.p : "", '\n', line.n))
        return;
    struct str rest = line;
    const struct str command = word_of(&rest);
    for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++) {
        if (str_is(command, dangerous[i])) {
            ret->name = str_of(dangerous[i]);
            ret->why = "a request other than signing";
            return;
        }
    }
    if (str_is(command, "OPTION"))
        parse_option(rest, ret);
    else if (str_is(command, "GETINFO"))
        parse_info(rest, ret);
    else if (str_is(command, "HAVEKEY"))
        parse_have(rest, ret);
    else if (str_is(command, "KEYINFO"))
        parse_about(rest, "KEYINFO", ret);
    else if (str_is(command, "READKEY"))
        parse_about(rest, "READKEY", ret);
    else if (str_is(command, "SIGKEY") || str_is(command, "SETKEY"))
        parse_key(rest, ret);
    else if (str_is(command, "SETHASH"))
        parse_hash(rest, ret);
    else if (str_is(command, "SETKEYDESC") || str_is(command, "NOP"))
        ret->what = GPG_FINE;           /* the agent's dialogue says what pinfold knows, not what a box says */
    else if (str_is(command, "PKSIGN")) /* with a cache's name or without */
        ret->what = GPG_SIGN;
    else if (str_is(command, "RESET"))
        ret->what = GPG_RESET;
    else if (str_is(command, "BYE"))
        ret->what = GPG_END;
    if (ret->what != GPG_REFUSED)
        ret->why = NULL;
}

bool gpg_key_named(const struct gpg_rules *rules, struct str grips, size_t *ret_index)
{
    for (struct str word = word_of(&grips); word.n; word = word_of(&grips)) {
        for (size_t i = 0; i < rules->n_keys; i++) {
            if (word.n == GPG_GRIP && str_is_nocase(word, rules->keys[i].grip)) {
                *ret_index = i;
                return true;
            }
        }
    }
    return false;
}

static int half(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

size_t gpg_list_line(const struct gpg_rules *rules, char *room, size_t n)
{
    size_t at = 0;
    if (n < 4)
        return 0;
    room[at++] = 'D';
    room[at++] = ' ';
    for (size_t i = 0; i < rules->n_keys; i++) {
        for (size_t k = 0; k < GPG_GRIP; k += 2) {
            const unsigned char byte =
                (unsigned char)(half(rules->keys[i].grip[k]) << 4 | half(rules->keys[i].grip[k + 1]));
            if (at + 4 >= n)
                return 0;
            if (byte == '%' || byte == '\r' || byte == '\n')
                at += (size_t)snprintf(room + at, n - at, "%%%02X", byte);
            else
                room[at++] = (char)byte;
        }
    }
    room[at++] = '\n';
    return at;
}

static bool begins(struct str line, const char *word)
{
    const size_t n = strlen(word);
    return line.n >= n && memcmp(line.p, word, n) == 0 && (line.n == n || line.p[n] == ' ');
}

enum gpg_answer gpg_answer_parse(struct str line)
{
    if (begins(line, "OK"))
        return GPG_ANSWER_OK;
    if (begins(line, "ERR"))
        return GPG_ANSWER_ERR;
    if (begins(line, "D"))
        return GPG_ANSWER_DATA;
    if (begins(line, "S"))
        return GPG_ANSWER_STATUS;
    if (begins(line, "INQUIRE"))
        return GPG_ANSWER_ASKS;
    return line.n && line.p[0] == '#' ? GPG_ANSWER_NOTHING : GPG_ANSWER_BAD;
}
