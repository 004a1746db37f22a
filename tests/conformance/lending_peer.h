/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lending_peer - the peer of lending.h: does what the owner says by a socket, and counts the system
 * calls by which it reaches into other processes. nonic's library finds ours before libc's.
 */
#ifndef TESTS_CONFORMANCE_LENDING_PEER_H
#define TESTS_CONFORMANCE_LENDING_PEER_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/hostile/victim.h"

#define PAGE         4096u
#define MTU          1024u /* As victim_connect has it. */
#define BUFFER_BYTES (4u << 20)
#define VIEWS_MAX    32

enum what {
    CONNECT, /* A new queue pair, to `address`; the answer has the peer's. */
    WARM,    /* Reads until it has the memory mapped, for `value` ms. */
    READ,    /* Reads: it has to be the pattern of `value`. */
    WRITE,   /* Writes the pattern of `value`. */
    ORDERED, /* Writes bytes of `value` only. */
    STREAM,  /* Writes and reads until it is told to stop. */
    FETCH,   /* Reads until it is told to stop. */
    HAMMER,  /* Writes by plain stores through what it has mapped, until it is told to stop. */
    FILTER,  /* From now on the kernel refuses to copy for it, until it ends. */
};

struct order {
    enum what what;
    uint64_t memory, value;
    uint64_t inode; /* The file behind the memory has it; 0: none. */
    uint32_t bytes, key;
    struct address address;
};

struct answer {
    int64_t result;  /* A status of a completion; -1: other bytes. For WARM: is it mapped? */
    uint64_t copies; /* Made by the kernel meanwhile. */
    struct address address;
};

/* Seen by all processes. */
struct desk {
    atomic_bool stop;
    atomic_uint progress;
    pid_t peer;
};

static struct desk *desk;
static struct victim self;
static int line; /* The socket to the other one. */

static uint8_t pattern(uint64_t value, size_t i)
{
    return (uint8_t)(value * 37 + i * 7 + (i >> 8) + 1);
}

static void fill(void *memory, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)memory)[i] = pattern(value, i);
    }
}

static bool is_filled(const void *memory, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const volatile uint8_t *)memory)[i] != pattern(value, i)) {
            fprintf(stderr, "byte %zu of %zu is 0x%02x, not 0x%02x\n", i, bytes,
                    ((const uint8_t *)memory)[i], pattern(value, i));
            return false;
        }
    }
    return true;
}

/* -- The peer: what it asks the kernel to copy --------------------------------------------------*/

static _Thread_local uint64_t copies;

static long call(long number, const long *words)
{
    register long r10 __asm__("r10") = words[3];
    register long r8 __asm__("r8") = words[4];
    register long r9 __asm__("r9") = words[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

long syscall(long number, ...)
{
    long words[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        words[i] = va_arg(list, long);
    }
    va_end(list);
    copies += number == SYS_preadv || number == SYS_pwritev;
    return call(number, words);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
                         const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
    copies++;
    return call(SYS_process_vm_readv, (const long[]){pid, (long)local, (long)locals, (long)remote,
                                                     (long)remotes, (long)flags});
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals,
                          const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
    copies++;
    return call(SYS_process_vm_writev, (const long[]){pid, (long)local, (long)locals, (long)remote,
                                                      (long)remotes, (long)flags});
}

/* -- The peer: what it does ---------------------------------------------------------------------*/

static enum ibv_wc_status reach(enum ibv_wr_opcode opcode, const struct order *order,
                                uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)self.memory, .length = bytes, .lkey = self.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {order->memory, order->key}};
    EXPECT(ibv_post_send(self.qp, &wr, &bad) == 0);
    return victim_wait(&self);
}

struct area {
    uint64_t start, end, inode;
    bool shared, is_region; /* nonic made the file. */
};

/* The next line of /proc/self/maps. */
static bool next_area(FILE *maps, struct area *area)
{
    char text[512], rights[5];
    if (fgets(text, sizeof(text), maps) == NULL) {
        return false;
    }
    EXPECT(sscanf(text, "%lx-%lx %4s %*s %*s %lu", &area->start, &area->end, rights,
                  &area->inode) == 4);
    area->shared = rights[3] == 's';
    area->is_region = area->shared && strstr(text, "nonic-region") != NULL;
    return true;
}

static FILE *open_maps(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    EXPECT(maps != NULL);
    return maps;
}

static bool maps_file(uint64_t inode)
{
    struct area area;
    bool found = false;
    FILE *maps = open_maps();
    while (!found && next_area(maps, &area)) {
        found = area.shared && area.inode == inode;
    }
    fclose(maps);
    return found;
}

/* Until it has the memory mapped, and an access takes no copy by the kernel. */
static int64_t warm(const struct order *order)
{
    const double end = seconds_now() + (double)order->value / 1e3;
    do {
        const uint64_t before = copies;
        EXPECT(reach(IBV_WR_RDMA_READ, order, order->bytes < 8 ? order->bytes : 8) ==
               IBV_WC_SUCCESS);
        if (copies == before && order->inode != 0 && maps_file(order->inode)) {
            return 1;
        }
    } while (seconds_now() < end);
    return 0;
}

