/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_peers - a NIC that sends SENDs to many processes in turn, for callgrind: how many
 * instructions a message takes, from its post to its completion.
 *
 * Usage: srd_peers ACTIVE IDLE COUNT
 *   ACTIVE  processes that get a message each in turn
 *   IDLE    processes that are known, and rest
 *   COUNT   messages
 */
#include <stdio.h>
#include <valgrind/callgrind.h>

#include "tests/srd_crowd.h"

#define IDLE_FIRST 100000u

static void send_one(struct crowd *crowd, uint32_t process)
{
    struct completion completion;
    CHECK(crowd_post(crowd, process, WORK_SEND, 8) == STATUS_OK);
    while (crowd_hear(crowd)) {
        crowd_answer(crowd);
    }
    CHECK(cq_poll(&crowd->cq, &completion, 1) == 1 && completion.status == COMPLETION_SUCCESS);
    crowd->now.ns += 20000;
    nic_on_time(crowd->nic, crowd->now);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    const uint32_t active = (uint32_t)atoi(argv[1]), idle = (uint32_t)atoi(argv[2]);
    const uint32_t count = (uint32_t)atoi(argv[3]);
    const struct srd_limits limits = {.contacts = 1u << 17,
                                      .peers = 8192,
                                      .hosts = 65534,
                                      .assemblies = 64,
                                      .requests = 256,
                                      .parts = 128,
                                      .packets = 256,
                                      .reads = 16};
    struct crowd *crowd = crowd_start(&limits);
    for (uint32_t i = 0; i < idle; i++) {
        send_one(crowd, IDLE_FIRST - idle + i);
    }
    crowd_pass(crowd, 2000 * CROWD_MS, true);
    CHECK(srd_peer_count(crowd->nic) == 0 && srd_contact_count(crowd->nic) == idle);
    for (uint32_t i = 0; i < 2 * active; i++) {
        send_one(crowd, i % active);
    }
    CALLGRIND_TOGGLE_COLLECT;
    for (uint32_t i = 0; i < count; i++) {
        send_one(crowd, i % active);
    }
    CALLGRIND_TOGGLE_COLLECT;
    CHECK(crowd->sent[SRD_HELLO] == active + idle);
    crowd_end(crowd);
    return 0;
}
