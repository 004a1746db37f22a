/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One path fills the line behind it: short and long round trips, slow and fast lines, with
 *         packets lost, though it paces in batches, wakes late and is answered seldom, with as few
 *         records as it may have.
 * Method  A greedy sender and a queue that keeps order, as events in two lists: packets on their
 *         way there, answers on their way back. The sender wakes up 70 us late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/common/path.h"

#define PACKET  4608u
#define BLOCK   64u
#define CALL    14u /* Packets that leave at once. */
#define OUT     (1u << 16)
#define LATE_NS 70000
#define MS      UINT64_C(1000000)

struct row {
    uint32_t rate; /* KB a second. */
    uint32_t trip_us;
    uint32_t loss; /* Millionths. */
    uint32_t ms;   /* The first quarter does not count. */
    uint32_t percent;
    uint32_t answers; /* In a thousand packets, at most; 0: no bar. */
};

static const struct row rows[] = {
    {125000, 100, 0, 1000, 98, 0},       {125000, 10000, 0, 6000, 90, 0},
    {1000000, 50, 0, 400, 98, 30},       {3000000, 50, 0, 300, 98, 20},
    {1000000, 10000, 0, 4000, 88, 20},   {125000, 100, 50000, 1000, 88, 0},
    {1000000, 50, 30000, 400, 95, 0},    {500000, 1000, 30000, 1000, 88, 0},
    {125000, 2000, 10000, 2000, 88, 0},  {125000, 10000, 10000, 6000, 84, 0},
    {125000, 10000, 30000, 6000, 84, 0}, {12500, 1000, 10000, 2000, 93, 0},
};

struct transit {
    uint64_t at;
    struct psn tsn;
    bool asks, lost;
};

struct line {
    struct path path;
    struct path_policy policy;
    struct path_record records[PATH_RECORDS];
    struct transit there[OUT], back[OUT];
    uint32_t there_first, there_next, back_first, back_next;
    uint64_t busy_until, sent, arrived, answers, lost;
    struct prng prng;
};

static void leave(struct line *line, const struct row *row, uint64_t now)
{
    const bool asks = line->sent % BLOCK == BLOCK - 1 || path_wants_answer(&line->path);
    const uint64_t wait = line->busy_until > now ? line->busy_until - now : 0;
    struct transit *packet = &line->there[line->there_next++ % OUT];
    assert_true(line->there_next - line->there_first < OUT);
    packet->tsn = path_sent(&line->path, PACKET, asks, (struct instant){now});
    packet->asks = asks;
    packet->lost = prng_chance(&line->prng, row->loss);
    line->busy_until = now + wait + (packet->lost ? 0 : PACKET * MS / row->rate);
    packet->at = line->busy_until + row->trip_us * 500;
    line->lost += packet->lost;
    line->sent++;
}

static void arrive(struct line *line, const struct row *row, uint64_t now)
{
    while (line->there_first != line->there_next &&
           line->there[line->there_first % OUT].at <= now) {
        const struct transit *packet = &line->there[line->there_first++ % OUT];
        line->arrived += !packet->lost;
        if (packet->asks && !packet->lost) {
            line->back[line->back_next++ % OUT] = (struct transit){
                .at = packet->at + row->trip_us * 500,
                .tsn = packet->tsn,
            };
            line->answers++;
        }
    }
}

static void answer(struct line *line, uint64_t now)
{
    while (line->back_first != line->back_next && line->back[line->back_first % OUT].at <= now) {
        const struct path_echo_report echo = {
            .tsn = line->back[line->back_first++ % OUT].tsn,
        };
        if (line->lost != 0) {
            path_on_lost(&line->path, (uint32_t)line->lost * PACKET, (struct instant){now});
            line->lost = 0;
        }
        assert_int_equal(path_on_echo(&line->path, &echo, (struct instant){now}), PATH_ECHO_NEWS);
    }
}

static uint64_t earliest(const struct line *line, uint64_t now)
{
    const uint64_t due = path_deadline(&line->path).ns;
    const uint64_t room = path_room_at(&line->path, (struct instant){now}).ns;
    uint64_t next = due < room ? due : room;
    next = next == UINT64_MAX ? next : next + LATE_NS;
    if (line->there_first != line->there_next && line->there[line->there_first % OUT].at < next) {
        next = line->there[line->there_first % OUT].at;
    }
    if (line->back_first != line->back_next && line->back[line->back_first % OUT].at < next) {
        next = line->back[line->back_first % OUT].at;
    }
    return next > now ? next : now + 1;
}

static void play(const struct row *row, uint32_t records)
{
    static struct line line;
    line = (struct line){.policy = path_policy_default()};
    prng_init(&line.prng, 1);
    path_init(&line.path,
              &(struct path_config){
                  .first_tsn = psn_of(PSN_MASK - 9),
                  .packet_bytes = PACKET,
                  .trip_ns = row->trip_us * UINT64_C(1000),
                  .records = line.records,
                  .record_count = records,
                  .policy = &line.policy,
              },
              (struct instant){0});
    uint64_t warm = 0;
    for (uint64_t now = 1; now < row->ms * MS; now = earliest(&line, now)) {
        warm = now < row->ms * MS / 4 ? line.arrived : warm;
        arrive(&line, row, now);
        answer(&line, now);
        while (path_on_time(&line.path, (struct instant){0}, (struct instant){now}) != PATH_QUIET) {
            leave(&line, row, now);
        }
        uint32_t room;
        while ((room = path_room(&line.path, (struct instant){now})) != 0) {
            for (uint32_t n = 0; n < CALL && (n == 0 || n < room / PACKET); n++) {
                leave(&line, row, now);
            }
        }
    }
    const uint64_t most = (uint64_t)row->rate * row->ms / 4 * 3;
    const uint64_t percent = (line.arrived - warm) * PACKET * 100 / most;
    const uint64_t answers = line.answers * 1000 / line.sent;
    printf("%7u KB/s, %5u us, %u lost in a million, %u records: %llu %%, %llu answers in 1000\n",
           row->rate, row->trip_us, row->loss, records, (unsigned long long)percent,
           (unsigned long long)answers);
    assert_true(percent >= row->percent && percent <= 100);
    assert_true(row->answers == 0 || answers <= row->answers);
}

static void test_fills_the_line(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
        play(&rows[n], PATH_RECORDS);
        play(&rows[n], PATH_RECORDS_LEAST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fills_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
