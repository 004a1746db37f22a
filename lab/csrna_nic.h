/* SPDX-License-Identifier: BSD-2-Clause
 *
 * csrna_nic - a csRNA network interface: the pure units on a clock, PCIe and memories around them.
 *
 * Purpose    Charges time and order to what the live NIC's RC engine does: the engine decides what
 *            a packet says and what it does, the machine when.
 * Inputs     Doorbells, packets from the wire.
 * Outputs    Packets for the wire; completions for the host; counters.
 * Ownership  The machine (csrna_machine.h) owns everything.
 * Threads    One world, one thread.
 * Time       One tick is a cycle of the NIC's clock; a NIC without work does not tick.
 * Units      Bytes, picoseconds.
 * Limits     CSRNA_VISITS_MAX visits of the scheduler and CSRNA_READS_MAX payload reads at once.
 * Source     Specification csRNA, sections 2 and 4.
 *
 * A message's way: doorbell, scheduler, WQE read (before or beside its context's: the policy),
 * descriptor unit, requester unit (context, engine, `processing` cycles), payload read, wire. At
 * the other end: responder unit (context, engine), memory write, acknowledgement; and back through
 * the responder unit here.
 */
#ifndef LAB_CSRNA_NIC_H
#define LAB_CSRNA_NIC_H

#include "nic/csrna/qp_scheduler.h"
#include "nic/csrna/qpc_manager.h"
#include "nic/csrna/qpc_requester.h"
#include "nic/csrna/sq_table.h"
#include "nic/nic.h"
#include "sim/kernel.h"
#include "sim/meter.h"
#include "sim/pool.h"
#include "sim/trace.h"

/* The most WQEs that a visit reads, and the most data that they stand for. */
#define CSRNA_VISIT_WQES  16u
#define CSRNA_VISIT_BYTES 8192u
/* Visits under way: twice what the round trip takes at the peak rate. With hiding never more than
 * oocap, since each needs an index while its WQEs are read. */
#define CSRNA_VISITS_MAX 12u
#define CSRNA_READS_MAX  64u
/* With this many messages before the requester unit no queue pair is visited. */
#define CSRNA_MESSAGES_MAX 64u
/* With this many messages between the requester's context and its processing it asks for no more
 * contexts. */
#define CSRNA_READY_MAX 16u
#define CSRNA_SQ_WQES   64u
#define CSRNA_CQE_BYTES 16u
/* CQEs that wait for the bus go together as far as they share a line of 64 bytes. */
#define CSRNA_CQES_MAX 4u
/* The places in which evicted contexts wait until the bus is idle. */
#define CSRNA_VICTIMS_MAX 4u

enum csrna_policy {
    CSRNA_FCFS,   /* First come, first served: a miss blocks. */
    CSRNA_NB,     /* Non-blocking. */
    CSRNA_HIDING, /* Non-blocking, and the WQE is read beside the context. */
};

struct csrna_machine;
struct csrna_nic;

/* A packet on its way, with headers and payload. */
struct csrna_packet {
    struct sim_event event; /* The packet reaches `to`. */
    struct csrna_machine *machine;
    struct csrna_packet *next; /* The next packet in a queue. */
    uint16_t from, to;
    uint32_t headers_bytes, payload_bytes;
    uint32_t slot;      /* The slot of its queue pair at the node where the packet is. */
    bool reads_payload; /* Its payload comes over PCIe before it leaves. */
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
};

struct csrna_packets {
    struct csrna_packet *first, *last;
    uint32_t count;
};

/* Where contexts live: a port that moves bytes one access after the other. */
struct csrna_port {
    uint64_t byte_fs; /* Femtoseconds a byte takes. */
    uint64_t latency_ps;
    uint64_t free_ps;
    uint64_t bytes;   /* Bytes moved, and those that each access costs. */
    uint32_t victims; /* Evicted contexts that have not been written yet. */
};

enum csrna_dma_kind {
    CSRNA_DMA_WQES,
    CSRNA_DMA_CONTEXT,
    CSRNA_DMA_PAYLOAD,
};

struct csrna_dma {
    uint64_t done_ps;
    struct csrna_packet *packet; /* CSRNA_DMA_PAYLOAD: the packet. */
    uint32_t number;             /* Slot of a visit; QPN of a context. */
    uint8_t kind;                /* enum csrna_dma_kind. */
};

/* Reads that are under way on one port, which answers in order. */
#define CSRNA_DMA_MAX 512u
struct csrna_reads {
    struct sim_event event; /* The oldest read is done. */
    struct csrna_nic *nic;
    uint32_t head, tail;
    struct csrna_dma entries[CSRNA_DMA_MAX];
};

