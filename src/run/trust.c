/*
 * Checks, grants and revokes trust in a project's policy. A record holds the digest of exactly that content; a
 * changed file is not trusted any more.
 */
#include "run/trust.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "run/world.h"
#include "policy/build.h"
#include "user/own_dirs.h"
#include "user/replace.h"

#define MAX_TRUST_TEXT (PATH_MAX + 128)

static const char *record_path(struct arena *mem, const char *state, const char *path)
{
    char name[65];
    sha256_hex(str_of(path), name);
    return arena_printf(mem, "%s/trust/%s", state, name);
}

static const char *trust_text(struct arena *mem, const char *path, struct str content)
{
    char sum[65];
    sha256_hex(content, sum);
    return arena_printf(mem, "v1 %s\n%s\n", sum, path);
}

bool trust_given(struct arena *mem, const char *state, const char *path, struct str content)
{
    struct str found;
    const char *record = record_path(mem, state, path);

    if (!record || read_whole(mem, record, MAX_TRUST_TEXT, FILE_OWN, true, true, &found, NULL) < 0)
        return false;
    const char *wanted = trust_text(mem, path, content);
    return wanted && str_is(found, wanted);
}

bool trust_was_given(struct arena *mem, const char *state, const char *path)
{
    struct str found;
    const char *record = record_path(mem, state, path);
    return record && read_whole(mem, record, MAX_TRUST_TEXT, FILE_OWN, true, true, &found, NULL) >= 0;
}

#define TRUST_PLACE "what is trusted is recorded there: set HOME or XDG_STATE_HOME to a directory of yours"

static int write_trust(const char *path, const char *text, struct err *e)
{
    char beside[PATH_MAX];
    if ((size_t)snprintf(beside, sizeof beside, "%s.%d", path, (int)getpid()) >= sizeof beside)
        return err_sys(e, ERR_SYSTEM, ENAMETOOLONG, "cannot write '%s'", path);
    const int no = file_replace(AT_FDCWD, path, beside, str_of(text), 0600);
    if (no < 0)
        (void)err_sys(e, ERR_SYSTEM, -no, "cannot write '%s'", path);
    return no == 0 || err_is_full(no) ? no : err_hint(e, no, "%s", TRUST_PLACE);
}

/* `withdraw`: also of one that is not there any more. Over no link that a box may have made. */
static int policy_of(struct arena *mem, const char *state, const char *path, bool withdraw, char real[PATH_MAX],
                     struct err *e)
{
    struct stat st;
    auto_fd int found = -1;
    const bool there = stat(path, &st) == 0;
    if (!there && (!withdraw || (errno != ENOENT && errno != ENOTDIR)))
        return err_sys(e, ERR_POLICY, errno, "cannot trust '%s'", path);
    /* What is gone was a project if it does not name a policy's file. */
    const bool project = there ? S_ISDIR(st.st_mode) : !str_ends(str_of(path), STR(".yaml"));
    const char *file = project ? arena_printf(mem, "%s/" PROJECT_POLICY, path) : path;
    if (!file)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot trust '%s'", path);
    int r = world_judge(state, "trust", file, real, &found, e);
    if (r == 0 && found < 0 && !withdraw)
        r = -ENOENT;
    if (r == -ENOENT && project)
        return err_say(e, ERR_POLICY, "there is no '%s' to trust; pinfold init writes one", file);
    return r == 0 || r == -EPERM ? r : err_sys(e, ERR_POLICY, -r, "cannot trust '%s'", file);
}

/* The content of the file, or the only one that it may have, is what is trusted. */
static int trust(struct arena *mem, const char *state, const char *path, const char *record, const char *real,
                 const struct str *only, const char **ret, struct err *e)
{
    struct str content;
    int r = read_whole(mem, real, MAX_POLICY_TEXT, FILE_ANYBODYS, true, false, &content, e);
    if (r < 0)
        return r;
    if (only && !str_eq(content, *only))
        return err_say(e, ERR_POLICY, "'%s' was changed by somebody else meanwhile, so it is not trusted; look at it",
                       real);
    const char *text = trust_text(mem, real, content);
    const char *directory = arena_printf(mem, "%s/trust", state);
    if (!text || !directory)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot trust '%s'", path);
    r = make_private_directories(directory, e);
    if (r < 0 && !err_is_full(r) && own_dirs_allowed(directory) >= 0)
        return err_hint(e, r, "%s", TRUST_PLACE);
    if (r == 0)
        r = write_trust(record, text, e);
    if (r < 0)
        return r;
    *ret = arena_printf(mem, "trusted: %s (SHA-256 %.16s...); any change to the file ends the trust", real, text + 3);
    return 0;
}

int trust_content(struct arena *mem, const char *state, const char *path, struct str content, struct err *e)
{
    char real[PATH_MAX];
    const char *ignored;
    int r = policy_of(mem, state, path, false, real, e);
    const char *record = r < 0 ? NULL : record_path(mem, state, real);
    return r < 0    ? r
           : record ? trust(mem, state, path, record, real, &content, &ignored, e)
                    : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot trust '%s'", path);
}

int trust_say(struct arena *mem, const char *state, const char *path, bool withdraw, const char **ret, struct err *e)
{
    char real[PATH_MAX];

    int r = policy_of(mem, state, path, withdraw, real, e);
    if (r < 0)
        return r;
    const char *record = record_path(mem, state, real);
    if (!record)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot trust '%s'", path);
    if (withdraw) {
        bool was = unlink(record) == 0;
        if (!was && errno != ENOENT && errno != ENOTDIR)
            return err_sys(e, ERR_SYSTEM, errno, "cannot remove '%s'", record);
        *ret = arena_printf(mem, was ? "no longer trusted: %s" : "was not trusted: %s", real);
        return 0;
    }
    return trust(mem, state, path, record, real, NULL, ret, e);
}
