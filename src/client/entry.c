/* Hidden subcommands with which pinfold starts itself: the server of the shared library, the attack program, the guard. */
#include "client/entry.h"

#include "backends/native/native.h"
#include "base/str.h"
#include "doctor/attack.h"
#include "client/server.h"

bool entry_hidden(int argc, char **argv, int *ret_status)
{
    native_main(argc, argv);
    if (argc < 2 || argv[1][0] != '-' || argv[1][1] != '-')
        return false;
    if (argc == 2 && same(argv[1], "--serve")) {
        *ret_status = serve();
        return true;
    }
    if (argc > 2 && same(argv[1], "--attack")) {
        *ret_status = attack_main(argc - 2, argv + 2);
        return true;
    }
    return false;
}
