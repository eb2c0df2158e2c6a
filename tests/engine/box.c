/*
 * Runs one command in a default box made from a hand-written plan: `box [-g] [-t] [-n] [-v] [-w DIR] -- COMMAND...`
 * It shows that the builder needs no policy, and what a start costs without one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "image.h"

int main(int argc, char **argv)
{
    static struct ran ran;
    unsigned parts = 0;
    const char *workspace = NULL, *veil = NULL;
    bool tty = false;
    int c;
    while ((c = getopt(argc, argv, "+gtnrw:v:")) != -1) {
        if (c == 'g')
            parts |= BOX_GUARD;
        else if (c == 'n')
            parts |= BOX_NET_HOST;
        else if (c == 'r')
            parts |= BOX_ROOT_USER;
        else if (c == 't')
            tty = true;
        else if (c == 'v')
            veil = optarg;
        else if (c == 'w')
            workspace = optarg;
        else
            return 2;
    }
    struct image *i = image_of_parts(workspace, parts);
    if (veil) {
        image_put_step(i, STEP_VEIL, veil, NULL, 0, 0);
        static const char *const hidden[] = {".ssh", ".gnupg", ".aws", ".kube", ".docker"};
        static const char *const absent[] = {
            ".azure",           ".netrc",     ".npmrc",         ".pypirc",
            ".git-credentials", ".config/gh", ".config/gcloud", ".local/share/keyrings",
            ".bash_history",    ".mozilla"};
        for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++)
            image_stub(i, hidden[k], STUB_DENIED_DIR);
        for (size_t k = 0; k < sizeof absent / sizeof *absent; k++)
            image_stub(i, absent[k], STUB_ABSENT);
    }
    image_locks(i, parts);
    const struct run_ask ask = {
        .image = i, .argv = (const char *const *)argv + optind, .in = 0, .tty = tty, .keep_output = !tty};
    int r = image_run(&ask, &ran);
    if (r < 0 || ran.verdict) {
        fprintf(stderr, "box: %s\n", ran.words);
        return 125;
    }
    if (tty)
        fwrite(ran.out, 1, ran.n_out, stdout);
    if (ran.exec_errno)
        fprintf(stderr, "box: %s: %s\n", argv[optind], strerror(ran.exec_errno));
    return WIFSIGNALED(ran.status) ? 128 + WTERMSIG(ran.status) : WEXITSTATUS(ran.status);
}
