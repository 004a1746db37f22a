/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_once_test - very many SENDs of eight processes to one, over a bad network.
 *
 * Goal    Each message is delivered exactly once, with its bytes, although its program posts it
 *         again whenever it is told that there was no receive; a success was delivered, and what
 *         was refused is not delivered before it was posted again (SRD-23, SRD-24, SRD-33): by one
 *         way, and by two of unequal delay, which die in the middle and come back (SRD-36).
 * Method  5 % of all datagrams are lost, 5 % come twice, 20 % are overtaken, and some are up to
 *         40 s late. The receiver's program posts no receives half of the time. Senders pause now
 *         and then, for so long that flows rest, are forgotten there, and are forgotten here. A
 *         second way is dead for up to 20 s, the first one for up to 2 s: while a flow rests, it
 *         is the only one.
 *
 * Usage: srd_once_test [--sends COUNT] [arguments of tests/scenarios/seeds.h]
 * Without a seed each run draws one of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "nic/nic.h"
#include "nic/routes.h"
#include "tests/scenarios/seeds.h"
#include "tests/world/link.h"
#include "tests/world/timer.h"

#define SENDERS   8u
#define RECEIVER  SENDERS
#define DEPTH     16u /* Messages of one sender under way. */
#define CHUNK     512u
#define BYTES     (4 * CHUNK)
#define RECEIVES  16u
#define QKEY      3u
#define DATAGRAMS 65536u
#define MS        UINT64_C(1000000000) /* In picoseconds. */
#define S         (1000 * MS)
#define WAYS      2u
#define FRAME_MAX (SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX)

/* A message under way. */
struct sending {
    struct sim_event post; /* The first time, or after it found no receive. */
    uint32_t sender;
    uint64_t number;
    uint32_t bytes;
    bool posted;
};

struct process {
    struct nic *nic;
    struct gid gids[WAYS];
    struct pd pd;
    struct cq cq;
    struct completion ring[512];
    struct qp *qp;
    void *qp_memory;
    struct region region;
    struct sim_event timer;
    uint8_t memory[RECEIVES][BYTES]; /* Receives, or the messages under way. */
    /* A sender's: */
    struct sending sendings[DEPTH];
    uint64_t next;
    uint8_t *delivered; /* By number. */
};

struct world {
    struct sim sim;
    struct link links[WAYS];
    bool several;          /* Ways. */
    uint64_t by_way[WAYS]; /* Datagrams. */
    struct sim_event cutting;
    struct sim_pool datagrams;
    uint64_t seed, each, left; /* Messages of a sender; all that are not done. */
    struct process processes[SENDERS + 1];
    struct sim_event feeding;
    bool fed;
    uint32_t starving; /* Receives that are not posted. */
    uint32_t starved[RECEIVES];
    uint32_t pause_odds;
};
_Static_assert(DEPTH <= RECEIVES, "each message under way has its memory");

static uint64_t sends = 8000, refusals, deliveries;

static struct world *world_of(struct sim *sim)
{
    return CONTAINER_OF(sim, struct world, sim);
}

static _Noreturn void violated(const struct world *world, const char *what, uint32_t sender,
                               uint64_t number)
{
    fail_msg("seed %llu, %.6f s, sender %u, message %llu: %s", (unsigned long long)world->seed,
             (double)world->sim.now_ps / 1e12, sender, (unsigned long long)number, what);
    abort();
}

static uint8_t pattern(uint64_t number, uint32_t at)
{
    return (uint8_t)(number * 31 + at * 7 + (at >> 8) * 5);
}

/* -- Processes ----------------------------------------------------------------------------------*/

