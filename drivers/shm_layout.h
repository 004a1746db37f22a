/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_layout - what two processes share: rings of packets, and the board where a process says how
 * its memory may be reached.
 *
 * A ring belongs to its producer, who made it, and is mapped by one consumer. A board belongs to
 * one process; its peers map it read-only. The other side may write anything anywhere at any time
 * into a ring: every value read from it is copied first and judged then.
 */
#ifndef DRIVERS_SHM_LAYOUT_H
#define DRIVERS_SHM_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/types.h"
#include "wire/roce.h"

#define SHM_MAGIC        0x43494e4f4e33u /* "3NONIC" */
#define SHM_SLOTS        1024u
#define SHM_DATA_BYTES   (1u << 20)
#define SHM_INLINE_BYTES 52
/* Of a raw packet whose damaged opcode names no headers, all but the first is payload. */
#define SHM_PAYLOAD_BYTES_MAX (ROCE_PACKET_BYTES_MAX - ROCE_BTH_BYTES)

enum shm_slot_flag {
    SHM_SLOT_PLACED = 1 << 0,  /* A WRITE or READ whose producer has written or read the memory. */
    SHM_SLOT_CHECKED = 1 << 1, /* The payload ends with an ICRC that is to be verified. */
    SHM_SLOT_INLINE = 1 << 2,  /* The payload follows the headers in the slot. */
};

/* One packet: a cache line, so that a small message costs the transfer of one. */
struct shm_slot {
    _Atomic uint32_t sequence; /* Position + 1 once the slot is filled: carries the lap. */
    uint8_t header_bytes;
    uint8_t flags; /* enum shm_slot_flag. */
    uint16_t payload_bytes;
    uint32_t data_offset; /* Of a payload that is not inline. */
    uint8_t bytes[SHM_INLINE_BYTES];
};
_Static_assert(sizeof(struct shm_slot) == 64, "a slot is a cache line");

struct shm_ring {
    uint64_t magic;
    struct gid source, destination;
    _Alignas(128) _Atomic uint32_t consumed; /* Written by the consumer: slots it is done with. */
    _Alignas(128) _Atomic uint32_t window;   /* Producer: 1 while it may be writing our memory. */
    _Atomic uint32_t rung;                   /* The doorbell was rung since the consumer slept. */
    _Alignas(4096) struct shm_slot slots[SHM_SLOTS];
    uint8_t data[SHM_DATA_BYTES];
};

#define SHM_BOARD_REGIONS 4096u
/* Room for all that a NIC has: what is not used is not memory. */
#define SHM_BOARD_QPS    (1u << 18)
#define SHM_BOARD_PROBES 8u

/* A region that peers may write or read by themselves. Filled first, then `key` is set; cleared the
 * other way round, and not reused before every producer's window was seen closed. */
struct shm_board_region {
    _Atomic uint32_t key; /* 0: free. */
    uint32_t access;      /* ACCESS_REMOTE_WRITE and ACCESS_REMOTE_READ, as granted. */
    uint64_t domain;      /* Of its protection domain. */
    uint64_t start, bytes, memory;
};

/* A queue pair in RTR or RTS that grants remote writes or reads to one peer. */
struct shm_board_qp {
    _Atomic uint32_t number; /* 0: free. */
    uint32_t peer_number : 24;
    uint32_t access : 8; /* As of a region. */
    uint64_t domain;
    struct gid peer;
};

struct shm_board {
    uint64_t magic;
    _Atomic uint32_t asleep; /* The consumer waits for a doorbell. */
    _Atomic uint32_t direct; /* Direct writes and reads are welcome. */
    struct shm_board_region regions[SHM_BOARD_REGIONS];
    struct shm_board_qp qps[SHM_BOARD_QPS];
};

/* The first message on a connection, with the ring's descriptor; the answer carries the board's. */
struct shm_hello {
    uint64_t magic;
    struct gid source;
};

#endif
