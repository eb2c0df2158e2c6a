/*
 * The policy that `pinfold init` writes: each line with its reason. It consists of our own words only, because init trusts what it has
 * written: no name and no byte of the project's files gets into it.
 */
#include <string.h>

#include "base/str.h"
#include "project/project.h"

/* Whether an earlier sign that was seen says the same by `of`. */
static bool said_before(const struct project_seen *seen, size_t i, const char *(*of)(const struct project_sign *s))
{
    for (size_t k = 0; k < i; k++) {
        const char *said = seen->signs[k] ? of(&project_signs[k]) : NULL;
        if (said && same(said, of(&project_signs[i])))
            return true;
    }
    return false;
}

static const char *set_of(const struct project_sign *s)
{
    return s->set;
}
static const char *cache_of(const struct project_sign *s)
{
    return s->cache;
}
static const char *variable_of(const struct project_sign *s)
{
    return s->variable;
}
static const char *language_of(const struct project_sign *s)
{
    return s->language;
}

/* The next sign whose `of` is new, from `i` on; the end of the table. */
static size_t next_new(const struct project_seen *seen, size_t i, const char *(*of)(const struct project_sign *s))
{
    while (project_signs[i].file && (!seen->signs[i] || !of(&project_signs[i]) || said_before(seen, i, of)))
        i++;
    return i;
}

/* What a file of its own says is said by the language's build already. */
static bool is_said_with_others(const struct project_seen *seen, const char *language)
{
    for (size_t i = 0; project_signs[i].file && (same(language, "C") || same(language, "C++")); i++) {
        if (seen->signs[i] && project_signs[i].language && same(project_signs[i].language, "C and C++"))
            return true;
    }
    return false;
}

static bool has_manager_before(const struct project_seen *seen, size_t from, size_t k)
{
    for (size_t i = from; i < k; i++) {
        const struct project_sign *s = &project_signs[i];
        if (seen->signs[i] && s->manager && s->language && same(s->language, project_signs[k].language) &&
            same(s->manager, project_signs[k].manager))
            return true;
    }
    return false;
}

void project_words(const struct project_seen *seen, struct buf *out)
{
    for (size_t i = 0; project_signs[i = next_new(seen, i, language_of)].file; i++) {
        if (is_said_with_others(seen, project_signs[i].language))
            continue;
        buf_printf(out, "%s%s", out->n ? ", " : "", project_signs[i].language);
        const char *between = " (";
        for (size_t k = i; project_signs[k].file; k++) {
            const struct project_sign *s = &project_signs[k];
            if (!seen->signs[k] || !s->manager || !s->language || !same(s->language, project_signs[i].language) ||
                has_manager_before(seen, i, k))
                continue;
            buf_printf(out, "%s%s", between, s->manager);
            between = ", ";
        }
        buf_text(out, same(between, ", ") ? ")" : "");
    }
}

static void put_hosts(const struct project_seen *seen, struct buf *out)
{
    size_t first = next_new(seen, 0, set_of);
    if (!project_signs[first].file && !seen->github)
        return;
    if (!project_signs[first].file) {
        buf_text(
            out,
            "\n# net: { mode: allow, allow: [\"@github\"] } # git's origin; a box that reaches it can publish there\n");
        return;
    }
    buf_text(out, "\nnet:\n  mode: allow # the hosts below and no others\n  allow:\n");
    for (size_t i = first; project_signs[i].file; i = next_new(seen, i + 1, set_of))
        buf_printf(out, "    - \"%s\" # %s: %s is here\n", project_signs[i].set, project_signs[i].manager,
                   project_signs[i].file);
    if (seen->github)
        buf_text(out, "    # - \"@github\" # git's origin; a box that reaches it can also publish there\n");
}

static void put_ports(const struct project_seen *seen, bool own, struct buf *out)
{
    for (size_t i = 0; project_servers[i].file[0]; i++) {
        const struct project_server *s = &project_servers[i];
        if (!seen->servers[i] || s->own != own)
            continue;
        bool before = false;
        for (size_t k = 0; k < i; k++)
            before |= seen->servers[k] && project_servers[k].port == s->port;
        if (!before && own)
            buf_printf(out, "#   --publish %u          %s, its default port (%s)\n", s->port, s->name, s->file);
        else if (!before)
            buf_printf(out, "#   --reach 127.0.0.1:%u  %s on this machine (%s)\n", s->port, s->name, s->file);
    }
}

/* The entry point of the base image is for those who start the image by hand: a box has a network of its own. */
static void put_container(const struct project_container *c, struct buf *out)
{
    if (!c->engine)
        return;
    buf_printf(out,
               "\nengine: %s # boxes are containers\n"
               "image: %s # from the Dockerfile here; made by: pinfold build\n"
               "entrypoint: none # the image's is for those who start it by hand\n",
               c->engine, c->name);
}

void project_policy(const struct project_seen *seen, const struct project_container *container, struct buf *out)
{
    bool ports = false, variables = false;
    for (size_t i = 0; project_servers[i].file[0]; i++)
        ports |= seen->servers[i];
    buf_text(out, "# pinfold init 1: what a box for this project may do beyond the default (pinfold-policy(5)).\n"
                  "# After a change: pinfold trust .   To see the effect: pinfold explain\nversion: 1\n");
    put_container(container, out);
    put_hosts(seen, out);
    for (size_t i = 0; project_signs[i = next_new(seen, i, variable_of)].file; i++) {
        buf_text(out, variables ? "" : "\nenv:\n  set:\n");
        variables = true;
        buf_printf(out, "    %s: \"%s\" # %s installs into the project\n", project_signs[i].variable,
                   project_signs[i].value, project_signs[i].manager);
    }
    if (seen->seed || seen->precommit)
        buf_text(out, "\nfiles:\n  protect:\n");
    if (seen->seed)
        buf_text(out, "    - " PROJECT_SEED " # configuration of a sandbox\n");
    if (seen->precommit)
        buf_text(out, "    - .agent-precommit/user-context.json # what a person told agent-precommit\n");
    if (seen->judges)
        buf_text(out, "\n# git has hooks here that check commits: a branch moves only to commits that have passed "
                      "them, outside of "
                      "the box,\n# whatever makes them. With protect_branches: [main] this applies to main alone.\n"
                      "git: { verify: required }\n");
    else if (seen->git && seen->hooks)
        buf_text(
            out,
            "\n# If git runs hooks here (core.hooksPath), this lets branches move only to commits that have passed "
            "them:\n# git: { verify: required }\n");
    for (size_t i = 0; project_signs[i = next_new(seen, i, cache_of)].file; i++)
        buf_printf(out, "%s#   %s (%s)\n",
                   next_new(seen, 0, cache_of) == i
                       ? "\n# Caches that boxes of this project have privately, without any rule:\n"
                       : "",
                   project_signs[i].cache, project_signs[i].manager);
    if (seen->env)
        buf_text(out, "\n# .env and .env.local often hold secrets and are hidden from boxes. If commands need them, "
                      "add this under "
                      "files:\n"
                      "#   env_files: true\n");
    if (ports)
        buf_text(
            out,
            "\n# Servers found here. Only one box at a time can use a port, so give these options to the box that "
            "needs it;\n# or write them under net: (publish: [PORT], reach: [HOST:PORT]): then only one box of this "
            "project can run at a time.\n");
    put_ports(seen, true, out);
    put_ports(seen, false, out);
}
