/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/feroce_ctl.h"
#include "tools/feroce_text.h"

static struct sockaddr_in address_of(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

uint32_t ctl_address_towards(uint32_t ip)
{
    const struct sockaddr_in to = address_of(ip, FEROCE_PORT_CM);
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool known = fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
                       getsockname(fd, (struct sockaddr *)&own, &bytes) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return known ? ntohl(own.sin_addr.s_addr) : 0;
}

static const char *request_name(uint8_t request)
{
    switch (request) {
    case FEROCE_NULL: return "NULL";
    case FEROCE_OPEN_QP: return "OPEN_QP";
    case FEROCE_SEND_QP_INFO: return "SEND_QP_INFO";
    case FEROCE_MODIFY_QP_RTS: return "MODIFY_QP_RTS";
    case FEROCE_CLOSE_QP: return "CLOSE_QP";
    case FEROCE_REQUEST_ERROR: return "ERROR";
    default: return "a request without a name";
    }
}

static const char *ack_name(uint8_t ack)
{
    switch (ack) {
    case FEROCE_ACK_NULL: return "no answer in it";
    case FEROCE_ACK: return "ACK";
    case FEROCE_ACK_NO_QP: return "NO_QP";
    case FEROCE_ACK_NAK: return "NAK";
    case FEROCE_ACK_ERROR: return "ERROR";
    default: return "an answer without a name";
    }
}

/* In words, on one line. */
static void ctl_print(const struct feroce_cm *message)
{
    char ip[TEXT_IP_BYTES];
    printf("%s: %s; board's QPN 0x%x, PSN %u, R_Key 0x%x, address 0x%llx, IP %s; ours 0x%x\n",
           request_name(message->request), ack_name(message->ack), message->local.qpn,
           message->local.psn, message->local.rkey, (unsigned long long)message->local.address,
           text_of_ip(message->local.ip, ip), message->remote.qpn);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int fail(int fd, const char *what, uint32_t ip, uint16_t port)
{
    char text[TEXT_IP_BYTES];
    fprintf(stderr, "nonic: cannot %s %s:%u: %s\n", what, text_of_ip(ip, text), port,
            strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    return 1;
}

/* A datagram of the board's, by `until`. 0: none came. */
static size_t receive(int fd, const struct ctl_wish *wish, uint64_t until, uint8_t *bytes,
                      size_t room)
{
    for (uint64_t now = now_ns(); now < until; now = now_ns()) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        struct sockaddr_in from = {0};
        socklen_t length = sizeof(from);
        if (poll(&ready, 1, (int)((until - now) / 1000000u + 1)) <= 0) {
            continue;
        }
        const ssize_t count =
            recvfrom(fd, bytes, room, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
        /* An unconnected socket: the board speaks from another port than the one it hears at. */
        if (count > 0 && ntohl(from.sin_addr.s_addr) == wish->remote_ip) {
            return (size_t)count;
        }
    }
    return 0;
}

/* -1: no reply that fits. Others that come in between are named, and cost nothing. */
static int await(int fd, const struct ctl_wish *wish)
{
    const uint64_t until = now_ns() + wish->attempt_ns;
    uint8_t bytes[2 * FEROCE_CM_BYTES];
    for (size_t count; (count = receive(fd, wish, until, bytes, sizeof(bytes))) != 0;) {
        struct feroce_cm reply;
        if (!feroce_cm_decode(wish->version, bytes, count, &reply)) {
            fprintf(stderr, "nonic: the board sent %zu octets, which are no message\n", count);
            continue;
        }
        if (!reply.ack_valid || reply.request != wish->message.request) {
            fprintf(stderr, "nonic: not the reply to this request%s\n",
                    feroce_cm_suspect(bytes, FEROCE_PORT_CM_FROM)
                        ? ": little-endian firmware before February 2026? Try --cm-version 2"
                        : "");
            continue;
        }
        ctl_print(&reply);
        return reply.ack == FEROCE_ACK ? 0 : 1;
    }
    return -1;
}

/* Replies go to the listening port that the message names. */
int ctl_exchange(const struct ctl_wish *wish)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    const struct sockaddr_in own = address_of(wish->bind_ip, wish->message.listening_port);
    const struct sockaddr_in to = address_of(wish->remote_ip, wish->remote_port);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof(own)) != 0) {
        return fail(fd, "listen at", wish->bind_ip, wish->message.listening_port);
    }
    feroce_cm_encode(wish->version, &wish->message, bytes);
    for (uint32_t attempt = 0; attempt == 0 || attempt < wish->attempts; attempt++) {
        if (sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to)) < 0) {
            return fail(fd, "send to", wish->remote_ip, wish->remote_port);
        }
        const int status = wish->attempts == 0 ? 0 : await(fd, wish);
        if (status >= 0) {
            close(fd);
            return status;
        }
    }
    char text[TEXT_IP_BYTES];
    fprintf(stderr, "nonic: no reply from %s:%u\n", text_of_ip(wish->remote_ip, text),
            wish->remote_port);
    close(fd);
    return 1;
}
