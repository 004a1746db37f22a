/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/roce/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/bytes.h"

/* Where peers see the memory: not where it is. */
#define MEMORY_BASE (UINT64_C(1) << 40)
#define RETRIES     7
#define RNR_TIMER   12

static void *zeroed(size_t bytes)
{
    const size_t whole = line_aligned(bytes);
    void *memory = aligned_alloc(64, whole);
    CHECK(memory != NULL);
    return memset(memory, 0, whole);
}

/* -- Memory -------------------------------------------------------------------------------------*/

static bool is_in(uint64_t address, size_t bytes, const uint8_t *memory, size_t memory_bytes)
{
    const uint64_t offset = address - (uintptr_t)memory;
    return offset <= memory_bytes && bytes <= memory_bytes - offset;
}

static bool read_memory(void *context, uint64_t address, void *into, size_t bytes)
{
    const struct roce_program *program = context;
    const size_t qps_bytes = program->each_bytes * program->config.qps;
    if (!is_in(address, bytes, program->memory, program->config.memory_bytes) &&
        !is_in(address, bytes, program->qp_memory, qps_bytes)) {
        return false;
    }
    memcpy(into, (const void *)(uintptr_t)address, bytes);
    return true;
}

static bool write_memory(void *context, uint64_t address, const void *from, size_t bytes)
{
    struct roce_program *program = context;
    if (!is_in(address, bytes, program->memory, program->config.memory_bytes)) {
        return false;
    }
    program->written_ps = program->sim->now_ps;
    memcpy((void *)(uintptr_t)address, from, bytes);
    return true;
}

static void on_change(void *context)
{
    struct roce_program *program = context;
    program->changes++;
    if (program->on_change != NULL) {
        program->on_change(program);
    }
}

static void on_datagram(void *context, const struct gid *source, const struct gid *destination,
                        const uint8_t *payload, uint32_t bytes)
{
    struct roce_program *program = context;
    (void)destination;
    if (program->on_datagram != NULL) {
        program->on_datagram(program, source, payload, bytes);
    }
}

/* -- Opening ------------------------------------------------------------------------------------*/

static void open_engine(struct roce_program *program)
{
    const struct roce_program_config *config = &program->config;
    const struct nic_limits limits = {
        .qps = config->qps,
        .regions = 4,
        .sends_per_qp = config->depth,
        .receives_per_qp = config->depth,
        .sges = ROCE_PROGRAM_SGES,
        .inline_bytes = ROCE_PROGRAM_INLINE,
        .reads_per_qp = ROCE_PROGRAM_READS,
        .cq_entries = 2 * config->qps * config->depth,
        .mtu = config->mtu,
        .dcqcn = config->dcqcn,
    };
    program->engine_memory = zeroed(nic_bytes(&limits));
    program->engine = nic_init(&limits, config->seed, program->engine_memory);
    program->ring = calloc(cq_ring_entries(limits.cq_entries), sizeof(program->ring[0]));
    CHECK(program->ring != NULL);
    cq_init(&program->cq, limits.cq_entries, program->ring);
    const struct region_request region = {
        .address = (uintptr_t)program->memory,
        .bytes = config->memory_bytes,
        .start = MEMORY_BASE,
        .access =
            ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
    };
    CHECK(region_add(nic_regions(program->engine), &program->pd, &region, &program->region) ==
          STATUS_OK);
}

static struct qp_capacity capacity_of(const struct roce_program *program)
{
    const uint32_t depth = program->config.depth;
    return (struct qp_capacity){.sends = depth,
                                .receives = depth,
                                .send_sges = ROCE_PROGRAM_SGES,
                                .receive_sges = ROCE_PROGRAM_SGES,
                                .inline_bytes = ROCE_PROGRAM_INLINE};
}

/* The largest of all types: that of RC, or of UD, whose requests have addresses. */
static size_t qp_bytes_of(const struct roce_program *program)
{
    struct qp_capacity capacity = capacity_of(program);
    const size_t rc = qp_bytes(QP_RC, &capacity, false);
    const size_t ud = qp_bytes(QP_UD, &capacity, false);
    return line_aligned(rc > ud ? rc : ud);
}

void roce_program_open(struct roce_program *program, struct roce *roce, struct sim *sim,
                       const struct roce_program_config *config)
{
    *program = (struct roce_program){.roce = roce, .sim = sim, .config = *config};
    program->memory = zeroed(config->memory_bytes);
    open_engine(program);
    program->each_bytes = qp_bytes_of(program);
    program->qp_memory = zeroed(program->each_bytes * config->qps);
    program->qps = calloc(config->qps, sizeof(program->qps[0]));
    CHECK(program->qps != NULL);
    const struct roce_host host = {.context = program,
                                   .read = read_memory,
                                   .write = write_memory,
                                   .on_change = on_change,
                                   .on_datagram = on_datagram};
    program->function = roce_attach(roce, config->node, program->engine, &host);
    CHECK(program->function != NULL);
}

