/* Tells the caller of a run of a refusal: pinfold_run_options.denied with struct pinfold_denial. And what would allow it, where that is read. */
#include "run/asked/denied.h"

#include "run/words.h"

#define ALLOW "allow with "

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* An option alone, or the words around it. */
static struct str offer_text(struct str sentence, size_t at)
{
    struct str offer = str_skip(sentence, at);
    return str_starts(offer, STR(ALLOW "--")) ? str_skip(offer, sizeof ALLOW - 1) : offer;
}

static size_t limit_words(const struct box_terms *terms, const struct box_result *r, const struct denial *d,
                          struct buf *out)
{
    static const char more[] = "; allow more with ", again[] = "; start it again ";
    const char *limit = box_limit_name(r->limit);
    if (limit && same(limit, d->action))
        words_limit(r, terms->limits, out);
    const char *at = out->n ? strstr(buf_cstr(out), more) : NULL;
    if (!at && out->n && terms->start_name)
        at = strstr(buf_cstr(out), again);
    return at ? (size_t)(at + 2 - buf_cstr(out)) : out->n;
}

void denied_offer(const struct box_terms *terms, const struct box_result *r, const struct denial *d, struct buf *out)
{
    auto_buf struct buf words = BUF(4 * MAX_WORDS);
    const bool limit = same(d->kind, "limit") && !d->remedy;
    size_t at = 0;
    if (d->remedy) /* which was tried */
        buf_printf(&words, "%s%s", d->option ? ALLOW : "", d->remedy);
    else
        at = limit ? limit_words(terms, r, d, &words) : words_denial(d, terms->policy, false, &words);
    if (terms->start_name && !limit && at < words.n)
        words_in_session(d, terms->start_name, terms->net, &words);
    if (buf_ok(&words))
        buf_str(out, offer_text(buf_view(&words), at));
}

char *denied_remedy(const struct denial *d, const char *start_name, enum net_mode net, struct arena *mem)
{
    auto_buf struct buf words = BUF(4 * MAX_WORDS);
    if (!d->remedy || !start_name)
        return arena_text_or_null(mem, d->remedy);
    buf_printf(&words, "%s%s", d->option ? ALLOW : "", d->remedy);
    words_in_session(d, start_name, net, &words);
    return buf_ok(&words) ? arena_str(mem, str_skip(buf_view(&words), d->option ? sizeof ALLOW - 1 : 0)) : NULL;
}

void say_denied(const struct pinfold_run_options *o, const struct denial *d, const struct policy *policy)
{
    if (!o->denied)
        return;
    auto_buf struct buf words = BUF(4 * MAX_WORDS);
    const size_t at = d->remedy || same(d->kind, "limit") ? 0 : words_denial(d, policy, false, &words);
    auto_buf struct buf offer = BUF(4 * MAX_WORDS);
    buf_str(&offer, offer_text(buf_view(&words), at));
    const struct pinfold_denial told = {.size = sizeof told,
                                        .kind = d->kind,
                                        .action = d->action,
                                        .target = d->target,
                                        .rule = or_empty(d->rule),
                                        .origin = or_empty(d->origin),
                                        .how = or_empty(d->how),
                                        .command = or_empty(d->command),
                                        .address = or_empty(d->address),
                                        .why = or_empty(d->why),
                                        .pid = d->pid,
                                        .command_line = or_empty(d->argv),
                                        .host = or_empty(d->host),
                                        .remedy = d->remedy        ? d->remedy
                                                  : buf_ok(&offer) ? buf_cstr(&offer)
                                                                   : "",
                                        .error = or_empty(box_errno_name(d->no)),
                                        .count = d->count,
                                        .monitor = d->seen,
                                        .guess = d->guess};
    o->denied(o->denied_ctx, &told);
}
