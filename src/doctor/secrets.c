/*
 * What a file is that somebody should not read, as data: by its name, or by its name and what stands in it. A token counts if
 * what follows its prefix looks like chance: placeholders ("ghp_xxxx", "sk-...") do not.
 */
#include <ctype.h>
#include <string.h>

#include "doctor/doctor.h"
#include "match/glob.h"

enum content { ANYTHING, PRIVATE_KEY, PASSWORD, TOKEN };

static const struct {
    char name[40], above[8]; /* a pattern for the last component, in any case; the one above it, or "" */
    enum content has;
    char what[44];
} secret_names[] = {{"*.example", "", ANYTHING, ""}, /* "": it is none */
                    {"*.sample", "", ANYTHING, ""},
                    {"*.template", "", ANYTHING, ""},
                    {"*.dist", "", ANYTHING, ""},
                    {"*.pub", "", ANYTHING, ""},
                    {"id_rsa", "", ANYTHING, "private key"},
                    {"id_dsa", "", ANYTHING, "private key"},
                    {"id_ecdsa*", "", ANYTHING, "private key"},
                    {"id_ed25519*", "", ANYTHING, "private key"},
                    {"id_mldsa*", "", ANYTHING, "private key"},
                    {"id_xmss", "", ANYTHING, "private key"},
                    {"*.pem", "", PRIVATE_KEY, "private key"},
                    {"*.key", "", PRIVATE_KEY, "private key"},
                    {"*.ovpn", "", PRIVATE_KEY, "private key"},
                    {"*.ppk", "", ANYTHING, "private key"},
                    {"*.p12", "", ANYTHING, "private key"},
                    {"*.pfx", "", ANYTHING, "private key"},
                    {"*.jks", "", ANYTHING, "key store"},
                    {"*.keystore", "", ANYTHING, "key store"},
                    {"*.kdbx", "", ANYTHING, "passwords"},
                    {".netrc", "", PASSWORD, "passwords"},
                    {".pgpass", "", ANYTHING, "passwords"},
                    {".my.cnf", "", PASSWORD, "password"},
                    {".git-credentials", "", ANYTHING, "passwords"},
                    {".htpasswd", "", ANYTHING, "passwords"},
                    {".npmrc", "", PASSWORD, "token"},
                    {".yarnrc.yml", "", PASSWORD, "token"},
                    {".pypirc", "", PASSWORD, "password"},
                    {".dockercfg", "", ANYTHING, "passwords"},
                    {"config.json", ".docker", PASSWORD, "passwords"},
                    {"credentials", ".aws", ANYTHING, "keys"},
                    {"hosts.yml", "gh", PASSWORD, "token"},
                    {"config", ".kube", ANYTHING, "keys of a cluster"},
                    {"kubeconfig*", "", ANYTHING, "keys of a cluster"},
                    {"application_default_credentials.json", "", ANYTHING, "keys"},
                    {"*service*account*.json", "", PRIVATE_KEY, "private key"},
                    {"*.tfstate", "", ANYTHING, "Terraform's state, which has secrets in it"},
                    {".vault-token", "", ANYTHING, "token"},
                    {"wallet.dat", "", ANYTHING, "wallet"},
                    {".env", "", ANYTHING, "variables that are usually secret"},
                    {".env.*", "", ANYTHING, "variables that are usually secret"},
                    {"*.env", "", TOKEN, "token"},
                    {"secrets.y*ml", "", ANYTHING, "secrets"},
                    {"secrets.json", "", ANYTHING, "secrets"},
                    {"credentials.json", "", ANYTHING, "credentials"},
                    {"*.json", "", TOKEN, "token"},
                    {"*.y*ml", "", TOKEN, "token"},
                    {"*.toml", "", TOKEN, "token"},
                    {"*.ini", "", TOKEN, "token"},
                    {"*.cfg", "", TOKEN, "token"},
                    {"*.conf", "", TOKEN, "token"},
                    {"*.tfvars", "", TOKEN, "token"},
                    {"*.properties", "", TOKEN, "token"},
                    {".*rc", "", TOKEN, "token"}};

