/*
 * The parts of the vm engine that no machine is needed for: qemu's command line, the archive it boots, the messages and lanes of
 * the line to it. The pump is tested against itself: two ends of a socket pair.
 */
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "backends/tools/tool.h"
#include "backends/vm/vm.h"
#include "pump/pump.h"
#include "test_plan_host.h"
#include "protocol/control.h"

/* ---- the command line ---- */

static void command_line(const char *policy, struct machine_fact machine, const char *expected)
{
    struct host h;
    struct plan *plan = NULL;
    struct err e = {0};
    const char *const *argv;
    auto_buf struct buf out = BUF(64u << 10);
    host_begin(&h);
    assert_true(host_read(&h, policy));
    machine.kernel = "/boot/vmlinuz";
    machine.modules = "/lib/modules/x";
    memcpy(machine.key, "0123456789abcdef", 17);
    h.facts.engine = "vm";
    h.facts.machine = &machine;
    h.facts.can |= F(CGROUP_LIMITS) | F(LIMIT_CPU);
    if (plan_make(&h.policy, &h.facts, &h.ask, &plan, &e) < 0)
        fail_msg("%s", e.text);
    const struct tool_ask ask = {.program = "/usr/bin/qemu-system-x86_64"};
    assert_int_equal(engine_vm.argv(plan, &ask, h.mem, &argv, &e), 0);
    for (; *argv; argv++)
        buf_printf(&out, "%s%s", *argv, argv[1] ? argv[1][0] == '-' ? "\n" : " " : "\n");
    if (!same(buf_cstr(&out), expected))
        fail_msg("got:\n%s", buf_cstr(&out));
    plan_free(plan);
    host_end(&h);
}

static void argv(void **state)
{
    (void)state;
    command_line(
        "state /home/u/.local/state\n", (struct machine_fact){.memory_mib = 2048, .cpus = 2, .tsc_khz = 2000000},
        "/usr/bin/qemu-system-x86_64\n-accel tcg,thread=single\n-cpu max\n-M microvm,acpi=on,rtc=on\n-m 2240M\n-smp 2\n"
        "-nodefaults\n-no-user-config\n-no-reboot\n-display none\n"
        "-kernel /run/pinfold-vm/kernel-0123456789abcdef\n-initrd /run/pinfold-vm/initrd-0123456789abcdef\n"
        "-append console=ttyS0 quiet panic=-1 reboot=t cryptomgr.notests tsc_early_khz=2000000\n"
        "-chardev file,id=console,path=/proc/self/fd/2\n-serial chardev:console\n-device virtio-serial-device\n"
        "-chardev socket,id=line,fd=0\n-device virtserialport,chardev=line,name=pinfold\n"
        "-fsdev local,id=root,path=/,security_model=none,multidevs=remap\n"
        "-device virtio-9p-device,fsdev=root,mount_tag=root\n");
    command_line(
        "state /home/u/.local/state\nnet allow\nallow a.test\npublish 127.0.0.1:8080:80\nlimit memory 134217728\n"
        "limit cpus 1500\n",
        (struct machine_fact){.memory_mib = 2048, .cpus = 4, .kvm = true},
        "/usr/bin/qemu-system-x86_64\n-accel kvm\n-cpu host\n-M microvm,acpi=on,rtc=on\n-m 320M\n-smp 2\n"
        "-nodefaults\n-no-user-config\n-no-reboot\n-display none\n"
        "-kernel /run/pinfold-vm/kernel-0123456789abcdef\n-initrd /run/pinfold-vm/initrd-0123456789abcdef\n"
        "-append console=ttyS0 quiet panic=-1 reboot=t cryptomgr.notests\n"
        "-chardev file,id=console,path=/proc/self/fd/2\n-serial chardev:console\n-device virtio-serial-device\n"
        "-chardev socket,id=line,fd=0\n-device virtserialport,chardev=line,name=pinfold\n"
        "-fsdev local,id=root,path=/,security_model=none,multidevs=remap\n"
        "-device virtio-9p-device,fsdev=root,mount_tag=root\n"
        "-netdev user,id=net,ipv6=off,hostfwd=tcp:127.0.0.1:61100-10.0.2.15:61100\n-device "
        "virtio-net-device,netdev=net\n");
}

