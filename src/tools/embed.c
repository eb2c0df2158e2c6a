/*
 * Build-time program: writes texts as C data, an array of structures of a name and a text.
 *
 *     embed OUT.c HEADER STRUCTURE ARRAY FILE...      (names are the files' base names without their suffix)
 */
#include <stdio.h>
#include <string.h>

static int embed(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!in || !dot) {
        fprintf(stderr, "%s: not readable\n", path);
        return 1;
    }
    fprintf(out, "    {\"%.*s\",\n     \"", (int)(dot - name), name);
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
    FILE *out = argc > 5 ? fopen(argv[1], "wb") : NULL;
    int no = !out;
    if (out)
        fprintf(out, "/* Written by embed; not to be edited. */\n#include \"%s\"\n\nconst struct %s %s[] = {\n",
                argv[2], argv[3], argv[4]);
    for (int i = 5; !no && i < argc; i++)
        no = embed(out, argv[i]);
    if (!no)
        fputs("    {NULL, NULL},\n};\n", out);
    return no || fclose(out) ? 1 : 0;
}
