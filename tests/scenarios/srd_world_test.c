/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_world_test - processes that talk by SRD over a bad network, and are killed and stopped.
 *
 * Goal    A message is delivered once at most; a success was delivered; an error that says the
 *         message was not taken is true for ever, however late a copy comes; bytes are right; all
 *         ends, and nothing is held (SRD-37, SRD-23, SRD-24, SRD-28, SRD-29, SRD-30, SRD-32), by
 *         one way or by several (SRD-36).
 * Method  Four NICs in virtual time. The seed chooses loss, copies, copies that come up to 40 s
 *         late, partitions, receives that are missing, queue pairs that leave and come back, and
 *         processes that are killed or stopped; who has a second address, on a network of its own
 *         with other delays, and when that or the first is cut. Programs post again what was not
 *         taken, as libfabric does. At last the network heals, and what is posted then has to
 *         succeed. Run twice, a seed gives the same digest.
 *         Replay and more worlds: tests/scenarios/seeds.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/inventory.h"
#include "nic/nic.h"
#include "nic/routes.h"
#include "tests/scenarios/seeds.h"
#include "tests/world/link.h"
#include "tests/world/timer.h"
#include "transport/srd/sender.h"

#define PROCESSES 4u
#define MESSAGES  40u
#define BYTES     (4 * CHUNK)
#define CHUNK     512u
#define RECEIVES  128u
#define REPOSTS   3
#define QKEY      0x1234u
#define PACKETS   8192u
#define MS        UINT64_C(1000000000) /* In picoseconds. */
#define S         (1000 * MS)
#define FRAME_MAX (SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX)
#define QP_COUNT  2 /* One sends, one receives. */
#define SENDER    0
#define RECEIVER  1
#define READ_DONE 0xee
#define WAYS      2u /* Networks, on each of which a process may have an address. */

enum outcome {
    PENDING,
    SUCCEEDED,
    NOT_TAKEN, /* The program was told that the message was not taken, and posts it again. */
    UNKNOWN,   /* The other process went, or does not answer; or it is our own that went. */
};

struct message {
    uint32_t from, to, bytes;
    enum work_kind kind;
    bool posted, last_words; /* After all has healed. */
    enum outcome outcome;
    uint32_t delivered, reposts;
    uint32_t from_life, to_life; /* When it was posted. */
    struct sim_event post;
};

/* Memory of a process, which goes when it is killed. */
struct memory {
    uint8_t out[MESSAGES][BYTES]; /* Messages carry these bytes. */
    uint8_t in[MESSAGES][BYTES];  /* WRITEs and READs bring bytes here. */
    uint8_t receives[RECEIVES][BYTES];
};

struct process {
    uint32_t life;
    bool stopped;
    struct nic *nic;
    struct gid gids[WAYS];
    bool second; /* It has both. */
    struct pd pd;
    struct cq cq;
    struct completion *ring;
    struct qp *qps[QP_COUNT];
    void *qp_memory[QP_COUNT];
    struct region region;
    struct memory *memory;
    uint32_t receives; /* Posted so far since the receiver came up, ... */
    uint32_t used;     /* ... and completed. */
    uint64_t stopped_until_ps;
    struct sim_event timer;
};

/* A move that takes its time. */
struct late_move {
    struct sim_event event;
    uint32_t process, life;
    struct datagram *datagram;
    struct nic_move move;
};

/* Something that happens to a process. */
enum happening {
    KILLED,
    STOPPED,
    LEAVES,
    COMES_BACK,
    GETS_RECEIVES,
    PARTED, /* The networks, for a while. */
    CUT,    /* One of them; `process` says which. */
    HEALED,
};
struct fate {
    struct sim_event event;
    enum happening what;
    uint32_t process;
    int which; /* LEAVES, COMES_BACK: its queue pair. */
    uint64_t until_ps;
};

struct world {
    struct sim sim;
    struct link links[WAYS];
    uint32_t paths;
    uint64_t by_way[WAYS];
    struct sim_pool packets, moves;
    uint64_t move_ps, seed, span_ps;
    struct process processes[PROCESSES];
    struct message messages[MESSAGES];
    struct fate fates[128];
    uint32_t fate_count;
    bool tight;   /* A NIC cannot know all processes. */
    bool crowded; /* It has not room for something with all of them at a time. */
};

