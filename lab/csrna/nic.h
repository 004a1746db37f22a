/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nic - a csRNA network interface: the pure units on a clock, PCIe and memories around them.
 *
 * Purpose    Gives time and order to the work of the live NIC's RC engine: the engine decides the
 *            content and the effect of a packet, the machine decides when.
 * Time       One tick is a cycle of the NIC's clock; a NIC without work does not tick.
 * Limits     CSRNA_PACKETS_MAX packets under way; the rest is configured.
 * Source     csRNA 3, 4.
 *
 * A message's way: doorbell, scheduler, WQE read (before or beside its context's: the policy),
 * descriptor unit, requester unit (context, engine, `processing` cycles), payload read, wire. At
 * the other end: responder unit (context, engine), memory write, acknowledgement. Here the
 * requester unit takes it, whose window is on the chip, or else the responder unit, by a context.
 *
 * PCIe has two directions, each with its own bandwidth: reads and what they bring; writes. Contexts
 * are read and written in one order: an access begins when the one before it has begun.
 */
#ifndef LAB_CSRNA_NIC_H
#define LAB_CSRNA_NIC_H

#include "hardware/csrna/qp_scheduler.h"
#include "hardware/csrna/qpc_manager.h"
#include "hardware/csrna/qpc_requester.h"
#include "hardware/csrna/sq_table.h"
#include "hardware/csrna/translation_cache.h"
#include "lab/csrna/policies.h"
#include "nic/nic.h"
#include "sim/kernel.h"
#include "sim/meter.h"
#include "sim/parts/wire.h"
#include "sim/pool.h"
#include "sim/trace.h"

#define CSRNA_VISIT_WQES_MAX 64u
/* Packets under way in a machine; a run with more fails. */
#define CSRNA_PACKETS_MAX (1u << 17)
/* A send queue's length in WQEs. */
#define CSRNA_SQ_WQES 64u

/* The words of the parameters with these names, in their order. */
enum csrna_placement {
    CSRNA_HOST,
    CSRNA_BOARD, /* Contexts live in the memory of the board. */
};

enum csrna_switch {
    CSRNA_ON,
    CSRNA_OFF,
};

enum csrna_acks {
    CSRNA_ACKS_ON_CHIP, /* An acknowledgement needs no context at the sender. */
    CSRNA_ACKS_CONTEXT,
};

enum csrna_window_of {
    CSRNA_WINDOW_OF_CONNECTION,
    CSRNA_WINDOW_OF_NIC,
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
    bool again;         /* It was sent before. */
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
};

struct csrna_packets {
    struct csrna_packet *first, *last;
    uint32_t count;
};

