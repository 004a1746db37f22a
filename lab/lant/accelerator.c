/* SPDX-License-Identifier: BSD-2-Clause
 *
 * accelerator - see accelerator.h.
 */
#include "lab/lant/accelerator.h"

#include <string.h>

enum {
    AGAIN_CYCLES = 16, /* Until an accelerator looks again whether the interface has room. */
};

static struct sim *sim_of(const struct lant_accelerator *accelerator)
{
    return accelerator->node->world->sim;
}

static uint64_t copy_ps(const struct lant_accelerator *accelerator, uint64_t bytes)
{
    const uint64_t bursts = (bytes + LANT_ACCELERATOR_BURST - 1) / LANT_ACCELERATOR_BURST;
    return lant_cycles(bursts * accelerator->config.burst_cycles);
}

static void look_at_buffers(struct lant_accelerator *accelerator)
{
    sim_reschedule(sim_of(accelerator), &accelerator->back, sim_of(accelerator)->now_ps);
}

/* -- Work ---------------------------------------------------------------------------------------*/

void lant_accelerator_encode(const struct lant_accelerator_work *work,
                             uint8_t bytes[LANT_ACCELERATOR_WORK_BYTES])
{
    const uint64_t words[LANT_ACCELERATOR_WORDS] = {work->source, work->bytes, work->destination,
                                                    work->result_bytes, work->notification};
    for (uint32_t i = 0; i < LANT_ACCELERATOR_WORK_BYTES; i++) {
        bytes[i] = (uint8_t)(words[i / 8] >> i % 8 * 8);
    }
}

