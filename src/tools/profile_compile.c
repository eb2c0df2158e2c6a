/*
 * Build-time program: reads profiles/NAME.yaml with pinfold's own parser, and writes them as C data: the text, for
 * people, and the statements, for the start. So an error in a profile is an error of the build.
 *
 *     profile_compile OUT.c PART... -- PROFILE...      (paths of YAML files; names are their base names)
 */
#include <stdio.h>
#include <stdlib.h>

#include "policy/said.h"

static struct str read_file(const char *path)
{
    static char text[MAX_POLICY_TEXT + 1];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (!f || ferror(f) || !feof(f)) {
        fprintf(stderr, "%s: not readable, or too long\n", path);
        exit(1);
    }
    fclose(f);
    text[n] = 0;
    return (struct str){text, n};
}

static void put_string(FILE *out, struct str s)
{
    fputc('"', out);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n' && i + 1 < s.n)
            fputs("\\n\"\n    \"", out);
        else if (c < 0x20 || c >= 0x7F || c == '"' || c == '\\' || c == '?')
            fprintf(out, "\\%03o", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

/* The strings of the statements, one after the other; where they begin and how long they are says each statement. */
static void put_words(FILE *out, struct str name, const struct said_list *l)
{
    fprintf(out, ";\nstatic const char words_%.*s[] =", (int)name.n, name.p);
    for (size_t i = 0; i < l->n; i++) {
        fputs("\n    ", out);
        put_string(out, l->items[i].a);
        fputs(" \"\\0\" ", out); /* apart, for what takes a string with its end */
        put_string(out, l->items[i].b);
        fputs(" \"\\0\"", out);
    }
}

/* "profiles/base.yaml" -> base */
static struct str name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str s = str_of(slash ? slash + 1 : path);
    if (str_ends(s, STR(".yaml")))
        s.n -= strlen(".yaml");
    return s;
}

/* Sorts statements of one key by content, so that merging finds them sorted. Statements of other keys keep their
   places. */
static void sort_lists(struct said_list *l)
{
    for (size_t i = 1; i < l->n; i++) {
        enum policy_type t = key_table[l->items[i].key].type;
        for (size_t k = i; (t == TYPE_PATHS || t == TYPE_NAMES || t == TYPE_GUARDS) && k > 0 &&
                           l->items[k - 1].key == l->items[i].key && strcmp(l->items[k - 1].a.p, l->items[k].a.p) > 0;
             k--) {
            struct said swap = l->items[k];
            l->items[k] = l->items[k - 1];
            l->items[k - 1] = swap;
        }
    }
}

static void compile(FILE *out, const char *path)
{
    struct str name = name_of(path), text = read_file(path);
    struct said_list list = {.mem = arena_new(16u << 20)};
    struct err e = {0};
    struct node root;
    struct source src = {.file = path, .list = &list, .e = &e};

    if (!list.mem || node_read(path, text, "", list.mem, &root, &e) < 0 || read_policy(&src, &root) < 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    sort_lists(&list);
    fprintf(out, "static const char text_%.*s[] =\n    ", (int)name.n, name.p);
    put_string(out, text);
    put_words(out, name, &list);
    fprintf(out, ";\nstatic const struct profile_said said_%.*s[] = {\n", (int)name.n, name.p);
    for (size_t i = 0, at = 0; i < list.n; i++) {
        const struct said *s = &list.items[i];
        if (s->a.n > UINT16_MAX || s->b.n > UINT16_MAX || s->line > UINT16_MAX || s->column > UINT16_MAX) {
            fprintf(stderr, "%s:%u: too long\n", path, s->line);
            exit(1);
        }
        fprintf(out, "    {%u, %u, %zu, %zu, %zu, %u, %u},\n", s->key, s->bits, at, s->a.n, s->b.n, s->line, s->column);
        at += s->a.n + s->b.n + 2;
    }
    fputs("};\n", out);
    arena_free(list.mem);
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "wb") : NULL;
    bool part = true;

    if (!out) {
        fprintf(stderr, "usage: profile_compile OUT.c PART... -- PROFILE...\n");
        return 1;
    }
    fputs("/* Written by profile_compile out of profiles/; not to be edited. */\n#include \"policy/profile.h\"\n\n",
          out);
    for (int i = 2; i < argc; i++) {
        if (!same(argv[i], "--"))
            compile(out, argv[i]);
    }
    fputs("const struct profile profile_table[] = {\n", out);
    for (int i = 2; i < argc; i++) {
        struct str name = name_of(argv[i]);
        if (same(argv[i], "--")) {
            part = false;
            continue;
        }
        fprintf(out,
                "    {\"%.*s\", {text_%.*s, sizeof text_%.*s - 1}, words_%.*s, said_%.*s, "
                "sizeof said_%.*s / sizeof(struct profile_said), %s},\n",
                (int)name.n, name.p, (int)name.n, name.p, (int)name.n, name.p, (int)name.n, name.p, (int)name.n, name.p,
                (int)name.n, name.p, part ? "true" : "false");
    }
    fputs("    {NULL, {NULL, 0}, NULL, NULL, 0, false},\n};\n", out);
    return fclose(out) == 0 ? 0 : 1;
}
