/* SPDX-License-Identifier: BSD-2-Clause
 *
 * forth_fuzz - everything of the FORTH NIC that takes words from a host or a link.
 *
 * Goal    Whatever comes, nothing outside is read or written, no assertion fails, and what is
 *         accepted encodes to what it was decoded from.
 * Method  A byte says what the next words are for: decoders, the request queue and registers as a
 *         host writes them, or a link's two lanes behind elastic buffers, deskew and aligner.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hardware/forth/config_space.h"
#include "hardware/forth/link.h"
#include "hardware/forth/registers.h"
#include "hardware/forth/request_queue.h"
#include "hardware/forth/sampler.h"
#include "wire/forth.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *input, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && input->left > 0; i++, input->left--) {
        value = value << 8 | *input->at++;
    }
    return value;
}

static void decode(struct input *input)
{
    const uint64_t words[2] = {take(input, 8), take(input, 8)};
    struct forth_request request;
    struct forth_header header;
    struct forth_credit credit;
    if (forth_request_decode(words, &request) == FORTH_GOOD) {
        uint64_t again[2];
        forth_request_encode(&request, again);
        CHECK(again[0] == words[0] && again[1] == words[1]);
    }
    if (forth_header_decode(words[0], &header) == FORTH_GOOD) {
        CHECK(forth_header_encode(&header) == words[0]);
    }
    if (forth_credit_decode((uint16_t)words[1], &credit) == FORTH_GOOD) {
        CHECK(forth_credit_encode(credit) == (uint16_t)words[1]);
    }
    uint64_t repaired = words[0];
    if (forth_header_repair(&repaired, (uint16_t)words[1])) {
        CHECK(__builtin_popcountll(repaired ^ words[0]) <= 1);
    }
}

struct host {
    struct forth_queue queue;
    struct forth_registers registers;
    struct forth_config_space config;
    struct forth_sampler sampler;
};

static void write_queue(struct host *host, struct input *input)
{
    const uint32_t bytes = take(input, 1) & 1 ? 8 : 4;
    const uint32_t offset = (uint32_t)take(input, 2) % FORTH_QUEUE_BYTES / bytes * bytes;
    struct forth_request request;
    forth_queue_write(&host->queue, offset, take(input, bytes), bytes);
    while (forth_queue_released(&host->queue)) {
        if (forth_queue_next(&host->queue, &request) == FORTH_GOOD) {
            CHECK(request.words >= 1 && request.words <= FORTH_WORDS_MAX);
        }
        forth_queue_advance(&host->queue);
    }
}

static void write_registers(struct host *host, struct input *input)
{
    const uint32_t offset = (uint32_t)take(input, 1) / 4 * 4;
    const uint32_t value = (uint32_t)take(input, 4);
    if (forth_registers_write(&host->registers, offset, value) & FORTH_COMMAND_RESET_QUEUE) {
        forth_queue_reset(&host->queue);
    }
    (void)forth_registers_read(&host->registers, offset, host->queue.head, host->queue.tail);
    forth_config_write(&host->config, offset, value, value & 0xf);
    (void)forth_config_read(&host->config, offset, host->queue.head, host->queue.tail);
    forth_sampler_set_interval(&host->sampler, value);
    forth_sampler_set_count(&host->sampler, value);
    forth_sampler_dma(&host->sampler, value);
    if (forth_sampler_due(&host->sampler) != UINT64_MAX) {
        forth_sampler_take(&host->sampler, (struct forth_sample){1, 2});
    }
    (void)forth_sampler_read(&host->sampler);
}

#define LANES 2u

struct wire {
    struct forth_aligner aligners[LANES];
    struct forth_receiver receivers[LANES];
};

static void send_words(struct wire *wire, struct input *input)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint8_t control = (uint8_t)take(input, 1);
        struct forth_word word = {.data = (uint32_t)take(input, 4), .control = control & 0xf};
        word = control & 0x10 ? FORTH_SOP_WORD : control & 0x20 ? FORTH_IDLE_WORD : word;
        struct forth_receiver *receiver = &wire->receivers[lane];
        if (forth_receive(receiver, forth_align(&wire->aligners[lane], word)) == FORTH_RX_HEADER) {
            CHECK(receiver->header.words >= 1 && receiver->header.words <= FORTH_WORDS_MAX);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct host host;
    struct input input = {bytes, count};
    struct wire wire;
    memset(&wire, 0, sizeof(wire));
    forth_queue_init(&host.queue, count & 1);
    forth_registers_init(&host.registers);
    forth_config_init(&host.config);
    memset(&host.sampler, 0, sizeof(host.sampler));
    while (input.left > 0) {
        switch (take(&input, 1) % 4) {
        case 0: decode(&input); break;
        case 1: write_queue(&host, &input); break;
        case 2: write_registers(&host, &input); break;
        default: send_words(&wire, &input); break;
        }
    }
    return 0;
}
