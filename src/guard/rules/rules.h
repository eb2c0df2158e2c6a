/* rules/: what may be done at a place. verdict.c is asked first, and asks the others. A refusal is reported by deny() where it is found. */
#pragma once
#include "guard/places/places.h"

/* hidden.c: what the host moved away from a hidden name; the rule, or NULL */
void hidden_begin(struct guard *g, const struct guard_table *table, size_t bytes);
void hidden_seen(struct guard *g, const struct rule *rule, const struct object *o); /* it was seen at a hidden name */
void hidden_not(struct guard *g, const struct sys_stat *st);
bool hidden_was_not(struct guard *g, const struct sys_stat *st);
const struct rule *hidden_moved(struct guard *g, const struct object *o);
const struct rule *hidden_around(struct guard *g, struct str path); /* the path is in such a directory */

/* running.c: hidden files that are being executed */
int running_judge(struct guard *g);                /* 0, or -EACCES if the caller executes one */
bool running_closed(struct guard *g, int process); /* nobody may look into its directory in /proc */
/* The directory of the process whose memory the file `o` at `p` shows; -ENOENT: it shows none, or reads are not judged;
   -EACCES: unknown whose. Once the memory is open the process is judged: it could execute something else before. */
int running_memory(struct guard *g, const struct place *p, const struct object *o);
long ptrace_call(struct guard *g, long request, pid_t pid);

/* hardlink.c: files that have names outside are copied before they are changed */
enum hardlink_change {
    HARDLINK_CONTENT,
    HARDLINK_EMPTY /* the old content is not needed */,
    HARDLINK_ATTRIBUTE,
    HARDLINK_TOUCH
};
#define HARDLINK_AGAIN (INT_MAX - 3) /* start over with only the name lock held: a copy is waiting */
/* Copies extended attributes, including access lists; not those that need a privilege. */
void hardlink_attributes(int from, int to, unsigned mode);
bool hardlink_foreign(struct guard *g, const struct object *o);  /* it may have names outside */
bool hardlink_nameless(struct guard *g, const struct object *o); /* it has no names but those made here */
/* Call before a change: 0 if `o` is now the box's own; HARDLINK_AGAIN or GONE_ON, with the lock released; or an error,
   perhaps with it. `p` is NULL for an object reached by descriptor. */
int hardlink_own(struct guard *g, const struct place *p, struct object *o, enum hardlink_change change);
void hardlink_done(struct guard *g);                         /* call afterwards */
void hardlink_made(struct guard *g, const struct object *o); /* one more name; o->st is from before */
/* This name is about to be removed: true if hardlink_gone() must be told. */
bool hardlink_look(struct guard *g, const struct place *p, struct sys_stat *ret);
void hardlink_gone(struct guard *g, const struct sys_stat *st);

/*
 * hold.c: locks the directories that a rule with several components depends on, so that no other box changes them
 * between verdict and act. Call with the name lock held, before the verdict; a place that has moved is found again. 0
 * (also if nothing needs locking), -EACCES with the denial reported, or another error.
 */
int hold_place(struct guard *g, struct place *p, enum denial_action action);
int hold_rename(struct guard *g, struct place *from, struct place *to, unsigned flags);
/* Locks one more directory while others are held: true if it is locked now. */
bool hold_more(struct guard *g, int dir, const char *name);
void holds_drop(struct guard *g);
void holds_forget(struct guard *g); /* in a child: the locks are its parent's */

/* Why, in more than one file. */
#define OPTION_REF "a branch, tag or remote whose name is an option"
#define MOVED_AWAY "something the host moved away from a hidden name"
#define SUBMODULE  "a link on the path to a submodule's files"
#define REPOSITORY "a hook, a remote, commondir, attributes, the configuration or the index of a git repository"
#define GIT_LINK   "a link in a git repository, through which git outside would write"

/* verdict.c: 0, or -EACCES with the denial reported */
/* The rule that guards `path` now: in mode "existing" what is new is free. *ret_end: of the guarded name. */
const struct rule *verdict_guarded(struct guard *g, struct str path, size_t *ret_end);
/* Why nothing is changed at `path`, in a guarded name or a repository's own place; NULL: nothing says so. *ret_rule: or NULL;
   *ret_config: it is a configuration or an index, judged by content. */
const char *verdict_claimed(struct guard *g, struct str path, const struct rule **ret_rule, size_t *ret_end,
                            bool *ret_config);
