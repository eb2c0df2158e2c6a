/*
 * The beginning of a process of the network (apart.h), in the program that it has executed: egress proxy, published ports, or the
 * filter of the ssh-agent or the gpg-agent. Each locks itself down before it reads anything.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "supervisor/network/apart.h"
#include "sys/process.h"

void network_main(int argc, char **argv)
{
    struct apart_handed *h = apart_take(argc, argv);
    if (!h)
        return; /* somebody has typed it */
    for (int s = 1; s < 32; s++)
        (void)signal(s, s == SIGPIPE ? SIG_IGN : SIG_DFL);
    (void)sys_sigmask(SIG_SETMASK, 0);
    (void)prctl(PR_SET_NAME, "pinfold"); /* it was executed under a number */
    if (h->of_ssh)
        ssh_filter_serve(&h->ssh);
    if (h->of_gpg)
        gpg_filter_serve(&h->gpg);
    if (h->ask.publish)
        publish_serve(&h->ask, h->sockets);
    const bool made = h->ask.way == CATCH_SOCKET; /* the proxy's socket, instead of those that the builder sends */
    if (!made && egress_receive(&h->ask, h->sockets) < 0)
        _exit(1);
    if (!made)
        (void)close(h->sockets);
    egress_serve(&h->ask);
}
