/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_time - life, timers and the end of a requester.
 */
#include "transport/block/requester_blocks.h"

#include "base/align.h"
#include "transport/common/timing.h"

static uint32_t paths_offset(uint32_t blocks)
{
    return (uint32_t)(sizeof(struct block_requester) + blocks * sizeof(struct block_sending));
}

size_t block_requester_bytes(uint32_t blocks, uint8_t path_count)
{
    const size_t path = sizeof(struct path) + PATH_RECORDS * sizeof(struct path_record);
    return paths_offset(blocks) + path_count * path;
}

_Static_assert(BLOCK_PATHS_MAX == PATHS_MAX, "the number of a path has 4 bits in a packet");

static void init_paths(struct block_requester *requester,
                       const struct block_requester_config *config, struct path *path,
                       struct instant now)
{
    struct path_record *records = (struct path_record *)(void *)(path + config->path_count);
    for (uint32_t i = 0; i < config->path_count; i++) {
        const struct path_config path_config = {
            .first_tsn = config->first_tsn,
            .packet_bytes = config->mtu_bytes + config->packet_cost,
            .trip_ns = config->trip_ns,
            .other_route = i != 0, /* HELLO went by the first. */
            .records = records + (size_t)i * PATH_RECORDS,
            .record_count = PATH_RECORDS,
            .policy = config->policy,
        };
        path_init(&path[i], &path_config, now);
    }
    paths_init(&requester->paths, path, path + 1, config->path_count);
}

struct block_requester *block_requester_init(void *memory, uint32_t blocks,
                                             const struct block_requester_config *config,
                                             struct instant now)
{
    struct block_requester *requester = memory;
    uint8_t *bytes = memory;
    CHECK(blocks >= BLOCK_REQUESTER_BLOCKS_LEAST && blocks <= BLOCK_WINDOW_MAX &&
          (blocks & (blocks - 1)) == 0);
    CHECK(config->window != 0 && config->window <= blocks && config->path_count != 0 &&
          config->path_count <= BLOCK_PATHS_MAX && config->read_blocks != 0);
    *requester = (struct block_requester){
        .blocks = (struct block_sending *)(void *)(bytes + sizeof(*requester)),
        .mask = blocks - 1,
        .window = config->window,
        .base = config->first_block,
        .oldest = config->first_block,
        .next = config->first_block,
        .plain_end = config->first_block,
        .mtu_bytes = config->mtu_bytes,
        .packet_cost = config->packet_cost,
        .link_window = config->link_window_bytes,
        .far_window = config->far_window_bytes,
        .receive_number = config->first_receive,
        .blocks_read_max = config->read_blocks,
        .reads_max = config->reads_max,
        .retry_limit = config->retry_limit,
        .retries_left = config->retry_limit,
        .rnr_limit = config->rnr_limit,
        .rnr_left = config->rnr_limit,
        .timeout_code = config->timeout_code,
        .retry_at = INSTANT_NEVER,
        .resume_at = INSTANT_NEVER,
        .probe_at = INSTANT_NEVER,
        .wake_at = INSTANT_NEVER,
        .resend_at = INSTANT_NEVER,
        .policy = config->policy,
    };
    block_ranges_init(&requester->ranges);
    init_paths(requester, config, (struct path *)(void *)(bytes + paths_offset(blocks)), now);
    return requester;
}

/* -- Timers -------------------------------------------------------------------------------------*/

void block_stop(struct block_requester *requester)
{
    requester->mode = BLOCK_REQUESTER_STOPPED;
    requester->retry_at = INSTANT_NEVER;
    requester->resume_at = INSTANT_NEVER;
    requester->probe_at = INSTANT_NEVER;
    requester->wake_at = INSTANT_NEVER;
    requester->paths.probes = 0;
    requester->resend_left = 0;
}

static void arm_retry(struct block_requester *requester, struct instant now)
{
    requester->retry_at = instant_after(now, ack_timeout_ns(requester->timeout_code));
}

/* The paths probe for their own packets in flight. This probe is for blocks that are not executed
 * though no packet is in flight. */
