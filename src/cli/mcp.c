/*
 * `mcp`: runs the server of mcp/ with the policy from the command line. What could be wrong with it (a token that
 * others can read, a base that is no directory) is said before the server begins.
 */
#include "mcp/mcp.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "client/entry.h"

#define TOKEN_MIN     16
#define DEFAULT_IMAGE "budgie-sandbox:latest"

/* Whoever has the token commands the server. Pipes (of a shell, of a service manager) are between two only. */
static bool is_private(const char *file, FILE *f)
{
    struct stat st;
    if (fstat(fileno(f), &st) < 0 || !S_ISREG(st.st_mode))
        return true;
    if (st.st_uid != 0 && st.st_uid != getuid()) {
        complain("--http-token %s: the file belongs to user %u, and anyone who has the token controls the server; use "
                 "a file of your own",
                 file, (unsigned)st.st_uid);
        return false;
    }
    const char *others = st.st_mode & S_IROTH                               ? "it is readable by others"
                         : st.st_mode & S_IWOTH                             ? "it is writable by others"
                         : (st.st_mode & S_IWGRP) && st.st_gid != st.st_uid ? "it is writable by its group"
                                                                            : NULL;
    if (others)
        complain(
            "--http-token %s: %s (mode %04o), and anyone who has the token controls the server; run: chmod 600 '%s'",
            file, others, (unsigned)(st.st_mode & 07777), file);
    return !others;
}

/* The first line of the file; too short a token could be guessed. */
static bool read_token(const char *file, char *to, size_t room)
{
    FILE *f = fopen(file, "re");

    if (!f) {
        complain("--http-token %s: %s", file, strerror(errno));
        return false;
    }
    bool private = is_private(file, f), got = private && fgets(to, (int)room, f);
    (void)fclose(f);
    if (!private)
        return false;
    to[got ? strcspn(to, "\r\n") : 0] = 0;
    if (strlen(to) < TOKEN_MIN || strlen(to) + 1 == room) {
        complain("--http-token %s: a token must have %d to %zu characters", file, TOKEN_MIN, room - 2);
        return false;
    }
    return true;
}

static bool judge(const char *what, const char *path, char *real, char *why, size_t room)
{
    struct pinfold_error error = {0};
    char *found = NULL;
    int r = pinfold_path_judge(what, path, &found, &error);
    if (r == 0 && access(found, F_OK) < 0)
        r = -errno;
    if (r == -EPERM && error.text[0])
        snprintf(why, room, "%s", error.text);
    else if (r < 0)
        snprintf(why, room, "%s '%.200s': %s", what, path, strerror(-r));
    else
        snprintf(real, PATH_MAX, "%s", found);
    free(found);
    return r == 0;
}

/*
 * No box of the server reads its token: with it, and a way to the port, a command would be a client, and answer the questions
 * that are asked about it. (A pipe has no name that is worth hiding.)
 */
static bool hide_token(struct ask *a)
{
    char real[PATH_MAX], why[1024], pattern[2 * PATH_MAX];
    struct stat st;
    size_t n = 0;

    if (stat(a->http_token, &st) == 0 && !S_ISREG(st.st_mode))
        return true;
    if (!judge("--http-token", a->http_token, real, why, sizeof why)) {
        complain("%s", why);
        return false;
    }
    for (const char *at = real; *at; at++) {
        if (strchr("*?[\\", *at))
            pattern[n++] = '\\';
        pattern[n++] = *at;
    }
    pattern[n] = 0;
    const char *kept = strdup(pattern); /* lives as long as the process */
    if (kept)
        a->policy[a->n_policy++] = (struct pinfold_option){"hide", kept};
    else
        complain("--http-token %s: %s", a->http_token, strerror(ENOMEM));
    return kept != NULL;
}

static const char *option_of(const struct ask *a, const char *name)
{
    const char *said = NULL;
    for (size_t i = 0; i < a->n_policy; i++) {
        if (strcmp(a->policy[i].name, name) == 0)
            said = a->policy[i].value;
    }
    return said;
}

/* Whether an engine here can make boxes of the image that is meant when nobody names one. */
static bool has_default_image(const struct pinfold_policy_options *o)
{
    struct pinfold_policy *policy = NULL;
    struct pinfold_error error = {0};
    char *text = NULL;
    int r = pinfold_policy_load(o, &policy, &error);
    if (r < 0)
        return true; /* the server says it */
    r = pinfold_explain(policy, PINFOLD_EXPLAIN_JSON, 0, &text, &error);
    free(text);
    pinfold_policy_free(policy);
    return r == 0;
}

/*
 * Containers: the image, and, unless --engine says it, whichever engine this user can use and has it (options of the policy, of
 * which two more have room). Another engine than docker and podman has no use for an image that nobody named.
 */
