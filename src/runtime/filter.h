/*
 * The seccomp filters, as BPF programs generated at build time by tools/filter_gen.c: sorted ranges of system call
 * numbers as a binary tree, arguments judged in its leaves. One per combination of enum filter bits (protocol/step.h).
 * What they pass and refuse is listed by name in protocol/filter_names.h.
 */
#pragma once
#include <stdint.h>
struct sock_filter;
struct filter_program {
    const struct sock_filter *code;
    uint16_t n;
};
extern const struct filter_program filters[]; /* FILTER_VARIANTS of them */
