/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Defects of a node by which an attacker got in do not come back.
 * Method  Each attack runs in a child, so that one which aborts does not end the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "lab/lant/node.h"

struct seen {
    struct lant_world world;
    struct sim sim;
    uint32_t done, final, pushed, sent, received;
    uint32_t status;
};

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct seen *seen = context;
    seen->done += lant_shm_done_on_bus(done);
    seen->final += lant_shm_done_final(done);
}

static void on_pushed(void *context, uint32_t tag)
{
    (void)tag;
    ((struct seen *)context)->pushed++;
}

static void on_notification(void *context, enum lant_queue queue,
                            const struct lant_notification *notification)
{
    (void)queue;
    struct seen *seen = context;
    if (notification->kind == LANT_NOTIFY_SENT) {
        seen->sent++;
        seen->status = notification->status;
    } else {
        seen->received++;
    }
}

static struct lant_fabric_config fabric_of(const char *topology)
{
    struct lant_fabric_config fabric = {
        .node_line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24},
        .switch_line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24},
        .switch_cycles = 18,
        .packets = 1024,
    };
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "%s", topology);
    return fabric;
}

/* A program's request may be refused; the attack looks at its effects alone. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (call) {                                                                                \
        }                                                                                          \
    } while (0)

static struct lant_program program_of(struct seen *seen)
{
    return (struct lant_program){.context = seen,
                                 .on_done = on_done,
                                 .on_pushed = on_pushed,
                                 .on_notification = on_notification};
}

static struct seen *open_world(const struct lant_node_config *config, const char *topology)
{
    struct seen *seen = calloc(1, sizeof(*seen));
    char error[TOPOLOGY_ERROR_BYTES];
    const struct lant_fabric_config fabric = fabric_of(topology);
    sim_init(&seen->sim, 1);
    if (!lant_world_open(&seen->world, config, &fabric, &seen->sim, 1, error, sizeof(error))) {
        exit(9);
    }
    for (uint32_t i = 0; i < seen->world.count; i++) {
        seen->world.nodes[i].program = program_of(seen);
    }
    return seen;
}

/* False: the world stands still, and is not idle; or goes on for ever. */
static bool run(struct seen *seen)
{
    for (uint32_t i = 0; i < 3000000; i++) {
        if (lant_world_idle(&seen->world)) {
            return true;
        }
        if (!sim_step(&seen->sim)) {
            return false;
        }
    }
    return false;
}

static enum lant_submit submit(struct seen *seen, uint64_t source, uint64_t destination,
                               uint32_t bytes, uint64_t timeout)
{
    const struct lant_work work = {
        .descriptor = {.source = source, .destination = destination, .bytes = bytes},
        .timeout = timeout};
    return lant_node_submit(&seen->world.nodes[0], LANT_QUEUE_CPU, &work);
}

/* Spoils the next packet on its way of this type and offset. */
static void spoil(struct seen *seen, uint8_t type, uint32_t offset)
{
    struct sim_pool *pool = &seen->world.fabric.frames;
    for (uint32_t steps = 0; steps < 100000; steps++) {
        for (uint32_t i = 0; i < pool->used; i++) {
            struct lant_frame *frame =
                (struct lant_frame *)(void *)(pool->memory + i * pool->bytes);
            struct lant_packet packet;
            uint32_t repaired;
            if (sim_event_scheduled(&frame->event) &&
                lant_decode(frame->flits, frame->count, &packet, &repaired) == LANT_WHOLE &&
                packet.header.type == type && packet.footer.offset == offset) {
                frame->flits[0] ^= 3; /* Its head is beyond repair: lost. */
                return;
            }
        }
        if (!sim_step(&seen->sim)) {
            break;
        }
    }
    exit(8);
}

/* -- The attacks: 0 is as it should be ----------------------------------------------------------*/

/* A transfer to a node that is not there must not be written into another's memory. */
static int stranger_on_a_line(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    memset(seen->world.nodes[0].memory, 0x5a, 512);
    (void)submit(seen, 0, lant_global(77, 4096), 512, 0);
    if (!run(seen)) {
        return 1;
    }
    return seen->received != 0 || seen->world.nodes[1].memory[4096] != 0 ? 2 : 0;
}