/* The ends of messages in all worlds. */
static uint64_t statuses[SRD_STATUS_FEATURE_MISMATCH + 1], deliveries, packets_by_way[WAYS];

static struct world *world_of(struct sim *sim)
{
    return CONTAINER_OF(sim, struct world, sim);
}

static _Noreturn void violated(const struct world *world, const char *what, uint32_t message)
{
    fail_msg("seed %llu, %.6f s, message %u: %s", (unsigned long long)world->seed,
             (double)world->sim.now_ps / 1e12, message, what);
    abort();
}

static uint8_t pattern(uint32_t message, uint32_t at)
{
    return (uint8_t)(message * 59 + at * 7 + (at >> 8) * 13 + 1);
}

/* -- Life ---------------------------------------------------------------------------------------*/

static struct nic_limits limits(const struct world *world)
{
    return (struct nic_limits){.qps = 8,
                               .regions = 8,
                               .sends_per_qp = MESSAGES,
                               .receives_per_qp = RECEIVES,
                               .receives_per_srq = 1,
                               .sges = 2,
                               .inline_bytes = 32,
                               .reads_per_qp = 1,
                               .cq_entries = 512,
                               .mtu = PATH_MTU_4096,
                               .qpn_base = 3u << 16,
                               .qpn_span = 256,
                               .srd = {.contacts = world->tight ? 2 : 8,
                                       .peers = world->crowded ? 2 : 8,
                                       .hosts = 8,
                                       .assemblies = 12,
                                       .requests = 24,
                                       .parts = 16,
                                       .packets = 40,
                                       .reads = 6,
                                       .paths = world->paths,
                                       .alone_bytes = 1000,
                                       .send_bytes = 8192,
                                       .chunk_bytes = CHUNK}};
}

static void set_state(struct world *world, struct qp *qp, enum qp_state state)
{
    const struct qp_attributes wanted = {
        .state = (uint8_t)state, .port = 1, .qkey = QKEY, .rnr_retry = 0};
    uint32_t mask = QP_ATTR_STATE;
    mask |= state == QP_INIT ? QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY : 0u;
    mask |= state == QP_RTS ? QP_ATTR_SQ_PSN : 0u;
    assert_int_equal(qp_modify(qp, &wanted, mask, sim_instant(&world->sim)), STATUS_OK);
}

static void bring_up(struct world *world, struct qp *qp)
{
    struct process *process = qp_context(qp);
    if (qp == process->qps[RECEIVER]) {
        process->receives = process->used = 0;
    }
    set_state(world, qp, QP_INIT);
    set_state(world, qp, QP_RTR);
    set_state(world, qp, QP_RTS);
}

static void make_qp(struct world *world, struct process *process, int which)
{
    struct qp_request request = {
        .type = QP_SRD,
        .context = process,
        .pd = &process->pd,
        .send_cq = &process->cq,
        .receive_cq = &process->cq,
        .capacity = {.sends = MESSAGES, .receives = RECEIVES, .send_sges = 2, .receive_sges = 2}};
    const size_t bytes = (qp_bytes(QP_SRD, &request.capacity, false) + 63) & ~(size_t)63;
    process->qp_memory[which] = aligned_alloc(64, bytes);
    memset(process->qp_memory[which], 0, bytes);
    assert_int_equal(
        qp_create(process->nic, &request, process->qp_memory[which], &process->qps[which]),
        STATUS_OK);
    bring_up(world, process->qps[which]);
}

static void fill_memory(struct memory *memory)
{
    memset(memory, 0, sizeof(*memory));
    for (uint32_t i = 0; i < MESSAGES; i++) {
        for (uint32_t k = 0; k < BYTES; k++) {
            memory->out[i][k] = pattern(i, k);
        }
    }
}

