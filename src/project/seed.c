/*
 * A directory that the tool agent-sandbox has made: .agent-sandbox/config.json, {"readonly": ["PATH"], "ports": ["HOST:BOX"]}. It is the
 * project's, so it can only tighten: paths become protected, ports are told.
 */
#include <jansson.h> /* before base/json.h */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/seed.h"

#define SEED_FILE PROJECT_SEED "/config.json"

enum { SEED_BYTES = 64 * 1024 };

static int wrong(char *why, size_t room, const char *what)
{
    snprintf(why, room, SEED_FILE ": %s; correct it, or remove the file", what);
    return -EINVAL;
}

/* Below the project, as the tool wants it: no "..", no beginning "/". */
static bool is_relative(const char *path)
{
    struct str rest = str_of(path);
    bool good = rest.n > 0 && rest.n < SEED_PATH && path[0] != '/';
    while (good && rest.n)
        good = !str_is(str_until(&rest, '/'), "..");
    return good;
}

static int take_paths(const json_t *list, struct seed *ret, char *why, size_t room)
{
    size_t i;
    json_t *one;
    if (list && !json_is_array(list))
        return wrong(why, room, "\"readonly\" is not a list");
    if (json_array_size(list) > SEED_PATHS)
        return wrong(why, room, "\"readonly\" has more than 16 paths");
    json_array_foreach(list, i, one)
    {
        const char *path = json_string_value(one);
        if (!path || !is_relative(path))
            return wrong(why, room, "\"readonly\" has an entry that is not a path below the project");
        snprintf(ret->paths[ret->n_paths++], SEED_PATH, "%s", path);
    }
    return 0;
}

static int take_ports(const json_t *list, struct seed *ret, char *why, size_t room)
{
    size_t i, n = 0;
    json_t *one;
    if (list && !json_is_array(list))
        return wrong(why, room, "\"ports\" is not a list");
    json_array_foreach(list, i, one)
    {
        const char *port = json_string_value(one);
        if (!port || !port[0] || port[strspn(port, "0123456789:")])
            return wrong(why, room, "\"ports\" has an entry that is not HOST:BOX");
        if (n + strlen(port) + 16 < sizeof ret->ports)
            n += (size_t)snprintf(ret->ports + n, sizeof ret->ports - n, " --publish %s", port);
    }
    return 0;
}

int seed_read(const char *real, struct seed *ret, char *why, size_t room)
{
    auto_buf struct buf text = BUF(SEED_BYTES);
    struct stat st;
    *ret = (struct seed){.n_paths = 0};
    auto_fd int dir = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_fd int own = dir < 0 ? -1 : openat(dir, PROJECT_SEED, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0)
        return 0;
    auto_fd int fd = openat(own, "config.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : wrong(why, room, strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return wrong(why, room, "it is not a regular file");
    const int no = fd_read_all(fd, &text);
    if (no < 0)
        return wrong(why, room, no == -EFBIG ? "it is too large" : strerror(-no));
    json_t *all = json_loadb(buf_cstr(&text), text.n, 0, NULL);
    int r = json_is_object(all) ? 0 : wrong(why, room, "it is not a JSON object");
    if (r == 0)
        r = take_paths(json_object_get(all, "readonly"), ret, why, room);
    if (r == 0)
        r = take_ports(json_object_get(all, "ports"), ret, why, room);
    json_decref(all);
    return r;
}
