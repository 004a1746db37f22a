/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/stat_server.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"

int stat_server_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                               STAT_SOCKET_PREFIX "%d", getpid());
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
    CHECK(bytes <= sizeof(address));
    const int fd =
        descriptor_own(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0) {
        return -1;
    }
    if (system_bind(fd, (const struct sockaddr *)&address, bytes) != 0 ||
        system_listen(fd, 8) != 0) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

static bool allowed(int client)
{
    CHECK(client >= 0);
    const uid_t user = local_user(client);
    return user == geteuid() || user == 0;
}

int stat_server_accept(int fd)
{
    const int client = local_accept_anybody(fd);
    if (client >= 0 && !allowed(client)) {
        descriptor_close(client);
        return -1;
    }
    return client;
}

bool stat_server_serves_root(int client)
{
    return local_user(client) == 0;
}

static bool say(int client, const char *text, size_t bytes)
{
    CHECK(client >= 0 && bytes > 0);
    return system_send(client, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

bool stat_server_answer(int client, const char *device, const struct stat_line *lines,
                        uint32_t count)
{
    char text[8192];
    size_t used = (size_t)snprintf(text, sizeof(text), "device %s\n" STAT_VERSION_NAME " %d\n",
                                   device, STAT_VERSION);
    for (uint32_t i = 0; i < count && used < sizeof(text); i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %" PRIu64 "\n",
                                 lines[i].name, lines[i].value);
    }
    return used < sizeof(text) && say(client, text, used);
}

static const char *protocol_name(bool blocks)
{
    return blocks ? "block" : "rc";
}

static int describe(char *text, size_t bytes, const struct stat_connection *connection)
{
    const struct qp_report *report = &connection->report;
    char peer[INET6_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET6, connection->peer.bytes, peer, sizeof(peer));
    return snprintf(text, bytes,
                    "connection qpn=%" PRIu32 " peer=%s peer_qpn=%" PRIu32
                    " sends=%s receives=%s round_trip_ns=%" PRIu64 " losses=%" PRIu64
                    " paths=%u window_bytes=%" PRIu64 " flight_bytes=%" PRIu64 "\n",
                    connection->qpn, peer, connection->peer_qpn,
                    protocol_name(report->sends_blocks), protocol_name(report->receives_blocks),
                    report->round_trip_ns, report->losses, report->paths, report->window_bytes,
                    report->flight_bytes);
}

bool stat_server_connections(int client, const struct stat_connection *connections, uint32_t count)
{
    char text[8192];
    size_t used = 0;
    CHECK(count <= STAT_CONNECTIONS_AT_ONCE);
    for (uint32_t i = 0; i < count && used < sizeof(text); i++) {
        used += (size_t)describe(text + used, sizeof(text) - used, &connections[i]);
    }
    INVARIANTS(CHECK(used < sizeof(text)));
    return used < sizeof(text) && (used == 0 || say(client, text, used));
}

/* -- Wishes -------------------------------------------------------------------------------------*/

#define WISH_PREFIX   "nonic-wish/"
#define MESSAGE_BYTES 8191
#define NAMES_TRIED   16

bool stat_server_wish(int client, char wish[STAT_WISH_BYTES])
{
    struct sockaddr_un address = {0};
    socklen_t bytes = sizeof(address);
    const size_t prefix = sizeof(WISH_PREFIX) - 1;
    wish[0] = '\0';
    if (getpeername(client, (struct sockaddr *)(void *)&address, &bytes) != 0) {
        return false;
    }
    if (bytes <= offsetof(struct sockaddr_un, sun_path) + 1 + prefix ||
        memcmp(address.sun_path + 1, WISH_PREFIX, prefix) != 0) {
        return true;
    }
    const char *word = address.sun_path + 1 + prefix;
    const size_t room = bytes - offsetof(struct sockaddr_un, sun_path) - 1 - prefix;
    const char *end = memchr(word, '/', room);
    if (end != NULL && end - word < STAT_WISH_BYTES) {
        memcpy(wish, word, (size_t)(end - word));
        wish[end - word] = '\0';
    }
    return true;
}

bool stat_server_wish_for(int client, const char *wish)
{
    static atomic_uint last;
    CHECK(strlen(wish) < STAT_WISH_BYTES && strchr(wish, '/') == NULL);
    for (int i = 0; i < NAMES_TRIED; i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const int count =
            snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, WISH_PREFIX "%s/%d/%u",
                     wish, getpid(), atomic_fetch_add(&last, 1));
        const socklen_t bytes =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
        if (system_bind(client, (const struct sockaddr *)&address, bytes) == 0) {
            return true;
        }
    }
    return false;
}

void stat_server_say(int client, const char *text, size_t bytes)
{
    while (bytes > 0) {
        size_t part = bytes < MESSAGE_BYTES ? bytes : MESSAGE_BYTES;
        while (part > 0 && text[part - 1] != '\n') {
            part--;
        }
        if (part == 0 || !say(client, text, part)) {
            return;
        }
        text += part;
        bytes -= part;
    }
}

void stat_server_close(int client)
{
    descriptor_close(client);
}
