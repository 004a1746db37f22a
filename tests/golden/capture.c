/* SPDX-License-Identifier: BSD-2-Clause
 *
 * capture - see capture.h.
 */
#include "capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum {
    PCAP_HEADER_BYTES = 24,
    PCAP_RECORD_BYTES = 16,
    PCAP_ETHERNET = 1,
    ETHERNET_BYTES = 14,
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_IPV6 = 0x86dd,
    PROTOCOL_UDP = 17,
    ROCE_PORT = 4791,
    SHORTEST_PAYLOAD_BYTES = 16, /* BTH and ICRC. */
};

#define PCAP_MICROSECONDS_MAGIC 0xa1b2c3d4u

static void map_ipv4(uint8_t address[16], const uint8_t from[4])
{
    memset(address, 0, 10);
    memset(address + 10, 0xff, 2);
    memcpy(address + 12, from, 4);
}

/* The number of bytes the IP header says the datagram has, 0 if it is not a datagram for us. */
static size_t read_ipv4(const uint8_t *ip, size_t count, struct datagram *datagram)
{
    if (count < 20 || ip[0] != 0x45 || load_be16(ip + 6) != 0x4000 || ip[9] != PROTOCOL_UDP) {
        return 0;
    }
    datagram->identification = load_be16(ip + 4);
    map_ipv4(datagram->flow.source, ip + 12);
    map_ipv4(datagram->flow.destination, ip + 16);
    return load_be16(ip + 2);
}

static size_t read_ipv6(const uint8_t *ip, size_t count, struct datagram *datagram)
{
    if (count < 40 || ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP) {
        return 0;
    }
    datagram->identification = 0;
    memcpy(datagram->flow.source, ip + 8, 16);
    memcpy(datagram->flow.destination, ip + 24, 16);
    return 40u + load_be16(ip + 4);
}

bool datagram_read(const uint8_t *ip, size_t count, struct datagram *datagram)
{
    datagram->ipv4 = count > 0 && ip[0] >> 4 == 4;
    const size_t ip_header_bytes = datagram->ipv4 ? 20 : 40;
    const size_t ip_bytes =
        datagram->ipv4 ? read_ipv4(ip, count, datagram) : read_ipv6(ip, count, datagram);
    if (ip_bytes < ip_header_bytes + 8 + SHORTEST_PAYLOAD_BYTES || ip_bytes > count) {
        return false;
    }
    const uint8_t *udp = ip + ip_header_bytes;
    datagram->flow.source_port = load_be16(udp);
    datagram->flow.destination_port = load_be16(udp + 2);
    datagram->ip = ip;
    datagram->ip_bytes = ip_bytes;
    datagram->payload = udp + 8;
    datagram->payload_bytes = ip_bytes - ip_header_bytes - 8;
    return datagram->flow.destination_port == ROCE_PORT &&
           load_be16(udp + 4) == ip_bytes - ip_header_bytes;
}

void capture_open(struct capture *capture, const char *directory, const char *name)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("cannot open %s", path);
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long count = ftell(file);
    assert_true(count >= PCAP_HEADER_BYTES);
    rewind(file);
    capture->bytes = malloc((size_t)count);
    assert_non_null(capture->bytes);
    assert_int_equal(fread(capture->bytes, 1, (size_t)count, file), count);
    fclose(file);

    assert_int_equal(load_le32(capture->bytes), PCAP_MICROSECONDS_MAGIC);
    assert_int_equal(load_le32(capture->bytes + 20), PCAP_ETHERNET);
    capture->name = name;
    capture->count = (size_t)count;
    capture->at = PCAP_HEADER_BYTES;
    capture->frame = 0;
}

void capture_close(struct capture *capture)
{
    free(capture->bytes);
}

bool capture_next(struct capture *capture, struct datagram *datagram)
{
    while (capture->at < capture->count) {
        assert_true(capture->count - capture->at >= PCAP_RECORD_BYTES);
        const uint8_t *record = capture->bytes + capture->at;
        const size_t captured = load_le32(record + 8);
        assert_int_equal(load_le32(record + 12), captured); /* Whole frames. */
        assert_true(capture->count - capture->at - PCAP_RECORD_BYTES >= captured);
        assert_true(captured >= ETHERNET_BYTES);
        capture->at += PCAP_RECORD_BYTES + captured;
        capture->frame++;

        const uint8_t *ethernet = record + PCAP_RECORD_BYTES;
        const uint16_t type = load_be16(ethernet + 12);
        if ((type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6) &&
            datagram_read(ethernet + ETHERNET_BYTES, captured - ETHERNET_BYTES, datagram)) {
            return true;
        }
    }
    return false;
}
