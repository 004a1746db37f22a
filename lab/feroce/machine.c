/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/feroce/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/meter.h"
#include "wire/icrc.h"

struct feroce_progress {
    uint64_t acks, since_ps;
};

/* -- Packets ------------------------------------------------------------------------------------*/

struct feroce_packet_on_line *feroce_take_packet(struct feroce_machine *machine)
{
    struct feroce_packet_on_line *packet = sim_pool_take(&machine->packets);
    CHECK(packet != NULL);
    packet->machine = machine;
    packet->is_data = packet->resent = packet->is_last = false;
    packet->has_icrc = true;
    packet->payload_bytes = 0;
    packet->wave = 0;
    return packet;
}

void feroce_give_packet(struct feroce_machine *machine, struct feroce_packet_on_line *packet)
{
    sim_pool_give(&machine->packets, packet);
}

static uint32_t icrc_of(const struct feroce_packet_on_line *packet)
{
    const struct feroce_frame *addresses = &packet->addresses;
    const struct inet_flow flow =
        inet_flow_ipv4(addresses->source_ip, addresses->source_port, addresses->destination_ip,
                       addresses->destination_port);
    return icrc_compute(&flow, addresses->identification, packet->headers, packet->header_bytes,
                        packet->payload, packet->payload_bytes);
}

static uint32_t udp_bytes(const struct feroce_packet_on_line *packet)
{
    return packet->header_bytes + packet->payload_bytes + (packet->has_icrc ? ROCE_ICRC_BYTES : 0);
}

void feroce_seal(struct feroce_packet_on_line *packet)
{
    if (packet->has_icrc) {
        packet->icrc = icrc_of(packet);
    }
    sim_frame_open(&packet->frame, FEROCE_FRAME_HEADERS_BYTES + udp_bytes(packet) + 4, packet->to,
                   packet->addresses.service_class, SIM_NOT_ECT);
}

bool feroce_is_sound(const struct feroce_packet_on_line *packet)
{
    return !packet->has_icrc || packet->icrc == icrc_of(packet);
}

uint32_t feroce_packet_encode(const struct feroce_packet_on_line *packet,
                              uint8_t bytes[FEROCE_PACKET_BYTES_MAX])
{
    uint32_t count = FEROCE_FRAME_HEADERS_BYTES;
    feroce_frame_encode(&packet->addresses, udp_bytes(packet), bytes);
    memcpy(bytes + count, packet->headers, packet->header_bytes);
    count += packet->header_bytes;
    memcpy(bytes + count, packet->payload, packet->payload_bytes);
    count += packet->payload_bytes;
    if (packet->has_icrc) {
        store_le32(bytes + count, packet->icrc);
        count += ROCE_ICRC_BYTES;
    }
    return count;
}

static void capture(struct feroce_machine *machine, const struct feroce_packet_on_line *packet)
{
    uint8_t bytes[FEROCE_PACKET_BYTES_MAX];
    const uint32_t count = feroce_packet_encode(packet, bytes);
    char comment[64];
    snprintf(comment, sizeof(comment), "design %u, %s %u",
             packet->from_design ? packet->from : packet->to,
             packet->from_design ? "tx_packet" : "rx_packet", packet->wave);
    sim_capture_commented(machine->capture, machine->sim.now_ps, bytes, count,
                          packet->wave != 0 ? comment : NULL);
}

void feroce_note_arrival(struct feroce_machine *machine, const struct feroce_packet_on_line *packet)
{
    sim_note(&machine->sim, ((uint64_t)packet->to << 32) | packet->icrc);
    sim_note(&machine->sim, load_be64(packet->headers));
    if (machine->capture != NULL) {
        capture(machine, packet);
    }
}

static void on_loss(struct sim_ethernet_switch *from, struct sim_frame *frame, enum sim_loss loss)
{
    (void)loss;
    struct feroce_machine *machine = CONTAINER_OF(from, struct feroce_machine, network);
    machine->lost++;
    feroce_give_packet(machine, CONTAINER_OF(frame, struct feroce_packet_on_line, frame));
}

/* -- Measurement --------------------------------------------------------------------------------*/

static uint64_t all_messages(const struct feroce_machine *machine)
{
    uint64_t messages = 0;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        messages += machine->nodes[i].messages;
    }
    return messages;
}

static uint64_t fewest_messages(const struct feroce_machine *machine)
{
    uint64_t fewest = UINT64_MAX;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        const uint64_t messages = machine->nodes[i].messages;
        fewest = messages < fewest ? messages : fewest;
    }
    return fewest;
}

static void end_measure(struct feroce_machine *machine)
{
    struct feroce_measure *measure = &machine->measure;
    measure->over = true;
    measure->end_ps = machine->sim.now_ps;
    measure->end_messages = all_messages(machine);
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        measure->end_bytes[i] = machine->nodes[i].acked_bytes;
    }
}

