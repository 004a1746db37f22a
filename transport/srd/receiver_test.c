/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever comes in whatever order, a message is delivered once at most, never after the
 *         sender was told that it is refused, and always if the sender was told that all of it is
 *         taken (SRD-23, SRD-24, SRD-25, SRD-26, SRD-32).
 * Method  Every sequence of events at one receiver, up to a length: two messages of one flow, of
 *         two packets and of one; receives, a queue pair that leaves and comes back. Bytes are in
 *         memory at once, or an event later. An argument is the length of the sequences.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "transport/srd/receiver.h"

/* Message A has the PSNs FIRST and FIRST + 1, which wrap; B has the one behind. */
#define FIRST UINT32_MAX

enum event {
    A0,
    A1,
    B0,
    B0_A_GIVEN_UP,
    POST,
    LEAVE,
    COME_BACK,
    MOVED, /* The oldest move is done. */
    EVENTS,
};

static const char *const event_names[] = {"A0",   "A1",        "B0",         "B0'(A given up)",
                                          "post", "qp leaves", "qp is back", "moved"};

struct world {
    struct srd_receiver receiver;
    struct srd_assembly assemblies[2];
    uint8_t receives;
    bool there; /* The queue pair. */
    uint8_t moves[3], move_count;
    uint8_t delivered[2];
    /* The sender was told so of at least one packet, or of all. */
    bool refused[2], no_receive[2], all_taken[2];
};

static bool late_moves;
static int length, path[16];
static uint64_t sequences, deliveries, refusals, given_back;

static void complain(const char *what, int depth)
{
    for (int i = 0; i <= depth; i++) {
        print_message(" %s", event_names[path[i]]);
    }
    fail_msg(": %s", what);
}

static int message_of(uint32_t psn)
{
    return psn - FIRST == 2;
}

/* The nodes of a list know each other's places. */
static void copy_world(struct world *to, const struct world *from)
{
    *to = *from;
    list_init(&to->receiver.assemblies);
    for (struct list *node = from->receiver.assemblies.next; node != &from->receiver.assemblies;
         node = node->next) {
        const ptrdiff_t which = CONTAINER_OF(node, struct srd_assembly, node) - from->assemblies;
        list_append(&to->receiver.assemblies, &to->assemblies[which].node);
    }
}

static void leave(struct world *world, struct srd_assembly *assembly)
{
    if (srd_receiver_leave(assembly)) {
        world->receives++;
        given_back++;
    }
}

static void finish_move(struct world *world)
{
    const uint32_t psn = FIRST + world->moves[0];
    world->move_count--;
    memmove(world->moves, world->moves + 1, world->move_count);
    const int message = message_of(psn);
    switch (srd_receiver_moved(&world->receiver, &world->assemblies[message], psn)) {
    case SRD_MOVED_MORE: break;
    case SRD_MOVED_COMPLETE:
        world->delivered[message]++;
        deliveries++;
        break;
    case SRD_MOVED_LEFT: world->receives++; break;
    }
}

static void begin_move(struct world *world, struct srd_assembly *assembly, uint32_t psn)
{
    srd_receiver_move(&world->receiver, assembly, psn);
    world->moves[world->move_count++] = (uint8_t)(psn - FIRST);
    if (!late_moves) {
        finish_move(world);
    }
}

static void open_message(struct world *world, const struct srd_packet *packet)
{
    struct srd_assembly *assembly = &world->assemblies[message_of(packet->psn)];
    if (!world->there) {
        srd_receiver_settle(&world->receiver, packet->psn, srd_refused(SRD_STATUS_BAD_QPN));
    } else if (world->receives == 0) {
        srd_receiver_settle(&world->receiver, packet->psn, SRD_JUDGED_NO_RECEIVE);
    } else {
        world->receives--;
        srd_receiver_open(&world->receiver, assembly, packet, (struct instant){0});
        begin_move(world, assembly, packet->psn);
    }
}

