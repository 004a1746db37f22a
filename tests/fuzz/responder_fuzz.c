/* SPDX-License-Identifier: BSD-2-Clause
 *
 * responder_fuzz - a NIC fed with sequences of packets that a stranger makes up.
 *
 * Goal    Whatever arrives, nothing outside the region is written, no assertion fails, the engines'
 *         invariants hold after every packet, and the NIC goes on answering.
 * Method  One queue pair of each service, with a region and receives. The input is a sequence of
 *         packets: a byte of hints, a length whose two uppermost bits are those of congestion
 *         notification, and bytes for roce_decode. Hints put the right queue pair, PSN, key or
 *         Q_Key in, so that the fuzzer gets past the first judges.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/fuzz/nic_target.h"

/* Beside those of nic_target.h. */
enum hint {
    HINT_PULL = 32,    /* Take the replies out afterwards. */
    HINT_TIME = 64,    /* Let time pass. */
    HINT_PLACED = 128, /* Says that its sender has done the copying. */
};

static void deliver(struct nic_target *target, uint8_t hints, uint8_t ecn, const uint8_t *bytes,
                    size_t count, struct instant now)
{
    /* As from a port: a copy of just these bytes, so that reading past them is found. */
    uint8_t *copy = malloc(count + 1);
    CHECK(copy != NULL);
    memcpy(copy, bytes, count);
    struct nic_frame frame = {.headers = copy,
                              .headers_bytes = (uint32_t)count,
                              .source = target->peer,
                              .destination = target->self,
                              .traffic_class = ecn,
                              .hop_limit = 64,
                              .placed = (hints & HINT_PLACED) != 0};
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    struct roce_packet packet;
    if (roce_decode(copy, count, &packet) == ROCE_GOOD) {
        /* The packet as the hints change it, in two places, as it comes from a ring. */
        nic_target_hint(target, hints, &packet);
        frame.headers = headers;
        frame.headers_bytes = (uint32_t)roce_encode_headers(&packet, headers);
        frame.payload = copy + frame.headers_bytes;
        frame.payload_bytes = (uint32_t)count - frame.headers_bytes;
    }
    struct nic_move wanted;
    if (nic_on_packet(target->nic, &frame, now, &wanted) == NIC_MOVES) {
        nic_target_move(target, &wanted);
        nic_on_moved(target->nic, &wanted, NIC_MOVED, now);
    }
    free(copy);
}

static void pull(struct nic_target *target, struct instant now)
{
    struct nic_departure departure;
    struct qp *qp;
    while ((qp = nic_next_qp(target->nic)) != NULL) {
        if (nic_next_packet(target->nic, qp, now, &departure)) {
            CHECK(departure.payload_bytes <= ROCE_PAYLOAD_BYTES_MAX);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct nic_target target;
    nic_target_make(&target, NULL, 0, 0);
    struct instant now = {1000};
    pull(&target, now);
    while (count >= 3) {
        const uint8_t hints = bytes[0];
        const size_t wanted = (size_t)bytes[1] | (size_t)(bytes[2] & 3) << 8;
        const size_t length = wanted < count - 3 ? wanted : count - 3;
        deliver(&target, hints, bytes[2] >> 6, bytes + 3, length, now);
        if (hints & HINT_TIME) {
            now.ns += 5000000;
            nic_on_time(target.nic, now);
        }
        if (hints & HINT_PULL) {
            pull(&target, now);
        }
        nic_check(target.nic);
        bytes += 3 + length;
        count -= 3 + length;
    }
    nic_target_check(&target);
    nic_target_drop(&target);
    return 0;
}