/* ---- the archive ---- */

static void archive(void **state)
{
    (void)state;
    auto_buf struct buf out = BUF(4096);
    cpio_put(&out, "d", 040755, NULL, 0);
    cpio_put(&out, "file", 0100644, "hello", 5);
    cpio_put(&out, NULL, 0, NULL, 0);
    assert_int_equal(out.n % 4, 0);
    assert_memory_equal(out.p, "07070100000000000041ed", 22);
    assert_memory_equal(out.p + 110, "d\0", 2);
    const char *second = out.p + 112;
    assert_memory_equal(second,
                        "0707010000000000"
                        "0081a4",
                        22);
    assert_memory_equal(second + 54, "00000005", 8); /* size */
    assert_memory_equal(second + 94, "00000005", 8); /* of the name */
    assert_string_equal(second + 110, "file");
    assert_memory_equal(second + 116, "hello\0\0\0", 8);
    assert_string_equal(second + 124 + 110, "TRAILER!!!");
}

/* ---- messages ---- */

/* What is read of a kernel's file is checked: another one's numbers lead nowhere. */
static void kernels(void **state)
{
    (void)state;
    static char file[8192];
    struct buf kernel = {.p = file, .n = sizeof file}, out = BUF(1u << 20);
    struct str payload;
    auto_arena struct arena *mem = arena_new(1u << 20);
    assert_false(kernel_payload(&kernel, &payload));
    memcpy(file + 0x202, "HdrS\x0f\x02", 6);
    file[0x1f1] = 1;
    file[0x248] = 16;
    file[0x24d] = 2; /* 512 bytes */
    assert_true(kernel_payload(&kernel, &payload));
    assert_ptr_equal(payload.p, file + 1024 + 16);
    assert_int_equal(payload.n, 512);
    assert_int_equal(kernel_unpack(&kernel, "/nowhere", mem, &out), -EOPNOTSUPP);
    file[0x24e] = 1; /* beyond its end */
    assert_false(kernel_payload(&kernel, &payload));
    /* An ELF file with one note. */
    static const struct {
        Elf64_Nhdr head;
        char name[4];
        uint32_t entry;
    } note = {{4, 4, 18}, "Xen", 0x1000000};
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                    .e_machine = EM_X86_64,
                    .e_phoff = sizeof h,
                    .e_phentsize = sizeof(Elf64_Phdr),
                    .e_phnum = 1};
    Elf64_Phdr p = {.p_type = PT_NOTE, .p_offset = 200, .p_filesz = sizeof note};
    memcpy(file, &h, sizeof h);
    memcpy(file + sizeof h, &p, sizeof p);
    memcpy(file + 200, &note, sizeof note);
    assert_true(kernel_has_entry(file, sizeof file));
    assert_false(kernel_has_entry(file, 200 + sizeof note - 1));
    for (size_t n = 0; n < 200 + sizeof note; n++)
        assert_false(kernel_has_entry(file, n));
    file[200 + 8] = 17;
    assert_false(kernel_has_entry(file, sizeof file));
    p.p_offset = UINT64_MAX;
    memcpy(file + sizeof h, &p, sizeof p);
    assert_false(kernel_has_entry(file, sizeof file));
    buf_free(&out);
}