static void on_packet(struct world *world, int event)
{
    const uint32_t number = event == B0_A_GIVEN_UP ? 2 : (uint32_t)event;
    const struct srd_packet packet = {.opcode = SRD_SEND,
                                      .psn = FIRST + number,
                                      .back = event == B0_A_GIVEN_UP ? 0 : (uint16_t)number,
                                      .index = number == 1,
                                      .last = number < 2};
    struct srd_assembly *outdated;
    srd_receiver_on_packet(&world->receiver, &packet, false, (struct instant){0});
    while ((outdated = srd_receiver_outdated(&world->receiver, (struct instant){0})) != NULL) {
        leave(world, outdated);
    }
    const struct srd_judgement judgement = srd_receiver_judge(&world->receiver, &packet);
    switch (judgement.step) {
    case SRD_STEP_OPEN: open_message(world, &packet); break;
    case SRD_STEP_CONTINUE: begin_move(world, judgement.assembly, packet.psn); break;
    case SRD_STEP_SAME:
        srd_receiver_settle(&world->receiver, packet.psn, judgement.judged);
        refusals++;
        break;
    case SRD_STEP_ANSWER:
    case SRD_STEP_MOVING: break;
    case SRD_STEP_BEYOND:
    case SRD_STEP_CONTRADICT: fail();
    }
}

static void on_leave(struct world *world)
{
    world->there = false;
    while (!list_empty(&world->receiver.assemblies)) {
        leave(world, CONTAINER_OF(world->receiver.assemblies.next, struct srd_assembly, node));
    }
}

/* The answer that could be sent now reaches the sender. */
static void tell(struct world *world)
{
    uint8_t taken[2] = {0, 0};
    struct srd_packet answer;
    srd_receiver_answer(&world->receiver, 0, (struct instant){0}, &answer);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t psn = FIRST + i;
        const int message = message_of(psn);
        const bool before = srd_distance(psn, answer.answer.taken_before) > 0 &&
                            srd_distance(world->receiver.window.base, psn) >= 0;
        taken[message] = (uint8_t)(taken[message] + before);
        for (uint32_t r = 0; r < answer.answer.record_count; r++) {
            const struct srd_record *record = &answer.answer.records[r];
            if (psn - record->psn < 64 && (record->bitmap >> (psn - record->psn) & 1) != 0) {
                taken[message] = (uint8_t)(taken[message] + (record->kind == SRD_KIND_TAKEN));
                world->refused[message] |= record->kind == SRD_KIND_REFUSED;
                world->no_receive[message] |= record->kind == SRD_KIND_NO_RECEIVE;
            }
        }
    }
    world->all_taken[0] |= taken[0] == 2;
    world->all_taken[1] |= taken[1] == 1;
}

/* False: it cannot happen now, or changes nothing. */
static bool apply(struct world *world, int event)
{
    switch ((enum event)event) {
    case B0_A_GIVEN_UP:
        if (world->all_taken[0]) {
            return false; /* It is not given up after it succeeded. */
        }
        on_packet(world, event);
        return true;
    case A0:
    case A1:
    case B0: on_packet(world, event); return true;
    case POST: return world->receives++ != 2;
    case LEAVE:
        if (world->there) {
            on_leave(world);
            return true;
        }
        return false;
    case COME_BACK:
        if (!world->there) {
            world->there = true;
            return true;
        }
        return false;
    case MOVED:
        if (world->move_count != 0) {
            finish_move(world);
            return true;
        }
        return false;
    case EVENTS: break;
    }
    fail();
    return false;
}

static void check(const struct world *before, const struct world *after, int depth)
{
    for (int i = 0; i < 2; i++) {
        if (after->delivered[i] > 1) {
            complain("delivered twice", depth);
        }
        if (after->all_taken[i] && after->delivered[i] == 0) {
            complain("all packets are taken, and nothing is delivered", depth);
        }
        if (after->delivered[i] > before->delivered[i] && before->refused[i]) {
            complain("refused, and then delivered", depth);
        }
        if (after->delivered[i] > before->delivered[i] && before->no_receive[i]) {
            complain("without a receive, and then delivered", depth);
        }
    }
}

static void try_all(const struct world *world, int depth)
{
    if (depth == length) {
        sequences++;
        return;
    }
    for (int event = 0; event < EVENTS; event++) {
        struct world next;
        copy_world(&next, world);
        path[depth] = event;
        if (apply(&next, event)) {
            tell(&next);
            check(world, &next, depth);
            try_all(&next, depth + 1);
        }
    }
}