static const struct {
    char prefix[12];
    unsigned length; /* of what follows, at least */
} tokens[] = {{"ghp_", 30},     {"gho_", 30},  {"github_pat_", 40}, {"glpat-", 20}, {"sk-ant-", 40},
              {"sk-proj-", 40}, {"xoxb-", 24}, {"xoxp-", 24},       {"AKIA", 16},   {"AIza", 35},
              {"npm_", 36},     {"pypi-", 60}, {"dop_v1_", 60},     {"hf_", 30},    {"shpat_", 30}};

static bool looks_like_chance(struct str text, unsigned least)
{
    bool seen[256] = {0};
    unsigned n = 0, different = 0;
    while (n < text.n && (isalnum((unsigned char)text.p[n]) || text.p[n] == '_' || text.p[n] == '-')) {
        different += !seen[(unsigned char)text.p[n]];
        seen[(unsigned char)text.p[n++]] = true;
    }
    return n >= least && different >= 9;
}

static bool has_token(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (i && (isalnum((unsigned char)text.p[i - 1]) || text.p[i - 1] == '_'))
            continue; /* in the middle of a word */
        for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++) {
            const size_t n = strlen(tokens[k].prefix);
            if (text.n - i > n && memcmp(text.p + i, tokens[k].prefix, n) == 0 &&
                looks_like_chance(str_skip(text, i + n), tokens[k].length))
                return true;
        }
    }
    return false;
}

static bool has_word(struct str text, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++) {
        if (memcmp(text.p + i, word, n) == 0)
            return true;
    }
    return false;
}

static bool has_password(struct str text)
{
    static const char words[][16] = {"password", "_authToken", "_auth=", "npmAuthToken", "\"auth\"", "oauth_token"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (has_word(text, words[i]))
            return true;
    }
    return has_token(text);
}

static bool is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Whether both ends of the pattern fit, where they stand for themselves: most files of a project are told apart by that. */
static bool may_match(const char *pattern, struct str name)
{
    const char first = pattern[0], last = pattern[strlen(pattern) - 1];
    return name.n && (!(isalnum((unsigned char)first) || first == '.') || is_same_letter(first, name.p[0])) &&
           (!isalnum((unsigned char)last) || is_same_letter(last, name.p[name.n - 1]));
}

/* The entry for a path: the first that fits. */
static bool find_entry(struct str path, size_t *ret)
{
    struct str name = path, parent = {0};
    for (size_t i = path.n; i-- > 0;) {
        if (path.p[i] != '/')
            continue;
        if (name.n == path.n) {
            name = str_skip(path, i + 1);
            parent = (struct str){path.p, i};
        } else {
            parent = (struct str){path.p + i + 1, parent.n - i - 1};
            break;
        }
    }
    for (size_t i = 0; i < sizeof secret_names / sizeof *secret_names; i++) {
        if (may_match(secret_names[i].name, name) && glob_match(str_of(secret_names[i].name), name, GLOB_ANY_CASE) &&
            (!secret_names[i].above[0] || str_is(parent, secret_names[i].above))) {
            *ret = i;
            return true;
        }
    }
    return false;
}

const char *secret_by_name(struct str path, bool *ret_look)
{
    size_t i;
    if (!find_entry(path, &i))
        return NULL;
    *ret_look = secret_names[i].has != ANYTHING;
    return secret_names[i].what[0] ? secret_names[i].what : NULL;
}

bool secret_by_content(struct str path, struct str text)
{
    size_t i;
    const enum content has = find_entry(path, &i) ? secret_names[i].has : TOKEN;
    return has == ANYTHING      ? text.n > 0
           : has == PRIVATE_KEY ? has_word(text, "PRIVATE KEY-----") || has_word(text, "\"private_key\"")
           : has == PASSWORD    ? has_password(text)
                                : has_token(text);
}
