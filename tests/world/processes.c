/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/world/processes.h"

#include <stdlib.h>
#include <string.h>

#include "tests/world/timer.h"

#define QKEY      5u
#define FRAME_MAX (SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX)
#define BEGIN_PS  (1000 * PROCESSES_S)

const struct srd_limits processes_roomy = {.contacts = 128,
                                           .peers = 128,
                                           .hosts = 128,
                                           .assemblies = 512,
                                           .requests = 512,
                                           .parts = 512,
                                           .packets = 2048,
                                           .reads = 64,
                                           .send_bytes = 8192,
                                           .chunk_bytes = PROCESSES_CHUNK};

static void *zeroed(size_t bytes)
{
    const size_t whole = (bytes + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, whole);
    CHECK(memory != NULL);
    memset(memory, 0, whole);
    return memory;
}

/* -- Life ---------------------------------------------------------------------------------------*/

/* The address of a process. */
static struct gid gid_of(uint32_t number)
{
    return (struct gid){{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(number + 1)}};
}

static struct nic_limits limits_of(const struct processes_settings *settings)
{
    return (struct nic_limits){.qps = 4,
                               .regions = 4,
                               .sends_per_qp = settings->depth,
                               .receives_per_qp = settings->depth,
                               .receives_per_srq = 1,
                               .sges = 1,
                               .inline_bytes = 32,
                               .reads_per_qp = 1,
                               .cq_entries = 4 * settings->depth,
                               .mtu = PATH_MTU_4096,
                               .qpn_base = 3u << 16,
                               .qpn_span = 256,
                               .srd = settings->srd};
}

static void bring_up(struct process *process)
{
    static const enum qp_state states[] = {QP_INIT, QP_RTR, QP_RTS};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const struct qp_attributes wanted = {.state = (uint8_t)states[i],
                                             .port = 1,
                                             .qkey = QKEY,
                                             .rnr_retry = process->world->settings.rnr_retry};
        uint32_t mask = QP_ATTR_STATE;
        mask |= states[i] == QP_INIT ? QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY : 0u;
        mask |= states[i] == QP_RTS ? QP_ATTR_SQ_PSN | QP_ATTR_RNR_RETRY : 0u;
        CHECK(qp_modify(process->qp, &wanted, mask, sim_instant(&process->world->sim)) ==
              STATUS_OK);
    }
}

static void make_qp(struct process *process)
{
    const uint32_t depth = process->world->settings.depth;
    struct qp_request request = {
        .type = QP_SRD,
        .pd = &process->pd,
        .send_cq = &process->cq,
        .receive_cq = &process->cq,
        .capacity = {.sends = depth, .receives = depth, .send_sges = 1, .receive_sges = 1}};
    process->qp_memory = zeroed(qp_bytes(QP_SRD, &request.capacity, false));
    CHECK(qp_create(process->nic, &request, process->qp_memory, &process->qp) == STATUS_OK);
    bring_up(process);
}

static void start(struct process *process)
{
    struct processes *world = process->world;
    const struct nic_limits shape = limits_of(&world->settings);
    process->life++;
    process->nic = nic_init(&shape, prng_next(&world->sim.prng), zeroed(nic_bytes(&shape)));
    nic_note_time(process->nic, sim_instant(&world->sim));
    process->memory = zeroed(PROCESSES_BYTES);
    process->pd = (struct pd){0};
    process->ring = calloc(cq_ring_entries(shape.cq_entries), sizeof(struct completion));
    cq_init(&process->cq, shape.cq_entries, process->ring);
    const struct region_request region = {.address = (uintptr_t)process->memory,
                                          .bytes = PROCESSES_BYTES,
                                          .start = (uintptr_t)process->memory,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    process->region = (struct region){0};
    CHECK(region_add(nic_regions(process->nic), &process->pd, &region, &process->region) ==
          STATUS_OK);
    make_qp(process);
    for (uint32_t i = 0; i < world->settings.count; i++) {
        const struct gid gid = gid_of(i);
        uint16_t host;
        CHECK(srd_hold_host(process->nic, &gid, &host) == STATUS_OK);
    }
}

static void end(struct process *process)
{
    nic_check(process->nic);
    qp_destroy(process->qp);
    free(process->qp_memory);
    free(process->nic);
    free(process->memory);
    free(process->ring);
}

void processes_restart(struct processes *world, uint32_t number)
{
    end(&world->all[number]);
    start(&world->all[number]);
    sim_cancel(&world->all[number].timer);
}

/* -- Departure ----------------------------------------------------------------------------------*/

/* PROCESSES_STRANGER: it is nobody's address. */
static uint32_t process_at(const struct processes *world, const struct gid *gid)
{
    const uint32_t number = gid->bytes[15] - 1u;
    const struct gid own = gid_of(number);
    return number < world->settings.count && gid_equal(gid, &own) ? number : PROCESSES_STRANGER;
}

static void transmit(struct processes *world, uint32_t from, const struct nic_departure *departure)
{
    uint8_t bytes[FRAME_MAX];
    uint32_t count = departure->headers_bytes;
    const uint32_t to = process_at(world, &departure->av->destination);
    memcpy(bytes, departure->headers, count);
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(bytes + count, (const void *)(uintptr_t)segment->address, segment->bytes);
        count += segment->bytes;
    }
    memset(bytes + count, 0, departure->pad_bytes);
    count += departure->pad_bytes;
    if ((world->leaves == NULL || world->leaves(world, from, to, bytes, count)) &&
        to != PROCESSES_STRANGER) {
        link_send(&world->link, from, to, bytes, count);
    }
}

