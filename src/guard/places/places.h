/* places/: who calls, and what the texts of the call name. 0, a value from 0 on, or -errno, where nothing else is said. */
#pragma once
#include "guard/workers.h"

/* target.c: where the texts of this program begin. */
uint64_t guard_text(void);
enum file_system { FS_ORDINARY = 1, FS_PROC, FS_PTS };

/* Sets g->who without asking whether a known thread has ended, and opens nothing of an unknown one: for what is thrown away then. Its
   memory can be read where process_vm_readv(2) is permitted. */
void target_likely(struct guard *g);
/* Sets g->who; -ENOENT if it is gone. */
int target_find(struct guard *g);
/* The same, but a thread that is known may have ended, and another one have its number: target_sure() finds that out. So do target_dir(),
   target_fd(), target_umask() and places of an absolute path; what else asks about g->who needs it before, if it can be the first. */
int target_expect(struct guard *g);
int target_sure(struct guard *g);
int pid_of_init(const struct guard *g);               /* as the guard's /proc has it; 1 when that cannot be told */
int target_status(struct guard *g, struct target *t); /* fills tgid, box ids, umask */
/* Its command line, words with their NULs, as it says itself; how many bytes. */
uint32_t target_line(struct guard *g, char to[DENIAL_ARGV]);
uint32_t target_session(struct guard *g); /* its session (setsid(2)) now, in the box's numbering; 0: unknown */
/* Signals that wait for a process and that it does not block, by the `status` of it in `dir`; all, if that cannot be read. */
uint64_t signals_waiting(int dir, const char *status);
/* Who traces the process of this directory, in its own numbers, and whether that has stopped it. */
int32_t stopped_by(int proc, bool *ret_stopped);
#define CAP_ADMIN 21                                  /* CAP_SYS_ADMIN */
int target_caps(struct guard *g, uint64_t *ret);      /* its effective capabilities, in its own user namespace */
int target_umask(struct guard *g);                    /* sets our umask to the caller's */
void target_mask_set(struct guard *g, uint32_t mask); /* the caller is about to set it */
int target_string(struct guard *g, uint64_t at, char text[PATH_MAX]); /* length, -EFAULT, -ENAMETOOLONG */
/* 0, -EFAULT, or nobody waits for the answer any more */
int target_bytes(struct guard *g, uint64_t at, void *bytes, size_t n);
int target_write(struct guard *g, uint64_t at, const void *bytes, size_t n); /* what was read came from the caller */
int target_valid(struct guard *g);                                           /* what was read was the caller's own */
int target_fd(struct guard *g, int fd);                                      /* a duplicate; -EBADF */
/* Where g->again is set after target_fd(), that is not the caller's open file (again.c). */
int again_fd(struct guard *g, int fd);
/* A new Unix socket in place of the caller's; its inode; and to give it to the caller, who still waits. */
int again_socket(struct guard *g, int fd, int type);
int again_inode(struct guard *g, int fd, uint64_t *ret);
int again_hand_over(struct guard *g, int fd, int own);
int target_dir(struct guard *g, int fd); /* O_PATH of AT_FDCWD or fd as a directory; -EBADF, -ENOTDIR */
void targets_drop(struct guard *g);

/* own.c */
enum file_system file_system_of(struct guard *g, int fd, const struct sys_stat *st);
void ptrace_hide(struct guard *g, bool hide);
/* Whether the box's own namespace has this mount now; `id` was just read (statx(2)). */
bool mount_ours(struct guard *g, uint64_t id);
void mounts_drop(struct guard *g); /* in a forked worker, which reads its own list */
/* Whether the name by which it was found in this directory is the kernel's, so that nothing is mounted over it. */
bool object_is_named(const struct object *o, int dir);

/* Opens what the guard's own `fd` refers to once more, or gives it (one without a name, too: open(2)) another name. */
int own_reopen(const struct guard *g, int fd, int flags);
int own_link(const struct guard *g, int fd, int dir, const char *name);
int task_of(const struct guard *g, pid_t tid); /* its directory in /proc, O_PATH */

/* resolve.c */
/* Opens an absolute path in the box ("" is the root), over no link. */
int open_in_box(struct str path, int flags);
int place_find(struct guard *g, int dir_fd, const char *text,
               struct place *ret); /* does not follow the last component */
/* The place `b_text` in the directory of `a`, which was found for `a_text`, if both begin with the same text: then one look at where that leads is
   enough for a call. The directory stays a's. False: it is to be found. */
bool place_beside(struct guard *g, const struct place *a, const char *a_text, int a_dir, const char *b_text, int b_dir,
                  struct place *ret, int *ret_no);