void block_arm_probe(struct block_requester *requester, struct instant now)
{
    requester->probe_at =
        instant_after(now, 2 * rtt_pto_ns(&paths_at(&requester->paths, 0)->rtt,
                                          &requester->policy->rtt, requester->silences));
}

void block_note_progress(struct block_requester *requester, struct instant now)
{
    requester->retries_left = requester->retry_limit;
    if (requester->oldest == requester->next || requester->mode == BLOCK_REQUESTER_PAUSING ||
        requester->mode == BLOCK_REQUESTER_STOPPED) {
        requester->retry_at = INSTANT_NEVER;
    } else {
        arm_retry(requester, now);
    }
}

static struct instant earlier(struct instant a, struct instant b)
{
    return instant_before(a, b) ? a : b;
}

struct instant block_requester_deadline(const struct block_requester *requester)
{
    switch ((enum block_requester_mode)requester->mode) {
    case BLOCK_REQUESTER_STOPPED: return INSTANT_NEVER;
    case BLOCK_REQUESTER_PAUSING: return requester->resume_at;
    case BLOCK_REQUESTER_SENDING:
    case BLOCK_REQUESTER_REFUSED: break;
    }
    return earlier(earlier(requester->retry_at, requester->probe_at),
                   earlier(requester->wake_at, paths_deadline(&requester->paths)));
}

bool block_requester_on_time(struct block_requester *requester, struct instant now)
{
    if (requester->mode == BLOCK_REQUESTER_STOPPED || requester->mode == BLOCK_REQUESTER_PAUSING) {
        return false;
    }
    uint8_t left;
    while ((left = paths_on_time(&requester->paths, now)) != PATH_NONE) {
        block_resend_path_left(requester, left);
    }
    if (instant_reached(now, requester->wake_at)) {
        requester->wake_at = INSTANT_NEVER;
    }
    if (instant_reached(now, requester->probe_at)) {
        if (requester->base == requester->next) {
            requester->probe_at = INSTANT_NEVER;
        } else {
            if (requester->silences < 6) {
                requester->silences++;
            }
            /* Others in turn: only a path that is silent while they are not is left. */
            const uint32_t path = block_at(requester, requester->base)->path + requester->silences;
            paths_want_probe(&requester->paths, (uint8_t)(path % requester->paths.count));
            block_arm_probe(requester, now);
        }
    }
    return instant_reached(now, requester->retry_at);
}

struct instant block_requester_waits_since(const struct block_requester *requester)
{
    const uint64_t timeout_ns = ack_timeout_ns(requester->timeout_code);
    const uint64_t at_ns = requester->retry_at.ns;
    return (struct instant){at_ns > timeout_ns ? at_ns - timeout_ns : 0};
}

bool block_requester_last_try(const struct block_requester *requester)
{
    return requester->retries_left == 0;
}

/* Sends block base again, whatever reports said of it: only executed blocks are sure to have come.
 * If all blocks are executed, the oldest one without its data goes again, although its own timer
 * may be longer. */
static void send_oldest_again(struct block_requester *requester, struct instant now)
{
    const bool executed = requester->base == requester->next;
    const uint32_t bn = executed ? requester->oldest : requester->base;
    const bool goes_already = requester->resend_left != 0 && requester->resending == bn;
    if (bn == requester->next || goes_already) {
        return;
    }
    struct block_sending *block = block_at(requester, bn);
    if (executed) {
        block->data_missed = true;
        block->due = now;
    } else {
        block->state = BLOCK_SENDING_DUE;
        block->arrived = block->wants_data ? block->arrived : 0;
    }
    block_note_missing(requester, bn);
}

struct block_progress block_requester_on_timeout(struct block_requester *requester,
                                                 struct send_queue *queue, struct instant now)
{
    INVARIANTS(block_requester_check(requester, queue));
    struct block_progress progress = {BLOCK_STALE, NULL, 0};
    const bool waits =
        requester->mode == BLOCK_REQUESTER_SENDING || requester->mode == BLOCK_REQUESTER_REFUSED;
    if (!waits || !instant_reached(now, requester->retry_at)) {
        return progress;
    }
    if (requester->retries_left != 0) {
        requester->retries_left--;
        arm_retry(requester, now);
        send_oldest_again(requester, now);
        progress.verdict = BLOCK_PROGRESS;
        return progress;
    }
    progress.verdict = BLOCK_FAILED;
    if (requester->oldest != requester->next) {
        progress.work = block_work(queue, block_at(requester, requester->oldest));
    } else if (queue->next != queue->tail) {
        /* Nothing ever went out: the request at the cursor is the one that could not be sent. */
        progress.work = send_queue_at(queue, queue->next);
    }
    if (progress.work != NULL) {
        progress.work->status = COMPLETION_RETRY_EXCEEDED;
    }
    block_stop(requester);
    INVARIANTS(block_requester_check(requester, queue));
    return progress;
}

