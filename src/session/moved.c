/* A session whose workspace was removed or moved. */
#include <string.h>

#include "session/replaced.h"
#include "session/session.h"

static bool is_elsewhere(const char *path, const char *workspace)
{
    const size_t n = strlen(workspace);
    return path[0] == '/' && (strncmp(path, workspace, n) != 0 || (path[n] && path[n] != '/'));
}

int replaced_workspace(const struct pinfold_session *s, const char *path, const char *remedy, struct err *e)
{
    const struct record *r = &s->record;
    const bool own = r->scope && r->scope[0];
    char name[80];
    bool there;
    if (!r->workspace_is || !r->workspace_is[0] || (path && is_elsewhere(path, r->workspace)))
        return 0;
    if (replaced_is(r->workspace, r->workspace_is, &there))
        return 0;
    session_shown(&s->place, name);
    (void)err_say(e, ERR_REFUSED, "session '%s' began in a directory '%s' that was removed or moved since%s; %s%s%s",
                  name, r->workspace, there ? ", and what is there now is another one, which it does not have" : "",
                  remedy ? remedy
                  : own  ? "end the session and begin a new one"
                         : "begin it anew: pinfold session start --as-before --recreate '",
                  remedy || own ? "" : name, remedy || own ? "" : "'");
    return -ESTALE;
}
