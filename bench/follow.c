/*
 * Runs a command in a monitored box by libpinfold and prints, for each refusal that the callback is told of while it runs, the time of
 * the day in seconds and the target.
 *
 *     follow WORKSPACE COMMAND [ARG...]
 */
#include <pinfold.h>
#include <stdio.h>
#include <time.h>

static void hear(void *ctx, const struct pinfold_denial *d)
{
    struct timespec now;
    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%lld.%06ld %s\n", (long long)now.tv_sec, now.tv_nsec / 1000, d->target);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct pinfold_option options[] = {
        {"workspace", argc > 1 ? argv[1] : "."}, {"monitor", "true"}, {NULL, NULL}};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .no_layers = 1};
    const struct pinfold_run_options o = {.size = sizeof o, .argv = (const char *const *)argv + 2, .denied = hear};
    struct pinfold_policy *policy = NULL;
    struct pinfold_result *result = NULL;
    struct pinfold_error e = {0};
    if (argc < 3 || pinfold_policy_load(&po, &policy, &e) < 0 || pinfold_run(policy, &o, &result, &e) < 0) {
        fprintf(stderr, "%s\n", argc < 3 ? "follow WORKSPACE COMMAND [ARG...]" : e.text);
        return 1;
    }
    pinfold_result_free(result);
    pinfold_policy_free(policy);
    return 0;
}
