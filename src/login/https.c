/*
 * The request to the endpoint, by libcurl: TLS to that host alone, no redirection, no cookie, an end in time. A good answer is kept
 * byte by byte as it arrives, because from the moment that the endpoint has sent it the old token may be worth nothing.
 */
#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "login/login.h"

enum { CONNECT_S = 15, REQUEST_S = 45, GOOD_FROM = 200, GOOD_TO = 299 };

struct https_asking {
    const struct login_ask *a;
    CURL *curl;
    struct https_answer *ret;
    size_t kept;
    int no;
};

static size_t take_bytes(char *bytes, size_t one, size_t n, void *ctx)
{
    struct https_asking *s = ctx;
    long status = 0;
    (void)one;
    (void)curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= GOOD_FROM && status <= GOOD_TO) {
        if (s->kept + n > ANSWER_ROOM)
            return 0;
        s->kept += n;
        s->no = own_keep(bytes, n);
        return s->no < 0 ? 0 : n;
    }
    size_t room = ANSWER_ROOM - s->ret->body.n, most = n < room ? n : room;
    memcpy(s->ret->body.p + s->ret->body.n, bytes, most);
    s->ret->body.n += most;
    return n;
}

static int tick(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a, (void)b, (void)c, (void)d;
    own_touch_agents(((struct https_asking *)ctx)->a);
    return 0;
}

static bool https_alone(CURL *c)
{
#if LIBCURL_VERSION_NUM >= 0x075500 /* 7.85; Ubuntu 22.04 has 7.81 */
    return curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https") == CURLE_OK;
#else
    return curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS) == CURLE_OK;
#endif
}

static bool set_up(struct https_asking *s, const char *request, struct curl_slist *heads)
{
    const struct login_ask *a = s->a;
    CURL *c = s->curl;
    bool ok = curl_easy_setopt(c, CURLOPT_URL, a->endpoint) == CURLE_OK && https_alone(c) &&
              curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_POSTFIELDS, request) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_HTTPHEADER, heads) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_bytes) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_WRITEDATA, s) == CURLE_OK;
    if (ok && a->ca)
        ok = curl_easy_setopt(c, CURLOPT_CAINFO, a->ca) == CURLE_OK &&
             curl_easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK;
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)REQUEST_S);
    (void)curl_easy_setopt(c, CURLOPT_USERAGENT, "pinfold/" PINFOLD_VERSION);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, s->ret->error);
    (void)curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, tick);
    (void)curl_easy_setopt(c, CURLOPT_XFERINFODATA, s);
    (void)curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    return ok;
}

static int no_memory(const struct login_ask *a, struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "the login in %s is not renewed", a->shown);
}

int https_ask(const struct login_ask *a, const char *request, struct https_answer *ret, struct err *e)
{
    static_assert(CURL_ERROR_SIZE <= sizeof ret->error, "libcurl writes its sentence there");
    struct https_asking s = {.a = a, .ret = ret};
    *ret = (struct https_answer){.body.p = malloc(ANSWER_ROOM + 1)};
    if (!ret->body.p || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(s.curl = curl_easy_init()))
        return no_memory(a, e);
    struct curl_slist *heads = curl_slist_append(NULL, a->form ? "Content-Type: application/x-www-form-urlencoded"
                                                               : "Content-Type: application/json");
    struct curl_slist *all = heads ? curl_slist_append(heads, "Accept: application/json") : NULL;
    CURLcode how = all && set_up(&s, request, all) ? curl_easy_perform(s.curl) : CURLE_OUT_OF_MEMORY;
    (void)curl_easy_getinfo(s.curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_slist_free_all(heads);
    ret->body.p[ret->body.n] = 0;
    /* The connection is left to the end of the process: what comes next is the disk's. */
    if (how == CURLE_OK)
        return 0;
    if (s.no < 0)
        return err_sys(e, ERR_SYSTEM, -s.no, "the login in %s is not renewed: the new one cannot be stored", a->shown);
    return login_later(e, "the login in %s is not renewed: %s: %s", a->shown, a->endpoint,
                       ret->error[0] ? ret->error : curl_easy_strerror(how));
}
