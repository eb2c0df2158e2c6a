/* calls/: judges and performs one call, reached through table.h: its result, -errno, or a value of state.h (ANSWERED ...). */
#pragma once
#include "guard/rules/rules.h"

/* rules_told.c: whether the open in text[0] asks for the rules; the answer to it */
bool rules_told_at(const struct guard *g, int flags);
long rules_tell(struct guard *g, int flags);

/* name.c: finds a place with the name lock held, which is taken exclusively (`alone`) if the place matters to repositories; the lock is
   free if it could not be had. */
int place_find_alone(struct guard *g, int dir, const char *text, struct place *ret, bool alone);
/* -EEXIST for a refusal (`no`) of a name that exists, as `mkdir -p` and O_EXCL expect */
int refused_or_there(const struct place *p, int no);
/* verdict_make(), or verdict_link() of `linked`, told of only where the name is free: an existing file that is opened is judged, and
 * told of, as such. */
int verdict_new(struct guard *g, const struct place *p, enum made made, const struct object *linked);

/* handlers */
long open_call(struct guard *g, int dir, uint64_t path, int flags, unsigned mode);
long make_call(struct guard *g, int dir, uint64_t path, bool directory, unsigned mode,
               uint64_t device); /* mkdir, mknod */
long symlink_call(struct guard *g, uint64_t target, int dir, uint64_t path);
long link_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, int flags);
long unlink_call(struct guard *g, int dir, uint64_t path, int flags);
/* move.c: what the kernel answers EXDEV for behind a layer. 0, or -errno (-EXDEV: it stays at that). */
int move_directory(struct guard *g, const struct place *from, const struct place *to, unsigned flags);
long rename_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, unsigned flags);
long truncate_call(struct guard *g, uint64_t path, int64_t length);
/* attribute.c: one change, by whatever call. */
#define AS_IT_IS ((uint32_t)-1)
struct wish {
    uint32_t mode, uid, gid;
};
struct alteration {
    enum changed { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES, CHANGE_XATTR, CHANGE_NO_XATTR } what;
    struct wish wish; /* mode, owner */
    enum hardlink_change copy;
    const struct timespec *times; /* NULL: now */
    size_t n;                     /* of an attribute's value, in g->bytes; its name is in g->text[1] */
    int flags;
};
#define NEW_MODE(m)                                                                                                    \
    (&(const struct alteration){CHANGE_MODE, .wish = {(m)&07777, AS_IT_IS, AS_IT_IS}, .copy = HARDLINK_ATTRIBUTE})
#define NEW_OWNER(u, group)                                                                                            \
    (&(const struct alteration){CHANGE_OWNER, .wish = {AS_IT_IS, (u), (group)}, .copy = HARDLINK_ATTRIBUTE})
/* With AT_EMPTY_PATH in `flags` an empty path is the descriptor `dir`. `by_path`: a descriptor with O_PATH is valid, too. */
long change_at(struct guard *g, int dir, uint64_t path, int flags, const struct alteration *c);
long change_fd(struct guard *g, int fd, const struct alteration *c, bool by_path);
enum times { TIMES_SPEC, TIMES_VAL, TIMES_BUF };
long times_call(struct guard *g, int dir, uint64_t path, uint64_t times, enum times form, int flags);
long setxattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name, uint64_t value, uint64_t n,
                   int flags); /* path 0: use fd */
long removexattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name);
int xattr_name(struct guard *g, uint64_t at); /* into g->text[1] */
long bind_call(struct guard *g, int fd, uint64_t address, uint32_t n);
long flock_call(struct guard *g, int fd, int operation);
long connect_call(struct guard *g, int fd, uint64_t address, uint32_t n);
/* inquiry.c: whether the abstract name `name`, with its first NUL, stands for pinfold; and a connect to it. */
bool inquiry_is(const char *name, size_t n);
long inquiry_call(struct guard *g, int fd);
/* grant.c: whether somebody may be asked to allow this open, and the question: a descriptor or -errno. Hold no lock. */
bool grant_wanted(struct guard *g, const struct object *o, int flags);
int grant_ask(struct guard *g, const struct object *o, int flags);
long pair_call(struct guard *g, int type, int protocol, uint64_t to);
long mount_call(struct guard *g, uint64_t source, uint64_t target, uint64_t type, uint64_t flags, uint64_t data);
long open_below_call(struct guard *g, int dir, uint64_t path, uint64_t at, uint64_t size); /* open_below.c */
long fsopen_call(struct guard *g, uint64_t type, unsigned flags);

/* look.c: calls that read by name without opening */
/* Finds g->object at g->from, and (`judged`) whether it may be read. Drop both if this returns 0. */
int look_found(struct guard *g, int dir, const char *text, bool follow, bool judged);
int link_text(struct guard *g, int dir, uint64_t path, char text[PATH_MAX]); /* the length */
long readlink_call(struct guard *g, int dir, uint64_t path, uint64_t to, int room);
long getxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t name, uint64_t to, uint64_t room);
long listxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t to, uint64_t room);
long inotify_call(struct guard *g, int fd, uint64_t path, uint32_t mask);

/* peer.c: calls that name a process */
long peer_call(struct guard *g);
bool peer_of_box(struct guard *g, pid_t who); /* in the Landlock tier: the process belongs to the box */
/*
 * monitor.c. Whether the call is notified only to be seen, and its answer: CONTINUE, or what the filter
 * would have answered. And for a call that was performed: its result.
 */
bool monitor_only(const struct guard *g);
long monitor_look(struct guard *g);
void monitor_result(struct guard *g, long result);
void monitor_end(struct guard *g); /* tells how often what was told has happened */

/* quiet.c: the call, if it is one of those that continue and name a path: its arguments (`dir` -1: it has none), and what it wants of the object. */
struct looked_call {
    int nr;
    signed char dir, path;
    uint8_t want, action; /* of faccessat2(2); enum denial_action */
};
const struct looked_call *looked_call(const struct guard *g);
static inline int looked_dir(const struct guard *g, const struct looked_call *c)
{
    return c->dir < 0 ? AT_FDCWD : (int)g->n.data.args[(unsigned)c->dir];
}
/* Whether a call that continues (monitor_only()) has nothing to be told of. */
bool quiet_call(struct guard *g);
/* What the call names, nothing, was found to be at `path`; `clear` as plan_masks() has said. */
void quiet_keep(struct guard *g, int dir, const char *text, const char *path, bool clear);
/* Of the program at `text`, and of the one that interprets it, there was nothing to tell. */
void quiet_program(struct guard *g, const char *text);
