/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_layout - the memory that two processes share: rings of packets, and the board on which a
 * process says how its memory may be reached.
 *
 * A ring belongs to its producer, who made it, and is mapped by one consumer. A board belongs to
 * one process; its peers map it read-only. The other side may write anything anywhere at any time
 * into a ring: every value read from it is copied first and judged then.
 */
#ifndef DRIVERS_SHM_LAYOUT_H
#define DRIVERS_SHM_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/align.h"
#include "nic/types.h"
#include "wire/roce.h"

#define SHM_MAGIC UINT64_C(0x4d485343494e4f4e) /* "NONICSHM" */
/* Grows with every change of this file that another build would misread. Rings were of layout 3
 * when their number still stood in the magic; they had no number of their own. */
#define SHM_LAYOUT       8u
#define SHM_SLOTS        1024u
#define SHM_DATA_BYTES   (1u << 20)
#define SHM_INLINE_BYTES 52
/* The damaged opcode of a raw packet may name no headers; then all behind the BTH is payload. */
#define SHM_PAYLOAD_BYTES_MAX (ROCE_PACKET_BYTES_MAX - ROCE_BTH_BYTES)

/* At the head of all memory that another process reads: it tells whether that process can. */
struct shm_mark {
    uint64_t magic;
    uint32_t layout; /* SHM_LAYOUT of the build that wrote it. */
    uint32_t bytes;  /* The size of the whole. */
};

enum shm_slot_flag {
    SHM_SLOT_PLACED = 1 << 0,  /* A WRITE or READ whose producer has written or read the memory. */
    SHM_SLOT_CHECKED = 1 << 1, /* The payload ends with an ICRC that is to be verified. */
    SHM_SLOT_INLINE = 1 << 2,  /* The payload follows the headers in the slot. */
    SHM_SLOT_VARIANT = 1 << 3, /* The slot ends with a struct inet_variant. A reader that does not
                                  know the flag takes the packet's variant for plain. */
    SHM_SLOT_ACK = 1 << 4,     /* It ends with a struct shm_ack instead. */
    SHM_SLOT_LONG = 1 << 5,    /* Headers longer than RoCE's: the byte behind those in the slot says
                                  how many more stand in front of the payload. A reader that does
                                  not know the flag does not know the opcode either. */
};

/* An acknowledgement that travels in the slot of a request (nic_piggyback). */
struct shm_ack {
    uint32_t psn, aeth;
};

/* One packet: a cache line, so that a small message costs the transfer of one. */
struct shm_slot {
    _Atomic uint32_t sequence; /* Position + 1 once the slot is filled: carries the lap. */
    uint8_t header_bytes;
    uint8_t flags; /* enum shm_slot_flag. */
    uint16_t payload_bytes;
    uint32_t data_offset; /* The offset of a payload that is not inline. */
    uint8_t bytes[SHM_INLINE_BYTES];
};
_Static_assert(sizeof(struct shm_slot) == 64, "a slot is a cache line");
#define SHM_VARIANT_AT (SHM_INLINE_BYTES - sizeof(struct inet_variant))
#define SHM_ACK_AT     (SHM_INLINE_BYTES - sizeof(struct shm_ack))
/* The room behind the BTH of a request that carries one. */
#define SHM_PIGGYBACK_BYTES (SHM_ACK_AT - ROCE_BTH_BYTES)
_Static_assert(SHM_VARIANT_AT >= ROCE_HEADERS_BYTES_MAX, "it stands behind all headers");
/* SHM_SLOT_LONG: where the number of the other header bytes stands. */
#define SHM_MORE_AT ROCE_HEADERS_BYTES_MAX
_Static_assert(SHM_MORE_AT < SHM_INLINE_BYTES, "it stands behind the headers in the slot");
_Static_assert(sizeof(struct inet_variant) == 8, "the size is part of the layout");

/* The producer's window: 0 while it is closed. Otherwise the lower half is the thread that may be
 * in the consumer's memory, the upper half a number that no two openings in a row have. */
typedef uint64_t shm_window;

struct shm_ring {
    struct shm_mark mark;
    struct gid source, destination;
    /* Some queue pairs of the producer reach the consumer over UDP all the same. */
    _Atomic uint32_t udp_too;
    _Alignas(128) _Atomic uint32_t consumed; /* Written by the consumer: slots it is done with. */
    _Alignas(128) _Atomic shm_window window;
    _Atomic uint32_t rung; /* The doorbell was rung since the consumer slept. */
    _Alignas(4096) struct shm_slot slots[SHM_SLOTS];
    uint8_t data[SHM_DATA_BYTES];
};

