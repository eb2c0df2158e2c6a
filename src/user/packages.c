/*
 * The command that installs a package, by the distribution that /etc/os-release names (os-release(5)). Names of packages differ: each
 * distribution's index of packages says them. One that is not in the table is not guessed.
 */
#include "user/packages.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/fd.h"

enum family { DEBIAN, UBUNTU, FEDORA, ARCH, SUSE, ALPINE, N_FAMILIES };

/* Arrays of bytes here: a pointer is a relocation, and their pages are each process's own. */
static const char commands[N_FAMILIES][16] = {
    [DEBIAN] = "apt install", [UBUNTU] = "apt install",  [FEDORA] = "dnf install",
    [ARCH] = "pacman -S",     [SUSE] = "zypper install", [ALPINE] = "apk add",
};

/* "": none of this name is known. */
static const char names[][N_FAMILIES][24] = {
    {"bubblewrap", "bubblewrap", "bubblewrap", "bubblewrap", "bubblewrap", "bubblewrap"},
    {"firejail", "firejail", "firejail", "firejail", "firejail", "firejail"},
    {"podman", "podman", "podman", "podman", "podman", "podman"},
    {"docker.io", "docker.io", "moby-engine", "docker", "docker", "docker"},
    {"qemu-system-x86", "qemu-system-x86", "qemu-system-x86-core", "qemu-system-x86", "qemu-x86", "qemu-system-x86_64"},
    {"linux-image-amd64", "linux-image-generic"},
    {"libsqlite3-0", "libsqlite3-0", "sqlite-libs", "sqlite", "libsqlite3-0", "sqlite-libs"},
    {"libcurl4", "libcurl4", "libcurl", "curl", "libcurl4", "libcurl"},
};

static const struct {
    char id[12];
    enum family family;
} known[] = {{"ubuntu", UBUNTU}, {"debian", DEBIAN}, {"fedora", FEDORA}, {"rhel", FEDORA},  {"centos", FEDORA},
             {"arch", ARCH},     {"suse", SUSE},     {"opensuse", SUSE}, {"alpine", ALPINE}};

/* The value of `key`, without quotes. The last line counts, as for a shell that reads the file. */
static struct str value_of(struct str text, struct str key)
{
    struct str value = {0};
    while (text.n) {
        struct str line = str_until(&text, '\n');
        if (!str_starts(line, key) || line.n == key.n || line.p[key.n] != '=')
            continue;
        value = str_skip(line, key.n + 1);
        if (value.n >= 2 && (value.p[0] == '"' || value.p[0] == '\'') && value.p[value.n - 1] == value.p[0])
            value = (struct str){value.p + 1, value.n - 2};
    }
    return value;
}

static bool family_among(struct str words, enum family *ret)
{
    while (words.n) {
        struct str word = str_until(&words, ' ');
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (str_is(word, known[i].id))
                return *ret = known[i].family, true;
        }
    }
    return false;
}

/* docker's client is a package of its own from Debian 13 on; testing and sid have no version. */
static bool has_own_client(enum family family, struct str text)
{
    char number[8];
    struct str version = value_of(text, STR("VERSION_ID"));
    if (family != DEBIAN || !str_is(value_of(text, STR("ID")), "debian"))
        return false;
    (void)snprintf(number, sizeof number, "%.*s", version.n < 7 ? (int)version.n : 7, version.n ? version.p : "");
    return !version.n || atoi(number) >= 13;
}

const char *package_words(struct str os_release, bool by_image, const char *debian, char ret[PACKAGE_WORDS])
{
    enum family family = DEBIAN;
    const char *name = "";
    bool is_known = family_among(value_of(os_release, STR("ID")), &family) ||
                    family_among(value_of(os_release, STR("ID_LIKE")), &family);
    for (size_t i = 0; is_known && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i][DEBIAN], debian) == 0)
            name = names[i][family];
    }
    if (!*name)
        (void)snprintf(ret, PACKAGE_WORDS, "on Debian the package is %s", debian);
    else
        (void)snprintf(ret, PACKAGE_WORDS, "%s %s%s",
                       family == FEDORA && by_image ? "rpm-ostree install" : commands[family], name,
                       strcmp(name, "docker.io") == 0 && has_own_client(family, os_release) ? " docker-cli" : "");
    return ret;
}

const char *package_install(const char *debian, char ret[PACKAGE_WORDS])
{
    char text[4096];
    if (sys_read_text(AT_FDCWD, "/etc/os-release", text, sizeof text) <= 0)
        (void)sys_read_text(AT_FDCWD, "/usr/lib/os-release", text, sizeof text);
    return package_words(str_of(text), access("/run/ostree-booted", F_OK) == 0, debian, ret);
}
