/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm - loads and stores to global addresses: the initiator's side.
 *
 * Purpose    Makes a packet of each load or store of at most 8 bytes, keeps it in a row until it is
 *            answered, sends it again after a NACK or when no answer comes, and keeps accesses to
 *            one address in order.
 * Inputs     Requests of CPU and accelerators; R and B packets; the time.
 * Outputs    A verdict for each request; packets (lant_shm_next_packet); the fate of requests
 *            (lant_shm_next_done), in the order in which it happens; whether a fence is passed.
 * Time       Ticks of the caller's choice. Cycles that a step takes are not counted here.
 * Units      Global addresses; data stands in the bytes of the beat, which is the 8 bytes around
 *            the address: a byte that is stored to address 5 is bits 47..40, strobe 0x20.
 * Limits     LANT_SHM_ROWS_MAX requests under way, LANT_SHM_PENDING_MAX more that wait for one to
 *            the same address, LANT_SHM_FENCES_MAX fences. A request that finds no place is held:
 *            the initiator presents it again.
 * Source     Lant 4.1, 5.2.2, 6.1; LNI-19..35, LNI-38. Fences, which 4.1.4.1 asks for, are our
 *            choice.
 *
 * After a store has failed, a copy of it may still be on its way, and may land after a later store
 * to the same address; there is no remedy, and a program that goes on regardless waits
 * for `lifetime` before.
 */
#ifndef TRANSPORT_LANT_SHM_H
#define TRANSPORT_LANT_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/lant/errors.h"
#include "transport/lant/identifiers.h"
#include "transport/lant/ticks.h"
#include "wire/lant.h"

#define LANT_SHM_ROWS_MAX    64u
#define LANT_SHM_PENDING_MAX 64u
#define LANT_SHM_FENCES_MAX  64u
#define LANT_SHM_DONE_MAX    256u

struct lant_shm_config {
    uint32_t node;
    uint16_t rows, pending;
    uint16_t early_timers; /* Stores that may be acknowledged early at a time; 0: none ever is. */
    uint8_t retries;       /* After the first attempt. */
    uint64_t timeout;      /* From the footer of a packet to its next attempt. */
    uint64_t timeout_most; /* No request's own is longer; 0: `timeout`. */
    /* A sequence number is not given again for this time. It is at least twice the targets'
     * lifetime (shm_target.h): their lifetime may begin as late as with the last attempt. */
    uint64_t lifetime;
    uint32_t sequences;      /* The number of sequence numbers, a power of two: LANT_SEQUENCES. */
    uint32_t first_sequence; /* After a restart, a number that peers do not remember. */
    uint64_t fake_data;      /* The data of a load that failed. */
};

/* In cycles. */
#define LANT_SHM_DEFAULTS                                                                          \
    ((struct lant_shm_config){.rows = 16,                                                          \
                              .pending = 64,                                                       \
                              .early_timers = 16,                                                  \
                              .retries = 3,                                                        \
                              .timeout = 10000,                                                    \
                              .lifetime = 100000,                                                  \
                              .sequences = LANT_SEQUENCES,                                         \
                              .fake_data = UINT64_C(0xbadbadbadbadbad0)})

struct lant_shm_request {
    uint64_t address; /* Global, a multiple of the size. */
    uint64_t data;    /* Store, or an atomic's operand. */
    uint64_t compare; /* LANT_COMPARE_SWAP. */
    uint64_t timeout; /* 0: the configuration's. */
    uint32_t token;   /* The initiator's name for the access; it comes back. */
    uint16_t beat;    /* Which beat of the access; it comes back. */
    uint8_t size;     /* Binary logarithm of the bytes: 0..3. */
    uint8_t strobe;   /* Bytes of the beat; within those of address and size. */
    uint8_t bus_id, protection;
    uint8_t atomic; /* enum lant_atomic: neither store nor lock, all 8 bytes, answered as a load. */
    bool store, lock;
    bool accelerator; /* No CPU: 4.1.3. */
};

/* -- The fate of requests -----------------------------------------------------------------------*/

enum lant_shm_done_kind {
    /* Answers on the bus: each request gets one. */
    LANT_SHM_EARLY,   /* OKAY for a store that is on its way. A notice follows. */
    LANT_SHM_GENUINE, /* The peer's answer. */
    LANT_SHM_FAILED,  /* Nobody answered: the response of table 4.1. */
    /* Notices, for stores that were acknowledged early. */
    LANT_SHM_CONFIRMED, /* Done. */
    LANT_SHM_DENIED,    /* Not done. */
};

