/*
 * Lists for people: prints the library's JSON as a table. These forms may change; scripts use --json, which the manual
 * describes.
 */
#pragma once

/* Each prints `text`, malloc()ed, and frees it; STATUS_YES, or STATUS_NO with a message. */
int people_sessions(char *text);
int people_names(char *text); /* names of sessions, one per line */
int people_session(char *text);
int people_removed(char *text, bool would);
int people_jobs(char *text);
int people_agents(char *text);