static void begin_measure(struct feroce_machine *machine)
{
    struct feroce_measure *measure = &machine->measure;
    measure->begun = true;
    measure->begin_ps = machine->sim.now_ps;
    measure->begin_messages = all_messages(machine);
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        measure->begin_bytes[i] = measure->window_bytes[i] = machine->nodes[i].acked_bytes;
    }
    if (machine->load.window_ps != 0) {
        sim_after(&machine->sim, &machine->window, machine->load.window_ps);
    }
}

/* Fairness of the window that ends now. */
static void on_window(struct sim *sim, struct sim_event *event)
{
    struct feroce_machine *machine = CONTAINER_OF(event, struct feroce_machine, window);
    struct feroce_measure *measure = &machine->measure;
    if (measure->over) {
        return;
    }
    double shares[FEROCE_SENDERS_MAX];
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        shares[i] = (double)(machine->nodes[i].acked_bytes - measure->window_bytes[i]);
        measure->window_bytes[i] = machine->nodes[i].acked_bytes;
    }
    const double fairness = sim_fairness(shares, machine->load.senders);
    measure->least_fairness = measure->windows++ == 0 || fairness < measure->least_fairness
                                  ? fairness
                                  : measure->least_fairness;
    sim_after(sim, event, machine->load.window_ps);
}

void feroce_on_message(struct feroce_machine *machine, struct feroce_node *node,
                       uint64_t latency_ps)
{
    struct feroce_measure *measure = &machine->measure;
    if (measure->begun && !measure->over) {
        measure->latencies++;
        measure->latency_ps += latency_ps;
        sim_spread_count(&measure->latency, latency_ps);
    }
    if (!measure->begun && fewest_messages(machine) >= machine->load.warm) {
        begin_measure(machine);
    }
    if (measure->begun && !measure->over && node->messages >= machine->load.messages) {
        end_measure(machine);
    }
}

static bool is_done(const struct feroce_machine *machine)
{
    return fewest_messages(machine) >= machine->load.messages;
}

static uint64_t sum_resent(const struct feroce_machine *machine, uint64_t *packets)
{
    uint64_t resent = 0;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        resent += machine->nodes[i].resent;
        *packets += machine->nodes[i].packets - machine->nodes[i].resent;
    }
    return resent;
}

struct feroce_result feroce_machine_result(const struct feroce_machine *machine)
{
    const struct feroce_measure *measure = &machine->measure;
    struct feroce_result result = {.done = is_done(machine),
                                   .least_fairness = measure->least_fairness,
                                   .lost = machine->lost + machine->withheld,
                                   .end_ps = machine->sim.now_ps};
    result.resent = sum_resent(machine, &result.packets);
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        result.frame_bytes += machine->nodes[i].frame_bytes;
        result.payload_bytes += machine->nodes[i].payload_bytes;
    }
    if (!measure->begun || !measure->over || measure->end_ps <= measure->begin_ps) {
        return result;
    }
    const double seconds = (double)(measure->end_ps - measure->begin_ps) / 1e12;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        result.gbps += (double)(measure->end_bytes[i] - measure->begin_bytes[i]) * 8e-9 / seconds;
    }
    result.messages_per_s = (double)(measure->end_messages - measure->begin_messages) / seconds;
    if (measure->latencies > 0) {
        result.latency_us = (double)measure->latency_ps / (double)measure->latencies / 1e6;
    }
    return result;
}

/* -- The world ----------------------------------------------------------------------------------*/

static void open_network(struct feroce_machine *machine)
{
    const struct feroce_setup *setup = &machine->setup;
    const struct sim_ethernet_switch_kind kind = {
        .line = setup->line,
        .delay_ps = setup->switch_ps,
        .input = setup->input,
        .output_bytes = setup->output_bytes,
        .ecn_bytes = SIM_NO_BOUND,
        .quanta = PAUSE_QUANTA_MAX,
    };
    const uint32_t receiver = feroce_receiver_number(machine);
    sim_ethernet_switch_open(&machine->network, &machine->sim, &kind, receiver + 1, on_loss);
    for (uint32_t i = 0; i < receiver; i++) {
        feroce_node_open(&machine->nodes[i], machine, i);
        sim_port_join(&machine->nodes[i].port, &machine->network.ports[i].port);
    }
    if (setup->one_unpaused && receiver > 1) {
        machine->network.ports[1].limits.flow = SIM_NO_FLOW_CONTROL;
    }
    feroce_receiver_open(&machine->receiver, machine);
    sim_port_join(&machine->receiver.port, &machine->network.ports[receiver].port);
}

