/*
 * Fault injection (sys/fault.h): in no build that users run. One counter is shared by this process and its descendants: the calls of a start are
 * numbered through pinfold, builder, pid 1 and command in the order in which they happen.
 */
#include "sys/fault.h"

#ifdef PINFOLD_FAULTS
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "sys/sys.h"

struct faults {
    atomic_uint at; /* calls so far */
    unsigned nth;   /* which one fails; 0: none */
    int error;
};
static struct faults *shared;
int sys_fault_fd = -1;

static void arm(unsigned nth, int error)
{
    shared->nth = nth;
    shared->error = error;
    atomic_store(&shared->at, 0);
}

__attribute__((constructor)) static void begin(void)
{
    const char *inherited = getenv(FAULT_FD_NAME);
    /* by the kernel's calls, because tests make those of the C library fail */
    long memory = inherited ? -1 : sys_raw(SYS_memfd_create, (long)"faults", MFD_CLOEXEC, 0, 0, 0, 0);
    sys_fault_fd = inherited ? atoi(inherited) : (int)sys_raw(SYS_fcntl, memory, F_DUPFD_CLOEXEC, 100, 0, 0, 0);
    if (sys_fault_fd < 0 || (!inherited && sys_raw(SYS_ftruncate, sys_fault_fd, sizeof *shared, 0, 0, 0, 0) < 0))
        abort();
    (void)sys_raw(SYS_close, memory, 0, 0, 0, 0, 0);
    void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, sys_fault_fd, 0);
    if (p == MAP_FAILED)
        abort();
    shared = p;
    const char *said = inherited ? NULL : getenv("PINFOLD_FAULT");
    char *end;
    if (said) {
        unsigned nth = (unsigned)strtoul(said, &end, 10);
        arm(nth, *end == ':' ? atoi(end + 1) : 5 /* EIO */);
    }
}

void sys_fail_nth(unsigned nth, int error)
{
    arm(nth, error);
}

unsigned sys_calls_seen(void)
{
    return atomic_load(&shared->at);
}

int sys_fault(void)
{
    unsigned n = atomic_fetch_add(&shared->at, 1) + 1;
    return n == shared->nth ? -shared->error : 0;
}

/* Calls whose failure nobody could handle: exit and close. close always closes the descriptor. */
static int exempt(long nr)
{
    return nr == SYS_exit_group || nr == SYS_close;
}

long sys_faulty(long nr, long a, long b, long c, long d, long e, long f)
{
    int fault = exempt(nr) ? 0 : sys_fault();
    return fault ? fault : sys_raw(nr, a, b, c, d, e, f);
}
#endif
