/*
 * The private caches of projects, STATE/pinfold/caches/HASH: to which project each belongs, and whether that still
 * exists.
 */
#pragma once
#include <limits.h>

#define CACHES_HASH     32 /* length of the directory's name; the names of slots beside it are numbers */
#define CACHES_NOTE_MAX (2 * PATH_MAX + 2)

/*
 * Notes once in `directory`, whose name is the hash of `workspace`, that it belongs to that project. Failure does not
 * prevent a run: then the cache is never removed automatically.
 */
void caches_note(const char *directory, const char *workspace);
/* The project, in `text`, if the note in `dir` named `hash` is trustworthy and the project is gone; otherwise NULL. */
const char *caches_gone(int dir, const char *hash, char text[CACHES_NOTE_MAX]);
