/* Questions from within a box: `pinfold why`, the answer that a box may have, and the question to it; and a login's addresses. */
#pragma once
#include "base/err.h"
#include "base/json.h"
#include "protocol/inquiry.h"
#include "why/why.h"

/* For struct run_spec, with the box's struct pinfold_policy. */
void inquiry_answer(void *ctx, const char *act, const char *target, struct inquiry_answer *ret);

/* In a box: asks, and writes the answer as pinfold_why() does. 0, 1, 2 as that; -errno with `e`. */
int inquiry_ask(enum why_act act, const char *target, struct json *j, struct err *e);

/* In the box of a login: asks for `url` to be opened in the person's browser. 0: the person is asked; -errno with `e`. */
int inquiry_open(const char *url, struct err *e);
