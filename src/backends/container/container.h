/* What the files of the docker and podman engines share. */
#pragma once
#include "backends/engine.h"

/* Paths in a container that belong to pinfold: its program, and the directory of the check-in. */
#define CONTAINER_INIT  "/.pinfold/init"
#define CONTAINER_PLACE "/.pinfold/in"
/* Label of all our containers, so that those left after a power failure can be found (docker ps --filter). */
#define CONTAINER_LABEL "io.pinfold"
/* Our own threads and processes in a container, which count towards its process limit: the guard's, pid 1. */
#define CONTAINER_OWN_PROCESSES 66

/* A client that pulls nothing answers in a second; on a loaded machine it may take longer. */
#define CONTAINER_PATIENCE_MS 120000

extern const struct engine engine_docker, engine_podman;
int docker_image_id(const struct policy *p, struct arena *mem, const char **ret, struct err *e);
int podman_image_id(const struct policy *p, struct arena *mem, const char **ret, struct err *e);
int docker_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e);
int podman_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e);
int container_argv(const struct plan *plan, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                   struct err *e);