static void start(struct world *world, uint32_t number)
{
    struct process *process = &world->processes[number];
    const struct nic_limits shape = limits(world);
    const size_t bytes = (nic_bytes(&shape) + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    process->life++;
    process->receives = 0;
    process->nic = nic_init(&shape, prng_next(&world->sim.prng), memory);
    nic_note_time(process->nic, sim_instant(&world->sim));
    struct nic_routes *routes = srd_own_routes(process->nic);
    routes->ports = 1;
    routes->own_count = process->second;
    routes->own[0] = process->gids[1];
    process->memory = malloc(sizeof(*process->memory));
    fill_memory(process->memory);
    process->pd = (struct pd){0};
    process->ring = calloc(cq_ring_entries(512), sizeof(struct completion));
    cq_init(&process->cq, 512, process->ring);
    const struct region_request region = {.address = (uintptr_t)process->memory,
                                          .bytes = sizeof(*process->memory),
                                          .start = (uintptr_t)process->memory,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    process->region = (struct region){0};
    assert_int_equal(region_add(nic_regions(process->nic), &process->pd, &region, &process->region),
                     STATUS_OK);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        uint16_t host;
        assert_int_equal(srd_hold_host(process->nic, &world->processes[i].gids[0], &host),
                         STATUS_OK);
    }
    for (int i = 0; i < QP_COUNT; i++) {
        make_qp(world, process, i);
    }
}

static void end(struct process *process)
{
    for (int i = 0; i < QP_COUNT; i++) {
        qp_destroy(process->qps[i]);
        free(process->qp_memory[i]);
    }
    free(process->nic);
    free(process->memory);
    free(process->ring);
}

/* -- Programs -----------------------------------------------------------------------------------*/

static void post_receives(struct world *world, struct process *process, uint32_t count)
{
    (void)world;
    while (count-- != 0) {
        const uint32_t slot = process->receives % RECEIVES;
        const struct sge sge = {.address = (uintptr_t)process->memory->receives[slot],
                                .bytes = BYTES,
                                .key = region_lkey(nic_regions(process->nic), &process->region)};
        if (qp_post_receive(process->qps[RECEIVER], slot, &sge, 1) != STATUS_OK) {
            return;
        }
        process->receives++;
    }
}

static void post(struct world *world, uint32_t number)
{
    struct message *message = &world->messages[number];
    struct process *from = &world->processes[message->from], *to = &world->processes[message->to];
    const bool reads = message->kind == WORK_READ;
    const uint8_t *local = reads ? from->memory->in[number] : from->memory->out[number];
    const uint8_t *remote = reads ? to->memory->out[number] : to->memory->in[number];
    const struct nic_av av = {.source = from->gids[0], .destination = to->gids[0], .hop_limit = 64};
    /* In two pieces. */
    const uint32_t half = message->bytes / 3;
    const struct sge sges[2] = {{.address = (uintptr_t)local,
                                 .bytes = half,
                                 .key = region_lkey(nic_regions(from->nic), &from->region)},
                                {.address = (uintptr_t)local + half,
                                 .bytes = message->bytes - half,
                                 .key = region_lkey(nic_regions(from->nic), &from->region)}};
    const struct send_request request = {.wr_id = number,
                                         .kind = message->kind,
                                         .sges = sges,
                                         .sge_count = 2,
                                         .immediate = number,
                                         .remote_address = (uintptr_t)remote,
                                         .remote_key = to->region.key,
                                         .av = &av,
                                         .destination_qpn = qp_number(to->qps[RECEIVER]),
                                         .destination_qkey = QKEY};
    message->posted = true;
    message->outcome = PENDING;
    message->from_life = from->life;
    message->to_life = to->life;
    nic_note_time(from->nic, sim_instant(&world->sim));
    assert_int_equal(qp_post_send(from->qps[SENDER], &request), STATUS_OK);
}

static void compare(const struct world *world, const uint8_t *bytes, uint32_t number)
{
    for (uint32_t i = 0; i < world->messages[number].bytes; i++) {
        if (bytes[i] != pattern(number, i)) {
            violated(world, "wrong bytes", number);
        }
    }
}

static void on_receive(struct world *world, struct process *process,
                       const struct completion *completion)
{
    if (completion->status != COMPLETION_SUCCESS) {
        assert_int_equal(completion->status, COMPLETION_FLUSHED);
        return;
    }
    const uint32_t number = completion->immediate;
    assert_true(number < MESSAGES);
    struct message *message = &world->messages[number];
    const bool send = completion->kind == COMPLETION_RECEIVE;
    deliveries++;
    process->used++;
    if (++message->delivered > 1) {
        violated(world, "delivered twice", number);
    }
    if (message->outcome == NOT_TAKEN) {
        violated(world, "delivered after an error that says it was not taken", number);
    }
    assert_int_equal(completion->bytes, message->bytes);
    assert_true(gid_equal(srd_host_gid(process->nic, completion->host),
                          &world->processes[message->from].gids[0]));
    /* A process that came in the place of another has other memory, where WRITEs do not reach. */
    compare(world,
            send ? process->memory->receives[completion->wr_id] : process->memory->in[number],
            number);
}

static void on_sent(struct world *world, const struct completion *completion)
{
    const uint32_t number = (uint32_t)completion->wr_id;
    struct message *message = &world->messages[number];
    /* A request that waited in its queue pair has no status of SRD. */
    const enum srd_status status = completion->status == COMPLETION_FLUSHED
                                       ? SRD_STATUS_FLUSHED
                                       : (enum srd_status)completion->vendor_error;
    assert_int_equal(completion->status, srd_completion_status(status));
    if (message->outcome != PENDING) {
        violated(world, "completed twice", number);
    }
    statuses[status]++;
    switch ((uint32_t)status) {
    case SRD_STATUS_OK:
        message->outcome = SUCCEEDED;
        if (message->kind == WORK_READ) {
            compare(world, world->processes[message->from].memory->in[number], number);
            /* The program may use that memory for something else now. */
            memset(world->processes[message->from].memory->in[number], READ_DONE, BYTES);
        } else if (message->kind == WORK_WRITE) {
            if (world->processes[message->to].life == message->to_life) {
                compare(world, world->processes[message->to].memory->in[number], number);
            }
        } else if (message->delivered == 0) {
            violated(world, "a success that was not delivered", number);
        }
        return;
    case SRD_STATUS_NO_RECEIVE:
    case SRD_STATUS_BAD_QPN:
    case SRD_STATUS_BAD_ADDRESS:
    case SRD_STATUS_LOCAL_BAD_AH: /* There was no room for its peer. */
        message->outcome = NOT_TAKEN;
        if (message->delivered != 0) {
            violated(world, "an error that says it was not taken, and it was", number);
        }
        if (message->reposts++ < REPOSTS) {
            sim_after(&world->sim, &message->post, prng_below(&world->sim.prng, 20 * MS));
        }
        return;
    default: message->outcome = UNKNOWN; return;
    }
}

static void poll(struct world *world, struct process *process)
{
    struct completion completion = {0};
    while (cq_poll(&process->cq, &completion, 1) != 0) {
        if (completion_is_receive(&completion)) {
            on_receive(world, process, &completion);
        } else {
            on_sent(world, &completion);
        }
    }
}

static void on_post(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct message *message = CONTAINER_OF(event, struct message, post);
    struct process *process = &world->processes[message->from];
    if (process->stopped) {
        sim_schedule(sim, event, process->stopped_until_ps + 1);
    } else if (qp_state_of(process->qps[SENDER]) != QP_RTS) {
        sim_after(sim, event, 50 * MS);
    } else if (message->outcome != UNKNOWN) {
        post(world, (uint32_t)(message - world->messages));
    }
}

/* -- The network --------------------------------------------------------------------------------*/

static void finish_move(struct world *world, struct process *process, struct nic_move *move)
{
    const uint8_t *from = move->payload;
    for (uint32_t i = 0; move->kind == NIC_MOVE_SCATTER && i < move->segment_count; i++) {
        memcpy((void *)(uintptr_t)move->segments[i].address, from, move->segments[i].bytes);
        from += move->segments[i].bytes;
    }
    nic_on_moved(process->nic, move, NIC_MOVED, sim_instant(&world->sim));
}

static void on_late_move(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct late_move *late = CONTAINER_OF(event, struct late_move, event);
    struct process *process = &world->processes[late->process];
    if (process->life == late->life) {
        finish_move(world, process, &late->move);
    }
    link_give(late->datagram);
    sim_pool_give(&world->moves, late);
}

static void begin_move(struct world *world, struct datagram *datagram, struct nic_move *move)
{
    struct process *process = &world->processes[datagram->to / WAYS];
    if (world->move_ps == 0) {
        finish_move(world, process, move);
        link_give(datagram);
        return;
    }
    struct late_move *late = sim_pool_take(&world->moves);
    CHECK(late != NULL);
    sim_event_init(&late->event, on_late_move);
    late->process = datagram->to / WAYS;
    late->life = process->life;
    late->datagram = datagram;
    late->move = *move;
    sim_after(&world->sim, &late->event, prng_below(&world->sim.prng, world->move_ps));
}

/* A datagram's end: a process and one of its addresses. */
static uint32_t end_of(const struct world *world, const struct gid *gid)
{
    uint32_t end = 0;
    while (!gid_equal(&world->processes[end / WAYS].gids[end % WAYS], gid)) {
        CHECK(++end < PROCESSES * WAYS);
    }
    return end;
}

static const struct gid *gid_of(const struct world *world, uint32_t end)
{
    return &world->processes[end / WAYS].gids[end % WAYS];
}

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct datagram *datagram = link_datagram(event);
    struct process *process = &world->processes[datagram->to / WAYS];
    struct nic_move move;
    if (process->stopped) { /* It waits in the socket. */
        sim_schedule(sim, event, process->stopped_until_ps + 1);
        return;
    }
    sim_note(sim, (uint64_t)datagram->count << 32 | datagram->from << 8 | datagram->to);
    const struct nic_frame frame = {.headers = datagram->bytes,
                                    .headers_bytes = datagram->count,
                                    .source = *gid_of(world, datagram->from),
                                    .destination = *gid_of(world, datagram->to),
                                    .hop_limit = 64};
    if (nic_on_packet(process->nic, &frame, sim_instant(sim), &move) == NIC_MOVES) {
        begin_move(world, datagram, &move);
    } else {
        link_give(datagram);
    }
}

