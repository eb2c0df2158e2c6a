/*
 * A pinfold-init of an attacker who has taken over the kernel of the machine: it starts no box and no command, but what ATTACK in the
 * command's environment says: memory and again, or terminals, and the directory of the host in which it leaves what came of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/control.h"
#include "protocol/mux.h"

static int line;

static void all(bool out, void *p, size_t n)
{
    struct pollfd ready = {.fd = line, .events = out ? POLLOUT : POLLIN};
    for (size_t at = 0; at < n;) {
        (void)poll(&ready, 1, 1000);
        const ssize_t k = out ? write(line, (char *)p + at, n - at) : read(line, (char *)p + at, n - at);
        at += k > 0 ? (size_t)k : 0;
    }
}

static void say(enum mux_kind kind, uint32_t job, void *p, size_t n)
{
    struct mux_head h = {.kind = kind, .job = job, .n = (uint32_t)n};
    all(true, &h, sizeof h);
    all(true, p, n);
}

static void frame(uint32_t job, uint32_t kind, uint32_t a, uint32_t b)
{
    struct frame f = {.kind = kind, .a = a, .b = b, .stdin_at = -1};
    say(MUX_FRAME, job, &f, sizeof f);
}

/* The next message of this kind: its head, and its bytes. */
static struct mux_head heard(enum mux_kind kind, char **ret)
{
    for (;;) {
        struct mux_head h;
        all(false, &h, sizeof h);
        char *p = malloc(h.n + 1);
        all(false, p, h.n);
        p[h.n] = 0;
        *ret = p;
        if (h.kind == kind)
            return h;
    }
}

static void modules(void)
{
    char path[64];
    for (int i = 0;; i++) {
        snprintf(path, sizeof path, "/modules/%02d", i);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        if (syscall(SYS_finit_module, fd, "", 0) < 0)
            (void)syscall(SYS_finit_module, fd, "", 4 /* MODULE_INIT_COMPRESSED_FILE */);
        (void)close(fd);
    }
}

static void note(const char *dir, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "/root%s/told", dir);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    (void)!write(fd, text, strlen(text));
    (void)fsync(fd);
    (void)close(fd);
}

/* Opens the memory of each process whose /proc the machine is shown: qemu's is among them. */
static void memory(const char *dir)
{
    char path[300], name[64], text[200];
    DIR *d = opendir("/root/proc");
    for (const struct dirent *at; d && (at = readdir(d));) {
        if (at->d_name[0] < '1' || at->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/root/proc/%.20s/comm", at->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
        (void)close(fd);
        name[n > 0 ? n - 1 : 0] = 0;
        snprintf(path, sizeof path, "/root/proc/%.20s/mem", at->d_name);
        fd = open(path, O_RDWR | O_CLOEXEC);
        snprintf(text, sizeof text, "%s %s\n", name, fd >= 0 ? "open" : strerror(errno));
        note(dir, text);
        (void)close(fd);
    }
}

int main(void)
{
    struct mux_hello hello = {.magic = MUX_MAGIC, .version = PINFOLD_VERSION};
    char *bytes;
    (void)mount("dev", "/dev", "devtmpfs", 0, NULL);
    modules();
    while ((line = open("/dev/vport0p1", O_RDWR | O_CLOEXEC | O_NONBLOCK)) < 0)
        (void)usleep(5000);
    say(MUX_HELLO, 0, &hello, sizeof hello);
    (void)heard(MUX_CONFIG, &bytes);
    (void)mount("root", "/root", "9p", 0, "trans=virtio,version=9p2000.L,msize=512000,cache=none");
    frame(0, FRAME_READY, 0, 0);
    const struct mux_head job = heard(MUX_JOB, &bytes);
    const char *attack = memmem(bytes, job.n, "ATTACK=", 7), *dir = attack ? strchr(attack, '/') : NULL;
    if (!dir)
        return 1;
    note(dir, "begun\n");
    if (strncmp(attack + 7, "terminals", 9) == 0) {
        for (int i = 0; i < 400; i++)
            frame(job.job, FRAME_TTY, 0, 0);
        (void)usleep(3000000);
        frame(job.job, FRAME_VERDICT, WHERE_CHILD, ESTALE);
    } else {
        memory(dir);
        frame(job.job, FRAME_VERDICT, WHERE_NET, EPERM);
    }
    for (;;)
        (void)pause();
}