static int stranger_all_to_all(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:4");
    (void)submit(seen, 0, lant_global(4000000, 4096), 512, 0);
    return run(seen) ? 0 : 1;
}

static int to_itself(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:4");
    memset(seen->world.nodes[0].memory, 0x5a, 512);
    TRY(submit(seen, 0, lant_global(0, 4096), 512, 0));
    TRY(run(seen));
    return seen->world.nodes[1].memory[4096] != 0 ? 2 : 0;
}

/* A peer's packet says that it came from a node that does not exist. */
static int false_source(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:4");
    const struct lant_packet packet = {
        .header = {.destination = 1, .type = LANT_AR, .strobe = 0xff, .size = 3},
        .footer = {.source = 4000000}};
    struct lant_frame *frame = lant_fabric_frame(&seen->world.fabric);
    frame->count = lant_encode(&packet, frame->flits);
    (void)lant_fabric_send(&seen->world.fabric, 0, frame, 0);
    return run(seen) ? 0 : 1;
}

static int source_beyond_memory(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    (void)submit(seen, 1 << 30, lant_global(1, 0), 512, 0);
    return run(seen) ? 0 : 1;
}

/* The sum wraps to 0, which is no more than memory has. */
static int source_wraps(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    (void)submit(seen, UINT64_MAX - 7, lant_global(1, 4096), 8, 0);
    TRY(run(seen));
    return seen->received == 0 ? 0 : 2;
}

static int access_unaligned(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    const struct lant_shm_access access = {.address = lant_global(1, 1), .bytes = 8};
    TRY(lant_node_access(&seen->world.nodes[0], &access, NULL));
    return run(seen) ? 0 : 1;
}

/* A timer ends while the packet is still leaving; the bus then never answers its burst. */
static int short_timeout(void)
{
    struct lant_node_config config = lant_node_default();
    config.early_timers = 0;
    config.rdma.timeout = lant_cycles(20);
    struct seen *seen = open_world(&config, "all-to-all:2");
    TRY(submit(seen, 0, lant_global(1, 4096), 512, 0));
    spoil(seen, LANT_RDMA_WRITE_REGISTER, 0);
    const bool ends = run(seen);
    return ends && seen->sent == 1 ? 0 : 1;
}

/* Node 2 acknowledges what node 1 never got. */
static int foreign_answer(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:3");
    const struct lant_packet packet = {.header = {.destination = 0, .type = LANT_RDMA_ACK},
                                       .footer = {.source = 2, .class = LANT_CLASS_RDMA}};
    TRY(submit(seen, 0, lant_global(1, 4096), 512, 0));
    seen->world.nodes[1].ranges.ranges[0].may_write = false; /* So it would be refused. */
    while (lant_rdma_in_flight(&seen->world.nodes[0].rdma) == 0) {
        TRY(sim_step(&seen->sim));
    }
    struct lant_frame *frame = lant_fabric_frame(&seen->world.fabric);
    frame->count = lant_encode(&packet, frame->flits);
    TRY(lant_fabric_send(&seen->world.fabric, 2, frame, seen->sim.now_ps));
    TRY(run(seen));
    return (seen->status & LANT_STATUS_ERRORS) != 0 ? 0 : 2;
}

/* Does the same as lant_config_of for `--set timeout=60000`: the receiver must not forget first. */
static int long_timeout(void)
{
    struct lant_node_config config = lant_node_default();
    config.shm.timeout = config.rdma.timeout = lant_cycles(60000);
    struct seen *seen = open_world(&config, "all-to-all:2");
    (void)submit(seen, 0, lant_global(1, 4096), 512, 0);
    spoil(seen, LANT_RDMA_ACK, 0);
    if (!run(seen)) {
        return 1;
    }
    return seen->received == 1 ? 0 : 2;
}

