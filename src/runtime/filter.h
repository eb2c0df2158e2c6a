/*
 * The seccomp filters, as BPF programs generated at build time by tools/filter_gen.c: sorted ranges of system call
 * numbers as a binary tree, arguments judged in its leaves. One per combination of enum filter bits (protocol/step.h).
 * What they pass and refuse is listed by name in protocol/filter_names.h.
 */
#pragma once
#include <linux/filter.h>
#include <stdint.h>
struct filter_program {
    uint32_t at; /* its place in filter_code; an address would have to be relocated by every start */
    uint16_t n;
};
extern const struct filter_program filters[]; /* FILTER_VARIANTS of them */
extern const struct sock_filter filter_code[];
