/*
 * The rules of a plan's guard as an image of their own: what a guard tells a pinfold in its box (guard/calls/rules_told.c), which plans an
 * inner box by them. Pure: it reads a checked image and writes into memory.
 */
#pragma once
#include "base/buf.h"
#include "protocol/guard_table.h"
#include "protocol/step.h"

/* Its bytes. The plan has a table. */
size_t guard_image_bytes(const struct plan_image *p);
void guard_image_put(const struct plan_image *p, void *to);
/* The rule as it was written, whose text may be only what stands behind its two asterisks. */
void guard_rule_said(const struct plan_image *p, const struct guard_rule *rule, struct buf *to);