/* One connection's side at this node. */
struct csrna_qp {
    struct qp *qp;
    struct qpc context; /* The context in memory, while the cache does not have it. */
    uint64_t began_ps;  /* When its context was missed, for a trace. */
    uint32_t reading;   /* The number of its packets whose payloads are being read. */
    uint16_t wqes;      /* The WQEs of its open visit. */
    bool resend_asked;  /* An entry of `messages` stands for its resending already. */
};

struct csrna_config {
    enum csrna_policy policy;
    bool on_board; /* Contexts live in the memory of the board. */
    uint32_t oocap, cache_entries;
    enum qpc_victim_policy victim;
    uint32_t processing; /* Cycles of the slowest unit. */
    uint32_t window;     /* The most packets that a queue pair has in flight. */
    uint64_t cycle_ps;
    uint64_t read_ps, write_ps, board_ps;
    uint64_t pcie_byte_fs;
    uint32_t access_bytes; /* The bytes that each access costs beside its own. */
    uint32_t message_bytes;
};

struct csrna_ring {
    uint32_t *entries;
    uint32_t head, tail, mask;
};

struct csrna_nic {
    struct csrna_machine *machine;
    struct sim *sim;
    struct csrna_config config;
    uint32_t node;
    struct nic *engine;
    struct csrna_qp *qps; /* The queue pairs by slot. */
    uint32_t qp_count;
    uint32_t *slots; /* Slot by QPN & slot_mask. */
    uint32_t slot_mask;

    struct sim_event tick;
    struct qpc_manager manager;
    struct qpc_requester requesters[QPC_CHANNELS];
    struct sq_table sq_table;
    struct qp_scheduler scheduler;
    struct csrna_port pcie, board;
    struct csrna_reads pcie_reads, board_reads;
    /* Slots of visits whose WQEs have come; they wait before the descriptor unit. */
    struct csrna_ring arrived;
    /* Slots, one for each message; they wait before the requester unit. */
    struct csrna_ring messages;
    struct csrna_packets ready;    /* Packets before the requester's processing. */
    struct csrna_packets received; /* Packets before the responder unit. */
    uint32_t visits, reads;        /* Visits and reads under way. */
    uint32_t visits_max;
    uint64_t cqes_begin_ps;       /* The newest write of CQEs: when it begins, */
    uint32_t cqes;                /* and how many it holds. */
    uint64_t processing_until_ps; /* When the slowest unit is done with its message. */
    uint64_t manager_until_ps;    /* FCFS: the victim is being written back. */
    uint64_t next_cycle_ps;
    uint64_t wire_free_ps;

    uint64_t processed, prefetches_skipped, stalls[QPC_CHANNELS];
    uint64_t incoherent, bad_packets, failed; /* These are 0, or the run fails. */
    struct sim_trace *trace;
    /* One track for each index, since requests of a channel overlap. Names live as long as the
     * trace. */
    uint32_t tracks[QPC_CHANNELS][QPC_OOCAP_MAX], memory_track;
    char track_names[QPC_CHANNELS][QPC_OOCAP_MAX][24];
    uint64_t asked_ps[QPC_CHANNELS][QPC_OOCAP_MAX]; /* When the request of an index was made. */
    void *memory[6];
};

void csrna_nic_open(struct csrna_nic *nic, struct csrna_machine *machine, uint32_t node,
                    const struct csrna_config *config, uint32_t qps, struct sim_trace *trace);
void csrna_nic_close(struct csrna_nic *nic);

/* The machine has made the queue pair of `slot`. */
void csrna_nic_add(struct csrna_nic *nic, uint32_t slot, struct qp *qp);
uint32_t csrna_nic_slot(const struct csrna_nic *nic, const struct qp *qp);

/* The doorbell for `count` WQEs has come over the bus. */
void csrna_nic_doorbell(struct csrna_nic *nic, uint32_t slot, uint32_t count, uint32_t offset);
/* A packet has come from the wire; the NIC owns it from now on. */
void csrna_nic_receive(struct csrna_nic *nic, struct csrna_packet *packet);
/* The engine's timers: resends go through the requester unit like everything else. */
void csrna_nic_resend(struct csrna_nic *nic);

/* Books an access of `bytes` and returns when it is over. */
uint64_t csrna_port_move(struct csrna_nic *nic, struct csrna_port *port, uint32_t bytes);
/* Memory aligned to 64 bytes; untouched pages cost nothing. Aborts if there is none. */
void *csrna_zeroed(size_t bytes);
void csrna_free(void *memory);

/* A CQE has left the NIC at the returned time. */
uint64_t csrna_nic_write_cqe(struct csrna_nic *nic);

static inline struct instant csrna_now(const struct sim *sim)
{
    return (struct instant){sim->now_ps / 1000};
}

#endif
