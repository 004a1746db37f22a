/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The board in time does what docs/behaviours/feroce.md says of it.
 * Method  Whole machines, looked at while they run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/feroce/machine.h"

#define US_PS UINT64_C(1000000)
#define S_PS  (UINT64_C(1000) * 1000 * 1000 * 1000)

static struct lab_run *begin(uint64_t seed)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, lab_find("feroce/loss"), seed);
    return run;
}

static struct feroce_load load_of(uint32_t bytes, uint32_t messages)
{
    struct feroce_load load = feroce_load_of(bytes, messages);
    load.write = false;
    load.warm = 1;
    return load;
}

static void end(struct feroce_machine *machine)
{
    struct lab_run *run = machine->run;
    feroce_machine_close(machine);
    assert_string_equal(run->failure, "");
    free(run);
}

/* -- Identification -----------------------------------------------------------------------------*/

/* FER-44: the identification counts over RoCE and CM together (stack 2026), and is 0 in 2024. */
static void test_identification(void **state)
{
    (void)state;
    struct lab_run *run = begin(1);
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = load_of(8192, 40);
    load.qps = 3;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    feroce_machine_run(machine);
    /* Three replies and all packets, those on the way included. */
    const struct feroce_node *node = &machine->nodes[0];
    const uint64_t on_line = node->packets + node->cm_replies;
    assert_int_equal(node->cm_replies, 3);
    assert_true(node->identification >= on_line && node->identification <= on_line + 5);
    assert_true(machine->receiver.compared > 0 && machine->receiver.wrong == 0);
    assert_true(machine->receiver.first_identification == 0);
    assert_int_equal(machine->receiver.skipped_identifications, 0);
    end(machine);

    run = begin(1);
    setup = feroce_setup_of(run, FEROCE_10G);
    load = feroce_load_of(8192, 40);
    machine = feroce_machine_open(run, &setup, &load);
    feroce_machine_run(machine);
    assert_int_equal(machine->nodes[0].identification, 0);
    assert_true(machine->receiver.zero_identifications == machine->receiver.frames);
    end(machine);
}

/* -- Timers -------------------------------------------------------------------------------------*/

/* FER-70: a timeout comes within 2N cycles of the RTO, for any N. */
static void test_granularity(void **state)
{
    (void)state;
    for (uint32_t qps = 2; qps <= 8; qps *= 2) {
        for (uint32_t lost = 3; lost < 40; lost += 5) {
            struct lab_run *run = begin(1);
            char error[100];
            assert_true(lab_set_value(
                run, (uint32_t)lab_parameter_index(run->experiment, "qps", &(const char *){NULL}),
                qps, error, sizeof(error)));
            const struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
            struct feroce_load load = load_of(4096, lost);
            load.count = lost;
            load.lost_psn = lost - 1;
            struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
            const struct feroce_node *node = &machine->nodes[0];
            while (node->board.window.timeouts == 0 && sim_step(&machine->sim)) {
            }
            const uint64_t ps = machine->sim.now_ps - node->last_ack_ps;
            const double cycles = (double)ps / (double)setup.timing.cycle_ps;
            /* The reader's round to the queue pair takes time, too. */
            assert_true(cycles > 15000.0 - 2.0 * qps - 1);
            assert_true(cycles <= 15000.0 + 3.0 * qps + 8);
            end(machine);
        }
    }
}

/* -- Pauses -------------------------------------------------------------------------------------*/

static void pause_board(struct feroce_machine *machine, uint16_t quanta)
{
    const struct pause pause = pause_classes(1, quanta);
    sim_port_pause(&machine->network.ports[0].port, &pause);
}

/* FER-87: a paused board loses nothing, whatever fills behind the line. */
static void test_paused(void **state)
{
    (void)state;
    for (uint32_t stack = 0; stack < 2; stack++) {
        struct lab_run *run = begin(1);
        const struct feroce_setup setup =
            stack == 0 ? feroce_setup_2026(run, FEROCE_10G) : feroce_setup_of(run, FEROCE_10G);
        struct feroce_load load = load_of(16384, 400);
        load.write = stack == 1;
        struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
        for (uint32_t i = 0; i < 20; i++) {
            feroce_machine_run_until(machine, machine->sim.now_ps + 200 * US_PS);
            pause_board(machine, 400); /* 20.5 us. */
            feroce_machine_run_until(machine, machine->sim.now_ps + 10 * US_PS);
            const uint64_t packets = machine->nodes[0].packets;
            feroce_machine_run_until(machine, machine->sim.now_ps + 8 * US_PS);
            assert_int_equal(machine->nodes[0].packets, packets);
        }
        feroce_machine_run(machine);
        const struct feroce_result result = feroce_machine_result(machine);
        assert_true(result.done);
        assert_int_equal(result.lost, 0);
        assert_int_equal(result.resent, 0);
        assert_int_equal(machine->receiver.wrong, 0);
        assert_int_equal(machine->nodes[0].port.counters.pauses_heard, 20);
        end(machine);
    }
}

