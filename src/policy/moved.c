/*
 * Where the caller's variables move what built-in rules hide. A rule names the default place, such as ~/.kube; with
 * KUBECONFIG, GNUPGHOME or XDG_CONFIG_HOME the same secrets lie elsewhere, and are hidden there, too. Variables only add
 * places: the default ones stay hidden, for a program that was started without the variable uses them.
 */
#include "policy/merge.h"

#include <errno.h>
#include <string.h>

/* `usual` is below the home. `added`: what the program appends to the variable's value. A list is separated by colons. */
static const struct {
    char name[32], usual[56], added[16];
    bool list;
} variables[] = {
    /* XDG Base Directory Specification */
    {"XDG_CONFIG_HOME", ".config", "", false},
    {"XDG_DATA_HOME", ".local/share", "", false},
    {"XDG_CACHE_HOME", ".cache", "", false},
    {"XDG_STATE_HOME", ".local/state", "", false},
    /* each by the manual of its program */
    {"GNUPGHOME", ".gnupg", "", false},
    {"PASSWORD_STORE_DIR", ".password-store", "", false},
    {"NETRC", ".netrc", "", false},
    {"GH_CONFIG_DIR", ".config/gh", "", false},
    {"GLAB_CONFIG_DIR", ".config/glab-cli", "", false},
    {"SOPS_AGE_KEY_FILE", ".config/sops/age/keys.txt", "", false},
    {"XAUTHORITY", ".Xauthority", "", false},
    {"ICEAUTHORITY", ".ICEauthority", "", false},
    {"AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", "", false},
    {"AWS_CONFIG_FILE", ".aws/config", "", false},
    {"AZURE_CONFIG_DIR", ".azure", "", false},
    {"CLOUDSDK_CONFIG", ".config/gcloud", "", false},
    {"GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/application_default_credentials.json", "", false},
    {"BOTO_CONFIG", ".boto", "", false},
    {"OCI_CLI_CONFIG_FILE", ".oci/config", "", false},
    {"RCLONE_CONFIG", ".config/rclone/rclone.conf", "", false},
    {"DATABRICKS_CONFIG_FILE", ".databrickscfg", "", false},
    {"SNOWFLAKE_HOME", ".snowflake", "", false},
    {"KUBECONFIG", ".kube/config", "", true},
    {"DOCKER_CONFIG", ".docker", "", false},
    {"REGISTRY_AUTH_FILE", ".config/containers/auth.json", "", false},
    {"TF_CLI_CONFIG_FILE", ".terraformrc", "", false},
    {"PGPASSFILE", ".pgpass", "", false},
    {"MYSQL_TEST_LOGIN_FILE", ".mylogin.cnf", "", false},
    {"NPM_CONFIG_USERCONFIG", ".npmrc", "", false},
    {"npm_config_userconfig", ".npmrc", "", false},
    {"CARGO_HOME", ".cargo", "", false},
    {"BUNDLE_USER_HOME", ".bundle", "", false},
    {"BUNDLE_USER_CONFIG", ".bundle/config", "", false},
    {"GRADLE_USER_HOME", ".gradle", "", false},
    {"COMPOSER_HOME", ".config/composer", "", false},
    {"POETRY_CONFIG_DIR", ".config/pypoetry", "", false},
    {"UV_CREDENTIALS_DIR", ".local/share/uv/credentials", "", false},
    {"PUB_CACHE", ".pub-cache", "", false},
    {"HF_HOME", ".cache/huggingface", "", false},
    {"HF_TOKEN_PATH", ".cache/huggingface/token", "", false},
    {"OP_CONFIG_DIR", ".config/op", "", false},
    {"BITWARDENCLI_APPDATA_DIR", ".config/Bitwarden CLI", "", false},
    {"HISTFILE", ".bash_history", "", false},
    {"ZDOTDIR", ".zsh_history", "/.zsh_history", false},
    {"PYTHON_HISTORY", ".python_history", "", false},
    {"NODE_REPL_HISTORY", ".node_repl_history", "", false},
    {"PSQL_HISTORY", ".psql_history", "", false},
    {"MYSQL_HISTFILE", ".mysql_history", "", false},
    {"SQLITE_HISTORY", ".sqlite_history", "", false},
    {"REDISCLI_HISTFILE", ".rediscli_history", "", false},
    {"CLAUDE_CONFIG_DIR", ".claude", "", false},
    {"CODEX_HOME", ".codex", "", false},
    {"GEMINI_CLI_HOME", ".gemini", "/.gemini", false},
    {"COPILOT_HOME", ".copilot", "", false},
    {"CURSOR_CONFIG_DIR", ".cursor", "", false},
    {"PI_CODING_AGENT_DIR", ".pi/agent", "", false},
    {"CONTINUE_GLOBAL_DIR", ".continue", "", false},
    {"OPENCODE_CONFIG_DIR", ".config/opencode", "", false},
    {"OPENCODE_CONFIG", ".config/opencode/opencode.json", "", false},
};

enum { VARIABLES = sizeof variables / sizeof *variables, LIST_MAX = 32 };

/* A value that names nothing of the caller's: unset, or thrown away as by PSQL_HISTORY=/dev/null. */
static bool names_a_place(const char *path)
{
    static const char *const kernels[] = {"/dev", "/proc", "/sys"};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (path_at_or_below(path, kernels[i]))
            return false;
    return !same(path, "/");
}

static bool note_moved(struct merge *m, const char *usual, struct str value, const char *added)
{
    struct arena *mem = m->p->mem;
    const char *at = value.n ? path_clean_at(mem, m->world->cwd ? m->world->cwd : "/", value) : NULL;
    if (at && *added)
        at = path_clean_at(mem, at, str_of(added + 1));
    if (!at || !names_a_place(at) || same(at, usual))
        return !arena_failed(mem);
    m->moved[m->n_moved++] = (struct moved){.usual = usual, .at = at};
    return true;
}

int moved_find(struct merge *m)
{
    const struct policy_world *w = m->world;
    struct arena *mem = m->p->mem;
    if (!w->variable || !w->home || w->home[0] != '/')
        return 0;
    m->moved = arena_zero(m->scratch, (VARIABLES + LIST_MAX) * sizeof *m->moved);
    for (size_t i = 0; m->moved && i < VARIABLES; i++) {
        const char *value = w->variable(w->ctx, variables[i].name);
        if (!value || !*value)
            continue;
        const bool xdg = strncmp(variables[i].name, "XDG_", 4) == 0;
        if (xdg && value[0] != '/')
            continue; /* a relative one is ignored: XDG Base Directory Specification */
        const char *usual = path_clean_at(mem, w->home, str_of(variables[i].usual));
        size_t n = 0;
        for (const char *from = value; usual && from; n++) {
            const char *end = variables[i].list ? strchr(from, ':') : NULL;
            if (n > LIST_MAX)
                return err_say(m->e, ERR_POLICY, "%s names more than %d files: pinfold cannot hide them all",
                               variables[i].name, LIST_MAX);
            if (!note_moved(m, usual, end ? (struct str){from, (size_t)(end - from)} : str_of(from),
                            variables[i].added))
                break;
            from = end ? end + 1 : NULL;
        }
    }
    return arena_failed(mem) ? err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy") : 0;
}

const char *moved_place(struct merge *m, const char *path, size_t i)
{
    const struct moved *v = &m->moved[i];
    if (path_below(v->usual, path))
        return v->at;
    if (!path_at_or_below(path, v->usual))
        return NULL;
    const char *rest = path + strlen(v->usual);
    return *rest ? path_clean_at(m->p->mem, v->at, str_of(rest + 1)) : v->at;
}
