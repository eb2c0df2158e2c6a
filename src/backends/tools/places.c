/*
 * Reads from a plan what engines need whose boxes have the host's files. Pure: bwrap, firejail and nsjail make their
 * command lines of it, which golden tests compare.
 */
#include "backends/tools/tool.h"
#include "match/path.h"

int tool_no_namespaces(const struct facts *f, struct err *e)
{
    const char *why = f->why_not[FEATURE_PID_NAMESPACE];
    return err_say(e, ERR_CANNOT, "%s needs user namespaces here: %s", f->engine,
                   why ? why : "the kernel refuses them");
}

bool tool_root_writable(const struct plan_image *image)
{
    const struct step *s = plan_steps(image);
    return image->n_steps && s->kind == STEP_ROOT && !(s->flags & STEP_RDONLY);
}

const char *tool_hostname(const struct plan_image *image)
{
    const struct step *s = plan_steps(image);
    for (uint32_t i = 0; i < image->n_steps; i++) {
        if (s[i].kind == STEP_HOSTNAME)
            return plan_string(image, s[i].a);
    }
    return NULL;
}

/* How the source in `slot` is used: the flags of its ATTACH. One that nothing attaches is a store of ours. */
static unsigned source_flags(const struct plan_image *image, uint32_t slot)
{
    const struct step *s = plan_steps(image);
    for (uint32_t i = image->n_steps; i-- > 0;) {
        if (s[i].kind == STEP_ATTACH && s[i].b == slot)
            return s[i].flags;
    }
    return STEP_NODEV;
}

/* 'lower\nupper\nwork': the directory that contains upper and work. */
static const char *overlay_dir(struct arena *mem, const char *text)
{
    size_t lower = strcspn(text, "\n"), upper = text[lower] ? strcspn(text + lower + 1, "\n") : 0, n = upper;
    const char *at = text + lower + 1;
    while (n > 1 && at[n - 1] != '/')
        n--;
    return n > 1 ? arena_str(mem, (struct str){at, n - 1}) : NULL;
}

/* Whether `path` is in a place already listed. */
static bool is_said(const char *const *said, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        if (path_at_or_below(path, said[i]))
            return true;
    }
    return false;
}

void tool_places(const struct plan *plan, struct tool_words *w,
                 void (*place)(struct tool_words *w, const char *path, bool device))
{
    const struct plan_image *image = plan->image;
    const struct step *s = plan_steps(image);
    const char **said = arena_zero(w->mem, (image->n_steps + 1) * sizeof *said);
    size_t n = 0;
    w->failed |= !said;
    for (uint32_t i = 0; said && i < image->n_steps; i++) {
        const char *path = s[i].kind == STEP_SOURCE    ? plan_string(image, s[i].a)
                           : s[i].kind == STEP_LAYER   ? plan_string(image, s[i].b)
                           : s[i].kind == STEP_OVERLAY ? overlay_dir(w->mem, plan_string(image, s[i].b))
                                                       : NULL;
        unsigned flags = s[i].kind == STEP_SOURCE ? source_flags(image, s[i].b) : STEP_NODEV;
        bool device = !(flags & STEP_NODEV);
        if (!path || (flags & STEP_RDONLY && !device) || (!device && is_said(said, n, path)))
            continue; /* a read-only source is cloned from the root as it is */
        place(w, path, device);
        if (!device)
            said[n++] = path;
    }
}
