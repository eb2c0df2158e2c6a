/*
 * Arguments of options: numbers, descriptors, capabilities, and what is read from descriptors. What bubblewrap
 * refuses is refused in its words.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bwrap/bwrap.h"
#include "sys/caps.h"
#include "sys/fd.h"

void *bw_more(void *items, size_t *n, size_t size)
{
    void *p = *n & (*n - 1) || !size ? items : realloc(items, (*n ? *n * 2 : 1) * size);
    if (!p)
        bw_die("Out of memory");
    memset((char *)p + *n * size, 0, size);
    ++*n;
    return p;
}

/* Digits only: no sign, no space, nothing behind them. -1: not such a number, or above `max`. */
static int64_t number(const char *text, int base, uint64_t max)
{
    char *end;
    errno = 0;
    const unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, base) : 0;
    return *text < '0' || *text > '9' || *end || errno || n > max ? -1 : (int64_t)n;
}

int bw_fd_of(const char *text)
{
    const int64_t n = number(text, 10, INT32_MAX);
    if (n < 0)
        bw_die("Invalid fd: %s", text);
    return (int)n;
}

int bw_octal(const char *option, const char *text)
{
    const int64_t n = number(text, 8, 07777);
    if (n < 0)
        bw_die("%s takes an octal argument <= 07777", option);
    return (int)n;
}

uint64_t bw_size_of(const char *text)
{
    const int64_t n = number(text, 10, INT64_MAX);
    if (n <= 0)
        bw_die("--size takes a non-zero number of bytes");
    return (uint64_t)n;
}

int64_t bw_id_of(const char *text, const char *what)
{
    const int64_t n = number(text, 10, UINT32_MAX - 1);
    if (n < 0)
        bw_die("Invalid %s: %s", what, text);
    return n;
}

char *bw_read_all(int fd, const char *what, size_t *ret_n)
{
    size_t n = 0, room = 4096;
    char *bytes = malloc(room);
    for (;;) {
        long k = bytes ? sys_read(fd, bytes + n, room - n - 1) : -ENOMEM;
        if (k == -EINTR)
            continue;
        if (k < 0)
            bw_die_sys((int)k, "Can't read %s", what);
        n += (size_t)k;
        if (k == 0)
            break;
        if (n + 1 == room)
            bytes = realloc(bytes, room *= 2);
    }
    bytes[n] = 0;
    *ret_n = n;
    sys_shut(fd);
    return bytes;
}

uint64_t bw_caps_of(const char *name)
{
    static const char names[][20] = {
        "chown",
        "dac_override",
        "dac_read_search",
        "fowner",
        "fsetid",
        "kill",
        "setgid",
        "setuid",
        "setpcap",
        "linux_immutable",
        "net_bind_service",
        "net_broadcast",
        "net_admin",
        "net_raw",
        "ipc_lock",
        "ipc_owner",
        "sys_module",
        "sys_rawio",
        "sys_chroot",
        "sys_ptrace",
        "sys_pacct",
        "sys_admin",
        "sys_boot",
        "sys_nice",
        "sys_resource",
        "sys_time",
        "sys_tty_config",
        "mknod",
        "lease",
        "audit_write",
        "audit_control",
        "setfcap",
        "mac_override",
        "mac_admin",
        "syslog",
        "wake_alarm",
        "block_suspend",
        "audit_read",
        "perfmon",
        "bpf",
        "checkpoint_restore",
    };
    const size_t n = sizeof names / sizeof *names;
    if (strcasecmp(name, "ALL") == 0)
        return (1ull << n) - 1;
    for (size_t i = 0; i < n; i++) {
        if (strncasecmp(name, "cap_", 4) == 0 && strcasecmp(name + 4, names[i]) == 0)
            return 1ull << i;
    }
    bw_die("unknown cap: %s", name);
}

uint64_t bw_caps_permitted(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    int e = (int)sys_call(SYS_capget, &head, sets, 0, 0, 0, 0);
    if (e < 0)
        bw_die_sys(e, "capget failed");
    return sets[0].permitted | (uint64_t)sets[1].permitted << 32;
}
