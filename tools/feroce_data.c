/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_data - the source of the payload of a board's messages.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tools/feroce_board.h"

static bool is_read(const struct feroce_source *source)
{
    return source->data == FEROCE_DATA_FILE || source->data == FEROCE_DATA_FD;
}

bool feroce_stream_open(struct feroce_stream *stream, struct feroce_source *source, uint32_t index)
{
    feroce_generator_open(&stream->generator);
    prng_init(&stream->prng, source->seed + index);
    stream->in_message = false;
    stream->buffered = 0;
    if (source->data == FEROCE_DATA_FILE) {
        stream->fd = open(source->path, O_RDONLY | O_CLOEXEC);
        return stream->fd >= 0;
    }
    if (source->data == FEROCE_DATA_FD) {
        stream->fd = source->fd;
        source->fd = -1;
        if (stream->fd >= 0) {
            (void)fcntl(stream->fd, F_SETFL, fcntl(stream->fd, F_GETFL) | O_NONBLOCK);
        }
    }
    return true;
}

/* A descriptor that we were given is not ours to close. */
static void leave_file(struct feroce_stream *stream, const struct feroce_source *source)
{
    if (source->data == FEROCE_DATA_FILE && stream->fd >= 0) {
        (void)close(stream->fd);
    }
    stream->fd = -1;
}

void feroce_stream_close(struct feroce_stream *stream, const struct feroce_source *source)
{
    feroce_generator_stop(&stream->generator);
    stream->in_message = false;
    leave_file(stream, source);
    free(stream->buffer);
    stream->buffer = NULL;
    stream->capacity = 0;
}

/* For a message that nothing was read of yet: a host may ask for longer ones than the time before.
 */
static bool make_room(struct feroce_stream *stream, uint32_t length)
{
    if (length <= stream->capacity) {
        return true;
    }
    free(stream->buffer);
    stream->buffer = malloc(length);
    stream->capacity = stream->buffer != NULL ? length : 0;
    return stream->buffer != NULL;
}

/* Reads until a message is whole. At the end of the file the last one is shorter, and zeros make it
 * a multiple of four. */
static enum feroce_supply read_message(struct feroce_stream *stream,
                                       const struct feroce_source *source, uint32_t length)
{
    if (stream->fd < 0) {
        return FEROCE_SUPPLY_ENDED;
    }
    if (!make_room(stream, length)) {
        return FEROCE_SUPPLY_FAILED;
    }
    while (stream->buffered < length) {
        const ssize_t got =
            read(stream->fd, stream->buffer + stream->buffered, length - stream->buffered);
        if (got > 0) {
            stream->buffered += (uint32_t)got;
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return FEROCE_SUPPLY_LATER;
        } else if (got < 0) {
            const int reason = errno;
            leave_file(stream, source);
            errno = reason;
            return FEROCE_SUPPLY_FAILED;
        } else {
            leave_file(stream, source);
            break;
        }
    }
    const uint32_t pad = -stream->buffered & 3u;
    memset(stream->buffer + stream->buffered, 0, pad);
    stream->buffered += pad;
    stream->padded += pad != 0;
    return stream->buffered > 0 ? FEROCE_SUPPLY_READY : FEROCE_SUPPLY_ENDED;
}

enum feroce_supply feroce_stream_begin(struct feroce_stream *stream,
                                       const struct feroce_source *source, struct instant now)
{
    struct feroce_generator *generator = &stream->generator;
    if (stream->in_message) {
        return FEROCE_SUPPLY_READY;
    }
    if (!generator->running) {
        return FEROCE_SUPPLY_ENDED;
    }
    if (!instant_reached(now, feroce_generator_deadline(generator))) {
        return FEROCE_SUPPLY_LATER;
    }
    if (is_read(source)) {
        const enum feroce_supply supply = read_message(stream, source, generator->meta.length);
        if (supply != FEROCE_SUPPLY_READY) {
            if (supply != FEROCE_SUPPLY_LATER) {
                feroce_generator_stop(generator);
            }
            return supply;
        }
    }
    CHECK(feroce_generator_next(generator, now, &stream->message));
    if (is_read(source)) {
        stream->message.length = stream->buffered;
    }
    stream->in_message = true;
    stream->done = 0;
    return FEROCE_SUPPLY_READY;
}

void feroce_stream_fill(struct feroce_stream *stream, const struct feroce_source *source,
                        uint8_t *out, uint32_t bytes)
{
    switch (source->data) {
    case FEROCE_DATA_COUNTER: feroce_generator_fill(&stream->generator, out, bytes); break;
    case FEROCE_DATA_ZERO: memset(out, 0, bytes); break;
    case FEROCE_DATA_RANDOM:
        for (uint32_t at = 0; at < bytes; at += 4) {
            store_le32(out + at, (uint32_t)prng_next(&stream->prng));
        }
        break;
    case FEROCE_DATA_FILE:
    case FEROCE_DATA_FD: memcpy(out, stream->buffer + stream->done, bytes); break;
    }
    stream->done += bytes;
    stream->bytes += bytes;
    if (stream->done == stream->message.length) {
        stream->in_message = false;
        stream->messages++;
        stream->buffered = 0;
    }
}