struct lant_shm_done {
    uint64_t address;
    uint64_t data; /* Load, atomic. */
    uint32_t token;
    uint16_t beat;
    uint8_t kind;     /* enum lant_shm_done_kind. */
    uint8_t response; /* enum lant_response: for the bus; in a notice, the result of the store. */
    uint8_t attempts; /* The number of times that it was sent. */
    bool store, lock;
    bool fake; /* The data is nobody's. */
};

static inline bool lant_shm_done_on_bus(const struct lant_shm_done *done)
{
    return done->kind <= LANT_SHM_FAILED;
}

/* Nothing more comes for this request. */
static inline bool lant_shm_done_final(const struct lant_shm_done *done)
{
    return done->kind != LANT_SHM_EARLY;
}

/* -- State --------------------------------------------------------------------------------------*/

enum lant_shm_row_state {
    LANT_SHM_ROW_FREE,
    LANT_SHM_ROW_NEW,     /* Waits to be sent. */
    LANT_SHM_ROW_RESEND,  /* Waits to be sent again. */
    LANT_SHM_ROW_SENDING, /* From lant_shm_next_packet to lant_shm_sent. */
    LANT_SHM_ROW_SENT,    /* Its timer runs. */
};

enum lant_shm_early {
    LANT_SHM_EARLY_NEVER,
    LANT_SHM_EARLY_NOT_YET, /* Its footer is not out. */
    LANT_SHM_EARLY_WAITS,   /* For one of the timers of the bank. */
    LANT_SHM_EARLY_GRANTED,
};

struct lant_shm_row {
    struct lant_shm_request request;
    uint64_t deadline; /* In LANT_SHM_ROW_SENT. */
    uint32_t sequence;
    uint8_t state; /* enum lant_shm_row_state. */
    uint8_t early; /* enum lant_shm_early. */
    uint8_t generation;
    uint8_t attempt;  /* The one that is sent or waits to be. */
    uint8_t response; /* The last NACK, or LANT_NO_RESPONSE. */
};

struct lant_shm_pending {
    struct lant_shm_request request;
    uint64_t ticket; /* Its place in the order of arrival. */
};

/* Rows in the order in which they came. */
struct lant_shm_queue {
    uint8_t first, count;
    uint8_t rows[LANT_SHM_ROWS_MAX];
};

/* By priority (Table D.1). */
enum lant_shm_queue_name {
    LANT_SHM_RESENDS,
    LANT_SHM_LOADS,
    LANT_SHM_STORES,
    LANT_SHM_QUEUES, /* Also: none has anything. */
};

struct lant_shm_fence {
    uint64_t rows, pending; /* The requests that it covers and that are not done; a bit for each. */
    bool failed;
};

struct lant_shm_counters {
    uint64_t requests;  /* Issued or pending. */
    uint64_t conflicts; /* Had to wait for another to the same address. */
    uint64_t held_row;  /* Each time that a request is presented counts. */
    uint64_t held_pending, held_sequence, held_done;
    uint64_t refused; /* The request makes no sense. */
    uint64_t packets, resent;
    uint64_t timeouts, nacks;
    uint64_t early;      /* Acknowledged early, */
    uint64_t early_late; /* of which had to wait for a timer. */
    uint64_t answered, failed;
    uint64_t ignored; /* Answers that change nothing, for any reason. */
};

struct lant_shm {
    struct lant_shm_config config;
    struct lant_identifiers sequences;
    uint64_t busy;   /* A bit for each row in use. */
    uint64_t listed; /* A bit for each pending element in use. */
    /* Elements whose address is free, but there was no row, or no sequence number. */
    uint64_t ready;
    uint64_t fenced; /* A bit for each open fence. */
    uint64_t tickets;
    uint16_t early_used;
    uint16_t done_first, done_count;
    uint16_t done_owed; /* Places that the rows in use will still need. */
    struct lant_shm_queue queues[LANT_SHM_QUEUES];
    struct lant_shm_queue early_queue; /* Stores that wait for a timer of the bank. */
    struct lant_shm_row rows[LANT_SHM_ROWS_MAX];
    struct lant_shm_pending pending[LANT_SHM_PENDING_MAX];
    struct lant_shm_fence fences[LANT_SHM_FENCES_MAX];
    struct lant_shm_done done[LANT_SHM_DONE_MAX];
    struct lant_shm_counters counters;
};

void lant_shm_init(struct lant_shm *shm, const struct lant_shm_config *config);

