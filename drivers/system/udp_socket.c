/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/udp_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "wire/inet.h"

#define SOCKET_BYTES_WANTED (4 << 20)

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

int udp_socket_open(uint32_t ip, uint16_t port, bool has_checksum, char *error, size_t error_bytes)
{
    const struct sockaddr_in self = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    const int fd = descriptor_own(system_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        snprintf(error, error_bytes, "no UDP socket: %s", strerror(errno));
        return -1;
    }
    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set_option(fd, IPPROTO_IP, IP_TTL, INET_HOP_LIMIT);
    set_option(fd, SOL_SOCKET, SO_NO_CHECK, !has_checksum);
    set_option(fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BYTES_WANTED);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BYTES_WANTED);
    if (system_bind(fd, (const struct sockaddr *)(const void *)&self, sizeof(self)) != 0) {
        const int reason = errno;
        char text[INET_ADDRSTRLEN];
        snprintf(error, error_bytes, "cannot bind %s port 0x%04x (%u): %s%s",
                 inet_ntop(AF_INET, &self.sin_addr, text, sizeof(text)), port, port,
                 strerror(reason),
                 reason == EADDRINUSE      ? "; each board or design needs an address of its own"
                 : reason == EADDRNOTAVAIL ? "; --address must be one of this machine's"
                 : reason == EACCES        ? "; ports below 1024 may need a privilege"
                                           : "");
        descriptor_close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}
