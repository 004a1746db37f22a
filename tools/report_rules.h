/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_rules - what a capture may have that is worth a look: each is a row.
 *
 * Source     IBTA Vol. 1, Annex A17; docs/ibta.md has the same sections with the code that keeps
 *            them. docs/block-transport.md; wire/srd.h.
 */
#ifndef TOOLS_REPORT_RULES_H
#define TOOLS_REPORT_RULES_H

#include <stdbool.h>

/* X(name, broken, title, rule, meaning). `broken`: a sender broke the rule; else the packet is what
 * the rule asks for when something else went wrong. */
/* clang-format off */
#define REPORT_ODDITIES(X)                                                                         \
    X(AGAIN, false, "sent again", "IBTA 9.7.6",                                                    \
      "A request was sent once more: it, or its answer, was lost or late.")                        \
    X(GAP, false, "packets missing", "IBTA 9.7.2",                                                 \
      "Each packet has the next sequence number (PSN), but here some are left out: they were "     \
      "lost before they came to where the capture was taken.")                                     \
    X(NAK_SEQUENCE, false, "NAK: a packet is missing", "IBTA 9.7.5.2.2",                           \
      "The receiver saw a gap and asks for all packets from this PSN on.")                         \
    X(NOT_READY, false, "receiver not ready (RNR)", "IBTA 9.7.5.2.8",                              \
      "A message came for which no receive was posted. The sender waits and tries again. If "      \
      "there are many: post more receives, or earlier.")                                           \
    X(NAK_INVALID, true, "NAK: invalid request", "IBTA 9.9.2, 9.7.5.2.2",                          \
      "The request does not fit the queue pair: its length, its kind, or its place in a message. " \
      "The connection ends.")                                                                      \
    X(NAK_ACCESS, true, "NAK: remote access error", "IBTA 9.9.2, 9.7.5.2.2",                       \
      "The key (rkey) does not open this memory, or does not give this right. The connection "     \
      "ends.")                                                                                     \
    X(NAK_OPERATION, false, "NAK: remote operational error", "IBTA 9.9.2, 9.7.5.2.2",              \
      "The peer could not carry out the request. The connection ends.")                            \
    X(RESERVED, true, "reserved syndrome", "IBTA 9.7.5.2.1, table 47",                             \
      "An acknowledgement with a code that has no meaning; receivers ignore it.")                  \
    X(UNSENT, true, "answer to nothing", "IBTA 9.7.5",                                             \
      "An acknowledgement of a PSN that was not sent before.")                                     \
    X(ORDER, true, "packets of a message out of order", "IBTA 9.4",                                \
      "A message is one Only packet, or First, Middle and Last; this one begins in the middle, "   \
      "or a new one begins within it.")                                                            \
    X(LENGTH, true, "packet of a wrong length", "IBTA 9.4",                                        \
      "All packets of a message but the last are as long as the path MTU.")                        \
    X(MALFORMED, true, "not a packet", "IBTA 9.2, 9.6",                                            \
      "Bytes at RoCE's port that are not a packet; receivers drop them.")                          \
    X(ICRC, true, "wrong checksum (ICRC)", "IBTA A17.3.3, CA17-24",                                \
      "The packet was changed on its way, or its sender computes wrongly; receivers drop it.")     \
    X(MARKED, false, "marked by a router (ECN)", "IBTA A17.9.3, CA17-44",                          \
      "A queue on the way grew. The receiver answers with a congestion notification (CNP).")       \
    X(NOTIFIED, false, "congestion notification (CNP)", "IBTA A17.9.3, CA17-45",                   \
      "The receiver asks the sender to slow down.")                                                \
    X(BLOCK_AGAIN, false, "block packet sent again", "docs/block-transport.md",                    \
      "A packet of a block was lost, or taken for lost, and was sent once more.")                  \
    X(BLOCK_NOT_READY, false, "block: receiver not ready (RNR)", "docs/block-transport.md",        \
      "A message came for which no receive was posted. The sender waits and tries again.")         \
    X(BLOCK_REFUSED, true, "block: message refused", "docs/block-transport.md",                    \
      "The request is invalid, or its key does not open this memory. The connection ends.")        \
    X(BLOCK_CONTRADICTS, true, "block packet contradicts itself", "docs/block-transport.md",       \
      "Fields of the packet do not fit each other; receivers drop it.")                            \
    X(SRD_AGAIN, false, "SRD packet sent again", "SRD-23, wire/srd.h",                             \
      "A packet of a message was lost, or taken for lost, and was sent once more.")                \
    X(SRD_NOT_READY, false, "SRD: no receive", "SRD-24, wire/srd.h",                               \
      "A message came for which no receive was posted. It comes again, with other PSNs.")          \
    X(SRD_REFUSED, true, "SRD: request refused", "SRD-09, wire/srd.h",                             \
      "The target refuses a request for good. The sender's completion has the status.")            \
    X(SRD_STALE, false, "SRD: flow not known", "SRD-22, wire/srd.h",                               \
      "The target does not know the flow of a request: it is a new process, or forgot the sender.")
/* clang-format on */

#define REPORT_NAME(name, broken, title, rule, meaning) REPORT_##name,
enum report_rule {
    /* clang-format off */
    REPORT_ODDITIES(REPORT_NAME)
    REPORT_RULES,
    /* clang-format on */
};

struct report_words {
    bool breaks;
    const char *title, *rule, *meaning;
};
extern const struct report_words report_rules[REPORT_RULES];

#endif
