/* Which start of this machine it is, and when that was by the clock: what a layer notes, and what tells later that the clock was set. */
#include "layer/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int layer_boot(char boot[40])
{
    auto_fd int fd = openat(AT_FDCWD, BOOT_ID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot, 39);
    if (n <= 0)
        return -ENOENT;
    boot[n] = 0;
    boot[strcspn(boot, "\n")] = 0;
    return 0;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* On a busy machine another program may run between two looks at a clock: of eight measures the one that took the shortest. */
int64_t layer_booted(void)
{
    enum { GOOD = 1000000 };
    int64_t best = INT64_MAX, booted = 0;
    for (int i = 0; i < 8 && best > GOOD; i++) {
        const int64_t before = clock_ns(CLOCK_BOOTTIME), clock = clock_ns(CLOCK_REALTIME),
                      took = clock_ns(CLOCK_BOOTTIME) - before;
        if (took < best) {
            best = took;
            booted = clock - before;
        }
    }
    return booted;
}
