/* Reads what builders print: docker's first one ("Step 1/9 : ..."), BuildKit's plain form ("#5 [2/9] ...") and podman's. Pure. */
#include "run/image/build.h"

#include <stdio.h>

static bool build_number(struct str *s, unsigned *ret)
{
    size_t n = 0;
    *ret = 0;
    while (n < s->n && n < 6 && s->p[n] >= '0' && s->p[n] <= '9')
        *ret = *ret * 10 + (unsigned)(s->p[n++] - '0');
    *s = str_skip(*s, n);
    return n > 0;
}

static bool build_skip(struct str *s, struct str head)
{
    bool is = str_starts(*s, head);
    if (is)
        *s = str_skip(*s, head.n);
    return is;
}

/* "3/12" and what follows, which must begin with `then`. */
static bool build_counts(struct str *s, struct str then, struct image_step *step)
{
    struct str rest = *s;
    unsigned number, total;
    if (!build_number(&rest, &number) || !build_skip(&rest, STR("/")) || !build_number(&rest, &total) ||
        !build_skip(&rest, then) || number == 0 || number > total)
        return false;
    *step = (struct image_step){.number = number, .total = total};
    *s = str_trim(rest);
    snprintf(step->text, sizeof step->text, "%.*s", (int)(s->n < sizeof step->text ? s->n : sizeof step->text - 1),
             s->p);
    return true;
}

/* "#5 [2/9] RUN x", "#5 [base 2/9] RUN x", "#5 CACHED", "#5 0.35 output", "#5 DONE 0.4s". */
static enum image_line buildkit_line(struct str rest, struct str *text, struct image_step *step)
{
    struct str seconds = rest;
    unsigned ignored;
    *text = rest;
    if (str_is(rest, "CACHED"))
        return IMAGE_LINE_CACHED;
    if (build_skip(&rest, STR("["))) {
        struct str bracket = str_until(&rest, ']'), inside = bracket;
        while (bracket.n && memchr(bracket.p, ' ', bracket.n))
            (void)str_until(&bracket, ' ');
        char line[IMAGE_BUILD_TEXT + 64];
        snprintf(line, sizeof line, "%.*s]%.*s", (int)(bracket.n < 20 ? bracket.n : 20), bracket.p,
                 (int)(rest.n < IMAGE_BUILD_TEXT ? rest.n : IMAGE_BUILD_TEXT), rest.p ? rest.p : "");
        struct str counted = str_of(line);
        return !str_starts(inside, STR("internal")) && build_counts(&counted, STR("]"), step) ? IMAGE_LINE_STEP
                                                                                              : IMAGE_LINE_NOTHING;
    }
    if (build_number(&seconds, &ignored) && build_skip(&seconds, STR(".")) && build_number(&seconds, &ignored)) {
        *text = str_trim(seconds);
        return IMAGE_LINE_OUTPUT;
    }
    return str_starts(*text, STR("ERROR")) ? IMAGE_LINE_OUTPUT : IMAGE_LINE_NOTHING;
}

enum image_line image_build_line(struct str line, struct str *text, struct image_step *step)
{
    static const char nothing[][36] = {
        " ---> ",  "--> ",        "Removing intermediate container ", "Sending build context", "Successfully ",
        "COMMIT ", "DEPRECATED: "};
    struct str rest = line;
    unsigned ignored;
    *text = line;
    if (build_skip(&rest, STR("Step ")) && build_counts(&rest, STR(" :"), step))
        return IMAGE_LINE_STEP;
    rest = line;
    if (build_skip(&rest, STR("[")) && rest.n) {
        (void)str_until(&rest, ']'); /* podman with several stages: "[1/2] STEP 1/3: ..." */
        rest = str_trim(rest);
    } else {
        rest = line;
    }
    if (build_skip(&rest, STR("STEP ")) && build_counts(&rest, STR(":"), step))
        return IMAGE_LINE_STEP;
    if (str_starts(line, STR(" ---> Using cache")) || str_starts(line, STR("--> Using cache")))
        return IMAGE_LINE_CACHED;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        if (str_starts(line, str_of(nothing[i])))
            return IMAGE_LINE_NOTHING;
    }
    rest = line;
    if (build_skip(&rest, STR("#")) && build_number(&rest, &ignored) && build_skip(&rest, STR(" ")))
        return buildkit_line(rest, text, step);
    return line.n ? IMAGE_LINE_OUTPUT : IMAGE_LINE_NOTHING;
}