/* A second address is on the second network, also for packets to a process that has none. */
static void transmit(struct world *world, uint32_t number, const struct nic_departure *departure)
{
    uint8_t bytes[FRAME_MAX];
    uint32_t count = departure->headers_bytes;
    const uint32_t from = end_of(world, &departure->av->source);
    const uint32_t to = end_of(world, &departure->av->destination);
    const uint32_t way = (from | to) % WAYS;
    CHECK(from / WAYS == number && departure->route <= way);
    world->by_way[way]++;
    memcpy(bytes, departure->headers, count);
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(bytes + count, (const void *)(uintptr_t)segment->address, segment->bytes);
        count += segment->bytes;
    }
    memset(bytes + count, 0, departure->pad_bytes);
    link_send(&world->links[way], from, to, bytes, count + departure->pad_bytes);
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    struct process *process = CONTAINER_OF(event, struct process, timer);
    if (!process->stopped) {
        nic_on_time(process->nic, sim_instant(sim));
    }
}

static void serve(struct world *world, uint32_t number)
{
    struct process *process = &world->processes[number];
    struct nic_event event;
    struct nic_departure departure;
    struct qp *qp;
    if (process->stopped) {
        return;
    }
    nic_check(process->nic);
    if (srd_own_routes(process->nic)->random == 0) {
        srd_own_routes(process->nic)->random = prng_next(&world->sim.prng);
    }
    while ((qp = nic_next_qp(process->nic)) != NULL) {
        if (nic_next_packet(process->nic, qp, sim_instant(&world->sim), &departure)) {
            transmit(world, number, &departure);
            nic_rotate(process->nic, qp);
        }
    }
    while (nic_next_event(process->nic, &event)) {
    }
    poll(world, process);
    timer_set(&world->sim, &process->timer, nic_deadline(process->nic));
}