static struct nic_limits limits(uint32_t number, bool several)
{
    return (struct nic_limits){.qps = 4,
                               .regions = 4,
                               .sends_per_qp = 64,
                               .receives_per_qp = 64,
                               .receives_per_srq = 1,
                               .sges = 1,
                               .inline_bytes = 32,
                               .reads_per_qp = 1,
                               .cq_entries = 512,
                               .mtu = PATH_MTU_4096,
                               .qpn_base = (number + 1) << 16,
                               .qpn_span = 256,
                               .srd = {.contacts = SENDERS,
                                       .peers = 2 * SENDERS,
                                       .hosts = SENDERS,
                                       .assemblies = 24,
                                       .requests = 32,
                                       .parts = 32,
                                       .packets = 64,
                                       .reads = 1,
                                       .paths = several ? WAYS : 1,
                                       .alone_bytes = 4000,
                                       .send_bytes = 8192,
                                       .chunk_bytes = CHUNK}};
}

static void *zeroed(size_t bytes)
{
    const size_t whole = (bytes + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, whole);
    memset(memory, 0, whole);
    return memory;
}

static void bring_up(struct world *world, uint32_t number)
{
    static const enum qp_state states[] = {QP_INIT, QP_RTR, QP_RTS};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const enum qp_state state = states[i];
        /* Some senders try again by themselves, up to five times, before their program hears of
         * it. */
        const struct qp_attributes wanted = {
            .state = (uint8_t)state, .port = 1, .qkey = QKEY, .rnr_retry = (uint8_t)(number % 6)};
        uint32_t mask = QP_ATTR_STATE;
        mask |= state == QP_INIT ? QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY : 0u;
        mask |= state == QP_RTS ? QP_ATTR_SQ_PSN | QP_ATTR_RNR_RETRY : 0u;
        assert_int_equal(
            qp_modify(world->processes[number].qp, &wanted, mask, sim_instant(&world->sim)),
            STATUS_OK);
    }
}

static void start(struct world *world, uint32_t number)
{
    struct process *process = &world->processes[number];
    const struct nic_limits shape = limits(number, world->several);
    struct qp_request request = {
        .type = QP_SRD,
        .pd = &process->pd,
        .send_cq = &process->cq,
        .receive_cq = &process->cq,
        .capacity = {.sends = 64, .receives = 64, .send_sges = 1, .receive_sges = 1}};
    const struct region_request region = {.address = (uintptr_t)process->memory,
                                          .bytes = sizeof(process->memory),
                                          .start = (uintptr_t)process->memory,
                                          .access = ACCESS_LOCAL_WRITE};
    for (uint8_t way = 0; way < WAYS; way++) {
        process->gids[way] = (struct gid){{[10] = 0xff, 0xff, 10, way, 0, (uint8_t)(number + 1)}};
    }
    process->nic = nic_init(&shape, prng_next(&world->sim.prng), zeroed(nic_bytes(&shape)));
    nic_note_time(process->nic, sim_instant(&world->sim));
    struct nic_routes *routes = srd_own_routes(process->nic);
    routes->own_count = world->several;
    routes->own[0] = process->gids[1];
    cq_init(&process->cq, 512, process->ring);
    assert_int_equal(region_add(nic_regions(process->nic), &process->pd, &region, &process->region),
                     STATUS_OK);
    process->qp_memory = zeroed(qp_bytes(QP_SRD, &request.capacity, false));
    assert_int_equal(qp_create(process->nic, &request, process->qp_memory, &process->qp),
                     STATUS_OK);
    bring_up(world, number);
}

static void end(struct process *process)
{
    nic_check(process->nic);
    qp_destroy(process->qp);
    free(process->qp_memory);
    free(process->nic);
    free(process->delivered);
}

/* -- Programs -----------------------------------------------------------------------------------*/

static struct sge sge_of(struct process *process, uint64_t place, uint32_t bytes)
{
    return (struct sge){.address = (uintptr_t)process->memory[place],
                        .bytes = bytes,
                        .key = region_lkey(nic_regions(process->nic), &process->region)};
}

static void post_receive(struct world *world, uint32_t place)
{
    struct process *process = &world->processes[RECEIVER];
    const struct sge sge = sge_of(process, place, BYTES);
    assert_int_equal(qp_post_receive(process->qp, place, &sge, 1), STATUS_OK);
}

