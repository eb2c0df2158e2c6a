/*
 * What gpg asks its agent (the Assuan protocol, gpg-agent(1), "Agent's Assuan Protocol"), as far as signing with a named key takes it.
 * Pure. What is passed on is written anew from what was understood, never the box's own bytes.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

#define GPG_MAX_LINE 1000 /* ASSUAN_LINELENGTH less the end of the line */
#define GPG_GRIP     40   /* hexadecimal digits of a keygrip */
#define GPG_MAX_KEYS 16   /* their list is one line */
#define GPG_OPTIONS  16   /* lines of options at most */

enum gpg_what {
    GPG_REFUSED,
    GPG_FINE,  /* nothing that the agent has to know: answered with OK */
    GPG_PASS,  /* `line` goes to the agent */
    GPG_HAVE,  /* is one of `grips` there? Answered here */
    GPG_LIST,  /* which keys there are: the named ones. Answered here */
    GPG_ABOUT, /* `line` about the key `grips` goes to the agent */
    GPG_KEY,   /* the key that signs */
    GPG_HASH,  /* what is signed */
    GPG_SIGN,
    GPG_RESET,
    GPG_END
};
struct gpg_request {
    enum gpg_what what;
    const char *why;  /* GPG_REFUSED: a phrase */
    struct str name;  /* of the command, for people; printable */
    struct str grips; /* words of 40 digits with blanks between; of the line that was parsed */
    char line[256];   /* for the agent, with its newline */
};
/* One line without its end. */
void gpg_request_parse(struct str line, struct gpg_request *ret);

struct gpg_named_key {
    char grip[GPG_GRIP + 1]; /* upper case */
    const char *name;        /* for people, printable */
};
struct gpg_rules {
    const struct gpg_named_key *keys;
    size_t n_keys;
    const char *const *options; /* lines for the agent, which say where a passphrase is asked for; NULL-terminated */
    bool confirm;
};
/* The first word of `grips` that is a named key. */
bool gpg_key_named(const struct gpg_rules *rules, struct str grips, size_t *ret_index);
/* "D " and the named keys' grips, escaped as Assuan does, a newline; the number of bytes, 0 when it does not fit. */
size_t gpg_list_line(const struct gpg_rules *rules, char *room, size_t n);

enum gpg_answer {
    GPG_ANSWER_BAD,
    GPG_ANSWER_OK,
    GPG_ANSWER_ERR,
    GPG_ANSWER_DATA,
    GPG_ANSWER_STATUS,
    GPG_ANSWER_ASKS,
    GPG_ANSWER_NOTHING
};
/* What a line of the agent is. */
enum gpg_answer gpg_answer_parse(struct str line);

#define GPG_ERR_LINE_FORBIDDEN "ERR 67109115 Forbidden <pinfold>\n"
#define GPG_ERR_LINE_NO_KEY    "ERR 67108881 No secret key <pinfold>\n"
#define GPG_WHY_KEY            "a signature with a key that was not named"
