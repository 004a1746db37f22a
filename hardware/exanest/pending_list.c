/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/pending_list.h"

enum {
    SENT_AT = 42,
    DONE_AT = 57,
    ERROR_AT = 60,
    WAITS_AT = 63,
    STROBE_LANE = 0xf, /* The bytes of a 32-bit lane. */
    LANES = 4,
};

#define BIT(at) (UINT64_C(1) << (at))
/* Bits of W3 that software may write: DB, notify, dependency, and the lower half. */
#define W3_WRITABLE (BIT(63) | BIT(59) | UINT64_C(0x3ff) << 32 | UINT32_MAX)
/* Bits of W3 that the write-back changes. */
#define W3_PUBLISHED (BIT(ERROR_AT) | BIT(DONE_AT) | UINT64_C(0x7fff) << SENT_AT)

void exanest_pending_init(struct exanest_pending_list *list,
                          const struct exanest_pending_config *config)
{
    CHECK(config->ports >= 1 && config->ports <= EXANEST_PATHS_MAX);
    CHECK(config->control_bytes == 0 || config->control_bytes == 16 || config->control_bytes == 32);
    *list = (struct exanest_pending_list){.config = *config};
    if (config->control_bytes == 0) {
        list->config.control_bytes = 16;
    }
}

void exanest_pending_check(const struct exanest_pending_list *list)
{
    CHECK(list->write_state <= EXANEST_WRITE_ACK && list->write_next <= EXANEST_WRITE_ACK);
    CHECK(list->read_state <= EXANEST_READ_READY && list->read_next <= EXANEST_READ_READY);
    CHECK((list->write_next == EXANEST_WRITE_CONTROL || list->write_next == EXANEST_WRITE_DATA) ==
          (list->write.left != 0));
    CHECK((list->read_next != EXANEST_READ_IDLE) == (list->read.left != 0));
}

/* -- Writes -------------------------------------------------------------------------------------*/

static uint32_t segment_bytes(const struct exanest_pending_list *list)
{
    return EXANEST_TIDS * list->config.control_bytes;
}

static uint32_t address_limit(const struct exanest_pending_list *list)
{
    return EXANEST_CONTROL_AT + list->config.ports * segment_bytes(list);
}

static uint32_t control_port(const struct exanest_pending_list *list, uint32_t address)
{
    return (address - EXANEST_CONTROL_AT) / segment_bytes(list);
}

void exanest_pending_write_address(struct exanest_pending_list *list, uint32_t address, uint8_t id,
                                   uint32_t beats)
{
    INVARIANTS(exanest_pending_check(list));
    CHECK(exanest_pending_write_address_ready(list));
    CHECK(beats >= 1 && beats <= 256);
    list->write = (struct exanest_access){
        .address = address, .left = (uint16_t)beats, .id = id, .response = EXANEST_AXI_OKAY};
    list->counters.writes++;
    if (beats > 1) {
        list->counters.bursts++;
        list->write.response = EXANEST_AXI_SLAVE_ERROR;
    } else if (address >= address_limit(list)) {
        list->counters.wrong_places++;
        list->write.response = EXANEST_AXI_SLAVE_ERROR;
    }
    const bool control = address >= EXANEST_CONTROL_AT && address < address_limit(list);
    list->write_next = control ? EXANEST_WRITE_CONTROL : EXANEST_WRITE_DATA;
}

bool exanest_pending_write_data_ready(const struct exanest_pending_list *list, bool enqueue_ready,
                                      uint32_t control_full)
{
    if (list->write_next != list->write_state) {
        return false; /* This cycle's beat was taken. */
    }
    if (list->write_state == EXANEST_WRITE_CONTROL) {
        return (control_full >> control_port(list, list->write.address) & 1) == 0;
    }
    return list->write_state == EXANEST_WRITE_DATA && enqueue_ready;
}

/* Does the strobe enable whole lanes? */
static bool strobe_good(uint16_t strobe)
{
    const uint32_t some = (strobe | strobe >> 1 | strobe >> 2 | strobe >> 3) & 0x1111u;
    return some * STROBE_LANE == strobe;
}

/* The bits of a 64-bit half whose lanes the strobe enables. */
static uint64_t enabled(uint32_t strobe)
{
    return (strobe & 1 ? UINT32_MAX : 0) | (strobe & 0x10 ? (uint64_t)UINT32_MAX << 32 : 0);
}

static struct exanest_pending_effect store(struct exanest_pending_list *list,
                                           struct exanest_word data, uint16_t strobe)
{
    const uint32_t address = list->write.address;
    const uint32_t tid = address / EXANEST_DESCRIPTOR_BYTES;
    const bool bank = address / EXANEST_WORD_BYTES & 1;
    uint64_t *words = &list->words[tid][bank ? 2 : 0];
    const uint64_t low = enabled(strobe), high = enabled(strobe >> 8);
    const bool triggers = bank && low >> 63;
    if (bank) {
        /* The upper half clears Error, Done and Bytes sent. */
        data.low &= W3_WRITABLE | (list->config.takes_pieces ? BIT(62) | BIT(61) : 0);
    }
    words[0] = (words[0] & ~low) | (data.low & low);
    words[1] = (words[1] & ~high) | (data.high & high);
    struct exanest_pending_effect effect = {.event = EXANEST_PENDING_NOTHING, .tid = (uint16_t)tid};
    if (triggers) {
        effect.event = data.low >> WAITS_AT & 1 ? EXANEST_PENDING_RENEWED : EXANEST_PENDING_ENQUEUE;
    }
    return effect;
}

