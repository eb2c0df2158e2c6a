/*
 * The host's network in a virtual machine: a connection to 127.0.0.1 reaches what listens there in the machine, and
 * otherwise the host's 127.0.0.1, which is behind the gateway of qemu's network. BPF programs (bpf(2)), attached to the
 * box's control group, look for a local socket when a connection is made or a datagram is sent, and change the address
 * if there is none; answers get the original address back.
 *
 *     connect of IPv4, of IPv6 (mapped 127.0.0.1), sendmsg of IPv4   127.0.0.1 -> gateway
 *     recvmsg, getpeername of IPv4                                   gateway -> 127.0.0.1
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/guest.h"
#include "protocol/vm.h"

enum { MOST = 64, TUPLE = -16 /* on the stack: struct bpf_sock_tuple's ipv4 */ };

struct program {
    struct bpf_insn at[MOST];
    int n;
};

#define CONTEXT(member) ((int16_t)offsetof(struct bpf_sock_addr, member))
#define MAPPED(i)       ((int16_t)(offsetof(struct bpf_sock_addr, user_ip6) + 4 * (i)))

static void put(struct program *p, int code, int dst, int src, int16_t off, int32_t imm)
{
    if (p->n == MOST)
        _exit(1);
    p->at[p->n++] = (struct bpf_insn){
        .code = (uint8_t)code, .dst_reg = (uint8_t)dst & 15, .src_reg = (uint8_t)src & 15, .off = off, .imm = imm};
}

static void bpf_load(struct program *p, int dst, int16_t from)
{
    put(p, BPF_LDX | BPF_MEM | BPF_W, dst, BPF_REG_6, from, 0);
}

/* Ends the program unless the context has `value` at `from`. */
static void only(struct program *p, int16_t from, uint32_t value)
{
    bpf_load(p, BPF_REG_2, from);
    put(p, BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, (int32_t)value); /* 32 bits, the upper ones 0 */
    put(p, BPF_JMP | BPF_JNE | BPF_X, BPF_REG_2, BPF_REG_3, 0, 0);      /* jumps to the end, set by finish() */
}

/* Register 0: the machine's own socket at 127.0.0.1 and the port, or 0. */
static void look_up(struct program *p, int helper, uint32_t loopback)
{
    put(p, BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, TUPLE, (int32_t)loopback);
    put(p, BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, TUPLE + 4, (int32_t)loopback);
    put(p, BPF_ST | BPF_MEM | BPF_H, BPF_REG_10, 0, TUPLE + 8, 0);
    bpf_load(p, BPF_REG_4, CONTEXT(user_port));
    put(p, BPF_STX | BPF_MEM | BPF_H, BPF_REG_10, BPF_REG_4, TUPLE + 10, 0);
    put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0);
    put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0);
    put(p, BPF_ALU64 | BPF_ADD, BPF_REG_2, 0, 0, TUPLE); /* a constant: BPF_K is 0, too */
    put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 12);
    put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, BPF_F_CURRENT_NETNS);
    put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, 0);
    put(p, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

/* Adds "allow", the target of all unresolved jumps. */
static void finish(struct program *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].code == (BPF_JMP | BPF_JNE | BPF_X) && !p->at[i].off)
            p->at[i].off = (int16_t)(p->n - i - 1);
    }
    put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1);
    put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void change(struct program *p, int16_t at, uint32_t to)
{
    put(p, BPF_ALU | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, (int32_t)to);
    put(p, BPF_STX | BPF_MEM | BPF_W, BPF_REG_6, BPF_REG_2, at, 0);
}

/* `at`: offset of the address. TCP and UDP sockets are looked up in separate branches: what is found must be
   released. */
static void outward(struct program *p, int16_t at, uint32_t loopback, uint32_t gateway)
{
    only(p, at, loopback);
    bpf_load(p, BPF_REG_7, CONTEXT(protocol));
    put(p, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 13, IPPROTO_UDP);
    look_up(p, BPF_FUNC_sk_lookup_tcp, loopback);
    put(p, BPF_JMP | BPF_JA, 0, 0, 12, 0);
    look_up(p, BPF_FUNC_sk_lookup_udp, loopback);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 4, 0);
    put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_0, 0, 0);
    put(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_release);
    put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1);
    put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    change(p, at, gateway);
}

static int attach(int group, const struct program *p, enum bpf_attach_type type)
{
    union bpf_attr load_it = {.prog_type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
                              .insn_cnt = (uint32_t)p->n,
                              .insns = (uint64_t)(uintptr_t)p->at,
                              .license = (uint64_t)(uintptr_t) "Apache-2.0",
                              .expected_attach_type = type};
    int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load_it, sizeof load_it);
    if (fd < 0)
        return -errno;
    union bpf_attr attach_it = {.target_fd = (uint32_t)group, .attach_bpf_fd = (uint32_t)fd, .attach_type = type};
    int e = syscall(SYS_bpf, BPF_PROG_ATTACH, &attach_it, sizeof attach_it) < 0 ? -errno : 0;
    (void)close(fd);
    return e;
}

int guest_loopback(const char *group)
{
    const uint32_t loopback = inet_addr("127.0.0.1"), gateway = inet_addr(VM_GATEWAY);
    static struct program four, six, back;
    int fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct program *const all[] = {&four, &six, &back};
    for (int i = 0; i < 3; i++)
        put(all[i], BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
    outward(&four, CONTEXT(user_ip4), loopback, gateway);
    only(&six, MAPPED(0), 0);
    only(&six, MAPPED(1), 0);
    only(&six, MAPPED(2), htonl(0xffff));
    outward(&six, MAPPED(3), loopback, gateway);
    only(&back, CONTEXT(user_ip4), gateway);
    change(&back, CONTEXT(user_ip4), loopback);
    for (int i = 0; i < 3; i++)
        finish(all[i]);
    int e = fd < 0 ? -errno : attach(fd, &four, BPF_CGROUP_INET4_CONNECT);
    if (e == 0)
        e = attach(fd, &four, BPF_CGROUP_UDP4_SENDMSG);
    if (e == 0)
        e = attach(fd, &six, BPF_CGROUP_INET6_CONNECT);
    if (e == 0)
        e = attach(fd, &back, BPF_CGROUP_UDP4_RECVMSG);
    if (e == 0)
        (void)attach(fd, &back, BPF_CGROUP_INET4_GETPEERNAME); /* Linux 5.8 */
    if (fd >= 0)
        (void)close(fd);
    return e;
}
