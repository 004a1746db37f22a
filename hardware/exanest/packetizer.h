/* SPDX-License-Identifier: BSD-2-Clause
 *
 * packetizer - small messages of user processes, sent again until they are acknowledged.
 *
 * Purpose    A process stores a payload, a target and a command into its channel's registers; the
 *            hardware makes a packet of them, with the domain that the kernel gave the channel.
 * Inputs     Stores and loads of registers; exanest_packetizer_take: acknowledgements from the
 *            crossbar.
 * Outputs    exanest_packetizer_offer: packets. The state of each channel, which software reads.
 * Time       Timeouts are counted in cycles.
 * Limits     EXANEST_PACKETIZER_CHANNELS channels with one message each, of at most 256 bytes.
 * Source     Xirouchakis 3.1, 4.1.2, 6.2.
 *
 * The registers are our choice:
 *   0x000..0x0ff  the payload, in words of 64 bits, from the target's first byte on.
 *   0x100         the target (coordinate and address).
 *   0x108         the command: the bytes (1..256) that are sent; 0 gives the channel back.
 *   0x110         the state, to be read: see struct exanest_packetizer_state.
 * A target at the mailbox of read requests makes a packet of type 2, any other one of type 1 with
 * the bit `priority`, which tells receivers from a send unit's writes. A user chooses no type, so
 * that responses cannot be forged.
 *
 * The transaction ID in the footer is the channel (bits 3..0) and the message's number (9..4), and
 * the acknowledgement returns it: a late one of an earlier message isn't taken for the newer one's.
 * The sequence in the footer counts the retries.
 */
#ifndef HARDWARE_EXANEST_PACKETIZER_H
#define HARDWARE_EXANEST_PACKETIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/beat.h"
#include "hardware/exanest/intake.h"

#define EXANEST_PACKETIZER_CHANNELS 16u
#define EXANEST_PACKETIZER_MESSAGES 64u /* Numbers of messages: what the 10 bits of a TID leave. */

#define EXANEST_PACKETIZER_PAYLOAD 0x000u
#define EXANEST_PACKETIZER_TARGET  0x100u
#define EXANEST_PACKETIZER_COMMAND 0x108u
#define EXANEST_PACKETIZER_STATE   0x110u

struct exanest_packetizer_parameters {
    uint32_t coordinate;     /* Our own. */
    uint32_t timeout_cycles; /* From the packet's last word. */
    uint32_t backoff_cycles; /* After a NACK, unless it is NACK_CRC: then at once. */
    uint16_t retries;        /* Packets sent again before the message fails. */
};

/* All our choice: 100 us and 20 us at 150 MHz, and 16 retries. */
static inline struct exanest_packetizer_parameters exanest_packetizer_defaults(uint32_t coordinate)
{
    return (struct exanest_packetizer_parameters){
        .coordinate = coordinate, .timeout_cycles = 15000, .backoff_cycles = 3000, .retries = 16};
}

enum exanest_packetizer_phase {
    EXANEST_CHANNEL_FREE,
    EXANEST_CHANNEL_READY,   /* To be sent. */
    EXANEST_CHANNEL_SENDING, /* Some words have left, or are shown. */
    EXANEST_CHANNEL_WAITING, /* For an acknowledgement. */
    EXANEST_CHANNEL_BACKOFF, /* For a time, before it is sent again. */
    EXANEST_CHANNEL_DONE,
    EXANEST_CHANNEL_FAILED,
};

/* The fields of a channel's state register. As a word: phase in bits 3..0, last status in 7..4,
 * retries in 23..8. */
struct exanest_packetizer_state {
    uint8_t phase;       /* enum exanest_packetizer_phase. */
    uint8_t last_status; /* enum exanest_status: the last acknowledgement. */
    uint16_t retries;
};

/* The outcome of a store to a register. */
enum exanest_store_verdict {
    EXANEST_STORE_GOOD,
    EXANEST_STORE_NO_REGISTER, /* No such channel or register, or it is the kernel's alone. */
    EXANEST_STORE_BUSY,        /* The message isn't acknowledged yet. */
    EXANEST_STORE_NO_DOMAIN,   /* The kernel has not given the channel to anybody. */
    EXANEST_STORE_LENGTH,      /* More bytes than a packet takes at this target. */
    EXANEST_STORE_COUNT,
};