static void heads(void **state)
{
    (void)state;
    static const struct {
        struct mux_head h;
        bool guest, host; /* whether it may come from there */
    } cases[] = {{{MUX_HELLO, 0, 0, sizeof(struct mux_hello)}, true, false},
                 {{MUX_HELLO, 1, 0, sizeof(struct mux_hello)}, false, false},
                 {{MUX_HELLO, 0, 0, 1}, false, false},
                 {{MUX_CONFIG, 0, 0, sizeof(struct mux_config) + 100}, false, true},
                 {{MUX_CONFIG, 0, 0, sizeof(struct mux_config)}, false, false},
                 {{MUX_JOB, 1, 0, sizeof(struct job_image)}, false, true},
                 {{MUX_JOB, 0, 0, sizeof(struct job_image)}, false, false},
                 {{MUX_JOB, 1, 0, JOB_MAX_BYTES + 1}, false, false},
                 {{MUX_FRAME, 0, 0, sizeof(struct frame)}, true, true},
                 {{MUX_FRAME, 0, 0, sizeof(struct frame) - 1}, false, false},
                 {{MUX_DATA, 1, MUX_IN, 1}, false, true},
                 {{MUX_DATA, 1, MUX_OUT, 1}, true, false},
                 {{MUX_DATA, 1, MUX_ERR, MUX_CHUNK}, true, false},
                 {{MUX_DATA, 1, MUX_ERR, MUX_CHUNK + 1}, false, false},
                 {{MUX_DATA, 1, MUX_ERR, 0}, false, false},
                 {{MUX_DATA, 1, MUX_REPLY, 1}, false, false},
                 {{MUX_DATA, 1, MUX_TTY_IN, 1}, false, true},
                 {{MUX_DATA, 1, MUX_TTY_OUT, 1}, true, false},
                 {{MUX_DATA, 1, MUX_BACK, 1}, true, false},
                 {{MUX_EOF, 1, MUX_TTY_IN, 0}, false, true},
                 {{MUX_CREDIT, 1, MUX_BACK, 4}, false, true},
                 {{MUX_CREDIT, 1, MUX_IN, 4}, true, false},
                 {{MUX_CREDIT, 1, MUX_OUT, 4}, false, true},
                 {{MUX_EOF, 1, MUX_IN, 0}, false, true},
                 {{MUX_EOF, 1, MUX_OUT, 0}, true, false},
                 {{MUX_GONE, 1, MUX_REPLY, 0}, false, true},
                 {{MUX_GONE, 1, MUX_IN, 0}, true, false},
                 {{MUX_GONE, 1, MUX_STREAMS, 0}, false, false},
                 {{MUX_KINDS, 1, 0, 0}, false, false},
                 {{0, 0, 0, 0}, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (mux_head_check(&cases[i].h, true) != cases[i].guest || mux_head_check(&cases[i].h, false) != cases[i].host)
            fail_msg("case %zu", i);
    }
}

/* ---- lanes ---- */

struct heard {
    unsigned n;
    struct mux_head last;
};

static int hear(void *ctx, const struct mux_head *h, void *bytes)
{
    struct heard *x = ctx;
    (void)bytes;
    x->n++;
    x->last = *h;
    return 0;
}

static void pumps(struct pump *host, struct pump *guest, struct heard *h, struct heard *g)
{
    int line[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, line), 0);
    pump_begin(host, line[0], false, h, hear);
    pump_begin(guest, line[1], true, g, hear);
}

static void turn(struct pump *a, struct pump *b)
{
    assert_int_equal(pump_turn(a, NULL, 0, 1), 0);
    assert_int_equal(pump_turn(b, NULL, 0, 1), 0);
}

