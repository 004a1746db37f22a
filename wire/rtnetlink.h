/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rtnetlink - Linux' messages about network interfaces and their addresses, and requests for them.
 *
 * Purpose    Between the messages of NETLINK_ROUTE and what they say: which interface is up and has
 *            a carrier, which has which address.
 * Inputs     What one call received from such a socket.
 * Outputs    One message after the other, or the verdict that there is no sense in the rest.
 * Units      Octets; integers are the host's.
 * Limits     Links and addresses alone; of a link its flags, of an address itself.
 * Source     Linux Documentation/userspace-api/netlink/intro.rst; rtnetlink(7), netlink(7).
 */
#ifndef WIRE_RTNETLINK_H
#define WIRE_RTNETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTNETLINK_REQUEST_BYTES_MAX 64u

enum rtnetlink_kind {
    RTNETLINK_OTHER,        /* Nothing that is looked at here. */
    RTNETLINK_LINK,         /* An interface, as it is now. */
    RTNETLINK_LINK_GONE,    /* There is no such interface any more. */
    RTNETLINK_ADDRESS,      /* An interface has an address that packets may come from, ... */
    RTNETLINK_ADDRESS_GONE, /* ... or does not have it any more, or not yet. */
    RTNETLINK_DONE,         /* All that was asked for has been told. */
    RTNETLINK_REFUSED,      /* It will not be told. */
    RTNETLINK_OVERRUN,      /* Something was not told, for want of memory. */
};

struct rtnetlink_message {
    enum rtnetlink_kind kind;
    /* Those of the request that this message answers, or whose change it reports; 0: there is no
     * such request. */
    uint32_t sequence, port_id;
    bool interrupted;         /* The state that is being told has changed meanwhile: ask again. */
    uint32_t interface_index; /* Links and addresses. */
    bool up, carrier;         /* Links: switched on; and the cable leads to somebody. */
    uint8_t address[16];      /* Addresses; those of IPv4 in the mapped form. */
};

enum rtnetlink_verdict {
    RTNETLINK_MESSAGE,
    RTNETLINK_END,       /* There is no more. */
    RTNETLINK_MALFORMED, /* This message is none, and where the next one begins is not known. */
};

/* Takes the message at `*at`, which is 0 first and then left alone, of `count` octets. */
enum rtnetlink_verdict rtnetlink_next(const uint8_t *bytes, size_t count, size_t *at,
                                      struct rtnetlink_message *message);

/* Requests for all links or all addresses of the network namespace. Return their length. */
size_t rtnetlink_ask_links(uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX], uint32_t sequence);
size_t rtnetlink_ask_addresses(uint8_t bytes[RTNETLINK_REQUEST_BYTES_MAX], uint32_t sequence);

#endif