/* -- Requests -----------------------------------------------------------------------------------*/

enum lant_shm_verdict {
    LANT_SHM_ISSUED,  /* It has a row. */
    LANT_SHM_PENDING, /* It waits for an older one to the same 8 bytes. */
    /* Held: present it again later. */
    LANT_SHM_HELD_ROW,      /* No row is free. */
    LANT_SHM_HELD_PENDING,  /* The list is full. */
    LANT_SHM_HELD_SEQUENCE, /* The next sequence may still be known to somebody. */
    LANT_SHM_HELD_DONE,     /* Take finished requests first. */
    /* Refused. */
    LANT_SHM_SIZE_WRONG,   /* More than 8 bytes. */
    LANT_SHM_UNALIGNED,    /* The address is no multiple of the size. */
    LANT_SHM_STROBE_WRONG, /* Bytes that are not those of the address; or a load of none. */
    LANT_SHM_ATOMIC_WRONG, /* An atomic that is none, or is something else as well. */
};

static inline bool lant_shm_is_held(enum lant_shm_verdict verdict)
{
    return verdict >= LANT_SHM_HELD_ROW && verdict <= LANT_SHM_HELD_DONE;
}

/* Judges, and takes the request unless it is held or refused. */
enum lant_shm_verdict lant_shm_request(struct lant_shm *shm, const struct lant_shm_request *request,
                                       uint64_t now);

/* The next event. False: there is none. */
bool lant_shm_next_done(struct lant_shm *shm, uint64_t now, struct lant_shm_done *done);

/* Nothing is under way, and everything done was taken. */
static inline bool lant_shm_idle(const struct lant_shm *shm)
{
    return shm->busy == 0 && shm->listed == 0 && shm->done_count == 0;
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* The queue that the next packet comes from. */
enum lant_shm_queue_name lant_shm_next_queue(const struct lant_shm *shm);

/* False: there is none. The header's epoch is the caller's. */
bool lant_shm_next_packet(struct lant_shm *shm, struct lant_packet *packet);

/* The packet with this footer has been built to its end: its timer starts, and a store asks for an
 * early acknowledgement. Says nothing of a row that has been answered meanwhile. */
void lant_shm_sent(struct lant_shm *shm, const struct lant_footer *footer, uint64_t now);

enum lant_shm_answer {
    LANT_SHM_ANSWER_DONE,
    LANT_SHM_ANSWER_RESENDS, /* A NACK: it is sent again. */
    LANT_SHM_ANSWER_FAILS,   /* A NACK of the last attempt. */
    /* Ignored: */
    LANT_SHM_ANSWER_STALE,     /* Its row is free, or another request's by now. */
    LANT_SHM_ANSWER_OLD_NACK,  /* It is about an attempt before the last one. */
    LANT_SHM_ANSWER_UNASKED,   /* It is about an attempt that has not been sent. */
    LANT_SHM_ANSWER_MALFORMED, /* Not the kind of answer that this request can have. */
    LANT_SHM_ANSWER_FOREIGN,   /* From, or for, another node. */
};

/* An R or B packet of class SHM. */
enum lant_shm_answer lant_shm_on_answer(struct lant_shm *shm, struct lant_errors *errors,
                                        const struct lant_packet *packet, uint64_t now);

/* -- Time ---------------------------------------------------------------------------------------*/

uint64_t lant_shm_deadline(const struct lant_shm *shm, uint64_t now);
/* Attempts that have timed out are repeated, or have failed. */
void lant_shm_on_time(struct lant_shm *shm, struct lant_errors *errors, uint64_t now);

/* -- Fences -------------------------------------------------------------------------------------*/

#define LANT_ALL_NODES     UINT32_MAX
#define LANT_SHM_NO_FENCES UINT32_MAX

enum lant_shm_fence_state {
    LANT_SHM_FENCE_WAITS,
    LANT_SHM_FENCE_PASSED,
    LANT_SHM_FENCE_FAILED, /* Nothing covered is under way any more, but some of it failed. */
};

/* Covers the stores to `node` that have been taken and are not done. Returns the fence's number,
 * which is the caller's until lant_shm_fence_end; LANT_SHM_NO_FENCES: all are in use. */
uint32_t lant_shm_fence_begin(struct lant_shm *shm, uint32_t node);
enum lant_shm_fence_state lant_shm_fence_look(const struct lant_shm *shm, uint32_t fence);
void lant_shm_fence_end(struct lant_shm *shm, uint32_t fence);

void lant_shm_check(const struct lant_shm *shm);

#endif
