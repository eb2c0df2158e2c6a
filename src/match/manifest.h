/*
 * What of a package.json hooks of git run: keys of the tools that hooks call, which take commands, plugins and configurations from there.
 * The file as a whole cannot be guarded, because people and boxes edit it all day. Pure; a box may have written every byte.
 */
#pragma once
#include <stdbool.h>
#include "base/buf.h"
#include "base/str.h"

#define MANIFEST     "package.json"
#define MANIFEST_MAX (1u << 20) /* bytes that are looked at; a longer one is taken for one whose keys are not known */

/*
 * Whether such keys differ between two texts, for which an empty one stands if there is none; their names, with ", " between them, behind
 * `to`. Blanks between what JSON consists of do not count. What cannot be read as an object of JSON counts as another one if it differs.
 */
bool manifest_changed(struct str before, struct str after, struct buf *to);