/* For a path outside of all trees, with the event of it, the error of a mount; `fd` is the object, or the directory with the name. */
int verdict_outside(struct guard *g, enum denial_action action, int fd, struct str path);
int verdict_outside_at(struct guard *g, enum denial_action action, const struct place *p);
enum made {
    MADE_FILE,
    MADE_DIRECTORY,
    MADE_LINK,
    MADE_OTHER,
    MADE_EMPTY_FILE, /* by mknod or open: empty; g->point says whether it must stay so */
    MADE_EMPTY_DIRECTORY
};
int verdict_make(struct guard *g, const struct place *p, enum made made);
/* Call after creating: whether the host's changes meanwhile make it something to be refused. */
int verdict_made(struct guard *g, const struct place *p, enum made made);
int verdict_arrived(struct guard *g, const struct place *to);
/* Whether rules begin to apply to the contents of a directory when it gets this name (rename_counted, name.c). */
bool verdict_counts(struct guard *g, const struct place *to);
int verdict_moving(struct guard *g, const struct place *to,
                   const char *temp); /* in transit, under a name of the guard's */
/* The same for a link, or (`moved`: its old place) for a directory that contains links. */
int verdict_linked(struct guard *g, const struct place *p, const struct place *moved);
int verdict_git_link(struct guard *g, const struct place *p, const char *text); /* NULL: whatever it leads to */
/* A link into a process, which leads whoever follows it into the box: not where programs outside may follow it. */
int verdict_proc_link(struct guard *g, const struct place *p, const char *text);
/* Whether its name is guarded. */
bool object_guarded(struct guard *g, const struct object *o);
/* Before every user gets the permission to write: 0, or -EACCES with the denial reported, where another user could then do what
   the box may not. */
int verdict_opened_to_all(struct guard *g, const struct object *o);
/* A directory is to pass on to all that is made in it that others may write: there may be repositories. */
int verdict_passed_on(struct guard *g, const struct object *o);
/* The mode of a directory that is made, after target_umask(): likewise not for every user to write, as if the umask said so. */
unsigned verdict_mode(struct guard *g, const struct place *p, unsigned mode);
/* Whether its content is judged; the rule, or NULL for a repository's configuration that is not under .git. */
bool verdict_config(struct guard *g, const struct place *p, const struct rule **ret_rule);
int verdict_object(struct guard *g, const struct object *o, enum denial_action action);
/* Whether `p` is a .gitmodules, or a repository's configuration that does not exist yet: both are written in place
   (gitdir.c). */
bool verdict_in_place(struct guard *g, const struct place *p, int flags, const struct rule **ret_rule);
int verdict_remove(struct guard *g, const struct place *p, bool directory);
/* 1: done, with the judged bytes (gitdir.c); MOVES_ASK */
int verdict_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags,
                   struct sys_stat *ret); /* the object that was judged */
/* Whether nothing but where it is refuses writing to it: a regular file outside of all trees, about which there is no rule. */
bool verdict_grantable(struct guard *g, const struct object *o);
/* A second name of a file that is guarded or hidden under its first (rules of fixed place only, as others cannot be
   listed). */
int verdict_identity(struct guard *g, const struct sys_stat *st, enum denial_action action, struct str path);
/* `from` has been judged (verdict_object()). */
int verdict_link(struct guard *g, const struct object *from, const struct place *to);

/* repository.c. Where a repository's own place begins in `path`, whatever the repository is called; otherwise 0. `ret_config`: it is a
   configuration or an index, judged by content. */
size_t repository_place(struct guard *g, struct str path, bool *ret_config);
/* An empty directory for remotes comes with git's templates; the contents of another, or of a link's target, were not judged. */
bool repository_for_remotes(struct guard *g, const struct place *p);
bool repository_brings(struct guard *g, const struct place *from, const struct place *to);
bool repository_brings_links(struct guard *g, const struct place *from, const struct place *to);
/* The second of `objects` and `refs` makes its directory a repository, and what is in it effective: 0 or an error, told. */
int repository_completed(struct guard *g, const struct place *p);
/* The same of one that was just created; false: the place is neither of the two. */
bool repository_half_made(struct guard *g, const struct place *p, int *ret);
/* Something guarded but without effect (only samples, a configuration without programs) may be removed with the repository. */
bool repository_inert(struct guard *g, const struct rule *rule, struct str path, size_t end, int dir, const char *name);
/* The same of `rest` in the directory at `p`, that leaves, or arrives and comes into effect. */
bool repository_rest_inert(struct guard *g, const struct place *p, const struct rule *rule, struct str rest,
                           bool arrives);

