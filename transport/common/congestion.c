/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Swift, changed where its world differs from ours. Machines' own delays are as long as a network's
 * queues, so a round's least delay counts. Nobody tells us the network's true base: a flow that
 * begins late takes another flow's queue for a part of it. So a cut follows the swing of the delay,
 * which all flows see alike, and not its height above a base; the base only says how deep to cut.
 * Random loss is no reason to slow down: a loss counts only if there is a queue, or among many
 * losses. If cuts do not empty the queue, another flow fills it that ignores delay: then we ignore
 * it, too, and look again later.
 */
#include "transport/common/congestion.h"

#include <stddef.h>

#include "base/check.h"

/* Bits of a window behind the point. */
#define FRACTION 8
#define WHOLE    256u
#define NO_DELAY UINT32_MAX

/* A window falls below its least only as a measure of the pace, to this part of a packet. */
#define PACKET_PARTS 16

_Static_assert(sizeof(struct congestion) <= CONGESTION_BYTES_MAX, "");

/* The target: the delay that scheduling adds on processors that are shared. 10 packets: RFC 6928.
 * 0.7: RFC 9438. 10 %: twice the random loss that must not slow us down. 1/16: RFC 8257. 1.25:
 * Linux' pacing. The others: the values that did best over the table of
 * tests/scenarios/congestion_scenario_test.c. */
