/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_sender - operations of the DMA engine, carried to their end.
 *
 * Purpose    Says what the DMA engine does next, makes its packets, and sends exactly those again
 *            that were lost or damaged. Only metadata is kept: a packet that goes again is read
 *            from the program's memory again, which must not change until the notification.
 * Inputs     Transfers (lant_work_submit on `work`), answers, the time.
 * Outputs    lant_rdma_next_...: a descriptor, its packets, the packet that tells a receiver that
 *            all have come, the local notification, an interrupt. lant_rdma_deadline.
 * Ownership  A value. The caller reads the program's memory, and keeps the notification queues.
 * Time       Ticks of the caller's choice, which never go back.
 * Units      Bytes; offsets count packets of 512 bytes.
 * Limits     Those of the tables it has.
 * Source     Lant 4.2, 5.2.3, 6.2, 6.3; LNI-41..54, 65, 68..73. Our choice: the word that an
 *            operation is complete is acknowledged; a transfer in segments has ended with all of
 *            them.
 *
 * One descriptor after the other: a failed packet, which is a partial descriptor, is served when
 * the descriptor in progress has been pushed (5.3.3), before any new work. There is one exception,
 * without which the engine could stop for ever. A packet on its way keeps a place in the
 * retransmission queue, in case it fails. When all places have failed packets, the descriptor in
 * progress gives way to them, and goes on afterwards. With LANT_PARTIALS_MAX places that needs as
 * many failures in one descriptor.
 *
 * An operation that has failed for good is interrupted: nothing of it is pushed any more, but its
 * slot is kept until each packet on its way was answered, or its timer has ended; these are not
 * sent again. Then its notification says what happened. Its receiver is not told that it is
 * complete. A copy may still be in the network then, unless `mpl_hold` waits for it; it cannot be
 * taken for a packet of a later operation, because the identifier rests.
 */
#ifndef TRANSPORT_LANT_RDMA_SENDER_H
#define TRANSPORT_LANT_RDMA_SENDER_H

#include "transport/lant/notifications.h"
#include "transport/lant/operations.h"
#include "transport/lant/retransmissions.h"
#include "transport/lant/transactions.h"

#define LANT_RDMA_FAILURES_MAX 64u
/* Notifications that wait: of each slot and of each large transfer at most one. */
#define LANT_RDMA_ENDED_MAX (LANT_OPERATIONS_MAX + LANT_PARENTS_MAX)

struct lant_rdma_config {
    struct lant_work_config work;
    struct lant_register_rule registers;
    uint64_t timeout;      /* A packet's, without its operation's own. */
    uint64_t timeout_most; /* No operation's own is longer; 0: `timeout`. */
    uint64_t lifetime;     /* The longest time of a packet in the network. */
    /* The time that all copies of a packet may wait behind others before they leave, added up. A
     * copy that would leave later is not sent, and its operation fails: its receiver might have
     * forgotten the packets that it has. 0: no bound; then `lifetime` has to allow for the waits
     * that the caller knows of. */
    uint64_t wait;
    uint32_t node;        /* Ours. */
    uint32_t generations; /* In each slot; 0: all there are. */
    uint16_t operations, rows;
    uint16_t partials; /* Places of the retransmission queue: at least `rows`. */
    uint8_t retries;   /* MAX_RETRY: after the first attempt. */
    uint8_t bus_id;    /* The DMA engine's. */
    /* An operation that was not registered is complete only when no unanswered copy of a packet can
     * still come, from the sending of that copy until `lifetime` later: our choice. In the thesis a
     * late copy may be written behind the notification. */
    bool mpl_hold;
    /* Nothing is begun while a packet that was sent again is unanswered. */
    bool serial_retransmission;
};

#define LANT_RDMA_DEFAULTS                                                                         \
    ((struct lant_rdma_config){.work = LANT_WORK_DEFAULTS,                                         \
                               .registers = {.mask_bits = 128, .bytes_at_most = 32 * 1024},        \
                               .timeout = 10000,                                                   \
                               .lifetime = 10000,                                                  \
                               .operations = LANT_OPERATIONS,                                      \
                               .rows = LANT_ROWS,                                                  \
                               .partials = LANT_PARTIALS_MAX,                                      \
                               .retries = 3})

struct lant_rdma_counters {
    uint64_t operations, registered;
    uint64_t packets;          /* Data: the first copies, */
    uint64_t again;            /* the others. */
    uint64_t told, told_again; /* COMPLETION_NOTIFICATIONs. */
    uint64_t answers[LANT_RDMA_ANSWER_COUNT];
    uint64_t timeouts;
    uint64_t gave_way; /* Descriptors in progress, to retransmissions. */
    uint64_t held;     /* Operations that waited for copies (mpl_hold). */
    uint64_t ended, failed;
    uint64_t interrupts, interrupts_lost; /* The second: were not taken in time. */
};

/* The descriptor in progress, or one that has given way. */
struct lant_rdma_current {
    bool active, again;
    uint8_t attempt;
    uint32_t identifier;
    uint32_t offset, end; /* The next packet, and behind the last one. */
    uint64_t first_at;    /* With `again`: when the packet's first copy left. */
};

/* A debug record. */
struct lant_rdma_failure {
    uint64_t time;
    uint64_t source, destination; /* The packet's; the second is global. */
    uint32_t identifier, offset, tag;
    uint8_t queue;
    uint8_t attempts; /* Copies that were sent. */
    uint8_t response; /* enum lant_response: the last; LANT_OKAY: a timer ended. */
    bool told;        /* It was the COMPLETION_NOTIFICATION; the data has arrived. */
};

