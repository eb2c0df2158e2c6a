/*
 * Would a box be allowed to do this, and by what? From a plan, its policy and a look at the target on the host; nothing
 * is started. Where the answer depends on what cannot be known before (contents, the box's own processes, an image's
 * files), it says that.
 */
#pragma once
#include "plan/plan.h"

enum why_act { WHY_READ, WHY_WRITE, WHY_CREATE, WHY_EXEC, WHY_CONNECT, WHY_SIGNAL, WHY_ACTS };
enum why_verdict { WHY_ALLOWED, WHY_REFUSED, WHY_UNKNOWN };

/* What refuses; remedies depend on it. */
enum why_cause {
    WHY_CAUSE_NONE,
    WHY_CAUSE_HOST,       /* missing, or ordinary permissions: not the sandbox */
    WHY_CAUSE_ROOT,       /* root's capabilities would permit it, and a box has none */
    WHY_CAUSE_NOT_THERE,  /* the host has it, the box does not */
    WHY_CAUSE_READ_ONLY,  /* outside of what the box can write */
    WHY_CAUSE_HIDDEN,     /* a rule hides it */
    WHY_CAUSE_PROTECTED,  /* a rule protects it */
    WHY_CAUSE_GUARDED,    /* a guarded name */
    WHY_CAUSE_OWN,        /* pinfold's own */
    WHY_CAUSE_KERNEL,     /* the kernel's trees and devices */
    WHY_CAUSE_NO_NETWORK, /* the policy has no network */
    WHY_CAUSE_NO_RULE,    /* no rule allows the host */
    WHY_CAUSE_DENY_RULE,
    WHY_CAUSE_ADDRESS,  /* it needs a rule for that very address */
    WHY_CAUSE_METADATA, /* an address that hands out a machine's credentials */
    WHY_CAUSE_LOOPBACK, /* this machine's own services */
    WHY_CAUSE_SOCKET,   /* a Unix socket that no rule names */
    WHY_CAUSE_PROCESS   /* a process outside of the box */
};

/* The answer; texts live in the caller's arena or the plan. */
struct why {
    enum why_verdict verdict;
    enum why_cause cause;
    const char *target;    /* in the box, links resolved; a host and port */
    const char *host;      /* where it is on the host, or NULL */
    const char *reason;    /* one clause */
    const char *rule;      /* "hide /home/u/.ssh", "net none"; NULL: none decides */
    const char *origin;    /* of the rule: "file:line:column", "--flag", "built in"; NULL without a rule */
    const char *mechanism; /* "read-only mount", "guard"; NULL: nothing refuses */
    int no;                /* errno that the box gets; 0: none, or not known */
    const char *above;     /* if it is missing: the nearest directory above that is there, on the host; or NULL */
    bool directory;        /* the target is one */
    bool missing;          /* nothing is there */
};

/* The act of that name ("read"), WHY_ACTS if there is none; and its name. */
enum why_act why_act_of(const char *name);
const char *why_act_name(enum why_act act);

/* `target`: a path (relative to the command's directory), a host with a port, or a process id. -errno with `e`. */
int why_ask(const struct plan *p, enum why_act act, const char *target, struct arena *mem, struct why *ret,
            struct err *e);

/*
 * What a box sees at a path (in the box, clean) by the plan alone, whatever the host has there: what the host has, perhaps
 * in a layer; nothing, by a rule; a directory of the box's own.
 */
enum why_shown { WHY_SHOWN, WHY_SHOWN_NOT, WHY_SHOWN_OWN, WHY_SHOWN_NOT_KNOWN /* no memory */ };
enum why_shown why_shown(const struct plan *p, const char *path, struct arena *mem);
