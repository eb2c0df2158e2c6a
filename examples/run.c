/*
 * Runs a command in a box without network and says how it ended.
 *
 *     cc run.c $(pkg-config --cflags --libs pinfold) -o run && ./run make test
 */
#include <pinfold.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const struct pinfold_option rules[] = {{"net", "none"}, {"timeout", "10m"}, {NULL, NULL}};
    struct pinfold_policy_options policy_options = {.size = sizeof policy_options, .options = rules};
    struct pinfold_run_options run_options = {
        .size = sizeof run_options, .argv = (const char *const *)argv + 1, .capture = 1};
    struct pinfold_error error;
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    size_t n;

    if (argc < 2) {
        fprintf(stderr, "usage: %s COMMAND [ARG...]\n", argv[0]);
        return 2;
    }
    if (pinfold_policy_load(&policy_options, &policy, &error) < 0) {
        fprintf(stderr, "policy: %s\n", error.text);
        return 2;
    }
    if (pinfold_run(policy, &run_options, &result, &error) < 0) {
        fprintf(stderr, "run: %s\n", error.text);
        pinfold_policy_free(policy);
        return 125;
    }
    const char *out = pinfold_result_stdout(result, &n);
    fwrite(out, 1, n, stdout);
    const char *err = pinfold_result_stderr(result, &n);
    fwrite(err, 1, n, stderr);
    int status = pinfold_result_status(result);
    fprintf(stderr, "%s\n", pinfold_result_json(result));
    pinfold_result_free(result);
    pinfold_policy_free(policy);
    return status;
}
