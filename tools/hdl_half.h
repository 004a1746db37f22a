/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_half - the texts by which people and programs tell each other their half of a connection.
 *
 * Inputs     Texts of a person or of a peer, which may be anything at all.
 * Ownership  The caller's memory.
 * Source     The words are ours; the message is ibv_rc_pingpong's (rdma-core's examples).
 */
#ifndef TOOLS_HDL_HALF_H
#define TOOLS_HDL_HALF_H

#include "hdl/pair.h"

#define PAIR_WORDS_BYTES    128
#define PAIR_PINGPONG_BYTES 52 /* "lid:qpn:psn:gid", with its NUL. */

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

#endif
