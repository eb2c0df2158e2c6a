/* git/gitindex.c on arbitrary bytes. Asserted: a refusal is told, a pass is silent, and reading twice gives the same. */
#include <stdint.h>
#include <stdlib.h>
#include "base/buf.h"
#include "git/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf why = BUF(4096);
    struct str text = {(const char *)data, size};
    int no = gitindex_judge(text, &why);
    if ((no == 0) != (why.n == 0) || gitindex_judge(text, NULL) != no)
        abort();
    buf_free(&why);
    return 0;
}
