/*
 * A box of the least kind for tests of the guard: user, mount, network, IPC and pid namespaces, a read-only root with
 * one writable tree and a private /tmp, the filter made of protocol/notified.h, and guard_serve() in the builder's place.
 * It depends on nothing but guard/, so that a failing test speaks of the guard.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/policy.h"
#include "protocol/control.h"
#include "protocol/guard_table.h"

struct box_rule {
    enum guard_rule_kind kind;
    const char *text;
    enum guard_place place;
    enum guard_judge judge;
    bool directory;
    const char *below;
    bool pattern;
};

struct box {
    const char *workspace; /* absolute, exists: the writable tree, same path inside; also a ROOT rule */
    const struct box_rule *rules;
    size_t n_rules;
    enum guard_mode mode;
    bool reads;     /* every open is notified */
    bool unguarded; /* the same box without filter and guard: for comparing */
    bool host_network;
    bool quiet; /* no filter flag WAIT_KILLABLE_RECV: as before Linux 5.19 */
};

#define DENIALS_KEPT 64
struct box_result {
    int status; /* wait status of pid 1, which passes on its child's: exit code, or 128 + signal */
    size_t n_denials;
    struct denial_frame denials[DENIALS_KEPT];
};

/* The rules most tests use: what a default profile guards. */
extern const struct box_rule box_default_rules[];
extern const size_t box_default_n;
extern const struct box_rule box_fixed_rules[]; /* the same names at the top of the workspace only */
extern const size_t box_fixed_n;

/* Runs `inside` in a box, as a process whose exit status is what it returns. */
void box_run(const struct box *box, int (*inside)(void *ctx), void *ctx, struct box_result *ret);
/* Runs a shell command in a box; returns its exit status. */
int box_shell(const struct box *box, const char *command, struct box_result *ret);
/* Whether some denial names this path's end. */
bool box_denied(const struct box_result *r, const char *path_end);

/* Whether we are root and what takes seconds is left to the ordinary user, as whom each program runs next (PINFOLD_TEST_ALL=1: never). */
bool box_left_to_user(void);

/* A fresh directory to be a workspace, below /var/tmp/pinfold-test-guard-UID; removed by box_workspace_end. */
char *box_workspace(void);
void box_workspace_end(char *path);

/* Counting: CHECK tells file and line and goes on. */
extern int checks, failures;
#define CHECK(condition, ...) check_that((condition), __FILE__, __LINE__, #condition, " " __VA_ARGS__)
void check_that(bool holds, const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int check_report(const char *name); /* prints and returns the exit status */
uint64_t now_ns(void);
