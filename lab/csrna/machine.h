/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine - a server and its clients with csRNA network interfaces around the live NIC's
 * engines, on a switch, and the programs that load them.
 *
 * The server sends, to all clients in turn, or all clients send to the server; connection i leads
 * to client i modulo their number.
 * Source: csRNA 4, 5.
 */
#ifndef LAB_CSRNA_MACHINE_H
#define LAB_CSRNA_MACHINE_H

#include "lab/csrna/nic.h"
#include "lab/lab.h"
#include "lab/reading.h"
#include "sim/faults.h"
#include "sim/parts/switch.h"

#define CSRNA_PARAMETER_COUNT 56
#define CSRNA_BATCH_MAX       32u
#define CSRNA_CLIENTS_MAX     64u
#define CSRNA_CORES_MAX       64u
/* READs a queue pair may have outstanding, each way. */
#define CSRNA_READS 16u
/* Where a node's region begins, as its peers name it. */
#define CSRNA_MEMORY_BASE 0x100000000ull

extern const struct lab_document csrna_document;
extern const struct lab_parameter csrna_parameters[CSRNA_PARAMETER_COUNT];

/* The bytes that a packet takes on the wire. The words of the parameter are in this order. */
enum csrna_framing {
    /* As the public model times it: on the way from the switch a WRITE takes its data, and a READ
     * request the bytes that it asks for. Answers take nothing, and no packet takes time on the way
     * to the switch. */
    CSRNA_FRAMING_MODEL,
    CSRNA_FRAMING_HEADERS, /* The public model's packet: addresses of 12 bytes, a BTH of 8. */
    CSRNA_FRAMING_ROCEV2,  /* Everything that real Ethernet carries, preamble and gap included. */
};

/* The words of the parameter `regions`, in their order. */
enum csrna_regions {
    CSRNA_REGIONS_OWN,
    CSRNA_REGIONS_ONE,
};

/* The settings that experiments vary from machine to machine. The rest comes from the run's
 * parameters. */
struct csrna_load {
    enum csrna_policy policy;
    enum csrna_placement placement;
    enum csrna_framing framing;
    enum csrna_window_of window_of;
    enum qpc_victim_policy victims;
    uint32_t qps, clients, bytes;
    uint32_t cache_entries, oocap;
    uint32_t processing;  /* Cycles of the slowest unit, a message. */
    uint32_t mpt_entries; /* Regions on the chip; 0: address translation costs nothing. */
    bool reads;
    bool inward; /* The clients send, and the server answers. */
    bool prefetch;
    /* True: every core sends one message at a time, over its connections in turn, and latency is
     * measured. False: every connection sends a batch at a time, all at once, and the rate is
     * measured. */
    bool one_at_a_time;
    /* The part of a round over all connections that is measured. Earlier messages are not measured,
     * until the state is steady. */
    double share;
};

/* The surroundings of the NICs: switch, wires, host, cores. */
struct csrna_world {
    struct sim_output_kind output; /* The switch's; the nodes' wires are like those behind it. */
    uint64_t write_ps;
    uint64_t software_ps, jitter_ps; /* From a post to its doorbell, and how far that varies. */
    uint64_t stagger_ps;             /* Between the first posts of two cores. */
    uint32_t cores, batch;
    struct sim_faults faults; /* The switch's: it drops packets and damages them. */
};

struct csrna_result {
    double rate;                /* Messages a second. */
    double latency_us;          /* Mean. */
    struct sim_spread latency;  /* In picoseconds. */
    struct lab_lengths queue;   /* Messages before the server's requester. */
    struct lab_lengths pending; /* Its requests that wait for contexts. */
    double link;                /* The share of the time in which the busiest output of the switch
                                 * was busy. */
    struct qpc_counters server; /* The counters of the whole run. */
    /* The server's look-ups of regions and pages, and those that read the entry. */
    uint64_t mpt_hits, mpt_misses, mtt_misses;
    /* The share of the time in which the server's PCIe was busy, by direction. */
    double pcie_in, pcie_out;
    uint64_t messages, events, lost, resent;
    /* Messages with a wrong byte; cached contexts other than the engine's state; packets out of
     * order, repeated or timed out. Unless parameters damage or lose something, the run has failed
     * if these are not 0. */
    uint64_t wrong, stale, disorder;
};

/* The part of a load that all experiments take from the run's parameters; these are
 * CSRNA_LOAD_USES. */
struct csrna_load csrna_load_of(struct lab_run *run);
#define CSRNA_LOAD_USES "clients cache victims window_of prefetch processing"

/* The contexts that a NIC has on the chip. */
uint32_t csrna_contexts(struct lab_run *run, const struct csrna_load *load);
/* The other NICs' numbers; elsewhere they have their defaults. */
#define CSRNA_POLICY_USES "ernic srnic connectx"

/* The configuration of a NIC, and what surrounds it: CSRNA_MACHINE_USES, and CSRNA_RATE_USES or
 * CSRNA_LATENCY_USES. */
struct csrna_config csrna_config_of(struct lab_run *run, const struct csrna_load *load);
struct csrna_world csrna_world_of(struct lab_run *run, const struct csrna_load *load);
#define CSRNA_MACHINE_USES                                                                         \
    "clock read write pcie access board board_rate ethernet link cores context write_back acks "   \
    "window software wqe_room visit_wqes visit_bytes ready payloads backlog "                      \
    "cqe loss corrupt"
#define CSRNA_RATE_USES "batch"
/* Elsewhere these have their defaults: address translation costs nothing. */
#define CSRNA_TRANSLATION_USES "mtt mpt_entry mtt_entry regions"
#define CSRNA_LATENCY_USES     "jitter stagger"

