/*
 * pinfold starts pinfold-login (login/), the owner of an agent's login on this machine, for one piece of work:
 *
 *     pinfold-login VERSION WHAT KEY=VALUE...      VERSION as in the pinfold that starts it
 *
 * WHAT is "renew" (if it ends within `ahead` seconds, or an answer was left by an owner that died) or "store" (a login from inside,
 * after the person's word). The keys are those of `renew` in the agent's definition (agents/agents.h), `name`, `shown`, `expires` and
 * `ahead`, `answer` (the name of an answer that is kept, of each login of a file its own) and `program_word` (OAuth's client_secret of an
 * installed program: each copy of it has the same, so it is none); a key with several values is repeated. Nothing secret is among them. It has the descriptors below, of the environment only what names proxies, and
 * answers once. A broker that needs a token without a box asks in the same way: the answer says until when the file's is good.
 */
#pragma once
#include <stdint.h>
#include "base/err.h"

enum {
    LOGIN_SOCKET = 3, /* a SOCK_SEQPACKET socket that takes the answer; not read */
    LOGIN_HOST = 4,   /* the directory of the host's login */
    LOGIN_KEPT = 5,   /* the owner's own directory: its locks, and answers that are not yet in the login */
    LOGIN_NEW = 6,    /* "store": a memfd with the login; otherwise /dev/null */
    LOGIN_FDS = 7
};

/* The file was changed, or is good as it is (somebody else was first); or -errno with a sentence. */
enum { LOGIN_CHANGED, LOGIN_FRESH };
/* Errors that end by themselves or not: -EAGAIN is worth another try, -EKEYREVOKED and -ENOKEY wait for the person. */

struct login_answer {
    int result;
    int64_t expires; /* seconds since 1970 at which the login ends; 0: it does not say */
    struct err e;
};
