/* Hidden subcommands with which pinfold starts itself: the server of the shared library, the attack program, the guard, the
   egress proxy;
   and what the command line alone uses of the parts below. */
#include "client/entry.h"
#include "run/agent/agent_login.h"

#include <stdio.h>

#include "backends/native/native.h"
#include "base/str.h"
#include "doctor/attack.h"
#include "doctor/doctor.h"
#include "client/server.h"
#include "supervisor/network/apart.h"
#include "run/agent/agent_own.h"
#include "run/asked/inquiry.h"
#include "run/image/look.h"
#include "run/nested.h"
#include "run/options.h"
#include "run/trust.h"
#include "run/waits.h"
#include "run/world.h"
#include "session/session.h"

enum { TRUST_ARENA = 8 << 20 };

bool entry_hidden(int argc, char **argv, int *ret_status)
{
    native_main(argc, argv);
    network_main(argc, argv);
    world_settle_home(); /* services have none: all that looks for it finds the same one */
    if (argc < 2 || argv[1][0] != '-' || argv[1][1] != '-')
        return false;
    if (argc == 2 && same(argv[1], "--serve")) {
        *ret_status = serve();
        return true;
    }
    if (argc > 2 && same(argv[1], "--attack")) {
        *ret_status = attack_main(argc - 2, argv + 2);
        return true;
    }
    if (argc > 2 && same(argv[1], IMAGE_LOOK)) {
        *ret_status = image_look_main(argc - 2, argv + 2);
        return true;
    }
    return false;
}

void entry_waits_said(void)
{
    waits_begin(2, -1);
}

bool entry_agent_known(const char *name)
{
    return agent_start_known(name);
}

bool entry_agent_keys(const char *name, struct agent_keys *ret)
{
    return agent_start_keys(name, ret);
}

bool entry_agent_owns(const char *name, const char *option)
{
    return agent_start_owns(name, option);
}

int entry_agent_begin(const struct agent_begin *ask, struct agent_begun *ret, struct pinfold_error *error)
{
    return agent_start_begin(ask, ret, error);
}

int entry_dangers_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    return doctor_dangers_report(ret, error);
}

int entry_agent_keep(struct agent_begun *b, int pid, struct pinfold_error *error)
{
    return agent_start_keep(b, pid, error);
}

int entry_session_soon(const struct pinfold_session_options *options, struct pinfold_session **ret,
                       struct pinfold_error *error)
{
    return session_open_soon(options, ret, error);
}

void entry_session_seen(const struct pinfold_session *s, struct session_seen *ret)
{
    session_seen(s, &ret->pid, &ret->no_mounts);
}

const char *entry_agent_after(struct agent_begun *b)
{
    return agent_start_after(b);
}

void entry_agent_end(struct agent_begun *b)
{
    agent_start_end(b);
}

const char *entry_agent_define(const char *file, char *why, size_t room)
{
    struct err e = {0};
    const char *name = NULL;
    if (agent_own_take(file, &name, &e) == 0)
        return name;
    snprintf(why, room, "%s", e.text);
    return NULL;
}

int entry_agent_login(struct agent_begun *b, bool write, struct pinfold_error *error)
{
    return agent_login_store(b, write, error);
}

int entry_trust_written(const char *path, struct str content, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(TRUST_ARENA);
    struct err e = {0};
    const char *state;
    int r = mem ? world_state(mem, &state, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "trust");
    if (r == 0)
        r = trust_content(mem, state, path, content, &e);
    return r < 0 ? tell(error, &e, r) : 0;
}

bool entry_in_box(void)
{
    return nested_in_box();
}

int entry_open_url(const char *url, struct pinfold_error *error)
{
    struct err e = {0};
    int r = inquiry_open(url, &e);
    return r < 0 ? tell(error, &e, r) : 0;
}

int entry_agent_merge(const char *name, const char *const *takes, char **ret, struct pinfold_error *error)
{
    return agent_start_merge(name, takes, ret, error);
}

int entry_agent_init(const char *name, bool auth, bool force, char **ret, struct pinfold_error *error)
{
    return agent_start_init(name, auth, force, ret, error);
}

int entry_agent_adopt(const char *name, const char *workspace, const char *from, char **ret,
                      struct pinfold_error *error)
{
    return agent_start_adopt(name, workspace, from, ret, error);
}

size_t entry_volumes_find(const char *prefix, int patience_ms, struct volume_found *ret, size_t room)
{
    return volumes_find(prefix, patience_ms, ret, room);
}

int entry_volume_user(const struct volume_found *v, char name[VOLUME_NAME], struct pinfold_error *error)
{
    return volume_user(v, name, error);
}

int entry_volume_read_begin(const struct volume_found *v, struct volume_reading *ret, struct pinfold_error *error)
{
    return volume_read_begin(v, ret, error);
}

int entry_volume_read_end(struct volume_reading *r, struct pinfold_error *error)
{
    return volume_read_end(r, error);
}

int entry_agent_logout(const char *name, char **ret, struct pinfold_error *error)
{
    return agent_start_logout(name, ret, error);
}

int entry_image_check(const struct image_check_ask *ask, struct image_checked *ret, struct pinfold_error *error)
{
    return image_check(ask, ret, error);
}

void entry_image_checked_free(struct image_checked *c)
{
    image_checked_free(c);
}

void entry_image_dockerfile(struct str text, image_dockerfile_found *found, void *ctx)
{
    image_dockerfile_check(text, found, ctx);
}

int entry_image_build(const struct image_build *b, struct image_built *ret, struct pinfold_error *error)
{
    return image_build(b, ret, error);
}

int entry_image_version(const char *option, const char *package, const char *said, char ret[IMAGE_VERSION],
                        struct pinfold_error *error)
{
    return image_version(option, package, said, ret, error);
}

const char *entry_image_own_file(const char *own, const char *name)
{
    return image_own_file(own, name);
}
