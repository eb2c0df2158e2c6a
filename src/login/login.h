/*
 * pinfold-login: the one program that changes an agent's login on this machine. It renews it (OAuth 2.0, RFC 6749 section 6) and
 * puts a new one in its place, under one lock for all boxes.
 *
 *     main.c     its words and its end           https.c   the request
 *     own.c      locks, the agents' own locks,   text.c    the login's text in JSON
 *                answers that are kept           renew.c   the order of it all
 *     file.c     the host's file                 lockdown.c  what it gives up first
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "protocol/login.h"

enum { LOGIN_MAX = 1 << 20, ANSWER_ROOM = 64 << 10, LOCKS_MAX = 4, FIELDS_MAX = 16, HASH_TEXT = 65 };

struct login_ask {
    bool store;
    const char *name, *shown; /* the file in LOGIN_HOST; as messages say it */
    const char *endpoint, *client, *client_at, *ca;
    const char *access, *refresh, *id, *scopes, *when, *expires;
    const char *program_word, *answer; /* the program's own, or NULL; the name of the answer that is kept */
    const char *locks[LOCKS_MAX], *fields[FIELDS_MAX];
    size_t n_locks, n_fields;
    int64_t ahead;
    bool form;
};

/* ---- file.c ---- */

struct login_text { /* owned; wiped when freed */
    char *p;
    size_t n;
    unsigned mode;
    bool there;
};
void login_text_free(struct login_text *t);
#define auto_login __attribute__((cleanup(login_text_free)))
static inline struct str login_view(const struct login_text *t)
{
    return (struct str){t->p ? t->p : "", t->n};
}
/* A regular file of ours, not through a link; `optional`: there need be none. */
int login_file_read(const struct login_ask *a, bool optional, struct login_text *ret, struct err *e);
/* A file beside it with room for `bytes`, made before anything is asked: a full disk is known then. */
int login_file_reserve(const struct login_ask *a, size_t bytes, int *ret, struct err *e);
/* The text becomes the host's file in one step, on disk. `reserved` is from above; closed. */
int login_file_replace(const struct login_ask *a, int *reserved, struct str text, unsigned mode, struct err *e);
void login_file_forget(const struct login_ask *a); /* what was reserved and not used */

/* ---- own.c ---- */

/* Held until the process ends. */
int own_lock(const struct login_ask *a, struct err *e);
/* The locks of the agent itself, which other processes of it on this machine hold while they renew. */
int own_take_agents(const struct login_ask *a, struct err *e);
void own_sweep_agents(const struct login_ask *a); /* those that an owner which was killed held */
void own_touch_agents(const struct login_ask *a); /* they are not stale */
void own_drop_agents(const struct login_ask *a);
/*
 * The answer is kept from its first byte until the login has it. `sum` is that of the token which was sent: an answer to another
 * one is worth nothing. own_kept: 0, or -ENOENT.
 */
int own_keep_begin(const struct login_ask *a, const char sum[HASH_TEXT], struct err *e);
int own_keep(const void *bytes, size_t n);
int own_keep_done(void); /* on disk */
int own_kept(const struct login_ask *a, const char sum[HASH_TEXT], struct login_text *ret);
void own_keep_forget(const struct login_ask *a);

/* ---- text.c ---- */

/* A text at "a.b", malloc()ed; NULL: there is none, or it is empty. */
char *text_get(struct str json, const char *place);
bool text_is_object(struct str json);
int64_t text_expires(const struct login_ask *a, struct str json); /* seconds since 1970; 0: it does not say */
/* The body of the request, malloc()ed. */
char *text_request(const struct login_ask *a, struct str login);
/* The login with what the answer says. -EINVAL: that has no access token. */
int text_renewed(const struct login_ask *a, struct str login, struct str answer, int64_t now, struct login_text *ret);
/* The login with the fields of a new one, and no others of it. -EINVAL: that is none. */
int text_stored(const struct login_ask *a, struct str login, struct str new_one, struct login_text *ret);
void text_sum(const char *token, char ret[HASH_TEXT]);

/* ---- https.c ---- */

struct https_answer {
    long status; /* 0: none came */
    char error[256];
    struct login_text body; /* of an answer without success */
};
/* Keeps a good answer's body as it comes (own_keep). 0: an answer is there. */
int https_ask(const struct login_ask *a, const char *request, struct https_answer *ret, struct err *e);

/* ---- renew.c, lockdown.c ---- */

/* -EAGAIN, with the sentence alone. */
int login_later(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

int login_renew(const struct login_ask *a, int64_t *ret_expires, struct err *e);
int login_store(const struct login_ask *a, int64_t *ret_expires, struct err *e);
int login_lockdown(struct err *e);
