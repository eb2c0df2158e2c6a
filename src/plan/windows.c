/*
 * Translates Windows paths to Linux ones and back, as WSL mounts drives. Pure; what Windows would read as a device or
 * another name is refused.
 */
#include "plan/windows.h"

#include "match/path.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool windows_is_path(const char *path)
{
    return path[0] == '\\' || (is_letter(path[0]) && path[1] == ':');
}

static bool same_name(struct str name, const char *word)
{
    size_t i = 0;
    for (; i < name.n && word[i]; i++) {
        if (small(name.p[i]) != word[i])
            return false;
    }
    return i == name.n && !word[i];
}

/* CON, con.txt and COM1 are devices in any directory. */
static bool is_reserved(struct str name)
{
    static const char words[][8] = {"con",  "prn",  "aux",  "nul",  "com1", "com2", "com3",   "com4",
                                    "com5", "com6", "com7", "com8", "com9", "lpt1", "lpt2",   "lpt3",
                                    "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9", "conin$", "conout$"};
    struct str rest = name, stem = str_until(&rest, '.');
    while (stem.n && stem.p[stem.n - 1] == ' ')
        stem.n--;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (same_name(stem, words[i]))
            return true;
    }
    return false;
}

static int check_name(struct str name, const char *path, struct err *e)
{
    if (!name.n || str_is(name, ".") || str_is(name, ".."))
        return 0;
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == ':')
            return err_say(e, ERR_POLICY, "'%s': a colon after the drive names a file stream, which has no path here",
                           path);
        if ((unsigned char)name.p[i] < ' ' || strchr("<>\"|?*", name.p[i]))
            return err_say(e, ERR_POLICY, "'%s': Windows names cannot contain control characters or any of <>\"|?*",
                           path);
    }
    if (name.p[name.n - 1] == '.' || name.p[name.n - 1] == ' ')
        return err_say(e, ERR_POLICY, "'%s': Windows drops a dot or space at the end of a name; remove it", path);
    if (is_reserved(name))
        return err_say(e, ERR_POLICY, "'%s': '%.*s' is a device on Windows", path, (int)name.n, name.p);
    return 0;
}

/* Checks all names after the drive. */
static int check_windows_names(const char *rest, const char *path, struct err *e)
{
    while (*rest) {
        size_t n = strcspn(rest, "/\\");
        int r = check_name((struct str){rest, n}, path, e);
        if (r < 0)
            return r;
        rest += n;
        rest += *rest != 0;
    }
    return 0;
}

/* The directory of drives; NULL without memory. */
static const char *root_of(enum windows_style style)
{
    return style == WINDOWS_WSL ? "/mnt/" : "/";
}

/* "\\?\C:\x" is a longer form of "C:\x". */
static const char *skip_long(const char *path)
{
    bool longer = is_separator(path[0]) && is_separator(path[1]) && path[2] == '?' && is_separator(path[3]);
    return longer && is_letter(path[4]) && path[5] == ':' ? path + 4 : path;
}

int windows_to_linux(const char *path, enum windows_style style, struct arena *mem, const char **ret, struct err *e)
{
    const char *at = skip_long(path);
    if (is_separator(at[0]) && is_separator(at[1]) && (at[0] == '\\' || at[1] == '\\' || windows_is_path(path)))
        return err_say(e, ERR_POLICY, "'%s' is a network path or a device: give its share a drive letter first", path);
    if (at[0] == '/' && at[1] != '/' && !strchr(at, '\\')) {
        *ret = path_clean(mem, at);
        return *ret ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot translate '%s'", path);
    }
    if (at[0] == '/' && at[1] == '/')
        return err_say(e, ERR_POLICY, "'%s' is a network path: give its share a drive letter first", path);
    if (!is_letter(at[0]) || at[1] != ':')
        return err_say(e, ERR_POLICY, "'%s' has no drive letter; write it as C:\\Users\\name", path);
    if (at[2] && !is_separator(at[2]))
        return err_say(e, ERR_POLICY, "'%s' is relative to the current directory of drive %c:; write %c:\\...", path,
                       at[0], at[0]);
    int r = check_windows_names(at + 2, path, e);
    char *out = r == 0 ? arena_printf(mem, "%s%c%s", root_of(style), small(at[0]), at[2] ? at + 2 : "") : NULL;
    if (!out)
        return r < 0 ? r : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot translate '%s'", path);
    for (char *p = out; *p; p++)
        *p = *p == '\\' ? '/' : *p;
    const char *clean = path_clean(mem, out);
    if (!clean)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot translate '%s'", path);
    /* ".." may not lead out of the drive; on Windows it would stop there. */
    size_t n = strlen(root_of(style)) + 1;
    if (strncmp(clean, out, n) != 0 || (clean[n] && clean[n] != '/'))
        return err_say(e, ERR_POLICY, "'%s' leads above the drive", path);
    *ret = clean;
    return 0;
}

int windows_from_linux(const char *path, enum windows_style style, struct arena *mem, const char **ret)
{
    const char *root = root_of(style);
    size_t n = strlen(root);
    if (strncmp(path, root, n) != 0 || !(path[n] >= 'a' && path[n] <= 'z') || (path[n + 1] && path[n + 1] != '/'))
        return -ENOENT;
    if (strchr(path, '\\') || check_windows_names(path + n + 1, path, NULL) < 0)
        return -ENOENT;
    char *out = arena_printf(mem, "%c:%s", path[n] - 'a' + 'A', path[n + 1] ? path + n + 1 : "\\");
    if (!out)
        return -ENOMEM;
    for (char *p = out; *p; p++)
        *p = *p == '/' ? '\\' : *p;
    *ret = out;
    return 0;
}

int windows_split_mount(const char *text, enum windows_style style, struct arena *mem, const char **ret_src,
                        const char **ret_dst, bool *ret_read_only, struct err *e)
{
    const char *drive = skip_long(text);
    const char *colon = strchr(windows_is_path(drive) && drive[0] != '\\' ? drive + 2 : drive, ':');
    if (!colon || colon == text)
        return err_say(e, ERR_POLICY, "'%s' is not SRC:DST[:ro]", text);
    const char *src = arena_str(mem, (struct str){text, (size_t)(colon - text)});
    const char *end = strrchr(colon + 1, ':');
    *ret_read_only = end && strcmp(end, ":ro") == 0;
    if (end && !*ret_read_only && strcmp(end, ":rw") != 0)
        return err_say(e, ERR_POLICY,
                       "'%s': the target must be a path in the container, such as /work, optionally with :ro or :rw",
                       text);
    const char *dst = arena_str(mem, (struct str){colon + 1, end ? (size_t)(end - colon - 1) : strlen(colon + 1)});
    if (!src || !dst)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot translate '%s'", text);
    if (dst[0] != '/' || strchr(dst, '\\'))
        return err_say(e, ERR_POLICY, "'%s': the target must be a path in the container, such as /work", text);
    int r = windows_to_linux(src, style, mem, ret_src, e);
    return r < 0 ? r : windows_to_linux(dst, style, mem, ret_dst, e);
}
