/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_capture - a file of the frames that a board would have sent, and of those that came.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "drivers/feroce/feroce_internal.h"
#include "drivers/system/clock.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "wire/pcapng.h"

#define SENT_OTHERWISE                                                                             \
    "Frames as the board sends them. The system sent identification 0 (--pace fast: the index in " \
    "a call) and an ICRC to match, and its own MACs."
#define SENT_LIKEWISE "Frames as the board sends them. The system sent its own MACs."

struct feroce_capture {
    FILE *file;
    bool ended;
};

/* A full disk ends the capture, not the board: a reader would find nothing behind half of a
 * packet. */
static void judge(struct feroce_capture *capture, bool good)
{
    if (!good && !capture->ended) {
        capture->ended = true;
        fprintf(stderr, "nonic: the capture ends here: %s\n", strerror(errno));
    }
}

static void put(struct feroce_capture *capture, const uint8_t *bytes, size_t count)
{
    if (!capture->ended) {
        judge(capture, fwrite(bytes, 1, count, capture->file) == count);
    }
}

struct feroce_capture *feroce_capture_open(const struct feroce_port_config *config, char *error,
                                           size_t error_bytes)
{
    const struct pcapng_interface interface = {
        .name = "feroce0",
        .link = PCAPNG_LINK_ETHERNET,
        .resolution = 9,
        .comment = config->stack == FEROCE_STACK_2024 || config->exact_ip ? SENT_LIKEWISE
                                                                          : SENT_OTHERWISE};
    uint8_t header[PCAPNG_HEADER_BYTES_MAX];
    struct feroce_capture *capture = malloc(sizeof(*capture));
    const int fd = capture == NULL ? -1 : system_create(config->capture, O_TRUNC, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (file == NULL) {
        snprintf(error, error_bytes, "cannot write %s: %s", config->capture, strerror(errno));
        descriptor_close(fd);
        free(capture);
        return NULL;
    }
    *capture = (struct feroce_capture){.file = file};
    put(capture, header, pcapng_encode_header(header, "nonic feroce board", &interface));
    return capture;
}

void feroce_capture_close(struct feroce_capture *capture)
{
    if (capture != NULL) {
        judge(capture, fclose(capture->file) == 0);
        free(capture);
    }
}

void feroce_capture_flush(struct feroce_capture *capture)
{
    if (capture != NULL) {
        judge(capture, fflush(capture->file) == 0);
    }
}

/* MAC addresses: the board's of RTL2026's examples, and one made of the host's address. */
static void put_macs(struct feroce_frame *frame, bool came)
{
    static const uint8_t board[6] = {0x00, 0x0a, 0x35, 0xde, 0xad, 0x00};
    const uint32_t other = came ? frame->source_ip : frame->destination_ip;
    uint8_t host[6] = {0x02, 0x00};
    store_be32(host + 2, other);
    memcpy(frame->source_mac, came ? host : board, 6);
    memcpy(frame->destination_mac, came ? board : host, 6);
}

static void write_frame(struct feroce_capture *capture, const struct feroce_frame *frame,
                        const uint8_t *payload, size_t count)
{
    CHECK(capture->file != NULL);
    uint8_t bytes[FEROCE_FRAME_HEADERS_BYTES + FEROCE_ROCE_BYTES_MAX];
    uint8_t block[PCAPNG_PACKET_BYTES_MAX];
    const size_t kept = count < FEROCE_ROCE_BYTES_MAX ? count : FEROCE_ROCE_BYTES_MAX;
    feroce_frame_encode(frame, count, bytes);
    memcpy(bytes + FEROCE_FRAME_HEADERS_BYTES, payload, kept);
    put(capture, block,
        pcapng_encode_bytes(block, clock_unix_ns(), bytes, FEROCE_FRAME_HEADERS_BYTES + kept,
                            NULL));
}

void feroce_capture_sent(struct feroce_port *port, const struct inet_flow *flow,
                         uint16_t identification, const uint8_t *bytes, size_t count, bool has_icrc)
{
    if (port->capture == NULL) {
        return;
    }
    uint8_t copy[FEROCE_ROCE_BYTES_MAX];
    CHECK(count <= sizeof(copy) && (!has_icrc || count > ROCE_ICRC_BYTES));
    struct feroce_frame frame = feroce_port_frame(port, flow, identification);
    put_macs(&frame, false);
    memcpy(copy, bytes, count);
    if (has_icrc) {
        const size_t covered = count - ROCE_ICRC_BYTES;
        store_le32(copy + covered, icrc_compute(flow, identification, copy, covered, NULL, 0));
    }
    write_frame(port->capture, &frame, copy, count);
}

void feroce_capture_came(struct feroce_port *port, const struct inet_flow *flow,
                         uint16_t identification, const uint8_t *bytes, size_t count)
{
    if (port->capture == NULL || count > FEROCE_RECEIVE_BYTES_MAX) {
        return;
    }
    struct feroce_frame frame = feroce_port_frame(port, flow, identification);
    frame.service_class = 0; /* We do not know the peer's class. */
    put_macs(&frame, true);
    write_frame(port->capture, &frame, bytes, count);
}
