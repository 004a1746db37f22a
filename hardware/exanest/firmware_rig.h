/* SPDX-License-Identifier: BSD-2-Clause
 *
 * firmware_rig - a world for tests of the firmware: programs, a send unit, a receiver, a mailbox.
 *
 * firmware_rig_blocks.h has the programs and the fates of blocks. This file has the mailbox, time,
 * and the R5's actions.
 */
#ifndef HARDWARE_EXANEST_FIRMWARE_RIG_H
#define HARDWARE_EXANEST_FIRMWARE_RIG_H

#include "hardware/exanest/firmware_rig_blocks.h"

/* -- Time ---------------------------------------------------------------------------------------*/

/* Lets everything happen up to rig->now. */
static inline void rig_play_events(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->event_count;) {
        const struct rig_event event = rig->events[i];
        if (event.at > rig->now) {
            i++;
            continue;
        }
        rig->events[i] = rig->events[--rig->event_count];
        if (event.kind == RIG_RESPONSE) {
            rig_respond(rig, event.tid, event.sequence, event.status);
        } else if (event.kind == RIG_ARRIVAL) {
            rig_arrive(rig, &event);
        } else if (event.kind == RIG_MAPPED) {
            exanest_firmware_on_mapped(&rig->firmware, event.tid);
        } else {
            rig->woken = true;
        }
    }
}

static inline uint64_t rig_next_event(const struct rig *rig)
{
    uint64_t at = UINT64_MAX;
    for (uint32_t i = 0; i < rig->event_count; i++) {
        at = rig->events[i].at < at ? rig->events[i].at : at;
    }
    return at;
}

/* Until there is something. */
static inline void rig_sleep(struct rig *rig, const struct exanest_firmware_action *action)
{
    rig->sleeps++;
    rig->woken = false;
    const uint64_t end = rig->limit != 0 && rig->limit < action->until ? rig->limit : action->until;
    while (rig->now < end && !rig->woken && rig->responses == 0 &&
           exanest_scratchpad_idle(&rig->pad) && (rig->requests == 0 || !action->takes_requests) &&
           rig->firmware.mapped_groups == 0) {
        const uint64_t event = rig_next_event(rig);
        const uint64_t until = event < end ? event : end;
        if (until == UINT64_MAX) {
            return; /* Nothing will ever happen. */
        }
        rig->now = until > rig->now ? until : rig->now;
        rig_play_events(rig);
    }
}

static inline uint64_t rig_read_response(struct rig *rig)
{
    uint32_t word = (uint32_t)(rig->requests != 0) << 30;
    if (rig->responses != 0) {
        word |= rig->response_ring[0];
        rig->responses--;
        memmove(rig->response_ring, rig->response_ring + 1, rig->responses * sizeof(uint32_t));
    }
    rig->last_hint = rig->requests != 0;
    return word;
}

static inline void rig_read_request(struct rig *rig, struct exanest_firmware_action *action)
{
    assert_true(rig->last_hint && rig->requests != 0);
    rig->pl_request_reads++;
    for (uint32_t i = 0; i < action->count; i++) {
        const uint32_t lane = rig->request_lane++;
        const struct exanest_word word = rig->request_ring[0][lane / 4];
        const uint64_t half = lane % 4 < 2 ? word.low : word.high;
        action->words[i] = (uint32_t)(half >> 32 * (lane % 2));
    }
    if (rig->request_lane == EXANEST_REQUEST_LANES) {
        rig->request_lane = 0;
        rig->requests--;
        memmove(rig->request_ring, rig->request_ring + 1,
                rig->requests * sizeof(rig->request_ring[0]));
    }
}

static inline void rig_update(struct rig *rig, const struct exanest_firmware_action *action)
{
    exanest_scratchpad_update(&rig->pad, action->channel, &action->progress);
    if (action->progress.state == EXANEST_TRANSFER_DONE ||
        action->progress.state == EXANEST_TRANSFER_ERROR) {
        for (uint32_t i = 0; i < rig->transfer_count; i++) {
            struct rig_transfer *transfer = &rig->transfers[i];
            if (!transfer->read && transfer->pdid != 0 && transfer->channel == action->channel) {
                transfer->ended = true; /* Earlier transfers of this channel had ended. */
            }
        }
    }
}

/* One action of the R5. Answers what it was. */
static inline enum exanest_do rig_step(struct rig *rig)
{
    struct exanest_firmware_action action = {0};
    uint64_t value = 0;
    uint32_t page = 0;
    rig_play_events(rig);
    exanest_firmware_next(&rig->firmware, rig->now, &action);
    rig->now += action.cost_ns;
    if (rig->random && action.what == EXANEST_DO_STORE && prng_below(&rig->prng, 8) == 0) {
        rig->now += prng_below(&rig->prng, 5000); /* Back-pressure. */
    }
    rig_play_events(rig);
    switch ((enum exanest_do)action.what) {
    case EXANEST_DO_WORK: break;
    case EXANEST_DO_READ_RESPONSE: value = rig_read_response(rig); break;
    case EXANEST_DO_READ_REQUEST: rig_read_request(rig, &action); break;
    case EXANEST_DO_POLL:
        value = exanest_scratchpad_poll(&rig->pad, &page);
        action.channel = (uint16_t)(page * EXANEST_PAGE_CHANNELS);
        break;
    case EXANEST_DO_READ_TRANSFER:
        memcpy(action.words, exanest_scratchpad_read(&rig->pad, action.channel),
               sizeof(action.words));
        break;
    case EXANEST_DO_STORE: rig_store(rig, &action); break;
    case EXANEST_DO_READ_DESCRIPTOR: value = rig_descriptor(rig, action.tid); break;
    case EXANEST_DO_READ_CONTEXT: fail(); break; /* Only with RESEND_PACKET: machine_test. */
    case EXANEST_DO_UPDATE: rig_update(rig, &action); break;
    case EXANEST_DO_SLEEP: rig_sleep(rig, &action); break;
    }
    exanest_firmware_done(&rig->firmware, &action, value, rig->now);
    rig->steps++;
    if (!rig->random || rig->steps % 64 == 0) {
        exanest_firmware_check_all(&rig->firmware);
    }
    return (enum exanest_do)action.what;
}

/* Nothing is under way, and nothing can come any more. */
static inline bool rig_over(const struct rig *rig)
{
    return exanest_firmware_idle(&rig->firmware) && exanest_scratchpad_idle(&rig->pad) &&
           rig->requests == 0 && rig->responses == 0 && rig->event_count == 0;
}

static inline void rig_run_until(struct rig *rig, uint64_t time)
{
    rig->limit = time;
    while (rig->now < time && !rig_over(rig)) {
        rig_step(rig);
    }
    rig->limit = 0;
}

/* Until it is over, which must be within `ns`. */
static inline void rig_finish(struct rig *rig, uint64_t ns)
{
    rig_run_until(rig, rig->now + ns);
    assert_true(rig_over(rig));
    assert_int_equal(rig->firmware.free_count, rig->firmware.config.tids);
    exanest_firmware_check_all(&rig->firmware);
}

/* All of a transfer arrived, and the notification as often as it may. */
static inline void rig_assert_delivered(const struct rig *rig, const struct rig_transfer *transfer)
{
    (void)rig;
    assert_int_equal(transfer->delivered, rig_lines(transfer));
    assert_true(transfer->notified >= transfer->notify);
    assert_true(transfer->notified <= transfer->notify + transfer->again);
}

#endif
