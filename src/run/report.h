/*
 * Behind struct pinfold_report and struct pinfold_value of pinfold.h, the same in both halves of libpinfold: answers are made as
 * values (base/value.h), and their JSON is written from those.
 */
#pragma once
#include "base/json.h"
#include "run/options.h"

#define MAX_REPORT (256u << 20)

struct pinfold_report {
    struct values values;
    struct buf json; /* made when first asked for */
};

struct pinfold_report *report_new(void); /* NULL without memory */
/* A report that came as bytes; NULL: they are none. */
struct pinfold_report *report_of_image(struct str image);
/* What `r` and `e` say became of it: hands it out, or frees it and says why not. */
int report_give(struct pinfold_report *p, int r, struct err *e, struct pinfold_report **ret,
                struct pinfold_error *error);
/* The JSON of `*report` as a text of the caller's, for the functions that return text; frees the report. r: what made it returned. */
int report_text(int r, struct pinfold_report *report, char **ret, struct pinfold_error *error);
/* All of a result but the output itself; NULL: no memory. Each half has its own. */
const struct value_node *result_values(const struct pinfold_result *result);
