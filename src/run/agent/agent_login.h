/* The box of `pinfold login`: agent_login.c, called by agent_start.c; and what opens an address outside of it. */
#pragma once
#include "run/agent/starting.h"
#include "supervisor/run.h"

int login_place(struct starting *s, struct err *e); /* a layer and a workspace of its own, empty */
int login_open_door(struct starting *s,
                    struct err *e); /* whether addresses can be opened outside; before the box's options */
int login_fill(struct starting *s, struct err *e); /* what the agent begins with, where the layer is open */
int login_ready(struct starting *s, struct agent_begun *ret, struct err *e);
void login_end(struct starting *s); /* they are removed */
/* After the box: is there a new login? `write`: the owner puts it into the host's file. */
int agent_login_store(struct agent_begun *b, bool write, struct pinfold_error *error);
/* What the box that this process starts may have opened in a browser, if it is a login's; or NULL. */
const struct box_browser *login_browser(void);
/* agent_browser.c: how an address would be opened on this machine: a program and its words, in `s->mem`; false: not at all. */
struct login_opener {
    const char *program;
    const char *const *words; /* of its line, the address behind them or in place of "%s"; NULL-terminated */
    const char *path;         /* its PATH, without what boxes can write */
};
bool login_opener_find(const struct starting *s, struct login_opener *ret);
int login_open(const struct login_opener *o, const char *url); /* 0: it has started; -errno */
