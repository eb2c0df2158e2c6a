/*
 * Attacks on what there is only so much of. Each operation returns 0 when it got through, or -errno (attack.h).
 */
#include "attack.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define OP(name) static int name(int n __attribute__((unused)), char **args __attribute__((unused)))

/* Somebody may have to see in time that it is too much: inside, what has been taken is kept until the box is ended. */
static void keep(void)
{
    if (!getenv("ATTACK_OUTSIDE"))
        sleep(90);
}

/* Starts processes until refused, or until there are as many as asked; they wait for their parent's end. */
OP(op_forks)
{
    int many = atoi(args[0]), result = 0, made = 0, gate[2];
    if (pipe(gate) < 0)
        return -errno;
    for (; made < many; made++) {
        pid_t pid = fork();
        if (pid < 0) {
            result = -errno;
            break;
        }
        if (pid == 0) {
            char byte;
            close(gate[1]);
            (void)!read(gate[0], &byte, 1);
            _exit(0);
        }
    }
    fprintf(stderr, "leak: %d processes\n", made);
    if (result == 0)
        keep();
    close(gate[1]);
    while (wait(NULL) > 0)
        continue;
    return result;
}
OP(op_memory)
{
    size_t total = (size_t)atoi(args[0]) << 20;
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    for (size_t i = 0; i < total; i += 4096)
        p[i] = 1;
    keep();
    return 0;
}
/* The same spread over many processes, each of them small. */
OP(op_memory_spread)
{
    int many = atoi(args[1]), status, result = 0;
    for (int i = 0; i < many; i++) {
        if (fork() == 0) {
            int r = op_memory(1, args);
            usleep(700000);
            _exit(r == 0 ? 0 : 1);
        }
    }
    while (wait(&status) > 0)
        result = status != 0 ? -ENOMEM : result;
    return result;
}
OP(op_fill)
{
    static char block[1 << 20];
    size_t total = (size_t)atoi(args[1]);
    int fd = open(args[0], O_WRONLY | O_CREAT, 0644);
    if (fd < 0)
        return -errno;
    for (size_t i = 0; i < total; i++) {
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            return errno ? -errno : -ENOSPC;
    }
    close(fd);
    return 0;
}
OP(op_raise_files)
{
    struct rlimit r = {1 << 20, 1 << 20};
    return done(setrlimit(RLIMIT_NOFILE, &r));
}
OP(op_nice)
{
    return done(setpriority(PRIO_PROCESS, 0, -10));
}
OP(op_lock_memory)
{
    void *p = mmap(NULL, 256u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -errno : done(mlock(p, 256u << 20));
}

const struct entry resource_entries[] = {
    {"forks", 1, op_forks},
    {"memory", 1, op_memory},
    {"memory-spread", 2, op_memory_spread},
    {"fill", 2, op_fill},
    {"raise-files", 0, op_raise_files},
    {"nice", 0, op_nice},
    {"lock-memory", 0, op_lock_memory},
    {NULL, 0, NULL},
};
