/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/scheduler.h"

#define LINE_BYTES EXANEST_PAYLOAD_BYTES_MAX /* No packet crosses a line of this size. */

static bool marked(const uint64_t *marks, uint32_t tid)
{
    return marks[tid / 64] >> tid % 64 & 1;
}

static void mark(uint64_t *marks, uint32_t tid)
{
    marks[tid / 64] |= UINT64_C(1) << tid % 64;
}

static void unmark(uint64_t *marks, uint32_t tid)
{
    marks[tid / 64] &= ~(UINT64_C(1) << tid % 64);
}

void exanest_scheduler_init(struct exanest_scheduler *scheduler,
                            const struct exanest_scheduler_config *config)
{
    CHECK(config->ports >= 1 && config->ports <= EXANEST_PATHS_MAX);
    CHECK(config->entries >= 1 && config->entries <= EXANEST_TIDS);
    CHECK(config->cycles >= EXANEST_SCHEDULER_CYCLES);
    CHECK(config->cycles <= UINT8_MAX);
    CHECK(config->coordinate >> EXANEST_COORDINATE_BITS == 0);
    *scheduler = (struct exanest_scheduler){.config = *config};
}

static void exanest_scheduler_check_counts(const struct exanest_scheduler *scheduler)
{
    CHECK((uint32_t)scheduler->count + scheduler->in_hand <= scheduler->config.entries);
    CHECK(scheduler->head < scheduler->config.entries);
    CHECK(scheduler->state <= EXANEST_SCHEDULER_PAUSE);
    CHECK(scheduler->in_hand == (scheduler->state >= EXANEST_SCHEDULER_DEQUEUE &&
                                 scheduler->state <= EXANEST_SCHEDULER_READ_2));
    CHECK(!scheduler->in_hand || !marked(scheduler->queued, scheduler->tid));
    CHECK(scheduler->in_hand || !scheduler->renewed);
    CHECK(!scheduler->read_shown || scheduler->state == EXANEST_SCHEDULER_READ_1 ||
          scheduler->state == EXANEST_SCHEDULER_READ_2);
}

void exanest_scheduler_check(const struct exanest_scheduler *scheduler)
{
    uint64_t seen[EXANEST_TIDS / 64] = {0};
    exanest_scheduler_check_counts(scheduler);
    for (uint32_t i = 0; i < scheduler->count; i++) {
        const uint32_t tid = scheduler->fifo[(scheduler->head + i) % scheduler->config.entries];
        CHECK(tid < EXANEST_TIDS && !marked(seen, tid));
        mark(seen, tid);
    }
    if (scheduler->in_hand) {
        mark(seen, scheduler->tid);
    }
    for (uint32_t i = 0; i < EXANEST_TIDS / 64; i++) {
        const uint64_t hand =
            scheduler->in_hand && scheduler->tid / 64 == i ? UINT64_C(1) << scheduler->tid % 64 : 0;
        CHECK(seen[i] == (scheduler->queued[i] | hand));
        CHECK((scheduler->killed[i] & ~seen[i]) == 0);
    }
}

/* -- Channels -----------------------------------------------------------------------------------*/

void exanest_scheduler_map(struct exanest_scheduler *scheduler, uint32_t channel, uint16_t pdid)
{
    CHECK(channel < EXANEST_AXI_IDS);
    scheduler->channels |= (uint8_t)(1u << channel);
    scheduler->pdids[channel] = pdid;
}

/* -1: it has none. */
static int exanest_scheduler_channel(const struct exanest_scheduler *scheduler, uint16_t pdid)
{
    for (uint32_t left = scheduler->channels; left != 0; left &= left - 1) {
        const int channel = __builtin_ctz(left);
        if (scheduler->pdids[channel] == pdid) {
            return channel;
        }
    }
    return -1;
}

/* -- The FIFO -----------------------------------------------------------------------------------*/

static void push(struct exanest_scheduler *scheduler, uint32_t tid)
{
    const uint32_t entries = scheduler->config.entries;
    CHECK(scheduler->count < entries && !marked(scheduler->queued, tid));
    const uint32_t tail = scheduler->head + scheduler->count;
    scheduler->fifo[tail < entries ? tail : tail - entries] = (uint16_t)tid;
    scheduler->count++;
    mark(scheduler->queued, tid);
}

static void push_in_front(struct exanest_scheduler *scheduler, uint32_t tid)
{
    const uint32_t entries = scheduler->config.entries;
    CHECK(scheduler->count < entries && !marked(scheduler->queued, tid));
    scheduler->head = (uint16_t)(scheduler->head == 0 ? entries - 1 : scheduler->head - 1u);
    scheduler->fifo[scheduler->head] = (uint16_t)tid;
    scheduler->count++;
    mark(scheduler->queued, tid);
}

