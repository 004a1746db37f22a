/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_board - functions that the files of `nonic feroce board` share.
 */
#ifndef TOOLS_FEROCE_BOARD_H
#define TOOLS_FEROCE_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/prng.h"
#include "drivers/feroce/feroce_port.h"
#include "transport/feroce/board.h"
#include "transport/feroce/generator.h"

/* -- The wishes of the command line (feroce_board.c) --------------------------------------------*/

enum feroce_data {
    FEROCE_DATA_COUNTER, /* Words that count up (transport/feroce/generator.h). */
    FEROCE_DATA_ZERO,
    FEROCE_DATA_RANDOM,
    FEROCE_DATA_FILE, /* A file for each queue pair, from its beginning. */
    FEROCE_DATA_FD,   /* A descriptor, for the queue pair that is opened first. */
};

struct feroce_wishes {
    struct feroce_board_config board;
    struct feroce_port_config port;
    double time_scale;
    enum feroce_data data;
    const char *path;
    uint64_t seed;
    int fd;
    uint64_t rate;           /* Bits a second on the line; 0: unlimited. */
    struct feroce_meta meta; /* --start: for each queue pair that is opened. */
    uint32_t open_ip;        /* 0: nobody. */
    uint16_t open_port;
    bool waits_for_all, once, polite, stats;
};

/* -- Payload (feroce_data.c) --------------------------------------------------------------------*/

/* The messages of one queue pair. */
struct feroce_stream {
    struct feroce_generator generator; /* When they begin, and the pattern. */
    struct feroce_message message;
    bool in_message;
    bool waits_for_others; /* --wait-open: opened, and not started since. */
    uint32_t done;         /* Bytes of it that are stored. */
    uint8_t *buffer;       /* A file's message, whole: its length is not known before. */
    uint32_t capacity, buffered;
    int fd; /* -1: none, or at its end. */
    struct prng prng;
    uint64_t messages, bytes, padded;
};

struct feroce_source {
    enum feroce_data data;
    const char *path;
    int fd; /* For FEROCE_DATA_FD: -1 once a queue pair has it. */
    uint64_t seed;
};

/* The queue pair was opened. False: its file cannot be read, and errno says why. */
MUST_USE bool feroce_stream_open(struct feroce_stream *stream, struct feroce_source *source,
                                 uint32_t index);
void feroce_stream_close(struct feroce_stream *stream, const struct feroce_source *source);

enum feroce_supply {
    FEROCE_SUPPLY_READY,
    FEROCE_SUPPLY_LATER, /* Neither is a message due nor has a pipe enough. */
    FEROCE_SUPPLY_ENDED,
    FEROCE_SUPPLY_FAILED, /* It cannot be read; errno says why. The stream ends. */
};

/* Is there a message to go on with? Begins the next one if it is due. */
enum feroce_supply feroce_stream_begin(struct feroce_stream *stream,
                                       const struct feroce_source *source, struct instant now);
/* The next bytes of the message. */
void feroce_stream_fill(struct feroce_stream *stream, const struct feroce_source *source,
                        uint8_t *out, uint32_t bytes);

/* -- Refusals (feroce_board_refusal.c) ----------------------------------------------------------*/

/* Prints, in parentheses, what the AETH of a packet of this opcode means and asks; the messages
 * have `bytes` bytes. Nothing for other AETHs. */
void feroce_print_refusal(uint8_t syndrome, uint8_t opcode, uint32_t pmtu, uint32_t bytes);

/* -- The process (feroce_board_run.c) -----------------------------------------------------------*/

/* Returns the exit status. */
int feroce_board_run(const struct feroce_wishes *wishes);

#endif
