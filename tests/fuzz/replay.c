/*
 * Runs a fuzz target over every file of the directories given. What was found once is looked at in every test run.
 */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

static int run(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t n = 0, room = 1 << 16;
    uint8_t *bytes = malloc(room);
    if (!f || !bytes) {
        perror(path);
        return 1;
    }
    for (size_t got; (got = fread(bytes + n, 1, room - n, f)) > 0;) {
        n += got;
        if (n == room && !(bytes = realloc(bytes, room *= 2)))
            abort();
    }
    fclose(f);
    /* Exactly as long as it is, so that a sanitizer sees a byte too far. */
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        abort();
    memcpy(exact, bytes, n);
    free(bytes);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (!dir) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *d; (d = readdir(dir));) {
            char path[4096];
            if (d->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], d->d_name);
            if (run(path))
                return 1;
            files++;
        }
        closedir(dir);
    }
    printf("%u files\n", files);
    return files ? 0 : 1; /* an empty corpus proves nothing */
}
