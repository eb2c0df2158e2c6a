/*
 * Lists for people: what the library says in JSON, as a table. Scripts ask for --json, of which the manual says what is in
 * it; these forms may change.
 */
#pragma once

/* Each prints `text`, malloc()ed, and frees it; STATUS_YES, or STATUS_NO with a sentence. */
int people_sessions(char *text);
int people_names(char *text); /* of sessions, one a line */
int people_session(char *text);
int people_removed(char *text, bool would);
int people_jobs(char *text);
int people_agents(char *text);
