/*
 * Edit distance between two slices, for "did you mean" in messages. The other functions of str.h are short and
 * inline.
 */
#include "base/str.h"

unsigned str_distance(struct str a, struct str b)
{
    enum { LONGEST = 64 };
    unsigned before[LONGEST + 1], last[LONGEST + 1], now[LONGEST + 1];

    if (a.n > LONGEST || b.n > LONGEST)
        return 99;
    for (size_t j = 0; j <= b.n; j++)
        before[j] = last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned cost = a.p[i - 1] != b.p[j - 1];
            unsigned best = last[j - 1] + cost;
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        memcpy(before, last, sizeof last);
        memcpy(last, now, sizeof now);
    }
    return last[b.n];
}