/* Bytes of one lane pass whole and in order while another, which nobody reads, stands still. */
static void lanes(void **state)
{
    (void)state;
    struct pump host, guest;
    struct heard h = {0}, g = {0};
    int out[2], err[2], to[2], stuck[2];
    enum { N = 3 << 20 };
    static char bytes[N], got[N];
    pumps(&host, &guest, &h, &g);
    assert_true(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC) == 0 &&
                pipe2(stuck, O_CLOEXEC) == 0);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    assert_int_equal(pump_lane(&guest, 1, MUX_OUT, true, out[0]), 0);
    assert_int_equal(pump_lane(&guest, 1, MUX_ERR, true, err[0]), 0);
    assert_int_equal(pump_lane(&host, 1, MUX_OUT, false, to[1]), 0);
    assert_int_equal(pump_lane(&host, 1, MUX_ERR, false, stuck[1]), 0);
    (void)fcntl(out[1], F_SETFL, O_WRONLY | O_NONBLOCK);
    (void)fcntl(err[1], F_SETFL, O_WRONLY | O_NONBLOCK);
    (void)fcntl(to[0], F_SETFL, O_RDONLY | O_NONBLOCK);
    size_t wrote = 0, read_n = 0, blocked = 0;
    for (unsigned rounds = 0; read_n < N && rounds < 100000; rounds++) {
        ssize_t k = wrote < N ? write(out[1], bytes + wrote, N - wrote) : 0;
        wrote += k > 0 ? (size_t)k : 0;
        k = write(err[1], bytes, 4096);
        blocked += k > 0 ? (size_t)k : 0;
        turn(&guest, &host);
        k = read(to[0], got + read_n, N - read_n);
        read_n += k > 0 ? (size_t)k : 0;
    }
    assert_int_equal(read_n, N);
    assert_memory_equal(bytes, got, N);
    /* what is on its way: the pipes, the window, the last reading */
    assert_true(blocked >= MUX_WINDOW && blocked <= MUX_WINDOW + 2 * (64u << 10) + 4096);
    /* The end of the writer arrives as one. */
    (void)close(out[1]);
    for (int i = 0; i < 20; i++)
        turn(&guest, &host);
    assert_int_equal(read(to[0], got, 1), 0);
    /* A reader that leaves is told to who writes. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(stuck[0]);
    for (int i = 0; i < 20; i++)
        turn(&guest, &host);
    assert_int_equal(write(err[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    pump_end(&host);
    pump_end(&guest);
}

/* What is written into MUX_BACK arrives after all that was written elsewhere before it, however slowly that is read. */
static void back(void **state)
{
    (void)state;
    struct pump host, guest;
    struct heard h = {0}, g = {0};
    int out[2], to[2], in[2], from[2];
    enum { N = 60000 };
    static char bytes[N];
    pumps(&host, &guest, &h, &g);
    assert_true(pipe2(out, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC | O_NONBLOCK) == 0);
    assert_int_equal(fcntl(to[1], F_SETPIPE_SZ, 4096), 4096);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, from), 0);
    assert_int_equal(pump_lane(&guest, 1, MUX_OUT, true, out[0]), 0);
    assert_int_equal(pump_lane(&guest, 1, MUX_BACK, true, in[1]), 0);
    assert_int_equal(pump_lane(&host, 1, MUX_OUT, false, to[1]), 0);
    assert_int_equal(pump_lane(&host, 1, MUX_BACK, false, from[1]), 0);
    for (int round = 0; round < 3; round++) {
        char status[8];
        size_t n = 0;
        assert_int_equal(write(out[1], bytes, N), N);
        assert_int_equal(write(in[0], "7\n", 2), 2);
        for (int i = 0; i < 10; i++)
            turn(&guest, &host);
        while (n < N) {
            assert_int_equal(recv(from[0], status, sizeof status, MSG_DONTWAIT), -1);
            ssize_t k = read(to[0], bytes, 1000);
            n += k > 0 ? (size_t)k : 0;
            turn(&guest, &host);
            if (n + 4096 > N) /* the last may be in the pipe, and then counts as passed on */
                break;
        }
        for (int i = 0; i < 20; i++) {
            turn(&guest, &host);
            ssize_t k = read(to[0], bytes, N);
            n += k > 0 ? (size_t)k : 0;
        }
        assert_int_equal(n, N);
        assert_int_equal(recv(from[0], status, sizeof status, MSG_DONTWAIT), 2);
    }
    pump_end(&host);
    pump_end(&guest);
}