/* A control packet's store is 64 bits wide, in either half of its place. */
static struct exanest_pending_effect control_store(struct exanest_pending_list *list,
                                                   struct exanest_word data, uint16_t strobe)
{
    const uint32_t address = list->write.address - EXANEST_CONTROL_AT;
    if (strobe != 0x00ff && strobe != 0xff00) {
        list->counters.wrong_strobes++;
        list->write.response = EXANEST_AXI_SLAVE_ERROR;
        return (struct exanest_pending_effect){.event = EXANEST_PENDING_NOTHING};
    }
    return (struct exanest_pending_effect){
        .event = EXANEST_PENDING_CONTROL,
        .port = (uint8_t)control_port(list, list->write.address),
        .tid = (uint16_t)(address % segment_bytes(list) / list->config.control_bytes),
        .data = strobe == 0x00ff ? data.low : data.high,
    };
}

struct exanest_pending_effect exanest_pending_write_data(struct exanest_pending_list *list,
                                                         struct exanest_word data, uint16_t strobe)
{
    INVARIANTS(exanest_pending_check(list));
    CHECK(list->write_next == list->write_state && list->write.left != 0);
    struct exanest_pending_effect effect = {.event = EXANEST_PENDING_NOTHING};
    list->write.left--;
    if (list->write.left == 0) {
        list->write_next = EXANEST_WRITE_ACK;
    }
    if (list->write.response != EXANEST_AXI_OKAY) {
        return effect;
    }
    if (list->write_state == EXANEST_WRITE_CONTROL) {
        effect = control_store(list, data, strobe);
    } else if (!strobe_good(strobe)) {
        list->counters.wrong_strobes++;
        list->write.response = EXANEST_AXI_SLAVE_ERROR;
    } else {
        effect = store(list, data, strobe);
    }
    INVARIANTS(exanest_pending_check(list));
    return effect;
}

bool exanest_pending_next_write_answer(struct exanest_pending_list *list, uint8_t *id,
                                       enum exanest_axi_response *response)
{
    if (list->write_state != EXANEST_WRITE_ACK || list->write_next != EXANEST_WRITE_ACK) {
        return false;
    }
    *id = list->write.id;
    *response = (enum exanest_axi_response)list->write.response;
    list->write_next = EXANEST_WRITE_IDLE;
    return true;
}

/* -- Reads --------------------------------------------------------------------------------------*/

void exanest_pending_read_address(struct exanest_pending_list *list, uint32_t address, uint8_t id,
                                  uint32_t beats)
{
    INVARIANTS(exanest_pending_check(list));
    CHECK(exanest_pending_read_address_ready(list));
    CHECK(beats >= 1 && beats <= 256);
    list->read = (struct exanest_access){
        .address = address, .left = (uint16_t)beats, .id = id, .response = EXANEST_AXI_OKAY};
    list->counters.reads++;
    if (beats > 1) {
        list->counters.bursts++;
        list->read.response = EXANEST_AXI_SLAVE_ERROR;
    } else if (address >= EXANEST_DESCRIPTORS_BYTES) {
        list->counters.wrong_places++;
        list->read.response = EXANEST_AXI_SLAVE_ERROR;
    }
    list->read_next = EXANEST_READ_WAIT;
}

bool exanest_pending_next_read_beat(struct exanest_pending_list *list,
                                    struct exanest_read_beat *beat)
{
    if (list->read_state != EXANEST_READ_READY || list->read_next != EXANEST_READ_READY) {
        return false;
    }
    list->read.left--;
    *beat = (struct exanest_read_beat){
        .axi_id = list->read.id, .response = list->read.response, .last = list->read.left == 0};
    if (list->read.response == EXANEST_AXI_OKAY) {
        beat->word = list->read_word;
    }
    if (beat->last) {
        list->read_next = EXANEST_READ_IDLE;
    }
    return true;
}

/* -- Cycles -------------------------------------------------------------------------------------*/

static bool write_pending(const struct exanest_pending_list *list)
{
    return list->write_state == EXANEST_WRITE_CONTROL || list->write_state == EXANEST_WRITE_DATA;
}

void exanest_pending_step(struct exanest_pending_list *list)
{
    INVARIANTS(exanest_pending_check(list));
    if (list->read_state == EXANEST_READ_WAIT && !write_pending(list)) {
        const uint32_t address = list->read.address % EXANEST_DESCRIPTORS_BYTES;
        const uint64_t *words = list->words[address / EXANEST_DESCRIPTOR_BYTES];
        const uint32_t at = address / EXANEST_WORD_BYTES & 1 ? 2 : 0;
        list->read_word = (struct exanest_word){words[at], words[at + 1]};
        list->read_next = EXANEST_READ_READY;
    }
    list->read_state = list->read_next;
    list->write_state = list->write_next;
    INVARIANTS(exanest_pending_check(list));
}

void exanest_pending_publish(struct exanest_pending_list *list, uint32_t tid, uint32_t sent,
                             bool done, bool error)
{
    CHECK(tid < EXANEST_TIDS && sent <= EXANEST_BLOCK_BYTES_MAX);
    uint64_t *word = &list->words[tid][2];
    *word = (*word & ~W3_PUBLISHED) | (uint64_t)sent << SENT_AT | (uint64_t)done << DONE_AT |
            (uint64_t)error << ERROR_AT;
}
