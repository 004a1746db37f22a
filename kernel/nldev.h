/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev - the netlink protocol by which programs ask a kernel for its RDMA devices (iproute2's
 * `rdma`, librdmacm): requests to replies.
 *
 * Purpose    Judges every byte of a request, and writes what a kernel would answer for one device.
 * Inputs     A program's bytes; what there is to tell, as the caller looked it up for the request.
 * Outputs    Messages in a buffer of the caller's, to be cut into datagrams.
 * Ownership  None: a request points into the program's bytes.
 * Threads    Any; no state.
 * Units      Bytes; numbers in the machine's byte order, as netlink has them.
 * Limits     Messages of NLDEV_DATAGRAM_BYTES: what does not fit a counters' message is left out,
 *            and entries of a dump are as many as the buffer has room for.
 * Source     netlink(7); linux/netlink.h and rdma/rdma_netlink.h, whose comments name each
 *            attribute's type.
 */
#ifndef KERNEL_NLDEV_H
#define KERNEL_NLDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Readers have a page for a datagram (libmnl), so that no datagram has more. */
#define NLDEV_DATAGRAM_BYTES 4096

#define NLDEV_NAME_BYTES 64

/* -- State to report ----------------------------------------------------------------------------*/

enum nldev_kind {
    NLDEV_PD,
    NLDEV_CQ,
    NLDEV_QP,
    NLDEV_CM_ID,
    NLDEV_MR,
    NLDEV_CTX,
    NLDEV_SRQ,
    NLDEV_KINDS,
};

/* As `rdma resource` calls it. */
const char *nldev_kind_name(enum nldev_kind kind);

/* Places in struct nldev_resource's values. An address takes four: its family (0: none is known),
 * its port, and the halves of 16 bytes as big-endian numbers, an IPv4 address in the last four. */
enum nldev_value {
    PD_USERS = 1,
    PD_CTXN,
    CQ_ENTRIES = 1,
    CQ_USERS,
    CQ_CTXN,
    QP_PDN = 1,
    QP_TYPE,
    QP_STATE,
    QP_SEND_PSN,
    QP_PEER,
    QP_RECEIVE_PSN,
    QP_MIGRATION,
    CM_ID_QPN = 1,
    CM_ID_TYPE,
    CM_ID_STATE,
    CM_ID_PORT_SPACE,
    CM_ID_SOURCE,
    CM_ID_DESTINATION = CM_ID_SOURCE + 4,
    MR_PDN = 1,
    MR_BYTES,
    MR_IOVA,
    MR_RKEY,
    MR_LKEY,
    SRQ_PDN = 1,
    SRQ_TYPE,
    SRQ_CQN,
    NLDEV_NUMBER = 0, /* The object's own number, of every kind. */
    NLDEV_VALUES = CM_ID_DESTINATION + 4,
};

struct nldev_resource {
    uint32_t pid;
    uint32_t present; /* One bit for each value that there is. */
    uint64_t values[NLDEV_VALUES];
};

static inline void nldev_set(struct nldev_resource *resource, enum nldev_value at, uint64_t value)
{
    resource->present |= 1u << at;
    resource->values[at] = value;
}

/* A line of text for an object, without its process, and the most bytes that it takes. print
 * returns its length, with the line end; 0: the line needs more than `bytes`. parse takes a line
 * without the line end. */
#define NLDEV_LINE_BYTES (8 + 17 * NLDEV_VALUES)
size_t nldev_print(const struct nldev_resource *resource, char *text, size_t bytes);
bool nldev_parse(const char *line, struct nldev_resource *resource);

struct nldev_counter {
    const char *name;
    uint64_t value;
};

/* One device with one port. */
struct nldev_device {
    uint32_t index;
    const char *name, *firmware;
    const char *protocol; /* NULL: none that netlink has a name for. */
    uint64_t node_guid, capabilities;
    uint8_t node_type, port_state, port_physical_state;
    uint32_t interface_index; /* 0: none, or its name is not known. */
    const char *interface_name;
    uint64_t verbs_number, cm_number; /* The character devices'. */
    const char *verbs_name;
    uint32_t verbs_abi, cm_abi; /* The latter 0: there is no such device. */
    /* All 0, unless nldev_wants_* asks for them. */
    uint64_t totals[NLDEV_KINDS];
    const struct nldev_resource *resources; /* Those of the kind that was asked for. */
    size_t resource_count;
    const struct nldev_counter *counters; /* The first `lasting_counters` are always told of. */
    size_t counter_count, lasting_counters;
};

/* -- Requests -----------------------------------------------------------------------------------*/

/* One message of a program. */
struct nldev_request {
    uint16_t type, flags;
    uint32_t sequence, port_id; /* As its header has them. */
    uint16_t command;           /* enum rdma_nldev_command. */
    bool dump;
    int error; /* Not 0: this is the answer. */
    const uint8_t *bytes;
    size_t count;
    /* Attributes; those that do not matter to any command are passed over. */
    bool has_device, has_port, has_number, has_statistic;
    uint32_t device, port;
    uint32_t number; /* The object's, by the attribute of the command's kind. */
    uint32_t statistic;
    char chardev[NLDEV_NAME_BYTES]; /* Empty: not named. */
};

/* The next message of `count` bytes from `*at` on, which moves behind it. False: there is none. The
 * bytes that are left over are no message, and a kernel ignores them, too. */
bool nldev_next(const uint8_t *bytes, size_t count, size_t *at, struct nldev_request *request);

/* The state that must be looked up before the request is answered. */
bool nldev_wants_totals(const struct nldev_request *request);
bool nldev_wants_counters(const struct nldev_request *request);
/* False: no objects. */
bool nldev_wants_objects(const struct nldev_request *request, enum nldev_kind *kind);

/* -- Replies ------------------------------------------------------------------------------------*/

struct nldev_out {
    uint8_t *bytes; /* There are `room`: at least 4 * NLDEV_DATAGRAM_BYTES. */
    size_t room, used;
    uint32_t port_id;   /* The program's socket. */
    uint32_t left_out;  /* Objects and counters that there was no room for. */
    bool full;          /* The message under way is not whole. */
    size_t message_end; /* Where the message under way has to end. */
};

/* Appends all that is answered to one request. `device` NULL: there is none. False: there is no
 * room left for another answer; nothing was appended. */
bool nldev_answer(const struct nldev_request *request, const struct nldev_device *device,
                  struct nldev_out *out);

/* How many of `count` bytes of messages make the next datagram. */
size_t nldev_datagram(const uint8_t *bytes, size_t count);

#endif
