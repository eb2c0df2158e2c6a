/*
 * The private caches of projects, STATE/pinfold/caches/HASH: to which project each belongs, and whether that still
 * exists.
 */
#pragma once
#include <limits.h>

#define CACHES_HASH     32 /* length of the directory's name; the names of slots beside it are numbers */
#define CACHES_NOTE_MAX (2 * PATH_MAX + 2)
#define SECRET_CACHES   "cow." /* in a slot, and a name that no box is told: caches of boxes with a layer */

/*
 * Notes once in `directory`, whose name is the hash of `workspace`, that it belongs to that project. Failure does not
 * prevent a run: then the cache is never removed automatically.
 */
void caches_note(const char *directory, const char *workspace);
/*
 * The name of the directory for caches of boxes with a copy-on-write layer, from a number that this user's state
 * directory keeps and every box is kept from; -errno. It is made once: what a box has put there stays where it is.
 */
int caches_secret(const char *state, const char *workspace, char name[sizeof SECRET_CACHES + CACHES_HASH]);
/* The project, in `text`, if the note in `dir` named `hash` is trustworthy and the project is gone; otherwise NULL. */
const char *caches_gone(int dir, const char *hash, char text[CACHES_NOTE_MAX]);