static void take_containers(struct ask *a, struct mcp_options *o, struct pinfold_policy_options *policy)
{
    const char *engine = option_of(a, "engine");
    const bool any = !engine || strcmp(engine, "auto") == 0;
    bool contains =
        !engine || strcmp(engine, "auto") == 0 || strcmp(engine, "docker") == 0 || strcmp(engine, "podman") == 0;
    if (!a->sandbox && !a->sandbox_image)
        return;
    a->sandbox = contains;
    if (!engine)
        a->policy[a->n_policy++] = (struct pinfold_option){"engine", "auto"};
    if (!a->sandbox_image && (!contains || option_of(a, "image")))
        return;
    a->policy[a->n_policy++] = (struct pinfold_option){"image", a->sandbox_image ? a->sandbox_image : DEFAULT_IMAGE};
    o->no_image_said = !a->sandbox_image;
    if (a->sandbox_image || !any || has_default_image(policy))
        return;
    a->policy[--a->n_policy] = (struct pinfold_option){NULL, NULL};
    a->sandbox = o->no_image_said = false;
    if (!a->quiet)
        complain(
            "mcp --sandbox: no engine here can make boxes of the image '%s', so they are the native engine's; name an "
            "image that has the agents with --sandbox-image IMAGE",
            DEFAULT_IMAGE);
}

/* A file NAME.yaml, and perhaps a profile behind a colon: the agent that it defines is from now on known as NAME. */
static bool take_definition(const char **agent)
{
    const char *ending = strstr(*agent, ".yaml");
    while (ending && ending[5] && ending[5] != ':')
        ending = strstr(ending + 1, ".yaml");
    if (!ending)
        return true;
    char file[PATH_MAX], why[1024], *to;
    snprintf(file, sizeof file, "%.*s", (int)(ending + 5 - *agent), *agent);
    const char *name = entry_agent_define(file, why, sizeof why);
    if (!name) {
        complain("--agent %s: %s", *agent, why);
        return false;
    }
    if (asprintf(&to, "%s%s", name, ending + 5) < 0) {
        complain("--agent %s: %s", *agent, strerror(ENOMEM));
        return false;
    }
    *agent = to; /* lives as long as the process */
    return true;
}

/* Where agents may work when nothing is said: the workspace. */
static const char *workspace_of(const struct ask *a, char *here, size_t room)
{
    const char *said = option_of(a, "workspace");
    return said ? said : getcwd(here, room) ? here : "/nonexistent";
}

/* What a base was when the server began is what it is: later it may be another's link. */
static bool take_bases(struct ask *a)
{
    for (size_t i = 0; i < a->n_bases; i++) {
        char real[PATH_MAX], why[1024];
        struct stat st;
        if (!judge("--base", a->bases[i], real, why, sizeof why)) {
            complain("%s; use an existing directory", why);
            return false;
        }
        int no = stat(real, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
        a->bases[i] = no ? NULL : strdup(real);
        if (a->bases[i])
            continue;
        complain("--base %s: %s; use an existing directory", real, strerror(no ? no : ENOMEM));
        return false;
    }
    return true;
}

/* So are the workspace and what is writable or shown besides: a box of the first call may make links before the second. */
static bool take_places(struct ask *a)
{
    static const char *const names[] = {"workspace", "rw", "ro"};
    for (size_t i = 0; i < a->n_policy; i++) {
        char real[PATH_MAX], why[1024], said[32];
        const char *value = a->policy[i].value;
        bool taken = false;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            taken |= strcmp(a->policy[i].name, names[k]) == 0;
        if (!taken || !value || value[0] == '~' || access(value, F_OK) < 0)
            continue; /* what is not there is said where the policy is read */
        snprintf(said, sizeof said, "--%s", a->policy[i].name);
        if (!judge(said, value, real, why, sizeof why)) {
            complain("%s", why);
            return false;
        }
        a->policy[i].value = strdup(real);
    }
    return true;
}

/* --ask-time, which is the network's questions' too; the policy refuses what is no time. 0: not said. */
static uint32_t ask_time(const struct ask *a)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
    double ms = 0;
    for (size_t i = 0; i < a->n_policy; i++) {
        char *unit;
        double n = strcmp(a->policy[i].name, "ask-time") == 0 ? strtod(a->policy[i].value, &unit) : -1;
        for (size_t k = 0; n >= 0 && k < sizeof units / sizeof *units; k++)
            ms = strcmp(unit, units[k].unit) == 0 ? n * units[k].ms : ms;
    }
    return ms >= UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

int verb_mcp(struct ask *a)
{
    char here[PATH_MAX];
    struct pinfold_policy_options policy = ask_options(a);
    const char *origins[] = {a->http_origin, NULL};
    struct mcp_options o = {.policy = &policy, .quiet = a->quiet, .http = a->http, .http_origins = origins};
    char token[256];

    if (!no_words(a) || !take_places(a) || !take_bases(a))
        return STATUS_USAGE;
    if ((a->http_token || a->http_origin) && !a->http) {
        complain("--http-%s has no effect without --http", a->http_token ? "token" : "origin");
        return STATUS_USAGE;
    }
    if (a->http_token && (!read_token(a->http_token, token, sizeof token) || !hide_token(a)))
        return STATUS_USAGE;
    o.http_token = a->http_token ? token : NULL;
    for (size_t i = 0; i < a->n_agents; i++) {
        if (!take_definition(&a->agents[i]))
            return STATUS_USAGE;
    }
    take_containers(a, &o, &policy);
    o.sandbox = a->sandbox;
    if (!a->n_bases)
        a->bases[a->n_bases++] = workspace_of(a, here, sizeof here);
    o.ask_ms = ask_time(a);
    o.agents = a->agents;
    o.bases = a->bases;
    o.judge = judge;
    return mcp_serve(&o);
}
