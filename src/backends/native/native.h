/* What the files of the native engine share. */
#pragma once
#include "backends/engine.h"

int native_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e);
