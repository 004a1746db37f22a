/* SPDX-License-Identifier: BSD-2-Clause
 *
 * accelerator - a block of logic that pulls data, computes, and gives the result on.
 *
 * Purpose    The dummy accelerator of chapter 7: a stage of the dataflow of Fig. 7.1, which works
 *            without a CPU once it is configured.
 * Inputs     Work: of its node's CPU, or five words that a peer stores to its work window.
 * Outputs    The result, in memory or at the next accelerator, with that one's work; a notification
 *            in memory, and on_finished.
 * Ownership  The accelerator is the caller's. It is a device of the node's API.
 * Units      Bytes; local addresses, unless they are global.
 * Limits     LANT_ACCELERATOR_BLOCK_MAX bytes of a block; LANT_ACCELERATOR_WORKS pieces of work
 *            that wait. The document has no message by which a successor says that it has read its
 *            input: the giver of work has no more of it under way than the successor has buffers. A
 *            transfer or store that fails stops it (`failed`), and the node's error report goes to
 *            the CPU in charge.
 * Source     Lant 7.1 to 7.2.3.1, Table 3.4.
 *
 * A result is in a buffer from the writing of its first byte until nobody reads it any more:
 *
 *   work -> pull -> compute -> write into a buffer -> | LAST: notify
 *                                                     | OFFLOADED: transfer -> completion -> work
 *                                                     | BY_CPU: notify; the CPU does the same
 *
 * The work of the next accelerator leaves behind the completion, which is our choice: stores may
 * overtake the data in the network, and go before it at the interface. And it leaves when the peer
 * has all words of the work before it. With one buffer the next block is pulled when the buffer is
 * free.
 */
#ifndef LAB_LANT_ACCELERATOR_H
#define LAB_LANT_ACCELERATOR_H

#include "lab/lant/api.h"

#define LANT_ACCELERATOR_BLOCK_MAX   65536u
#define LANT_ACCELERATOR_WORKS       16u
#define LANT_ACCELERATOR_BUFFERS_MAX 2u
#define LANT_ACCELERATOR_BURST       128u /* Bytes that are copied at a time. */
#define LANT_ACCELERATOR_PARTS       4u   /* A block is cut into, if writing and sending overlap. */

/* AccelWorkStruct. */
struct lant_accelerator_work {
    uint64_t source, bytes;             /* The bytes to pull. */
    uint64_t destination, result_bytes; /* Where the end of the chain puts the result. */
    uint64_t notification;              /* A word there, which counts results. */
};

#define LANT_ACCELERATOR_WORDS      5u
#define LANT_ACCELERATOR_WORK_BYTES 40u

/* The words as they are stored to a work window: in the order above, little-endian. */
void lant_accelerator_encode(const struct lant_accelerator_work *work,
                             uint8_t bytes[LANT_ACCELERATOR_WORK_BYTES]);

/* Table 3.4's local_or_remote: who gives the result on. */
enum lant_accelerator_role {
    LANT_ACCELERATOR_LAST,      /* F2. */
    LANT_ACCELERATOR_OFFLOADED, /* F1 of Fig. 7.1c. */
    LANT_ACCELERATOR_BY_CPU,    /* F1 of Fig. 7.1b. */
};

/* AccelConfigStruct, and what the laboratory adds. Its dma_queue_addr is the node's FPGA queue; who
 * looks at local_notification_addr hears on_finished; what local_dma_notif is, nobody says. */
struct lant_accelerator_config {
    enum lant_accelerator_role role;
    uint64_t latency_cycles;      /* The time of the computation. */
    uint64_t work_window;         /* Its own work queue. */
    uint64_t intermediate;        /* Where the buffers are; not LAST's. */
    uint64_t remote_bram;         /* Global: the buffers of the next one. */
    uint64_t remote_source;       /* The same as the next one's local address. */
    uint64_t remote_work;         /* Global: its work window. */
    uint64_t remote_notification; /* Where that one notifies. */
    uint32_t remote_bytes;        /* To be sent to it of each block. */
    uint32_t buffers;
    uint32_t remote_buffers; /* They are used in turns: see Limits. */
    uint32_t burst_cycles;   /* A copy of LANT_ACCELERATOR_BURST bytes. */
    uint32_t turn_cycles;    /* From a buffer that becomes free to the next block. */
    uint64_t detour_ps;      /* The time of a block's way through DRAM beside its copies. */
    bool direct;             /* The DMA engine reads the result where it is: no copy. */
    bool overlap;            /* A part of the result is sent while the next one is written. */
    uint8_t adds;            /* To each byte: its mark, in place of a function. */
};

