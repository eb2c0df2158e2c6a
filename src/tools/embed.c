/*
 * Build-time program: writes the texts of profiles/agents/ as C data.
 *
 *     embed OUT.c FILE...      (paths of YAML files; names are their base names)
 */
#include <stdio.h>
#include <string.h>

static int embed(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (!in || n < 6) {
        fprintf(stderr, "%s: not readable\n", path);
        return 1;
    }
    fprintf(out, "    {\"%.*s\",\n     \"", (int)(n - 5), name); /* less ".yaml" */
    for (int c; (c = getc(in)) != EOF;) {
        if (c == '\n')
            fputs("\\n\"\n     \"", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            putc(c, out);
    }
    fputs("\"},\n", out);
    return fclose(in);
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "wb") : NULL;
    int no = !out;
    if (out)
        fputs("/* Written by embed out of profiles/agents/; not to be edited. */\n#include \"agents/agents.h\"\n\n"
              "const struct agent_text agent_texts[] = {\n",
              out);
    for (int i = 2; !no && i < argc; i++)
        no = embed(out, argv[i]);
    if (!no)
        fputs("    {NULL, NULL},\n};\n", out);
    return no || fclose(out) ? 1 : 0;
}
