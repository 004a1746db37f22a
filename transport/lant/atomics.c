/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/atomics.h"

void lant_atomics_init(struct lant_atomics *atomics, const struct lant_atomics_config *config,
                       void *memory)
{
    CHECK(config->node < LANT_NODES_MAX);
    *atomics = (struct lant_atomics){.config = *config};
    if (config->entries != 0) {
        lant_shm_recent_init(&atomics->recent, config->entries, config->lifetime, memory);
    }
}

/* -- Judging ------------------------------------------------------------------------------------*/

/* The kinds of packets. Judging changes nothing. */
enum meaning {
    WRONG_CLASS,
    OFF,
    ASTRAY,
    MALFORMED,
    NO_RANGE,
    NO_RIGHT,
    UNDER_WAY,
    ANSWERED,
    BUSY,
    FRESH,
};

static bool is_well_formed(const struct lant_header *header)
{
    return header->size == 3 && header->address % 8 == 0 && header->strobe == 0xff &&
           header->address < LANT_ADDRESSES;
}

static bool allows(const struct lant_ranges *ranges, uint64_t address, enum lant_access access)
{
    return lant_ranges_allow(ranges, address, sizeof(uint64_t), access);
}

/* NULL: it has not come lately. */
static const struct lant_shm_recent_entry *remembered(const struct lant_atomics *atomics,
                                                      const struct lant_packet *packet,
                                                      uint64_t now)
{
    return atomics->config.forgets
               ? NULL
               : lant_shm_recent_find(&atomics->recent, now, lant_shm_recent_key(packet));
}

static enum meaning judge(const struct lant_atomics *atomics, const struct lant_ranges *ranges,
                          const struct lant_packet *packet, uint64_t now)
{
    const struct lant_header *header = &packet->header;
    if (packet->footer.class != LANT_CLASS_SHM) {
        return WRONG_CLASS;
    }
    if (atomics->config.entries == 0) {
        return OFF;
    }
    if (header->destination != atomics->config.node) {
        return ASTRAY;
    }
    if (!is_well_formed(header)) {
        return MALFORMED;
    }
    /* A request that was done stays done, though the memory may have been withdrawn since. */
    const struct lant_shm_recent_entry *entry = remembered(atomics, packet, now);
    if (entry != NULL) {
        return entry->done ? ANSWERED : UNDER_WAY;
    }
    const bool reads = allows(ranges, header->address, LANT_ACCESS_READ);
    const bool writes = allows(ranges, header->address, LANT_ACCESS_WRITE);
    if (!reads || !writes) {
        return reads || writes ? NO_RIGHT : NO_RANGE;
    }
    return atomics->recent.count == atomics->recent.capacity &&
                   lant_shm_recent_deadline(&atomics->recent) > now
               ? BUSY
               : FRESH;
}

/* -- Applying -----------------------------------------------------------------------------------*/

/* R has a flit of data unless it is a NACK. */
static void build_answer(const struct lant_atomics *atomics, const struct lant_footer *footer,
                         enum lant_response response, uint64_t data, struct lant_packet *answer)
{
    answer->header = (struct lant_header){
        .destination = footer->source,
        .type = LANT_R,
        .payload = !lant_response_is_nack(response),
        .priority = 3,
    };
    answer->footer = *footer;
    answer->footer.source = atomics->config.node;
    answer->footer.response = (uint8_t)response;
    answer->payload[0] = data;
}

static void answer_now(const struct lant_atomics *atomics, const struct lant_packet *packet,
                       enum lant_response response, uint64_t data, struct lant_atomic_work *work)
{
    work->action = LANT_ATOMIC_ANSWER;
    build_answer(atomics, &packet->footer, response, data, &work->answer);
}

static void begin(struct lant_atomics *atomics, const struct lant_packet *packet, uint64_t now,
                  struct lant_atomic_work *work)
{
    work->action = LANT_ATOMIC_DO;
    work->what = (uint8_t)packet->header.packets;
    work->address = packet->header.address;
    work->operand = packet->payload[0];
    work->compare = packet->header.payload > 1 ? packet->payload[1] : 0;
    work->tag = atomics->config.forgets
                    ? 0
                    : lant_shm_recent_add(&atomics->recent, now, lant_shm_recent_key(packet));
    atomics->counters.done++;
}

void lant_atomics_on_request(struct lant_atomics *atomics, const struct lant_ranges *ranges,
                             const struct lant_packet *packet, uint64_t now,
                             struct lant_atomic_work *work)
{
    struct lant_atomics_counters *counters = &atomics->counters;
    CHECK(packet->header.type == LANT_ATOMIC);
    switch (judge(atomics, ranges, packet, now)) {
    case WRONG_CLASS:
        counters->wrong_class++;
        work->action = LANT_ATOMIC_DROP;
        break;
    case OFF:
        counters->switched_off++;
        answer_now(atomics, packet, LANT_DECERR, 0, work);
        break;
    case ASTRAY:
    case NO_RANGE:
        counters->refused++;
        answer_now(atomics, packet, LANT_DECERR, 0, work);
        break;
    case MALFORMED:
    case NO_RIGHT:
        counters->refused++;
        answer_now(atomics, packet, LANT_SLVERR, 0, work);
        break;
    case UNDER_WAY:
        counters->under_way++;
        work->action = LANT_ATOMIC_DROP;
        break;
    case ANSWERED: {
        const struct lant_shm_recent_entry *entry = remembered(atomics, packet, now);
        counters->repeated++;
        answer_now(atomics, packet, (enum lant_response)entry->response, entry->data, work);
        break;
    }
    case BUSY:
        counters->busy++;
        answer_now(atomics, packet, LANT_NACK_BUSY, 0, work);
        break;
    case FRESH: begin(atomics, packet, now, work); break;
    }
}

/* -- Memory -------------------------------------------------------------------------------------*/

uint64_t lant_atomic_result(enum lant_atomic what, uint64_t old, uint64_t operand, uint64_t compare)
{
    switch (what) {
    case LANT_FETCH_ADD: return old + operand;
    case LANT_SWAP: return operand;
    case LANT_COMPARE_SWAP: return old == compare ? operand : old;
    case LANT_NO_ATOMIC: break;
    }
    UNREACHABLE("an atomic request that does nothing");
}

void lant_atomics_on_memory(struct lant_atomics *atomics, uint32_t tag,
                            const struct lant_footer *footer, uint64_t old,
                            struct lant_packet *answer)
{
    if (!atomics->config.forgets) {
        lant_shm_recent_finish_with(&atomics->recent, tag, LANT_OKAY, old);
    }
    build_answer(atomics, footer, LANT_OKAY, old, answer);
}

/* -- Time ---------------------------------------------------------------------------------------*/

uint64_t lant_atomics_deadline(const struct lant_atomics *atomics)
{
    return atomics->config.entries == 0 ? LANT_NEVER : lant_shm_recent_deadline(&atomics->recent);
}

void lant_atomics_on_time(struct lant_atomics *atomics, uint64_t now)
{
    if (atomics->config.entries != 0) {
        lant_shm_recent_on_time(&atomics->recent, now);
    }
}