static struct lant_accelerator_work decode(const uint8_t bytes[LANT_ACCELERATOR_WORK_BYTES])
{
    uint64_t words[LANT_ACCELERATOR_WORDS] = {0};
    for (uint32_t i = 0; i < LANT_ACCELERATOR_WORK_BYTES; i++) {
        words[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
    }
    return (struct lant_accelerator_work){words[0], words[1], words[2], words[3], words[4]};
}

static bool in_memory(const struct lant_accelerator *accelerator, uint64_t address, uint64_t bytes)
{
    const uint64_t memory = accelerator->node->world->config.memory_bytes;
    return bytes <= memory && address <= memory - bytes;
}

static bool makes_sense(const struct lant_accelerator *accelerator,
                        const struct lant_accelerator_work *work)
{
    if (work->bytes > LANT_ACCELERATOR_BLOCK_MAX || work->result_bytes > work->bytes ||
        work->result_bytes == 0 || !in_memory(accelerator, work->source, work->bytes)) {
        return false;
    }
    if (accelerator->config.role != LANT_ACCELERATOR_LAST) {
        return work->result_bytes == accelerator->config.remote_bytes;
    }
    return in_memory(accelerator, work->destination, work->result_bytes) &&
           in_memory(accelerator, work->notification, sizeof(uint64_t));
}

enum lant_accelerator_verdict lant_accelerator_work(struct lant_accelerator *accelerator,
                                                    const struct lant_accelerator_work *work)
{
    if (!makes_sense(accelerator, work)) {
        accelerator->counters.refused++;
        return LANT_ACCELERATOR_REFUSES;
    }
    if (accelerator->works.count == LANT_ACCELERATOR_WORKS) {
        return LANT_ACCELERATOR_FULL;
    }
    const uint32_t at = accelerator->works.first + accelerator->works.count++;
    accelerator->works.ring[at % LANT_ACCELERATOR_WORKS] = *work;
    accelerator->counters.works++;
    look_at_buffers(accelerator);
    return LANT_ACCELERATOR_TAKES;
}

/* A peer has stored a word: when all have come, in whatever order, they are work. */
static void on_stored(struct lant_device *device, uint64_t address)
{
    struct lant_accelerator *accelerator = CONTAINER_OF(device, struct lant_accelerator, device);
    const uint64_t window = accelerator->config.work_window;
    if (address < window || address - window >= LANT_ACCELERATOR_WORK_BYTES) {
        return;
    }
    const uint32_t word = UINT32_C(1) << (address - window) / 8;
    accelerator->counters.overruns += (accelerator->words & word) != 0;
    accelerator->words |= word;
    if (accelerator->words == (1u << LANT_ACCELERATOR_WORDS) - 1) {
        const struct lant_accelerator_work work = decode(accelerator->node->memory + window);
        accelerator->words = 0;
        accelerator->counters.lost +=
            lant_accelerator_work(accelerator, &work) == LANT_ACCELERATOR_FULL;
    }
}

/* -- A block: pulled, computed, written ---------------------------------------------------------*/

/* Where the buffer with this place in the ring is. */
static uint64_t buffer_at(const struct lant_accelerator *accelerator, uint32_t at)
{
    return accelerator->config.role == LANT_ACCELERATOR_LAST
               ? accelerator->buffers.ring[at].work.destination
               : accelerator->config.intermediate +
                     at * lant_accelerator_stride(&accelerator->config);
}

static uint32_t newest(const struct lant_accelerator *accelerator)
{
    return (accelerator->buffers.first + accelerator->buffers.count - 1) %
           accelerator->config.buffers;
}

static void go_on(struct lant_accelerator *accelerator, enum lant_accelerator_step step,
                  uint64_t delay_ps)
{
    accelerator->step = (uint8_t)step;
    sim_after(sim_of(accelerator), &accelerator->front, delay_ps);
}

/* The next block is pulled if there is work, and a buffer for its result. */
static void start(struct lant_accelerator *accelerator)
{
    if (accelerator->step != LANT_ACCELERATOR_IDLE || accelerator->works.count == 0 ||
        accelerator->buffers.count == accelerator->config.buffers || accelerator->failed) {
        return;
    }
    const struct lant_accelerator_work work =
        accelerator->works.ring[accelerator->works.first % LANT_ACCELERATOR_WORKS];
    accelerator->works.first++;
    accelerator->works.count--;
    accelerator->buffers.count++;
    accelerator->buffers.ring[newest(accelerator)] = (struct lant_accelerator_buffer){.work = work};
    go_on(accelerator, LANT_ACCELERATOR_PULLS, copy_ps(accelerator, work.bytes));
}

/* The bytes that are written at a time: the whole result, or a part of it that can be sent
 * already. */
static uint32_t part_bytes(const struct lant_accelerator *accelerator,
                           const struct lant_accelerator_buffer *buffer)
{
    const uint32_t bytes = (uint32_t)buffer->work.result_bytes, left = bytes - buffer->written;
    const uint32_t packets = LANT_ACCELERATOR_PARTS * LANT_PAYLOAD_BYTES_MAX;
    const uint32_t part = (bytes + packets - 1) / packets * LANT_PAYLOAD_BYTES_MAX;
    return accelerator->config.overlap && part < left ? part : left;
}

static void write_part(struct lant_accelerator *accelerator)
{
    const struct lant_accelerator_config *config = &accelerator->config;
    const struct lant_accelerator_buffer *buffer = &accelerator->buffers.ring[newest(accelerator)];
    const uint64_t detour_ps = buffer->written == 0 ? config->detour_ps : 0;
    const uint64_t took_ps =
        config->direct ? 0 : copy_ps(accelerator, part_bytes(accelerator, buffer));
    go_on(accelerator, LANT_ACCELERATOR_WRITES, took_ps + detour_ps);
}

static void part_written(struct lant_accelerator *accelerator)
{
    const uint32_t at = newest(accelerator);
    struct lant_accelerator_buffer *buffer = &accelerator->buffers.ring[at];
    const uint32_t part = part_bytes(accelerator, buffer);
    memcpy(accelerator->node->memory + buffer_at(accelerator, at) + buffer->written,
           accelerator->block + buffer->written, part);
    buffer->written += part;
    look_at_buffers(accelerator);
    if (buffer->written < buffer->work.result_bytes) {
        write_part(accelerator);
    } else {
        accelerator->step = LANT_ACCELERATOR_IDLE;
    }
}

static void pulled(struct lant_accelerator *accelerator)
{
    const struct lant_accelerator_work *work = &accelerator->buffers.ring[newest(accelerator)].work;
    for (uint32_t i = 0; i < work->bytes; i++) {
        accelerator->block[i] =
            (uint8_t)(accelerator->node->memory[work->source + i] + accelerator->config.adds);
    }
    go_on(accelerator, LANT_ACCELERATOR_COMPUTES, lant_cycles(accelerator->config.latency_cycles));
}

static void on_front(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_accelerator *accelerator = CONTAINER_OF(event, struct lant_accelerator, front);
    switch ((enum lant_accelerator_step)accelerator->step) {
    case LANT_ACCELERATOR_IDLE: UNREACHABLE("an idle accelerator ends no step");
    case LANT_ACCELERATOR_PULLS: pulled(accelerator); break;
    case LANT_ACCELERATOR_COMPUTES: write_part(accelerator); break;
    case LANT_ACCELERATOR_WRITES: part_written(accelerator); break;
    case LANT_ACCELERATOR_RESTS: accelerator->step = LANT_ACCELERATOR_IDLE; break;
    }
    start(accelerator);
}

/* -- A result: given on -------------------------------------------------------------------------*/

void lant_accelerator_release(struct lant_accelerator *accelerator)
{
    CHECK(accelerator->buffers.count != 0);
    accelerator->buffers.first = (accelerator->buffers.first + 1) % accelerator->config.buffers;
    accelerator->buffers.count--;
    accelerator->counters.finished++;
    if (accelerator->step == LANT_ACCELERATOR_IDLE) {
        go_on(accelerator, LANT_ACCELERATOR_RESTS, lant_cycles(accelerator->config.turn_cycles));
    }
    look_at_buffers(accelerator);
}

static void finish(struct lant_accelerator *accelerator, struct lant_accelerator_buffer *buffer)
{
    buffer->told = true;
    accelerator->on_finished(accelerator->context,
                             buffer_at(accelerator, accelerator->buffers.first), &buffer->work);
}

/* The CPU finds a word in its memory that counts results. */
static void notify(struct lant_accelerator *accelerator, struct lant_accelerator_buffer *buffer)
{
    const uint64_t results = accelerator->counters.finished + 1;
    memcpy(accelerator->node->memory + buffer->work.notification, &results, sizeof(results));
    finish(accelerator, buffer);
    lant_accelerator_release(accelerator);
}

/* The interface has no room now, and says nothing when it has. */
static void ask_again(struct lant_accelerator *accelerator)
{
    if (!sim_event_scheduled(&accelerator->back)) {
        sim_after(sim_of(accelerator), &accelerator->back, lant_cycles(AGAIN_CYCLES));
    }
}

/* Gives the part of a result that is written to the DMA engine. */
static void push(struct lant_accelerator *accelerator, struct lant_accelerator_buffer *buffer)
{
    const struct lant_accelerator_config *config = &accelerator->config;
    const uint32_t at = accelerator->buffers.first;
    const uint32_t end =
        buffer->written < config->remote_bytes ? buffer->written : config->remote_bytes;
    if (buffer->pushed == end) {
        return;
    }
    const uint64_t remote = config->remote_bram + lant_accelerator_input(accelerator);
    const struct lant_work work = {
        .descriptor = {.source = buffer_at(accelerator, at) + buffer->pushed,
                       .destination = remote + buffer->pushed,
                       .bytes = end - buffer->pushed},
        .tag = lant_device_name(&accelerator->device)};
    const enum lant_submit verdict = lant_node_submit(accelerator->node, LANT_QUEUE_FPGA, &work);
    if (verdict == LANT_SUBMIT_COMMITTED) {
        buffer->pushed = end;
    } else if (verdict == LANT_SUBMIT_FULL) {
        ask_again(accelerator);
    } else {
        accelerator->failed = true;
    }
}

/* The next accelerator's work: five stores. */
static void tell(struct lant_accelerator *accelerator, struct lant_accelerator_buffer *buffer)
{
    const struct lant_accelerator_config *config = &accelerator->config;
    const struct lant_shm_access access = {.address = config->remote_work,
                                           .bytes = LANT_ACCELERATOR_WORK_BYTES,
                                           .token = lant_device_name(&accelerator->device),
                                           .store = true,
                                           .accelerator = true};
    const struct lant_accelerator_work work = {.source = config->remote_source +
                                                         lant_accelerator_input(accelerator),
                                               .bytes = config->remote_bytes,
                                               .destination = buffer->work.destination,
                                               .result_bytes = config->remote_bytes,
                                               .notification = config->remote_notification};
    uint8_t bytes[LANT_ACCELERATOR_WORK_BYTES];
    lant_accelerator_encode(&work, bytes);
    if (lant_node_access(accelerator->node, &access, bytes)) {
        buffer->told = true;
        accelerator->unanswered = accelerator->undone = LANT_ACCELERATOR_WORDS;
    } else {
        ask_again(accelerator);
    }
}

static void send_on(struct lant_accelerator *accelerator, struct lant_accelerator_buffer *buffer)
{
    push(accelerator, buffer);
    if (buffer->arrived < accelerator->config.remote_bytes || accelerator->failed) {
        return;
    }
    if (!buffer->told && accelerator->undone == 0) {
        tell(accelerator, buffer);
    } else if (buffer->told && accelerator->unanswered == 0) {
        lant_accelerator_release(accelerator);
    }
}

static void on_back(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct lant_accelerator *accelerator = CONTAINER_OF(event, struct lant_accelerator, back);
    struct lant_accelerator_buffer *buffer = &accelerator->buffers.ring[accelerator->buffers.first];
    const bool some = accelerator->buffers.count != 0;
    const bool whole = some && buffer->written == buffer->work.result_bytes;
    switch (accelerator->config.role) {
    case LANT_ACCELERATOR_LAST:
        if (whole) {
            notify(accelerator, buffer);
        }
        break;
    case LANT_ACCELERATOR_OFFLOADED:
        if (some) {
            send_on(accelerator, buffer);
        }
        break;
    case LANT_ACCELERATOR_BY_CPU:
        if (whole && !buffer->told) {
            finish(accelerator, buffer);
        }
        break;
    }
    start(accelerator);
}

/* -- A device of the node -----------------------------------------------------------------------*/

static void on_notification(struct lant_device *device,
                            const struct lant_notification *notification)
{
    struct lant_accelerator *accelerator = CONTAINER_OF(device, struct lant_accelerator, device);
    accelerator->failed |= (notification->status & LANT_STATUS_ERRORS) != 0;
    accelerator->buffers.ring[accelerator->buffers.first].arrived += notification->bytes;
    look_at_buffers(accelerator);
}

static void on_done(struct lant_device *device, const struct lant_shm_done *done)
{
    struct lant_accelerator *accelerator = CONTAINER_OF(device, struct lant_accelerator, device);
    accelerator->failed |= done->response != LANT_OKAY;
    accelerator->unanswered -= lant_shm_done_on_bus(done);
    accelerator->undone -= lant_shm_done_final(done);
    look_at_buffers(accelerator);
}

void lant_accelerator_open(struct lant_accelerator *accelerator,
                           const struct lant_accelerator_config *config, struct lant_api *api,
                           lant_accelerator_finished on_finished, void *context)
{
    CHECK(config->buffers >= 1 && config->buffers <= LANT_ACCELERATOR_BUFFERS_MAX &&
          (config->role == LANT_ACCELERATOR_LAST || config->remote_buffers >= 1) &&
          config->work_window % 8 == 0 && config->remote_bytes <= LANT_ACCELERATOR_BLOCK_MAX);
    memset(accelerator, 0, sizeof(*accelerator));
    accelerator->node = api->node;
    accelerator->config = *config;
    CHECK(in_memory(accelerator, config->work_window, LANT_ACCELERATOR_WORK_BYTES) &&
          in_memory(accelerator, config->intermediate,
                    config->buffers * lant_accelerator_stride(config)));
    accelerator->on_finished = on_finished;
    accelerator->context = context;
    accelerator->device.on_done = on_done;
    accelerator->device.on_notification = on_notification;
    accelerator->device.on_stored = on_stored;
    sim_event_init(&accelerator->front, on_front);
    sim_event_init(&accelerator->back, on_back);
    lant_api_add_device(api, &accelerator->device);
}

void lant_accelerator_close(struct lant_accelerator *accelerator)
{
    sim_cancel(&accelerator->front);
    sim_cancel(&accelerator->back);
    list_remove(&accelerator->device.place);
}