/* FER-88: the RTO runs on during a pause (2026); with the board of 2024 there is none. */
static void test_rto_in_pause(void **state)
{
    (void)state;
    struct lab_run *run = begin(1);
    const struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = load_of(16384, 400);
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    feroce_machine_run_until(machine, 100 * US_PS);
    pause_board(machine, 14000); /* 71.7 us at 100 Gb/s, more than the RTO of 46.5. */
    feroce_machine_run(machine);
    assert_true(machine->nodes[0].board.window.timeouts > 0 ||
                machine->nodes[0].board.window.windows[0].timed_out);
    assert_true(feroce_machine_result(machine).done);
    assert_true(feroce_machine_result(machine).resent > 0);
    assert_int_equal(machine->receiver.wrong, 0);
    end(machine);

    run = begin(1);
    const struct feroce_setup old = feroce_setup_of(run, FEROCE_10G);
    load = feroce_load_of(16384, 40);
    machine = feroce_machine_open(run, &old, &load);
    feroce_machine_run_until(machine, 100 * US_PS);
    pause_board(machine, 10000);
    feroce_machine_run(machine);
    assert_true(feroce_machine_result(machine).done);
    assert_int_equal(feroce_machine_result(machine).resent, 0);
    assert_int_equal(machine->nodes[0].board.window.timeouts, 0);
    end(machine);
}

/* -- Connection manager and ARP -----------------------------------------------------------------*/

/* FER-91: the reply to an OPEN that comes while packets are sent goes between two of them: all data
 * arrive, in order, and the reply within some packets' time. */
static void test_reply_between(void **state)
{
    (void)state;
    struct lab_run *run = begin(1);
    const struct feroce_setup setup = feroce_setup_2026(run, FEROCE_10G);
    struct feroce_load load = load_of(262144, 20);
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    feroce_machine_run_until(machine, 500 * US_PS);
    const uint64_t replies = machine->receiver.cm_replies, packets = machine->nodes[0].packets;
    feroce_receiver_ask(&machine->receiver, 0);
    while (machine->receiver.cm_replies == replies && sim_step(&machine->sim)) {
    }
    const uint64_t before = machine->nodes[0].packets;
    /* The packets that were handed on leave first. Other packets went before them and go behind
     * them. */
    assert_true(before > packets && before <= packets + 10);
    feroce_machine_run(machine);
    assert_true(machine->nodes[0].packets > before + 100);
    assert_true(feroce_machine_result(machine).done);
    assert_int_equal(machine->receiver.wrong, 0);
    assert_int_equal(machine->nodes[0].resent, 0);
    end(machine);
}

/* FER-92: one wrong loc_ip: 4 requests of ARP, all that the board sends waits 36 s, and then the
 * datagram is dropped. Another queue pair's packets wait as well. */
static void test_arp(void **state)
{
    (void)state;
    struct lab_run *run = begin(1);
    const struct feroce_setup setup = feroce_setup_2026(run, FEROCE_10G);
    struct feroce_load load = load_of(262144, 40);
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    feroce_machine_run_until(machine, 500 * US_PS);
    feroce_receiver_ask(&machine->receiver, 0x0a0000f0);
    feroce_machine_run_until(machine, 1000 * US_PS);
    struct feroce_node *node = &machine->nodes[0];
    const uint64_t packets = node->packets;
    assert_int_equal(node->arp_requests, 4);
    feroce_machine_run_until(machine, 36 * S_PS);
    assert_int_equal(node->packets, packets);
    assert_int_equal(node->unresolved, 0);
    feroce_machine_run_until(machine, 36 * S_PS + 2000 * US_PS);
    assert_int_equal(node->unresolved, 1);
    assert_int_equal(node->arp_requests, 4);
    assert_true(node->packets > packets);
    end(machine);
}

/* -- Repeatability, monitors --------------------------------------------------------------------*/

static uint64_t digest(uint64_t seed)
{
    struct lab_run *run = begin(seed);
    const struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = load_of(262144, 30);
    load.write = seed % 2 == 0;
    load.loss_millionths = 5000;
    (void)feroce_run(run, &setup, &load);
    const uint64_t found = run->digest;
    free(run);
    return found;
}

/* FER-93: the digest repeats; another seed has another one. */
static void test_digest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        assert_true(digest(seed) == digest(seed));
        assert_true(digest(seed) != digest(seed + 1));
    }
}

/* FER-98: latency and transfer time, averaged over the last 2^k messages. FER-99: psn_diff is
 * WR - CPL at any time. */
static void test_monitors(void **state)
{
    (void)state;
    struct lab_run *run = begin(1);
    const struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = load_of(262144, 33);
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    const struct feroce_node *node = &machine->nodes[0];
    uint32_t most = 0;
    while (node->messages < 33 && sim_step(&machine->sim)) {
        const struct feroce_window *window = &node->board.window.windows[0];
        const uint32_t difference = feroce_node_psn_diff(node, 0);
        if (!window->open) {
            continue;
        }
        assert_int_equal(difference, node->board.window.stored - node->queues[0].acked_packets);
        most = difference > most ? difference : most;
    }
    assert_true(most > 5 && most <= 51);
    /* Monitors stamp in front of the MAC: the line's time and more lies before the last bit. */
    const double latency = feroce_monitor_mean(&node->latency, 4);
    const double transfer = feroce_monitor_mean(&node->transfer, 4);
    assert_true(latency > 1390 && latency < 1390 + 6 * 108);
    /* 64 packets less one, at 41.2 Gb/s: 256 cycles and 6 for the request. */
    assert_true(transfer > 63 * 256 && transfer < 63 * 256 + 200);
    assert_int_equal(node->latency.count, 33 * 64);
    end(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identification), cmocka_unit_test(test_granularity),
        cmocka_unit_test(test_paused),         cmocka_unit_test(test_rto_in_pause),
        cmocka_unit_test(test_reply_between),  cmocka_unit_test(test_arp),
        cmocka_unit_test(test_digest),         cmocka_unit_test(test_monitors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
