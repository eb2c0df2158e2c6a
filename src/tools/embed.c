/*
 * Build-time program: writes texts as C data: an array of structures of a name and a text, or one text.
 *
 *     embed OUT.c HEADER STRUCTURE ARRAY FILE...      (names are the files' base names without their suffix)
 *     embed OUT.c --whole HEADER STRUCTURE ARRAY FILE...   (with it)
 *     embed OUT.c --text NAME FILE                    (the array NAME)
 */
#include <stdio.h>
#include <string.h>

static void put_content(FILE *out, FILE *in)
{
    for (int c; (c = getc(in)) != EOF;) {
        if (c == '\n')
            fputs("\\n\"\n     \"", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            putc(c, out);
    }
}

static int embed(FILE *out, const char *path, int whole)
{
    FILE *in = fopen(path, "rb");
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = whole ? name + strlen(name) : strrchr(name, '.');
    if (!in || !dot) {
        fprintf(stderr, "%s: not readable\n", path);
        return 1;
    }
    fprintf(out, "    {\"%.*s\",\n     \"", (int)(dot - name), name);
    put_content(out, in);
    fputs("\"},\n", out);
    return fclose(in);
}

/* No include says so: the array is declared where it is used. */
static int embed_text(FILE *out, const char *array, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "%s: not readable\n", path);
        return 1;
    }
    fprintf(out, "/* Written by embed; not to be edited. */\nextern const char %s[];\nconst char %s[] =\n    \"", array,
            array);
    put_content(out, in);
    fputs("\";\n", out);
    return fclose(in);
}

int main(int argc, char **argv)
{
    FILE *out = argc > 4 ? fopen(argv[1], "wb") : NULL;
    int no = !out, whole = out && strcmp(argv[2], "--whole") == 0;
    if (whole && argc < 6)
        return 1;
    argv += whole;
    argc -= whole;
    if (out && argc == 5 && strcmp(argv[2], "--text") == 0)
        return embed_text(out, argv[3], argv[4]) || fclose(out) ? 1 : 0;
    if (out)
        fprintf(out, "/* Written by embed; not to be edited. */\n#include \"%s\"\n\nconst struct %s %s[] = {\n",
                argv[2], argv[3], argv[4]);
    for (int i = 5; !no && i < argc; i++)
        no = embed(out, argv[i], whole);
    if (!no)
        fputs("    {NULL, NULL},\n};\n", out);
    return no || fclose(out) ? 1 : 0;
}
