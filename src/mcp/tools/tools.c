/*
 * The list of tools, their schemas, and the checks of arguments, from the same tables. What a schema does not have is
 * refused before a worker hears of the call.
 */
#include <stdio.h>

#include "mcp/tools/tool_file.h"
#include "mcp/tools/tool_run.h"
#include "mcp/tools/tool_session.h"
#include "mcp/tools/wishes.h"

static const struct tool *const all_tools[] = {
    &tool_run,          &tool_bash,         &tool_output,       &tool_kill,   &tool_read_file, &tool_write_file,
    &tool_edit_file,    &tool_list_dir,     &tool_glob,         &tool_grep,   &tool_policy,    &tool_session_start,
    &tool_session_list, &tool_session_diff, &tool_session_stop, &tool_explain};

#define LIST_SIZE (sizeof all_tools / sizeof *all_tools)

/* Those of this server's start. */
static const struct tool *added_tools[16];
static size_t n_more;

bool tool_add(const struct tool *t)
{
    if (n_more == sizeof added_tools / sizeof *added_tools)
        return false;
    added_tools[n_more++] = t;
    return true;
}

const struct tool *tool_at(size_t i)
{
    return i < LIST_SIZE ? all_tools[i] : i - LIST_SIZE < n_more ? added_tools[i - LIST_SIZE] : NULL;
}

const struct tool *mcp_tool_find(const char *name)
{
    const struct tool *t;
    for (size_t i = 0; (t = tool_at(i)); i++) {
        if (same(t->name, name))
            return t;
    }
    return NULL;
}

/* The one result schema; members that a later version adds are welcome. */
static const char result_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"v\":{\"type\":\"integer\"},\"success\":{\"type\":\"boolean\"},"
    "\"exit_code\":{\"type\":[\"integer\",\"null\"]},\"signal\":{\"type\":[\"integer\",\"string\",\"null\"]},"
    "\"ended\":{\"type\":\"string\",\"enum\":[\"exit\",\"signal\",\"timeout\",\"limit\",\"sandbox\",\"background\"]},"
    "\"limit\":{\"type\":[\"string\",\"null\"]},"
    "\"stdout\":{\"type\":[\"string\",\"null\"]},\"stderr\":{\"type\":[\"string\",\"null\"]},"
    "\"stdout_truncated\":{\"type\":\"boolean\"},\"stderr_truncated\":{\"type\":\"boolean\"},"
    "\"encoding\":{\"type\":[\"string\",\"null\"]},\"usage\":{\"type\":[\"object\",\"null\"]},"
    "\"denials\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"monitor\":{\"type\":\"boolean\"},"
    "\"denials_not_seen\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"left\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"left_not_kept\":{\"type\":\"integer\"},"
    "\"enforced\":{\"type\":\"object\"},\"lost\":{\"type\":\"array\"},"
    "\"engine\":{\"type\":[\"string\",\"null\"]},\"session\":{\"type\":[\"string\",\"null\"]},"
    "\"policy_digest\":{\"type\":[\"string\",\"null\"]},\"plan_digest\":{\"type\":[\"string\",\"null\"]}},"
    "\"required\":[\"v\",\"success\",\"ended\"]}";

static void argument_schema(struct json *w, const struct tool_argument *a)
{
    static const char types[][8] = {
        [ARGUMENT_TEXT] = "string",         [ARGUMENT_NUMBER] = "integer", [ARGUMENT_SWITCH] = "boolean",
        [ARGUMENT_TEXTS] = "array",         [ARGUMENT_MAP] = "object",     [ARGUMENT_OPTIONS] = "object",
        [ARGUMENT_OPTIONS_BRIEF] = "object"};

    json_object(w, a->name);
    json_text(w, "type", types[a->kind]);
    json_text(w, "description", a->help);
    if (a->kind == ARGUMENT_NUMBER) {
        json_int(w, "minimum", a->min);
        json_int(w, "maximum", a->max);
    }
    if (a->kind == ARGUMENT_TEXTS) {
        json_raw(w, "items", STR("{\"type\":\"string\"}"));
        json_int(w, "minItems", a->min);
    }
    if (a->kind == ARGUMENT_MAP)
        json_raw(w, "additionalProperties", STR("{\"type\":\"string\"}"));
    if (a->kind == ARGUMENT_OPTIONS)
        wishes_schema(w);
    json_object_end(w);
}

