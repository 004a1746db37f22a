/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/common/path.h"

#include <stddef.h>

/* Packets that leave within one of these parts of a round trip share a record, so that a path's
 * records are enough for two round trips. */
static uint32_t record_parts(const struct path *path)
{
    return (path->record_mask + 1) / 2;
}

/* A record begins at most this many TSNs back: TSNs of twice the distance count as ahead. */
#define RECORDS_REACH (PSN_HALF / 2)

/* Unanswered probes double the interval QUICK_DOUBLINGS times. After QUICK_TRIES more probes each
 * one doubles it again. */
#define QUICK_DOUBLINGS 1
#define QUICK_TRIES     16

/* The reordering window in quarters of a round trip. The window covers at least twice the error of
 * a record. */
#define REORDERING_MOST 16

/* A packet asks for an answer after ASK_NS of sending, but at most 16 times and at least 4 times in
 * a window. Packets that nobody asked about count as in flight for too long, and a long path loses
 * a good part of its window. */
#define ASK_NS         250000
#define ASK_PARTS_MOST 16
#define ASK_PARTS      4

/* A batch leaves at once: 125 us of pace, at least two packets, at most one system call. A longer
 * batch looks to the packets behind it like a queue that is too long. A late sender may catch up on
 * two batches. */
#define BATCH_NS        125000
#define BATCH_PACKETS   2
#define BATCH_BYTES_MAX 65536
#define BATCHES         2
/* One tick of a kernel's clock. */
#define OVERSLEPT_NS 4000000

/* More than a ring takes, and than a flow's window of PSNs has. */
#define RING_PACKETS 2048

struct path_policy path_policy_default(void)
{
    return (struct path_policy){
        .rtt = rtt_policy_default(),
        .congestion = congestion_policy_default(),
        .reordering_least_ns = 50000,
        .revive_ns = 100000000,
        .revive_most_ns = 10000000000,
        .revive_answers = 2,
        .reordering_recoveries = 16,
    };
}

struct path_policy path_policy_of_ring(void)
{
    struct path_policy policy = path_policy_default();
    policy.congestion.start_packets = policy.congestion.least_packets = RING_PACKETS;
    policy.congestion.start_pace_percent = policy.congestion.pace_percent = UINT16_MAX;
    return policy;
}

void path_init(struct path *path, const struct path_config *config, struct instant now)
{
    const uint32_t count = config->record_count;
    CHECK(count >= PATH_RECORDS_LEAST && (count & (count - 1)) == 0);
    *path = (struct path){
        .policy = config->policy,
        .records = config->records,
        .record_mask = count - 1,
        .next = config->first_tsn,
        .reordering = 1,
        .probe_at = INSTANT_NEVER,
        .timeout_at = INSTANT_NEVER,
        .packet_bytes = config->packet_bytes,
    };
    rtt_init(&path->rtt);
    congestion_init(&path->congestion, &config->policy->congestion, config->packet_bytes);
    if (config->trip_ns != 0) {
        rtt_sample(&path->rtt, &config->policy->rtt, config->trip_ns, now);
    }
    /* Else all that is longer would seem to wait in a queue. */
    for (uint32_t quarter = 0; config->other_route && quarter < RTT_QUARTERS; quarter++) {
        path->rtt.least_ns[quarter] = UINT32_MAX;
    }
}

void path_use(struct path *path, const struct path_policy *policy)
{
    path->policy = policy;
    congestion_init(&path->congestion, &policy->congestion, path->packet_bytes);
}

static struct path_record *record_at(const struct path *path, uint32_t position)
{
    return &path->records[position & path->record_mask];
}

/* The record of a TSN; NULL: forgotten, or never sent. */
static const struct path_record *record_of(const struct path *path, struct psn tsn)
{
    uint32_t low = path->record_next - path->record_count, high = path->record_next;
    if (psn_distance(tsn, path->next) <= 0) {
        return NULL;
    }
    while (low != high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct path_record *record = record_at(path, middle);
        if (psn_distance(record->first, tsn) < 0) {
            high = middle;
        } else if (psn_count(record->first, tsn) >= record->packets) {
            low = middle + 1;
        } else {
            return record;
        }
    }
    return NULL;
}

uint32_t path_flight(const struct path *path)
{
    return path->sent_bytes - path->settled_bytes;
}