static uint32_t pop(struct exanest_scheduler *scheduler)
{
    const uint32_t tid = scheduler->fifo[scheduler->head];
    scheduler->head =
        (uint16_t)(scheduler->head + 1u == scheduler->config.entries ? 0 : scheduler->head + 1u);
    scheduler->count--;
    unmark(scheduler->queued, tid);
    return tid;
}

void exanest_scheduler_renewed(struct exanest_scheduler *scheduler, uint32_t tid)
{
    CHECK(tid < EXANEST_TIDS);
    unmark(scheduler->killed, tid);
    if (scheduler->in_hand && scheduler->tid == tid) {
        scheduler->renewed = true;
        scheduler->again = false;
    }
}

void exanest_scheduler_enqueue(struct exanest_scheduler *scheduler, uint32_t tid)
{
    INVARIANTS(exanest_scheduler_check_counts(scheduler));
    CHECK(exanest_scheduler_ready(scheduler));
    exanest_scheduler_renewed(scheduler, tid);
    if (scheduler->in_hand && scheduler->tid == tid) {
        scheduler->counters.enqueued_twice++;
        scheduler->again = true;
    } else if (marked(scheduler->queued, tid)) {
        scheduler->counters.enqueued_twice++;
    } else {
        push(scheduler, tid);
    }
    INVARIANTS(exanest_scheduler_check_counts(scheduler));
}

void exanest_scheduler_fault(struct exanest_scheduler *scheduler, struct exanest_pending_list *list,
                             uint32_t tid, uint32_t sequence)
{
    const struct exanest_descriptor descriptor = exanest_pending_descriptor(list, tid);
    if (descriptor.sequence != sequence) {
        scheduler->counters.stale_faults++;
        return;
    }
    scheduler->counters.faults++;
    const bool active =
        marked(scheduler->queued, tid) || (scheduler->in_hand && scheduler->tid == tid);
    if (active) {
        mark(scheduler->killed, tid);
    } else {
        exanest_pending_publish(list, tid, descriptor.sent, descriptor.done, true);
    }
}

/* -- A turn -------------------------------------------------------------------------------------*/

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t buffer_of(const struct exanest_scheduler *scheduler, uint32_t port)
{
    return scheduler->config.shares_buffer ? 0 : port;
}

/* The next one's turn begins in this cycle, if there is one. */
static void begin(struct exanest_scheduler *scheduler)
{
    scheduler->state = EXANEST_SCHEDULER_IDLE;
    if (scheduler->count != 0) {
        scheduler->tid = (uint16_t)pop(scheduler);
        scheduler->in_hand = true;
        scheduler->state = EXANEST_SCHEDULER_DEQUEUE;
    }
}

static enum exanest_turn judge(const struct exanest_scheduler *scheduler,
                               const struct exanest_output_buffer *buffers)
{
    const struct exanest_descriptor *descriptor = &scheduler->descriptor;
    if (marked(scheduler->killed, scheduler->tid)) {
        return EXANEST_TURN_KILLED;
    }
    if (descriptor->done || descriptor->error) {
        return EXANEST_TURN_OVER;
    }
    if (descriptor->bytes == 0 || descriptor->bytes > EXANEST_BLOCK_BYTES_MAX ||
        descriptor->sent >= descriptor->bytes) {
        return EXANEST_TURN_WRONG_LENGTH;
    }
    if (descriptor->path >= scheduler->config.ports) {
        return EXANEST_TURN_WRONG_PATH;
    }
    if (exanest_scheduler_channel(scheduler, descriptor->pdid) < 0) {
        return EXANEST_TURN_NO_CHANNEL;
    }
    const uint32_t buffer = buffer_of(scheduler, descriptor->path);
    return exanest_buffer_has_room(&buffers[buffer]) ? EXANEST_TURN_SENDS : EXANEST_TURN_NO_SLOT;
}

/* The turn of the one in hand is over, and it gets another. */
static void put_back(struct exanest_scheduler *scheduler)
{
    scheduler->in_hand = false;
    if (scheduler->config.drains) {
        push_in_front(scheduler, scheduler->tid);
    } else {
        push(scheduler, scheduler->tid);
    }
}

