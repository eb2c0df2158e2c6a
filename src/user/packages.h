/* How the user of this machine installs a program or library that pinfold misses, in words for a message. */
#pragma once
#include "base/str.h"

enum { PACKAGE_WORDS = 160 }; /* bytes of such words, with their NUL */

/*
 * "apt install bubblewrap". `debian` is the package's name on Debian, one of the table in packages.c. Where the distribution, or the
 * package's name there, is not known: "on Debian the package is bubblewrap". Reads os-release(5). Returns `ret`.
 */
const char *package_install(const char *debian, char ret[PACKAGE_WORDS]);
/* The same for a machine whose os-release has this text; `by_image`: a distribution whose system is an image (rpm-ostree). Pure. */
const char *package_words(struct str os_release, bool by_image, const char *debian, char ret[PACKAGE_WORDS]);
