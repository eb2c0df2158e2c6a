/*
 * git/reftable.c on arbitrary bytes. Asserted: reading twice gives the same, and a walk that is ended early ends as it was told or not at all.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "git/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(void *ctx, struct str name, struct str target)
{
    struct buf *all = ctx;
    buf_str(all, name);
    buf_char(all, '>');
    buf_str(all, target);
    buf_char(all, '\n');
    return 0;
}

static int stop(void *ctx, struct str name, struct str target)
{
    (void)ctx, (void)target;
    return gitref_is_option(name) ? 7 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = BUF(1 << 20), twice = BUF(1 << 20);
    struct str text = {(const char *)data, size};
    int first = gitref_table(text, note, &once), second = gitref_table(text, note, &twice);
    if (first != second || !str_eq(buf_view(&once), buf_view(&twice)))
        abort();
    int stopped = gitref_table(text, stop, NULL);
    if (first == 0 && stopped != 0 && stopped != 7)
        abort();
    buf_free(&once);
    buf_free(&twice);
    return 0;
}