/* Software has begun a new instance of the one in hand: of the old one nothing is published. */
static void yield_to_new(struct exanest_scheduler *scheduler)
{
    const bool again = scheduler->again;
    scheduler->renewed = false;
    scheduler->again = false;
    scheduler->in_hand = false;
    if (again) {
        push(scheduler, scheduler->tid);
    } else {
        unmark(scheduler->killed, scheduler->tid);
    }
}

/* Its turn has come to nothing. */
static void end_turn(struct exanest_scheduler *scheduler, struct exanest_pending_list *list)
{
    const struct exanest_descriptor *descriptor = &scheduler->descriptor;
    if (scheduler->renewed) {
        yield_to_new(scheduler);
    } else if (scheduler->turn == EXANEST_TURN_NO_SLOT) {
        put_back(scheduler);
    } else {
        scheduler->in_hand = false;
        unmark(scheduler->killed, scheduler->tid);
        if (scheduler->turn != EXANEST_TURN_OVER) {
            exanest_pending_publish(list, scheduler->tid,
                                    smaller(descriptor->sent, EXANEST_BLOCK_BYTES_MAX),
                                    descriptor->done, true);
        }
    }
}

static void chain(struct exanest_scheduler *scheduler, uint32_t successor)
{
    if (marked(scheduler->queued, successor)) {
        scheduler->counters.enqueued_twice++;
        return;
    }
    scheduler->counters.chained++;
    if (scheduler->config.drains) {
        push_in_front(scheduler, successor);
    } else {
        push(scheduler, successor);
    }
}

/* WB: in the cycle of the last read. */
static void write_back(struct exanest_scheduler *scheduler, struct exanest_pending_list *list)
{
    const struct exanest_descriptor *descriptor = &scheduler->descriptor;
    const uint32_t sent = (uint32_t)descriptor->sent + scheduler->packet_bytes;
    if (scheduler->renewed) {
        yield_to_new(scheduler);
    } else if (sent < descriptor->bytes) {
        exanest_pending_publish(list, scheduler->tid, sent, false, false);
        put_back(scheduler);
    } else {
        const bool killed = marked(scheduler->killed, scheduler->tid);
        exanest_pending_publish(list, scheduler->tid, sent, true, killed);
        unmark(scheduler->killed, scheduler->tid);
        scheduler->in_hand = false;
        if (descriptor->chained && !killed) {
            chain(scheduler, descriptor->successor);
        }
    }
}

/* Behind SLOT's cycle nothing of the turn is left to be judged. */
static void find_slot(struct exanest_scheduler *scheduler, const struct exanest_pending_list *list,
                      struct exanest_output_buffer *buffers)
{
    scheduler->state = EXANEST_SCHEDULER_SLOT;
    scheduler->descriptor = exanest_pending_descriptor(list, scheduler->tid);
    scheduler->turn = (uint8_t)judge(scheduler, buffers);
    scheduler->counters.turns[scheduler->turn]++;
    if (scheduler->turn == EXANEST_TURN_SENDS) {
        const uint32_t path = scheduler->descriptor.path;
        scheduler->axi_id =
            (uint8_t)exanest_scheduler_channel(scheduler, scheduler->descriptor.pdid);
        scheduler->slot =
            (uint8_t)exanest_buffer_allocate(&buffers[buffer_of(scheduler, path)], path);
    }
}

static uint32_t packet_bytes(const struct exanest_scheduler *scheduler)
{
    const struct exanest_descriptor *descriptor = &scheduler->descriptor;
    const uint64_t target = descriptor->target.va + descriptor->sent;
    uint32_t bytes = (uint32_t)descriptor->bytes - descriptor->sent;
    bytes = smaller(bytes, LINE_BYTES - (uint32_t)(target % LINE_BYTES));
    if (scheduler->config.cuts_at_source) {
        const uint64_t source = descriptor->source + descriptor->sent;
        bytes = smaller(bytes, LINE_BYTES - (uint32_t)(source % LINE_BYTES));
    }
    return bytes;
}

