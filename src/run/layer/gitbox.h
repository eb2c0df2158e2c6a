/*
 * git in a box of its own, for what a layer holds of a repository. The box has git, the objects of the workspace's repository to read, and
 * no network; what the layer brings comes on its standard input, and what git makes of it goes out on its standard output.
 */
#pragma once
#include "layer/repo/repo.h"

extern const char gitbox_script[]; /* gitbox.sh, embedded */

enum gitbox_task {
    GITBOX_LAND,  /* a pack of what is new, an index, and types of the refs' objects */
    GITBOX_LOOK,  /* commits in words */
    GITBOX_MERGE, /* texts, merged */
    GITBOX_BRANCH /* a commit of files, and what GITBOX_LAND gives */
};
/*
 * `ask`: an archive, from its beginning; `answer`: an empty file. -EPERM with a sentence: git refused what it was given. Other errors:
 * there is no git, or no box.
 */
int gitbox_run(const struct layer_trees *t, const struct repo *r, enum gitbox_task task, int ask, int answer,
               struct arena *mem, struct err *e);
/* What git has to say about `all`: an open answer; -1 if there is nothing to ask; or -errno. */
int gitbox_ask(const struct layer_trees *t, const struct changes *all, const struct repo *r, enum gitbox_task task,
               struct arena *mem, struct err *e);
/* Lines about the repository, for people (repo_put_words()). Without git, or a box, one of them says so. */
int gitbox_words(const struct layer_trees *t, const struct changes *all, struct arena *mem, struct buf *out,
                 struct err *e);
/* A file of the layer without a name; -1 and errno. */
int gitbox_file(int store);
/* As apply_ask.merge; `ctx`: enum merge_kind. */
int gitbox_merge(void *ctx, const struct layer_trees *t, struct changes *all, const char *const *paths,
                 struct arena *mem, struct apply_outcome *out, struct err *e);
/* As apply_ask.repository (verify.c). */
int gitbox_land(void *ctx, const struct layer_trees *t, const struct changes *all, struct arena *mem,
                struct apply_more *ret, struct apply_outcome *out, struct err *e);