void block_requester_wait_on(struct block_requester *requester, struct instant now)
{
    requester->retries_left = requester->retry_limit;
    arm_retry(requester, now);
}

/* Is a request under way, or does one wait to leave? While the queue drains, only one that has
 * begun. Probes do not count: nobody gives up for a path that is idle. */
static bool waits(const struct block_requester *requester, const struct send_queue *queue,
                  bool draining)
{
    return requester->oldest != requester->next ||
           (queue->next != queue->tail &&
            (!draining || send_queue_at(queue, queue->next)->started));
}

void block_requester_blocked(struct block_requester *requester, const struct send_queue *queue,
                             bool draining, struct instant now)
{
    if (requester->retry_at.ns == UINT64_MAX && requester->mode == BLOCK_REQUESTER_SENDING &&
        waits(requester, queue, draining)) {
        arm_retry(requester, now);
    }
}

void block_requester_relax(struct block_requester *requester, const struct send_queue *queue,
                           bool draining)
{
    if (!waits(requester, queue, draining)) {
        requester->retry_at = INSTANT_NEVER;
        requester->retries_left = requester->retry_limit;
    }
}

/* The timer began with the old code, or not at all. The new code holds also for packets in
 * flight. */
static void retime(struct block_requester *requester, uint8_t code, struct instant now)
{
    const bool sends =
        requester->mode == BLOCK_REQUESTER_SENDING || requester->mode == BLOCK_REQUESTER_REFUSED;
    const bool runs = requester->retry_at.ns != UINT64_MAX;
    const struct instant since = runs ? block_requester_waits_since(requester) : now;
    requester->timeout_code = code;
    if (runs || (sends && requester->oldest != requester->next)) {
        arm_retry(requester, since);
    }
}

void block_requester_retune(struct block_requester *requester,
                            const struct block_requester_config *config, struct instant now)
{
    if (requester->timeout_code != config->timeout_code) {
        retime(requester, config->timeout_code, now);
    }
    requester->reads_max = config->reads_max;
    if (requester->retry_limit != config->retry_limit) {
        requester->retry_limit = requester->retries_left = config->retry_limit;
    }
    if (requester->rnr_limit != config->rnr_limit) {
        requester->rnr_limit = requester->rnr_left = config->rnr_limit;
    }
}

/* -- Completing ---------------------------------------------------------------------------------*/

struct work *block_requester_completed(const struct block_requester *requester,
                                       const struct send_queue *queue)
{
    if (queue->head == queue->tail) {
        return NULL;
    }
    struct work *work = send_queue_at(queue, queue->head);
    if (!work->started) {
        return NULL;
    }
    if (work_is_local(work)) {
        return work;
    }
    const bool executed = !block_number_before(requester->base, work_blocks_end(work));
    const bool has_data =
        !work_wants_response(work) || (work->awaited == 0 && work->moves_pending == 0);
    return executed && has_data ? work : NULL;
}

struct work *block_requester_work_of(const struct block_requester *requester,
                                     const struct send_queue *queue, uint32_t number)
{
    if (!block_within(number, requester->oldest, requester->next)) {
        return NULL;
    }
    const struct block_sending *block = block_at(requester, number);
    const bool waits =
        block->wants_data ? !block_has_data(block) : !block_is_executed(requester, number);
    return waits ? block_work(queue, block) : NULL;
}

bool block_requester_drained(const struct block_requester *requester,
                             const struct send_queue *queue)
{
    return requester->oldest == requester->next &&
           (queue->head == queue->tail || !send_queue_at(queue, queue->head)->started);
}