/* An access's own timeout is bounded by nothing: its second copy is stored once more. */
static int long_access(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    const uint8_t data[8] = {1};
    const struct lant_shm_access access = {
        .address = lant_global(1, 64), .bytes = 8, .store = true, .timeout = lant_cycles(60000)};
    TRY(lant_node_access(&seen->world.nodes[0], &access, data));
    spoil(seen, LANT_B, 0);
    for (uint32_t i = 0; i < 20 && seen->world.nodes[1].shm_target.counters.stores < 1; i++) {
        (void)sim_step(&seen->sim);
    }
    TRY(run(seen));
    const uint64_t stores = seen->world.nodes[1].shm_target.counters.stores;
    return stores == 1 ? 0 : 2;
}

/* One packet is lost; then its descriptor waits behind a long one, and its row grows too old. */
static int old_row(void)
{
    struct lant_node_config config = lant_node_default();
    config.rdma.work.segment_bytes = 0;
    config.memory_bytes = 2 << 20;
    struct seen *seen = open_world(&config, "all-to-all:2");
    (void)submit(seen, 0, lant_global(1, 0), 4096, 0);
    (void)submit(seen, 65536, lant_global(1, 65536), 1 << 20, 0);
    spoil(seen, LANT_RDMA_WRITE, 3);
    if (!run(seen)) {
        return 1;
    }
    uint64_t failed = seen->world.nodes[0].rdma.counters.failed;
    return failed == 0 ? 0 : 2;
}

/* "Any of the calls may be NULL." */
static int no_program(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    seen->world.nodes[0].program = (struct lant_program){0};
    for (uint32_t i = 0; i < 100; i++) {
        struct lant_notification notification;
        (void)submit(seen, 0, lant_global(1, 4096), 8, 0);
        for (uint32_t k = 0; k < 1000; k++) {
            (void)sim_step(&seen->sim);
        }
        TRY(i >= 80 && lant_node_poll(&seen->world.nodes[0], LANT_QUEUE_CPU, &notification));
    }
    struct lant_notification notification;
    do {
        for (uint32_t k = 0; k < 1000; k++) {
            TRY(sim_step(&seen->sim));
        }
    } while (lant_node_poll(&seen->world.nodes[0], LANT_QUEUE_CPU, &notification));
    return run(seen) ? 0 : 1;
}

/* A full queue holds its producer. The data has come, so the transfer has not failed. */
static int full_queue(void)
{
    const struct lant_node_config config = lant_node_default();
    struct seen *seen = open_world(&config, "all-to-all:2");
    seen->world.nodes[1].program = (struct lant_program){0};
    for (uint32_t i = 0; i < 140; i++) {
        const struct lant_work work = {
            .descriptor = {.destination = lant_global(1, 4096), .bytes = 8, .no_register = true}};
        TRY(lant_node_submit(&seen->world.nodes[0], LANT_QUEUE_CPU, &work));
        sim_run_until(&seen->sim, seen->sim.now_ps + lant_cycles(1000));
        struct lant_notification notification;
        while (i >= 135 && lant_node_poll(&seen->world.nodes[1], LANT_QUEUE_CPU, &notification)) {
        }
    }
    const uint64_t failed = seen->world.nodes[0].rdma.counters.failed;
    return failed == 0 ? 0 : 2;
}

