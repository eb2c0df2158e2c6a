/*
 * Files that are replaced in one step: whoever reads the name, also after the machine has crashed, finds all of the old bytes or all of
 * the new ones.
 */
#pragma once
#include "base/str.h"

/*
 * A new file of these bytes and this mode, on the disk, in place of one that a killed process has left under the name. 0, or -errno: then
 * there is none.
 */
int file_make(int dir, const char *name, struct str bytes, unsigned mode);
/* Gives it the name of the file that it was made for, which is then on the disk, too. 0 or -errno: then `beside` is gone. */
int file_take_place(int dir, const char *beside, const char *name);
/*
 * Both. `beside` is its name until then, in the same directory: one with the process's number where several may replace the file at a
 * time, or else one that never changes, so that nothing is left of a process that was killed.
 */
int file_replace(int dir, const char *name, const char *beside, struct str bytes, unsigned mode);
/*
 * Does not wait for the disk, which takes milliseconds: for what is written at starts and is of no use, or can be found again, after the
 * machine has crashed.
 */
int file_replace_unsynced(int dir, const char *name, const char *beside, struct str bytes, unsigned mode);
