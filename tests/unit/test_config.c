/*
 * Settings files of agents: which texts of MCP servers are found. What is left as it stands is compared byte by byte.
 */
#include "unit.h"

#include <errno.h>
#include "mcp/config.h"

struct seen {
    struct buf all;
    const char *from, *to; /* replaced where it is this */
};

static bool note(void *ctx, const char *server, const char *place, const char *text, struct buf *to)
{
    struct seen *s = ctx;
    buf_printf(&s->all, "%s|%s|%s\n", server, place, text);
    if (!s->from || !same(text, s->from))
        return false;
    buf_text(to, s->to);
    return true;
}

static const struct {
    const char *name;
    enum config_format format;
    const char *file, *seen; /* NULL: no settings file */
    const char *from, *to, *out;
} rows[] = {
    {"json", CONFIG_JSON,
     "{\"a\": 1, \"mcpServers\": {\"f\": {\"command\": \"/x\", \"args\": [\"-r\", \"/a b\"], \"env\": {\"P\": "
     "\"/q\"}}}}",
     "f|command|/x\nf|args[0]|-r\nf|args[1]|/a b\nf|env.P|/q\n", "/a b", "/w \"q\"",
     "{\"a\": 1, \"mcpServers\": {\"f\": {\"command\": \"/x\", \"args\": [\"-r\", \"/w \\\"q\\\"\"], \"env\": {\"P\": "
     "\"/q\"}}}}"},
    {"json-comments", CONFIG_JSON, "// one\n{ /* two */ \"mcpServers\": {\"f\": {\"command\": \"/x\",},}, } // end\n",
     "f|command|/x\n", "/x", "/y", "// one\n{ /* two */ \"mcpServers\": {\"f\": {\"command\": \"/y\",},}, } // end\n"},
    {"json-escapes", CONFIG_JSON, "{\"mcp\\u0053ervers\":{\"\\u00e9\":{\"command\":\"\\/x\\u0020\"}}}",
     "\303\251|command|/x \n", "/x ", "\303\251", "{\"mcp\\u0053ervers\":{\"\\u00e9\":{\"command\":\"\303\251\"}}}"},
    {"json-elsewhere", CONFIG_JSON,
     "{\"x\":{\"mcpServers\":{\"f\":{\"command\":\"/x\"}}},\"mcp_servers\":{\"f\":{\"command\":\"/x\"}}}", "", NULL,
     NULL, NULL},
    {"json-no-object", CONFIG_JSON, "[\"/x\", null, 1.5e3, true]", "", NULL, NULL, NULL},
    {"json-cut", CONFIG_JSON, "{\"mcpServers\": {\"f\": {\"command\": \"/x", NULL, NULL, NULL, NULL},
    {"json-behind", CONFIG_JSON, "{} {}", NULL, NULL, NULL, NULL},
    {"json-empty", CONFIG_JSON, "", NULL, NULL, NULL, NULL},
    {"toml", CONFIG_TOML,
     "# c\nmodel = \"m\" # d\n[mcp_servers.f]\ncommand = '/x'\nargs = [\n  \"-r\", # e\n  \"/a b\",\n]\nenv = { P = "
     "\"/q\", \"K k\" = '/l' }\n[other]\ncommand = \"/x\"\n",
     "f|command|/x\nf|args[0]|-r\nf|args[1]|/a b\nf|env.P|/q\nf|env.K k|/l\n", "/x", "/y",
     "# c\nmodel = \"m\" # d\n[mcp_servers.f]\ncommand = \"/y\"\nargs = [\n  \"-r\", # e\n  \"/a b\",\n]\nenv = { P = "
     "\"/q\", \"K k\" = '/l' }\n[other]\ncommand = \"/x\"\n"},
    {"toml-tables", CONFIG_TOML,
     "mcp_servers.a.command = \"/1\"\nmcp_servers = {b = {command = \"/2\"}}\n[mcp_servers]\nc.command = \"/3\"\n[ "
     "mcp_servers . \"d e\" . env ]\nP=\"/4\"\n[[mcp_servers.l]]\ncommand='/5'\n",
     "a|command|/1\nb|command|/2\nc|command|/3\nd e|env.P|/4\nl|command|/5\n", "/4", "/9",
     "mcp_servers.a.command = \"/1\"\nmcp_servers = {b = {command = \"/2\"}}\n[mcp_servers]\nc.command = \"/3\"\n[ "
     "mcp_servers . \"d e\" . env ]\nP=\"/9\"\n[[mcp_servers.l]]\ncommand='/5'\n"},
    {"toml-texts", CONFIG_TOML,
     "[mcp_servers.f]\nargs = [\"\"\"\n/a\\\n   b\"\"\", '''/c'd''', \"\\u00e9\\t\\\"\", 1979-05-27T07:32:00Z, 0x1F, "
     "true]\n",
     "f|args[0]|/ab\nf|args[1]|/c'd\nf|args[2]|\303\251\t\"\n", "/ab", "/z",
     "[mcp_servers.f]\nargs = [\"/z\", '''/c'd''', \"\\u00e9\\t\\\"\", 1979-05-27T07:32:00Z, 0x1F, true]\n"},
    {"json-unseen", CONFIG_JSON, "{\"mcpServers\":{\"f\":{\"command\":\"/x\"}}}", "f|command|/x\n", "/x",
     "\xf3\xa0\x81\x81\xe2\x80\xae", "{\"mcpServers\":{\"f\":{\"command\":\"\\udb40\\udc41\\u202e\"}}}"},
    {"toml-unseen", CONFIG_TOML, "[mcp_servers.f]\ncommand = \"/x\"\n", "f|command|/x\n", "/x",
     "\xf3\xa0\x81\x81\xe2\x80\xae", "[mcp_servers.f]\ncommand = \"\\U000e0041\\u202e\"\n"},
    {"toml-crlf", CONFIG_TOML, "[mcp_servers.f]\r\ncommand = \"/x\"\r\n", "f|command|/x\n", "/x", "/y",
     "[mcp_servers.f]\r\ncommand = \"/y\"\r\n"},
    {"toml-empty", CONFIG_TOML, "", "", NULL, NULL, NULL},
    {"toml-open", CONFIG_TOML, "[mcp_servers.f]\ncommand = \"/x\n", NULL, NULL, NULL, NULL},
    {"toml-two", CONFIG_TOML, "a = 1 b = 2\n", NULL, NULL, NULL, NULL},
    {"toml-escape", CONFIG_TOML, "a = \"\\q\"\n", NULL, NULL, NULL, NULL},
    {"toml-header", CONFIG_TOML, "[a\nb=1\n", NULL, NULL, NULL, NULL},
};

