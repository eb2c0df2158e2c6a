/*
 * How the user installs a package: os-release files as distributions have them, and the words (os-release(5)). A name that the table does
 * not have is never guessed.
 */
#include "unit.h"

#include "user/packages.h"

static void words(void **state)
{
    (void)state;
    static const struct {
        const char *os_release, *package, *words;
        bool by_image;
    } rows[] = {
        {"ID=debian\nVERSION_ID=\"12\"\n", "bubblewrap", "apt install bubblewrap", false},
        {"ID=debian\nVERSION_ID=\"12\"\n", "docker.io", "apt install docker.io", false},
        {"ID=debian\nVERSION_ID=\"13\"\n", "docker.io", "apt install docker.io docker-cli", false},
        {"PRETTY_NAME=\"Debian GNU/Linux forky/sid\"\nID=debian\n", "docker.io", "apt install docker.io docker-cli",
         false},
        {"VERSION_ID=\"24.04\"\nID=ubuntu\nID_LIKE=debian\n", "docker.io", "apt install docker.io", false},
        {"ID=ubuntu\nID_LIKE=debian\n", "linux-image-amd64", "apt install linux-image-generic", false},
        {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22\"\n", "linux-image-amd64",
         "apt install linux-image-generic", false},
        {"ID=raspbian\nID_LIKE=debian\n", "linux-image-amd64", "apt install linux-image-amd64", false},
        {"ID=fedora\n", "docker.io", "dnf install moby-engine", false},
        {"ID=fedora\nVARIANT_ID=silverblue\n", "bubblewrap", "rpm-ostree install bubblewrap", true},
        {"ID=fedora\n", "linux-image-amd64", "on Debian the package is linux-image-amd64", false},
        {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "libsqlite3-0", "dnf install sqlite-libs", false},
        {"ID=arch\n", "libcurl4", "pacman -S curl", false},
        {"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", "qemu-system-x86", "zypper install qemu-x86",
         false},
        {"ID='alpine'\n", "qemu-system-x86", "apk add qemu-system-x86_64", false},
        {"ID=nixos\n", "bubblewrap", "on Debian the package is bubblewrap", false},
        {"# ID=debian\nID=debian\nID=arch\n", "bubblewrap", "pacman -S bubblewrap", false},
        {"XID=debian\nID_LIKEX=debian\nID", "bubblewrap", "on Debian the package is bubblewrap", false},
        {"", "podman", "on Debian the package is podman", false},
        {"ID=debian", "podman", "apt install podman", false},
        {"ID=debian\n", "no-such-package", "on Debian the package is no-such-package", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char said[PACKAGE_WORDS];
        assert_string_equal(package_words(str_of(rows[i].os_release), rows[i].by_image, rows[i].package, said),
                            rows[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
