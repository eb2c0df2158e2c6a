/*
 * Names of projects' sessions, as the tool agent-sandbox gave them to containers: the directory's name, that of the branch, and a
 * hash of the path that keeps directories of one name apart. What a branch may be called.
 */
#include <ctype.h>
#include <md5.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/str.h"
#include "project/branch.h"

enum { MAX_WORD = 64 };

void project_hash(const char *real, char ret[PROJECT_HASH])
{
    MD5_CTX md5;
    uint8_t sum[MD5_DIGEST_LENGTH];
    MD5Init(&md5); /* distinguishes paths; nothing is proved by it */
    MD5Update(&md5, (const uint8_t *)real, strlen(real));
    MD5Final(sum, &md5);
    hex_digits(sum, sizeof sum, ret);
}

void project_word(const char *real, char ret[PROJECT_WORD])
{
    const char *slash = strrchr(real, '/'), *name = slash ? slash + 1 : real;
    size_t n = 0;
    for (; name[n] && n < MAX_WORD; n++)
        ret[n] = name[n] > 0 && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", name[n])
                     ? name[n]
                     : '_';
    ret[n] = 0;
}

void branch_word(const char *name, char ret[PROJECT_WORD])
{
    size_t n = 0;
    for (; *name && n + 3 < PROJECT_WORD; name++) {
        bool space = *name == '/' || isspace((unsigned char)*name);
        n += (size_t)snprintf(ret + n, PROJECT_WORD - n, space ? "__" : "%c", *name);
    }
    ret[n] = 0;
}

/* git-check-ref-format(1), with a reason for each. */
const char *branch_refused(const char *name)
{
    size_t n = strlen(name);
    if (!n)
        return "it is empty";
    if (name[0] == '-')
        return "it begins with '-', which makes it an option to git";
    if (same(name, "@") || same(name, "HEAD"))
        return "git uses it for something else";
    for (const char *c = name; *c; c++) {
        if (*c == ' ')
            return "it has a space, which git does not allow in a branch's name";
        if (iscntrl((unsigned char)*c) || strchr("~^:?*[\\", *c))
            return "git allows neither ~ ^ : ? * [ \\ nor control characters in a name";
        if (*c == '/' && (c == name || !c[1] || c[1] == '/'))
            return "it begins or ends with '/', or has two of them in a row";
        if (*c == '.' && (c == name || c[-1] == '/' || c[1] == '.' || !c[1]))
            return "git does not allow '..', nor '.' at the beginning of a part or at the end of the name";
        if (*c == '@' && c[1] == '{')
            return "git does not allow '@{'";
        if (strncmp(c, ".lock", 5) == 0 && (!c[5] || c[5] == '/'))
            return "git does not allow a part that ends in '.lock'";
    }
    char word[PROJECT_WORD];
    branch_word(name, word);
    return n > BRANCH_NAME_MAX || strlen(word) > BRANCH_NAME_MAX ? "it has more than 240 bytes" : NULL;
}

void project_session(const char *real, const char *branch, char ret[PROJECT_NAME])
{
    char hash[PROJECT_HASH], word[PROJECT_WORD], of[PROJECT_WORD] = "";
    project_hash(real, hash);
    project_word(real, word);
    if (branch)
        branch_word(branch, of);
    snprintf(ret, PROJECT_NAME, PROJECT_PREFIX "%s-%s%s%.12s", word, of, branch ? "-" : "", hash);
}

void project_image(const char *real, char ret[PROJECT_IMAGE])
{
    char hash[PROJECT_HASH], word[PROJECT_WORD];
    size_t n = sizeof PROJECT_PREFIX - 1;
    project_hash(real, hash);
    project_word(real, word);
    snprintf(ret, PROJECT_IMAGE, PROJECT_PREFIX);
    for (const char *c = word; *c; c++) {
        /* small letters and digits, with one '-' for whatever else stands between them */
        if (isalnum((unsigned char)*c))
            ret[n++] = (char)tolower((unsigned char)*c);
        else if (ret[n - 1] != '-')
            ret[n++] = '-';
    }
    snprintf(ret + n, PROJECT_IMAGE - n, "%s%.12s:latest", ret[n - 1] == '-' ? "" : "-", hash);
}

/* The texts of scripts, which run in boxes. The build makes the array of them. */
const char *project_script(const char *name)
{
    for (const struct project_script *s = project_scripts; s->name; s++) {
        if (same(s->name, name))
            return s->text;
    }
    return "exit 99";
}
