/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_receive - takes what FERoCE front ends send.
 *
 * An ordinary verbs program, on whichever libibverbs it is loaded with. feroce_receive_options.c
 * reads the command line; feroce_receive_verbs.c has the device and the queue pairs;
 * feroce_receive_take.c takes completions and what was written; feroce_receive_output.c writes
 * files and says how it went; feroce_receive.c joins them with the connection manager.
 */
#ifndef TOOLS_FEROCE_RECEIVE_H
#define TOOLS_FEROCE_RECEIVE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/feroce/checker.h"
#include "transport/feroce/host.h"

#define ERROR_BYTES 200u

struct wishes {
    const char *device; /* NULL: the first one. */
    int gid_index;      /* -1: the first of RoCE v2 and IPv4. */
    uint32_t bind_ip;   /* 0: that of the GID. */
    uint16_t cm_port;
    enum feroce_cm_version cm_version;
    bool active, write_ring, gpu;
    uint32_t remote_ip;
    uint16_t remote_port;
    uint32_t streams, buf_size, num_buf;
    uint32_t pmtu; /* 0: the port's. */
    uint32_t wrap; /* Where the offsets of WRITEs begin anew. */
    enum feroce_check check;
    const char *dump, *stats_csv;
    uint64_t max_messages; /* In each stream; 0: no end. */
};

struct device {
    struct ibv_context *context;
    struct ibv_port_attr port;
    int gid_index;
    uint32_t ip; /* The GID's. */
    enum ibv_mtu mtu;
};

/* A queue pair with what belongs to it. The memory: `wrap` and `buf_size` bytes for WRITEs, then
 * the buffers for SENDs. Memory and counts outlive the queue pair, which each OPEN gets anew. */
struct stream {
    uint32_t index;
    struct ibv_comp_channel *channel;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp; /* NULL: none. */
    uint32_t qpn;      /* The last one's. */
    uint32_t path_mtu; /* Bytes. */
    /* The event that said why a packet was refused; IBV_EVENT_COMM_EST: none has. */
    enum ibv_event_type refusal;
    uint8_t *memory;
    size_t memory_bytes;
    bool is_open;       /* RTS: data may come. */
    bool is_closing;    /* CLOSE was asked for. */
    uint64_t failed_ns; /* When it failed, and CLOSE has to wait; 0: it has not. */
    bool has_more;      /* Perhaps: not all that came has been taken. */
    struct feroce_side remote;
    uint32_t offset;              /* Where the next WRITE begins. */
    uint64_t written, immediates; /* Messages that were written, and completions of them. */
    uint64_t messages, bytes;     /* By all its queue pairs. */
    uint64_t overwritten;         /* Messages in the ring, before they were looked at. */
    uint64_t last_arrival_ns;     /* 0: nothing came. */
    uint64_t csv_messages, csv_bytes;
    struct feroce_checker checker;
    FILE *dump;
    char error[ERROR_BYTES]; /* Why it ended; empty: it went well. */
};

struct receiver {
    struct wishes wishes;
    struct device device;
    struct feroce_host host;
    struct stream streams[FEROCE_STREAMS_MAX];
    int cm; /* The socket of the connection manager. */
    bool stopping;
    FILE *csv;
    uint64_t begun_ns, csv_ns;
};

uint64_t receive_now_ns(void);

/* 0: go on. -1: help was printed. Else the exit status. */
int wishes_parse(struct wishes *wishes, int argc, char **argv);

/* False: `error` (of ERROR_BYTES) says why. */
bool device_open(struct device *device, const struct wishes *wishes, char *error);
/* Memory, completion queue and the like. */
bool stream_init(struct stream *stream, const struct device *device, const struct wishes *wishes,
                 char *error);
/* A queue pair in INIT, all its receives posted. */
bool stream_make(struct stream *stream, const struct wishes *wishes, char *error);
struct feroce_side stream_side(const struct stream *stream);
/* RTR and RTS. */
bool stream_connect(struct stream *stream, const struct device *device,
                    const struct feroce_side *remote, char *error);
/* Takes the messages that have come, then no more: the queue pair is gone. */
void stream_stop(struct stream *stream, const struct wishes *wishes);
bool stream_post(struct stream *stream, const struct wishes *wishes, uint64_t buffer);

/* Completions, and in a ring messages, that are there, but not without end (`has_more`). False: the
 * stream has failed. */
bool stream_take(struct stream *stream, const struct wishes *wishes);
/* Takes the wakeup of a completion channel. */
void stream_wake(struct stream *stream);

bool output_open(struct receiver *receiver, char *error);
void output_tick(struct receiver *receiver, uint64_t now_ns);
/* The last lines of the table, and how it went. False: something went wrong. */
bool output_close(struct receiver *receiver);

#endif