static void on_feeding(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    world->fed = !world->fed;
    while (world->fed && world->starving != 0) {
        post_receive(world, world->starved[--world->starving]);
    }
    sim_after(sim, event, prng_below(&sim->prng, 2 * MS) + 1);
}

static void on_receive(struct world *world, const struct completion *completion)
{
    const uint8_t *bytes = world->processes[RECEIVER].memory[completion->wr_id];
    const uint32_t sender = bytes[7], place = bytes[6];
    const uint64_t number = load_be64(bytes) >> 16;
    assert_int_equal(completion->status, COMPLETION_SUCCESS);
    assert_true(sender < SENDERS && place < DEPTH && number < world->each);
    struct process *from = &world->processes[sender];
    const struct sending *sending = &from->sendings[place];
    assert_int_equal(srd_host_gid(world->processes[RECEIVER].nic, completion->host)->bytes[15],
                     sender + 1);
    if (from->delivered[number]) {
        violated(world, "delivered twice", sender, number);
    }
    if (sending->number != number || !sending->posted) {
        violated(world, "delivered while it was not posted", sender, number);
    }
    assert_int_equal(completion->bytes, sending->bytes);
    for (uint32_t i = 8; i < completion->bytes; i++) {
        if (bytes[i] != pattern(number, i)) {
            violated(world, "wrong bytes", sender, number);
        }
    }
    from->delivered[number] = 1;
    deliveries++;
    if (world->fed) {
        post_receive(world, (uint32_t)completion->wr_id);
    } else {
        world->starved[world->starving++] = (uint32_t)completion->wr_id;
    }
}

/* The next message in the place of one that is done. */
static void begin(struct world *world, struct sending *sending)
{
    static const uint64_t pauses[] = {3 * S / 2, 14 * S, 35 * S};
    struct process *process = &world->processes[sending->sender];
    struct prng *prng = &world->sim.prng;
    if (process->next == world->each) {
        return;
    }
    sending->number = process->next++;
    sending->bytes = 8 + (uint32_t)prng_below(prng, prng_below(prng, 3) ? CHUNK - 8 : BYTES - 8);
    const uint64_t place = (uint64_t)(sending - process->sendings);
    uint8_t *bytes = process->memory[place];
    store_be64(bytes, sending->number << 16 | place << 8 | sending->sender);
    for (uint32_t i = 8; i < sending->bytes; i++) {
        bytes[i] = pattern(sending->number, i);
    }
    const bool pause = prng_below(prng, world->pause_odds) == 0;
    sim_after(&world->sim, &sending->post,
              pause ? pauses[prng_below(prng, COUNT_OF(pauses))] : prng_below(prng, MS / 10));
}

static void on_sent(struct world *world, struct process *process,
                    const struct completion *completion)
{
    struct sending *sending = &process->sendings[completion->wr_id];
    const bool delivered = process->delivered[sending->number] != 0;
    sending->posted = false;
    if (completion->vendor_error == SRD_STATUS_OK) {
        if (!delivered) {
            violated(world, "a success that was not delivered", sending->sender, sending->number);
        }
        world->left--;
        begin(world, sending);
        return;
    }
    assert_int_equal(completion->vendor_error, SRD_STATUS_NO_RECEIVE);
    if (delivered) {
        violated(world, "refused, and delivered", sending->sender, sending->number);
    }
    refusals++;
    sim_after(&world->sim, &sending->post, prng_below(&world->sim.prng, MS));
}

/* -- The world ----------------------------------------------------------------------------------*/

