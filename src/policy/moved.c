/*
 * Where the caller's variables move what built-in rules hide, and the caches that they make writable. A rule names the
 * default place, such as ~/.kube; with KUBECONFIG, GNUPGHOME or XDG_CONFIG_HOME the same secrets lie elsewhere, and are
 * hidden there, too. So are those of the home in /etc/passwd, if HOME is another. Variables only add places: the default
 * ones stay hidden, for a program that was started without the variable uses them.
 */
#include "policy/merge.h"

#include <errno.h>
#include <string.h>

/* `usual` is below the home. `added`: what the program appends to the variable's value. A list is separated by colons. */
static const struct {
    char name[32], usual[56], added[24];
    bool list;
    bool cache; /* programs write there, also in a box, which keeps it to itself (files.cache) */
} variables[] = {
    {VARIABLE_OTHER_HOME, "", "", false},
    /* XDG Base Directory Specification */
    {"XDG_CONFIG_HOME", ".config", "", false},
    {"XDG_DATA_HOME", ".local/share", "", false},
    {"XDG_CACHE_HOME", ".cache", "", false, true},
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
    {"CARGO_HOME", ".cargo", "", false, true},
    {"BUNDLE_USER_HOME", ".bundle", "", false},
    {"BUNDLE_USER_CONFIG", ".bundle/config", "", false},
    {"GRADLE_USER_HOME", ".gradle", "", false, true},
    {"COMPOSER_HOME", ".config/composer", "", false},
    {"POETRY_CONFIG_DIR", ".config/pypoetry", "", false},
    {"UV_CREDENTIALS_DIR", ".local/share/uv/credentials", "", false},
    {"PUB_CACHE", ".pub-cache", "", false},
    {"HF_HOME", ".cache/huggingface", "", false},
    {"HF_TOKEN_PATH", ".cache/huggingface/token", "", false},
    {"HUB_CONFIG", ".config/hub", "", false},
    {"GOPASS_HOMEDIR", ".local/share/gopass", "/.local/share/gopass", false},
    {"CAROOT", ".local/share/mkcert", "", false},
    {"SOPS_AGE_SSH_PRIVATE_KEY_FILE", ".ssh/id_ed25519", "", false},
    {"AWS_LOGIN_CACHE_DIRECTORY", ".aws/login/cache", "", false},
    {"OCI_CONFIG_FILE", ".oci/config", "", false},
    {"S3CMD_CONFIG", ".s3cfg", "", false},
    {"HCLOUD_CONFIG", ".config/hcloud/cli.toml", "", false},
    {"SCW_CONFIG_PATH", ".config/scw/config.yaml", "", false},
    {"OS_CLIENT_CONFIG_FILE", ".config/openstack/clouds.yaml", "", false},
    {"OS_CLIENT_SECURE_FILE", ".config/openstack/secure.yaml", "", false},
    {"FLY_CONFIG_DIR", ".fly", "", false},
    {"DOPPLER_CONFIG_DIR", ".doppler", "", false},
    {"MODAL_CONFIG_PATH", ".modal.toml", "", false},
    {"SENTRY_PROPERTIES", ".sentryclirc", "", false},
    {"TUNNEL_ORIGIN_CERT", ".cloudflared/cert.pem", "", false},
    {"TELEPORT_HOME", ".tsh", "", false},
    {"JFROG_CLI_HOME_DIR", ".jfrog", "", false},
    {"LE_WORKING_DIR", ".acme.sh", "", false},
    {"LE_CONFIG_HOME", ".acme.sh", "", false},
    {"ARGOCD_CONFIG_DIR", ".config/argocd", "", false},
    {"DOCKER_CERT_PATH", ".docker", "", false},
    {"KAGGLE_CONFIG_DIR", ".kaggle", "", false},
    {"LLM_USER_PATH", ".config/io.datasette.llm", "", false},
    {"CHROME_CONFIG_HOME", ".config/google-chrome", "/google-chrome", false},
    {"CHROME_CONFIG_HOME", ".config/chromium", "/chromium", false},
    {"CHROME_USER_DATA_DIR", ".config/google-chrome", "", false},
    {"VSCODE_APPDATA", ".config/Code", "/Code", false},
    {"VSCODE_PORTABLE", ".config/Code", "/user-data", false},
    {"ATUIN_DB_PATH", ".local/share/atuin/history.db", "", false},
    {"ATUIN_KEY_PATH", ".local/share/atuin/key", "", false},
    {"ATUIN_SESSION_PATH", ".local/share/atuin/session", "", false},
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
    {"AMP_SETTINGS_FILE", ".config/amp/settings.json", "", false},
    {"GOOSE_PATH_ROOT", ".config/goose", "/config", false},
    {"GOOSE_PATH_ROOT", ".local/share/goose", "/data", false},
    {"GOOSE_PATH_ROOT", ".local/state/goose", "/state", false},
    {"CRUSH_GLOBAL_CONFIG", ".config/crush", "", false},
    {"CRUSH_GLOBAL_DATA", ".local/share/crush", "", false},
    {"VIBE_HOME", ".vibe", "", false},
    {"KIMI_SHARE_DIR", ".kimi", "", false},
    {"HERMES_HOME", ".hermes", "", false},
    {"OPENCLAW_STATE_DIR", ".openclaw", "", false},
    {"CLINE_DIR", ".cline", "", false},
    {"CODEBUDDY_CONFIG_DIR", ".codebuddy", "", false},
    /* caches alone */
    {"GOPATH", "go", "", true, true},
    {"GOMODCACHE", "go/pkg/mod", "", false, true},
    {"GOCACHE", ".cache/go-build", "", false, true},
    {"PIP_CACHE_DIR", ".cache/pip", "", false, true},
    {"UV_CACHE_DIR", ".cache/uv", "", false, true},
    {"CCACHE_DIR", ".ccache", "", false, true},
};

