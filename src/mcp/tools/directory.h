/*
 * Directories that a model may name: absolute, and really inside a permitted one, whatever links there are, and not
 * reached over a link that a box may have created.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The real path (malloc()ed), or NULL with a message that names path and rule. `ret_fd` (O_PATH) is the directory
 * itself, opened from its base without following a link: compare it with what is mounted by the path, which a box that
 * can write there could replace meanwhile.
 */
struct mcp_options;
char *directory_permitted(const char *directory, const struct mcp_options *o, int *ret_fd, char *why, size_t room);
/* The storage of all instances, hidden in every box except for what is mounted; NULL: none. malloc()ed. */
char *directory_store(void);
/* The file of pinfold's audit log; NULL: none. malloc()ed. */
char *directory_audit(void);
/* A directory for what an instance stores, created with mode 0700; NULL with errno. malloc()ed. */
char *directory_state(const char *instance, const char *name, bool make);
/* Removes what an instance has stored, and that of all instances for which `is_dead` is true. Links are not
   followed. */
void directory_forget(const char *instance);
void directory_forget_dead(bool (*is_dead)(const char *scope));