static void run(int events, bool late)
{
    static struct world world;
    late_moves = late;
    length = events;
    sequences = deliveries = refusals = given_back = 0;
    world = (struct world){.there = true};
    srd_receiver_init(&world.receiver, 1, 2, FIRST);
    try_all(&world, 0);
    print_message("%s moves: %llu sequences of %d events; %llu deliveries, %llu refusals for a "
                  "fellow's sake, %llu receives given back\n",
                  late ? "late" : "no late", (unsigned long long)sequences, events,
                  (unsigned long long)deliveries, (unsigned long long)refusals,
                  (unsigned long long)given_back);
    assert_true(deliveries > 100 && refusals > 100 && given_back > 100);
}

static int events_wanted = 7;

static void test_all_orders(void **state)
{
    (void)state;
    run(events_wanted, false);
    if (events_wanted == 9) {
        assert_true(sequences == 8608322);
    }
}

static void test_all_orders_of_late_moves(void **state)
{
    (void)state;
    run(events_wanted, true);
}

/* SRD-26: an assembly ends 4 s after its first packet; and what ends it names no other. */
static void test_age(void **state)
{
    (void)state;
    static struct srd_receiver receiver;
    struct srd_assembly old, young;
    struct srd_packet packet = {.opcode = SRD_SEND, .psn = 7, .last = 1};
    srd_receiver_init(&receiver, 1, 2, 7);
    srd_receiver_open(&receiver, &old, &packet, (struct instant){10});
    packet.psn = 9;
    srd_receiver_open(&receiver, &young, &packet, (struct instant){20});
    assert_true(srd_receiver_deadline(&receiver).ns == 4000000010);
    assert_null(srd_receiver_outdated(&receiver, (struct instant){4000000009}));
    assert_ptr_equal(srd_receiver_outdated(&receiver, (struct instant){4000000010}), &old);
    assert_true(srd_receiver_leave(&old));
    assert_null(srd_receiver_outdated(&receiver, (struct instant){4000000010}));
    assert_true(srd_receiver_deadline(&receiver).ns == 4000000020);
}

/* SRD-26: BACK moves the base, and an assembly that misses a packet before it is left at once; one
 * that has all of those goes on. */
static void test_back(void **state)
{
    (void)state;
    static struct srd_receiver receiver;
    struct srd_assembly misses, goes_on;
    struct srd_packet packet = {.opcode = SRD_SEND, .psn = 1, .index = 1, .last = 1};
    srd_receiver_init(&receiver, 1, 2, 0);
    srd_receiver_open(&receiver, &misses, &packet, (struct instant){0});
    srd_receiver_move(&receiver, &misses, 1);
    assert_int_equal(srd_receiver_moved(&receiver, &misses, 1), SRD_MOVED_MORE);
    packet = (struct srd_packet){.opcode = SRD_SEND, .psn = 2, .back = 2, .last = 1};
    srd_receiver_on_packet(&receiver, &packet, false, (struct instant){0});
    assert_null(srd_receiver_outdated(&receiver, (struct instant){0}));
    srd_receiver_open(&receiver, &goes_on, &packet, (struct instant){0});
    srd_receiver_move(&receiver, &goes_on, 2);
    assert_int_equal(srd_receiver_moved(&receiver, &goes_on, 2), SRD_MOVED_MORE);
    packet = (struct srd_packet){.opcode = SRD_PROBE, .psn = 4, .back = 1};
    srd_receiver_on_packet(&receiver, &packet, false, (struct instant){0});
    assert_int_equal(receiver.window.base, 3);
    assert_ptr_equal(srd_receiver_outdated(&receiver, (struct instant){0}), &misses);
    assert_true(srd_receiver_leave(&misses));
    assert_null(srd_receiver_outdated(&receiver, (struct instant){0}));
    packet.back = 0;
    srd_receiver_on_packet(&receiver, &packet, false, (struct instant){0});
    assert_ptr_equal(srd_receiver_outdated(&receiver, (struct instant){0}), &goes_on);
}

