/*
 * The order of a renewal. What may fail comes before the request: the lock, the agent's locks, room on the disk. From the request to
 * the first byte of its answer on its way to the disk nothing else is done: who is killed there has spent the token. After that each
 * step can be done again by the next owner, from the kept answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "login/login.h"

enum { OTHERS_MS = 10000, OTHERS_STEP_MS = 100, GROWTH = 128 << 10, WORDS_SHOWN = 120 };

struct renewal {
    const struct login_ask *a;
    struct login_text login;
    char *token; /* that renews it */
    char sum[HASH_TEXT];
    int reserved;
};

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

static void renewal_end(struct renewal *r)
{
    login_text_free(&r->login);
    wipe(&r->token);
    r->reserved = close_fd(r->reserved);
}

static int reread(struct renewal *r, struct err *e)
{
    struct login_text now;
    int no = login_file_read(r->a, false, &now, e);
    if (no < 0)
        return no;
    login_text_free(&r->login);
    wipe(&r->token);
    r->login = now;
    if (!text_is_object(login_view(&now)))
        return err_say(e, ERR_POLICY, "the login in %s is not renewed: it is not a JSON object", r->a->shown);
    r->token = text_get(login_view(&now), r->a->refresh);
    if (!r->token) {
        (void)err_say(e, ERR_POLICY, "the login in %s has no refresh token; log in again", r->a->shown);
        return -ENOKEY;
    }
    text_sum(r->token, r->sum);
    return 0;
}

static bool is_fresh(const struct renewal *r)
{
    int64_t ends = text_expires(r->a, login_view(&r->login));
    return ends == 0 || ends > (int64_t)time(NULL) + r->a->ahead;
}

/* An answer goes into the login, if that still has the token which was sent. The answer is forgotten when the login is on disk. */
static int take_answer(struct renewal *r, struct str answer, struct err *e)
{
    auto_login struct login_text now = {0}, text = {0};
    int no = login_file_read(r->a, false, &now, e);
    char *token = no == 0 ? text_get(login_view(&now), r->a->refresh) : NULL;
    const bool newer = no == 0 && (!token || strcmp(token, r->token) != 0);
    wipe(&token);
    if (no < 0)
        return no;
    if (newer) { /* somebody has logged in, or renewed, meanwhile: theirs stays */
        own_keep_forget(r->a);
        login_file_forget(r->a);
        return LOGIN_FRESH;
    }
    no = text_renewed(r->a, login_view(&now), answer, time(NULL), &text);
    if (no < 0)
        return err_say(e, ERR_SYSTEM, "the login in %s is not renewed: the answer of %s has no access token",
                       r->a->shown, r->a->endpoint);
    if (r->reserved < 0)
        no = login_file_reserve(r->a, text.n, &r->reserved, e);
    if (no == 0)
        no = login_file_replace(r->a, &r->reserved, login_view(&text), now.mode, e);
    if (no < 0)
        return no;
    own_keep_forget(r->a);
    return LOGIN_CHANGED;
}

/* What an owner that died had been answered. */
static int take_kept(struct renewal *r, struct err *e)
{
    auto_login struct login_text answer = {0};
    if (own_kept(r->a, r->sum, &answer) < 0) {
        own_keep_forget(r->a); /* of a token that the login no longer has: it is in there, or somebody was first */
        login_file_forget(r->a);
        return -ENOENT;
    }
    char *token = text_get(login_view(&answer), "access_token");
    int no = token ? take_answer(r, login_view(&answer), e) : -ENOENT;
    wipe(&token);
    if (no == -ENOENT) /* not all of it came */
        own_keep_forget(r->a);
    return no;
}

/* ---- asking ---- */

/* An agent of this machine may be a moment ahead of us: its answer spent the token, and is not in the file yet. */
static bool others_were_first(struct renewal *r)
{
    for (int waited = 0; waited < OTHERS_MS; waited += OTHERS_STEP_MS) {
        auto_login struct login_text now = {0};
        if (login_file_read(r->a, false, &now, NULL) == 0) {
            char *token = text_get(login_view(&now), r->a->refresh);
            const bool other = token && strcmp(token, r->token) != 0;
            wipe(&token);
            if (other)
                return true;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = OTHERS_STEP_MS * 1000000L}, NULL);
    }
    return false;
}

/* Of what the endpoint says of its no, letters and digits. */
static void words_of(struct str body, char ret[WORDS_SHOWN])
{
    char *word = text_get(body, "error");
    if (!word)
        word = text_get(body, "error.code");
    if (!word)
        word = text_get(body, "error.type");
    size_t n = 0;
    for (const char *p = word ? word : ""; *p && n + 1 < WORDS_SHOWN; p++)
        ret[n++] = *p > ' ' && *p < 127 ? *p : '?';
    ret[n] = 0;
    free(word);
}

