/*
 * Build-time program: reads profiles/sets/NAME.yaml and writes them as C data. A name that is no valid rule for hosts
 * is an error of the build.
 *
 *     set_compile OUT.c SET...      (paths of YAML files; names are their base names)
 */
#include <stdio.h>
#include <stdlib.h>

#include "match/host.h"
#include "policy/text/node.h"

enum { MOST = 64 << 10 };

static _Noreturn void wrong(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

static struct str read_file(const char *path)
{
    static char text[MOST];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (!f || ferror(f) || !feof(f))
        wrong(path, "not readable, or too long");
    fclose(f);
    return (struct str){text, n};
}

/* "profiles/sets/npm.yaml" -> npm */
static struct str name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str s = str_of(slash ? slash + 1 : path);
    if (str_ends(s, STR(".yaml")))
        s.n -= strlen(".yaml");
    return s;
}

static void compile(FILE *out, const char *path, int number)
{
    struct arena *mem = arena_new(1u << 20);
    struct err e = {0};
    struct node root;

    if (!mem || node_read(path, read_file(path), "", mem, &root, &e) < 0)
        wrong(path, e.text);
    const struct node *hosts = root.kind == NODE_MAP && root.n == 1 ? node_get(&root, "hosts") : NULL;
    if (!hosts || hosts->kind != NODE_LIST || hosts->n == 0)
        wrong(path, "a set is 'hosts:' and a list of names");
    fprintf(out, "static const char *const hosts_%d[] = {\n", number);
    for (size_t i = 0; i < hosts->n; i++) {
        char canonical[HOST_RULE_TEXT];
        struct host_rule rule;
        struct str text = hosts->items[i].text;
        if (hosts->items[i].kind != NODE_SCALAR || host_rule_parse(text, RULE_ALLOW, &rule, &e) < 0)
            wrong(path, e.text[0] ? e.text : "a host is a text");
        host_rule_print(&rule, canonical);
        if (!str_is(text, canonical) || rule.match == MATCH_ANY)
            wrong(path, "hosts are written in their canonical form, and '*' cannot be a member of a set");
        fprintf(out, "    \"%s\",\n", canonical);
    }
    fputs("};\n", out);
    arena_free(mem);
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "wb") : NULL;

    if (!out) {
        fprintf(stderr, "usage: set_compile OUT.c SET...\n");
        return 1;
    }
    fputs("/* Written by set_compile out of profiles/sets/; not to be edited. */\n#include \"policy/set.h\"\n\n", out);
    for (int i = 2; i < argc; i++)
        compile(out, argv[i], i);
    fputs("const struct host_set host_set_table[] = {\n", out);
    for (int i = 2; i < argc; i++) {
        struct str name = name_of(argv[i]);
        fprintf(out, "    {\"%.*s\", hosts_%d, sizeof hosts_%d / sizeof *hosts_%d},\n", (int)name.n, name.p, i, i, i);
    }
    fputs("    {NULL, NULL, 0},\n};\n", out);
    return fclose(out) == 0 ? 0 : 1;
}
