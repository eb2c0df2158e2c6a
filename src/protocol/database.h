/*
 * pinfold starts pinfold-sqlite (sqlite/) to copy an agent's database into a session's state, or to bring its login up to date:
 *
 *     pinfold-sqlite VERSION DATABASE TABLE...      VERSION as in the pinfold that starts it; the tables of the login
 *
 * It has the descriptors below and an empty environment, and answers once.
 */
#pragma once
#include "base/err.h"

/*
 * Or to carry a project's conversations from one database to another (sqlite/carry.c): two of it, one that reads and one that writes.
 *
 *     pinfold-sqlite VERSION DATABASE --carry HOW WORKSPACE      HOW: from-host, from-box or to; with "+schema": the other side has none yet
 *
 * DATABASE_HOST is then the directory of that one database, and DATABASE_SESSION the pipe between them.
 */
#define DATABASE_CARRY "--carry"

enum {
    DATABASE_SOCKET = 3,  /* a SOCK_SEQPACKET socket that takes the answer */
    DATABASE_HOST = 4,    /* the directory of the host's database, which is only read */
    DATABASE_SESSION = 5, /* that of the session's, which a box may have written */
    DATABASE_FDS = 6
};

/* The tables were brought up to date, or all of it was copied for the first time; or -errno with a sentence. */
enum { DATABASE_REFRESHED, DATABASE_FIRST };

struct database_answer {
    int result;
    struct err e;
};
