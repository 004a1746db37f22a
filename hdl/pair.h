/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pair - both halves of a queue pair's connection, as a nonic_qp in a design sees them, and the
 *        texts by which people and programs tell each other a half.
 *
 * Inputs     Texts of a person or of a peer, which may be anything at all.
 * Units      IPv4 addresses in host order; bytes.
 * Ownership  The caller's memory.
 * Source     The words are ours; the message is ibv_rc_pingpong's (rdma-core's examples).
 *
 * C and C++ include this file.
 */
#ifndef HDL_PAIR_H
#define HDL_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HDL_PAIRS_MAX       16 /* Numbers of a design's queue pairs are below it. */
#define PAIR_WORDS_BYTES    128
#define PAIR_PINGPONG_BYTES 52 /* "lid:qpn:psn:gid", with its NUL. */

struct hdl_half {
    uint32_t ip;
    uint32_t qpn, psn; /* The PSN of the first packet that this side sends. */
    uint64_t address;  /* Memory that the other side may reach, */
    uint32_t rkey;     /* by this key. */
};

struct hdl_pair {
    struct hdl_half local; /* The design writes it at each edge, but for its address. */
    struct hdl_half peer;
    uint32_t send_psn;    /* The first one of the design, whoever chose it, */
    uint32_t receive_psn; /* and of the peer. */
    uint32_t pmtu;
    bool connected; /* All but `local` counts. */
};

/* "ip=127.0.0.1 qpn=0x11 psn=0x2 address=0x7f00 rkey=0x3", in any order, with spaces or commas in
 * between, up to the end or a line break; ip and qpn are needed, the rest is 0 without. False:
 * `wrong` (of PAIR_WORDS_BYTES) says what is wrong. */
bool pair_read_words(const char *text, struct hdl_half *half, char *wrong);
/* Returns `words`, of PAIR_WORDS_BYTES. */
const char *pair_words(const struct hdl_half *half, char *words);

/* The message of ibv_rc_pingpong, which has no address and no key. False: it is none, or its GID
 * has no IPv4 address. */
bool pair_read_pingpong(const char message[PAIR_PINGPONG_BYTES], struct hdl_half *half);
void pair_pingpong(const struct hdl_half *half, char message[PAIR_PINGPONG_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
