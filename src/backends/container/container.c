/*
 * The engines docker and podman: the client runs in the foreground as long as its container; its output is kept for the
 * message of a failed start. --rm removes the container afterwards.
 */
#include "backends/container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hex.h"
#include "backends/container/container_ask.h"
#include "backends/container/container_left.h"
#include "backends/tools/tool.h"

/* Sixteen random letters. */
static void new_id(char id[17])
{
    uint8_t bytes[8] = {0};
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        snprintf((char *)bytes, sizeof bytes, "%d", (int)getpid());
    hex_digits(bytes, sizeof bytes, id);
}

static const char *daemon_host(const struct plan *p)
{
    const struct container_fact *c = p->facts->container;
    return c->socket ? c->socket : c->host;
}

/* The labels by which the container is found again, at a noted daemon, when everybody who could end it is dead. */
static void begin_owner(const struct plan *p, struct arena *mem, struct owner *ret)
{
    const char *state = p->facts->state_home ? arena_printf(mem, "%s/pinfold", p->facts->state_home) : NULL;
    const struct container_fact *c = p->facts->container;
    const struct container_daemon d = {c->podman, daemon_host(p), c->socket ? NULL : c->context};
    owner_of_this(state, ret);
    if (ret->instance[0])
        container_note(state, &d);
}

/* The engine's own choice of a runtime may not work on this kernel: crun and control groups of version 1, for example. */
static int name_runtime(const struct start_request *ask, int r, struct err *e)
{
    bool failed = r < 0 && e && (strstr(e->text, "OCI runtime") || strstr(e->text, "container create failed"));
    if (!failed || ask->plan->policy->runtime)
        return r;
    if (strstr(e->text, "error mounting") && strstr(e->text, "invalid argument"))
        return err_hint(e, r,
                        "a file system is mounted below that directory, as podman's own storage is in a home: name "
                        "the directories below it that the box needs");
    return err_hint(e, r, "its OCI runtime does not work here: choose another with --runtime runc, or --runtime crun");
}

static int start_container(const struct engine *engine, const struct start_request *ask, struct started *ret,
                           struct err *e)
{
    auto_arena struct arena *mem = arena_new(4u << 20);
    struct owner owner = {0};
    char id[17];
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the box");
    new_id(id);
    begin_owner(ask->plan, mem, &owner);
    const struct tool_way way = {.engine = engine,
                                 .program = ask->plan->facts->tool,
                                 .id = id,
                                 .boot = owner.boot[0] ? owner.boot : NULL,
                                 .instance = owner.instance[0] ? owner.instance : NULL,
                                 .process = owner.process,
                                 .by_path = true,
                                 .env = container_env(mem),
                                 .patience_ms = CONTAINER_PATIENCE_MS};
    if (!way.env)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the box");
    return name_runtime(ask, tool_start(&way, ask, ret, e), e);
}

static int docker_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    return start_container(&engine_docker, ask, ret, e);
}

static int podman_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    return start_container(&engine_podman, ask, ret, e);
}

const struct engine engine_docker = {.name = "docker",
                                     .program = "docker",
                                     .package = "docker.io",
                                     .images = true,
                                     .probe = docker_probe,
                                     .image_id = docker_image_id,
                                     .argv = container_argv,
                                     .start = docker_start,
                                     .finish = tool_finish};

const struct engine engine_podman = {.name = "podman",
                                     .program = "podman",
                                     .package = "podman",
                                     .images = true,
                                     .probe = podman_probe,
                                     .image_id = podman_image_id,
                                     .argv = container_argv,
                                     .start = podman_start,
                                     .finish = tool_finish};
