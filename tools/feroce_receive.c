/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic feroce receive - streams, each at its place in the connection manager.
 */
#include "tools/feroce_receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/feroce_text.h"

#define SECOND_NS UINT64_C(1000000000)
#define IDLE_NS   UINT64_C(100000000)
#define RING_NS   UINT64_C(50000) /* Between two looks at memory that is written silently. */
/* From a failure to CLOSE: the device's NAK, which says why, comes first. */
#define REFUSAL_NS UINT64_C(20000000)
#define ROUND_MAX  64 /* Messages until data is looked at. */

static volatile sig_atomic_t interrupts;

static void on_signal(int number)
{
    (void)number;
    interrupts = interrupts + 1;
}

uint64_t receive_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static struct instant now(void)
{
    return (struct instant){receive_now_ns()};
}

/* -- The connection manager's socket ------------------------------------------------------------*/

/* Unconnected: a board speaks from another port than the one it listens at. */
static bool open_cm(struct receiver *receiver, char *error)
{
    const struct wishes *wishes = &receiver->wishes;
    const uint32_t ip = wishes->bind_ip != 0 ? wishes->bind_ip : receiver->device.ip;
    const struct sockaddr_in own = {
        .sin_family = AF_INET, .sin_port = htons(wishes->cm_port), .sin_addr.s_addr = htonl(ip)};
    char text[TEXT_IP_BYTES];
    receiver->cm = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (receiver->cm < 0 || bind(receiver->cm, (const struct sockaddr *)&own, sizeof(own)) != 0) {
        snprintf(error, ERROR_BYTES, "cannot listen at %s:%u: %s", text_of_ip(ip, text),
                 wishes->cm_port, strerror(errno));
        return false;
    }
    printf("listening at %s:%u; ", text_of_ip(ip, text), wishes->cm_port);
    printf("queue pairs are at %s, path MTU %u\n", text_of_ip(receiver->device.ip, text),
           128u << receiver->device.mtu);
    fflush(stdout);
    return true;
}

static void send_all(struct receiver *receiver)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip = 0;
    uint16_t port = 0;
    while (feroce_host_next(&receiver->host, now(), bytes, &ip, &port)) {
        const struct sockaddr_in to = {
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
        /* One that does not leave is lost like any other: it is sent again. */
        (void)!sendto(receiver->cm, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to,
                      sizeof(to));
    }
}

/* -- Streams ------------------------------------------------------------------------------------*/

/* A queue pair for the next front end, or for the one that is asked. */
static void stream_begin(struct receiver *receiver, struct stream *stream)
{
    const struct wishes *wishes = &receiver->wishes;
    char why[ERROR_BYTES];
    if (!stream_make(stream, wishes, why)) {
        stream_stop(stream, wishes);
        snprintf(stream->error, ERROR_BYTES, "%s", why);
        return;
    }
    const struct feroce_side side = stream_side(stream);
    if (wishes->active) {
        feroce_host_open(&receiver->host, stream->index, &side, wishes->remote_ip,
                         wishes->remote_port);
    } else {
        feroce_host_offer(&receiver->host, stream->index, &side);
    }
}

static bool is_enough(const struct receiver *receiver, const struct stream *stream)
{
    const uint64_t most = receiver->wishes.max_messages;
    return stream->error[0] != '\0' ||
           (most != 0 && stream->messages + stream->overwritten >= most);
}

/* The connection is no more. A stream that waits to be opened waits again. */
static void stream_ended(struct receiver *receiver, struct stream *stream)
{
    stream_stop(stream, &receiver->wishes);
    if (!receiver->wishes.active && !receiver->stopping && !is_enough(receiver, stream)) {
        stream_begin(receiver, stream);
    }
}

/* While OPEN is under way, only its reply will tell which queue pair of the board's is to be
 * closed: that is waited for. */