/* -- Fates --------------------------------------------------------------------------------------*/

static void kill_process(struct world *world, uint32_t number)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message *message = &world->messages[i];
        if (message->from == number && message->posted && message->outcome == PENDING) {
            message->outcome = UNKNOWN;
        }
    }
    poll(world, &world->processes[number]); /* Deliveries before its end count. */
    end(&world->processes[number]);
    start(world, number);
}

/* The network is good from now on, and there are receives. */
static void heal(struct world *world)
{
    for (uint32_t way = 0; way < WAYS; way++) {
        uint32_t *faults = world->links[way].settings.faults.millionths;
        memset(faults, 0, sizeof(world->links[way].settings.faults.millionths));
        world->links[way].cut_until_ps = 0;
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct process *process = &world->processes[i];
        for (int k = 0; k < QP_COUNT; k++) {
            if (qp_state_of(process->qps[k]) == QP_RESET) {
                bring_up(world, process->qps[k]);
            }
        }
        post_receives(world, process, RECEIVES);
    }
}

static void happen(struct world *world, const struct fate *fate)
{
    struct process *process = &world->processes[fate->process];
    struct qp *qp = process->qps[fate->which];
    switch (fate->what) {
    case KILLED: kill_process(world, fate->process); return;
    case STOPPED:
        process->stopped = fate->until_ps > world->sim.now_ps;
        process->stopped_until_ps = fate->until_ps;
        return;
    case LEAVES:
        if (qp_state_of(qp) == QP_RTS) {
            set_state(world, qp, QP_ERR);
            poll(world, process);
            set_state(world, qp, QP_RESET);
        }
        return;
    case COMES_BACK:
        if (qp_state_of(qp) == QP_RESET) {
            bring_up(world, qp);
        }
        return;
    case GETS_RECEIVES:
        post_receives(world, process, 1 + (uint32_t)prng_below(&world->sim.prng, 3));
        return;
    case PARTED:
        world->links[0].cut_until_ps = world->links[1].cut_until_ps = fate->until_ps;
        return;
    case CUT: world->links[fate->process].cut_until_ps = fate->until_ps; return;
    case HEALED: heal(world); return;
    }
}