/* What no honest machine sends ends the line. */
static void lies(void **state)
{
    (void)state;
    static char data[sizeof(struct mux_head) + MUX_CHUNK];
    const struct mux_head chunk = {MUX_DATA, 1, MUX_OUT, MUX_CHUNK}, wrong = {MUX_DATA, 1, MUX_IN, 1};
    const struct mux_credit much = {MUX_WINDOW};
    for (int which = 0; which < 3; which++) {
        struct pump host;
        struct heard h = {0};
        int line[2], to[2], e = 0;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, line), 0);
        assert_int_equal(pipe2(to, O_CLOEXEC), 0);
        pump_begin(&host, line[0], false, &h, hear);
        assert_int_equal(pump_lane(&host, 1, which == 2 ? MUX_IN : MUX_OUT, which == 2, to[which != 2]), 0);
        memcpy(data, which == 1 ? &wrong : &chunk, sizeof chunk);
        if (which == 2) {
            const struct mux_head credit = {MUX_CREDIT, 1, MUX_IN, sizeof much};
            assert_int_equal(write(line[1], &credit, sizeof credit), sizeof credit);
            assert_int_equal(write(line[1], &much, sizeof much), sizeof much);
        }
        for (int i = 0; i < 40 && e == 0; i++) { /* more than the window and the pipe hold */
            for (size_t at = 0; which != 2 && at < sizeof data;) {
                ssize_t k = write(line[1], data + at, sizeof data - at);
                at += k > 0 ? (size_t)k : 0;
                e = pump_turn(&host, NULL, 0, 0);
                if (e < 0)
                    break;
            }
            if (e == 0)
                e = pump_turn(&host, NULL, 0, 0);
        }
        assert_int_equal(e, -EBADMSG);
        pump_end(&host);
        (void)close(line[1]);
        (void)close(to[which == 2]);
    }
}

/* ---- a terminal that nobody has open any more ---- */

enum { NO_FILTERS = 103 }; /* the child's status: seccomp filters cannot be installed */

static volatile sig_atomic_t reads;

/* The first read(2) answers as Linux does when the last words and the end come in the midst of it; the others really read. */
static void instead_of_read(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
#if defined __aarch64__
    const unsigned long long fd = m->regs[0], to = m->regs[1], most = m->regs[2];
#else
    const long long fd = m->gregs[REG_RDI], to = m->gregs[REG_RSI], most = m->gregs[REG_RDX];
#endif
    struct iovec v = {(void *)to, (size_t)most}; // NOLINT(performance-no-int-to-ptr)
    const ssize_t n = info->si_syscall != SYS_read || reads++ == 0 ? -1 : readv((int)fd, &v, 1);
#if defined __aarch64__
    m->regs[0] = (unsigned long long)(n < 0 ? -EIO : n);
#else
    m->gregs[REG_RAX] = n < 0 ? -EIO : n;
#endif
}

/* In a child: every read from `fd` becomes a SIGSYS. */
static void trap_reads(int fd)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3),
                                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)fd, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction trap = {.sa_sigaction = instead_of_read, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGSYS, &trap, NULL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(100);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(NO_FILTERS);
}

/* What a program wrote just before it closed the terminal arrives, also when the kernel says the end first. */
static void last_words(void **state)
{
    (void)state;
    struct pump host, guest;
    struct heard h = {0}, g = {0};
    int to[2], status = -1;
    char got[64] = "";
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && unlockpt(terminal) == 0 && pipe2(to, O_CLOEXEC) == 0);
    const int program = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_int_equal(write(program, "last words", 10), 10);
    (void)close(program);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pumps(&host, &guest, &h, &g);
        if (pump_lane(&guest, 1, MUX_TTY_OUT, true, terminal) || pump_lane(&host, 1, MUX_TTY_OUT, false, to[1]))
            _exit(101);
        trap_reads(terminal);
        for (int i = 0; i < 20; i++)
            turn(&guest, &host);
        _exit(reads ? 0 : 102);
    }
    (void)close(to[1]);
    assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTERS) {
        print_message("seccomp filters cannot be installed here (qemu-user, or a kernel without them)\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(read(to[0], got, sizeof got - 1), 10);
    assert_string_equal(got, "last words");
    (void)close(to[0]);
    (void)close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(argv),    cmocka_unit_test(archive),   cmocka_unit_test(heads),
                                       cmocka_unit_test(kernels), cmocka_unit_test(lanes),     cmocka_unit_test(back),
                                       cmocka_unit_test(lies),    cmocka_unit_test(last_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
