/* What the files of the vm engine share. */
#pragma once
#include "base/buf.h"
#include "backends/engine.h"
#include "protocol/mux.h"

/* vm_files.c: the kernel and its initial file system. */

/* Finds the kernel that policy and machine have, and its modules; without them an ERR_CANNOT that says what would help. */
int machine_find(const struct policy *p, bool emulated, struct arena *mem, struct machine_fact *ret, struct err *e);
/* Makes what is missing of kernel-KEY and initrd-KEY in `dir`. */
int machine_files(const struct machine_fact *f, const char *dir, struct arena *mem, struct err *e);
/* One entry of a cpio archive, "newc"; `name` NULL ends the archive. */
void cpio_put(struct buf *out, const char *name, uint32_t mode, const void *bytes, size_t n);

/* vm_kernel.c: for emulated machines, which take seconds to unpack a kernel themselves. */

/* What qemu can start of the bytes of a kernel's file, or -EOPNOTSUPP: as it is packed, or without the tool, it cannot be had. */
int kernel_unpack(const struct buf *kernel, const char *dir, struct arena *mem, struct buf *out);
/* Where the packed part is, by the file's own word. */
bool kernel_payload(const struct buf *kernel, struct str *ret);
/* Whether an ELF file has the entry that qemu starts it by. */
bool kernel_has_entry(const char *p, size_t n);

/* vm_bridge.c: the process between pinfold and the machine. */

struct bridge {
    int control;     /* to pinfold: plays pid 1 */
    int box;         /* the control stream of the box around the machine */
    int line, words; /* the serial line; what qemu and the kernel's console say */
    int stdio[3];    /* of the one command; -1: a terminal's */
    const struct start_request *ask;
    const struct plan_image *guest; /* the plan, as it is in the machine */
    struct mux_config config;
};
/* What the bridge first says on `control`: how the start went. */
struct bridge_word {
    uint32_t kind, a, b; /* FRAME_READY; FRAME_VERDICT with a step or WHERE_* and errno */
    char text[900];      /* the last of what the machine said */
};
_Noreturn void bridge_main(const struct bridge *b);
