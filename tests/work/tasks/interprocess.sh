#!/bin/sh
# needs: gcc
# System V and POSIX shared memory, semaphores and message queues of the box's own.
set -eu
cat >ipc.c <<'END'
#include <assert.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>
int main(void)
{
    int id = shmget(1234, 4096, IPC_CREAT | 0600);
    assert(id >= 0 && shmat(id, 0, 0) != (void *)-1);
    assert(semget(1234, 1, IPC_CREAT | 0600) >= 0 && msgget(1234, IPC_CREAT | 0600) >= 0);
    int fd = shm_open("/pinfold-work", O_CREAT | O_RDWR, 0600);
    assert(fd >= 0 && ftruncate(fd, 4096) == 0);
    assert(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    sem_t *s = sem_open("/pinfold-work", O_CREAT, 0600, 1);
    assert(s != SEM_FAILED && sem_wait(s) == 0);
    mqd_t q = mq_open("/pinfold-work", O_CREAT | O_RDWR, 0600, 0);
    assert(q >= 0 && mq_send(q, "x", 1, 0) == 0);
    shmctl(id, IPC_RMID, 0);
    semctl(semget(1234, 1, 0), 0, IPC_RMID);
    msgctl(msgget(1234, 0), IPC_RMID, 0);
    shm_unlink("/pinfold-work");
    sem_unlink("/pinfold-work");
    mq_unlink("/pinfold-work");
    return 0;
}
END
gcc -o ipc ipc.c -lrt -pthread
./ipc
