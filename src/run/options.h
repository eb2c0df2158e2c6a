/*
 * What both halves of libpinfold do with their arguments: the program that has it inside, and the library that asks such a program.
 */
#pragma once
#include <stddef.h>
#include "base/err.h"
#include "pinfold.h"

/* Fills `to` from `from` when both are there; returns r. */
int tell(struct pinfold_error *to, const struct err *from, int r);
/* Callers built against an older header give a smaller struct: what they do not know is zero. */
int take_options(void *to, size_t room, const void *from, size_t size, struct err *e);
/* What is handed out: as much as the caller's struct of `size` bytes has room for; its first member stays. */
void give_struct(void *to, size_t size, const void *from, size_t room);
/* Hands the text of `b` to a caller who will free() it. */
struct buf;
int give(struct buf *b, char **ret, struct pinfold_error *error);
