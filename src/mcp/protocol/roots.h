/* Directories that a client names (roots/list). Pure. */
#pragma once

/* The path of a file: URI of this machine (RFC 8089), to be freed; NULL: it is none, or without memory. */
char *roots_directory(const char *uri);
