/*
 * Writes the number of MiB it is told to standard output, 64 KiB a write. The bench measures by it what relaying a
 * command's output costs.
 */
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char block[65536];
    for (long n = argc > 1 ? atol(argv[1]) * 16 : 0; n > 0; n--) {
        for (size_t done = 0; done < sizeof block;) {
            ssize_t r = write(1, block + done, sizeof block - done);
            if (r <= 0)
                return 1;
            done += (size_t)r;
        }
    }
    return 0;
}
