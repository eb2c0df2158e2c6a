/*
 * Names that some file systems take for others: those that fold case by Unicode (ext4 and f2fs with casefold: utf8 in "nfdicf", full
 * case folding without default ignorable code points; exFAT, SMB), those that drop dots at the end (FAT, exFAT), and those that may have
 * NTFS or Windows behind them (ntfs-3g with streams_interface=windows, SMB, shared folders of virtual machines): `.git/config:` is
 * `.git/config` there, and a backslash a slash.
 */
#pragma once
#include "base/str.h"

/*
 * Writes `path` to `to`, which has room for it and a NUL, with each component after the first `from` bytes in the plain spelling: what
 * such a file system takes for ASCII letters is ASCII, what it ignores is not there. True if that is another path; *ret_n is its length.
 */
bool path_respell(struct str path, size_t from, char *to, size_t *ret_n);
