/* Where git keeps what it knows of a workspace, if that is not in it: a linked worktree, a submodule, a subdirectory. */
#pragma once
struct arena;

/* What the workspace's file .git names outside of the workspace; NULL: there is none, or nothing is said there. */
const char *elsewhere_git(struct arena *mem, const char *workspace);
/* The repository of which the workspace is a linked worktree, by `git` and by that repository itself; or NULL. */
const char *elsewhere_main(struct arena *mem, const char *workspace, const char *git);
/* The next directory above the workspace that is the top of a git repository; NULL where the workspace is one or none is. */
const char *elsewhere_above(struct arena *mem, const char *workspace);
