/*
 * Volumes that another tool has made with docker or podman: which there are, who uses one, and its files as an archive. They are only
 * read. For the command line only (client/entry.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "pinfold.h"

enum { VOLUME_NAME = 256, VOLUME_QUICK_MS = 3000, VOLUME_PATIENCE_MS = 30000 };

struct volume_found {
    char name[VOLUME_NAME];
    bool podman;
};
/*
 * Volumes whose names begin with `prefix`, of docker's daemon and of podman, in order; how many, at most `room`. Starts nothing: podman's
 * are looked for where it keeps them. An engine that is not there or does not answer has none.
 */
size_t volumes_find(const char *prefix, int patience_ms, struct volume_found *ret, size_t room);
/* A running container that has it mounted: 1 and its name, 0: none; -errno. */
int volume_user(const struct volume_found *v, char name[VOLUME_NAME], struct pinfold_error *error);

struct volume_reading {
    int archive; /* read it to its end, and close it by volume_read_end() */
    int pid, said;
};
/*
 * Begins to read: of docker by `docker cp` from a container that is made of an empty image and never started, of podman by `podman volume
 * export`. What is made for that is removed at the end; what a killed process left, by the next one.
 */
int volume_read_begin(const struct volume_found *v, struct volume_reading *ret, struct pinfold_error *error);
/* 0 if the archive was whole. */
int volume_read_end(struct volume_reading *r, struct pinfold_error *error);
