/* What the readers of other sandboxes' settings share: keys that are ignored or refused, paths that are collected before they are said. */
#pragma once
#include "policy/path.h"
#include "policy/said.h"

/* What a key that is not honoured means to who wrote it. The strict formats differ by it (POLICY_SRT_STRICT). */
enum loss {
    LOSS_OF_MEANING, /* something else would happen than was asked for: an error there */
    LOSS_OF_A_GRANT, /* less is allowed: told there, too */
    LOSS_OF_NOTHING  /* it is not needed here, or somebody else honours it: not told there */
};

/* How a key of a foreign format is read: by a function, or not, for a reason. */
struct foreign;
typedef int foreign_fn(struct foreign *f, const struct node *n);
struct foreign_spec {
    const char *name;
    foreign_fn *read; /* NULL: `why` is why it is ignored; if that is NULL, too, nothing needs to be done */
    const char *why;
    enum loss loss;
};

struct foreign {
    const struct source *src;
    const char *prefix; /* "filesystem.", for messages */
    bool strict;        /* what cannot be honoured is an error */
    /* srt: path rules are collected first, because its lists override one another. */
    struct gathered {
        struct str text;         /* in our syntax */
        struct path_text at;     /* expanded, for comparison */
        const struct node *node; /* where it was written */
        enum { DENY_READ, ALLOW_READ, ALLOW_WRITE, DENY_WRITE } list;
    } * paths;
    size_t n_paths;
    bool network_on, hosts_said, any_host;
    const struct node *network_at;
    const struct node *container_at; /* dive, mycode: where a container engine was chosen, and */
    bool image_said;                 /* whether its image was */
};

/* Why a proxy that settings name is ignored. */
#define FOREIGN_OWN_PROXY "pinfold's own egress proxy decides; another proxy cannot replace it"

int foreign_no_memory(const struct foreign *f);
/* The key has no effect, and why; an error in a strict format, by what is lost. */
int foreign_ignore(struct foreign *f, const char *key, const char *why, enum loss loss, const struct node *at);
int foreign_ignore_value(struct foreign *f, const char *key, struct str value, const char *why, enum loss loss,
                         const struct node *at);
int foreign_wrong(struct foreign *f, const char *key, const struct node *n, const char *wanted);
int foreign_disabled(struct foreign *f, const struct node *n);

int foreign_map(struct foreign *f, const char *prefix, const struct node *map, const struct foreign_spec *specs);
int foreign_bool(struct foreign *f, const char *key, const struct node *n, bool *ret);
int foreign_each(struct foreign *f, const char *key, const struct node *list,
                 int (*each)(struct foreign *f, const struct node *item, int arg), int arg);

int foreign_say(struct foreign *f, enum key_id id, const struct node *at, struct str a, struct str b, unsigned bits);
int foreign_say_text(struct foreign *f, enum key_id id, const struct node *at, const char *text);
int foreign_say_item(struct foreign *f, const struct node *item, int key);
int foreign_say_optional(struct foreign *f, const struct node *item, int key);
int foreign_say_image(struct foreign *f);

/* Keys of more than one format. */
int foreign_enabled(struct foreign *f, const struct node *n);
int foreign_image(struct foreign *f, const struct node *n);

enum { FOREIGN_READS = 1u << DENY_READ | 1u << ALLOW_READ, FOREIGN_WRITES = 1u << ALLOW_WRITE | 1u << DENY_WRITE };
/* The nearest collected rule of these lists at or above `path`: its list, or -1. Of equals later lists win. */
int foreign_nearest(const struct foreign *f, const char *path, unsigned lists, bool below_only);

int foreign_srt(struct foreign *f, const struct node *root);
int foreign_dive(struct foreign *f, const struct node *root);
int foreign_mycode(struct foreign *f, const struct node *root);
int foreign_daycare(struct foreign *f, const struct node *root);
