/* SPDX-License-Identifier: BSD-2-Clause
 *
 * box_ask - what a program's process and the box say to each other about a NIC of the laboratory
 * (`nonic repeat --machine`): its memory, and a call.
 *
 * Purpose    The box drives the engines of such a NIC (nic/nic.h), and the program's process posts
 *            and polls. Both reach the engines in an arena: memory at one address in both. The
 *            process asks the box by a call of the kernel that Linux does not have, which stops the
 *            thread as every call does that the box answers.
 * Threads    As base/box_page.h: what lies in an arena is the running thread's, or the box's.
 */
#ifndef BASE_BOX_ASK_H
#define BASE_BOX_ASK_H

#include <stdint.h>

/* The number of the call: far above those that Linux gives out. Its arguments are one of the
 * following, the number of the NIC (BOX_ASK_OPEN, BOX_ASK_PLACE: 0), and what it says beside
 * them. */
#define BOX_ASK 0x4e43

enum box_ask {
    BOX_ASK_OPEN,     /* A NIC: its number, or -EMFILE or another errno. Its arena is made. */
    BOX_ASK_ATTACH,   /* Its engine (struct nic) lies here: it works from now on. */
    BOX_ASK_CLOSE,    /* It is no more; so it is when its process ends. */
    BOX_ASK_DOORBELL, /* Requests were posted to this queue pair (struct qp). */
    BOX_ASK_POKE,     /* Its queue pairs changed otherwise. */
    BOX_ASK_FORGET,   /* This queue pair is about to be destroyed. */
    BOX_ASK_SETTLE,   /* Waits until what its engine has judged by now is in memory. */
    BOX_ASK_POLL,     /* A completion queue was empty. */
    /* Waits until its engine has events or notifications, a datagram for its QP 1 has come, or its
     * alarm is due. */
    BOX_ASK_NEWS,
    BOX_ASK_ALARM,   /* Its alarm is due at this box_page.clock_ns, once; UINT64_MAX: never. */
    BOX_ASK_SEND,    /* A struct box_datagram leaves from QP 1. */
    BOX_ASK_RECEIVE, /* The oldest one that has come: 1; 0: there is none. */
    /* A struct box_port is to be the NIC's: the number of the claim, or an errno below 0. If its
     * port was 0, a free one is written into it. */
    BOX_ASK_CLAIM,
    BOX_ASK_OFFER,   /* Peers find the claim of this number from now on. */
    BOX_ASK_RELEASE, /* Others may claim what it claimed. */
    BOX_ASK_FIND,    /* The number of the NIC that serves a struct box_port, or -ENOENT. */
    BOX_ASK_PLACE,   /* The process, and those it starts, are on this node from now on. */
    BOX_ASK_TURN,    /* box_page.due_ns has come, or its verbs_left are 0: others go first. */
};

enum {
    BOX_ARENAS_MAX = 128,   /* NICs that are ever opened in a run */
    BOX_QPS_MAX = 1u << 14, /* of each of them */
};

/* A message from a QP 1 to another one. */
struct box_datagram {
    uint32_t peer;  /* The number of a NIC: to it, from it. */
    uint32_t ended; /* It is no datagram, but the news that the peer is no more. */
    uint8_t bytes[256];
};

/* A port of the connection manager. */
struct box_port {
    uint8_t address[16]; /* IPv6, or IPv4 mapped; the rest of it zero: any. */
    uint16_t space;      /* enum rdma_port_space, or another number that is no program's. */
    uint16_t port;
    uint32_t ipv6_only; /* Any IPv6 address, which does not stand for IPv4's. */
};

/* They lie where neither Linux nor a sanitizer puts anything. */
#define BOX_ARENA_ADDRESS(number) (UINT64_C(0x400000000000) + ((uint64_t)(number) << 36))
#define BOX_ARENA_BYTES           (UINT64_C(1) << 35)

/* The file of an arena, with its number. */
#define BOX_ARENA_PATH "/proc/driver/arena-%u"

/* The head of an arena. */
struct box_arena {
    /* The thread that is inside an engine (gettid); 0: none. It gets on until it is not any more,
     * unless it makes a call. */
    volatile int32_t inside;
    volatile uint32_t letters; /* Datagrams that BOX_ASK_RECEIVE gives. */
    uint64_t seed;             /* for the NIC's keys */
};

#endif
