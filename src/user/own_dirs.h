/*
 * The user's directories in which pinfold keeps things. A home is never made, since one that is missing is so on purpose (HOME=/nonexistent
 * of services and CI jobs), and root makes nothing in the home of another user (sudo that keeps HOME), who would be locked out of it.
 */
#pragma once
#include <stddef.h>

/* 0: pinfold may keep things at `path`. Below $HOME -ENOENT (or why else it cannot be found) without a home, -EPERM for root in
   another user's. */
int own_dirs_allowed(const char *path);
/* If that is so, makes `path` and what is missing above it, each for its owner alone: 0 or -errno. */
int own_dirs_make(const char *path);
/* Why own_dirs_allowed() refuses and what helps, for a message; "" if it does not. */
const char *own_dirs_why(const char *path, char *to, size_t room);
