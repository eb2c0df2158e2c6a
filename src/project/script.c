/* Texts of the scripts, which run in boxes. The build makes the array of them. */
#include "base/str.h"
#include "project/branch.h"

const char *project_script(const char *name)
{
    for (const struct project_script *s = project_scripts; s->name; s++) {
        if (same(s->name, name))
            return s->text;
    }
    return "exit 99";
}
