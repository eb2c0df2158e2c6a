/*
 * Golden files: every NAME.in of a folder below tests/golden is given to a function of the test, and what it writes must be
 * NAME.ENDING to the byte (no such file: nothing). GOLDEN_UPDATE=1 writes the files anew.
 */
#pragma once
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

typedef void golden_make(const char *name, const char *text, struct buf *out);

static char *golden_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    auto_buf struct buf b = BUF(8u << 20);
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        buf_put(&b, piece, n);
    fclose(f);
    return buf_take(&b);
}

static bool golden_one(const char *dir, const char *name, const char *ending, golden_make *make)
{
    char in[512], to[512];
    snprintf(in, sizeof in, "%s/%s.in", dir, name);
    snprintf(to, sizeof to, "%s/%s.%s", dir, name, ending);
    char *text = golden_read(in), *expected = golden_read(to);
    auto_buf struct buf out = BUF(8u << 20);
    assert_non_null(text);
    make(name, text, &out);
    bool equal = same(expected ? expected : "", buf_cstr(&out));
    if (!equal && getenv("GOLDEN_UPDATE")) {
        FILE *f = fopen(to, "wb");
        assert_non_null(f);
        fwrite(buf_cstr(&out), 1, out.n, f);
        fclose(f);
        equal = true;
    } else if (!equal) {
        print_error("%s: not as in %s.%s; got:\n%s\n", name, name, ending, buf_cstr(&out));
    }
    free(text);
    free(expected);
    return equal;
}

static int golden_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All of `folder`, of which there are `least` or more, in the order of their names. */
static void golden_folder(const char *folder, const char *ending, size_t least, golden_make *make)
{
    char dir[256];
    const char *source = getenv("PINFOLD_SOURCE");
    snprintf(dir, sizeof dir, "%s/tests/golden%s", source ? source : "../..", folder);
    DIR *d = opendir(dir);
    assert_non_null(d);
    char *names[256];
    size_t n = 0, wrong = 0;
    for (struct dirent *e; n < 256 && (e = readdir(d));) {
        size_t k = strlen(e->d_name);
        if (k > 3 && strcmp(e->d_name + k - 3, ".in") == 0)
            names[n++] = strndup(e->d_name, k - 3);
    }
    closedir(d);
    assert_true(n >= least && n < 256);
    qsort(names, n, sizeof *names, golden_by_name);
    for (size_t i = 0; i < n; i++) {
        wrong += !golden_one(dir, names[i], ending, make);
        free(names[i]);
    }
    assert_int_equal(wrong, 0);
}