/* SRD-32: memory that is not there refuses the packet, and all that comes behind it. */
static void test_failed_move(void **state)
{
    (void)state;
    static struct srd_receiver receiver;
    struct srd_assembly assembly;
    struct srd_packet packet = {.opcode = SRD_SEND, .psn = 7, .last = 1};
    srd_receiver_init(&receiver, 1, 2, 7);
    srd_receiver_open(&receiver, &assembly, &packet, (struct instant){0});
    srd_receiver_move(&receiver, &assembly, 7);
    assert_false(srd_receiver_leave(&assembly));
    assert_int_equal(srd_receiver_move_failed(&receiver, &assembly, 7, SRD_STATUS_BAD_QPN),
                     SRD_MOVED_LEFT);
    assert_int_equal(srd_window_judged(&receiver.window, 7), srd_refused(SRD_STATUS_BAD_QPN));
    packet.psn = 8;
    packet.index = 1;
    assert_int_equal(srd_receiver_judge(&receiver, &packet).step, SRD_STEP_SAME);

    /* A WRITE is judged packet by packet. */
    packet.opcode = SRD_WRITE;
    assert_int_equal(srd_receiver_judge(&receiver, &packet).step, SRD_STEP_OPEN);
    srd_receiver_move(&receiver, NULL, 8);
    assert_int_equal(srd_receiver_judge(&receiver, &packet).step, SRD_STEP_MOVING);
    srd_receiver_move_failed(&receiver, NULL, 8, SRD_STATUS_BAD_ADDRESS);
    assert_int_equal(srd_window_judged(&receiver.window, 8), srd_refused(SRD_STATUS_BAD_ADDRESS));
}

/* A packet that says something else of its message than the first one did. */
static void test_contradiction(void **state)
{
    (void)state;
    static struct srd_receiver receiver;
    struct srd_assembly assembly;
    struct srd_packet packet = {.opcode = SRD_SEND, .psn = 7, .last = 2};
    srd_receiver_init(&receiver, 1, 2, 7);
    srd_receiver_open(&receiver, &assembly, &packet, (struct instant){0});
    packet.psn = 8;
    packet.index = 1;
    assert_int_equal(srd_receiver_judge(&receiver, &packet).step, SRD_STEP_CONTINUE);
    packet.last = 1;
    assert_int_equal(srd_receiver_judge(&receiver, &packet).step, SRD_STEP_CONTRADICT);
    packet.psn = 7 + 1024;
    assert_int_equal(srd_receiver_judge(&receiver, &packet).step, SRD_STEP_BEYOND);
}

/* The newest transmission is echoed, once; the marks are those of its path. */
static void test_echo(void **state)
{
    (void)state;
    static struct srd_receiver receiver;
    struct srd_packet packet = {.opcode = SRD_PROBE, .psn = 7, .path = 1, .tsn = 0xffffff}, answer;
    srd_receiver_init(&receiver, 5, 6, 7);
    srd_receiver_on_packet(&receiver, &packet, true, (struct instant){100});
    packet.tsn = 0; /* One further. */
    srd_receiver_on_packet(&receiver, &packet, true, (struct instant){200});
    packet.tsn = 0xfffffe;
    srd_receiver_on_packet(&receiver, &packet, true, (struct instant){300});
    srd_receiver_on_duplicate(&receiver);
    assert_true(receiver.reply.due);
    srd_receiver_answer(&receiver, 3, (struct instant){1200}, &answer);
    assert_int_equal(answer.flow, 5);
    assert_int_equal(answer.tag, 6);
    assert_int_equal(answer.answer.echo_path, 1);
    assert_int_equal(answer.answer.echo_tsn, 0);
    assert_int_equal(answer.answer.echo_delay_ns, 1000);
    assert_int_equal(answer.answer.ce_marked, 2);
    assert_int_equal(answer.answer.duplicates, 1);
    assert_true(answer.answer.answers_probe && !answer.answer.echo_void);
    srd_receiver_answer(&receiver, 3, (struct instant){1300}, &answer);
    assert_true(answer.answer.echo_void && answer.tsn == 1 && !receiver.reply.due);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orders),  cmocka_unit_test(test_all_orders_of_late_moves),
        cmocka_unit_test(test_age),         cmocka_unit_test(test_back),
        cmocka_unit_test(test_failed_move), cmocka_unit_test(test_contradiction),
        cmocka_unit_test(test_echo),
    };
    events_wanted = argc > 1 ? atoi(argv[1]) : events_wanted;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
