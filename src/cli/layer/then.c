/*
 * `--cow-then`: what becomes of the layer of a run when its command has ended. `ask` is a dialogue at the terminal (user/dialogue.h), which
 * throws away what was typed before it: keys that were meant for the command apply and discard nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

#define QUESTION "pinfold: d diff, p patch, a apply all that need not be named, k keep, x discard"

bool cow_said(const struct ask *a)
{
    const char *then = a->cow_then;
    const bool asks = then && same(then, "ask");
    if (then && !asks && !same(then, "keep") && !same(then, "apply") && !same(then, "discard")) {
        complain("--cow-then %s: use ask, keep, apply or discard", then);
        return false;
    }
    if (then && !a->cow && !a->cow_from) {
        complain("--cow-then %s: there is no layer without --cow", then);
        return false;
    }
    if (a->session && then) {
        complain(
            "--cow-then %s: the layer is the session's and stays when the command ends; apply it when that has ended",
            then);
        return false;
    }
    if (asks && (a->json || !isatty(0) || !isatty(2))) {
        complain("--cow-then ask: there is no terminal to ask at%s; use keep, apply or discard",
                 a->json ? " with --json" : "");
        return false;
    }
    return true;
}

static int apply_layer(const struct ask *a, const char *id)
{
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = id, .all = 1};
    struct pinfold_report *report = NULL;
    struct pinfold_error error = {0};
    if (pinfold_layer_apply_report(&o, &report, &error) < 0) {
        complain("%s", error.text);
        return STATUS_NO;
    }
    const struct pinfold_value *all = pinfold_report_value(report);
    const int status = complain_left(pinfold_value_get(all, "refused"), "why");
    if (!a->quiet) {
        const size_t n = pinfold_value_count(pinfold_value_get(all, "done"));
        complain("layer %.8s: %zu %s applied", id, n, n == 1 ? "path was" : "paths were");
    }
    pinfold_report_free(report);
    return status;
}

static int discard_layer(const struct ask *a, const char *id, bool say)
{
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = id};
    struct pinfold_report *report = NULL;
    struct pinfold_error error = {0};
    if (pinfold_layer_discard_report(&o, &report, &error) < 0) {
        complain("%s", error.text);
        return STATUS_NO;
    }
    if (say && !a->quiet)
        complain("layer %.8s was removed", id);
    pinfold_report_free(report);
    return STATUS_YES;
}

/* ---- ask ---- */

static void show_patch(const char *id)
{
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = id};
    struct pinfold_report *report = NULL;
    struct pinfold_error error = {0};
    if (pinfold_layer_patch(&o, 2, &report, &error) < 0) {
        complain("%s", error.text);
        return;
    }
    (void)complain_left(pinfold_value_get(pinfold_report_value(report), "left_out"), "why");
    pinfold_report_free(report);
}

static int ask_then(const struct ask *a, const char *id)
{
    int key = 'd', status = STATUS_YES;
    while (key == 'd' || key == 'p') {
        key = ask_at_terminal(QUESTION, "dpakx", "pinfold: d, p, a, k or x, and Enter: ");
        if (key == 'd')
            (void)layer_show(id, 2);
        else if (key == 'p')
            show_patch(id);
    }
    if (key == 'a')
        status = apply_layer(a, id);
    else if (key == 'x')
        status = discard_layer(a, id, true);
    else if (key != 'k')
        complain("layer %.8s is kept, because there was no answer", id);
    return status;
}

int cow_then(const struct ask *a, const struct pinfold_result *result)
{
    if (!a->cow_then || same(a->cow_then, "keep")) /* nearly always: the result is not made for this */
        return STATUS_YES;
    const struct pinfold_value *layer = pinfold_value_get(pinfold_result_value(result), "layer");
    const char *id = pinfold_value_text(pinfold_value_get(layer, "id"), NULL);
    if (!id || !pinfold_value_is_true(pinfold_value_get(layer, "kept")))
        return STATUS_YES;
    if (same(a->cow_then, "discard"))
        return discard_layer(a, id, false);
    if (same(a->cow_then, "ask"))
        return ask_then(a, id);
    if (pinfold_result_status(result) != 0) {
        complain("layer %.8s is not applied, because the command failed", id);
        return STATUS_YES;
    }
    return apply_layer(a, id);
}
