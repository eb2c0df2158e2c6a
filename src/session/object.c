/*
 * A session as the library hands it out: its name, its record, its limits. It holds no connection, so that it may be
 * kept while the session ends.
 */
#include "session/session.h"
#include "base/fd.h"
#include "backends/engine.h"
#include "sys/process.h"

struct pinfold_session *session_object(const char *name, const char *scope, struct err *e)
{
    struct arena *mem = arena_new_small(MAX_SESSION_ARENA);
    struct pinfold_session *s = mem ? arena_zero(mem, sizeof *s) : NULL;
    if (!s) {
        (void)arena_free(mem);
        (void)err_sys(e, ERR_SYSTEM, ENOMEM, "cannot find the session");
        return NULL;
    }
    s->files = s->soon = -1;
    s->mem = mem;
    if (place_named(name, scope, s->mem, &s->place, e) < 0) {
        pinfold_session_free(s);
        return NULL;
    }
    return s;
}

void pinfold_session_free(struct pinfold_session *s)
{
    if (!s)
        return;
    s->files = close_fd(s->files);
    s->soon = close_fd(s->soon);
    (void)arena_free(s->mem); /* and s with it */
}

void session_seen(const struct pinfold_session *s, int *ret_pid, bool *ret_no_mounts)
{
    *ret_pid = record_is_alive(&s->record) ? s->record.pid : 0;
    *ret_no_mounts = s->record.lost & (features)1 << FEATURE_REMAP;
}

int session_take_record(struct pinfold_session *s, struct err *e)
{
    struct record *r = &s->record;
    int no = record_read(&s->place, s->mem, r, e);
    if (no < 0)
        return no;
    const struct limit none = {.value = LIMIT_NONE};
    for (size_t i = 0; i < N_LIMITS; i++)
        s->limits.each[i] = none;
    s->limits.timeout.value = r->timeout_ms;
    s->limits.grace.value = r->grace_ms;
    s->limits.output.value = r->output;
    return 0;
}
