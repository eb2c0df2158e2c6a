/* The frame of the attack program: reads the operations, runs them, says how it went. See attack.h. */
#include "attack.h"
#include <ctype.h>

const char *cannot_why = "";

#define MARK "PINFOLD-WAS-HERE"

static const char *errno_name(int no)
{
    static const struct {
        int no;
        const char *name;
    } names[] = {
#define E(x) {x, #x}
        E(EPERM),       E(ENOENT),          E(ESRCH),           E(EINTR),       E(EIO),          E(ENXIO),
        E(E2BIG),       E(ENOEXEC),         E(EBADF),           E(ECHILD),      E(EAGAIN),       E(ENOMEM),
        E(EACCES),      E(EFAULT),          E(ENOTBLK),         E(EBUSY),       E(EEXIST),       E(EXDEV),
        E(ENODEV),      E(ENOTDIR),         E(EISDIR),          E(EINVAL),      E(ENFILE),       E(EMFILE),
        E(ENOTTY),      E(ETXTBSY),         E(EFBIG),           E(ENOSPC),      E(ESPIPE),       E(EROFS),
        E(EMLINK),      E(EPIPE),           E(ENAMETOOLONG),    E(ENOSYS),      E(ENOTEMPTY),    E(ELOOP),
        E(EOVERFLOW),   E(EPROTONOSUPPORT), E(ESOCKTNOSUPPORT), E(EOPNOTSUPP),  E(EPFNOSUPPORT), E(EAFNOSUPPORT),
        E(EADDRINUSE),  E(EADDRNOTAVAIL),   E(ENETDOWN),        E(ENETUNREACH), E(ECONNRESET),   E(ENOTCONN),
        E(ETIMEDOUT),   E(ECONNREFUSED),    E(EHOSTUNREACH),    E(ENOKEY),      E(EKEYREVOKED),  E(EDQUOT),
        E(EIDRM),       E(ENODATA),         E(ESTALE),          E(ENOTSOCK),    E(EDESTADDRREQ), E(EPROTOTYPE),
        E(ENOPROTOOPT), E(EUSERS),          E(EPROTO),
#undef E
    };
    static char number[16];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].no == no)
            return names[i].name;
    }
    snprintf(number, sizeof number, "E%d", no);
    return number;
}

int leak_fd(int fd)
{
    char text[4096];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    int no = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return -no;
    if (n == 0)
        return -ENODATA;
    fputs("leak: ", stderr);
    for (ssize_t i = 0; i < n; i++)
        fputc(isprint((unsigned char)text[i]) ? text[i] : ' ', stderr);
    fputc('\n', stderr);
    return 0;
}

int mark_fd(int fd)
{
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, MARK, sizeof MARK - 1);
    int no = errno;
    close(fd);
    return n < 0 ? -no : 0;
}

static const struct entry *find(const char *name)
{
    const struct entry *const tables[] = {file_entries,     process_entries,  kernel_entries, network_entries,
                                          terminal_entries, resource_entries, nested_entries};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const struct entry *e = tables[t]; e->name; e++) {
            if (strcmp(e->name, name) == 0)
                return e;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int at = 1;
    if (argc < 2) {
        fputs("usage: attack OP ARGS... [, OP ARGS...]\n", stderr);
        return 64;
    }
    for (;;) {
        int end = at;
        while (end < argc && strcmp(argv[end], ",") != 0)
            end++;
        const struct entry *e = at < argc ? find(argv[at]) : NULL;
        if (!e || end - at - 1 < e->args) {
            fprintf(stderr, "attack: no operation '%s' with %d arguments\n", at < argc ? argv[at] : "", end - at - 1);
            return 64;
        }
        bool last = end >= argc;
        argv[end] = NULL;
        int r = e->run(end - at - 1, argv + at + 1);
        if (r == CANNOT) {
            fprintf(stderr, "attack: cannot %s\n", cannot_why);
            return 3;
        }
        if (!last && r < 0) {
            fprintf(stderr, "attack: setup %s %s\n", e->name, errno_name(-r));
            return 4;
        }
        if (last) {
            if (r == 0)
                fputs("attack: through\n", stderr);
            else
                fprintf(stderr, "attack: refused %s\n", errno_name(-r));
            return r == 0 ? 0 : 1;
        }
        at = end + 1;
    }
}