static void transmit(struct world *world, uint32_t from, const struct nic_departure *departure)
{
    uint8_t bytes[FRAME_MAX];
    uint32_t count = departure->headers_bytes;
    memcpy(bytes, departure->headers, count);
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(bytes + count, (const void *)(uintptr_t)segment->address, segment->bytes);
        count += segment->bytes;
    }
    memset(bytes + count, 0, departure->pad_bytes);
    const uint32_t way = departure->av->source.bytes[13];
    assert_int_equal(departure->av->destination.bytes[13], way);
    world->by_way[way]++;
    link_send(&world->links[way], from * WAYS + way,
              (departure->av->destination.bytes[15] - 1u) * WAYS + way, bytes,
              count + departure->pad_bytes);
}

static void serve(struct world *world, uint32_t number)
{
    struct process *process = &world->processes[number];
    struct nic_departure departure;
    struct completion completion = {0};
    struct qp *qp;
    if (srd_own_routes(process->nic)->random == 0) {
        srd_own_routes(process->nic)->random = prng_next(&world->sim.prng);
    }
    while ((qp = nic_next_qp(process->nic)) != NULL) {
        if (nic_next_packet(process->nic, qp, sim_instant(&world->sim), &departure)) {
            transmit(world, number, &departure);
            nic_rotate(process->nic, qp);
        }
    }
    while (cq_poll(&process->cq, &completion, 1) != 0) {
        if (number == RECEIVER) {
            on_receive(world, &completion);
        } else {
            on_sent(world, process, &completion);
        }
    }
    timer_set(&world->sim, &process->timer, nic_deadline(process->nic));
}

static void on_post(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct sending *sending = CONTAINER_OF(event, struct sending, post);
    struct process *from = &world->processes[sending->sender];
    const struct process *to = &world->processes[RECEIVER];
    const uint64_t place = (uint64_t)(sending - from->sendings);
    const struct nic_av av = {.source = from->gids[0], .destination = to->gids[0], .hop_limit = 64};
    const struct sge sge = sge_of(from, place, sending->bytes);
    const struct send_request request = {.wr_id = place,
                                         .kind = WORK_SEND,
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .av = &av,
                                         .destination_qpn = qp_number(to->qp),
                                         .destination_qkey = QKEY};
    sending->posted = true;
    nic_note_time(from->nic, sim_instant(sim));
    assert_int_equal(qp_post_send(from->qp, &request), STATUS_OK);
    serve(world, sending->sender);
}

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct datagram *datagram = link_datagram(event);
    const uint32_t to = datagram->to / WAYS, way = datagram->to % WAYS;
    struct process *process = &world->processes[to];
    struct nic_move move;
    const struct nic_frame frame = {.headers = datagram->bytes,
                                    .headers_bytes = datagram->count,
                                    .source = world->processes[datagram->from / WAYS].gids[way],
                                    .destination = process->gids[way],
                                    .hop_limit = 64};
    if (nic_on_packet(process->nic, &frame, sim_instant(sim), &move) == NIC_MOVES) {
        const uint8_t *from = move.payload;
        for (uint32_t i = 0; move.kind == NIC_MOVE_SCATTER && i < move.segment_count; i++) {
            memcpy((void *)(uintptr_t)move.segments[i].address, from, move.segments[i].bytes);
            from += move.segments[i].bytes;
        }
        nic_on_moved(process->nic, &move, NIC_MOVED, sim_instant(sim));
    }
    link_give(datagram);
    serve(world, to);
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct process *process = CONTAINER_OF(event, struct process, timer);
    nic_on_time(process->nic, sim_instant(sim));
    serve(world, (uint32_t)(process - world->processes));
}

/* One way dies for a while; then both live. */
static void on_cutting(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    const uint32_t way = (uint32_t)prng_below(&sim->prng, WAYS);
    const uint64_t dead_ps = prng_below(&sim->prng, way == 0 ? 2 * S : 20 * S);
    world->links[way].cut_until_ps = sim->now_ps + dead_ps;
    sim_after(sim, event, dead_ps + 3 * S + prng_below(&sim->prng, 4 * S));
}

