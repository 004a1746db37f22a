/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_node - a world of nodes for tests, whose program counts its reports, and a spy that sees
 * each packet that comes to a node: it may look, change a flit, or lose the packet.
 */
#ifndef LAB_LANT_TEST_NODE_H
#define LAB_LANT_TEST_NODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/node.h"

struct seen;

/* False: the packet is lost. */
typedef bool (*spy)(struct seen *seen, uint32_t node, struct lant_frame *frame);

struct seen {
    struct lant_world world;
    spy spy;
    void (*on_sent)(struct seen *seen, const struct lant_notification *notification);
    uint32_t count;                    /* The spy's. */
    uint32_t queues[LANT_QUEUE_COUNT]; /* Transfers that were notified, by queue. */
    struct sim sim;
    uint64_t done_ps, pushed_ps, sent_ps, received_ps;
    uint32_t done, pushed, sent, received;
    uint64_t data;
    uint8_t response;
    uint32_t status;
};

static inline void on_done(void *context, const struct lant_shm_done *done)
{
    struct seen *seen = context;
    if (lant_shm_done_on_bus(done)) {
        seen->done++;
        seen->done_ps = seen->sim.now_ps;
        seen->data = done->data;
        seen->response = done->response;
    }
}

static inline void on_pushed(void *context, uint32_t tag)
{
    (void)tag;
    struct seen *seen = context;
    seen->pushed++;
    seen->pushed_ps = seen->sim.now_ps;
}

static inline void on_notification(void *context, enum lant_queue queue,
                                   const struct lant_notification *notification)
{
    struct seen *seen = context;
    if (notification->kind == LANT_NOTIFY_SENT) {
        seen->sent++;
        seen->sent_ps = seen->sim.now_ps;
        seen->status = notification->status;
        seen->queues[queue]++;
        if (seen->on_sent != NULL) {
            seen->on_sent(seen, notification);
        }
    } else {
        seen->received++;
        seen->received_ps = seen->sim.now_ps;
    }
}

static inline struct lant_fabric_config line(void)
{
    return (struct lant_fabric_config){
        .topology = "all-to-all:2",
        .node_line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24},
        .switch_line = {.latency_cycles = 59, .frame_flits = 4, .pause_flits = 24},
        .switch_cycles = 18,
        .packets = 1024,
    };
}

static inline void spy_sink(void *nodes, uint32_t node, struct lant_frame *frame)
{
    struct lant_world *world = nodes;
    struct seen *seen = CONTAINER_OF(world, struct seen, world);
    if (seen->spy == NULL || seen->spy(seen, node, frame)) {
        lant_node_on_frame(nodes, node, frame);
    } else {
        lant_fabric_free(&world->fabric, frame);
    }
}

static inline struct seen *open_world(const struct lant_node_config *config,
                                      const struct lant_fabric_config *fabric)
{
    struct seen *seen = calloc(1, sizeof(*seen));
    char error[TOPOLOGY_ERROR_BYTES];
    sim_init(&seen->sim, 1);
    assert_true(lant_world_open(&seen->world, config, fabric, &seen->sim, 1, error, sizeof(error)));
    seen->world.fabric.sink = spy_sink;
    for (uint32_t i = 0; i < seen->world.count; i++) {
        seen->world.nodes[i].program = (struct lant_program){.context = seen,
                                                             .on_done = on_done,
                                                             .on_pushed = on_pushed,
                                                             .on_notification = on_notification};
    }
    return seen;
}

static inline void run(struct seen *seen)
{
    while (!lant_world_idle(&seen->world)) {
        assert_true(sim_step(&seen->sim));
    }
}

static inline void close_world(struct seen *seen)
{
    lant_world_close(&seen->world);
    free(seen);
}

static inline struct lant_node_config without_early(void)
{
    struct lant_node_config config = lant_node_default();
    config.shm.early_timers = 0;
    config.early_timers = 0;
    return config;
}

/* The header in H1 of a sound frame. */
static inline struct lant_header head_of(const struct lant_frame *frame)
{
    struct lant_header head;
    assert_int_not_equal(lant_head_decode(frame->flits[0], &head), LANT_DAMAGED);
    return head;
}

static inline bool is_data_of(const struct lant_frame *frame)
{
    const uint8_t type = head_of(frame).type;
    return type == LANT_RDMA_WRITE || type == LANT_RDMA_WRITE_REGISTER ||
           type == LANT_RDMA_UNREGISTERED;
}

static inline void submit(struct seen *seen, uint32_t from, enum lant_queue queue,
                          uint64_t destination, uint32_t bytes)
{
    const struct lant_work work = {.descriptor = {.destination = destination, .bytes = bytes},
                                   .tag = queue};
    assert_int_equal(lant_node_submit(&seen->world.nodes[from], queue, &work),
                     LANT_SUBMIT_COMMITTED);
}

static inline void access_of(struct seen *seen, uint64_t address, uint32_t bytes, bool store,
                             const uint8_t *data)
{
    const struct lant_shm_access access = {.address = address, .bytes = bytes, .store = store};
    assert_true(lant_node_access(&seen->world.nodes[0], &access, data));
}

#endif