static void on_fate(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct fate *fate = CONTAINER_OF(event, struct fate, event);
    struct process *process = &world->processes[fate->process];
    if (process->stopped && fate->what != KILLED && fate->what != PARTED && fate->what != CUT) {
        if (sim->now_ps < process->stopped_until_ps) {
            sim_schedule(sim, event, process->stopped_until_ps + 1);
            return;
        }
    }
    happen(world, fate);
}

static void on_wake(struct sim *sim, struct sim_event *event)
{
    struct world *world = world_of(sim);
    struct fate *fate = CONTAINER_OF(event, struct fate, event);
    struct process *process = &world->processes[fate->process];
    process->stopped = process->stopped && process->stopped_until_ps > sim->now_ps;
}

static void add_fate(struct world *world, enum happening what, uint32_t process, uint64_t at_ps,
                     uint64_t until_ps)
{
    CHECK(world->fate_count + 2 <= COUNT_OF(world->fates));
    struct fate *fate = &world->fates[world->fate_count++];
    *fate = (struct fate){.what = what,
                          .process = process,
                          .which = (int)(at_ps / 1000000 % QP_COUNT),
                          .until_ps = until_ps};
    sim_event_init(&fate->event, on_fate);
    sim_schedule(&world->sim, &fate->event, at_ps);
    if (what == STOPPED) {
        struct fate *wake = &world->fates[world->fate_count++];
        *wake = (struct fate){.process = process};
        sim_event_init(&wake->event, on_wake);
        sim_schedule(&world->sim, &wake->event, until_ps);
    }
}

