/*
 * Unpacks kernels. A distribution's kernel unpacks itself before it boots, which takes most of an emulated machine's
 * start; here the system's own tool does it once. The result is an ELF file that qemu starts by its PVH entry
 * (Documentation/arch/x86/boot.rst, xen/include/public/elfnote.h). It runs at its link address, because it is the
 * unpacking that would have moved it.
 */
#include "backends/vm/vm.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "backends/tools/tool.h"

enum { KERNEL_PATIENCE_MS = 60000, PHYS32_ENTRY = 18, PAYLOAD_AT = 0x248, BOOT_VERSION = 0x208 };

static uint32_t number_at(const char *p, size_t at, unsigned bytes)
{
    uint32_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | (unsigned char)p[at + bytes];
    return v;
}

/* Whether the notes at `p` contain the entry. */
static bool notes_have_entry(const char *p, size_t n)
{
    Elf64_Nhdr h;
    while (n >= sizeof h) {
        memcpy(&h, p, sizeof h);
        uint64_t name = ((uint64_t)h.n_namesz + 3) & ~3ull,
                 whole = sizeof h + name + (((uint64_t)h.n_descsz + 3) & ~3ull);
        if (whole > n)
            return false;
        if (h.n_type == PHYS32_ENTRY && h.n_namesz == 4 && memcmp(p + sizeof h, "Xen", 4) == 0)
            return true;
        p += whole;
        n -= (size_t)whole;
    }
    return false;
}

bool kernel_has_entry(const char *p, size_t n)
{
    Elf64_Ehdr h;
    Elf64_Phdr one;
    if (n < sizeof h)
        return false;
    memcpy(&h, p, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_X86_64 ||
        h.e_phentsize != sizeof one)
        return false;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        if (h.e_phoff > n || (uint64_t)i * sizeof one + sizeof one > n - h.e_phoff)
            return false;
        memcpy(&one, p + h.e_phoff + i * sizeof one, sizeof one);
        if (one.p_type == PT_NOTE && one.p_offset <= n && one.p_filesz <= n - one.p_offset &&
            notes_have_entry(p + one.p_offset, (size_t)one.p_filesz))
            return true;
    }
    return false;
}

/* Compression formats, their tools, and the tools' options. */
static const struct packing {
    const char *magic, *tool, *suffix, *words;
    unsigned n_magic, size_bytes; /* size_bytes: size of the length field that the kernel's build appends */
} packings[] = {{"\375"
                 "7zXZ",
                 "xz", "xz", "--single-stream", 5, 4},
                {"\050\265\057\375", "zstd", "zst", "-q", 4, 4},
                {"\002!L\030", "lz4", "lz4", "-q", 4, 4},
                {"\037\213\010", "gzip", "gz", "-q", 3, 0}};

bool kernel_payload(const struct buf *kernel, struct str *ret)
{
    if (kernel->n < 0x264 || memcmp(kernel->p + 0x202, "HdrS", 4) != 0 || number_at(kernel->p, 0x206, 2) < BOOT_VERSION)
        return false;
    uint64_t sectors = (unsigned char)kernel->p[0x1f1];
    uint64_t at = ((sectors ? sectors : 4) + 1) * 512 + number_at(kernel->p, PAYLOAD_AT, 4);
    uint64_t n = number_at(kernel->p, PAYLOAD_AT + 4, 4);
    if (n < 16 || at > kernel->n || n > kernel->n - at)
        return false;
    *ret = (struct str){kernel->p + at, (size_t)n};
    return true;
}

static int write_all(const char *path, struct str bytes)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    for (size_t at = 0; fd >= 0 && at < bytes.n;) {
        ssize_t n = write(fd, bytes.p + at, bytes.n - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return fd < 0 ? -errno : 0;
}

int kernel_unpack(const struct buf *kernel, const char *dir, struct arena *mem, struct buf *out)
{
    struct str payload;
    if (!kernel_payload(kernel, &payload))
        return -EOPNOTSUPP;
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        const struct packing *p = &packings[i];
        if (memcmp(payload.p, p->magic, p->n_magic) != 0)
            continue;
        const char *tool = tool_find(mem, p->tool);
        const char *path = arena_printf(mem, "%s/packed-%d.%s", dir, (int)getpid(), p->suffix);
        const char *const argv[] = {tool, p->words, "-dc", path, NULL};
        if (!tool || !path)
            return -EOPNOTSUPP;
        /* of the compressed data; gzip's own trailer has it, too */
        uint32_t size = number_at(payload.p, payload.n - 4, 4);
        payload.n -= p->size_bytes;
        int r = write_all(path, payload);
        if (r == 0)
            r = tool_ask(argv, KERNEL_PATIENCE_MS, out);
        (void)unlink(path);
        return r == 0 && out->n == size && kernel_has_entry(out->p, out->n) ? 0 : -EOPNOTSUPP;
    }
    return -EOPNOTSUPP;
}
