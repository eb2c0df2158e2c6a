/*
 * Prints a plan as JSON: the same as explain.c, for programs. Names of members are an interface: new ones may come,
 * none may go.
 */
#include "base/json.h"
#include "plan/explain/words.h"

/* File names are bytes; if they are not UTF-8 the exact ones are added. */
static void put_name(struct json *j, const char *name, const char *value)
{
    char member[64];
    json_text(j, name, value);
    if (!utf8_valid(str_of(value))) {
        size_t n = strlen(name);
        memcpy(member, name, n);
        memcpy(member + n, "_base64", sizeof "_base64");
        json_base64(j, member, str_of(value));
    }
}

static void put_origin(struct json *j, const struct policy *p, uint32_t origin)
{
    char text[512];
    put_name(j, "origin", policy_origin(p, origin, text, sizeof text));
}

static void put_files(struct json *j, const struct plan *p)
{
    json_array(j, "files");
    for (size_t i = 0; i < p->n_places; i++) {
        const struct plan_place *at = &p->places[i];
        char origin[512];
        if (at->act == ACT_NOT_THERE && !at->said)
            continue;
        json_object(j, NULL);
        put_name(j, "path", at->dst);
        json_text(j, "access", at->kind == PLACE_ROOT && at->region == REGION_WRITABLE ? "writable" : word_access(at));
        json_text(j, "how", word_how(at));
        if (at->src && strcmp(at->src, at->dst) != 0)
            put_name(j, "from", at->src);
        if (at->target)
            put_name(j, "target", at->target);
        put_name(j, "origin", place_origin(p, at, origin, sizeof origin));
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_guard(struct json *j, const struct plan *p)
{
    if (!p->image->guard_bytes) {
        json_null(j, "guard");
        return;
    }
    const struct guard_table *t = (const void *)((const char *)p->image + p->image->guard_at);
    json_object(j, "guard");
    json_text(j, "mode", word_guard_mode((enum guard_mode)t->mode));
    json_array(j, "rules");
    for (uint32_t i = 0; i < t->n_rules; i++) {
        const struct guard_rule *r = &t->rules[i];
        json_object(j, NULL);
        json_text(j, "kind", word_guard_rule((enum guard_rule_kind)r->kind));
        put_name(j, "text", plan_string(p->image, r->text));
        if (r->kind == GUARD_RULE_NAME || r->kind == GUARD_RULE_HIDE_NAME) {
            json_text(j, "place", r->place == GUARD_ROOT ? "root" : "any-depth");
            json_text(j, "judge", word_guard_judge(r));
            json_bool(j, "directory", r->flags & GUARD_RULE_DIRECTORY);
            json_bool(j, "pattern", r->flags & GUARD_RULE_PATTERN);
            json_bool(j, "direct", r->flags & GUARD_RULE_DIRECT);
            if (r->flags & GUARD_RULE_DEEP)
                json_bool(j, "deep", true);
        }
        if (r->kind == GUARD_RULE_PRIVATE)
            json_bool(j, "kept", r->flags & GUARD_RULE_KEPT);
        if (r->below)
            put_name(j, "below", plan_string(p->image, r->below));
        put_origin(j, p->policy, r->origin);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void put_bits(struct json *j, const char *name, uint32_t bits, const struct named_bit *names)
{
    json_array(j, name);
    for (const struct named_bit *n = names; n->name; n++) {
        if (bits & n->bit)
            json_text(j, NULL, n->name);
    }
    json_array_end(j);
}

static void put_features(struct json *j, const char *name, features f)
{
    json_array(j, name);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (f & (features)1 << i)
            json_text(j, NULL, feature_name((enum feature)i));
    }
    json_array_end(j);
}

static void put_git(struct json *j, const struct policy *p)
{
    static const char *const words[] = {"off", "told", "required"};
    const struct git_rules *g = &p->git;
    json_object(j, "git");
    json_text(j, "verify", words[g->verify]);
    json_bool(j, "allow_force", g->allow_force);
    json_bool(j, "allow_delete", g->allow_delete);
    json_array(j, "protect_branches");
    for (size_t i = 0; i < g->n_branches; i++) {
        json_object(j, NULL);
        put_name(j, "name", g->branches[i].pattern);
        put_origin(j, p, g->branches[i].origin);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void put_limits(struct json *j, const struct plan *p)
{
    struct named_limit all[N_LIMITS];
    limits_of(p, all);
    json_object(j, "limits");
    for (int i = 0; i < N_LIMITS; i++) {
        if (all[i].limit.value == LIMIT_NONE)
            continue;
        auto_buf struct buf said = BUF(64);
        put_limit(&said, &all[i]);
        json_object(j, all[i].name);
        json_uint(j, "value", all[i].limit.value);
        json_text(j, "unit",
                  all[i].unit == UNIT_BYTES  ? "bytes"
                  : all[i].unit == UNIT_MS   ? "ms"
                  : all[i].unit == UNIT_CPUS ? "thousandths"
                                             : "count");
        json_text(j, "said", buf_cstr(&said));
        json_bool(j, "asked", all[i].limit.asked);
        put_origin(j, p->policy, all[i].limit.origin);
        json_object_end(j);
    }
    json_object_end(j);
}

static void put_environment(struct json *j, const struct plan *p, bool show_values)
{
    json_array(j, "environment");
    for (const char **v = p->env; *v; v++) {
        size_t n = strcspn(*v, "=");
        json_object(j, NULL);
        json_str(j, "name", (struct str){*v, n});
        if (show_values)
            put_name(j, "value", *v + n + 1);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_promises(struct json *j, const struct plan *p)
{
    put_features(j, "needs", p->needs);
    json_object(j, "enforced");
    for (size_t i = 0; i < p->n_enforced; i++)
        json_text(j, feature_name(p->enforced[i].what), p->enforced[i].by);
    json_object_end(j);
    put_features(j, "lost", p->lost);
}

static void put_steps(struct json *j, const struct plan *p)
{
    const struct step *s = plan_steps(p->image);
    json_array(j, "steps");
    for (uint32_t i = 0; i < p->image->n_steps; i++) {
        auto_buf struct buf text = BUF(64u << 10);
        step_print(p->image, &s[i], &text);
        json_object(j, NULL);
        json_text(j, "step", step_name((enum step_kind)s[i].kind));
        json_str(j, "text", buf_view(&text));
        put_origin(j, p->policy, s[i].origin);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_lists(struct json *j, const struct plan *p)
{
    json_array(j, "read_on_every_open");
    for (const char **r = p->read_on_every_open; r && *r; r++)
        json_text(j, NULL, *r);
    json_array_end(j);
    json_array(j, "make_dirs");
    for (size_t i = 0; i < p->n_make_dirs; i++) {
        json_object(j, NULL);
        put_name(j, "path", p->make_dirs[i].path);
        json_bool(j, "temporary", p->make_dirs[i].temporary);
        json_bool(j, "whiteout", p->make_dirs[i].whiteout);
        json_bool(j, "opaque", p->make_dirs[i].opaque);
        json_object_end(j);
    }
    json_array_end(j);
    json_array(j, "notes");
    for (const char **n = p->notes; n && *n; n++)
        json_text(j, NULL, *n);
    json_array_end(j);
    json_array(j, "ignored");
    for (size_t i = 0; i < p->policy->n_ignored; i++) {
        json_object(j, NULL);
        json_text(j, "key", p->policy->ignored[i].key);
        json_text(j, "why", p->policy->ignored[i].why);
        put_origin(j, p->policy, p->policy->ignored[i].origin);
        json_object_end(j);
    }
    json_array_end(j);
}

void plan_explain_members(const struct plan *p, bool show_values, struct json *j)
{
    json_object(j, NULL);
    json_int(j, "v", 1);
    if (p->refused) {
        json_array(j, "refused");
        for (const char **text = p->refused; *text; text++)
            json_text(j, NULL, *text);
        json_array_end(j);
    }
    json_text(j, "engine", p->facts->engine);
    if (p->facts->image) {
        json_text(j, "image", p->facts->image->name);
        json_text(j, "image_id", p->facts->image->id);
        json_array(j, "image_entrypoint");
        for (const char *const *word = p->facts->image->entrypoint; word && *word; word++)
            json_text(j, NULL, *word);
        json_array_end(j);
        json_bool(j, "image_entrypoint_runs", p->policy->entrypoint == ENTRYPOINT_IMAGE);
        json_text(j, "image_user", p->facts->image->user);
        json_array(j, "image_cmd");
        for (const char *const *word = p->facts->image->cmd; word && *word; word++)
            json_text(j, NULL, *word);
        json_array_end(j);
        json_text(j, "image_workdir", p->facts->image->workdir ? p->facts->image->workdir : "");
    }
    json_object(j, "engines_not_taken");
    for (size_t i = 0; i < p->facts->n_others; i++)
        json_text(j, p->facts->others[i].engine, p->facts->others[i].why);
    json_object_end(j);
    if (p->command) {
        json_array(j, "command");
        for (size_t i = 0; p->command[i]; i++)
            json_text(j, NULL, p->command[i]);
        json_array_end(j);
        json_text(j, "command_text", p->command_text);
    } else {
        json_null(j, "command");
        json_null(j, "command_text");
    }
    json_text(j, "tier", p->facts->tier == TIER_LANDLOCK ? "landlock" : "namespaces");
    if (p->policy->profile)
        json_text(j, "profile", p->policy->profile);
    else
        json_null(j, "profile");
    put_name(j, "workspace", p->workspace);
    put_name(j, "cwd", p->cwd);
    json_uint(j, "uid", p->image->uid);
    json_uint(j, "gid", p->image->gid);
    json_text(j, "network", word_net(p->policy));
    explain_network_json(p, j);
    put_bits(j, "namespaces", p->image->namespaces, namespace_names);
    put_bits(j, "filter", p->image->filter, filter_names);
    put_files(j, p);
    put_guard(j, p);
    put_git(j, p->policy);
    put_limits(j, p);
    put_environment(j, p, show_values);
    put_promises(j, p);
    put_lists(j, p);
    put_steps(j, p);
    if (p->digest[0]) {
        json_text(j, "plan_digest", p->digest);
        json_text(j, "policy_digest", p->policy_digest);
    }
    json_object_end(j);
}

int plan_explain_json(const struct plan *p, bool show_values, struct buf *out)
{
    struct json j = JSON(out);
    j.pretty = true;
    plan_explain_members(p, show_values, &j);
    buf_char(out, '\n');
    return buf_ok(out) ? 0 : -ENOMEM;
}