/* For a call with two paths: the directory that both begin at, opened once, or -1: each finds its own. */
int place_base(struct guard *g, const char *a, const char *b, int a_dir, int b_dir);
int place_find_at(struct guard *g, int base, int dir_fd, const char *text, struct place *ret);
/* The directory that `text` names for the caller, O_PATH, without a verdict about hidden names on the way. */
int directory_seen(struct guard *g, int base, const char *text);
void place_drop(struct place *p);
/* spelling.c: 0, or a refusal because the file system may take the name for one that rules are about */
int place_spelling(struct guard *g, const struct place *p);
bool place_stays(struct guard *g, const struct place *p); /* its directory has not moved */
int place_again(struct guard *g, struct place *p);        /* finds it again, because its directory has moved */
/* Whether the caller has mounted something there: then removing and renaming fail with EBUSY. */
bool place_mounted(struct guard *g, const struct place *p);
/* Opens what is there now. `follow`: follows links (at most 40); otherwise the link itself. */
int object_find(struct guard *g, struct place *p, bool follow, struct object *ret);
/* `fd` is the object's from then on; `mode` as F_GETFL tells */
int object_behind(struct guard *g, int fd, int mode, struct object *ret);
int object_of_fd(struct guard *g, int fd, struct object *ret); /* `fd` stays the caller's; a duplicate is kept */
void object_drop(struct object *o);
int path_of(struct guard *g, int fd, char path[PLACE_PATH], size_t *ret_n);
/* Follows one link: `p` becomes the place it names, or `o` the object of a magic link (o->magic). */
int link_follow(struct guard *g, struct place *p, struct object *o, unsigned *links);

/* The text of a link in /proc as the caller would see it: its length, 0 for a magic link, or -errno. */
long proc_link(struct guard *g, int dir, const char *name, int link, char *text, size_t room);
/* The same for "self" and "thread-self" of the proc file system that `st` belongs to; 0: neither of them. */
long proc_self(struct guard *g, const struct sys_stat *st, const char *name, char *text, size_t room);

/* Whether the object's path leads to it without a link and in the same mount; otherwise it has moved. */
bool object_leads(const struct object *o);

/* proc.c */
enum proc_way {
    PROC_HERE,  /* everybody may */
    PROC_OWN,   /* only the caller's own */
    PROC_APART, /* in a separate process, where the kernel decides as for the caller */
    PROC_CLOSED
};
enum proc_way proc_way(struct guard *g, const struct place *p, const struct object *o, int flags);
int proc_open(struct guard *g, const struct object *o, enum proc_way way, int flags);
bool proc_is_box(struct guard *g, const struct sys_stat *st); /* in the same file system as the box's /proc */
/* Runs `run`, which ends by sys_exit(), in a new process with the descriptors of this one, but memory of its own; the stack of `room`
   bytes is this function's until then. What it exits with as -errno, or -EACCES. */
int apart_wait(void (*run)(void *), void *arg, char *stack, size_t room);
/* Opens a namespace of the caller, a name below its /proc/TID/ns, if it is not ours: *ret -1. 0 or -errno. */
int space_of(struct guard *g, const char *name, int *ret);
/* Opens with all capabilities of the caller's user namespace; -ENOENT if that is ours. */
int proc_open_whole(struct guard *g, const struct object *o, int flags);
/* Opens through a magic link with the caller's rights only. *ret_writes: it is a writable descriptor of the caller. */
int magic_open(struct guard *g, int dir, const char *name, int flags, bool *ret_writes);
/* readlink(2) of one, as the caller sees it: length of the text, or -errno. */
long magic_read(struct guard *g, int dir, const char *name, char text[PATH_MAX]);
/* For a descriptor of a non-dumpable caller, whose fd directory nobody else may enter. -EACCES: not such a place. */
long descriptor_read(struct guard *g, const struct place *p, char text[PATH_MAX]);
/* The same in a process with only the caller's capabilities and root; `name` "": of the link that `dir` is. */
long link_apart(struct guard *g, int dir, const char *name, char text[PATH_MAX]);

/* nested.c: the box's path of something in a mount that is not ours; -EACCES if it has none. 1: no other mount has it,
   and the path is one in a private tree. */
int nested_path(struct guard *g, int fd, const struct sys_stat *st, char path[PLACE_PATH], size_t *ret_n);
bool nested_shows(struct guard *g, unsigned major, unsigned minor); /* the box shows that file system */
bool nested_is_map(const struct place *p, const struct object *o);  /* an id map of a user namespace */
/* The root of the caller, and whether that is the box's; -errno: unknown. */
int caller_root(struct guard *g, bool *ret_ours);
int nested_root(struct guard *g); /* the caller's root if it differs from ours; otherwise -1 */
