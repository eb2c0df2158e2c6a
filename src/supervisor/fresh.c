/*
 * What the host changes below an overlay, a mask or a layer, is not seen for names that the kernel has looked up in it. It drops the
 * names that nobody holds when the file system is configured anew, for which pinfold has its fsopen(2) (FRAME_FRESH):
 *
 *     in a session        before each command, job and file call, of all overlays (box_keep_fresh())
 *     besides, and in a   of masks, when this process is awake for another reason, at most once a second: while a program
 *     box on a terminal   writes to its terminal, uses the network or is refused something. An idle box wakes nobody for it
 *
 * When the last process of a session's box has ended, pid 1 says so (FRAME_IDLE), and all overlays are looked at anew soon, in nobody's
 * time: not at once, because the caller of that command ends at that moment, and each look interrupts all processors. From then on nothing
 * looks up names in them until the next command, so masks are left alone, and that command need not wait: what the host changes meanwhile
 * has no old name. It need not wait for a second only, because others than the box's processes can look in, of which nothing is known here
 * (root by /proc/PID/root); and never in a session whose guard has served the file API, which looks up names itself.
 *
 * A name that is looked up anew goes through all layers of its mask: nothing hidden shows.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "supervisor/parts.h"
#include "sys/mount.h"

#define EVERY_US 1000000u
#define IDLE_US  300u /* more than the end of a command's caller takes, less than the start of the next one */
#define PART     50u  /* at most one of so many parts of the time */
/* More than a plan has masks, caches and layers; the guard, which reads what a box writes, cannot have them grow. */
#define MOST 512u

void fresh_take(struct box *b, int fs, bool read_only)
{
    const bool wanted = b->stage < STAGE_ENDING && b->n_fresh < MOST;
    struct fresh *more = wanted ? realloc(b->fresh, (b->n_fresh + 1) * sizeof *more) : NULL;
    if (!more) {
        b->fresh_lost = true;
        (void)close_fd(fs);
        return;
    }
    b->fresh = more;
    b->fresh[b->n_fresh++] = (struct fresh){.fs = fs, .read_only = read_only};
    b->fresh_at = now_us() + EVERY_US;
}

/*
 * The last one first: it holds names of those that it lies on. Without the word "ro" a mask would be made writable, which overlayfs refuses
 * (EROFS) where it has no layer for that.
 */
static int look_anew(const struct box *b, bool masks_alone)
{
    int no = 0;
    for (size_t i = b->n_fresh; no == 0 && i-- > 0;) {
        const struct fresh *f = b->fresh + i;
        if (masks_alone && !f->read_only)
            continue;
        no = f->read_only ? sys_fsconfig(f->fs, SYS_FS_FLAG, "ro", NULL, 0) : 0;
        no = no < 0 ? no : sys_fsconfig(f->fs, SYS_FS_RECONFIGURE, NULL, NULL, 0);
    }
    return no;
}

int box_keep_fresh(struct box *b, struct err *e)
{
    const uint64_t began = now_us();
    const bool idle = b->idle_until > began;
    const int no = b->fresh_lost ? -ENOMEM : idle ? 0 : look_anew(b, false);
    const uint64_t now = now_us();
    if (no == 0 && b->idle_look != NEVER) /* it came first */
        b->idle_until = began + EVERY_US;
    b->idle_look = NEVER;
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no,
                       "cannot look at the host's files again, below the session's masks and layers");
    if (!idle)
        b->fresh_at = now + EVERY_US;
    meanwhile_soon(b, now);
    return 0;
}

uint32_t box_keep_command(struct box *b)
{
    b->idle_until = 0;
    b->idle_look = NEVER;
    if (++b->commands == 0)
        b->commands = 1;
    return b->n_fresh && !b->fresh_given ? b->commands : 0;
}

void fresh_idle(struct box *b, uint32_t number)
{
    if (number == b->commands && b->n_fresh && !b->fresh_given && !b->fresh_lost && b->stage < STAGE_ENDING)
        b->idle_look = now_us() + IDLE_US;
}

void fresh_idle_due(struct box *b, uint64_t now)
{
    if (b->idle_look > now)
        return;
    b->idle_look = NEVER;
    if (b->stage < STAGE_ENDING && !b->fresh_given && look_anew(b, false) == 0)
        b->idle_until = b->fresh_at = now + EVERY_US;
}

void fresh_awake(struct box *b, uint64_t now)
{
    /* Since that look nothing has run in the box, and before the next command there is another. */
    if (!b->n_fresh || b->fresh_at > now || b->idle_until || b->stage >= STAGE_ENDING || b->last_words)
        return;
    const int no = look_anew(b, true);
    const uint64_t end = now_us(), wait = (end - now) * PART;
    b->fresh_at = end + (wait > EVERY_US ? wait : EVERY_US);
    if (no < 0 && !b->sessiond) /* a session says so with its next command */
        fresh_end(b);
}

void fresh_end(struct box *b)
{
    while (b->n_fresh)
        (void)close_fd(b->fresh[--b->n_fresh].fs);
    free(b->fresh);
    b->fresh = NULL;
}
