/* SPDX-License-Identifier: BSD-2-Clause
 *
 * request_flood ADDRESS SECONDS - asks a RoCE address for connections to ports that nobody serves,
 * some thousand a second. Says "ready" after the first thousand, and in the end how many there
 * were.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/cm.h"
#include "wire/icrc.h"
#include "wire/roce.h"

#define BURST    40
#define PAUSE_NS 10000000

struct flood {
    int fd;
    struct sockaddr_in self, target;
    uint32_t sent;
};

static void map_address(const struct sockaddr_in *address, uint8_t ip[16])
{
    memset(ip, 0, 16);
    ip[10] = ip[11] = 0xff;
    memcpy(ip + 12, &address->sin_addr, 4);
}

static size_t write_request(const struct flood *flood, uint8_t *packet)
{
    struct cm_message request = {
        .attribute = CM_REQ, .transaction_id = flood->sent + 1, .local_id = flood->sent + 1};
    request.req = (struct cm_req){
        .service_id = cm_service_id(0x0106, (uint16_t)(33000 + flood->sent % 32000)),
        .qpn = 77,
        .path_mtu = 3,
        .pkey = ROCE_DEFAULT_PKEY};
    struct cm_addresses addresses = {.source_port = 1000};
    map_address(&flood->self, addresses.source);
    map_address(&flood->target, addresses.destination);
    cm_addresses_encode(&addresses, request.private_data);
    const struct roce_packet headers = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
                                        .pkey = ROCE_DEFAULT_PKEY,
                                        .destination_qpn = CM_QPN,
                                        .psn = flood->sent & ROCE_24_BITS,
                                        .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN}};
    const size_t at = roce_encode_headers(&headers, packet);
    cm_encode(&request, packet + at);
    const size_t count = at + CM_MAD_BYTES + ROCE_ICRC_BYTES;
    struct inet_flow flow = {.source_port = ntohs(flood->self.sin_port),
                             .destination_port = ROCE_UDP_PORT};
    map_address(&flood->self, flow.source);
    map_address(&flood->target, flow.destination);
    uint32_t crc = icrc_packet(icrc_prefix(&flow, 0, count), packet, 12);
    crc = icrc_extend(crc, packet + ROCE_BTH_BYTES, count - ROCE_BTH_BYTES - ROCE_ICRC_BYTES);
    store_le32(packet + count - ROCE_ICRC_BYTES, icrc_finish(crc));
    return count;
}

static int open_flood(struct flood *flood, const char *target)
{
    const int discover = IP_PMTUDISC_DO; /* Identification 0, as the ICRC has it. */
    socklen_t bytes = sizeof(flood->self);
    flood->self =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    flood->target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    flood->fd = socket(AF_INET, SOCK_DGRAM, 0);
    return inet_pton(AF_INET, target, &flood->target.sin_addr) == 1 && flood->fd >= 0 &&
           setsockopt(flood->fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) == 0 &&
           bind(flood->fd, (const struct sockaddr *)&flood->self, sizeof(flood->self)) == 0 &&
           getsockname(flood->fd, (struct sockaddr *)&flood->self, &bytes) == 0;
}

int main(int argc, char **argv)
{
    static struct flood flood;
    if (argc != 3 || !open_flood(&flood, argv[1])) {
        fprintf(stderr, "usage: request_flood ADDRESS SECONDS\n");
        return 2;
    }
    const time_t end = time(NULL) + atoi(argv[2]);
    while (time(NULL) < end) {
        for (int i = 0; i < BURST; i++, flood.sent++) {
            uint8_t packet[ROCE_PACKET_BYTES_MAX];
            const size_t count = write_request(&flood, packet);
            sendto(flood.fd, packet, count, 0, (const struct sockaddr *)&flood.target,
                   sizeof(flood.target));
        }
        if (flood.sent == 1000) {
            printf("ready\n");
            fflush(stdout);
        }
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        nanosleep(&pause, NULL);
    }
    printf("%u requests\n", flood.sent);
    return 0;
}
