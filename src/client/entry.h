/* Hidden entry points of the program: other parts of pinfold start it with these arguments. */
#pragma once
#include <stdbool.h>
#include "run/agent/agent_start.h" /* the command line's agents, which are no part of the library */
#include "run/image/build.h"       /* and images */
#include "run/image/export.h"

/* --serve (server of the shared library), --attack (doctor's attacks in a box) and --look-at-image (in a container): true if it was one of them. --guard-process
   (the guard of a box) does not return. */
bool entry_hidden(int argc, char **argv, int *ret_status);

/* From here on a wait for a file system or another pinfold's lock is said on standard error, until a box starts (run/waits.h). */
void entry_waits_said(void);

/* As pinfold_trust(), for a policy that was just written: nothing is trusted that somebody has put in its place. */
int entry_trust_written(const char *path, struct str content, struct pinfold_error *error);

/* Agents by name: run/agent/agent_start.h says what they do. */
bool entry_agent_known(const char *name);
bool entry_agent_keys(const char *name, struct agent_keys *ret);
bool entry_agent_owns(const char *name, const char *option);
int entry_agent_begin(const struct agent_begin *ask, struct agent_begun *ret, struct pinfold_error *error);
void entry_agent_end(struct agent_begun *b);
int entry_dangers_report(struct pinfold_report **ret, struct pinfold_error *error); /* parts of doctor's */
int entry_agent_keep(struct agent_begun *b, int pid, struct pinfold_error *error);
/* An agent that a file defines (run/agent/agent_own.h); `why` gets the sentence when it returns NULL. */
const char *entry_agent_define(const char *file, char *why, size_t room);
const char *entry_agent_after(struct agent_begun *b);
int entry_agent_login(struct agent_begun *b, bool write, struct pinfold_error *error);
/* In a box: asks for an address to be opened in the browser outside (run/asked/inquiry.h). */
bool entry_in_box(void);
/* What is written down of a session that was found or started: asking its daemon would take longer. */
struct session_seen {
    int pid;        /* of the daemon; 0: it has ended */
    bool no_mounts; /* its box has none of its own, and so nothing of what is shown at other paths */
};
/* As pinfold_session_open(), for a command that follows at once. */
int entry_session_soon(const struct pinfold_session_options *options, struct pinfold_session **ret,
                       struct pinfold_error *error);
void entry_session_seen(const struct pinfold_session *s, struct session_seen *ret);
int entry_open_url(const char *url, struct pinfold_error *error);
int entry_agent_merge(const char *name, const char *const *takes, char **ret, struct pinfold_error *error);
int entry_agent_init(const char *name, bool auth, bool force, char **ret, struct pinfold_error *error);
/* Settings of the agent's in a directory that a stranger filled, into the layer of the project here, where it has none. */
int entry_agent_adopt(const char *name, const char *workspace, const char *from, char **ret,
                      struct pinfold_error *error);
int entry_agent_logout(const char *name, char **ret, struct pinfold_error *error);

/* Images (run/image/image.h). */
int entry_image_check(const struct image_check_ask *ask, struct image_checked *ret, struct pinfold_error *error);
void entry_image_checked_free(struct image_checked *c);
int entry_image_build(const struct image_build *b, struct image_built *ret, struct pinfold_error *error);
int entry_image_version(const char *option, const char *package, const char *said, char ret[IMAGE_VERSION],
                        struct pinfold_error *error);
size_t entry_volumes_find(const char *prefix, int patience_ms, struct volume_found *ret, size_t room);
int entry_volume_user(const struct volume_found *v, char name[VOLUME_NAME], struct pinfold_error *error);
int entry_volume_read_begin(const struct volume_found *v, struct volume_reading *ret, struct pinfold_error *error);
int entry_volume_read_end(struct volume_reading *r, struct pinfold_error *error);
const char *entry_image_own_file(const char *own, const char *name);
void entry_image_dockerfile(struct str text, image_dockerfile_found *found, void *ctx);
