/*
 * Says what catch_alone() thinks of the network namespace it is started in: 0, or an errno. The suite makes
 * namespaces with and without another way out.
 */
#include <stdio.h>

#include "runtime/inner.h"

int main(void)
{
    printf("%d\n", -catch_alone());
    return 0;
}