static void stream_close(struct receiver *receiver, struct stream *stream)
{
    const enum feroce_stream_state state = receiver->host.streams[stream->index].state;
    if (stream->qp == NULL || stream->is_closing || state == FEROCE_STREAM_LEAVING ||
        state == FEROCE_STREAM_OPENING) {
        return;
    }
    stream->is_closing = true;
    if (!feroce_host_close(&receiver->host, stream->index, false)) {
        stream_stop(stream, &receiver->wishes);
    }
}

static void accept_board(struct receiver *receiver, struct stream *stream,
                         const struct feroce_side *remote)
{
    char why[ERROR_BYTES];
    if (stream_connect(stream, &receiver->device, remote, why)) {
        feroce_host_ready(&receiver->host, stream->index, now());
        return;
    }
    /* It asked for what the device cannot do; the next one may ask for something else. */
    fprintf(stderr, "nonic: stream %u: a front end is refused: %s\n", stream->index, why);
    feroce_host_refuse(&receiver->host, stream->index);
    stream_ended(receiver, stream);
}

static void take_event(struct receiver *receiver, const struct feroce_host_event *event)
{
    struct stream *stream = &receiver->streams[event->index];
    const char *reason = feroce_host_reason_name(event->reason);
    switch (event->kind) {
    case FEROCE_HOST_ACCEPT: accept_board(receiver, stream, &event->remote); return;
    case FEROCE_HOST_CONNECTED:
        if (!stream_connect(stream, &receiver->device, &event->remote, stream->error) ||
            receiver->stopping) {
            stream_close(receiver, stream);
        }
        return;
    case FEROCE_HOST_PEER_CLOSED:
        stream_stop(stream, &receiver->wishes);
        feroce_host_stopped(&receiver->host, event->index);
        break;
    case FEROCE_HOST_CLOSED: break;
    case FEROCE_HOST_REFUSED:
        snprintf(stream->error, ERROR_BYTES, "it was not opened: %s", reason);
        break;
    case FEROCE_HOST_GAVE_UP:
        if (stream->is_closing) {
            fprintf(stderr, "nonic: stream %u: the front end may not know that it is closed: %s\n",
                    stream->index, reason);
        } else {
            snprintf(stream->error, ERROR_BYTES, "it was not opened: %s", reason);
        }
        break;
    }
    stream_ended(receiver, stream);
}

static void take_events(struct receiver *receiver)
{
    struct feroce_host_event event;
    while (feroce_host_next_event(&receiver->host, &event)) {
        take_event(receiver, &event);
    }
    send_all(receiver);
}

static void take_datagrams(struct receiver *receiver)
{
    uint8_t bytes[2 * FEROCE_CM_BYTES];
    for (int i = 0; i < ROUND_MAX; i++) {
        struct sockaddr_in from = {0};
        socklen_t length = sizeof(from);
        const ssize_t count =
            recvfrom(receiver->cm, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &length);
        if (count < 0) {
            return;
        }
        const uint64_t suspects = receiver->host.cm_version_suspect;
        (void)feroce_host_on_cm(&receiver->host, bytes, (size_t)count, ntohl(from.sin_addr.s_addr),
                                ntohs(from.sin_port), now());
        if (suspects == 0 && receiver->host.cm_version_suspect != 0) {
            fprintf(stderr, "nonic: a message looks like version 2: little-endian firmware before "
                            "February 2026? Try --cm-version 2\n");
        }
        take_events(receiver);
    }
}

/* -- The loop -----------------------------------------------------------------------------------*/

static void take_data(struct receiver *receiver)
{
    for (uint32_t i = 0; i < receiver->wishes.streams; i++) {
        struct stream *stream = &receiver->streams[i];
        if (stream->is_open && !stream_take(stream, &receiver->wishes)) {
            stream->is_open = false;
            stream->failed_ns = receive_now_ns();
        } else if (stream->failed_ns != 0 && receive_now_ns() - stream->failed_ns >= REFUSAL_NS) {
            stream->failed_ns = 0;
            stream_close(receiver, stream);
        } else if (stream->is_open && is_enough(receiver, stream)) {
            stream_close(receiver, stream);
        }
    }
    send_all(receiver);
}

