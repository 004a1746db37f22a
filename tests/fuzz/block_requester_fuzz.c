/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_requester_fuzz - a requester of blocks, told anything by its peer.
 *
 * Goal    Whatever a peer answers, no assertion fails, the invariants hold after every call, data
 *         are taken once and only where they were asked for, and the requester comes to rest.
 * Method  The input is a sequence of steps: post, pull, let time pass, an answer, data. Answers and
 *         data are bytes for block_decode, with a byte of hints that put numbers in which are near
 *         those the requester knows, so that the fuzzer gets past the first judges.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/block/requester.h"

#define MTU   256
#define WORKS 64
#define FIRST 0xfffffff0u

struct target {
    struct block_requester *requester;
    struct send_queue queue;
    void *memory, *queue_memory;
    struct path_policy policy;
    struct instant now;
    uint32_t answers, tsn;
};

struct input {
    const uint8_t *bytes;
    size_t count;
};

static uint8_t take(struct input *input)
{
    if (input->count == 0) {
        return 0;
    }
    input->count--;
    return *input->bytes++;
}

static void make(struct target *target, uint8_t shape)
{
    *target = (struct target){.now = {1000000}};
    target->policy = path_policy_default();
    const struct block_requester_config config = {
        .first_block = FIRST,
        .first_receive = FIRST,
        .first_tsn = psn_of(0xfffff0),
        .window = (shape & 1) != 0 ? 3 : 64,
        .read_blocks = 2,
        .mtu_bytes = MTU,
        .packet_cost = 64,
        .link_window_bytes = (shape & 2) != 0 ? 8000 : 0,
        .trip_ns = 100000,
        .path_count = (shape & 4) != 0 ? 3 : 1,
        .retry_limit = 2,
        .rnr_limit = (shape & 8) != 0 ? 7 : 1,
        .reads_max = 2,
        .timeout_code = (shape & 16) != 0 ? 0 : 14,
        .policy = &target->policy,
    };
    target->memory = calloc(1, block_requester_bytes(64, config.path_count));
    target->queue_memory = calloc(1, send_queue_bytes(WORKS, 64));
    CHECK(target->memory != NULL && target->queue_memory != NULL);
    target->requester = block_requester_init(target->memory, 64, &config, target->now);
    send_queue_init(&target->queue, WORKS, 64, target->queue_memory);
}

static void post(struct target *target, struct input *input)
{
    static const uint8_t kinds[] = {WORK_WRITE,        WORK_SEND,
                                    WORK_READ,         WORK_FETCH_ADD,
                                    WORK_ATOMIC_WRITE, WORK_WRITE_IMMEDIATE,
                                    WORK_READ,         WORK_LOCAL_INVALIDATE};
    if (send_queue_full(&target->queue)) {
        return;
    }
    struct work *work = send_queue_at(&target->queue, target->queue.tail++);
    const uint8_t choice = take(input);
    memset(work, 0, sizeof(*work));
    work->kind = kinds[choice & 7];
    work->flags = (choice & 8) != 0 ? WORK_FENCE : 0;
    work->bytes = work_is_atomic(work) ? 8 : take(input) * 77u;
    work->remote_address = take(input) * 64u;
    work->remote_key = choice >> 7;
}

static void pull(struct target *target, bool draining)
{
    struct block_outgoing out;
    for (uint32_t i = 0; i < 5000; i++) {
        if (!block_requester_next(target->requester, &target->queue, draining, target->now, &out)) {
            return;
        }
        target->tsn = out.work != NULL && work_is_local(out.work) ? target->tsn : out.tsn.value;
    }
    CHECK(target->requester == NULL); /* It never comes to rest. */
}

/* Takes completions as a program does; a request that failed ends everything. */
static void collect(struct target *target)
{
    struct work *work;
    while ((work = block_requester_completed(target->requester, &target->queue)) != NULL &&
           work->status == COMPLETION_SUCCESS) {
        target->queue.head++;
    }
}

/* Numbers near those that mean something. */
static void hint(const struct target *target, uint8_t hints, struct block_packet *packet)
{
    const struct block_requester *requester = target->requester;
    if ((hints & 1) == 0) {
        return;
    }
    if (packet->opcode != BLOCK_ANSWER) {
        packet->number = requester->oldest + packet->number % 8;
        packet->index %= 4;
        return;
    }
    struct block_answer *answer = &packet->answer;
    packet->tsn = target->answers;
    answer->base = requester->base + answer->base % 4;
    answer->receive_limit = FIRST + answer->receive_limit % 16;
    answer->echo_path &= 3;
    answer->echo_tsn = (target->tsn - answer->echo_tsn % 8) & PSN_MASK;
    uint32_t bn = answer->base;
    for (uint32_t i = 0; i < answer->record_count; i++) {
        bn += answer->records[i].number % 3;
        answer->records[i].number = bn;
        const bool run = answer->records[i].state == BLOCK_STATE_RUN;
        answer->records[i].bitmap =
            run ? 1 + answer->records[i].bitmap % 4 : answer->records[i].bitmap & 0xff;
        bn += run ? (uint32_t)answer->records[i].bitmap : 1;
    }
}

static void arrive(struct target *target, struct input *input)
{
    const uint8_t hints = take(input);
    const size_t wanted = take(input);
    const size_t count = wanted < input->count ? wanted : input->count;
    struct block_packet packet;
    if (block_decode(input->bytes, count, NULL, 0, &packet) == BLOCK_GOOD) {
        hint(target, hints, &packet);
        if (block_judge(&packet, MTU) == BLOCK_CONSISTENT && packet.opcode == BLOCK_ANSWER) {
            target->answers++;
            (void)block_requester_on_answer(target->requester, &target->queue, &packet, target->now,
                                            target->now)
                .verdict;
        } else if (block_judge(&packet, MTU) == BLOCK_CONSISTENT && packet.opcode == BLOCK_DATA) {
            const struct block_progress progress =
                block_requester_on_data(target->requester, &target->queue, &packet, target->now);
            if (progress.verdict == BLOCK_DATA_COMES) {
                CHECK(progress.offset + packet.payload_bytes <= progress.work->bytes);
                block_requester_on_moved(target->requester, progress.work);
            }
        }
    }
    input->bytes += count;
    input->count -= count;
}

static void pass_time(struct target *target, uint64_t ns)
{
    target->now.ns += ns;
    for (uint32_t i = 0; i < 1000; i++) {
        if (!instant_reached(target->now, block_requester_deadline(target->requester))) {
            return;
        }
        if (block_requester_on_time(target->requester, target->now)) {
            (void)block_requester_on_timeout(target->requester, &target->queue, target->now)
                .verdict;
        }
        pull(target, false);
    }
    CHECK(target->requester == NULL); /* Its deadline never moves on. */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct target target;
    struct input input = {bytes, count};
    make(&target, take(&input));
    while (input.count != 0) {
        const uint8_t step = take(&input);
        switch (step & 7) {
        case 0:
        case 1: post(&target, &input); break;
        case 2: pass_time(&target, (uint64_t)step << (step >> 3)); break;
        case 3: pull(&target, (step & 8) != 0); break;
        default: arrive(&target, &input); break;
        }
        pull(&target, false);
        collect(&target);
        block_requester_check(target.requester, &target.queue);
    }
    free(target.memory);
    free(target.queue_memory);
    return 0;
}
