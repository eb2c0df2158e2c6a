/*
 * `pinfold volume import`: takes over what the tool agent-sandbox has for a project in volumes of docker or podman. They are only read; what is
 * here already stays as it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "project/import/import.h"

struct importing {
    const struct ask *a;
    struct import m;
    char why[PATH_MAX + 1024];
    struct volume_found all[IMPORT_FOUND];
    enum import_kind kinds[IMPORT_FOUND];
    size_t n;
    unsigned taken, left; /* what is here now that was not; what could not be taken */
};

/* The path as its owner says it, which may lead over links: by it, too, the tool may have named its volumes. */
static const char *said_path(const char *path)
{
    const char *here = getenv("PWD");
    struct stat one, two;
    if (path[0] == '/')
        return path;
    return same(path, ".") && here && here[0] == '/' && stat(here, &one) == 0 && stat(".", &two) == 0 &&
                   one.st_ino == two.st_ino && one.st_dev == two.st_dev
               ? here
               : NULL;
}

static void find(struct importing *x, const char *real, const char *said, int patience_ms)
{
    char hash[2][PROJECT_HASH];
    project_hash(real, hash[0]);
    project_hash(said ? said : real, hash[1]);
    size_t n = entry_volumes_find(IMPORT_PREFIX, patience_ms, x->all, IMPORT_FOUND);
    for (size_t i = 0; i < n; i++) {
        enum import_kind kind = import_kind(x->all[i].name, hash[0]);
        kind = kind == IMPORT_NOT_OURS ? import_kind(x->all[i].name, hash[1]) : kind;
        if (kind == IMPORT_NOT_OURS)
            continue;
        x->all[x->n] = x->all[i];
        x->kinds[x->n++] = kind;
    }
}

void tell_volumes(const char *real)
{
    static struct importing x;
    find(&x, real, NULL, VOLUME_QUICK_MS);
    for (size_t i = 0; i < x.n; i++) {
        if (x.kinds[i] != IMPORT_SHELF && x.kinds[i] != IMPORT_SHELLS)
            continue;
        printf("look:  %s has volumes of agent-sandbox for this directory; to take over what they have: pinfold volume "
               "import\n",
               x.all[i].podman ? "podman" : "docker");
        return;
    }
}

static const char *engine_of(const struct volume_found *v)
{
    return v->podman ? "podman" : "docker";
}

/* Why nothing of this volume is taken. */
static void leave(struct importing *x, const struct volume_found *v, const char *why)
{
    complain("volume import: %s's volume '%s': %s", engine_of(v), v->name, why);
    x->left++;
}

/* Unpacks the volume into a directory of this run. False with a message. */
static bool unpack(struct importing *x, size_t i, const char *kind, char directory[PATH_MAX])
{
    const struct volume_found *v = &x->all[i];
    struct pinfold_error error = {0};
    struct volume_reading reading;
    char name[32];
    snprintf(name, sizeof name, "volume-%zu", i);
    if (import_directory(&x->m, name, directory) < 0) {
        leave(x, v, x->why);
        return false;
    }
    if (entry_volume_read_begin(v, &reading, &error) < 0) {
        leave(x, v, error.text);
        return false;
    }
    int r = import_unpack(&x->m, directory, kind, reading.archive);
    /* An archive that broke off may look whole to tar; who pours it fails, too, where nobody reads on. */
    const int whole = entry_volume_read_end(&reading, &error);
    if (r < 0 || whole < 0)
        leave(x, v, whole < 0 && (r == 0 || !strstr(error.text, "pipe")) ? error.text : x->why);
    return r == 0 && whole == 0;
}

/* ---- branches ---- */

static void say_branch(const struct import_branch *b, const char *what)
{
    printf("branch %s: %s", b->name, what);
    if (b->commits && b->state != IMPORT_SAME)
        printf(", %u %s that no remote has", b->commits, b->commits == 1 ? "commit" : "commits");
    if (b->files && b->state != IMPORT_SAME)
        printf(", %u changed %s", b->files, b->files == 1 ? "file" : "files");
    printf("\n");
}

static void take_branch(struct importing *x, const struct volume_found *v, const char *directory,
                        const struct import_branch *b)
{
    if (b->state == IMPORT_SAME) {
        say_branch(b, "it is here already, as it is there");
    } else if (b->state == IMPORT_OTHER) {
        say_branch(b, "a branch of this name is here and stays as it is");
        x->left++;
    } else if (x->a->dry_run) {
        say_branch(b, "would be imported");
    } else {
        int r = import_branch(&x->m, directory, b->name);
        if (r < 0 && r != -EEXIST) {
            complain("volume import: branch '%s' of %s's volume '%s': %s", b->name, engine_of(v), v->name, x->why);
            x->left++;
            return;
        }
        say_branch(b, r < 0 ? "it was made here meanwhile" : "imported");
        x->taken += r == 0;
    }
}

