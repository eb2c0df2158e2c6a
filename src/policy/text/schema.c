/* JSON Schema (draft 2020-12) of our language, from the table of keys, for editors. What it accepts may still be
   wrong. */
#include <errno.h>

#include "base/json.h"
#include "policy/text/keys.h"

static void scalar(struct json *j, const char *type, const char *pattern)
{
    json_text(j, "type", type);
    if (pattern)
        json_text(j, "pattern", pattern);
}

/* {"type": ["string", "integer"], ...}: YAML has both 512M and 512. */
static void text_or_number(struct json *j, const char *pattern)
{
    json_array(j, "type");
    json_text(j, NULL, "string");
    json_text(j, NULL, "number");
    json_array_end(j);
    json_text(j, "pattern", pattern);
}

static void list_of_texts(struct json *j)
{
    json_text(j, "type", "array");
    json_object(j, "items");
    scalar(j, "string", NULL);
    json_object_end(j);
}

static void choices(struct json *j, const struct policy_key *k)
{
    struct str rest = str_of(k->choices);
    json_array(j, "enum");
    while (rest.n) {
        const char *bar = memchr(rest.p, '|', rest.n);
        struct str one = {rest.p, bar ? (size_t)(bar - rest.p) : rest.n};
        json_str(j, NULL, one);
        rest = str_skip(rest, one.n + 1);
    }
    json_array_end(j);
}

/* A text, or a mapping with these members, `needed` of which are required. */
static void text_or_mapping(struct json *j, const char *const members[], const char *const types[], size_t needed)
{
    json_text(j, "type", "array");
    json_object(j, "items");
    json_array(j, "anyOf");
    json_object(j, NULL);
    scalar(j, "string", NULL);
    json_object_end(j);
    json_object(j, NULL);
    json_text(j, "type", "object");
    json_object(j, "properties");
    for (size_t i = 0; members[i]; i++) {
        json_object(j, members[i]);
        scalar(j, types[i], NULL);
        json_object_end(j);
    }
    json_object_end(j);
    json_array(j, "required");
    for (size_t i = 0; i < needed; i++)
        json_text(j, NULL, members[i]);
    json_array_end(j);
    json_bool(j, "additionalProperties", false);
    json_object_end(j);
    json_array_end(j);
    json_object_end(j);
}

static void type_of(struct json *j, const struct policy_key *k)
{
    static const char *const path[] = {"path", "optional", NULL}, *const path_types[] = {"string", "boolean"};
    static const char *const hidden[] = {"path", "absent", NULL};
    static const char *const mount[] = {"from", "to", "read_only", NULL}, *const mount_types[] = {"string", "string",
                                                                                                  "boolean"};

    switch (k->type) {
    case TYPE_BOOL:
        scalar(j, "boolean", NULL);
        break;
    case TYPE_TEXT:
    case TYPE_PATH:
        scalar(j, "string", NULL);
        break;
    case TYPE_CHOICE:
        choices(j, k);
        break;
    case TYPE_SIZE:
        text_or_number(j, "^(none|[0-9]+(\\.[0-9]+)?[KMGTkmgt]?(i?[Bb])?)$");
        break;
    case TYPE_DURATION:
        text_or_number(j, "^(none|[0-9]+(\\.[0-9]+)?|([0-9]+(\\.[0-9]+)?(d|h|m|s|ms))+)$");
        break;
    case TYPE_COUNT:
        text_or_number(j, "^(none|[0-9]+)$");
        break;
    case TYPE_CPUS:
        text_or_number(j, "^(none|[0-9]+(\\.[0-9]+)?%?)$");
        break;
    case TYPE_PATHS:
        if (same(k->path, "files.rw") || same(k->path, "files.ro"))
            text_or_mapping(j, path, path_types, 1);
        else if (same(k->path, "files.hide"))
            text_or_mapping(j, hidden, path_types, 1);
        else
            list_of_texts(j);
        break;
    case TYPE_MOUNTS:
        text_or_mapping(j, mount, mount_types, 2);
        break;
    case TYPE_ENV:
        json_text(j, "type", "object");
        json_object(j, "additionalProperties");
        text_or_number(j, "");
        json_object_end(j);
        break;
    case TYPE_PORTS:
        json_text(j, "type", "array");
        json_object(j, "items");
        text_or_number(j, "^[0-9]+(-[0-9]+)?$");
        json_object_end(j);
        break;
    case TYPE_NAMES:
    case TYPE_DOMAINS:
    case TYPE_GUARDS:
        list_of_texts(j);
        break;
    }
}

int policy_schema(struct buf *out)
{
    struct json j = JSON(out);
    const char *section = NULL;
    size_t section_n = 0;

    j.pretty = true;
    json_object(&j, NULL);
    json_text(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_text(&j, "title", "pinfold policy");
    json_text(&j, "type", "object");
    json_bool(&j, "additionalProperties", false);
    json_object(&j, "properties");
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *k = &key_table[i];
        const char *dot = strchr(k->path, '.');
        size_t n = dot ? (size_t)(dot - k->path) : 0;
        if (section && (n != section_n || strncmp(section, k->path, n) != 0)) {
            json_object_end(&j);
            json_object_end(&j);
            section = NULL;
        }
        if (dot && !section) {
            char name[32];
            memcpy(name, k->path, n);
            name[n] = 0;
            json_object(&j, name);
            json_text(&j, "type", "object");
            json_bool(&j, "additionalProperties", false);
            json_object(&j, "properties");
            section = k->path;
            section_n = n;
        }
        json_object(&j, dot ? dot + 1 : k->path);
        json_text(&j, "description", k->help);
        type_of(&j, k);
        json_object_end(&j);
    }
    if (section) {
        json_object_end(&j);
        json_object_end(&j);
    }
    json_object_end(&j);
    json_object_end(&j);
    buf_char(out, '\n');
    return buf_ok(out) ? 0 : -ENOMEM;
}