static void make(struct world *world, uint64_t seed, bool several)
{
    memset(world, 0, sizeof(*world));
    world->several = several;
    world->seed = seed;
    world->each = sends / SENDERS;
    world->left = world->each * SENDERS;
    world->pause_odds = world->each < 10000 ? 300 : 20000;
    sim_init(&world->sim, seed);
    sim_run_until(&world->sim, 1000 * S);
    struct link_settings settings = {
        .latency_ps = MS / 20, .reorder_ps = 3 * MS, .late_ps = 40 * S};
    settings.faults.millionths[SIM_FAULT_drop] = 50000;
    settings.faults.millionths[SIM_FAULT_duplicate] = 50000;
    settings.faults.millionths[SIM_FAULT_reorder] = 200000;
    settings.faults.millionths[SIM_FAULT_late] = world->each < 10000 ? 10000 : 2000;
    link_pool_open(&world->datagrams, DATAGRAMS, FRAME_MAX);
    for (uint32_t way = 0; way < WAYS; way++, settings.latency_ps = MS) {
        link_init(&world->links[way], &world->sim, &world->datagrams, &settings, on_arrival);
    }
    sim_event_init(&world->cutting, on_cutting);
    if (several) {
        sim_after(&world->sim, &world->cutting, S / 10);
    }
    for (uint32_t i = 0; i <= SENDERS; i++) {
        sim_event_init(&world->processes[i].timer, on_timer);
        start(world, i);
    }
    for (uint32_t i = 0; i < RECEIVES; i++) {
        world->starved[world->starving++] = i;
    }
    sim_event_init(&world->feeding, on_feeding);
    sim_after(&world->sim, &world->feeding, 1);
    for (uint32_t i = 0; i < SENDERS; i++) {
        world->processes[i].delivered = calloc(world->each, 1);
        for (uint32_t k = 0; k < DEPTH; k++) {
            struct sending *sending = &world->processes[i].sendings[k];
            sending->sender = i;
            sim_event_init(&sending->post, on_post);
            begin(world, sending);
        }
    }
}

static void run(uint64_t seed, bool several)
{
    static struct world world;
    make(&world, seed, several);
    while (world.left != 0 && sim_step(&world.sim)) {
    }
    /* Every copy has come, and all flows rest. */
    sim_cancel(&world.feeding);
    sim_cancel(&world.cutting);
    world.fed = false;
    sim_run_until(&world.sim, world.sim.now_ps + 60 * S);
    print_message("seed %llu: %.0f s of virtual time, %llu and %llu datagrams\n",
                  (unsigned long long)seed, (double)world.sim.now_ps / 1e12 - 1000,
                  (unsigned long long)world.by_way[0], (unsigned long long)world.by_way[1]);
    assert_int_equal(world.links[0].crowded + world.links[1].crowded, 0);
    assert_true(several == (world.by_way[1] != 0));
    for (uint32_t i = 0; i <= SENDERS; i++) {
        assert_true(srd_is_quiet(world.processes[i].nic));
        assert_int_equal(srd_peer_count(world.processes[i].nic), 0);
        for (uint64_t k = 0; i < SENDERS && k < world.each; k++) {
            if (!world.processes[i].delivered[k]) {
                violated(&world, "lost", i, k);
            }
        }
        end(&world.processes[i]);
    }
    sim_pool_close(&world.datagrams);
}

static struct seeds seeds;

static void test_worlds(void **state)
{
    (void)state;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        run(seed, false);
        run(seed, true);
    }
    print_message("%llu messages, %llu refusals\n", (unsigned long long)deliveries,
                  (unsigned long long)refusals);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds)};
    uint32_t seed = 0;
    char text[16];
    char *drawn[] = {argv[0], "--seed", text, NULL};
    if (argc >= 3 && strcmp(argv[1], "--sends") == 0) {
        sends = strtoull(argv[2], NULL, 10);
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
    }
    if (argc == 1) {
        assert_int_equal(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
        snprintf(text, sizeof(text), "%u", seed);
        argc = 3;
        argv = drawn;
    }
    seeds = seeds_from_arguments(argc, argv, 1);
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
