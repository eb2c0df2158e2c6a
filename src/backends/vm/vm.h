/* What the files of the vm engine share. */
#pragma once
#include "base/buf.h"
#include "backends/engine.h"
#include "protocol/mux.h"

/* vm_files.c: the kernel and its initramfs. */

/* Finds the kernel of policy or machine, and its modules; otherwise ERR_CANNOT with a remedy. */
int machine_find(const struct policy *p, bool emulated, struct arena *mem, struct machine_fact *ret, struct err *e);
/* Creates kernel-KEY and initrd-KEY in `dir` if missing. */
int machine_files(const struct machine_fact *f, const char *dir, struct arena *mem, struct err *e);
/* One entry of a cpio archive, "newc"; `name` NULL ends the archive. */
void cpio_put(struct buf *out, const char *name, uint32_t mode, const void *bytes, size_t n);

/* vm_kernel.c: for emulated machines, which would take seconds to unpack a kernel. */

/* Unpacks the kernel's file to what qemu can start. -EOPNOTSUPP: not possible, or the tool is missing; use the file
   as it is. */
int kernel_unpack(const struct buf *kernel, const char *dir, struct arena *mem, struct buf *out);
/* Finds the packed part by the kernel's header. */
bool kernel_payload(const struct buf *kernel, struct str *ret);
/* Whether an ELF file has the entry point by which qemu starts it (PVH). */
bool kernel_has_entry(const char *p, size_t n);

/* vm_bridge.c: the process between pinfold and the machine. */

struct bridge {
    int control;     /* to pinfold: plays the part of pid 1 */
    int box;         /* the control socket of the box around the machine */
    int line, words; /* the serial line; messages of qemu and the kernel's console */
    int stdio[3];    /* of the single command; -1: the terminal */
    const struct start_request *ask;
    const struct plan_image *guest; /* the plan as run in the machine */
    struct mux_config config;
};
/* The bridge's first message on `control`: the result of the start. */
struct bridge_word {
    uint32_t kind, a, b; /* FRAME_READY; FRAME_VERDICT with a step or WHERE_* and errno */
    char text[900];      /* the last output of the machine */
};
_Noreturn void bridge_main(const struct bridge *b);