static void draw_fates(struct world *world, uint64_t begin_ps)
{
    struct prng *prng = &world->sim.prng;
    const uint64_t span = world->span_ps;
    const uint32_t mode = (uint32_t)prng_below(prng, 8);
    for (int i = 0; i < 60; i++) {
        add_fate(world, GETS_RECEIVES, (uint32_t)prng_below(prng, PROCESSES),
                 begin_ps + prng_below(prng, span + 2 * S), 0);
    }
    for (int i = 0; i < 3; i++) {
        const uint32_t process = (uint32_t)prng_below(prng, PROCESSES);
        const uint64_t at_ps = begin_ps + prng_below(prng, span);
        if (mode & 1) {
            add_fate(world, KILLED, process, at_ps, 0);
        }
        if (mode & 2) {
            const uint64_t long_ps = prng_below(prng, 2) * prng_below(prng, 40 * S);
            add_fate(world, STOPPED, (uint32_t)prng_below(prng, PROCESSES), at_ps,
                     at_ps + 1 + long_ps + prng_below(prng, S / 5));
        }
        if ((mode & 4) && i < 2) {
            add_fate(world, LEAVES, process, at_ps, 0);
            add_fate(world, COMES_BACK, process, at_ps + prng_below(prng, 2 * S), 0);
        }
    }
    if (prng_below(prng, 5) == 0) {
        const uint64_t at_ps = begin_ps + prng_below(prng, span);
        add_fate(world, PARTED, 0, at_ps, at_ps + prng_below(prng, 8 * S));
    }
    for (int i = 0; i < 2; i++) {
        const uint64_t at_ps = begin_ps + prng_below(prng, span);
        add_fate(world, CUT, (uint32_t)prng_below(prng, WAYS), at_ps,
                 at_ps + prng_below(prng, 2) * prng_below(prng, 8 * S));
    }
    add_fate(world, HEALED, 0, begin_ps + span + 50 * S, 0);
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static struct link_settings draw_network(struct prng *prng)
{
    struct link_settings settings = {.latency_ps = 20 * MS / 1000 + prng_below(prng, MS / 30),
                                     .reorder_ps = 3 * MS,
                                     .late_ps = prng_below(prng, 2) ? 40 * S : 2 * S};
    uint32_t *faults = settings.faults.millionths;
    faults[SIM_FAULT_drop] = (uint32_t)(prng_below(prng, 2) * prng_below(prng, 300000));
    faults[SIM_FAULT_duplicate] = (uint32_t)(prng_below(prng, 2) * prng_below(prng, 300000));
    faults[SIM_FAULT_late] = (uint32_t)(prng_below(prng, 2) * prng_below(prng, 60000));
    faults[SIM_FAULT_reorder] = (uint32_t)(prng_below(prng, 2) * prng_below(prng, 500000));
    return settings;
}

static void draw_message(struct world *world, uint32_t number, uint64_t begin_ps)
{
    static const enum work_kind kinds[] = {WORK_SEND_IMMEDIATE, WORK_SEND_IMMEDIATE,
                                           WORK_SEND_IMMEDIATE, WORK_WRITE_IMMEDIATE,
                                           WORK_WRITE,          WORK_READ};
    struct message *message = &world->messages[number];
    struct prng *prng = &world->sim.prng;
    message->from = (uint32_t)prng_below(prng, PROCESSES);
    message->to = (message->from + 1 + (uint32_t)prng_below(prng, PROCESSES - 1)) % PROCESSES;
    message->kind = kinds[prng_below(prng, COUNT_OF(kinds))];
    message->bytes = (uint32_t)prng_below(prng, prng_below(prng, 2) ? CHUNK : BYTES) + 1;
    message->last_words = number >= MESSAGES * 3 / 4;
    sim_event_init(&message->post, on_post);
    sim_schedule(&world->sim, &message->post,
                 message->last_words ? begin_ps + world->span_ps + 100 * S + prng_below(prng, 2 * S)
                                     : begin_ps + prng_below(prng, world->span_ps));
}

static void make(struct world *world, uint64_t seed)
{
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    sim_init(&world->sim, seed);
    struct prng *prng = &world->sim.prng;
    const uint64_t begin_ps = 1000 * S;
    sim_run_until(&world->sim, begin_ps);
    link_pool_open(&world->packets, PACKETS, FRAME_MAX);
    sim_pool_open(&world->moves, PACKETS, sizeof(struct late_move));
    for (uint32_t way = 0; way < WAYS; way++) {
        const struct link_settings settings = draw_network(prng);
        link_init(&world->links[way], &world->sim, &world->packets, &settings, on_arrival);
    }
    world->paths = (uint32_t)prng_below(prng, SRD_FLOW_PATHS + 1);
    world->move_ps = prng_below(prng, 2) * prng_below(prng, MS);
    world->tight = prng_below(prng, 4) == 0;
    world->crowded = prng_below(prng, 3) == 0;
    world->span_ps = prng_below(prng, 2) ? 2 * S : 60 * S;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        for (uint32_t way = 0; way < WAYS; way++) {
            world->processes[i].gids[way] =
                (struct gid){{[10] = 0xff, 0xff, 10, (uint8_t)way, 0, (uint8_t)(i + 1)}};
        }
        world->processes[i].second = prng_below(prng, 4) != 0;
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        sim_event_init(&world->processes[i].timer, on_timer);
        start(world, i);
        post_receives(world, &world->processes[i], (uint32_t)prng_below(prng, 4));
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        draw_message(world, i, begin_ps);
    }
    draw_fates(world, begin_ps);
}