#define SHM_BOARD_REGIONS 4096u
/* Room for all queue pairs of a NIC: pages that are not used take no memory. */
#define SHM_BOARD_QPS    (1u << 18)
#define SHM_BOARD_PROBES 8u

/* A region that peers may write or read by themselves. The owner fills the entry first, and then
 * sets `key`; to take the entry off, it clears the key alone. A reader copies every word once, and
 * its copy counts if the key is still the same behind it: then no other entry came to the place
 * meanwhile. */
struct shm_board_region {
    _Atomic uint32_t key;    /* 0: free. */
    _Atomic uint32_t access; /* ACCESS_REMOTE_WRITE and ACCESS_REMOTE_READ, as granted. */
    _Atomic uint64_t domain; /* The number of its protection domain, which tells nothing else. */
    _Atomic uint64_t start, bytes, memory;
    _Atomic uint64_t extent; /* The number of the extent that has all of the memory; 0: none. */
};
_Static_assert(sizeof(struct shm_board_region) == 48, "the size is part of the layout");

/* A queue pair of RC, in RTR or RTS, that grants remote writes or reads to one peer. Written and
 * read like a region. */
struct shm_board_qp {
    _Atomic uint32_t number;  /* 0: free. */
    _Atomic uint32_t grant;   /* The peer's number; access; the path MTU's code. */
    _Atomic uint32_t domain;  /* As a region's. */
    _Atomic uint32_t state;   /* The number of this publication, not 0; the READs that it
                                 answers. */
    _Atomic uint64_t peer[2]; /* A struct gid, byte for byte. */
};
#define SHM_GRANT_SHIFT 24 /* The enum access bits, in `grant`. */
#define SHM_MTU_SHIFT   28
#define SHM_READS_SHIFT 24 /* In `state`. */
#define SHM_STATE_MAX   0xffffffu
_Static_assert(sizeof(struct shm_board_qp) == 32, "the size is part of the layout");

/* Tells whether the board's process still lives, and still runs its program: a robust mutex that
 * nonic's thread in it holds for life. When that thread ends, with its process or because the
 * process executes another program, the kernel writes FUTEX_OWNER_DIED over the thread's number
 * (set_robust_list(2)), and does so before the process's number can name anybody else. Peers read
 * the word and never lock. */
union shm_owner {
    pthread_mutex_t mutex;
    _Atomic uint32_t word;
};
_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the futex word comes first");

struct shm_board {
    struct shm_mark mark;
    _Atomic uint32_t asleep; /* The consumer waits for a doorbell. */
    _Atomic uint32_t direct; /* Direct writes and reads are welcome. */
    union shm_owner owner;
    /* The size of the mutex, which is the processor's, is a part of that of the board (`mark`). */
    struct shm_board_region regions[SHM_BOARD_REGIONS];
    struct shm_board_qp qps[SHM_BOARD_QPS];
    /* The address, in the process, at which each queue pair says what it awaits (qp_awaited). That
     * changes with every packet, so a peer looks there once for each publication. */
    _Atomic uint64_t awaited[SHM_BOARD_QPS];
};
_Static_assert(offsetof(struct shm_board, owner.word) < CACHE_LINE_BYTES,
               "what is looked at often is one line");

/* The first message on a connection, with the ring's descriptor; the answer is a mark, with the
 * board's. */
struct shm_hello {
    struct shm_mark mark;
    struct gid source;
    int32_t slot; /* The caller's own; LOCAL_NO_SLOT: it has its address alone. */
    uint32_t reserved;
};

/* Later messages. A peer that has connected asks for the memory behind a key of the board.
 * Doorbells are shorter. */
struct shm_ask {
    struct shm_mark mark;
    uint32_t key;
    uint32_t reserved;
};

/* The answer, with the descriptor of a file: `bytes` from `offset` on are what the answering
 * process has at the address `start`. With 0 bytes and no descriptor: the extent is gone. */
struct shm_offer {
    struct shm_mark mark;
    uint64_t extent; /* As on the board. A number never comes again. */
    uint64_t start, bytes, offset;
};

#endif