struct exanest_packetizer_counters {
    uint64_t stores[EXANEST_STORE_COUNT];
    uint64_t messages;                      /* Commands taken. */
    uint64_t packets[EXANEST_TYPES];        /* Sent, by type; */
    uint64_t bytes[EXANEST_TYPES];          /* bytes of their payload. */
    uint64_t answers[EXANEST_STATUS_COUNT]; /* Acknowledgements of messages that wait for them, by
                                             * status. */
    uint64_t retransmissions, timeouts;
    uint64_t stale;      /* Acknowledgements of messages that do not wait. */
    uint64_t unexpected; /* Packets that are no acknowledgements, or bad. */
    uint64_t done, failed, given_back;
};

struct exanest_packetizer_channel {
    uint8_t phase; /* enum exanest_packetizer_phase. */
    uint8_t last_status;
    uint8_t message; /* Its number, below EXANEST_PACKETIZER_MESSAGES. */
    bool given;      /* The kernel has configured it. */
    bool answered;   /* SENDING: an answer to an earlier copy has come. */
    bool given_back; /* SENDING: software gave the message up. */
    uint16_t pdid;
    uint16_t bytes, retries;
    struct exanest_target target;
    uint64_t deadline; /* WAITING, BACKOFF. */
    uint64_t payload[EXANEST_PAYLOAD_BYTES_MAX / 8];
};

struct exanest_packetizer {
    struct exanest_packetizer_parameters parameters;
    uint64_t now;
    uint64_t next_deadline; /* No channel's is earlier. */
    uint16_t ready;         /* Bit c: channel c is READY; */
    uint16_t timed;         /* it is WAITING or in BACKOFF. */
    uint8_t last;           /* The channel that was sent last, or is being sent. */
    uint8_t count, sent;    /* Words of the packet that is being sent; 0: none. */
    struct exanest_word packet[EXANEST_PACKET_WORDS_MAX];
    struct exanest_intake intake;
    struct exanest_packetizer_counters counters;
    struct exanest_packetizer_channel channels[EXANEST_PACKETIZER_CHANNELS];
};

void exanest_packetizer_init(struct exanest_packetizer *packetizer,
                             const struct exanest_packetizer_parameters *parameters);

/* The kernel gives a channel to a protection domain. The channel's message is given up, and its
 * registers are erased. */
void exanest_packetizer_give(struct exanest_packetizer *packetizer, uint32_t channel,
                             uint16_t pdid);

/* A process stores to, or loads from, a register of its channel. */
enum exanest_store_verdict exanest_packetizer_store(struct exanest_packetizer *packetizer,
                                                    uint32_t channel, uint32_t offset,
                                                    uint64_t value);
uint64_t exanest_packetizer_load(const struct exanest_packetizer *packetizer, uint32_t channel,
                                 uint32_t offset);

struct exanest_packetizer_state exanest_packetizer_state(
    const struct exanest_packetizer *packetizer, uint32_t channel);

/* Acknowledgements are always taken. */
static inline bool exanest_packetizer_ready(const struct exanest_packetizer *packetizer,
                                            const struct exanest_beat *beat)
{
    (void)packetizer;
    (void)beat;
    return true;
}

void exanest_packetizer_take(struct exanest_packetizer *packetizer,
                             const struct exanest_beat *beat);

bool exanest_packetizer_offer(const struct exanest_packetizer *packetizer,
                              struct exanest_beat *beat);
void exanest_packetizer_taken(struct exanest_packetizer *packetizer);

void exanest_packetizer_step(struct exanest_packetizer *packetizer);

/* No channel is to be sent, and none waits. */
static inline bool exanest_packetizer_idle(const struct exanest_packetizer *packetizer)
{
    return packetizer->count == 0 && packetizer->ready == 0 && packetizer->timed == 0;
}

#endif
