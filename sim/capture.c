/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Times count units of 10^-12 s, or 10^-9 s. */
#define PICOSECONDS 12
#define NANOSECONDS 9

struct sim_capture {
    FILE *file;
    uint64_t packets;
    uint64_t unit_ps;
    uint8_t block[PCAPNG_BYTES_MAX];
};

static struct sim_capture *open_file(const char *path, enum pcapng_link link, uint8_t resolution,
                                     char *error, size_t error_bytes)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        snprintf(error, error_bytes, "cannot write '%s': %s", path, strerror(errno));
        return NULL;
    }
    struct sim_capture *capture = calloc(1, sizeof(*capture));
    CHECK(capture != NULL);
    capture->file = file;
    capture->unit_ps = resolution == PICOSECONDS ? 1 : 1000;
    const struct pcapng_interface interface = {"lab", link, resolution, NULL};
    const size_t bytes = pcapng_encode_header(capture->block, "nonic", &interface);
    fwrite(capture->block, 1, bytes, file);
    return capture;
}

struct sim_capture *sim_capture_open(const char *path, enum pcapng_link link, char *error,
                                     size_t error_bytes)
{
    return open_file(path, link, PICOSECONDS, error, error_bytes);
}

struct sim_capture *sim_capture_open_ns(const char *path, enum pcapng_link link, char *error,
                                        size_t error_bytes)
{
    return open_file(path, link, NANOSECONDS, error, error_bytes);
}

void sim_capture_commented(struct sim_capture *capture, uint64_t at_ps, const uint8_t *packet,
                           size_t bytes, const char *comment)
{
    const size_t block_bytes =
        pcapng_encode_bytes(capture->block, at_ps / capture->unit_ps, packet, bytes, comment);
    fwrite(capture->block, 1, block_bytes, capture->file);
    capture->packets++;
}

uint64_t sim_capture_count(const struct sim_capture *capture)
{
    return capture->packets;
}

void sim_capture_packet(struct sim_capture *capture, uint64_t at_ps, const uint8_t *packet,
                        size_t bytes)
{
    sim_capture_commented(capture, at_ps, packet, bytes, NULL);
}

bool sim_capture_close(struct sim_capture *capture, char *error, size_t error_bytes)
{
    const bool good = !ferror(capture->file);
    const bool closed = fclose(capture->file) == 0;
    if (!good || !closed) {
        snprintf(error, error_bytes, "cannot write the capture: %s", strerror(errno));
    }
    free(capture);
    return good && closed;
}
