/* Which process the kernel ends first where memory is short: the box's command, before pid 1 and pinfold.
   Nothing else depends on these numbers. */
#include "backends/score.h"

#include <string.h>
#include "sys/fd.h"
#include "sys/file.h"

/*
 * A process that shares its memory writes to oom_score_adj for all that do, and the kernel looks for them among all
 * processes of the machine: with some thousands that takes as long as half a start. So this process raises its own score
 * (builder_raise_score()) before it shares for the first time. Builder and pid 1 inherit it, and it stays, also between
 * boxes, until the score is needed as it was.
 */
static struct {
    char text[sizeof(((struct runner *)NULL)->oom_text)];
    uint8_t bytes; /* 0: it is as it was */
} score_before;

void score_raise(struct builder *b)
{
    struct runner *r = &b->runner;
    char now[sizeof score_before.text];
    own_fd int fd = score_before.bytes ? sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC, 0) : -1;
    long n = fd < 0 ? fd : sys_read(fd, now, sizeof now);
    /* Pid 1 of the last box may have put it back, for all. */
    if (n > 0 && (n != score_before.bytes || memcmp(now, score_before.text, (size_t)n) != 0)) {
        memcpy(r->oom_text, score_before.text, sizeof r->oom_text);
        r->oom_bytes = score_before.bytes;
        return;
    }
    builder_raise_score(b);
    memcpy(score_before.text, r->oom_text, sizeof score_before.text);
    score_before.bytes = r->oom_bytes;
}

void score_back(void)
{
    own_fd int fd = score_before.bytes ? sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0) : -1;
    if (fd >= 0 && sys_write(fd, score_before.text, score_before.bytes) > 0)
        score_before.bytes = 0;
}