static int refused(struct renewal *r, const struct https_answer *said, struct err *e)
{
    char words[WORDS_SHOWN];
    words_of(login_view(&said->body), words);
    own_keep_forget(r->a);
    login_file_forget(r->a);
    if (said->status != 400 && said->status != 401 && said->status != 403)
        return login_later(e, "the login in %s is not renewed: %s answers with status %ld%s%s", r->a->shown,
                           r->a->endpoint, said->status, *words ? " " : "", words);
    if (others_were_first(r))
        return LOGIN_FRESH;
    (void)err_say(e, ERR_POLICY, "the login in %s is no longer accepted (%s answers with status %ld%s%s); log in again",
                  r->a->shown, r->a->endpoint, said->status, *words ? " " : "", words);
    return -EKEYREVOKED;
}

static int ask(struct renewal *r, struct err *e)
{
    struct https_answer said = {0};
    auto_login struct login_text answer = {0};
    int no = login_file_reserve(r->a, r->login.n + GROWTH, &r->reserved, e);
    if (no == 0)
        no = own_keep_begin(r->a, r->sum, e);
    char *request = no == 0 ? text_request(r->a, login_view(&r->login)) : NULL;
    if (no == 0 && !request)
        no = err_sys(e, ERR_SYSTEM, ENOMEM, "the login in %s is not renewed", r->a->shown);
    if (no == 0)
        no = https_ask(r->a, request, &said, e);
    wipe(&request);
    if (no == 0 && (said.status < 200 || said.status > 299)) {
        no = refused(r, &said, e);
    } else if (said.status >= 200 && said.status <= 299) {
        /* Also when the connection broke after its last byte. */
        (void)own_keep_done();
        struct err ignored;
        int taken =
            own_kept(r->a, r->sum, &answer) == 0 ? take_answer(r, login_view(&answer), no < 0 ? &ignored : e) : -EINVAL;
        if (no == 0 && taken == -EINVAL && !answer.there)
            (void)err_say(e, ERR_SYSTEM, "the login in %s is not renewed: the answer of %s is empty", r->a->shown,
                          r->a->endpoint);
        no = no == 0 || taken >= 0 ? taken : no;
    } else {
        own_keep_forget(r->a);
        login_file_forget(r->a);
    }
    login_text_free(&said.body);
    return no;
}

static int renew(struct renewal *r, struct err *e)
{
    int no = own_lock(r->a, e);
    if (no == 0)
        own_sweep_agents(r->a);
    if (no == 0)
        no = reread(r, e);
    if (no < 0)
        return no;
    no = take_kept(r, e);
    if (no == LOGIN_CHANGED || no == LOGIN_FRESH)
        no = reread(r, e) < 0 ? -EAGAIN : no;
    if (no < 0 && no != -ENOENT)
        return no;
    if (is_fresh(r))
        return no == -ENOENT ? LOGIN_FRESH : no;
    no = own_take_agents(r->a, e);
    if (no == 0)
        no = reread(r, e);
    if (no == 0)
        no = is_fresh(r) ? LOGIN_FRESH : ask(r, e);
    own_drop_agents(r->a);
    return no;
}

int login_renew(const struct login_ask *a, int64_t *ret_expires, struct err *e)
{
    struct renewal r = {.a = a, .reserved = -1};
    auto_login struct login_text now = {0};
    int no = renew(&r, e);
    if (no >= 0 && login_file_read(a, false, &now, NULL) == 0)
        *ret_expires = text_expires(a, login_view(&now));
    renewal_end(&r);
    return no;
}

/* ---- a new login ---- */

static int read_new(struct login_text *ret)
{
    struct stat st;
    *ret = (struct login_text){0};
    if (fstat(LOGIN_NEW, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > LOGIN_MAX)
        return -EINVAL;
    ret->p = malloc((size_t)st.st_size + 1);
    ssize_t n = ret->p ? pread(LOGIN_NEW, ret->p, (size_t)st.st_size, 0) : -1;
    if (n < 0)
        return -ENOMEM;
    ret->n = (size_t)n;
    ret->p[n] = 0;
    return 0;
}

int login_store(const struct login_ask *a, int64_t *ret_expires, struct err *e)
{
    auto_login struct login_text old = {0}, from = {0}, text = {0};
    int reserved = -1;
    int no = own_lock(a, e);
    if (no == 0)
        own_sweep_agents(a);
    if (no == 0)
        no = own_take_agents(a, e);
    if (no == 0)
        no = login_file_read(a, true, &old, e);
    if (no == 0 && (read_new(&from) < 0 || text_stored(a, login_view(&old), login_view(&from), &text) < 0))
        no = old.n && !text_is_object(login_view(&old))
                 ? err_say(e, ERR_POLICY, "the login is not written: %s is not a JSON object; move it away first",
                           a->shown)
                 : err_say(e, ERR_POLICY, "the login is not written: the box's file is not a login; log in again");
    if (no == 0)
        no = login_file_reserve(a, text.n, &reserved, e);
    if (no == 0)
        no = login_file_replace(a, &reserved, login_view(&text), old.mode ? old.mode : 0600, e);
    if (no == 0)
        own_keep_forget(a); /* an answer to the old one */
    *ret_expires = no == 0 ? text_expires(a, login_view(&text)) : 0;
    own_drop_agents(a);
    return no;
}