/* One direction of PCIe, or on-board memory: moves bytes, one access after the other. */
struct csrna_port {
    uint64_t byte_fs;    /* Femtoseconds a byte takes. */
    uint64_t latency_ps; /* From a read's last byte to the answer. */
    uint64_t free_ps;
    uint64_t bytes; /* Bytes moved, and those that each access costs. */
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
#define CSRNA_DMA_MAX (2 * CSRNA_PACKETS_MAX)
struct csrna_reads {
    struct sim_event event; /* The oldest read is done. */
    struct csrna_nic *nic;
    uint32_t head, tail;
    struct csrna_dma *entries;
};

/* Reads that wait until their addresses are translated, in their order: translate.c. */
enum csrna_look {
    CSRNA_LOOK_REGION,
    CSRNA_LOOK_PAGE,
    CSRNA_LOOKS
};

struct csrna_untranslated {
    struct csrna_dma dma;
    uint32_t bytes;
};

struct csrna_translation {
    struct sim_event event; /* The entry that was missed has come. */
    struct csrna_nic *nic;
    struct translation_cache mpt, mtt;
    uint32_t head, tail;
    uint32_t looked; /* The next look-up of the oldest read (enum csrna_look). */
    struct csrna_untranslated *waiting;
    void *memory[2];
};

/* Accesses to contexts that have not begun, in their order. There are at most as many reads as
 * requests, and each write comes from a read that is done. */
#define CSRNA_ACCESSES_MAX 1024u
_Static_assert(CSRNA_ACCESSES_MAX > 4 * QPC_CHANNELS * QPC_OOCAP_MAX, "all find room");
struct csrna_accesses {
    struct sim_event event; /* The next one may begin. */
    struct csrna_nic *nic;
    uint64_t begun_ps; /* When the newest one that has left began, or will begin. */
    uint32_t head, tail;
    struct {
        uint32_t qpn;
        bool writes;
    } entries[CSRNA_ACCESSES_MAX];
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
    const struct csrna_policy_kind *policy;
    enum csrna_placement placement;
    enum csrna_acks acks;
    bool prefetch;   /* If it hides: the context is asked for while the WQEs are read. */
    bool write_back; /* Evicted contexts that were changed are written to memory. */
    uint32_t oocap, cache_entries;
    enum qpc_victim_policy victims;
    uint32_t processing; /* Cycles of the slowest unit. */
    /* The most packets that a queue pair, and that the NIC, has in flight. */
    uint32_t qp_window, nic_window;
    /* Each packet asks for an acknowledgement, as in the public model, and not only the last one of
     * a batch: for a window that could close in the midst of one. */
    bool ack_each;
    uint64_t cycle_ps;
    uint64_t read_ps, write_ps, board_ps;
    uint64_t pcie_byte_fs, board_byte_fs;
    uint32_t access_bytes; /* The bytes that each access costs beside its own. */
    uint32_t context_bytes, cqe_bytes;
    /* Regions and pages whose entries are on the chip (0 regions: all are, always), and what an
     * entry takes. */
    uint32_t mpt_entries, mtt_entries, mpt_bytes, mtt_bytes;
    bool own_regions; /* Each connection's data lie in a region of their own. */
    uint32_t message_bytes;
    /* With this many WQEs before the requester unit or on their way no queue pair is visited. */
    uint32_t wqe_room;
    uint32_t visit_wqes;  /* The most WQEs that a visit reads, */
    uint32_t visit_bytes; /* and the most data that they stand for. */
    /* With this many messages between the requester's context and its processing it asks for no
     * more contexts. */
    uint32_t ready;
    uint32_t payloads; /* Payloads that are being read, or wait for the window. */
    /* The requester stops while its packets have to wait longer than this for the wire. */
    uint64_t backlog_ps;
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
    struct csrna_port pcie_in, pcie_out; /* From the host's memory, and to it. */
    struct csrna_port board;
    struct csrna_reads pcie_reads, board_reads;
    struct csrna_translation translation;
    struct csrna_accesses accesses;
    /* Slots, one for each message; they wait before the requester unit. */
    struct csrna_ring messages;
    struct csrna_packets ready;    /* Packets before the requester's processing. */
    struct csrna_packets received; /* Packets before the responder unit. */
    struct csrna_packets acks;     /* Answers before the requester unit's window. */
    struct csrna_packets leaving;  /* Requests with their payload that wait for the window. */
    uint32_t reading_wqes, reads;  /* WQEs and payloads that are being read. */
    uint32_t in_flight;            /* Packets sent and not acknowledged, for the NIC's window. */
    uint32_t resends;             /* The packets from `ready` to `leaving` that were sent before. */
    uint32_t resends_asked;       /* Queue pairs with `resend_asked`. */
    uint64_t sent;                /* Requests, each counted once. */
    uint64_t processing_until_ps; /* When the slowest unit is done with its message. */
    uint64_t next_cycle_ps;
    struct sim_wire wire; /* To the switch. */

    uint64_t stalls[QPC_CHANNELS];
    uint64_t incoherent, bad_packets, failed; /* These are 0, or the run fails. */
    struct sim_trace *trace;
    /* One track for each index, since requests of a channel overlap. Names live as long as the
     * trace. */
    uint32_t tracks[QPC_CHANNELS][QPC_OOCAP_MAX], memory_track;
    char track_names[QPC_CHANNELS][QPC_OOCAP_MAX][24];
    uint64_t asked_ps[QPC_CHANNELS][QPC_OOCAP_MAX]; /* When the request of an index was made. */
    void *memory[6];
    size_t bytes; /* The memory of all of this. */
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

/* Hits and misses are counted from now on. */
void csrna_translation_count_anew(struct csrna_nic *nic);

/* A CQE has left the NIC at the returned time. */
uint64_t csrna_nic_write_cqe(struct csrna_nic *nic);

#endif
