/*
 * Directories a model may name: absolute, and really within one of the permitted ones whatever links there are, and over none that a box may have made.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The real path (malloc()ed), or NULL with a sentence that names path and rule. `ret_fd` (O_PATH) holds the
 * directory itself, reached from its base without a link: who mounts by the path compares what he got with it, because
 * what can write there can put another one in its place meanwhile.
 */
struct mcp_options;
char *directory_permitted(const char *directory, const struct mcp_options *o, int *ret_fd, char *why, size_t room);
/* Where all instances store, hidden in every box but for what is mounted; NULL: nowhere. malloc()ed. */
char *directory_store(void);
/* The file that pinfold's audit log is written to; NULL: nowhere. malloc()ed. */
char *directory_audit(void);
/* A directory of pinfold's own for what an instance stores, made with mode 0700; NULL with errno. malloc()ed. */
char *directory_state(const char *instance, const char *name, bool make);
/* Removes what an instance has stored, and what all those have of which `is_dead` says so. Links are not followed. */
void directory_forget(const char *instance);
void directory_forget_dead(bool (*is_dead)(const char *scope));
