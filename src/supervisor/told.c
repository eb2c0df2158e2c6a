/*
 * What a box leaves behind that was no refusal but that the user should look at: from the guard's frames, when the box
 * has ended, to the result and the audit log. A session's are only in the log.
 */
#include <stdlib.h>
#include <string.h>
#include "supervisor/parts.h"

static const char told_kinds[][12] = {[TOLD_REPOSITORY] = "repository",
                                      [TOLD_LINK] = "link",
                                      [TOLD_FIFO] = "fifo",
                                      [TOLD_REF] = "ref",
                                      [TOLD_NAME] = "name",
                                      [TOLD_MORE] = "more"};

void told_free_all(struct box_result *r)
{
    for (size_t i = 0; i < r->n_left; i++) {
        free(r->left[i].kind);
        free(r->left[i].path);
        free(r->left[i].what);
    }
    free(r->left);
    r->left = NULL;
    r->n_left = 0;
}

void box_result_left(struct box_result *r, const char *kind, const char *path, const char *what)
{
    if (!r->left)
        r->left = calloc(MAX_LEFT, sizeof *r->left);
    if (!r->left || r->n_left == MAX_LEFT) {
        r->left_dropped++;
        return;
    }
    struct left_behind mine = {strdup(kind), strdup(path), what ? strdup(what) : NULL};
    if (mine.kind && mine.path && (!what || mine.what)) {
        r->left[r->n_left++] = mine;
        return;
    }
    r->left_dropped++;
    free(mine.kind);
    free(mine.path);
    free(mine.what);
}

void told_frame(struct box *b, const struct denial_frame *f, size_t n)
{
    struct denial_frame copy = {0};
    char kind[16], action[16], how[] = "guard", left[] = "left";

    /* The bytes come from a process beside hostile ones: ends are made sure of here. */
    memcpy(&copy, f, n < sizeof copy ? n : sizeof copy);
    copy.text[sizeof copy.text - 2] = copy.text[sizeof copy.text - 1] = 0;
    if (copy.action >= sizeof told_kinds / sizeof *told_kinds || !copy.text[0])
        return;
    char *path = copy.text, *what = copy.text + strlen(copy.text) + 1;
    strcpy(kind, told_kinds[copy.action]);
    strcpy(action, kind);
    if (!*what)
        what = NULL;
    if (copy.action == TOLD_MORE)
        b->result->left_untold = strtoul(path, NULL, 10);
    else
        box_result_left(b->result, kind, path, what);
    denial_log(b, &(struct denial){.kind = left, .action = action, .target = path, .how = how, .why = what});
}