static void take_branches(struct importing *x, size_t i)
{
    const struct volume_found *v = &x->all[i];
    char directory[PATH_MAX], user[VOLUME_NAME], sentence[2 * VOLUME_NAME + 128];
    struct pinfold_error error = {0};
    const int used = entry_volume_user(v, user, &error);
    if (used) {
        snprintf(sentence, sizeof sentence, "the container '%s' works in it; stop it first: %s stop %s", user,
                 engine_of(v), user);
        leave(x, v, used < 0 ? error.text : sentence);
        return;
    }
    if (!unpack(x, i, "branches", directory))
        return;
    if (import_look(&x->m, directory, x->a->branch) < 0) {
        leave(x, v, x->why);
        return;
    }
    if (!x->m.n_branches && x->a->branch) {
        leave(x, v, "it has no such branch, or nothing of it that a remote does not have");
        return;
    }
    if (!x->m.n_branches)
        printf("branches: %s has none with anything that a remote does not have\n", v->name);
    for (size_t k = 0; k < x->m.n_branches; k++)
        take_branch(x, v, directory, &x->m.branches[k]);
    if (!x->a->dry_run && import_rest(&x->m, directory, x->a->branch) < 0)
        leave(x, v, x->why);
}

/* ---- the rest ---- */

static void take_history(struct importing *x, size_t i)
{
    char directory[PATH_MAX];
    if (snprintf(directory, sizeof directory, "%s/.git", x->m.real) >= (int)sizeof directory ||
        access(directory, F_OK) < 0) {
        leave(x, &x->all[i], "a history is imported for a git repository alone");
        return;
    }
    if (x->a->dry_run) {
        printf("history: the shell's would be imported, for boxes that have none yet\n");
        return;
    }
    if (!unpack(x, i, "history", directory))
        return;
    int r = import_history(&x->m, directory);
    if (r < 0)
        leave(x, &x->all[i], x->why);
    else
        printf("history: %s\n", r ? "nothing to import: there is none, or it was imported already"
                                  : "imported, for boxes that have none yet");
    x->taken += r == 0;
}

static void take_settings(struct importing *x, size_t i)
{
    const char *agent = x->kinds[i] == IMPORT_CLAUDE ? "claude" : "codex";
    char directory[PATH_MAX], *text = NULL;
    struct pinfold_error error = {0};
    if (x->a->dry_run) {
        printf("%s: its settings would be imported where this project's boxes have none; no login\n", agent);
        return;
    }
    if (!unpack(x, i, "settings", directory))
        return;
    if (entry_agent_adopt(agent, x->m.real, directory, &text, &error) < 0) {
        leave(x, &x->all[i], error.text);
        return;
    }
    for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n")) {
        auto_buf struct buf safe = BUF(1 << 16);
        utf8_safe(&safe, str_of(line));
        printf("%s: %s\n", agent, buf_cstr(&safe));
    }
    free(text);
}

static void take_all(struct importing *x)
{
    static const enum import_kind order[] = {IMPORT_SHELF, IMPORT_SHELLS, IMPORT_CLAUDE, IMPORT_CODEX};
    for (size_t o = 0; o < sizeof order / sizeof *order; o++) {
        for (size_t i = 0; i < x->n; i++) {
            if (x->kinds[i] != order[o] || (x->a->branch && order[o] != IMPORT_SHELF))
                continue;
            if (order[o] == IMPORT_SHELF)
                take_branches(x, i);
            else if (order[o] == IMPORT_SHELLS)
                take_history(x, i);
            else
                take_settings(x, i);
        }
    }
}

static void say_end(const struct importing *x)
{
    if (!x->taken)
        return;
    for (int podman = 0; podman < 2; podman++) {
        auto_buf struct buf names = BUF(1 << 16);
        for (size_t i = 0; i < x->n; i++) {
            if (x->all[i].podman == podman && (x->kinds[i] == IMPORT_SHELF || x->kinds[i] == IMPORT_SHELLS))
                buf_printf(&names, " %s", x->all[i].name);
        }
        if (names.n)
            printf("the volumes are as they were; when you need them no longer: %s volume rm%s\n",
                   podman ? "podman" : "docker", buf_cstr(&names));
    }
}

static bool words_fit(const struct ask *a)
{
    const char *wrong = a->json ? "json" : a->names ? "names" : a->force ? "force" : NULL;
    const char *reason = a->branch ? branch_refused(a->branch) : NULL;
    if (wrong)
        complain("volume import has no option --%s: nothing that is here is written over", wrong);
    else if (a->n_words > 2)
        complain("volume import: unexpected argument '%s' (pinfold volume import [PATH])", a->words[2]);
    else if (reason)
        complain("volume import: '%.80s' cannot be a branch's name: %s", a->branch, reason);
    else
        return true;
    return false;
}

int volume_import(struct ask *a)
{
    static struct importing x;
    static char real[PATH_MAX];
    const char *path = a->n_words > 1 ? a->words[1] : ".";
    x.a = a;
    memset(&x.m, 0, sizeof x.m); /* no literal, which lies on the stack where nothing is optimized */
    x.m.real = real;
    x.m.say = complain_line;
    x.m.why = x.why;
    x.m.room = sizeof x.why;
    x.m.held = -1;
    if (!words_fit(a))
        return STATUS_USAGE;
    if (!realpath(path, real)) {
        complain("volume import: cannot use '%s': %s", path, strerror(errno));
        return STATUS_USAGE;
    }
    find(&x, real, said_path(path), VOLUME_PATIENCE_MS);
    if (!x.n) {
        char hash[PROJECT_HASH];
        project_hash(real, hash);
        complain("volume import: no volume of agent-sandbox for '%s' is in docker or podman here (agent-sbx-repo-%s)",
                 real, hash);
        return STATUS_NO_SESSION;
    }
    if (import_begin(&x.m) < 0) {
        complain("volume import: %s", x.why);
        return STATUS_USAGE;
    }
    take_all(&x);
    import_end(&x.m);
    say_end(&x);
    return fflush(stdout) != 0 || x.left ? STATUS_NO : STATUS_YES;
}
