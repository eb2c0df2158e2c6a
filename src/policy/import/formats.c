/*
 * Which reader translates settings of which format. Each makes statements of pinfold's own language, which then go
 * the way of every policy text.
 */
#include "policy/import/foreign.h"

int read_foreign(const struct source *src, enum policy_format format, const struct node *root)
{
    struct foreign f = {.src = src, .prefix = ""};

    if (format == POLICY_BWRAP)
        return read_bwrap(src, root);
    if (root->kind != NODE_MAP)
        return place_say(src->e, ERR_POLICY, src->file, root->line, root->column,
                         "the settings must be a mapping, not %s",
                         node_is_null(root) ? "nothing" : node_kind_name(root));
    switch (format) {
    case POLICY_SRT_STRICT:
        f.strict = true;
        return foreign_srt(&f, root);
    case POLICY_SRT:
        return foreign_srt(&f, root);
    case POLICY_DIVE:
        return foreign_dive(&f, root);
    case POLICY_MYCODE:
        return foreign_mycode(&f, root);
    case POLICY_DAYCARE:
        return foreign_daycare(&f, root);
    case POLICY_BWRAP:
    case POLICY_YAML:
        break;
    }
    return err_say(src->e, ERR_BUG, "%s: unknown format", src->file);
}