static bool is_over(const struct receiver *receiver)
{
    for (uint32_t i = 0; i < receiver->wishes.streams; i++) {
        if (receiver->streams[i].qp != NULL) {
            return false;
        }
    }
    return true;
}

/* Sleeps until something comes, a deadline, or a signal. */
static void sleep_for(struct receiver *receiver, const sigset_t *signals)
{
    struct pollfd wakers[1 + FEROCE_STREAMS_MAX];
    const uint32_t streams = receiver->wishes.streams;
    const uint64_t at = receive_now_ns();
    const uint64_t deadline = feroce_host_deadline(&receiver->host).ns;
    uint64_t most = IDLE_NS;
    wakers[0] = (struct pollfd){.fd = receiver->cm, .events = POLLIN};
    for (uint32_t i = 0; i < streams; i++) {
        wakers[1 + i] = (struct pollfd){.fd = receiver->streams[i].channel->fd, .events = POLLIN};
        most = receiver->wishes.write_ring && receiver->streams[i].is_open ? RING_NS : most;
    }
    for (uint32_t i = 0; i < streams; i++) {
        most = receiver->streams[i].is_open && receiver->streams[i].has_more ? 0 : most;
        most = receiver->streams[i].failed_ns != 0 && most > REFUSAL_NS ? REFUSAL_NS : most;
    }
    most = deadline <= at ? 0 : deadline - at < most ? deadline - at : most;
    const struct timespec time = {.tv_nsec = (long)most};
    if (ppoll(wakers, 1 + streams, &time, signals) <= 0) {
        return;
    }
    for (uint32_t i = 0; i < streams; i++) {
        if (wakers[1 + i].revents != 0) {
            stream_wake(&receiver->streams[i]);
        }
    }
}

/* A sleep that ends at once, because something is ready, lets none in. */
static void let_signals_in(const sigset_t *signals)
{
    const struct timespec none = {0};
    (void)ppoll(NULL, 0, &none, signals);
}

static void stop(struct receiver *receiver)
{
    receiver->stopping = true;
    for (uint32_t i = 0; i < receiver->wishes.streams; i++) {
        stream_close(receiver, &receiver->streams[i]);
    }
    send_all(receiver);
}

/* Until all streams are over; a second signal does not wait for the answers to CLOSE. */
static void run(struct receiver *receiver)
{
    sigset_t blocked, signals;
    const struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &signals);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    send_all(receiver);
    while (!is_over(receiver) && interrupts < 2) {
        sleep_for(receiver, &signals);
        take_datagrams(receiver);
        take_data(receiver);
        feroce_host_on_time(&receiver->host, now());
        take_events(receiver);
        let_signals_in(&signals);
        if (interrupts > 0 && !receiver->stopping) {
            stop(receiver); /* Packets that have come before are taken. */
        }
        output_tick(receiver, receive_now_ns());
    }
}

static bool begin(struct receiver *receiver, char *error)
{
    const struct wishes *wishes = &receiver->wishes;
    if (!device_open(&receiver->device, wishes, error) || !open_cm(receiver, error)) {
        return false;
    }
    feroce_host_init(&receiver->host, &(struct feroce_host_config){.cm_version = wishes->cm_version,
                                                                   .ip = receiver->device.ip,
                                                                   .port = wishes->cm_port});
    for (uint32_t i = 0; i < wishes->streams; i++) {
        receiver->streams[i].index = i;
        if (!stream_init(&receiver->streams[i], &receiver->device, wishes, error)) {
            return false;
        }
    }
    if (!output_open(receiver, error)) {
        return false;
    }
    for (uint32_t i = 0; i < wishes->streams; i++) {
        stream_begin(receiver, &receiver->streams[i]);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct receiver receiver;
    char error[ERROR_BYTES];
    const int status = wishes_parse(&receiver.wishes, argc, argv);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    if (!begin(&receiver, error)) {
        fprintf(stderr, "nonic: %s\n", error);
        return 1;
    }
    run(&receiver);
    return output_close(&receiver) ? 0 : 1;
}