/* born.c */
/* statx(2), with what tells the object from a later one of the same number: for what follows. `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW. */
int born_stat(int dir, const char *name, int flags, struct sys_stat *ret);
static inline int born_at(const struct place *p, struct sys_stat *ret)
{
    return born_stat(p->dir, place_bare(p), AT_SYMLINK_NOFOLLOW, ret);
}
struct born born_of(const struct sys_stat *st);
bool born_same(const struct born *a, const struct born *b);
void born_add(struct guard *g, const struct sys_stat *st);
bool born_has(struct guard *g, const struct sys_stat *st);
bool born_may_have(struct guard *g, const struct sys_stat *st); /* or there were too many to know */
struct str places_next(const struct places *all, uint32_t *at); /* from offset *at on; "" at the end */
bool places_add(struct guard *g, struct places *all, struct str path);
/* To shared.left, to be told of at the end; if there is no room even without what is gone, it is only counted. */
void left_add(struct guard *g, struct str path);

/* gittext.c */
bool git_is_nothing(int no); /* this errno says that nothing is there; any other leaves it unknown */
bool git_is_common(int dir); /* it has objects and refs, or that is unknown; `dir`: or the errno of opening it */
int git_text_open(int dir, const char *name); /* O_NONBLOCK: a FIFO in its place must not block us */
/* the content of a regular file, malloc()ed */
int git_text_read(int fd, enum gitconfig_kind kind, char **ret, size_t *ret_n);

/* gitdir.c */
void guard_temp_name(const struct guard *g, char text[64]); /* a name that no box may touch */
bool git_hooks_inert(int dir, const char *name);            /* missing, or only samples */
/* Hooks (or remotes) become effective: moves the samples to a new directory, which nobody can have open, and gives it
   the name. 0 (also if there is none), -EACCES if something else is in it. */
int git_hooks_renew(struct guard *g, int dir, const char *name);
bool git_config_inert(struct guard *g, int dir, const char *name, struct str path);
/* The configuration `path` in `dir` becomes effective: if it passes, it is copied into a new file, which nobody has
   open or under another name. 0 (also if there is none), -EACCES if it may not exist, or another error. */
int git_config_adopt(struct guard *g, int dir, const char *name, struct str directory);
int git_config_replace(struct guard *g, const struct place *from, const struct place *to, const struct rule *rule,
                       bool keep_source);
/* Puts these bytes into a new file at `to`, with the mode and time of `from`, which goes. */
int git_put_refs(struct guard *g, const struct place *from, const struct place *to, struct str text);

/* Opens for writing what verdict_in_place() has approved. */
long git_in_place_open(struct guard *g, struct place *p, const struct rule *rule, int flags, unsigned mode);
/* Call before serving a call: names the files that their writers have closed by now. */
void git_modules_settle(struct guard *g);

/* module.c: where submodules' files are */
bool module_text_fits(struct guard *g, struct str directory, struct str old_text, struct str new_text);
/* Whether a link at `to`, or the directory `moved` with its links, would be on the path to such a place. */
bool module_behind(struct guard *g, const struct place *to, const struct place *moved);
/* Whether a directory to be moved contains a submodule's repository that would then point to another place. */
bool module_misled(struct guard *g, const struct place *from, const struct place *to);
/* Whether, once `dir` is a repository, repositories of submodules would be where module.c does not look. */
bool module_lost(struct guard *g, int dir, struct str directory);

/* rootkind.c: whether a directory is the root of a repository, by the markers in it and what the box has removed */
enum root_kind { ROOT_NONE, ROOT_OTHERS /* or was when the box began */, ROOT_OWN };
enum root_kind root_kind_of(struct guard *g, struct str directory);
enum root_kind root_kind_at(struct guard *g, int dir, const char *const *names); /* by these markers alone */
bool root_is_lost(struct guard *g, struct str directory);