struct lant_rdma {
    struct lant_rdma_config config;
    struct lant_work_queues work;
    struct lant_operations operations;
    struct lant_transactions transactions;
    struct lant_retransmissions retransmissions;
    struct lant_rdma_current current, aside;
    uint16_t serial_row;    /* The packet that everything waits for; LANT_NO_ROW: none. */
    uint64_t identifier_at; /* When one that is waited for is free; LANT_NEVER: none is. */
    uint64_t tells, timed;  /* Slots in TELLS; in HOLDS or TOLD. */
    uint8_t tells_from;     /* The slot that is asked first. */
    struct {
        uint16_t head, count;
        uint16_t ring[LANT_RDMA_ENDED_MAX]; /* Slots; from LANT_OPERATIONS_MAX on, parents. */
    } ended[LANT_QUEUE_COUNT];
    struct {
        uint16_t head, count;
        struct lant_rdma_failure ring[LANT_RDMA_FAILURES_MAX];
    } failures;
    struct lant_rdma_counters counters;
};

void lant_rdma_init(struct lant_rdma *rdma, const struct lant_rdma_config *config);

/* The packet lifetime, MPL: no identifier is used again within it. */
uint64_t lant_rdma_packet_lifetime(const struct lant_rdma_config *config);

/* For rdma_sender.c: the operation of the partial descriptor in progress fails. */
void lant_rdma_give_up_current(struct lant_rdma *rdma, uint64_t now);

/* -- The DMA engine -----------------------------------------------------------------------------*/

enum lant_rdma_start {
    LANT_RDMA_NOTHING,
    LANT_RDMA_BUSY,             /* A descriptor is in progress: ask for its packets. */
    LANT_RDMA_WAITS_ANSWER,     /* serial_retransmission. */
    LANT_RDMA_WAITS_SLOT,       /* All slots of the operation table are in use. */
    LANT_RDMA_WAITS_IDENTIFIER, /* Until lant_rdma_deadline. */
    LANT_RDMA_STARTS_PARTIAL,   /* From here on there is a descriptor. */
    LANT_RDMA_STARTS_GIVEN_WAY, /* The rest of it. */
    LANT_RDMA_STARTS_OPERATION,
};

/* The descriptor that the DMA engine pulls. */
struct lant_rdma_descriptor {
    uint64_t source, destination;
    uint32_t bytes;
    uint32_t identifier, tag;
    uint8_t queue;
};

/* Asked when the engine can start. With WAITS_ it can again after an answer, a notification that
 * was taken, or lant_rdma_on_time. */
MUST_USE enum lant_rdma_start lant_rdma_next_descriptor(struct lant_rdma *rdma, uint64_t now,
                                                        struct lant_rdma_descriptor *descriptor);

enum lant_rdma_push_verdict {
    LANT_RDMA_PUSH_NOTHING,   /* No descriptor is in progress (any more): ask for the next one. */
    LANT_RDMA_PUSH_WAITS,     /* No row is free, or no place for a failure. */
    LANT_RDMA_PUSH_GIVES_WAY, /* To retransmissions: ask for the next descriptor. */
    LANT_RDMA_PUSHED,
};

struct lant_rdma_push {
    uint64_t source; /* The payload: `bytes` from here. The rest of its last flit is nothing. */
    uint32_t bytes;
    uint32_t identifier, tag;
    uint8_t queue;
    bool again; /* It has been pushed before. */
    bool ends;  /* The descriptor. */
    bool all;   /* All data of the transfer `tag` has been pushed: its status gets bit 31. */
};

/* The next packet of the descriptor in progress leaves now. All of `packet` is filled in but the
 * payload. */
MUST_USE enum lant_rdma_push_verdict lant_rdma_next_packet(struct lant_rdma *rdma, uint64_t now,
                                                           struct lant_packet *packet,
                                                           struct lant_rdma_push *push);

/* Packets on their way: all of them; those of an operation (0: it has ended). */
static inline uint32_t lant_rdma_in_flight(const struct lant_rdma *rdma)
{
    return rdma->transactions.used;
}
uint32_t lant_rdma_unanswered(const struct lant_rdma *rdma, uint32_t identifier);

/* -- The rest of the interface ------------------------------------------------------------------*/

/* A COMPLETION_NOTIFICATION that leaves now, payload included; its data does not come from the DMA
 * engine. It has a row of its own, the operation's slot, in a table of its own (class 2), so that
 * the end of an operation never waits for the rows of others. False: there is none. */
MUST_USE bool lant_rdma_next_completion(struct lant_rdma *rdma, uint64_t now,
                                        struct lant_packet *packet);

/* An RDMA_ACK has come. */
enum lant_rdma_answer lant_rdma_on_answer(struct lant_rdma *rdma, uint64_t now,
                                          const struct lant_footer *answer);

/* How many local notifications wait for `queue`. Until it is taken, each keeps its slot. */
static inline uint32_t lant_rdma_notifications_waiting(const struct lant_rdma *rdma,
                                                       enum lant_queue queue)
{
    return rdma->ended[queue].count;
}
/* Takes it, to be put into the queue's notifications, which have room. False: there is none. */
MUST_USE bool lant_rdma_next_notification(struct lant_rdma *rdma, uint64_t now,
                                          enum lant_queue queue,
                                          struct lant_notification *notification);

/* Each operation that fails raises one. False: there is none. */
MUST_USE bool lant_rdma_next_interrupt(struct lant_rdma *rdma, struct lant_rdma_failure *failure);

uint64_t lant_rdma_deadline(const struct lant_rdma *rdma);
void lant_rdma_on_time(struct lant_rdma *rdma, uint64_t now);

/* Nothing waits, nothing is under way, nothing is to be notified. */
bool lant_rdma_idle(const struct lant_rdma *rdma);

void lant_rdma_check(const struct lant_rdma *rdma);

#endif
