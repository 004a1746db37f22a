/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_receive_output - dump files, the table of each second, and how it went.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tools/feroce_receive.h"
#include "tools/feroce_text.h"

#define SECOND_NS UINT64_C(1000000000)

/* `stem.NNN.ext`; a name without an ending gets .NNN behind it. */
static void dump_name(const char *name, uint32_t index, uint32_t streams, char *out, size_t room)
{
    const char *slash = strrchr(name, '/'), *base = slash == NULL ? name : slash + 1;
    const char *dot = strrchr(base, '.');
    if (dot == NULL || dot == base) {
        dot = name + strlen(name);
    }
    if (streams == 1) {
        snprintf(out, room, "%s", name);
    } else {
        snprintf(out, room, "%.*s.%03u%s", (int)(dot - name), name, index, dot);
    }
}

static bool open_file(const char *path, FILE **file, char *error)
{
    *file = fopen(path, "we");
    if (*file == NULL) {
        snprintf(error, ERROR_BYTES, "cannot write %.100s: %s", path, strerror(errno));
    }
    return *file != NULL;
}

bool output_open(struct receiver *receiver, char *error)
{
    const struct wishes *wishes = &receiver->wishes;
    receiver->begun_ns = receive_now_ns();
    receiver->csv_ns = receiver->begun_ns;
    for (uint32_t i = 0; wishes->dump != NULL && i < wishes->streams; i++) {
        char path[PATH_MAX];
        dump_name(wishes->dump, i, wishes->streams, path, sizeof(path));
        if (!open_file(path, &receiver->streams[i].dump, error)) {
            return false;
        }
    }
    if (wishes->stats_csv != NULL) {
        if (!open_file(wishes->stats_csv, &receiver->csv, error)) {
            return false;
        }
        fprintf(receiver->csv,
                "t_s,interval_s,stream,qpn,remote_qpn,messages,bytes,msg_rate,gbps\n");
        fflush(receiver->csv);
    }
    return true;
}

/* The messages and bytes of the time since the last line. */
static void write_rows(struct receiver *receiver, uint64_t now_ns)
{
    const double at = (double)(now_ns - receiver->begun_ns) * 1e-9;
    const double interval = (double)(now_ns - receiver->csv_ns) * 1e-9;
    for (uint32_t i = 0; i < receiver->wishes.streams; i++) {
        struct stream *stream = &receiver->streams[i];
        const uint64_t messages = stream->messages - stream->csv_messages;
        const uint64_t bytes = stream->bytes - stream->csv_bytes;
        fprintf(receiver->csv, "%.3f,%.3f,%u,%u,%u,%llu,%llu,%.1f,%.6f\n", at, interval, i,
                stream->qpn, stream->remote.qpn, (unsigned long long)messages,
                (unsigned long long)bytes, interval > 0 ? (double)messages / interval : 0,
                interval > 0 ? (double)bytes * 8e-9 / interval : 0);
        stream->csv_messages = stream->messages;
        stream->csv_bytes = stream->bytes;
    }
    fflush(receiver->csv);
}

static void show_progress(struct receiver *receiver, uint64_t now_ns)
{
    static uint64_t bytes_before;
    uint64_t messages = 0, bytes = 0;
    uint32_t open = 0;
    for (uint32_t i = 0; i < receiver->wishes.streams; i++) {
        messages += receiver->streams[i].messages;
        bytes += receiver->streams[i].bytes;
        open += receiver->streams[i].is_open;
    }
    const double interval = (double)(now_ns - receiver->csv_ns) * 1e-9;
    printf("\r%u streams open, %llu messages, %.3f Gb/s   ", open, (unsigned long long)messages,
           (double)(bytes - bytes_before) * 8e-9 / interval);
    fflush(stdout);
    bytes_before = bytes;
}

void output_tick(struct receiver *receiver, uint64_t now_ns)
{
    if (now_ns < receiver->csv_ns + SECOND_NS) {
        return;
    }
    if (isatty(STDOUT_FILENO)) {
        show_progress(receiver, now_ns);
    }
    if (receiver->csv != NULL) {
        write_rows(receiver, now_ns);
    }
    receiver->csv_ns = now_ns;
}

static bool summarize(const struct receiver *receiver, const struct stream *stream)
{
    const struct feroce_checker *checker = &stream->checker;
    const char *unit = checker->check == FEROCE_CHECK_NUMBER ? "messages" : "words";
    char ip[TEXT_IP_BYTES];
    printf("stream %u: ", stream->index);
    if (stream->remote.qpn == 0) {
        printf("never opened");
    } else {
        printf("QPN 0x%x, front end's 0x%x at %s", stream->qpn, stream->remote.qpn,
               text_of_ip(stream->remote.ip, ip));
    }
    printf(": %llu messages, %llu bytes", (unsigned long long)stream->messages,
           (unsigned long long)stream->bytes);
    if (stream->overwritten != 0) {
        printf(", %llu more were overwritten unseen", (unsigned long long)stream->overwritten);
    }
    if (stream->last_arrival_ns != 0) {
        printf(", the last one after %.3f s",
               (double)(stream->last_arrival_ns - receiver->begun_ns) * 1e-9);
    }
    if (checker->check != FEROCE_CHECK_NONE) {
        printf("; %llu %s missing, %llu repeated, %llu messages with a wrong byte",
               (unsigned long long)checker->missing, unit, (unsigned long long)checker->repeated,
               (unsigned long long)checker->wrong_messages);
    }
    if (checker->first_wrong != FEROCE_NO_OFFSET) {
        printf(", the first one at offset %llu", (unsigned long long)checker->first_wrong);
    }
    printf("%s%s\n", stream->error[0] == '\0' ? "" : "; it ended early: ", stream->error);
    return stream->error[0] == '\0' && feroce_checker_is_content(checker);
}

static bool finish_file(FILE *file)
{
    const bool good = file == NULL || ferror(file) == 0;
    return (file == NULL || fclose(file) == 0) && good;
}

bool output_close(struct receiver *receiver)
{
    bool good = true;
    if (isatty(STDOUT_FILENO)) {
        printf("\n");
    }
    if (receiver->csv != NULL) {
        write_rows(receiver, receive_now_ns());
    }
    if (!finish_file(receiver->csv)) {
        fprintf(stderr, "nonic: the table %s is not whole\n", receiver->wishes.stats_csv);
        good = false;
    }
    for (uint32_t i = 0; i < receiver->wishes.streams; i++) {
        struct stream *stream = &receiver->streams[i];
        if (!finish_file(stream->dump)) {
            fprintf(stderr, "nonic: the dump of stream %u is not whole\n", i);
            good = false;
        }
        good &= summarize(receiver, stream);
    }
    for (int i = FEROCE_HOST_TAKEN + 1; i < FEROCE_HOST_ARRIVALS; i++) {
        if (receiver->host.arrivals[i] != 0) {
            printf("%s %llu\n", feroce_host_arrival_name((enum feroce_host_arrival)i),
                   (unsigned long long)receiver->host.arrivals[i]);
        }
    }
    return good;
}