/* The words of the nth WRITE: all bytes differ from those of the one before. */
#define WORDS_OF(n) ((n)*UINT64_C(0x0101010101010101))
/* The inverse: its product with the former is 1. */
#define NUMBER_OF(word) ((word)*UINT64_C(0xffffffffffffff01))

/* Writes all of the memory by WRITEs of one packet, which the peer does by itself. */
static enum ibv_wc_status write_packets(const struct order *order)
{
    struct order packet = *order;
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    for (uint32_t at = 0; at < order->bytes && status == IBV_WC_SUCCESS; at += MTU) {
        packet.memory = order->memory + at;
        status =
            reach(IBV_WR_RDMA_WRITE, &packet, order->bytes - at < MTU ? order->bytes - at : MTU);
    }
    return status;
}

/* Writes, and reads what it wrote: nothing of it was lost. */
static int64_t write_and_read(const struct order *order, uint64_t n)
{
    uint64_t *words = (uint64_t *)(void *)self.memory;
    for (uint32_t i = 0; i < order->bytes / 8; i++) {
        words[i] = WORDS_OF(n);
    }
    enum ibv_wc_status status = write_packets(order);
    memset(words, 0, order->bytes);
    status = status != IBV_WC_SUCCESS ? status : reach(IBV_WR_RDMA_READ, order, order->bytes);
    for (uint32_t i = 0; i < order->bytes / 8 && status == IBV_WC_SUCCESS; i++) {
        if (words[i] != WORDS_OF(n)) {
            fprintf(stderr, "word %u is of WRITE %lu, not %lu\n", i, NUMBER_OF(words[i]), n);
            return -1;
        }
    }
    return status;
}

static int64_t stream(const struct order *order, bool writes)
{
    int64_t status = IBV_WC_SUCCESS;
    for (uint64_t n = 1; !desk->stop && status == IBV_WC_SUCCESS; n++) {
        status = writes ? write_and_read(order, n) : reach(IBV_WR_RDMA_READ, order, order->bytes);
        desk->progress++;
    }
    return status;
}

/* Mappings of its own, which nonic does not take from it. */
static uint32_t keep_views(void **own, size_t *bytes)
{
    struct area area;
    uint32_t count = 0;
    FILE *maps = open_maps();
    while (count < VIEWS_MAX && next_area(maps, &area)) {
        if (area.is_region) {
            bytes[count++] = area.end - area.start;
            own[count - 1] = (void *)area.start;
        }
    }
    fclose(maps);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT((own[i] = mremap(own[i], 0, bytes[i], MREMAP_MAYMOVE)) != MAP_FAILED);
    }
    return count;
}

static int64_t hammer(uint64_t value)
{
    void *own[VIEWS_MAX];
    size_t bytes[VIEWS_MAX];
    const uint32_t count = keep_views(own, bytes);
    while (!desk->stop) {
        for (uint32_t i = 0; i < count; i++) {
            memset(own[i], (int)value, bytes[i]);
        }
        desk->progress++;
    }
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(munmap(own[i], bytes[i]) == 0);
    }
    return count;
}

/* The kernel says EPERM to each call that reaches into another process. */
static void filter(void)
{
    static const struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]),
                                       (struct sock_filter *)(uintptr_t)rules};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void connect_peer(const struct order *order, struct answer *answer)
{
    EXPECT(ibv_destroy_qp(self.qp) == 0 && (self.qp = victim_create_qp(&self)) != NULL);
    answer->address = victim_address(&self);
    victim_connect(self.qp, &order->address, 14, 7);
}

static int64_t carry_out(const struct order *order, struct answer *answer)
{
    switch (order->what) {
    case CONNECT: connect_peer(order, answer); return 0;
    case WARM: return warm(order);
    case READ: {
        const enum ibv_wc_status status = reach(IBV_WR_RDMA_READ, order, order->bytes);
        return status != IBV_WC_SUCCESS || is_filled(self.memory, order->bytes, order->value)
                   ? (int64_t)status
                   : -1;
    }
    case WRITE:
        fill(self.memory, order->bytes, order->value);
        return reach(IBV_WR_RDMA_WRITE, order, order->bytes);
    case ORDERED:
        memset(self.memory, (int)order->value, order->bytes);
        return reach(IBV_WR_RDMA_WRITE, order, order->bytes);
    case STREAM:
    case FETCH: return stream(order, order->what == STREAM);
    case HAMMER: return hammer(order->value);
    case FILTER: filter(); return 0;
    }
    return -1;
}

/* Its memory is shared already, so that it is not exchanged. */
static void serve(void)
{
    struct order order;
    void *memory =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED);
    victim_open(&self);
    EXPECT(ibv_dereg_mr(self.mr) == 0);
    self.memory = memory;
    EXPECT((self.mr = ibv_reg_mr(self.pd, memory, BUFFER_BYTES, VICTIM_ACCESS)) != NULL);
    while (recv(line, &order, sizeof(order), 0) == sizeof(order)) {
        struct answer answer = {0};
        const uint64_t before = copies;
        answer.result = carry_out(&order, &answer);
        answer.copies = copies - before;
        EXPECT(send(line, &answer, sizeof(answer), 0) == sizeof(answer));
    }
}

#endif
