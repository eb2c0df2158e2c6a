/*
 * Settings of agents in JSON, three texts parted by NUL (what was copied, the host's, the box's): what a box is shown has none of the
 * blanked texts, what is listed is a line each without control characters, and each listed change can be asked for by its name.
 */
#include <errno.h>

#include "agents/agents.h"
#include "fuzz.h"

static const char *blank[] = {"tokens.refresh", "*.secret", NULL};
static const char *only[] = {"projects", NULL};
static const struct agent_kept filtered = {.name = "f", .blank = blank, .only = only};
static const struct agent_kept whole = {.name = "f"};

static void check_shown(struct str host)
{
    char *once = NULL, *twice = NULL;
    size_t n, m;
    if (agent_json_shown(&filtered, "/p", host, &once, &n) < 0)
        return;
    MUST(!agent_json_own_login(&filtered, (struct str){once, n}));
    MUST(agent_json_shown(&filtered, "/p", (struct str){once, n}, &twice, &m) == 0);
    MUST(n == m && memcmp(once, twice, n) == 0);
    free(once);
    free(twice);
}

static void check_join(struct str base, struct str host, struct str box)
{
    char *both = NULL;
    size_t n;
    if (agent_json_join(base, host, box, &both, &n) < 0)
        return;
    auto_buf struct buf none = BUF(1 << 20);
    /* It is an object again, in which nothing that both had is missing. */
    MUST(agent_json_changes(&whole, "f", (struct str){both, n}, (struct str){both, n}, &none) == 0 && none.n == 0);
    free(both);
}

static void check_changes(struct str base, struct str host, struct str box)
{
    auto_buf struct buf listed = BUF(16 << 20);
    if (agent_json_changes(&whole, "f", base, box, &listed) < 0)
        return;
    struct str rest = buf_view(&listed);
    while (rest.n) {
        struct str line = str_until(&rest, '\n'), name = str_until(&line, '\t');
        MUST(name.n > 2 && name.p[0] == 'f' && name.p[1] == ':' && line.n);
        for (size_t i = 0; i < name.n; i++)
            MUST((unsigned char)name.p[i] >= 0x20 && (unsigned char)name.p[i] <= 0x7f);
        for (size_t i = 0; i < line.n; i++)
            MUST((unsigned char)line.p[i] >= 0x20);
        char key[512];
        if (name.n - 2 >= sizeof key)
            continue;
        memcpy(key, name.p + 2, name.n - 2);
        key[name.n - 2] = 0;
        auto_buf struct buf taken = BUF(16 << 20);
        int r = agent_json_take(&whole, key, base, box, host, &taken);
        MUST(r == 0 || r == -EINVAL || r == -EFBIG || r == -ENODATA);
        MUST((r == 0) == (taken.n > 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct str base = str_until(&rest, 0), host = str_until(&rest, 0), box = rest;
    check_shown(host);
    check_join(base, host, box);
    check_changes(base, host, box);
    return 0;
}