struct feroce_machine *feroce_machine_open(struct lab_run *run, const struct feroce_setup *setup,
                                           const struct feroce_load *load)
{
    const char *refusal = feroce_board_refuses(&setup->board);
    if (refusal != NULL) {
        lab_fail(run, "there is no such board: %s", refusal);
        return NULL;
    }
    CHECK(load->senders <= FEROCE_SENDERS_MAX && load->qps <= setup->board.window.qps);
    struct feroce_machine *machine = calloc(1, sizeof(*machine));
    CHECK(machine != NULL);
    machine->run = run;
    machine->setup = *setup;
    machine->load = *load;
    lab_world_begin(run, &machine->sim, &machine->trace, &machine->capture, PCAPNG_LINK_ETHERNET);
    sim_pool_open(&machine->packets, FEROCE_PACKETS_MAX, sizeof(struct feroce_packet_on_line));
    sim_event_init(&machine->window, on_window);
    open_network(machine);
    feroce_receiver_start(&machine->receiver);
    if (machine->trace != NULL) {
        machine->watch = feroce_watch_open(machine, machine->trace);
    }
    return machine;
}

bool feroce_machine_step(struct feroce_machine *machine)
{
    const bool stepped = sim_step(&machine->sim);
    if (UNLIKELY(machine->watch != NULL)) {
        feroce_watch_look(machine->watch);
    }
    return stepped;
}

void feroce_machine_run_until(struct feroce_machine *machine, uint64_t at_ps)
{
    sim_run_until(&machine->sim, at_ps);
}

/* Does nothing happen any more, or nothing to one board while another one sends all the time? */
static bool stands_still(const struct feroce_machine *machine, struct feroce_progress *progress)
{
    uint64_t acks = 0, most = 0;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        acks += machine->nodes[i].acks;
        most = sim_later(most, machine->nodes[i].messages);
    }
    const uint64_t now_ps = machine->sim.now_ps;
    if (machine->receiver.start_ps == 0 || acks != progress->acks) {
        *progress = (struct feroce_progress){acks, now_ps};
    }
    return now_ps - progress->since_ps > machine->setup.patience_ps ||
           (machine->load.until_ps == 0 && most / 4 > machine->load.messages);
}

void feroce_machine_run(struct feroce_machine *machine)
{
    struct feroce_progress progress = {0};
    uint64_t steps = 0;
    while (!is_done(machine) && machine->run->failure[0] == '\0' && feroce_machine_step(machine)) {
        const uint64_t now_ps = machine->sim.now_ps;
        if (machine->load.until_ps != 0 && now_ps >= machine->load.until_ps) {
            break;
        }
        const bool looks =
            (++steps & 1023) == 0 || now_ps - progress.since_ps > machine->setup.patience_ps;
        if (looks && stands_still(machine, &progress)) {
            break;
        }
    }
    if (!machine->measure.over && machine->measure.begun && machine->load.until_ps != 0) {
        end_measure(machine);
    }
}

/* No setting may bring about any of these. */
static void check(struct feroce_machine *machine)
{
    const struct feroce_receiver *receiver = &machine->receiver;
    uint64_t acked = 0;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        acked += machine->nodes[i].acked_bytes;
    }
    if (acked > receiver->compared) {
        lab_fail(machine->run, "%llu bytes were acknowledged, and %llu compared",
                 (unsigned long long)acked, (unsigned long long)receiver->compared);
    }
    if (receiver->failures > 0) {
        lab_fail(machine->run, "%llu receives failed", (unsigned long long)receiver->failures);
    }
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        if (machine->nodes[i].bad_icrcs > 0) {
            lab_fail(machine->run, "%u wrong ICRCs in answers", machine->nodes[i].bad_icrcs);
        }
    }
}

void feroce_machine_close(struct feroce_machine *machine)
{
    check(machine);
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        lab_note(machine->run, machine->nodes[i].acked_bytes);
        lab_note(machine->run, machine->nodes[i].resent);
    }
    lab_note(machine->run, machine->lost + machine->withheld);
    lab_note(machine->run, machine->receiver.wrong);
    feroce_watch_close(machine->watch);
    lab_world_end(machine->run, &machine->sim, machine->trace, machine->capture);
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        feroce_node_close(&machine->nodes[i]);
    }
    feroce_receiver_close(&machine->receiver);
    sim_ethernet_switch_close(&machine->network);
    sim_pool_close(&machine->packets);
    free(machine);
}

struct feroce_result feroce_run(struct lab_run *run, const struct feroce_setup *setup,
                                const struct feroce_load *load)
{
    struct feroce_machine *machine = feroce_machine_open(run, setup, load);
    if (machine == NULL) {
        return (struct feroce_result){.done = false};
    }
    feroce_machine_run(machine);
    const struct feroce_result result = feroce_machine_result(machine);
    feroce_machine_close(machine);
    return result;
}