/* deep.c: those of them that hold in all directories of a repository. Whether the one that `w` has found in `path` does. */
bool deep_holds(struct guard *g, const struct rooted *w, struct str path);
/* Whether it is such a name, in a repository and not at the root of one of the box's. */
bool deep_tells(struct guard *g, struct str path, struct str directory);
/* A marker that the box created (`own`), or another, is about to be put at `p`: 0 or an error, told. */
int deep_marked(struct guard *g, const struct place *p, bool own);
/* The directory that is at `now` moves, or has moved: 0 or an error, told; -EXDEV: programs then copy instead. */
int deep_moves(struct guard *g, const struct place *from, const struct place *to, const struct place *now);

/* reporoot.c: names of the `root` list at the roots of repositories not created by this box */
const struct rule *reporoot_guarded(struct guard *g, struct str path, size_t *ret_end);
/* The next such name that exists, or would, below the directory `path`. Begin with a zeroed `w`. */
const struct rule *reporoot_below(struct guard *g, struct str path, struct rooted *w);
/* a name that makes its directory the root of a repository */
bool reporoot_marks(struct guard *g, const struct place *p);
/* Before something is removed or added: 0, or -EACCES with the denial reported. */
int reporoot_marker_leaves(struct guard *g, const struct place *p, enum denial_action action);
int reporoot_leaves(struct guard *g, const struct place *from, const struct sys_stat *st);
/* The object gets another name. */
int reporoot_linked(struct guard *g, const struct place *to, const struct sys_stat *st);
int reporoot_arrives(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st);
/* After something was created there, or has come there. */
void reporoot_made(struct guard *g, const struct place *p);
bool reporoot_tells(struct guard *g, int dir, struct str path,
                    struct buf *names); /* those in a repository created here */

/* told.c */
void told_link(struct guard *g, const struct place *p, const char *text);
/* What was at `from` is at `to` now, or a link has that name, too: its dots begin elsewhere. */
void told_arrived(struct guard *g, const struct place *from, const struct place *to);
void told_refs(struct guard *g, const struct place *p); /* the file was written, or replaced */
void told_fifo(struct guard *g, const struct place *p);
void told_moved(struct guard *g, const struct place *from, const struct place *to, bool exchange);
void told_end(struct guard *g); /* reports all that still exists */

/* branches.c: protected branches, which move when hooks have passed the commits. 0, or -EACCES with the denial reported. */
int branches_make(struct guard *g, struct str path, bool directory);
int branches_object(struct guard *g, struct str path, enum denial_action action);
int branches_leave(struct guard *g, struct str path, bool directory);
/* 1: done, with the judged bytes; MOVES_ASK: call branches_ask() without a lock, then start over. */
int branches_arrive(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st,
                    bool may_replace);
/* 0: they were passed; GONE_ON: another process finishes this call; or an error. */
int branches_ask(struct guard *g);
void branches_done(struct guard *g);

/* point.c: mount points at guarded names. `p` is the name that `rule` guards. */
/* it may be created, empty, as a directory or a file */
bool point_may(struct guard *g, const struct place *p, const struct rule *rule, bool directory);
/* a .gitmodules is about to be created for that, not to be written */
bool point_modules(struct guard *g, const struct place *p, int flags, unsigned mode);
/* it was created so and is still empty */
bool point_is(struct guard *g, const struct place *p, const struct rule *rule);
void points_end(struct guard *g); /* removes those that still exist */

/* deny.c */
/* Whether one more frame may be sent now, and how many were dropped since the last. */
bool denial_passes(struct shared *s, struct bucket *b, uint32_t *ret_dropped);
uint32_t pid_inside(struct guard *g); /* the caller's own pid; 0: it is gone */
/* Tells pinfold of a refusal that is no rule's (FRAME_BUILT). */
void deny_built(struct guard *g, enum denial_action action, struct str path);
/* Root's box: user 0 has no CAP_SETFCAP, without which the kernel maps it in no namespace below. */
void deny_root_map(struct guard *g);
/* clone and unshare with new namespaces, where the filter does not pass them: told, and -EPERM. */
int deny_namespace(struct guard *g);
int deny(struct guard *g, enum denial_action action, const struct rule *rule, struct str path, const char *why);

/* Gives pinfold one end of a new pair of sockets, with a frame of this kind, once `n` bytes, perhaps with `fd`, wait for it there:
   the other end, or -errno; -EPIPE: it takes none. */
int report_pair(struct guard *g, uint32_t kind, const void *first, size_t n, int fd);
