/* The box of `pinfold login`: agent_login.c, called by agent_start.c. */
#pragma once
#include "run/agent/starting.h"

int login_place(struct starting *s, struct err *e); /* a layer and a workspace of its own, empty */
int login_ready(struct starting *s, struct agent_begun *ret, struct err *e);
void login_end(struct starting *s); /* they are removed */
/* After the box: is there a new login? `write`: the owner puts it into the host's file. */
int agent_login_store(struct agent_begun *b, bool write, struct pinfold_error *error);
