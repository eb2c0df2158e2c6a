/*
 * What docker's daemon or podman keeps for an instance (survey/owner.h): volumes of its sessions, and containers that
 * outlived their creator. All are found by labels; nothing without these labels is touched.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include "base/arena.h"
#include "base/err.h"
#include "survey/owner.h"

struct container_daemon {
    bool podman;
    const char *host, *context; /* as for --docker-host and --docker-context; docker's socket is always set */
};

struct container_thing {
    bool volume;
    const char *name;    /* a container's id */
    const char *session; /* volumes: hash of the owning session; "" */
    const char *boot, *process;
};

/* Notes in `state` (.../pinfold) that this daemon was used; cheap if that is known. */
void container_note(const char *state, const struct container_daemon *d);
/* All daemons noted, in `mem`; returns their number. */
size_t container_noted(const char *state, struct arena *mem, const struct container_daemon **ret);
/* Removes the note of one that has not been used for a while. */
void container_unnote(const char *state, const struct container_daemon *d);
/* Whether nobody was told yet that it does not answer; notes that somebody is, until it answers again. `path`: its
   note. */
bool container_say_missing(const char *state, const struct container_daemon *d, char path[PATH_MAX]);
void container_answers(const char *state, const struct container_daemon *d);

/* Lists everything with the instance's label. Errors say what does not answer, as the engine's probe does. */
int container_list(const struct container_daemon *d, const char *instance, struct arena *mem,
                   struct container_thing **ret, size_t *ret_n, struct err *e);
/* Creates or finds the volume; -EPERM with a message if one of that name belongs to somebody else. */
int container_volume(const struct container_daemon *d, const char *name, const char *session, const struct owner *owner,
                     struct arena *mem, struct err *e);
/* 0 also if it does not exist; waits while something uses a volume. */
int container_remove(const struct container_daemon *d, const struct container_thing *t, struct arena *mem,
                     struct err *e);
