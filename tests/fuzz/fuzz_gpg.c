/*
 * Lines to and from the gpg-agent: what is passed on is one line of pinfold's own making, of the few kinds, without a byte that was not
 * understood; what names a key lies in the line; a refusal has its reason.
 */
#include "fuzz.h"
#include "gpg/assuan.h"

static void check_line(const char *line)
{
    static const char *const begins[] = {
        "GETINFO version\n", "GETINFO cmd_has_option ", "KEYINFO ", "READKEY ", "SIGKEY ", "SETHASH "};
    const size_t n = strlen(line);
    size_t found = 0;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        found += strncmp(line, begins[i], strlen(begins[i])) == 0;
    MUST(found == 1 && n < 256 && line[n - 1] == '\n' && strchr(line, '\n') == line + n - 1);
    for (size_t i = 0; i + 1 < n; i++)
        MUST(line[i] >= ' ' && line[i] < 127 && line[i] != '%');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str in = {(const char *)data, size};
    struct gpg_request r;
    static const struct gpg_named_key key = {"0123456789ABCDEF0123456789ABCDEF01234567", "k"};
    const struct gpg_rules rules = {.keys = &key, .n_keys = 1};
    size_t i = 7;
    gpg_request_parse(in, &r);
    MUST((r.what == GPG_REFUSED) == (r.why != NULL));
    MUST(r.grips.n == 0 || (r.grips.p >= in.p && r.grips.p + r.grips.n <= in.p + in.n));
    const bool passes = r.what == GPG_PASS || r.what == GPG_ABOUT || r.what == GPG_KEY || r.what == GPG_HASH;
    MUST(passes == (r.line[0] != 0));
    if (passes)
        check_line(r.line);
    if (r.grips.n && gpg_key_named(&rules, r.grips, &i))
        MUST(i == 0);
    if (r.what == GPG_KEY || r.what == GPG_ABOUT)
        MUST(r.grips.n == GPG_GRIP);
    (void)gpg_answer_parse(in);
    return 0;
}