static void input_schema(struct json *w, const struct tool *t)
{
    bool any = false;

    json_object(w, "inputSchema");
    json_text(w, "type", "object");
    json_object(w, "properties");
    for (const struct tool_argument *a = t->arguments; a->name; a++)
        argument_schema(w, a);
    json_object_end(w);
    for (const struct tool_argument *a = t->arguments; a->name; a++) {
        if (a->required && !any)
            json_array(w, "required");
        any = any || a->required;
        if (a->required)
            json_text(w, NULL, a->name);
    }
    if (any)
        json_array_end(w);
    json_bool(w, "additionalProperties", false);
    json_object_end(w);
}

void tool_write(struct json *w, const struct tool *t)
{
    json_object(w, NULL);
    json_text(w, "name", t->name);
    json_text(w, "title", t->title);
    json_text(w, "description", t->description);
    input_schema(w, t);
    if (t->gives_result)
        json_raw(w, "outputSchema", STR(result_schema));
    else if (t->output)
        json_raw(w, "outputSchema", str_of(t->output));
    json_object(w, "annotations");
    json_text(w, "title", t->title);
    json_bool(w, "readOnlyHint", t->read_only);
    json_bool(w, "destructiveHint", t->destructive);
    json_bool(w, "idempotentHint", t->idempotent);
    json_bool(w, "openWorldHint", t->open_world);
    json_object_end(w);
    json_object_end(w);
}

static bool is_text(const json_t *v, bool nul)
{
    return json_is_string(v) && (nul || strlen(json_string_value(v)) == json_string_length(v));
}

/* What the value must be, where it is not; else NULL. */
static const char *argument_wrong(const struct tool_argument *a, const json_t *v)
{
    switch (a->kind) {
    case ARGUMENT_TEXT: /* what is written or read by a command may hold NUL */
        return is_text(v, same(a->name, "stdin") || same(a->name, "content")) ? NULL : "a string without NUL";
    case ARGUMENT_NUMBER:
        return json_is_integer(v) && json_integer_value(v) >= a->min && json_integer_value(v) <= a->max
                   ? NULL
                   : "an integer in its range";
    case ARGUMENT_SWITCH:
        return json_is_boolean(v) ? NULL : "true or false";
    case ARGUMENT_TEXTS:
        for (size_t i = 0; i < json_array_size(v); i++) {
            if (!is_text(json_array_get(v, i), false))
                return "an array of strings without NUL";
        }
        return json_is_array(v) && (int64_t)json_array_size(v) >= a->min ? NULL : "a non-empty array of strings";
    case ARGUMENT_MAP:
        for (void *at = json_object_iter((json_t *)(uintptr_t)v); at;
             at = json_object_iter_next((json_t *)(uintptr_t)v, at)) {
            const char *name = json_object_iter_key(at);
            if (!name[0] || strchr(name, '=') || !is_text(json_object_iter_value(at), false))
                return "an object of names and strings";
        }
        return json_is_object(v) ? NULL : "an object of names and strings";
    case ARGUMENT_OPTIONS:
    case ARGUMENT_OPTIONS_BRIEF:
        break;
    }
    return json_is_object(v) ? NULL : "an object";
}

bool tool_check(const struct tool *t, const json_t *arguments, char *why, size_t room)
{
    json_t *given = (json_t *)(uintptr_t)arguments;

    for (void *at = json_object_iter(given); at; at = json_object_iter_next(given, at)) {
        const struct tool_argument *a = t->arguments;
        while (a->name && !same(a->name, json_object_iter_key(at)))
            a++;
        if (!a->name) {
            snprintf(why, room, "%s: unknown argument '%.64s'", t->name, json_object_iter_key(at));
            return false;
        }
    }
    for (const struct tool_argument *a = t->arguments; a->name; a++) {
        const json_t *v = json_object_get(given, a->name);
        const char *must = v ? argument_wrong(a, v) : NULL;
        if (!v && a->required) {
            snprintf(why, room, "%s: the argument '%s' is missing", t->name, a->name);
            return false;
        }
        if (must) {
            snprintf(why, room, "%s: '%s' must be %s", t->name, a->name, must);
            return false;
        }
        if (v && a->kind >= ARGUMENT_OPTIONS && !wishes_check(v, why, room))
            return false;
    }
    return true;
}
