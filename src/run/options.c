/*
 * Arguments and answers of the library's functions, and the public list of options. The list is an expansion of the
 * one table of keys; a caller's struct is copied as far as it goes, by its size.
 */
#include "run/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "policy/text/keys.h"

const char *pinfold_version(void)
{
    return PINFOLD_VERSION;
}

int tell(struct pinfold_error *to, const struct err *from, int r)
{
    if (to && r < 0) {
        struct err e = *from;
        (void)err_used_up(&e, r);
        to->kind = (enum pinfold_error_kind)e.kind;
        to->no = e.no;
        snprintf(to->text, sizeof to->text, "%s", e.text);
    }
    return r;
}

int take_options(void *to, size_t room, const void *from, size_t size, struct err *e)
{
    memset(to, 0, room);
    if (!from)
        return 0;
    if (size < sizeof(size_t) || size > 4096)
        return err_say(e, ERR_POLICY, "the option struct's size is %zu; set .size = sizeof of it", size);
    memcpy(to, from, size < room ? size : room);
    return 0;
}

void give_struct(void *to, size_t size, const void *from, size_t room)
{
    size_t n = size < room ? size : room;
    if (n > sizeof size)
        memcpy((char *)to + sizeof size, (const char *)from + sizeof size, n - sizeof size);
}

int give(struct buf *b, char **ret, struct pinfold_error *error)
{
    struct err e = {0};
    buf_put(b, "", 0); /* an empty answer is a string too */
    char *text = buf_take(b);
    if (!text)
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "answer"));
    *ret = text;
    return 0;
}

/* Two tables of the same pointers would be a page more in each running pinfold. */
#define SAME_PLACE(ours, theirs)                                                                                       \
    _Static_assert(offsetof(struct policy_key, ours) == offsetof(struct pinfold_option_info, theirs), #ours)
SAME_PLACE(flag, name);
SAME_PLACE(value, value);
SAME_PLACE(choices, choices);
SAME_PLACE(path, key);
SAME_PLACE(help, help);
SAME_PLACE(takes_value, takes_value);
SAME_PLACE(repeats, repeats);
_Static_assert(sizeof(struct pinfold_option_info) <= sizeof(struct policy_key), "a key begins as an option");

const struct pinfold_option_info *pinfold_option_at(size_t i)
{
    return i < KEY_COUNT ? (const struct pinfold_option_info *)(const void *)&key_table[i] : NULL;
}