struct congestion_policy congestion_policy_default(void)
{
    return (struct congestion_policy){
        .target_ns = 1000000,
        .target_percent = 25,
        .target_most_ns = 5000000,
        .agree_percent = 25,
        .fall_percent = 20,
        .start_packets = 10,
        .start_bytes = 65536,
        .least_packets = 2,
        .most_bytes = 1u << 30,
        .grow_bytes = 4096,
        .cut_256ths = 179,
        .silence_256ths = 128,
        .drain_256ths = 224,
        .shallow_256ths = 128,
        .heavy_percent = 10,
        .heavy_packets = 6,
        .stubborn_cuts = 4,
        .competitive_rounds = 32,
        .undo_rounds = 8,
        .silences = 3,
        .ce_shift = 4,
        .start_pace_percent = 200,
        .pace_percent = 125,
    };
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void count_up(uint8_t *count)
{
    if (*count < UINT8_MAX) {
        (*count)++;
    }
}

static void window_set(struct congestion *congestion, const struct congestion_policy *policy,
                       uint64_t window)
{
    const uint64_t floor = ((uint64_t)congestion->packet_bytes << FRACTION) / PACKET_PARTS;
    window = window < floor ? floor : window;
    congestion->window = least_of(window, (uint64_t)policy->most_bytes << FRACTION);
}

static void round_begin(struct congestion *congestion, struct instant now, uint64_t length_ns)
{
    congestion->round_end = instant_after(now, length_ns);
    congestion->round_acked = 0;
    congestion->round_lost = 0;
    congestion->round_marked = 0;
    congestion->round_delay_ns = NO_DELAY;
}

void congestion_init(struct congestion *congestion, const struct congestion_policy *policy,
                     uint32_t packet_bytes)
{
    CHECK(packet_bytes >= PACKET_PARTS);
    *congestion = (struct congestion){
        .packet_bytes = packet_bytes,
        .mode = CONGESTION_STARTING,
        .queue_ns = NO_DELAY,
        .trough_ns = NO_DELAY,
        .loss_rounds = UINT8_MAX,
    };
    const uint64_t packets = (uint64_t)policy->start_packets * packet_bytes;
    const uint64_t start = packets > policy->start_bytes ? packets : policy->start_bytes;
    window_set(congestion, policy, start << FRACTION);
    round_begin(congestion, (struct instant){0}, UINT64_MAX);
}

/* On a long way the queue may be longer. A window grows only once in a round trip, and with a short
 * queue it would often be too small for the way. But there is a limit, because a flow that begins
 * late takes another flow's queue for a part of the way. */
static uint64_t target(const struct congestion *congestion, const struct congestion_policy *policy)
{
    if (congestion->queue_ns == NO_DELAY) {
        return policy->target_ns;
    }
    const uint64_t part =
        (uint64_t)(congestion->trip_ns - congestion->queue_ns) * policy->target_percent / 100;
    const uint64_t most = least_of(part, policy->target_most_ns);
    return most > policy->target_ns ? most : policy->target_ns;
}

static bool delay_agrees(const struct congestion *congestion,
                         const struct congestion_policy *policy)
{
    return congestion->queue_ns != NO_DELAY &&
           congestion->queue_ns > target(congestion, policy) * policy->agree_percent / 100;
}

static uint32_t proof(const struct congestion *congestion, const struct congestion_policy *policy)
{
    return policy->heavy_packets * congestion->packet_bytes;
}

/* Is it proven that more than heavy_percent are lost? A cumulative sum, where losses add and
 * arrivals take away so that it stays near 0 below that share. */
static bool losses_heavy(const struct congestion *congestion,
                         const struct congestion_policy *policy)
{
    return congestion->loss_score >= proof(congestion, policy);
}

/* Where losses add up, a start does not double any more. */
static bool losses_suspicious(const struct congestion *congestion,
                              const struct congestion_policy *policy)
{
    return congestion->loss_score > proof(congestion, policy) / 4;
}

/* Has the delay risen, as all packets of this round show? A start that waits until the delay has
 * risen by the target, or for a loss, doubles once or twice too often, and overflows a queue that
 * holds as much as the way. */
static bool start_is_over(const struct congestion *congestion,
                          const struct congestion_policy *policy)
{
    const uint64_t queue = congestion->round_delay_ns;
    return queue != NO_DELAY && queue > (congestion->trip_ns - queue) / 4 &&
           congestion->trough_ns < congestion->trip_ns &&
           congestion->trip_ns - congestion->trough_ns >
               policy->target_ns * policy->agree_percent / 100;
}

/* The bytes that a round adds. Growth rises with the time since the last cut, which all flows of a
 * queue see alike. But then it is no more than an eighth of the window: otherwise many small flows
 * would fill the queue before anybody can notice. */
static uint64_t growth_bytes(const struct congestion *congestion,
                             const struct congestion_policy *policy)
{
    const uint64_t most = (uint64_t)policy->grow_bytes * (4 + congestion->calm_rounds) / 4;
    const uint64_t eighth = congestion->window >> (FRACTION + 3);
    return least_of(most, eighth > policy->grow_bytes ? eighth : policy->grow_bytes);
}

static void grow(struct congestion *congestion, const struct congestion_policy *policy,
                 uint32_t acked_bytes)
{
    const uint64_t acked = (uint64_t)acked_bytes << FRACTION;
    const bool losing = congestion->round_lost != 0 && delay_agrees(congestion, policy);
    uint64_t more = 0;
    /* After a cut nothing grows before its effect was seen, nor while the queue overflows. */
    if (congestion->mode != CONGESTION_STARTING && (congestion->settling != 0 || losing)) {
        return;
    }
    switch (congestion->mode) {
    case CONGESTION_STARTING:
        if (!losses_suspicious(congestion, policy) && !start_is_over(congestion, policy)) {
            more = acked;
        }
        break;
    case CONGESTION_DELAY:
    case CONGESTION_COMPETITIVE: /* A window below a packet at most doubles. */
        more = least_of(acked, acked * growth_bytes(congestion, policy) /
                                   (congestion->window >> FRACTION));
        break;
    default: UNREACHABLE("a mode");
    }
    window_set(congestion, policy, congestion->window + more);
}

/* After a cut one round passes before a shorter queue can be seen, and one until it was. */
static void cut(struct congestion *congestion, const struct congestion_policy *policy,
                uint64_t part_256ths)
{
    congestion->settling = 2;
    congestion->calm_rounds = 0;
    if (congestion->mode == CONGESTION_STARTING) {
        congestion->mode = CONGESTION_DELAY;
    }
    window_set(congestion, policy, congestion->window / WHOLE * part_256ths);
}

static void cut_for_loss(struct congestion *congestion, const struct congestion_policy *policy,
                         uint64_t part_256ths)
{
    if (congestion->loss_rounds > policy->undo_rounds) {
        congestion->before_loss = congestion->window;
    }
    congestion->loss_rounds = 0;
    cut(congestion, policy, part_256ths);
}

static void count_losses(struct congestion *congestion, const struct congestion_policy *policy,
                         uint32_t acked_bytes, uint32_t lost_bytes)
{
    const uint64_t up = (uint64_t)lost_bytes * (100 - policy->heavy_percent) / 100;
    const uint64_t down = (uint64_t)acked_bytes * policy->heavy_percent / 100;
    const uint64_t score = congestion->loss_score + up;
    congestion->loss_score =
        score < down ? 0
                     : (uint32_t)least_of(score - down, 2 * (uint64_t)proof(congestion, policy));
}

static void judge_marks(struct congestion *congestion, const struct congestion_policy *policy)
{
    const uint64_t all = (uint64_t)congestion->round_acked + 1;
    const uint64_t share = least_of(((uint64_t)congestion->round_marked << 16) / all, UINT16_MAX);
    const int64_t off = (int64_t)share - congestion->marked;
    congestion->marked = (uint16_t)(congestion->marked + off / (1 << policy->ce_shift));
    if (congestion->round_marked == 0 || congestion->settling != 0) {
        return;
    }
    if (congestion->mode == CONGESTION_STARTING) {
        congestion->mode = CONGESTION_DELAY;
        congestion->marked = (uint16_t)share;
    }
    congestion->calm_rounds = 0;
    const uint64_t less = (congestion->window >> 16) * congestion->marked / 2;
    window_set(congestion, policy, congestion->window - less);
}

/* How much of the window a cut leaves that empties our part of the queue. */
static uint64_t drained_256ths(const struct congestion *congestion,
                               const struct congestion_policy *policy)
{
    const uint64_t base = congestion->trip_ns - congestion->queue_ns;
    const uint64_t part = policy->drain_256ths * base / congestion->trip_ns;
    return part < policy->shallow_256ths ? policy->shallow_256ths : part;
}

/* Follows the swings of the delay: all flows of a queue see these alike, though each may know
 * another base. Has the delay risen by the target since it last was low? */
static bool delay_rose(struct congestion *congestion, const struct congestion_policy *policy)
{
    const uint32_t trip = congestion->trip_ns;
    congestion->peak_ns = trip > congestion->peak_ns ? trip : congestion->peak_ns;
    congestion->trough_ns = trip < congestion->trough_ns ? trip : congestion->trough_ns;
    const uint64_t fall = congestion->peak_ns - trip;
    const uint64_t high = congestion->peak_ns - (trip - congestion->queue_ns);
    if (fall > target(congestion, policy) / 2 && fall * 100 > high * policy->fall_percent) {
        congestion->trough_ns = trip;
        congestion->peak_ns = trip;
        congestion->cuts = 0;
    }
    return trip - congestion->trough_ns > target(congestion, policy);
}

/* While somebody else fills the queue: is that over, or is it time to look? */
static bool time_to_look(struct congestion *congestion, const struct congestion_policy *policy)
{
    count_up(&congestion->rounds);
    if (congestion->queue_ns <= target(congestion, policy) / 4) {
        congestion->mode = CONGESTION_DELAY;
        return false;
    }
    return congestion->rounds >= policy->competitive_rounds;
}

static void judge_delay(struct congestion *congestion, const struct congestion_policy *policy)
{
    const bool rose = delay_rose(congestion, policy);
    if (congestion->settling != 0) {
        return;
    }
    if (congestion->mode == CONGESTION_COMPETITIVE ? !time_to_look(congestion, policy) : !rose) {
        return;
    }
    if (congestion->mode == CONGESTION_COMPETITIVE || congestion->cuts == 0) {
        congestion->before_delay = congestion->window;
        congestion->cuts = 0;
    }
    if (congestion->cuts == policy->stubborn_cuts) {
        congestion->mode = CONGESTION_COMPETITIVE;
        congestion->rounds = 0;
        window_set(congestion, policy, congestion->before_delay);
        return;
    }
    congestion->mode = CONGESTION_DELAY;
    congestion->cuts++;
    cut(congestion, policy, drained_256ths(congestion, policy));
}

/* A loss counts where the queue is long, or if there are too many for the network's noise. In the
 * first case it is enough to empty the queue, unless somebody else fills it again. */
static bool judge_losses(struct congestion *congestion, const struct congestion_policy *policy)
{
    const bool heavy = losses_heavy(congestion, policy);
    if (congestion->round_lost == 0 || !(heavy || delay_agrees(congestion, policy))) {
        return false;
    }
    uint64_t part = policy->cut_256ths;
    if (!heavy && congestion->mode != CONGESTION_COMPETITIVE) {
        const uint64_t drained = drained_256ths(congestion, policy);
        part = part > drained ? part : drained;
    }
    if (heavy) {
        /* If it goes on, a little is enough to prove it again. */
        congestion->loss_score = proof(congestion, policy) / 4 * 3;
    }
    cut_for_loss(congestion, policy, part);
    return true;
}

static void round_ends(struct congestion *congestion, const struct congestion_policy *policy)
{
    const bool sampled = congestion->round_delay_ns != NO_DELAY;
    if (sampled) {
        congestion->queue_ns = congestion->round_delay_ns;
    }
    if (congestion->mode == CONGESTION_STARTING && start_is_over(congestion, policy)) {
        congestion->mode = CONGESTION_DELAY;
        congestion->settling = 1;
    }
    count_up(&congestion->loss_rounds);
    count_up(&congestion->calm_rounds);
    judge_marks(congestion, policy);
    if (sampled && !(congestion->settling == 0 && judge_losses(congestion, policy))) {
        judge_delay(congestion, policy);
    }
    if (congestion->settling != 0) {
        congestion->settling--;
    }
}

void congestion_on_report(struct congestion *congestion, const struct congestion_policy *policy,
                          const struct congestion_report *report)
{
    congestion->smoothed_ns = report->smoothed_ns;
    congestion->round_acked += report->acked_bytes;
    congestion->round_lost += report->lost_bytes;
    count_losses(congestion, policy, report->acked_bytes, report->lost_bytes);
    congestion->round_marked += report->ce_packets * congestion->packet_bytes;
    if (report->delay_ns != 0 && report->base_ns != 0) {
        const uint32_t queue =
            report->delay_ns > report->base_ns ? report->delay_ns - report->base_ns : 0;
        if (queue < congestion->round_delay_ns) {
            congestion->round_delay_ns = queue;
            congestion->trip_ns = report->delay_ns;
        }
    }
    if (report->acked_bytes != 0) {
        congestion->silences = 0;
        if (!report->app_limited) {
            grow(congestion, policy, report->acked_bytes);
        }
    }
    const uint64_t length =
        report->delay_ns > report->smoothed_ns ? report->delay_ns : report->smoothed_ns;
    if (congestion->round_end.ns == UINT64_MAX) {
        congestion->round_end = instant_after(report->now, length);
    } else if (instant_reached(report->now, congestion->round_end)) {
        round_ends(congestion, policy);
        round_begin(congestion, report->now, length);
    }
}

void congestion_on_silence(struct congestion *congestion, const struct congestion_policy *policy,
                           struct instant now)
{
    count_up(&congestion->silences);
    if (congestion->silences < policy->silences) {
        cut_for_loss(congestion, policy, policy->silence_256ths);
    } else {
        const uint64_t least = (uint64_t)policy->least_packets * congestion->packet_bytes;
        window_set(congestion, policy, least << FRACTION);
        congestion->mode = CONGESTION_STARTING;
        congestion->queue_ns = NO_DELAY;
        congestion->trough_ns = NO_DELAY;
        congestion->peak_ns = 0;
    }
    round_begin(congestion, now, congestion->smoothed_ns);
}

void congestion_undo(struct congestion *congestion, const struct congestion_policy *policy)
{
    if (congestion->loss_rounds > policy->undo_rounds) {
        return;
    }
    if (congestion->before_loss > congestion->window) {
        congestion->window = congestion->before_loss;
    }
    congestion->loss_rounds = UINT8_MAX;
}

uint32_t congestion_window(const struct congestion *congestion,
                           const struct congestion_policy *policy)
{
    const uint64_t least = (uint64_t)policy->least_packets * congestion->packet_bytes;
    const uint64_t window = congestion->window >> FRACTION;
    return (uint32_t)(window < least ? least : window);
}

uint64_t congestion_rate(const struct congestion *congestion,
                         const struct congestion_policy *policy)
{
    if (congestion->smoothed_ns == 0) {
        return UINT64_MAX;
    }
    const uint32_t percent =
        congestion->mode == CONGESTION_STARTING ? policy->start_pace_percent : policy->pace_percent;
    /* Below 2^38, times 6.6, times 2^22. */
    const uint64_t window = congestion->window * percent / 100;
    return window * (1000000000 >> FRACTION) / congestion->smoothed_ns;
}
