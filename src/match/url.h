/*
 * An address that a box wants opened in a person's browser, outside. Only the plainest form passes: https, a host that a list
 * names, the characters that such addresses need, and, where it says so (redirect_uri), an answer to this machine or to one of
 * these hosts. Pure.
 */
#pragma once
#include <stdint.h>
#include "base/str.h"

#define URL_MAX 2000 /* bytes */

struct url_asked {
    uint16_t port; /* where the answer comes to this machine (redirect_uri=http://localhost:PORT/...); 0: it does not */
};

/* `hosts`: names in canonical form (match/host.h), NULL-terminated. 0; -EINVAL, and why, in static words. */
int url_judge(struct str url, const char *const *hosts, struct url_asked *ret, const char **ret_why);
