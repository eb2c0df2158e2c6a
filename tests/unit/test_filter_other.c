/*
 * The model of test_filter.c over the filters of the architecture that this machine is not. Both are built, so each
 * machine tests both.
 */
#define OTHER_ARCHITECTURE
#include "test_filter.c"
