#include <stdio.h>
#include "table.h"
int main(void)
{
    int (*const table[])(void) = {TABLE}, sum = 0;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        sum += table[i]();
    printf("sum is %d\n", sum);
    return 0;
}
