/*
 * What a daemon of docker's, or podman, keeps for an instance (survey/owner.h): volumes of its sessions, and containers that
 * outlived their maker. All of it is found by labels, and nothing without them is ever touched.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include "base/arena.h"
#include "base/err.h"
#include "survey/owner.h"

struct container_daemon {
    bool podman;
    const char *host, *context; /* as for --docker-host and --docker-context; docker's socket is always known */
};

struct container_thing {
    bool volume;
    const char *name;    /* a container's id */
    const char *session; /* volumes: whose, a hash; "" */
    const char *boot, *process;
};

/* Remembers in `state` (.../pinfold) that this daemon was used; cheap when it is known. */
void container_note(const char *state, const struct container_daemon *d);
/* All that are remembered, in `mem`; the number of them. */
size_t container_noted(const char *state, struct arena *mem, const struct container_daemon **ret);
/* Forgets one that was not used for a while. */
void container_unnote(const char *state, const struct container_daemon *d);
/* Whether it is news that it is not there; from then on it is none, until it answers again. `path`: its note. */
bool container_say_missing(const char *state, const struct container_daemon *d, char path[PATH_MAX]);
void container_answers(const char *state, const struct container_daemon *d);

/* Everything that is labelled as the instance's. Errors say what does not answer, as the engine's probe does. */
int container_list(const struct container_daemon *d, const char *instance, struct arena *mem,
                   struct container_thing **ret, size_t *ret_n, struct err *e);
/* Makes the volume, or finds it; -EPERM with a sentence for one of that name that is somebody else's. */
int container_volume(const struct container_daemon *d, const char *name, const char *session, const struct owner *owner,
                     struct arena *mem, struct err *e);
/* 0 also when it is not there (any more); waits for what still uses a volume. */
int container_remove(const struct container_daemon *d, const struct container_thing *t, struct arena *mem,
                     struct err *e);
