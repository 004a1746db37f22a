/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Threads with small stacks may post and poll: what a NIC made of software needs to work on
 *         is not the program's stack.
 * Method  A thread with the smallest stack there is writes, reads and sends between two queue
 *         pairs, small and large messages.
 */
#include "tests/api/api.h"

#include <limits.h>
#include <pthread.h>

#define REQUESTS 12

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (1 << 20) /* Sanitizers put much on the stack. */
#elif defined(__aarch64__)
#define STACK_BYTES (1 << 17) /* The C library refuses less. */
#else
#define STACK_BYTES 16384
#endif

static int post_many(struct api *api, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (opcode == IBV_WR_SEND &&
            api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, bytes)) != 0) {
            return 1;
        }
        if (api_post(api->qps[0], opcode, api_sge(api->mrs[0], 0, bytes), (uintptr_t)api->memory[1],
                     api->mrs[1]->rkey) != 0) {
            return 1;
        }
    }
    return 0;
}

static int collect(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    for (uint32_t done = 0; done < REQUESTS;) {
        const int count = ibv_poll_cq(cq, 1, &wc);
        if (count < 0 || (count > 0 && wc.status != IBV_WC_SUCCESS)) {
            return 1;
        }
        done += (uint32_t)count;
    }
    return 0;
}

/* Nothing of cmocka in here: it wants a larger stack itself. */
static void *work(void *context)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
    static const uint32_t sizes[] = {8, 512, 4096, 20000};
    struct api *api = context;
    for (size_t o = 0; o < 3; o++) {
        for (size_t s = 0; s < 4; s++) {
            if (post_many(api, opcodes[o], sizes[s]) != 0 || collect(api->cqs[0]) != 0 ||
                (opcodes[o] == IBV_WR_SEND && collect(api->cqs[1]) != 0)) {
                return context;
            }
        }
    }
    return NULL;
}

static void test_smallest_stack(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, work, *state), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    pthread_attr_destroy(&attributes);
    assert_null(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_smallest_stack, api_open_rc, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
