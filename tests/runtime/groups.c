/* groups.c: what the control groups named in one file leave, by the tree in a
 * folder. */
#include <stdio.h>

#include "memory.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    printf("%.0f\n", pp_group_memory(argv[1], argv[2]));
    return 0;
}
