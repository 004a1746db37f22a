/* SPDX-License-Identifier: BSD-2-Clause
 *
 * contract_test - the examples in nic/nic.h are a world.
 *
 * Goal    What the contract shows as code compiles, and carries a message from one NIC to another.
 * Method  The bodies of arrive(), depart() and tick() are taken out of the header's comments by
 *         tests/contract/extract; around them stand the least a world needs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "contract.inc"
#include "nic/nic.h"

#define QKEY 0x77u

static const char message[] = "by the book";

struct station {
    struct nic *nic;
    void *nic_memory, *qp_memory;
    struct pd pd;
    struct cq cq;
    struct completion ring[16];
    struct region region;
    struct qp *qp;
    char memory[NIC_GRH_BYTES + sizeof(message)];
};

static struct station stations[2];
static const struct instant now = {1000};
static uint32_t transmitted;
static bool room;
static struct list waiting;

static void move_memory(const struct nic_move *move)
{
    const uint8_t *payload = move->payload;
    assert_int_equal(move->kind, NIC_MOVE_SCATTER);
    const uint8_t *from = move->prefix;
    uint32_t prefix = move->prefix_bytes;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)move->segments[i].address;
        for (uint32_t n = 0; n < move->segments[i].bytes; n++) {
            *to++ = prefix > 0 ? *from++ : *payload++;
            prefix -= prefix > 0;
        }
    }
}

static void arrive(struct nic *nic, struct nic_frame frame)
{
    struct nic_move move;
    CONTRACT_ARRIVAL
}

/* Straight into the other NIC. */
static void transmit(const struct nic_departure *departure)
{
    uint8_t payload[64];
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(payload + bytes, (const void *)(uintptr_t)segment->address, segment->bytes);
        bytes += segment->bytes;
    }
    memset(payload + bytes, 0, departure->pad_bytes);
    const struct nic_frame frame = {
        .headers = departure->headers,
        .payload = payload,
        .headers_bytes = departure->headers_bytes,
        .payload_bytes = bytes + departure->pad_bytes,
    };
    transmitted++;
    arrive(stations[1].nic, frame);
}

static bool has_room(const void *link)
{
    (void)link;
    return room;
}

static void depart(struct nic *nic)
{
    struct qp *qp;
    struct nic_departure departure;
    CONTRACT_DEPARTURE
}

static void tick(struct nic *nic)
{
    CONTRACT_TIME
}

static void *zeroed(size_t bytes)
{
    bytes = line_aligned(bytes);
    return memset(aligned_alloc(64, bytes), 0, bytes);
}

static void open_station(struct station *station)
{
    const struct nic_limits limits = {.qps = 4,
                                      .regions = 4,
                                      .sends_per_qp = 4,
                                      .receives_per_qp = 4,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .cq_entries = 8,
                                      .mtu = PATH_MTU_1024};
    station->nic_memory = zeroed(nic_bytes(&limits));
    station->nic = nic_init(&limits, 1, station->nic_memory);
    cq_init(&station->cq, 8, station->ring);
    const struct region_request region = {.address = (uintptr_t)station->memory,
                                          .bytes = sizeof(station->memory),
                                          .access = ACCESS_LOCAL_WRITE};
    assert_int_equal(region_add(nic_regions(station->nic), &station->pd, &region, &station->region),
                     STATUS_OK);
    struct qp_request request = {
        .type = QP_UD,
        .pd = &station->pd,
        .send_cq = &station->cq,
        .receive_cq = &station->cq,
        .capacity = {.sends = 1, .receives = 1, .send_sges = 1, .receive_sges = 1},
        .signal_all = true};
    station->qp_memory = zeroed(qp_bytes(QP_UD, &request.capacity, false));
    assert_int_equal(qp_create(station->nic, &request, station->qp_memory, &station->qp),
                     STATUS_OK);
    struct qp_attributes step = {.state = QP_INIT, .port = 1, .qkey = QKEY};
    const uint32_t init = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY;
    assert_int_equal(qp_modify(station->qp, &step, init, now), STATUS_OK);
    step.state = QP_RTR;
    assert_int_equal(qp_modify(station->qp, &step, QP_ATTR_STATE, now), STATUS_OK);
    step.state = QP_RTS;
    assert_int_equal(qp_modify(station->qp, &step, QP_ATTR_STATE | QP_ATTR_SQ_PSN, now), STATUS_OK);
}

static void close_station(struct station *station)
{
    qp_destroy(station->qp);
    free(station->qp_memory);
    free(station->nic_memory);
}

static void test_examples(void **state)
{
    (void)state;
    list_init(&waiting);
    open_station(&stations[0]);
    open_station(&stations[1]);
    const struct sge to = {0, sizeof(stations[1].memory), stations[1].region.key};
    assert_int_equal(qp_post_receive(stations[1].qp, 7, &to, 1), STATUS_OK);
    memcpy(stations[0].memory, message, sizeof(message));
    const struct sge from = {0, sizeof(message), stations[0].region.key};
    const struct nic_av av = {0};
    const struct send_request send = {.kind = WORK_SEND,
                                      .sges = &from,
                                      .sge_count = 1,
                                      .av = &av,
                                      .destination_qpn = qp_number(stations[1].qp),
                                      .destination_qkey = QKEY};
    assert_int_equal(qp_post_send(stations[0].qp, &send), STATUS_OK);
    depart(stations[0].nic);
    assert_int_equal(transmitted, 0);
    assert_false(list_empty(&waiting));
    room = true;
    nic_unpark(stations[0].nic, &waiting);
    depart(stations[0].nic);
    assert_int_equal(transmitted, 1);
    struct completion completion;
    assert_int_equal(cq_poll(&stations[1].cq, &completion, 1), 1);
    assert_int_equal(completion.wr_id, 7);
    assert_string_equal(stations[1].memory + NIC_GRH_BYTES, message);
    tick(stations[0].nic);
    close_station(&stations[0]);
    close_station(&stations[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