enum { VARIABLES = sizeof variables / sizeof *variables, LIST_MAX = 33 };

/* A value that names nothing of the caller's: unset, or thrown away as by PSQL_HISTORY=/dev/null. */
static bool names_a_place(const char *path)
{
    static const char *const kernels[] = {"/dev", "/proc", "/sys"};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (path_at_or_below(path, kernels[i]))
            return false;
    return !same(path, "/");
}

static bool note_moved(struct merge *m, const char *usual, struct str value, size_t variable)
{
    const char *added = variables[variable].added;
    struct arena *mem = m->p->mem;
    const char *at = value.n ? path_clean_at(mem, m->world->cwd ? m->world->cwd : "/", value) : NULL;
    if (at && *added)
        at = path_clean_at(mem, at, str_of(added + 1));
    if (!at || !names_a_place(at) || same(at, usual))
        return !arena_failed(mem);
    m->moved[m->n_moved++] = (struct moved){.usual = usual, .at = at, .cache = variables[variable].cache};
    return true;
}

int moved_find(struct merge *m)
{
    const struct policy_world *w = m->world;
    struct arena *mem = m->p->mem;
    if (!w->variable || !w->home || w->home[0] != '/')
        return 0;
    size_t room = 0;
    for (size_t i = 0; i < VARIABLES; i++)
        room += variables[i].list ? LIST_MAX : 1;
    m->moved = arena_zero(m->scratch, room * sizeof *m->moved);
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
            if (n == LIST_MAX)
                return err_say(m->e, ERR_POLICY, "%s names more than %d places; leave some of them out",
                               variables[i].name, LIST_MAX);
            if (!note_moved(m, usual, end ? (struct str){from, (size_t)(end - from)} : str_of(from), i))
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

/*
 * Whether a layer there would keep to the box what is meant for the host, show what is hidden, or cover a place of the box's own. Then
 * the place stays what it is without it: in the workspace writable, elsewhere read-only.
 */
static bool keeps_its_rule(const struct merge *m, const char *at)
{
    static const char *const own[] = {"/tmp", "/var/tmp", "/run"};
    const struct policy *p = m->p;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (path_at_or_below(at, own[i]))
            return true;
    if (path_overlap(at, p->workspace) || path_at_or_below(m->world->home, at))
        return true;
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        if (r->any_depth || r->pattern)
            continue;
        if (same(r->path, at) || (r->access == PATH_RW && path_overlap(at, r->path)) ||
            (r->access == PATH_HIDE && path_at_or_below(at, r->path)) ||
            (same(p->origins[r->origin].file, OWN_ORIGIN) && path_overlap(at, r->path)))
            return true;
    }
    for (size_t i = 0; i < p->n_mounts; i++)
        if (path_overlap(at, p->mounts[i].to))
            return true;
    return false;
}

int moved_caches(struct merge *m)
{
    struct policy *p = m->p;
    const size_t n = p->n_paths;
    for (size_t i = 0; i < n * m->n_moved; i++) {
        const struct path_rule r = p->paths[i / m->n_moved];
        const struct moved *v = &m->moved[i % m->n_moved];
        if (r.access != PATH_CACHE || !v->cache || !r.optional || p->origins[r.origin].layer != LAYER_BUILTIN)
            continue;
        const char *at = moved_place(m, r.path, i % m->n_moved);
        if (!at || keeps_its_rule(m, at))
            continue;
        bool fresh;
        if (!table_put(&m->paths, 0, str_of(at), (uint32_t)p->n_paths, &fresh))
            return merge_no_memory(m);
        if (fresh)
            p->paths[p->n_paths++] = (struct path_rule){
                .access = PATH_CACHE, .path = at, .optional = true, .moved = true, .origin = r.origin};
    }
    return 0;
}