static uint32_t window(const struct path *path)
{
    return congestion_window(&path->congestion, &path->policy->congestion);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void count_up(uint8_t *count, uint8_t most)
{
    if (*count < most) {
        (*count)++;
    }
}

/* Packets are in flight from now on, or there is news of those in flight. */
static void timers_start(struct path *path, struct instant now)
{
    path->probes = 0;
    path->expiries = 0;
    path->doubt_at = instant_after(now, rtt_pto_ns(&path->rtt, &path->policy->rtt, 0));
    path->probe_at = instant_after(now, rtt_tlp_ns(&path->rtt, &path->policy->rtt));
    path->timeout_at = instant_after(path->doubt_at, rtt_rto_ns(&path->rtt, &path->policy->rtt, 0));
}

static void timers_stop(struct path *path)
{
    path->probe_at = INSTANT_NEVER;
    path->timeout_at = INSTANT_NEVER;
}

/* The pace, if there is one: bytes a second, a batch, and the time that a late sender may catch up
 * on. */
struct pace {
    uint64_t rate;
    uint32_t batch;
    uint64_t credit_ns;
};

/* The time that the pace takes for `bytes`, rounded up. */
static uint64_t pace_ns(const struct pace *pace, uint64_t bytes)
{
    return bytes * 1000000000 / pace->rate + 1;
}

static bool pace_of(const struct path *path, struct pace *pace)
{
    pace->rate = congestion_rate(&path->congestion, &path->policy->congestion);
    if (pace->rate == UINT64_MAX) {
        return false;
    }
    pace->rate = larger(pace->rate, 1);
    const uint64_t fast = (uint64_t)BATCH_BYTES_MAX * (1000000000 / BATCH_NS);
    const uint64_t batch = smaller(pace->rate, fast) * BATCH_NS / 1000000000;
    pace->batch = (uint32_t)larger(batch, (uint64_t)BATCH_PACKETS * path->packet_bytes);
    /* Where a round trip is shorter than a sender may oversleep, answers keep the pace. */
    const uint64_t late = path->rtt.smoothed_ns < OVERSLEPT_NS ? window(path) / 4 : 0;
    pace->credit_ns = pace_ns(pace, larger((uint64_t)BATCHES * pace->batch, late));
    return true;
}

static void pay(struct path *path, uint32_t bytes, struct instant now)
{
    struct pace pace;
    if (!pace_of(path, &pace)) {
        path->paid_until = now;
        return;
    }
    const uint64_t oldest = now.ns > pace.credit_ns ? now.ns - pace.credit_ns : 0;
    const struct instant from = {larger(path->paid_until.ns, oldest)};
    path->paid_until = instant_after(from, pace_ns(&pace, bytes));
}

static void record(struct path *path, uint32_t bytes, struct instant now)
{
    struct path_record *newest = record_at(path, path->record_next - 1);
    const uint64_t most = smaller(path->rtt.smoothed_ns / record_parts(path), UINT32_MAX);
    if (path->record_count == 0 || now.ns - newest->sent_at.ns > most) {
        newest = record_at(path, path->record_next++);
        *newest = (struct path_record){
            .sent_at = now, .bytes_before = path->sent_bytes - bytes, .first = path->next};
        path->record_count += path->record_count <= path->record_mask ? 1 : 0;
    }
    newest->span_ns = (uint32_t)(now.ns - newest->sent_at.ns);
    newest->packets++;
    while (psn_count(record_at(path, path->record_next - path->record_count)->first, path->next) >
               RECORDS_REACH &&
           path->record_count > 1) {
        path->record_count--;
    }
}

static void path_check(const struct path *path)
{
    CHECK(path->record_count <= path->record_mask + 1);
    CHECK(path->reordering >= 1 && path->reordering <= REORDERING_MOST);
    CHECK(!path->arrived_known || psn_distance(path->arrived, path->next) > 0);
    CHECK(!path->suspect || path->timeout_at.ns == UINT64_MAX);
    if (path->record_count != 0) {
        const struct path_record *newest = record_at(path, path->record_next - 1);
        CHECK(psn_equal(psn_after(newest->first, newest->packets), path->next));
    }
}

struct psn path_sent(struct path *path, uint32_t bytes, bool asks, struct instant now)
{
    INVARIANTS(path_check(path));
    CHECK(bytes > 0);
    if (path_flight(path) == 0 && !path->suspect) {
        timers_start(path, now);
    }
    const struct psn tsn = path->next;
    path->sent_bytes += bytes;
    path->asked_bytes = asks ? path->sent_bytes : path->asked_bytes;
    record(path, bytes, now);
    pay(path, bytes, now);
    path->next = psn_after(path->next, 1);
    /* A start needs half a window only, because each round trip doubles it. */
    const uint32_t whole = window(path);
    const uint32_t full =
        path->congestion.mode == CONGESTION_STARTING ? whole / 2 : whole - whole / 8;
    path->filled = path->filled || path_flight(path) >= full;
    INVARIANTS(path_check(path));
    return tsn;
}

bool path_wants_answer(const struct path *path)
{
    const uint64_t whole = window(path), trip = path->rtt.smoothed_ns;
    const uint64_t timely = trip == 0 ? whole : whole * ASK_NS / trip;
    const uint64_t most = smaller(whole / ASK_PARTS, timely);
    return path->sent_bytes - path->asked_bytes >= larger(whole / ASK_PARTS_MOST, most);
}

/* When a TSN of this record left. */
static struct instant sent_time(const struct path_record *record, struct psn tsn)
{
    const uint64_t gaps = larger(record->packets - 1, 1);
    return instant_after(record->sent_at,
                         (uint64_t)record->span_ns * psn_count(record->first, tsn) / gaps);
}

static bool is_newest(const struct path *path, const struct path_record *record)
{
    return record == record_at(path, path->record_next - 1);
}

/* Bytes that had been sent with a TSN of this record: up to its last packet, those that had been
 * sent before the next record. */
static uint32_t bytes_up_to(const struct path *path, const struct path_record *record,
                            struct psn tsn)
{
    const uint32_t place = (uint32_t)(record - path->records);
    const uint32_t end =
        is_newest(path, record) ? path->sent_bytes : record_at(path, place + 1)->bytes_before;
    const uint64_t after = record->packets - 1 - psn_count(record->first, tsn);
    return end - (uint32_t)((end - record->bytes_before) * after / record->packets);
}

/* A TSN that is newer than all that arrived before: its record, or NULL and why not. */
static const struct path_record *news(const struct path *path, struct psn tsn,
                                      enum path_echo *verdict)
{
    *verdict = PATH_ECHO_IMPOSSIBLE;
    if (psn_distance(tsn, path->next) <= 0) {
        return NULL;
    }
    *verdict = PATH_ECHO_OLD;
    if (path->arrived_known && psn_distance(path->arrived, tsn) <= 0) {
        return NULL;
    }
    const struct path_record *found = record_of(path, tsn);
    *verdict = found == NULL ? PATH_ECHO_OLD : PATH_ECHO_NEWS;
    return found;
}

/* An answer came over a path that was left: a few in a row, and it is like new. */
static void answered(struct path *path, struct instant now)
{
    path->probes = 0;
    path->probe_at = now;
    if (++path->answers < path->policy->revive_answers) {
        return;
    }
    path->suspect = false;
    path->answers = 0;
    path->settled_bytes = path->sent_bytes;
    path->lost_bytes = 0;
    path->ce_packets = 0;
    timers_stop(path);
    rtt_init(&path->rtt);
    congestion_init(&path->congestion, &path->policy->congestion, path->packet_bytes);
}

static void learn(struct path *path, const struct path_record *found, struct psn tsn,
                  uint64_t sample_ns, struct instant now)
{
    const uint32_t up_to = bytes_up_to(path, found, tsn);
    /* Bytes that were in flight when the path was left are settled. */
    const uint32_t ahead = up_to - path->settled_bytes;
    const uint32_t gone = ahead > UINT32_MAX / 2 ? 0 : ahead;
    path->arrived = tsn;
    path->arrived_known = true;
    path->arrived_sent = sent_time(found, tsn);
    path->arrived_ns = now.ns - path->arrived_sent.ns;
    if (path->suspect) {
        return;
    }
    path->settled_bytes += gone;
    const uint32_t lost = path->lost_bytes;
    congestion_on_report(&path->congestion, &path->policy->congestion,
                         &(struct congestion_report){
                             .now = now,
                             .acked_bytes = gone > lost ? gone - lost : 0,
                             .lost_bytes = lost,
                             .ce_packets = path->ce_packets,
                             .delay_ns = (uint32_t)smaller(sample_ns, UINT32_MAX),
                             .base_ns = rtt_least_ns(&path->rtt),
                             .smoothed_ns = path->rtt.smoothed_ns,
                             .app_limited = !path->filled,
                         });
    path->lost_bytes = 0;
    path->ce_packets = 0;
    path->filled = false;
    if (path_flight(path) != 0) {
        timers_start(path, now);
    } else {
        timers_stop(path);
    }
}

enum path_echo path_on_echo(struct path *path, const struct path_echo_report *echo,
                            struct instant now)
{
    INVARIANTS(path_check(path));
    enum path_echo verdict;
    const struct path_record *found = news(path, echo->tsn, &verdict);
    if (verdict == PATH_ECHO_IMPOSSIBLE) {
        return verdict;
    }
    if (found != NULL && path->suspect) {
        answered(path, now);
    }
    /* The peer reports each mark once, perhaps in an answer that brings no other news. */
    path->ce_packets += echo->ce_packets;
    if (found == NULL) {
        return verdict;
    }
    /* A peer that held its answer for longer than it took gives no sample. */
    const uint64_t whole = now.ns - sent_time(found, echo->tsn).ns;
    const uint64_t sample = whole > echo->held_ns ? whole - echo->held_ns : 0;
    if (sample != 0) {
        rtt_sample(&path->rtt, &path->policy->rtt, sample, now);
    }
    learn(path, found, echo->tsn, sample, now);
    INVARIANTS(path_check(path));
    return PATH_ECHO_NEWS;
}

enum path_echo path_on_arrived(struct path *path, struct psn tsn, struct instant now)
{
    INVARIANTS(path_check(path));
    enum path_echo verdict;
    const struct path_record *found = news(path, tsn, &verdict);
    if (found != NULL) {
        learn(path, found, tsn, 0, now);
    }
    INVARIANTS(path_check(path));
    return verdict;
}

/* A short round trip does not make the steps shorter: the causes of late packets need not be faster
 * there. */
static uint64_t reordering_ns(const struct path *path)
{
    const uint64_t trip = path->rtt.smoothed_ns, least = path->policy->reordering_least_ns;
    const uint64_t step = larger(rtt_least_ns(&path->rtt) / 4, least);
    const uint64_t wide = smaller(path->reordering * step, larger(trip, REORDERING_MOST * least));
    return larger(wide, trip / (record_parts(path) / 2));
}

struct instant path_loss_deadline(const struct path *path, struct psn tsn)
{
    if (path->suspect) {
        return (struct instant){0};
    }
    if (!path->arrived_known || psn_distance(tsn, path->arrived) <= 0) {
        return INSTANT_NEVER;
    }
    /* A packet whose record is forgotten left before the oldest record that is kept. */
    const struct path_record *found = record_of(path, tsn);
    const struct instant left =
        found != NULL ? sent_time(found, tsn)
                      : record_at(path, path->record_next - path->record_count)->sent_at;
    const uint64_t sent_ns = smaller(left.ns, path->arrived_sent.ns);
    return instant_after((struct instant){sent_ns}, path->arrived_ns + reordering_ns(path));
}

bool path_lost(const struct path *path, struct psn tsn, struct instant now)
{
    return instant_reached(now, path_loss_deadline(path, tsn));
}

void path_on_lost(struct path *path, uint32_t bytes, struct instant now)
{
    path->lost_bytes += bytes;
    const bool begins = instant_reached(now, path->recovery_until);
    if (begins) {
        path->recovery_lost /= 2;
        path->recovery_spurious /= 2;
    }
    path->recovery_lost += bytes;
    if (!begins) {
        return;
    }
    path->recovery_until = instant_after(now, path->rtt.smoothed_ns);
    if (path->reordering > 1 && ++path->recoveries >= path->policy->reordering_recoveries) {
        path->reordering = 1;
        path->recoveries = 0;
    }
}

void path_on_spurious(struct path *path, uint32_t packets, struct instant now)
{
    path->recoveries = 0;
    path->recovery_spurious += packets * path->packet_bytes;
    if (path->recovery_spurious >= path->recovery_lost / 2) {
        congestion_undo(&path->congestion, &path->policy->congestion);
        path->recovery_lost = 0;
        path->recovery_spurious = 0;
    }
    if (instant_reached(now, path->widened_until)) {
        path->widened_until = instant_after(now, path->rtt.smoothed_ns);
        count_up(&path->reordering, REORDERING_MOST);
    }
}

static uint32_t window_room(const struct path *path)
{
    const uint32_t flight = path_flight(path), whole = window(path);
    return path->suspect || flight >= whole ? 0 : whole - flight;
}

static bool leaves_now(const struct path *path, struct instant now)
{
    if (path->record_count == 0) {
        return false;
    }
    const struct path_record *newest = record_at(path, path->record_next - 1);
    return newest->sent_at.ns + newest->span_ns == now.ns;
}

uint32_t path_room(const struct path *path, struct instant now)
{
    const uint32_t room = window_room(path);
    struct pace pace;
    if (room == 0 || !pace_of(path, &pace)) {
        return room;
    }
    const uint64_t unpaid = now.ns > path->paid_until.ns ? now.ns - path->paid_until.ns : 0;
    const uint64_t paced = smaller(unpaid, pace.credit_ns) * pace.rate / 1000000000;
    /* A batch that has begun to leave goes on; the next batch waits until there is room for all of
     * it. */
    const uint32_t least = leaves_now(path, now) ? path->packet_bytes / 2 : pace.batch;
    return paced < smaller(room, least) ? 0 : (uint32_t)smaller(room, paced);
}

struct instant path_room_at(const struct path *path, struct instant now)
{
    const uint32_t room = window_room(path);
    struct pace pace;
    if (room == 0) {
        return INSTANT_NEVER;
    }
    if (!pace_of(path, &pace) || path_room(path, now) != 0) {
        return now;
    }
    const struct instant paced =
        instant_after(path->paid_until, pace_ns(&pace, smaller(room, pace.batch)));
    return instant_before(paced, now) ? now : paced;
}

struct instant path_deadline(const struct path *path)
{
    return instant_before(path->timeout_at, path->probe_at) ? path->timeout_at : path->probe_at;
}

static void leave(struct path *path, struct instant now)
{
    path->suspect = true;
    path->answers = 0;
    path->probes = 0;
    path->settled_bytes = path->sent_bytes;
    path->probe_at = instant_after(now, path->policy->revive_ns);
    path->timeout_at = INSTANT_NEVER;
}

/* How many times the interval between probes is doubled. All routes that there may be are tried
 * before probes become rare. */
static uint32_t doublings(uint32_t probes)
{
    return probes <= QUICK_DOUBLINGS                ? probes
           : probes < QUICK_DOUBLINGS + QUICK_TRIES ? QUICK_DOUBLINGS
                                                    : probes - QUICK_TRIES;
}

/* The pause before the next try, after `tries` tries that failed. */
static uint64_t revive_ns(const struct path *path, uint32_t tries)
{
    return smaller(path->policy->revive_ns << smaller(tries, 16), path->policy->revive_most_ns);
}

/* A route that fails again soon after it answered waits as long as before. */
static void leave_own_route(struct path *path, struct instant now)
{
    if (now.ns - path->own_route_at.ns > path->policy->revive_most_ns) {
        path->own_route_tries = 0;
    }
    path->own_route_at = instant_after(now, revive_ns(path, path->own_route_tries));
}

/* Counts a probe. A route whose probe got no answer is not probed next. */
static void count_probe(struct path *path, struct instant now)
{
    if (path->probes != 0) {
        if (path->turns == 0) {
            leave_own_route(path, now);
        }
        path->turns++;
    }
    count_up(&path->probes, UINT8_MAX);
}

/* A suspect's turn to be tried: one that did not answer waits twice as long. */
static void try_suspect(struct path *path, struct instant now)
{
    path->answers = path->probes == 0 ? path->answers : 0;
    path->probe_at = instant_after(now, revive_ns(path, path->probes));
    count_probe(path, now);
}

enum path_event path_on_time(struct path *path, struct instant elsewhere, struct instant now)
{
    INVARIANTS(path_check(path));
    if (instant_reached(now, path->timeout_at)) {
        if (instant_before(path->doubt_at, elsewhere)) {
            leave(path, now);
            return PATH_LEFT;
        }
        count_up(&path->expiries, UINT8_MAX);
        congestion_on_silence(&path->congestion, &path->policy->congestion, now);
        path->timeout_at =
            instant_after(now, rtt_rto_ns(&path->rtt, &path->policy->rtt, path->expiries));
    }
    if (!instant_reached(now, path->probe_at)) {
        return PATH_QUIET;
    }
    if (path->suspect) {
        try_suspect(path, now);
    } else if (instant_before(path->probe_at, path->doubt_at)) {
        /* A tail loss probe, which does not count: what follows is as if it had not been sent. */
        path->probe_at = path->doubt_at;
    } else {
        count_probe(path, now);
        path->probe_at =
            instant_after(now, rtt_pto_ns(&path->rtt, &path->policy->rtt, doublings(path->probes)));
    }
    return PATH_PROBE;
}

bool path_own_route_due(const struct path *path, struct instant now)
{
    return path->turns != 0 && path->probes == 0 && !path->suspect &&
           instant_reached(now, path->own_route_at);
}

void path_own_route_tried(struct path *path, struct instant now)
{
    count_up(&path->own_route_tries, UINT8_MAX);
    path->own_route_at = instant_after(now, revive_ns(path, path->own_route_tries));
}

void path_own_route_answers(struct path *path, struct instant now)
{
    path->turns = 0;
    path->own_route_at = now;
}