void roce_program_close(struct roce_program *program)
{
    roce_detach(program->function);
    free(program->memory);
    free(program->engine_memory);
    free(program->qp_memory);
    free(program->ring);
    free(program->qps);
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

struct qp *roce_program_qp(struct roce_program *program, enum qp_type type)
{
    const struct qp_request request = {
        .type = type,
        .pd = &program->pd,
        .send_cq = &program->cq,
        .receive_cq = &program->cq,
        .capacity = capacity_of(program),
    };
    CHECK(program->qp_count < program->config.qps);
    uint8_t *at = program->qp_memory + program->qp_count * program->each_bytes;
    struct qp **qp = &program->qps[program->qp_count++];
    CHECK(qp_create(program->engine, &request, at, qp) == STATUS_OK);
    return *qp;
}

static struct gid gid_of(const struct roce_program *program)
{
    struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 10}};
    store_be16(gid.bytes + 14, (uint16_t)roce_number(program->function));
    return gid;
}

struct nic_av roce_program_av(const struct roce_program *from, const struct roce_program *to)
{
    return (struct nic_av){.source = gid_of(from),
                           .destination = gid_of(to),
                           .hop_limit = 64,
                           .link = ROCE_LINK(roce_number(to->function))};
}

static void step(const struct roce_program *program, struct qp *qp,
                 const struct qp_attributes *attributes, uint32_t mask)
{
    uint32_t missing, excess;
    const enum qp_type type = qp_type_of(qp);
    const enum qp_state from = qp_state_of(qp), to = (enum qp_state)attributes->state;
    qp_judge_change(type, from, to, 0, &missing, &excess);
    CHECK(qp_modify(qp, attributes, QP_ATTR_STATE | missing | mask, sim_instant(program->sim)) ==
          STATUS_OK);
}

static void bring_up(struct roce_program *program, struct qp *qp, struct qp_attributes attributes)
{
    attributes.port = 1;
    for (uint32_t state = QP_INIT; state <= QP_RTS; state++) {
        attributes.state = (uint8_t)state;
        step(program, qp, &attributes, state == QP_INIT ? (uint32_t)QP_ATTR_ACCESS_FLAGS : 0);
    }
    roce_poke(program->function);
}

static void connect_one(struct roce_program *own, struct qp *qp, const struct roce_program *peer,
                        const struct qp *peer_qp)
{
    const struct qp_attributes attributes = {
        .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .path_mtu = (uint8_t)own->config.mtu,
        .destination_qpn = qp_number(peer_qp),
        .av = roce_program_av(own, peer),
        .max_reads_out = ROCE_PROGRAM_READS,
        .max_reads_in = ROCE_PROGRAM_READS,
        .min_rnr_timer = RNR_TIMER,
        .timeout = own->config.timeout,
        .retry_count = RETRIES,
        .rnr_retry = RETRIES,
    };
    bring_up(own, qp, attributes);
}

void roce_program_connect(struct roce_program *a, struct qp *a_qp, struct roce_program *b,
                          struct qp *b_qp)
{
    connect_one(a, a_qp, b, b_qp);
    connect_one(b, b_qp, a, a_qp);
}

/* -- Work ---------------------------------------------------------------------------------------*/

uint64_t roce_program_address(const struct roce_program *program, size_t offset)
{
    return program->region.start + offset;
}

static struct sge sge_of(const struct roce_program *program, size_t offset, uint32_t bytes)
{
    return (struct sge){roce_program_address(program, offset), bytes, program->region.key};
}

void roce_program_add(struct roce_program *program, struct qp *qp,
                      const struct send_request *request, size_t offset, uint32_t bytes)
{
    struct send_request own = *request;
    struct sge sge = sge_of(program, offset, bytes);
    if (own.flags & WORK_INLINE) {
        sge.address = (uintptr_t)program->memory + offset;
    }
    own.sges = &sge;
    own.sge_count = 1;
    CHECK(qp_post_send(qp, &own) == STATUS_OK);
}

void roce_program_post(struct roce_program *program, struct qp *qp,
                       const struct send_request *request, size_t offset, uint32_t bytes)
{
    roce_program_add(program, qp, request, offset, bytes);
    roce_doorbell(program->function, qp);
}

void roce_program_receive(struct roce_program *program, struct qp *qp, uint64_t wr_id,
                          size_t offset, uint32_t bytes)
{
    const struct sge sge = sge_of(program, offset, bytes);
    CHECK(qp_post_receive(qp, wr_id, &sge, 1) == STATUS_OK);
    roce_poke(program->function);
}
