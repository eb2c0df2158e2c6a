/*
 * Translates daycare's `docker` section, by its design text. A table of its keys; one that is not in it is named as
 * unknown (foreign.c).
 */
#include "policy/import/foreign.h"

static int daycare_socket(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR)
        return foreign_wrong(f, "socketPath", n, "text");
    return foreign_say(f, KEY_DOCKER_HOST, n, n->text, STR(""), 0); /* said, so DOCKER_HOST does not count */
}
static int daycare_runtime(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR)
        return foreign_wrong(f, "runtime", n, "text");
    return foreign_say(f, KEY_RUNTIME, n, n->text, STR(""), 0);
}

int foreign_daycare(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {{"enabled", NULL, NULL}, /* handled below, with image and tag */
                                                {"image", NULL, NULL},
                                                {"tag", NULL, NULL},
                                                {"socketPath", daycare_socket, NULL},
                                                {"runtime", daycare_runtime, NULL},
                                                {NULL, NULL, NULL}};
    const struct node *docker = node_get(root, "docker");
    bool on = false;

    if (!docker) /* other sections are not about the sandbox: without this one there is none */
        return foreign_say_text(f, KEY_ENGINE, root, "native");
    int r = foreign_map(f, "docker.", docker, specs);
    f->prefix = "docker.";
    const struct node *enabled = node_get(docker, "enabled"), *image = node_get(docker, "image"),
                      *tag = node_get(docker, "tag");
    if (r == 0 && enabled)
        r = foreign_bool(f, "enabled", enabled, &on);
    if (r == 0 && image && image->kind != NODE_SCALAR)
        r = foreign_wrong(f, "image", image, "text");
    if (r == 0 && tag && tag->kind != NODE_SCALAR)
        r = foreign_wrong(f, "tag", tag, "text");
    if (r < 0)
        return r;
    if (!on)
        return foreign_say_text(f, KEY_ENGINE, enabled ? enabled : docker, "native");
    struct str name = image ? image->text : STR("daycare-sandbox"), version = tag ? tag->text : STR("latest");
    r = foreign_say_text(f, KEY_ENGINE, enabled, "docker");
    return r < 0 ? r
                 : foreign_say_text(
                       f, KEY_IMAGE, image ? image : docker,
                       arena_printf(f->src->list->mem, "%.*s:%.*s", (int)name.n, name.p, (int)version.n, version.p));
}
