/*
 * Containers and clients that are no boxes: one that looks into an image, in which this program is all that runs, and the choice of
 * the engine that has an image, or is to build it.
 */
#include "backends/container/container_image.h"

#include <string.h>
#include "backends/container/container.h"
#include "backends/tools/tool.h"

#define LOOK_PATIENCE 300000

/* One engine: works, and has the image. */
static int look_at_engine(const struct policy *p, struct arena *mem, bool podman, struct container_ask *ret,
                          struct node *ret_image, struct err *e)
{
    struct node info = {.kind = NODE_MAP};
    *ret = (struct container_ask){.policy = p, .mem = mem, .podman = podman};
    int r = container_find(ret, e);
    if (r == 0)
        r = container_info(ret, &info, e);
    return r == 0 && ret_image ? container_image(ret, &info, ret_image, e) : r;
}

int container_choose(const struct policy *p, struct arena *mem, struct container_ask *ret, struct node *ret_image,
                     struct err *e)
{
    struct err other = {0};
    const char *engine = p->engine && !same(p->engine, "auto") ? p->engine : NULL;
    if (engine && !same(engine, "docker") && !same(engine, "podman"))
        return err_say(e, ERR_POLICY, "the engine '%s' has no images; name docker or podman with --engine", engine);
    int r = look_at_engine(p, mem, !engine || same(engine, "podman"), ret, ret_image, e);
    if (r == 0 || engine)
        return r;
    if (look_at_engine(p, mem, false, ret, ret_image, &other) == 0)
        return 0;
    return err_hint(e, r, "and with docker: %s", other.text);
}

int container_look(const struct container_ask *ask, const char *const *words, struct buf *ret, struct err *e)
{
    static const char *const before[] = {"run",
                                         "--rm",
                                         "--pull",
                                         "never",
                                         "--network",
                                         "none",
                                         "--cap-drop",
                                         "ALL",
                                         "--cap-add",
                                         "DAC_READ_SEARCH",
                                         "--security-opt",
                                         "no-new-privileges",
                                         "--read-only",
                                         "--user",
                                         "0:0",
                                         "--workdir",
                                         "/",
                                         "--log-driver",
                                         "none",
                                         "--no-healthcheck",
                                         "--entrypoint",
                                         CONTAINER_LOOK,
                                         NULL};
    auto_buf struct buf said = BUF(65536);
    struct tool_words w = {.mem = ask->mem};
    const char *program;
    int r = tool_helper(ask->mem, "pinfold", &program, NULL, e);
    if (r < 0)
        return r;
    if (strpbrk(program, ",\"\n"))
        return err_say(e, ERR_CANNOT, "the path of this program, '%s', has a character that no mount option can hold",
                       program);
    for (size_t i = 0; before[i]; i++)
        tool_word(&w, before[i]);
    if (ask->podman) {
        tool_word(&w, "--http-proxy=false");
        tool_two(&w, "--image-volume", "ignore");
    }
    if (ask->policy->platform)
        tool_two(&w, "--platform", ask->policy->platform);
    tool_two(&w, "--label", CONTAINER_LABEL ".look=1");
    tool_two(&w, "--mount", arena_printf(ask->mem, "type=bind,src=%s,dst=" CONTAINER_LOOK ",readonly", program));
    tool_word(&w, ask->policy->image);
    for (size_t i = 0; words[i]; i++)
        tool_word(&w, words[i]);
    if (!arena_push(w.mem, &w.at, &w.n, sizeof *w.at) || w.failed) /* the end */
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot look into the image");
    r = container_client(ask, w.at, LOOK_PATIENCE, ret, &said);
    return r < 0 ? err_wrap(e, container_client_failed(ask, r, &said, e), "cannot look into the image '%s'",
                            ask->policy->image)
                 : 0;
}