/* Nothing was written there after the READ completed. */
static void check_read(const struct world *world, uint32_t number)
{
    const struct message *message = &world->messages[number];
    const struct process *process = &world->processes[message->from];
    const uint8_t *bytes = process->memory->in[number];
    for (uint32_t i = 0; message->kind == WORK_READ && message->outcome == SUCCEEDED &&
                         message->from_life == process->life && i < BYTES;
         i++) {
        if (bytes[i] != READ_DONE) {
            violated(world, "written after the READ completed", number);
        }
    }
}

static void check_receives(const struct process *process)
{
    const struct nic_account account = nic_account_of(process->qps[RECEIVER]);
    assert_int_equal(account.receives, process->receives - process->used);
}

/* Everything has ended. Receives that no message got are still there for the next one. */
static void check_end(const struct world *world)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct message *message = &world->messages[i];
        if (message->outcome == PENDING) {
            violated(world, "not completed", i);
        }
        if (message->last_words && message->outcome != SUCCEEDED && !world->tight) {
            violated(world, "failed, although all was well", i);
        }
        check_read(world, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        nic_check(world->processes[i].nic);
        assert_true(srd_is_quiet(world->processes[i].nic));
        check_receives(&world->processes[i]);
    }
}

static uint64_t run(uint64_t seed)
{
    static struct world world;
    make(&world, seed);
    const uint64_t end_ps = world.sim.now_ps + world.span_ps + 160 * S;
    do {
        for (uint32_t i = 0; i < PROCESSES; i++) {
            serve(&world, i);
        }
    } while (sim_next_ps(&world.sim) < end_ps && sim_step(&world.sim));
    check_end(&world);
    packets_by_way[0] += world.by_way[0];
    packets_by_way[1] += world.by_way[1];
    for (uint32_t i = 0; i < PROCESSES; i++) {
        end(&world.processes[i]);
    }
    sim_pool_close(&world.packets);
    sim_pool_close(&world.moves);
    return world.sim.digest;
}

static struct seeds seeds;

static void test_worlds(void **state)
{
    (void)state;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        const uint64_t digest = run(seed);
        if (seed % 16 == 0) {
            assert_true(run(seed) == digest);
        }
    }
    for (uint32_t i = 0; i <= SRD_STATUS_FEATURE_MISMATCH; i++) {
        if (statuses[i] != 0) {
            print_message("%s: %llu\n", srd_status_name((uint8_t)i),
                          (unsigned long long)statuses[i]);
        }
    }
    print_message("deliveries: %llu; packets by each way: %llu, %llu\n",
                  (unsigned long long)deliveries, (unsigned long long)packets_by_way[0],
                  (unsigned long long)packets_by_way[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds)};
    seeds = seeds_from_arguments(argc, argv, 100);
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
