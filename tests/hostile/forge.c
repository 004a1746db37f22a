/* SPDX-License-Identifier: BSD-2-Clause
 *
 * forge - sends one SEND Only to a queue pair, from any loopback address.
 *
 *     forge FROM TO QPN PSN
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/roce.h"

#define PAYLOAD_BYTES 64

_Noreturn void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

static void map_v4(uint8_t to[16], const struct in_addr *address)
{
    memset(to, 0, 16);
    to[10] = to[11] = 0xff;
    memcpy(to + 12, address, 4);
}

int main(int count, char **arguments)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
    socklen_t bytes = sizeof(from);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0), discover = IP_PMTUDISC_DO;
    if (count != 5 || inet_pton(AF_INET, arguments[1], &from.sin_addr) != 1 ||
        inet_pton(AF_INET, arguments[2], &to.sin_addr) != 1 ||
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) != 0 ||
        bind(fd, (struct sockaddr *)&from, bytes) != 0 ||
        getsockname(fd, (struct sockaddr *)&from, &bytes) != 0) {
        return 2;
    }
    to.sin_port = htons(ROCE_UDP_PORT);
    const struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = (uint32_t)strtoul(arguments[3], NULL, 0),
        .psn = (uint32_t)strtoul(arguments[4], NULL, 0),
    };
    uint8_t datagram[256] = {0};
    const size_t covered = roce_encode_headers(&packet, datagram) + PAYLOAD_BYTES;
    struct inet_flow flow = {.source_port = ntohs(from.sin_port),
                             .destination_port = ROCE_UDP_PORT};
    map_v4(flow.source, &from.sin_addr);
    map_v4(flow.destination, &to.sin_addr);
    uint32_t crc = icrc_packet(icrc_prefix(&flow, 0, covered + ROCE_ICRC_BYTES), datagram, 12);
    crc = icrc_extend(crc, datagram + ROCE_BTH_BYTES, covered - ROCE_BTH_BYTES);
    store_le32(datagram + covered, icrc_finish(crc));
    const ssize_t sent =
        sendto(fd, datagram, covered + ROCE_ICRC_BYTES, 0, (struct sockaddr *)&to, sizeof(to));
    return sent != (ssize_t)(covered + ROCE_ICRC_BYTES);
}