/* All that a process has to send and to say to its program, which may post meanwhile. */
static void serve(struct processes *world, uint32_t number)
{
    struct process *process = &world->all[number];
    struct nic_departure departure;
    struct completion completion = {0};
    struct qp *qp;
    if (process->serves) {
        return;
    }
    process->serves = true;
    do {
        while ((qp = nic_next_qp(process->nic)) != NULL) {
            if (nic_next_packet(process->nic, qp, sim_instant(&world->sim), &departure)) {
                transmit(world, number, &departure);
                nic_rotate(process->nic, qp);
            }
        }
        while (cq_poll(&process->cq, &completion, 1) != 0) {
            world->completed(world, number, &completion);
        }
    } while (nic_next_qp(process->nic) != NULL);
    process->serves = false;
    timer_set(&world->sim, &process->timer, nic_deadline(process->nic));
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    struct process *process = CONTAINER_OF(event, struct process, timer);
    nic_on_time(process->nic, sim_instant(sim));
    serve(process->world, (uint32_t)(process - process->world->all));
}

/* -- Arrival ------------------------------------------------------------------------------------*/

bool processes_hear(struct processes *world, uint32_t to, const struct gid *source,
                    const uint8_t *bytes, uint32_t count)
{
    struct process *process = &world->all[to];
    const struct instant now = sim_instant(&world->sim);
    struct nic_move move;
    const struct nic_frame frame = {.headers = bytes,
                                    .headers_bytes = count,
                                    .source = *source,
                                    .destination = process->gid,
                                    .hop_limit = 64};
    const bool moves = nic_on_packet(process->nic, &frame, now, &move) == NIC_MOVES;
    if (moves) {
        const uint8_t *from = move.payload;
        for (uint32_t i = 0; move.kind == NIC_MOVE_SCATTER && i < move.segment_count; i++) {
            memcpy((void *)(uintptr_t)move.segments[i].address, from, move.segments[i].bytes);
            from += move.segments[i].bytes;
        }
        nic_on_moved(process->nic, &move, NIC_MOVED, now);
    }
    serve(world, to);
    return moves;
}

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    struct datagram *datagram = link_datagram(event);
    (void)processes_hear(world, datagram->to, &world->all[datagram->from].gid, datagram->bytes,
                         datagram->count);
    link_give(datagram);
}

/* -- Programs -----------------------------------------------------------------------------------*/

static struct sge sge_of(struct process *process, uint32_t offset, uint32_t bytes)
{
    CHECK(offset + bytes <= PROCESSES_BYTES);
    return (struct sge){.address = (uintptr_t)process->memory + offset,
                        .bytes = bytes,
                        .key = region_lkey(nic_regions(process->nic), &process->region)};
}

void processes_send(struct processes *world, uint32_t from, uint32_t to, enum work_kind kind,
                    uint32_t number, uint32_t offset, uint32_t bytes)
{
    struct process *sender = &world->all[from];
    const struct process *target = &world->all[to];
    const struct nic_av av = {.source = sender->gid, .destination = target->gid, .hop_limit = 64};
    const struct sge sge = sge_of(sender, offset, bytes);
    const struct send_request request = {.wr_id = number,
                                         .kind = kind,
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .immediate = number,
                                         .remote_address = (uintptr_t)target->memory + offset,
                                         .remote_key = target->region.key,
                                         .av = &av,
                                         .destination_qpn = qp_number(target->qp),
                                         .destination_qkey = QKEY};
    nic_note_time(sender->nic, sim_instant(&world->sim));
    CHECK(qp_post_send(sender->qp, &request) == STATUS_OK);
    serve(world, from);
}

void processes_receive(struct processes *world, uint32_t number, uint64_t wr_id, uint32_t offset,
                       uint32_t bytes)
{
    struct process *process = &world->all[number];
    const struct sge sge = sge_of(process, offset, bytes);
    CHECK(qp_post_receive(process->qp, wr_id, &sge, 1) == STATUS_OK);
}

bool processes_are_quiet(const struct processes *world)
{
    bool quiet = true;
    for (uint32_t i = 0; i < world->settings.count; i++) {
        nic_check(world->all[i].nic);
        quiet &= srd_is_quiet(world->all[i].nic);
    }
    return quiet;
}

/* -- The world ----------------------------------------------------------------------------------*/

void processes_make(struct processes *world, const struct processes_settings *settings,
                    uint64_t seed)
{
    CHECK(settings->count < 255 && settings->srd.hosts >= settings->count);
    world->seed = seed;
    world->settings = *settings;
    sim_init(&world->sim, seed);
    sim_run_until(&world->sim, BEGIN_PS);
    link_pool_open(&world->datagrams, settings->datagrams, FRAME_MAX);
    link_init(&world->link, &world->sim, &world->datagrams, &settings->link, on_arrival);
    world->all = calloc(settings->count, sizeof(*world->all));
    for (uint32_t i = 0; i < settings->count; i++) {
        struct process *process = &world->all[i];
        process->world = world;
        process->gid = gid_of(i);
        sim_event_init(&process->timer, on_timer);
        start(process);
    }
}

void processes_end(struct processes *world)
{
    CHECK(world->link.crowded == 0);
    for (uint32_t i = 0; i < world->settings.count; i++) {
        end(&world->all[i]);
    }
    free(world->all);
    sim_pool_close(&world->datagrams);
}
