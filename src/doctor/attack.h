/*
 * Small attacks on a box for `pinfold doctor --verify`: each is tried outside first, where it must work, then in a box,
 * where it must fail. They are part of the program (hidden verb --attack), so nothing else need be installed.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "protocol/feature.h"

/* Targets of the attacks, set up outside; passed as arguments because a box's environment is reduced. */
struct attack_stage {
    const char *dir;      /* work/ is the workspace, outside/ is not, hidden/ is hidden */
    int victim;           /* a process outside */
    int port;             /* a TCP listener on 127.0.0.1 */
    const char *abstract; /* name of an abstract socket that listens */
    int shm;              /* a System V shared memory segment */
    int leaked;           /* a descriptor of outside/, open without close-on-exec */
    const char *state;    /* pinfold's own state directory */
    int service;          /* a second TCP listener on 127.0.0.1, which net boxes may reach */
};
#define STAGE_ARGUMENTS 8
#define NET_GREETING    "pinfold verify\n" /* first words of both listeners */

struct attack {
    const char *name;
    const char *what;     /* "a file outside is written": printed if it succeeded */
    enum feature feature; /* the guarantee that it tests; lost guarantees are not failures */
    bool works_outside;   /* it was seen to work outside; some attacks are denied to ordinary users */
    /* 0: it succeeded. Otherwise the errno of the refusal. */
    int (*run)(const struct attack_stage *s);
    /* Checks outside afterwards; NULL if the status suffices. 0: it succeeded. */
    int (*after)(const struct attack_stage *s);
    bool net;  /* in a box that may reach only `service` */
    bool must; /* not an attack: must work in that box */
};
extern const struct attack attacks[];
extern const size_t n_attacks;

/* attack_net.c */
int net_allowed(const struct attack_stage *s);
int net_other_service(const struct attack_stage *s);
int net_by_proxy(const struct attack_stage *s);
int net_other_address(const struct attack_stage *s);
int net_other_name(const struct attack_stage *s);
int net_datagram(const struct attack_stage *s);

/* Writes STAGE_ARGUMENTS texts, each of `room` bytes, from `s`. */
void stage_print(const struct attack_stage *s, char room[STAGE_ARGUMENTS][256]);
/* The hidden verb: argv is NAME and the stage's arguments. Returns an exit status ATTACK_*. */
int attack_main(int argc, char **argv);
#define ATTACK_SUCCEEDED 10
#define ATTACK_REFUSED   11
#define ATTACK_NONE      12 /* of ATTACK_MAKE, no attack: makes a file, which the guard has to judge, and removes it */
#define ATTACK_MAKE      "make"
