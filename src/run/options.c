/* The public list of options, generated from the table of keys. */
#include "pinfold.h"
#include "policy/text/keys.h"

static const struct pinfold_option_info all_options[] = {
#define X(id, path, flag, metavar, type, choices_, repeats_, takes, tighten, text)                                     \
    {.name = flag,                                                                                                     \
     .value = metavar,                                                                                                 \
     .choices = choices_,                                                                                              \
     .key = path,                                                                                                      \
     .help = text,                                                                                                     \
     .takes_value = takes,                                                                                             \
     .repeats = repeats_},
    POLICY_KEYS(X)
#undef X
};

const struct pinfold_option_info *pinfold_option_at(size_t i)
{
    return i < sizeof all_options / sizeof *all_options ? &all_options[i] : NULL;
}
