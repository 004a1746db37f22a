/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_sender - a sender whose DMA engine and receiver are a test, step by step.
 *
 * Each test has its own: `rdma`, `now`, and `pushed`, the verdict on the last packet.
 */
#ifndef TRANSPORT_LANT_TEST_SENDER_H
#define TRANSPORT_LANT_TEST_SENDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/lant/rdma_sender.h"

#define KB          1024u
#define SOURCE      UINT64_C(0x7f0000001000)
#define DESTINATION UINT64_C(0x0520140011110000)

static struct lant_rdma rdma;
static uint64_t now;

static inline void begin(struct lant_rdma_config config)
{
    now = 1000;
    config.node = 0x14403;
    lant_rdma_init(&rdma, &config);
}

static inline void submit_work(enum lant_queue queue, const struct lant_work *work)
{
    assert_int_equal(lant_work_submit(&rdma.work, queue, work), LANT_SUBMIT_COMMITTED);
}

static inline struct lant_work unregistered(uint32_t tag, uint32_t bytes)
{
    return (struct lant_work){
        .tag = tag,
        .descriptor = {
            .source = SOURCE, .destination = DESTINATION, .bytes = bytes, .no_register = true}};
}

static inline void submit(uint32_t tag, uint32_t bytes)
{
    const struct lant_work work = unregistered(tag, bytes);
    submit_work(LANT_QUEUE_CPU, &work);
}

static inline void submit_registered(uint32_t tag, uint32_t bytes)
{
    struct lant_work work = unregistered(tag, bytes);
    work.descriptor.no_register = false;
    submit_work(LANT_QUEUE_CPU, &work);
}

static inline struct lant_rdma_descriptor start(enum lant_rdma_start expected)
{
    struct lant_rdma_descriptor descriptor = {0};
    assert_int_equal(lant_rdma_next_descriptor(&rdma, now, &descriptor), expected);
    return descriptor;
}

static struct lant_rdma_push pushed;

/* The packet that leaves next. */
static inline struct lant_packet push(void)
{
    struct lant_packet packet;
    assert_int_equal(lant_rdma_next_packet(&rdma, now, &packet, &pushed), LANT_RDMA_PUSHED);
    assert_int_equal(packet.footer.source, 0x14403);
    return packet;
}

static inline void push_none(enum lant_rdma_push_verdict expected)
{
    struct lant_packet packet;
    assert_int_equal(lant_rdma_next_packet(&rdma, now, &packet, &pushed), expected);
}

/* Starts an operation and pushes all of it, at most 16 packets. */
static inline void push_operation(struct lant_packet packets[16])
{
    (void)start(LANT_RDMA_STARTS_OPERATION);
    uint32_t count = 0;
    do {
        packets[count++] = push();
    } while (!pushed.ends);
}

static inline enum lant_rdma_answer answer(const struct lant_packet *packet,
                                           enum lant_response response)
{
    struct lant_footer footer = packet->footer;
    footer.response = (uint8_t)response;
    footer.source = packet->header.destination;
    return lant_rdma_on_answer(&rdma, now, &footer);
}

static inline void acknowledge(const struct lant_packet *packet)
{
    assert_int_equal(answer(packet, LANT_OKAY), LANT_RDMA_ANSWER_POSITIVE);
}

static inline struct lant_packet tell(void)
{
    struct lant_packet packet;
    assert_true(lant_rdma_next_completion(&rdma, now, &packet));
    assert_int_equal(packet.header.type, LANT_COMPLETION_NOTIFICATION);
    return packet;
}

static inline void tell_none(void)
{
    struct lant_packet packet;
    assert_false(lant_rdma_next_completion(&rdma, now, &packet));
}

static inline struct lant_notification notified(uint32_t tag, uint32_t status)
{
    struct lant_notification notification;
    assert_true(lant_rdma_next_notification(&rdma, now, LANT_QUEUE_CPU, &notification));
    assert_int_equal(notification.kind, LANT_NOTIFY_SENT);
    assert_int_equal(notification.tag, tag);
    assert_int_equal(notification.status, status);
    return notification;
}

static inline void not_notified(void)
{
    assert_int_equal(lant_rdma_notifications_waiting(&rdma, LANT_QUEUE_CPU), 0);
    assert_int_equal(lant_rdma_notifications_waiting(&rdma, LANT_QUEUE_FPGA), 0);
}

static inline void assert_idle(void)
{
    assert_true(lant_rdma_idle(&rdma));
    assert_int_equal(lant_rdma_deadline(&rdma), LANT_NEVER);
    lant_rdma_check(&rdma);
}

#endif
