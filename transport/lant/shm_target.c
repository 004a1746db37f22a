/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm_target.h"

void lant_shm_target_init(struct lant_shm_target *target,
                          const struct lant_shm_target_config *config, void *memory)
{
    CHECK(config->node < LANT_NODES_MAX);
    *target = (struct lant_shm_target){.config = *config};
    lant_exclusive_init(&target->exclusive, config->lock_lifetime);
    lant_shm_recent_init(&target->recent, config->recent, config->lifetime, memory);
}

static void lant_shm_target_check(const struct lant_shm_target *target)
{
    lant_exclusive_check(&target->exclusive);
    lant_shm_recent_check(&target->recent);
    CHECK(!target->config.strict_thesis || target->recent.count == 0);
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* R has a flit of data unless it is a NACK. */
static void build_answer(uint32_t node, uint8_t request_type, const struct lant_footer *footer,
                         enum lant_response response, uint64_t data, struct lant_packet *answer)
{
    const bool load = request_type == LANT_AR;
    answer->header = (struct lant_header){
        .destination = footer->source,
        .type = load ? LANT_R : LANT_B,
        .payload = load && !lant_response_is_nack(response),
        .priority = 3,
    };
    answer->footer = *footer;
    answer->footer.source = node;
    answer->footer.response = (uint8_t)response;
    answer->payload[0] = data;
}

void lant_shm_refuse(uint32_t node, const struct lant_packet *request, enum lant_response response,
                     struct lant_packet *answer)
{
    CHECK(request->header.type == LANT_AR || request->header.type == LANT_AW);
    build_answer(node, request->header.type, &request->footer, response, 0, answer);
}

/* -- Judging ------------------------------------------------------------------------------------*/

/* The kinds of packets. Judging changes nothing. */
enum meaning {
    WRONG_CLASS,
    ASTRAY,
    MALFORMED,
    NO_RANGE,
    NO_RIGHT,
    UNDER_WAY,
    ANSWERED,   /* Before: the same once more. */
    READ_AGAIN, /* An exclusive load that has its lock already. */
    LOCKED,
    FRESH,
};

static struct lant_exclusive_access exclusive_of(const struct lant_packet *packet)
{
    return (struct lant_exclusive_access){.address = packet->header.address,
                                          .node = packet->footer.source,
                                          .bus_id = packet->footer.bus_id,
                                          .store = packet->header.type == LANT_AW};
}

static bool is_well_formed(const struct lant_header *header)
{
    const uint64_t address = header->address;
    if (header->size > 3 || header->payload != (header->type == LANT_AW ? 1 : 0) ||
        (address & ((UINT64_C(1) << header->size) - 1)) != 0 || address >= LANT_ADDRESSES) {
        return false;
    }
    return (header->strobe & ~lant_strobe_of(header->size, address)) == 0;
}

static bool allows(const struct lant_ranges *ranges, const struct lant_header *header,
                   enum lant_access access)
{
    return lant_ranges_allow(ranges, header->address, UINT64_C(1) << header->size, access);
}

/* The remembered entry of the packet, if the packet can be a repetition. */
static const struct lant_shm_recent_entry *remembered(const struct lant_shm_target *target,
                                                      const struct lant_packet *packet,
                                                      uint64_t now)
{
    if (target->config.strict_thesis || (packet->header.type == LANT_AR && !packet->header.lock)) {
        return NULL;
    }
    return lant_shm_recent_find(&target->recent, now, lant_shm_recent_key(packet));
}

static enum meaning judge(const struct lant_shm_target *target, const struct lant_ranges *ranges,
                          const struct lant_packet *packet, uint64_t now)
{
    const struct lant_header *header = &packet->header;
    const bool store = header->type == LANT_AW;
    if (packet->footer.class != LANT_CLASS_SHM) {
        return WRONG_CLASS;
    }
    if (header->destination != target->config.node) {
        return ASTRAY;
    }
    if (!is_well_formed(header)) {
        return MALFORMED;
    }
    /* A request that was done stays done, though the memory may have been withdrawn since. */
    const struct lant_shm_recent_entry *entry = remembered(target, packet, now);
    const bool again = entry != NULL && !store && entry->response == LANT_EXOKAY;
    if (entry != NULL && !entry->done) {
        return UNDER_WAY;
    }
    if (entry != NULL && !again) {
        return ANSWERED;
    }
    if (!allows(ranges, header, store ? LANT_ACCESS_WRITE : LANT_ACCESS_READ)) {
        return allows(ranges, header, store ? LANT_ACCESS_READ : LANT_ACCESS_WRITE) ? NO_RIGHT
                                                                                    : NO_RANGE;
    }
    if (again) {
        return READ_AGAIN;
    }
    if (header->lock) {
        const struct lant_exclusive_access access = exclusive_of(packet);
        if (!lant_exclusive_may(lant_exclusive_judge(&target->exclusive, &access, now))) {
            return LOCKED;
        }
    }
    return FRESH;
}

/* -- Applying -----------------------------------------------------------------------------------*/

static void answer_now(const struct lant_shm_target *target, const struct lant_packet *packet,
                       enum lant_response response, struct lant_shm_work *work)
{
    work->action = LANT_SHM_ANSWER;
    lant_shm_refuse(target->config.node, packet, response, &work->answer);
}

/* Is it done only once? */
static bool is_remembered(const struct lant_shm_target *target, uint8_t type, bool lock)
{
    return !target->config.strict_thesis && (type == LANT_AW || lock);
}

/* Another initiator has the lock. A resent copy gets the same answer, though the lock may be free
 * by then. */
static void refuse_lock(struct lant_shm_target *target, const struct lant_packet *packet,
                        uint64_t now, struct lant_shm_work *work)
{
    const struct lant_exclusive_access access = exclusive_of(packet);
    (void)lant_exclusive_apply(&target->exclusive, &access, now);
    if (is_remembered(target, packet->header.type, true)) {
        const uint32_t tag = lant_shm_recent_add(&target->recent, now, lant_shm_recent_key(packet));
        lant_shm_recent_finish(&target->recent, tag, LANT_LOCKED);
    }
    target->counters.locked++;
    answer_now(target, packet, LANT_LOCKED, work);
}

static void describe(const struct lant_packet *packet, uint8_t local_id, struct lant_shm_work *work)
{
    const bool store = packet->header.type == LANT_AW;
    work->action = store ? LANT_SHM_WRITE : LANT_SHM_READ;
    work->local_id = local_id;
    work->strobe = packet->header.strobe;
    work->protection = packet->header.protection;
    work->address = packet->header.address & ~UINT64_C(7);
    work->data = store ? packet->payload[0] : 0;
}

/* Goes to memory, or is held: then nothing has changed. `again`: an exclusive load that was
 * answered before. */
static void go_to_memory(struct lant_shm_target *target, struct lant_inbound *inbound,
                         const struct lant_packet *packet, bool again, uint64_t now,
                         struct lant_shm_work *work)
{
    const bool store = packet->header.type == LANT_AW;
    const bool lock = packet->header.lock;
    const struct lant_inbound_record record = {.footer = packet->footer,
                                               .address = packet->header.address,
                                               .type = packet->header.type,
                                               .lock = lock,
                                               .again = again,
                                               .strobe = packet->header.strobe,
                                               .answers = 1,
                                               .response = lock ? LANT_EXOKAY : LANT_OKAY,
                                               .tag = target->recent.births};
    uint8_t local_id = 0;
    if (lant_inbound_holds(
            lant_inbound_admit(inbound, store ? LANT_WRITES : LANT_READS, &record, &local_id))) {
        target->counters.held++;
        work->action = LANT_SHM_HOLD;
        return;
    }
    target->counters.loads += !store;
    target->counters.stores += store;
    target->counters.exclusives += lock;
    target->counters.repeated += again;
    if (!again && lock) {
        const struct lant_exclusive_access access = exclusive_of(packet);
        CHECK(lant_exclusive_may(lant_exclusive_apply(&target->exclusive, &access, now)));
    }
    if (!again && is_remembered(target, packet->header.type, lock)) {
        const uint32_t tag = lant_shm_recent_add(&target->recent, now, lant_shm_recent_key(packet));
        CHECK(tag == record.tag);
    }
    describe(packet, local_id, work);
}

static void refuse(const struct lant_shm_target *target, uint64_t *counter,
                   const struct lant_packet *packet, enum lant_response response,
                   struct lant_shm_work *work)
{
    (*counter)++;
    answer_now(target, packet, response, work);
}

void lant_shm_target_on_request(struct lant_shm_target *target, struct lant_inbound *inbound,
                                const struct lant_ranges *ranges, const struct lant_packet *packet,
                                uint64_t now, struct lant_shm_work *work)
{
    struct lant_shm_target_counters *counters = &target->counters;
    CHECK(packet->header.type == LANT_AR || packet->header.type == LANT_AW);
    INVARIANTS(lant_shm_target_check(target));
    const enum meaning meaning = judge(target, ranges, packet, now);
    switch (meaning) {
    case WRONG_CLASS:
        counters->wrong_class++;
        work->action = LANT_SHM_DROP;
        break;
    case ASTRAY: refuse(target, &counters->astray, packet, LANT_DECERR, work); break;
    case MALFORMED: refuse(target, &counters->malformed, packet, LANT_SLVERR, work); break;
    case NO_RANGE: refuse(target, &counters->no_range, packet, LANT_DECERR, work); break;
    case NO_RIGHT: refuse(target, &counters->no_right, packet, LANT_SLVERR, work); break;
    case UNDER_WAY:
        counters->under_way++;
        work->action = LANT_SHM_DROP;
        break;
    case ANSWERED: {
        const struct lant_shm_recent_entry *entry = remembered(target, packet, now);
        refuse(target, &counters->repeated, packet, (enum lant_response)entry->response, work);
        break;
    }
    case LOCKED: refuse_lock(target, packet, now, work); break;
    case READ_AGAIN:
    case FRESH: go_to_memory(target, inbound, packet, meaning == READ_AGAIN, now, work); break;
    }
    INVARIANTS(lant_shm_target_check(target));
}

/* -- Memory's answers ---------------------------------------------------------------------------*/

void lant_shm_target_on_memory(struct lant_shm_target *target,
                               const struct lant_inbound_record *record, uint64_t data,
                               struct lant_packet *answer)
{
    const bool store = record->type == LANT_AW;
    const bool done = record->response == LANT_OKAY || record->response == LANT_EXOKAY;
    CHECK(record->footer.class == LANT_CLASS_SHM);
    INVARIANTS(lant_shm_target_check(target));
    if (!record->again && record->lock) {
        const struct lant_exclusive_access access = {.address = record->address,
                                                     .node = record->footer.source,
                                                     .bus_id = record->footer.bus_id,
                                                     .store = store};
        if (store) {
            lant_exclusive_written(&target->exclusive, &access);
        } else if (!done) {
            lant_exclusive_cancel(&target->exclusive, &access);
        }
    }
    if (!record->again && is_remembered(target, record->type, record->lock)) {
        lant_shm_recent_finish(&target->recent, record->tag, (enum lant_response)record->response);
    }
    build_answer(target->config.node, record->type, &record->footer,
                 (enum lant_response)record->response,
                 store || !done ? 0 : data & lant_strobe_bits(record->strobe), answer);
    INVARIANTS(lant_shm_target_check(target));
}

/* -- Time ---------------------------------------------------------------------------------------*/

uint64_t lant_shm_target_deadline(const struct lant_shm_target *target)
{
    const uint64_t locks = lant_exclusive_deadline(&target->exclusive);
    const uint64_t recent = lant_shm_recent_deadline(&target->recent);
    return locks < recent ? locks : recent;
}

void lant_shm_target_on_time(struct lant_shm_target *target, uint64_t now)
{
    lant_exclusive_on_time(&target->exclusive, now);
    lant_shm_recent_on_time(&target->recent, now);
}
