/*
 * Scripts of a package.json, as npm and its like run them. Read after a command has failed, to find in them a program that no box lets
 * work; what is no JSON has none.
 */
#include <jansson.h> /* before base/json.h */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/project.h"

enum { MANIFEST_BYTES = 256 << 10 };

/* What it says of `name`, behind `to`. A box may have written it. */
static void put_script(const json_t *scripts, const char *before, const char *name, struct buf *to)
{
    char key[PROJECT_WORD];
    snprintf(key, sizeof key, "%s%s", before, name);
    const char *script = json_string_value(json_object_get(scripts, key));
    if (script)
        buf_printf(to, "%s\n", script);
}

void project_script_of(const char *name, struct buf *to)
{
    auto_buf struct buf text = BUF(MANIFEST_BYTES);
    struct stat st;
    auto_fd int fd = open("package.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fd_read_all(fd, &text) < 0)
        return;
    json_t *all = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
    const json_t *scripts = json_object_get(all, "scripts");
    put_script(scripts, "pre", name, to);
    put_script(scripts, "", name, to);
    put_script(scripts, "post", name, to);
    json_decref(all);
}