/* Builds the machine, loads it until the result is steady, checks every byte, takes it down. After
 * a failure of the run it builds none, and has no numbers. */
struct csrna_result csrna_run(struct lab_run *run, const struct csrna_load *load);

/* -- For csrna_nic.c ----------------------------------------------------------------------------*/

struct gid csrna_node_gid(uint32_t node);
uint16_t csrna_gid_node(const struct gid *gid);

/* NULL: too many are under way, and the run has failed. */
struct csrna_packet *csrna_machine_packet(struct csrna_machine *machine);
void csrna_machine_free(struct csrna_machine *machine, struct csrna_packet *packet);
/* Sends the packet over the wire of packet->from, as soon as that is free. */
void csrna_machine_send(struct csrna_machine *machine, struct csrna_packet *packet);
/* The engine of a node may have completed something. */
void csrna_machine_completions(struct csrna_machine *machine, struct csrna_nic *nic);

/* Things that happen later, in order of time; in order of adding if times are equal. */
struct csrna_later {
    struct sim_event event;
    struct csrna_machine *machine;
    void (*act)(struct csrna_machine *machine, uint32_t slot);
    struct {
        uint64_t at_ps;
        uint32_t slot;
    } * entries;
    uint32_t head, tail, mask;
};

struct csrna_node {
    struct csrna_nic nic;
    void *engine_memory;
    uint8_t *memory; /* The memory of its region. */
    size_t memory_bytes, engine_bytes, qp_bytes;
    uint8_t *qp_memory;
    struct pd pd;
    struct cq cq;
    struct completion *ring;
    struct region region;
    struct sim_wire port; /* The switch's output towards this node, */
    uint64_t port_ps;     /* and for how long it was in use. */
};

/* A connection as the server's program knows it. */
struct csrna_connection {
    uint64_t posted_ps;
    uint32_t batch;  /* The number of the batch that is under way. */
    uint16_t offset; /* The offset of the next WQE in the send queue. */
    /* The messages of the batch that have come, which they do in the order of their posts. */
    uint16_t arrived;
};

struct csrna_machine {
    struct sim sim;
    struct lab_run *run;
    struct csrna_load load;
    struct sim_trace *trace;
    struct sim_capture *capture;
    uint32_t clients;
    uint32_t copies; /* Slots of memory for each connection: one for each message of a batch. */
    struct csrna_node *nodes; /* The server is the first. */
    struct csrna_connection *connections;
    struct sim_pool packets;
    struct csrna_later starts, doorbells, completions;
    struct sim_event timers;
    struct csrna_world world;
    uint8_t timeout_code;
    uint32_t turns[CSRNA_CORES_MAX]; /* Which of its connections has its turn, for each core. */
    /* The members from here on are for measuring. */
    uint64_t messages; /* Completed, */
    uint64_t placed;   /* and placed in memory. */
    uint64_t warm_messages, all_messages;
    uint64_t warm_ps, end_ps;
    uint64_t warm_done, end_done; /* Done by then. */
    uint64_t last_ps;             /* When the newest message was done. */
    struct sim_spread *latencies;
    struct lab_lengths queue, pending;
    /* Messages with a wrong byte or at a wrong place; batches that were complete too early. */
    uint64_t wrong, incomplete;
    uint64_t stale, disorder;
};

static inline struct csrna_node *csrna_server(struct csrna_machine *machine)
{
    return &machine->nodes[0];
}

/* One end of connection `slot`, and the slot that it has there. */
struct csrna_end {
    struct csrna_node *node;
    uint32_t slot;
};

static inline struct csrna_end csrna_end_of(struct csrna_machine *machine, uint32_t slot,
                                            bool server)
{
    const uint32_t clients = machine->clients;
    return server ? (struct csrna_end){&machine->nodes[0], slot}
                  : (struct csrna_end){&machine->nodes[1 + slot % clients], slot / clients};
}

static inline struct csrna_end csrna_sender(struct csrna_machine *machine, uint32_t slot)
{
    return csrna_end_of(machine, slot, !machine->load.inward);
}

static inline struct csrna_end csrna_target(struct csrna_machine *machine, uint32_t slot)
{
    return csrna_end_of(machine, slot, machine->load.inward);
}

/* `in_turn`: not before those that were added before. */
void csrna_later_add(struct csrna_later *later, uint64_t at_ps, uint32_t slot, bool in_turn);

/* -- csrna_program.c ----------------------------------------------------------------------------*/

/* Memory of a connection at a node where it has `slot`: one place for each message of a batch. */
size_t csrna_offset(const struct csrna_machine *machine, uint32_t slot, uint32_t copy);
void csrna_fill(uint8_t *bytes, uint32_t count, uint64_t tag);
uint64_t csrna_tag(const struct csrna_machine *machine, uint32_t slot);
/* Compares a message that node `number` has just placed in its memory, every byte of it. */
void csrna_judge(struct csrna_machine *machine, uint32_t number, const uint8_t *at, uint32_t bytes);
void csrna_post(struct csrna_machine *machine, uint32_t slot);
void csrna_on_doorbell(struct csrna_machine *machine, uint32_t slot);
void csrna_on_completion(struct csrna_machine *machine, uint32_t slot);
void csrna_start(struct csrna_machine *machine);
/* How many messages are done, which decides when the run ends. For a rate those that were sent: the
 * completions of large messages come late, as a batch takes several visits. */
uint64_t csrna_done(const struct csrna_machine *machine);

#endif
