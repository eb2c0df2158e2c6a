/*
 * The private caches of projects, STATE/pinfold/caches/HASH: which project one is of, and whether that is gone.
 */
#pragma once
#include <limits.h>

#define CACHES_HASH     32 /* characters of a directory's name, beside which its slots' names are numbers */
#define CACHES_NOTE_MAX (2 * PATH_MAX + 2)

/*
 * Notes in `directory`, whose name is the hash of `workspace`, that it is of that project, once. That it fails is no
 * reason not to run: then nobody removes it.
 */
void caches_note(const char *directory, const char *workspace);
/* The project, in `text`, where the note in `dir`, called `hash`, can be believed and the project is gone; NULL. */
const char *caches_gone(int dir, const char *hash, char text[CACHES_NOTE_MAX]);
