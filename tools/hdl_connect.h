/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_connect - the ways by which the peer's half of a connection reaches a design's nonic_qp:
 *               words of a person or a file, ibv_rc_pingpong's exchange, and the connection manager
 *               of InfiniBand. They print what happens.
 */
#ifndef TOOLS_HDL_CONNECT_H
#define TOOLS_HDL_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/instant.h"
#include "drivers/services/services.h"
#include "hdl/manager.h"
#include "tools/hdl_half.h"

/* At most one of the three is there. */
struct hdl_connect_wishes {
    const char *words;      /* "ip=... qpn=...", or a file in which such a line will be. */
    uint16_t pingpong_port; /* TCP; 0: none. */
    uint16_t cm_port;       /* RDMA's; 0: none. */
    uint32_t pmtu;          /* For words and pingpong; the manager's peers say theirs. */
};

struct hdl_connect {
    struct hdl_connect_wishes wishes;
    struct hdl_pair *pair;
    bool has_told, was_connected;
    struct instant looked; /* Into the file, or for questions of programs. */
    int listener, client;  /* -1: none. */
    struct instant accepted;
    char message[PAIR_PINGPONG_BYTES];
    uint32_t message_bytes;
    bool answered;
    bool failed; /* It has been said why. */
    struct manager manager;
    struct services services; /* Programs of this machine ask them who has the port. */
    struct service *service;  /* NULL: none. */
};

/* Does anything of it have to be done? */
static inline bool hdl_connect_wanted(const struct hdl_connect_wishes *wishes)
{
    return wishes->words != NULL || wishes->pingpong_port != 0 || wishes->cm_port != 0;
}

/* pair->local.ip is known. False: it cannot be done. */
bool hdl_connect_open(struct hdl_connect *connect, struct hdl_pair *pair,
                      const struct hdl_connect_wishes *wishes);
/* Goes on, without waiting. The design has had an edge since the last call. */
void hdl_connect_turn(struct hdl_connect *connect, struct instant now);
/* A datagram to the design, whose ICRC is right. True: it was for the connection manager. */
bool hdl_connect_takes(struct hdl_connect *connect, const struct inet_datagram *datagram,
                       struct instant now);
/* The next datagram to send. False: there is none. */
bool hdl_connect_next(struct hdl_connect *connect, struct inet_datagram *datagram);
/* The peer is told, if it can be: what hdl_connect_next has then is to be sent. */
void hdl_connect_close(struct hdl_connect *connect, struct instant now);

#endif