/* The registers of the slot, the command, and the first read. */
static void issue(struct exanest_scheduler *scheduler, struct exanest_output_buffer *buffers,
                  struct exanest_shifter *shifter)
{
    const struct exanest_descriptor *descriptor = &scheduler->descriptor;
    const uint32_t bytes = packet_bytes(scheduler);
    const uint64_t source = descriptor->source + descriptor->sent;
    const uint64_t va =
        (descriptor->target.va + descriptor->sent) & ((UINT64_C(1) << EXANEST_VA_BITS) - 1);
    const struct exanest_header header = {
        .target = {.coordinate = descriptor->target.coordinate, .va = va},
        .pdid = descriptor->pdid,
        .type = EXANEST_WRITE,
        .bytes = (uint16_t)bytes,
        .has_footer = true,
        .aux = descriptor->sequence,
    };
    const struct exanest_footer footer = {
        .tid = scheduler->tid,
        .source = scheduler->config.coordinate,
        .sequence = descriptor->sequence,
        .first = descriptor->sent == 0 && !descriptor->no_first,
        .last = descriptor->sent + bytes == descriptor->bytes && !descriptor->no_last,
        .notify = descriptor->notify,
        .path = descriptor->path,
    };
    const uint32_t buffer = buffer_of(scheduler, descriptor->path);
    exanest_buffer_describe(&buffers[buffer], scheduler->slot, &header, &footer);
    exanest_shifter_command(shifter, scheduler->axi_id, exanest_slot_name(buffer, scheduler->slot),
                            source, va, bytes);
    const uint32_t to_page = EXANEST_PAGE_BYTES - (uint32_t)(source % EXANEST_PAGE_BYTES);
    const uint32_t first = smaller(bytes, to_page);
    scheduler->packet_bytes = (uint16_t)bytes;
    scheduler->second_bytes = (uint16_t)(bytes - first);
    scheduler->read = (struct exanest_memory_read){
        .address = source, .bytes = (uint16_t)first, .axi_id = scheduler->axi_id};
    scheduler->read_shown = true;
}

static void show_second_read(struct exanest_scheduler *scheduler)
{
    scheduler->state = EXANEST_SCHEDULER_READ_2;
    scheduler->counters.second_reads++;
    scheduler->read.address += scheduler->read.bytes;
    scheduler->read.bytes = scheduler->second_bytes;
    scheduler->read_shown = true;
}

bool exanest_scheduler_next_read(struct exanest_scheduler *scheduler,
                                 struct exanest_memory_read *read)
{
    const uint32_t most = scheduler->config.reads_max;
    if (!scheduler->read_shown || (most != 0 && scheduler->reads >= most)) {
        return false;
    }
    *read = scheduler->read;
    scheduler->read_shown = false;
    scheduler->reads++;
    return true;
}

void exanest_scheduler_read_done(struct exanest_scheduler *scheduler)
{
    CHECK(scheduler->reads != 0);
    scheduler->reads--;
}

/* The packet's last read was taken. */
static void finish(struct exanest_scheduler *scheduler, struct exanest_pending_list *list)
{
    write_back(scheduler, list);
    scheduler->pause = (uint8_t)(scheduler->config.cycles - EXANEST_SCHEDULER_CYCLES);
    if (scheduler->pause != 0) {
        scheduler->state = EXANEST_SCHEDULER_PAUSE;
    } else {
        begin(scheduler);
    }
}

static void end_of_read(struct exanest_scheduler *scheduler, struct exanest_pending_list *list)
{
    if (scheduler->read_shown) {
        return;
    }
    if (scheduler->state == EXANEST_SCHEDULER_READ_1 && scheduler->second_bytes != 0) {
        show_second_read(scheduler);
    } else {
        finish(scheduler, list);
    }
}

void exanest_scheduler_step(struct exanest_scheduler *scheduler, struct exanest_pending_list *list,
                            struct exanest_output_buffer *buffers, struct exanest_shifter *shifter)
{
    INVARIANTS(exanest_scheduler_check_counts(scheduler));
    switch ((enum exanest_scheduler_state)scheduler->state) {
    case EXANEST_SCHEDULER_IDLE: begin(scheduler); break;
    case EXANEST_SCHEDULER_DEQUEUE: scheduler->state = EXANEST_SCHEDULER_READ; break;
    case EXANEST_SCHEDULER_READ: find_slot(scheduler, list, buffers); break;
    case EXANEST_SCHEDULER_SLOT:
        if (scheduler->turn == EXANEST_TURN_SENDS) {
            scheduler->state = EXANEST_SCHEDULER_CALCULATE;
        } else {
            end_turn(scheduler, list);
            begin(scheduler);
        }
        break;
    case EXANEST_SCHEDULER_CALCULATE:
        issue(scheduler, buffers, shifter);
        scheduler->state = EXANEST_SCHEDULER_READ_1;
        break;
    case EXANEST_SCHEDULER_READ_1:
    case EXANEST_SCHEDULER_READ_2: end_of_read(scheduler, list); break;
    case EXANEST_SCHEDULER_PAUSE:
        scheduler->pause--;
        if (scheduler->pause == 0) {
            begin(scheduler);
        }
        break;
    }
    INVARIANTS(exanest_scheduler_check_counts(scheduler));
}
