/* SPDX-License-Identifier: BSD-2-Clause
 *
 * message - what nonic and a simulator that is a process of its own say to each other, in octets.
 *
 * Purpose    A stream carries one message after the other. nonic grants the simulator time; the
 *            simulator runs up to there, tells what happened at its ports, and says that it did.
 *
 *                simulator: HELLO                      its ports
 *                nonic:     PORT...                    how each of them is configured
 *                nonic:     TRACE, RESET, FRAME...,    what the time that is granted begins with
 *                           PAUSE..., GRANT
 *                simulator: FRAME, VIOLATION,          in the order of time
 *                           COUNTERS..., DONE
 *                nonic:     ... GRANT, and so on, or FINISH
 *
 * Errors     What comes from a process is judged: its length, its type, who sends it, and what it
 *            says. Whether it comes at its time is for the caller to judge.
 * Octets     Both ends are on one machine: little-endian. A header of HDL_MESSAGE_HEADER_BYTES
 *            (type 1, port 1, flags 2, length of what follows 4, time 8, value 8), then the rest.
 */
#ifndef HDL_MESSAGE_H
#define HDL_MESSAGE_H

#include "hdl/model.h"
#include "hdl/port.h"

enum {
    HDL_MESSAGE_HEADER_BYTES = 24,
    HDL_MESSAGE_BYTES_MAX = HDL_MESSAGE_HEADER_BYTES + HDL_FRAME_BYTES_MAX,
    HDL_HELLO_PORTS_MAX = HDL_PORTS_MAX + 1, /* One too many can be said, and is refused. */
    HDL_PATH_BYTES_MAX = 4095
};

enum hdl_message_type {
    HDL_HELLO = 1,
    HDL_PORT,
    HDL_TRACE,
    HDL_RESET,
    HDL_FRAME,
    HDL_PAUSE,
    HDL_GRANT,
    HDL_VIOLATION,
    HDL_COUNTERS,
    HDL_DONE,
    HDL_FINISH
};

enum hdl_sender {
    HDL_FROM_NONIC = 1,
    HDL_FROM_MODEL = 2
};

struct hdl_hello {
    uint32_t abi; /* HDL_ABI. If it is another one, nothing else of the message is known. */
    uint32_t ports;
    struct {
        uint32_t number, width_bits;
        const char *scope; /* Shorter than HDL_SCOPE_BYTES. */
    } port[HDL_HELLO_PORTS_MAX];
};

struct hdl_message {
    enum hdl_message_type type;
    uint32_t port;
    /* From the simulator: the edge at which it happened. GRANT, DONE: up to here and including it.
     * To the simulator, FRAME and PAUSE: as in hdl_port_push and hdl_port_pause. */
    uint64_t time_ps;
    union {
        struct hdl_hello hello;
        struct hdl_port_config config; /* PORT. */
        struct {
            const char *path; /* Without an end. */
            uint32_t bytes;
            uint64_t to_ps;
        } trace;    /* All signals from time_ps on are written there. */
        bool reset; /* From the next edge on it is asserted, or not. */
        struct hdl_frame frame;
        struct hdl_pause pause;
        uint64_t period_fs; /* GRANT: of the clock. */
        struct hdl_violation violation;
        struct hdl_counters counters;
    };
};

/* Returns the bytes of a message, at most HDL_MESSAGE_BYTES_MAX; what it says must be valid. */
uint32_t hdl_message_encode(const struct hdl_message *message, uint8_t *bytes);

/* NULL and *used > 0: a message, whose frame, path or scopes lie in `bytes`. NULL and *used == 0:
 * more bytes are needed. Else why it is wrong. */
const char *hdl_message_decode(const uint8_t *bytes, size_t count, enum hdl_sender sender,
                               struct hdl_message *message, uint32_t *used);

#endif