struct lant_accelerator;
/* A result is ready: LAST's in memory, BY_CPU's in the buffer at `address`. Must not call. */
typedef void (*lant_accelerator_finished)(void *context, uint64_t address,
                                          const struct lant_accelerator_work *work);

enum lant_accelerator_step {
    LANT_ACCELERATOR_IDLE,
    LANT_ACCELERATOR_PULLS,
    LANT_ACCELERATOR_COMPUTES,
    LANT_ACCELERATOR_WRITES,
    LANT_ACCELERATOR_RESTS,
};

struct lant_accelerator_buffer {
    struct lant_accelerator_work work;
    uint32_t written, pushed, arrived; /* Bytes of the result. */
    bool told;                         /* The next accelerator knows of it, or is being told. */
};

struct lant_accelerator_counters {
    uint64_t works;    /* Taken. */
    uint64_t refused;  /* Work that makes no sense. */
    uint64_t lost;     /* Work that peers stored when the queue was full. */
    uint64_t overruns; /* Words that were stored before the last ones were read. */
    uint64_t finished; /* Given on. */
};

struct lant_accelerator {
    struct lant_device device;
    struct lant_node *node;
    struct lant_accelerator_config config;
    lant_accelerator_finished on_finished;
    void *context;
    struct lant_accelerator_counters counters;
    bool failed;
    uint8_t step;                /* enum lant_accelerator_step: of the block in `block`. */
    struct sim_event front;      /* The step ends. */
    struct sim_event back;       /* Something has happened to the buffers. */
    uint32_t words;              /* A bit for each word of the window that has come. */
    uint32_t unanswered, undone; /* Stores without an answer on the bus; that the peer may lack. */
    struct {
        uint32_t first, count;
        struct lant_accelerator_work ring[LANT_ACCELERATOR_WORKS];
    } works;
    struct {
        uint32_t first, count;
        struct lant_accelerator_buffer ring[LANT_ACCELERATOR_BUFFERS_MAX];
    } buffers;
    uint8_t block[LANT_ACCELERATOR_BLOCK_MAX];
};

/* config_accelerator(): from here on it works by itself. Must not move until it is closed. */
void lant_accelerator_open(struct lant_accelerator *accelerator,
                           const struct lant_accelerator_config *config, struct lant_api *api,
                           lant_accelerator_finished on_finished, void *context);
void lant_accelerator_close(struct lant_accelerator *accelerator);

/* The values that work_accelerator() returns. */
enum lant_accelerator_verdict {
    LANT_ACCELERATOR_TAKES = 0,
    LANT_ACCELERATOR_FULL = 1,
    LANT_ACCELERATOR_REFUSES = 2, /* It is longer than a block, or not in the memory. */
};

/* Work of the node's own CPU. */
enum lant_accelerator_verdict lant_accelerator_work(struct lant_accelerator *accelerator,
                                                    const struct lant_accelerator_work *work);
/* BY_CPU: the CPU has given the oldest result on. */
void lant_accelerator_release(struct lant_accelerator *accelerator);

/* The buffer's place behind the first one. */
static inline uint64_t lant_accelerator_stride(const struct lant_accelerator_config *config)
{
    return (config->remote_bytes + LANT_PAYLOAD_BYTES_MAX - 1) / LANT_PAYLOAD_BYTES_MAX *
           LANT_PAYLOAD_BYTES_MAX;
}

/* Where the next result that is given on goes, behind the first of the next one's buffers. */
static inline uint64_t lant_accelerator_input(const struct lant_accelerator *accelerator)
{
    return accelerator->counters.finished % accelerator->config.remote_buffers *
           lant_accelerator_stride(&accelerator->config);
}

#endif
