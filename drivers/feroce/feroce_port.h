/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_port - the sockets of a FERoCE board that is an ordinary process.
 *
 * Purpose    Sends the board's packets and messages over UDP, byte for byte from the UDP header on,
 *            and receives datagrams.
 * Inputs     Packets and messages of transport/feroce/board.h; datagrams.
 * Outputs    Datagrams that leave, and those that came; a capture of the frames that the board
 *            would have sent.
 * Ownership  feroce_port_open allocates, feroce_port_close frees (NULL: nothing). A packet's
 *            payload stays where it is until feroce_port_flush.
 * Time       Captures are stamped here; faults are told the time.
 * Units      IPv4 addresses and ports in host order; bytes.
 * Limits     FEROCE_BATCH_MAX packets wait for a flush.
 * Source     RTL2026 (wire/feroce.h), socket(7), udp(7). An unprivileged socket sends
 *            identification 0 (the index within a segmented call), where a board of 2026 counts up:
 *            the ICRC covers the number that is sent. A raw socket counts up.
 */
#ifndef DRIVERS_FEROCE_PORT_H
#define DRIVERS_FEROCE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "transport/feroce/board.h"

#define FEROCE_BATCH_MAX 64

struct feroce_port_config {
    uint32_t ip;
    uint8_t service_class; /* 0..7. */
    enum feroce_stack stack;
    bool segmenting;     /* --pace fast: many packets a call, with a UDP checksum. */
    bool exact_ip;       /* --exact-ip: IP headers are the board's, too (CAP_NET_RAW). */
    const char *fault;   /* As `nonic run --fault` says it, or NULL. */
    const char *capture; /* A file's name, or NULL. */
};

struct feroce_port_counters {
    uint64_t packets, bytes; /* Sent, from the BTH on, ICRC included. */
    uint64_t calls;          /* System calls that sent them. */
    uint64_t refused;        /* Datagrams that the system did not take, */
    int refused_why;         /* with the last errno. */
    uint64_t dropped, held;  /* By faults: of packets that leave, */
    uint64_t dropped_in;     /* and of datagrams that come. */
    uint64_t received;       /* Datagrams. */
};

/* A datagram that came. */
struct feroce_datagram {
    bool is_cm;
    bool icrc_is_right;
    uint32_t from_ip;
    uint16_t from_port;
    const uint8_t *bytes; /* Until the next call. */
    size_t count;
};

struct feroce_port;

/* NULL, with a reason in `error`. */
struct feroce_port *feroce_port_open(const struct feroce_port_config *config, char *error,
                                     size_t error_bytes);
void feroce_port_close(struct feroce_port *port);

/* Takes a packet for the next flush, which comes by itself when FEROCE_BATCH_MAX wait. */
void feroce_port_send(struct feroce_port *port, const struct feroce_packet *packet,
                      struct instant now);
/* Sends the packets that wait, and those that faults held back until now. */
void feroce_port_flush(struct feroce_port *port, struct instant now);

void feroce_port_send_cm(struct feroce_port *port, const uint8_t bytes[FEROCE_CM_BYTES],
                         uint32_t ip, uint16_t udp_port);

/* The next datagram. False: none has come. */
MUST_USE bool feroce_port_receive(struct feroce_port *port, struct instant now,
                                  struct feroce_datagram *datagram);

/* Sleeps until a datagram comes, or for `most_ns` nanoseconds. False: a signal came. */
bool feroce_port_wait(struct feroce_port *port, uint64_t most_ns);

/* When a packet or datagram that faults held back is due. */
struct instant feroce_port_deadline(struct feroce_port *port);

const struct feroce_port_counters *feroce_port_counters(const struct feroce_port *port);

#endif
