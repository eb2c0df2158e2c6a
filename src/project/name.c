/*
 * Names of projects' sessions, as the tool agent-sandbox gave them to containers: the directory's name, and a hash of its path that
 * keeps directories of one name apart.
 */
#include <md5.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "project/project.h"

enum { MAX_WORD = 64 };

void project_session(const char *real, char ret[PROJECT_NAME])
{
    MD5_CTX md5;
    uint8_t sum[MD5_DIGEST_LENGTH];
    char hash[2 * sizeof sum + 1], word[MAX_WORD + 1];
    const char *slash = strrchr(real, '/'), *name = slash ? slash + 1 : real;
    size_t n = 0;
    for (; name[n] && n < MAX_WORD; n++)
        word[n] = name[n] > 0 && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", name[n])
                      ? name[n]
                      : '_';
    word[n] = 0;
    MD5Init(&md5); /* distinguishes paths; nothing is proved by it */
    MD5Update(&md5, (const uint8_t *)real, strlen(real));
    MD5Final(sum, &md5);
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(hash + 2 * i, 3, "%02x", sum[i]);
    snprintf(ret, PROJECT_NAME, PROJECT_PREFIX "%s-%.12s", word, hash);
}

/* A colon or a backslash in the path would be one of --mount's own. */
static bool has_policy(const char *real)
{
    char file[PATH_MAX + sizeof PROJECT_FILE];
    struct stat st;
    snprintf(file, sizeof file, "%s/" PROJECT_FILE, real);
    return !strchr(file, ':') && !strchr(file, '\\') && lstat(file, &st) == 0 && S_ISREG(st.st_mode);
}

void project_box(const char *real, struct project_box *ret)
{
    *ret = (struct project_box){.storage = PROJECT_HISTORY};
    project_session(real, ret->session);
    snprintf(ret->workspace, sizeof ret->workspace, "%s", real);
    if (has_policy(real))
        snprintf(ret->marker, sizeof ret->marker, "%s/" PROJECT_FILE ":" PROJECT_MARKER ":ro", real);
}