/* Everything at once where bits are flipped: a transfer that is reported as sent has come, once. */
static int soak_with(uint64_t seed, const char *topology, double bit_errors, bool early)
{
    struct lant_node_config config = lant_node_default();
    struct lant_fabric_config fabric = fabric_of(topology);
    struct seen *seen = calloc(1, sizeof(*seen));
    char error[TOPOLOGY_ERROR_BYTES];
    uint32_t wanted = 0;
    fabric.bit_errors = bit_errors;
    fabric.packets = 8192;
    config.rdma.mpl_hold = seed % 2 == 0;
    config.rdma.serial_retransmission = seed % 3 == 0;
    config.early_timers = early ? 1 + (uint32_t)(seed % 16) : 0;
    config.shm.early_timers = early ? 1 + (uint16_t)(seed % 16) : 0;
    config.shm.retries = config.rdma.retries = 7;
    config.rdma_target.lifetime_ticks = config.shm_target.lifetime = lant_cycles(200000);
    config.rdma_target.age_ticks = lant_cycles(200000);
    config.shm.lifetime = lant_cycles(500000);
    config.rdma_target.escapes = 1 + (uint16_t)(seed % 5);
    config.rdma_target.entries = 1 + (uint16_t)(seed % 7);
    config.inbound.entries = 1 + (uint16_t)(seed % 4);
    config.burst_window = 1 + (uint32_t)(seed % 5);
    sim_init(&seen->sim, seed);
    TRY(lant_world_open(&seen->world, &config, &fabric, &seen->sim, seed, error, sizeof(error)));
    const uint32_t count = seen->world.count;
    for (uint32_t i = 0; i < count; i++) {
        seen->world.nodes[i].program = program_of(seen);
    }
    for (uint32_t i = 0; i < 40; i++) {
        const uint32_t from = (uint32_t)prng_below(&seen->sim.prng, count);
        const uint32_t to = (from + 1 + (uint32_t)prng_below(&seen->sim.prng, count - 1)) % count;
        const uint32_t bytes = 1 + (uint32_t)prng_below(&seen->sim.prng, 1 << (4 + i % 13));
        const struct lant_work work = {
            .descriptor = {.source = 0, .destination = lant_global(to, 65536), .bytes = bytes}};
        wanted += lant_node_submit(&seen->world.nodes[from], i % 2, &work) == LANT_SUBMIT_COMMITTED;
        for (uint32_t k = 0; k < 20; k++) {
            const uint8_t data[64] = {1};
            const struct lant_shm_access access = {
                .address = lant_global(to, 8 * prng_below(&seen->sim.prng, 64)),
                .bytes = 64,
                .store = k % 2 == 0};
            TRY(lant_node_access(&seen->world.nodes[from], &access, access.store ? data : NULL));
        }
        for (uint32_t k = 0; k < 200; k++) {
            TRY(sim_step(&seen->sim));
        }
    }
    const bool ends = run(seen);
    uint64_t failed = 0;
    for (uint32_t i = 0; i < count; i++) {
        failed += seen->world.nodes[i].rdma.counters.failed;
    }
    if (!ends || seen->sent != wanted || (failed == 0 && seen->received != wanted)) {
        return 1;
    }
    lant_world_close(&seen->world);
    free(seen);
    return 0;
}

static int soak(void)
{
    static const char *const topologies[] = {"all-to-all:2", "star:6", "all-to-all:4", "torus:8"};
    for (uint64_t seed = 1; seed <= 24; seed++) {
        const int result =
            soak_with(seed, topologies[seed % 4], seed % 5 == 0 ? 3e-5 : 3e-6, seed % 7 < 4);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

static void attack(int (*act)(void))
{
    int status;
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
        for (uint32_t i = 0; i < COUNT_OF(signals); i++) {
            (void)signal(signals[i], SIG_DFL); /* Not cmocka's. */
        }
        (void)alarm(120);
        const int result = act();
        (void)fflush(NULL);
        _exit(result);
    }
    (void)waitpid(child, &status, 0);
    assert_false(WIFSIGNALED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define ATTACK(name)                                                                               \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        attack(name);                                                                              \
    }
#define ATTACKS(A)                                                                                 \
    A(stranger_on_a_line)                                                                          \
    A(stranger_all_to_all)                                                                         \
    A(to_itself)                                                                                   \
    A(false_source)                                                                                \
    A(source_beyond_memory)                                                                        \
    A(source_wraps)                                                                                \
    A(access_unaligned)                                                                            \
    A(short_timeout)                                                                               \
    A(long_timeout)                                                                                \
    A(long_access)                                                                                 \
    A(old_row)                                                                                     \
    A(no_program)                                                                                  \
    A(foreign_answer)                                                                              \
    A(full_queue)                                                                                  \
    A(soak)
ATTACKS(ATTACK)
#define UNIT(name) cmocka_unit_test(test_##name),

int main(void)
{
    const struct CMUnitTest tests[] = {ATTACKS(UNIT)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