static void texts_are_found_and_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seen s = {.all = BUF(1 << 16), .from = rows[i].from, .to = rows[i].to};
        const struct config_walk walk = {note, &s};
        struct buf out = BUF(1 << 16);
        char why[160] = "";
        int r = config_servers(rows[i].format, str_of(rows[i].file), &walk, &out, why, sizeof why);
        if (!rows[i].seen) {
            if (r != -EBADMSG || !strstr(why, "(line "))
                fail_msg("%s: %d %s", rows[i].name, r, why);
        } else if (r != (rows[i].from != NULL) || strcmp(buf_cstr(&s.all), rows[i].seen) != 0 ||
                   strcmp(buf_cstr(&out), rows[i].out ? rows[i].out : rows[i].file) != 0) {
            fail_msg("%s: %d %s\n%s\n%s", rows[i].name, r, why, buf_cstr(&s.all), buf_cstr(&out));
        }
        buf_free(&s.all);
        buf_free(&out);
    }
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    for (int toml = 0; toml < 2; toml++) {
        struct seen s = {.all = BUF(1 << 16)};
        const struct config_walk walk = {note, &s};
        struct buf out = BUF(1 << 20), in = BUF(1 << 20);
        char why[160] = "";
        buf_text(&in, toml ? "a = " : "");
        for (int i = 0; i < 100000; i++)
            buf_char(&in, '[');
        assert_int_equal(config_servers(toml ? CONFIG_TOML : CONFIG_JSON, buf_view(&in), &walk, &out, why, sizeof why),
                         -EBADMSG);
        assert_non_null(strstr(why, "deeply"));
        buf_free(&in);
        buf_free(&out);
        buf_free(&s.all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_found_and_replaced),
                                       cmocka_unit_test(deep_nesting_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
