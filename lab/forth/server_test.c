/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever the handler, the protocol and the costs: every request is answered with the
 *         right bytes, and a message costs the interrupts that the handler says.
 * Method  Random configurations; counts of interrupts where they follow from the rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/forth/server.h"
#include "lab/test_one.h"

static struct forth_server *served(const struct forth_server_config *config)
{
    struct forth_server *server = malloc(sizeof(*server));
    struct lab_run *run = one_prepare("forth/remote-disk", "");
    assert_non_null(server);
    if (!forth_server_run(server, run, config)) {
        fail_msg("handler %d, %u clients, depth %u: %s", (int)config->handler, config->clients,
                 config->depth, run->failure);
    }
    free(run);
    return server;
}

static void test_random(void **state)
{
    struct prng prng;
    (void)state;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < 60; i++) {
        const struct forth_server_config config = {
            .clients = 1 + (uint32_t)prng_below(&prng, 4),
            .depth = 1 + (uint32_t)prng_below(&prng, 12),
            .pages = 1 + (uint32_t)prng_below(&prng, 3),
            .requests = 12,
            .call_ps = prng_below(&prng, 5000000),
            .interrupt_ps = prng_below(&prng, 20000000),
            .serve_ps = prng_below(&prng, 20000000),
            .disk_ps = prng_below(&prng, 20000000),
            .writes = prng_below(&prng, 2) == 0,
            .asks = prng_below(&prng, 2) == 0,
            .handler = (enum forth_handler)prng_below(&prng, 3),
            .lowest = prng_below(&prng, 4) == 0,
        };
        struct forth_server *server = served(&config);
        uint64_t answered = 0;
        for (uint32_t k = 0; k < config.clients; k++) {
            answered += server->answered[k];
        }
        assert_int_equal(answered, server->tally.latency.count);
        assert_true(server->processors[0].messages >=
                    answered * (config.writes && config.asks ? 2 : 1));
        free(server);
    }
}

/* A request alone: each message comes when no other does, so each costs an interrupt. */
static void test_one_interrupt_a_message(void **state)
{
    (void)state;
    for (uint32_t handler = FORTH_HANDLER_ALL; handler <= FORTH_HANDLER_MASKED; handler++) {
        const struct forth_server_config config = {.clients = 1,
                                                   .depth = 1,
                                                   .pages = 1,
                                                   .requests = 5,
                                                   .interrupt_ps = 1000000,
                                                   .handler = (enum forth_handler)handler};
        struct forth_server *server = served(&config);
        assert_int_equal(server->processors[0].interrupts, 5);
        assert_int_equal(server->processors[1].interrupts, 5);
        free(server);
    }
}

/* Eight requests come while the first one's handler runs: it takes all, or one. */
static void test_handlers(void **state)
{
    static const uint64_t most[] = {2, 8, 2}, least[] = {1, 8, 1};
    (void)state;
    for (uint32_t handler = FORTH_HANDLER_ALL; handler <= FORTH_HANDLER_MASKED; handler++) {
        const struct forth_server_config config = {.clients = 1,
                                                   .depth = 8,
                                                   .pages = 1,
                                                   .requests = 1,
                                                   .interrupt_ps = 50000000,
                                                   .handler = (enum forth_handler)handler};
        struct forth_server *server = served(&config);
        assert_in_range(server->processors[0].interrupts, least[handler], most[handler]);
        free(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_one_interrupt_a_message),
        cmocka_unit_test(test_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
