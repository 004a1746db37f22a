/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine - boards, a switch, and a host that receives: FERoCE in virtual time.
 *
 * Purpose    Runs the shipped engines (transport/feroce, nic) over lines and a switch (sim/parts),
 *            and charges the time of each part.
 * Ownership  A machine owns its world; it must not move.
 * Limits     FEROCE_PACKETS_MAX packets under way.
 * Source     FERoCE's pages "Throughput and Latency point-to-point" and "Throughput and Latency
 *            with congestion".
 *
 * A host opens the boards' queue pairs one after the other and starts their generators, as
 * feroce-rs does. All frames are whole: headers from Ethernet on, payload, ICRC.
 */
#ifndef LAB_FEROCE_MACHINE_H
#define LAB_FEROCE_MACHINE_H

#include "lab/feroce/node.h"
#include "lab/feroce/receiver.h"
#include "lab/feroce/setup.h"
#include "lab/feroce/watch.h"
#include "sim/meter.h"
#include "sim/pool.h"

#define FEROCE_PACKETS_MAX 65536u

/* The results of a run. Rates are counted from the time when every board has had its first message
 * acknowledged, until one board has had all of its own. They are 0 if a board never gets there. */
struct feroce_result {
    bool done;   /* All messages were acknowledged. */
    double gbps; /* Payload, of all boards. */
    double messages_per_s;
    double latency_us;     /* Mean, from a message's last bit on the line to its ACK. */
    double least_fairness; /* Jain's index of each window. */
    uint64_t packets;      /* Sent first, by all boards. */
    uint64_t frame_bytes, payload_bytes; /* All packets of data count. */
    uint64_t resent, lost;               /* Lost: by lines, switch, and for the load's sake. */
    uint64_t end_ps;
};

struct feroce_measure {
    bool begun, over;
    uint64_t begin_ps, end_ps;
    uint64_t begin_bytes[FEROCE_SENDERS_MAX], end_bytes[FEROCE_SENDERS_MAX];
    uint64_t begin_messages, end_messages;
    uint64_t latencies, latency_ps; /* Count and sum, */
    struct sim_spread latency;      /* and how they are spread. */
    uint64_t window_bytes[FEROCE_SENDERS_MAX];
    uint64_t windows;
    double least_fairness;
};

struct feroce_machine {
    struct lab_run *run;
    struct feroce_setup setup;
    struct feroce_load load;
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct feroce_watch *watch; /* NULL: nobody looks. */
    struct sim_pool packets;
    struct sim_ethernet_switch network;
    struct feroce_node nodes[FEROCE_SENDERS_MAX];
    struct feroce_receiver receiver;
    struct feroce_measure measure;
    struct sim_event window; /* Fairness. */
    uint64_t lost;           /* By lines and switch. */
    uint64_t withheld;       /* Lost for the load's sake. */
    bool receiver_pauses;    /* It has asked all senders to. */
};

/* NULL, and the run failed: there is no such machine. */
struct feroce_machine *feroce_machine_open(struct lab_run *run, const struct feroce_setup *setup,
                                           const struct feroce_load *load);
/* Runs until all messages are acknowledged, or nothing more can happen. */
void feroce_machine_run(struct feroce_machine *machine);
/* The next event. False: nothing more can happen. */
bool feroce_machine_step(struct feroce_machine *machine);
void feroce_machine_run_until(struct feroce_machine *machine, uint64_t at_ps);
struct feroce_result feroce_machine_result(const struct feroce_machine *machine);
void feroce_machine_close(struct feroce_machine *machine);

/* The three in one. */
struct feroce_result feroce_run(struct lab_run *run, const struct feroce_setup *setup,
                                const struct feroce_load *load);

/* -- Between the parts --------------------------------------------------------------------------*/

struct feroce_packet_on_line *feroce_take_packet(struct feroce_machine *machine);
void feroce_give_packet(struct feroce_machine *machine, struct feroce_packet_on_line *packet);
/* Completes headers and ICRC. */
void feroce_seal(struct feroce_packet_on_line *packet);
/* The frame as it stands on the line, without padding and FCS. Returns its length. */
uint32_t feroce_packet_encode(const struct feroce_packet_on_line *packet,
                              uint8_t bytes[FEROCE_PACKET_BYTES_MAX]);
bool feroce_is_sound(const struct feroce_packet_on_line *packet);
/* A good packet has come to a port. */
void feroce_note_arrival(struct feroce_machine *machine,
                         const struct feroce_packet_on_line *packet);
/* A message of this board was acknowledged whole. */
void feroce_on_message(struct feroce_machine *machine, struct feroce_node *node,
                       uint64_t latency_ps);

static inline uint32_t feroce_ip_of(uint32_t number)
{
    return 0x0a000001u + number;
}

static inline uint32_t feroce_receiver_number(const struct feroce_machine *machine)
{
    return machine->load.senders;
}

#endif
