/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    `nonic stat` tells what the connection manager did: what it sent and received, what it
 *         refused and why; and its packets are among the device's.
 * Method  Both ends of connections in one process, which asks itself as `nonic stat` does.
 */
#include "tests/api/cm_program.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/stat_server.h"

static const char *const shown[] = {
    "cm_sent",         "cm_received",          "cm_retransmitted",
    "cm_malformed",    "cm_malformed_request", "cm_unmatched",
    "cm_out_of_state", "cm_crowded_out",       "cm_no_listener",
    "cm_backlog_full", "cm_stale_connection",  "cm_unafforded",
};

/* All counters as text, taken at one moment. */
static void ask(char *text, size_t bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                               STAT_SOCKET_PREFIX "%d", getpid());
    const socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, length), 0);
    const ssize_t received = recv(fd, text, bytes - 1, 0);
    assert_true(received > 0);
    text[received] = '\0';
    close(fd);
}

static uint64_t counter(const char *text, const char *name)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\n%s ", name);
    const char *found = strstr(text, wanted);
    if (found == NULL) {
        fail_msg("no counter %s", name);
    }
    return strtoull(found + strlen(wanted), NULL, 10);
}

static uint64_t change(const char *before, const char *after, const char *name)
{
    return counter(after, name) - counter(before, name);
}

static void test_names(void **state)
{
    (void)state;
    char text[8192];
    const int fd = open_device(0);
    ask(text, sizeof(text));
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        assert_int_equal(counter(text, shown[i]), 0);
    }
    close(fd);
}

/* REQ, REP and RTU; DREQ and DREP. Nothing else is under way in this process. */
static void test_connection(void **state)
{
    (void)state;
    char before[8192], after[8192];
    const int active = open_device(0), passive = open_device(0);
    ask(before, sizeof(before));
    const struct ends ends = establish(active, passive);
    ask(after, sizeof(after));
    assert_int_equal(change(before, after, "cm_sent"), 3);
    assert_int_equal(change(before, after, "cm_received"), 3);
    assert_int_equal(disconnect_id(active, ends.active), 0);
    expect(passive, RDMA_EVENT_DISCONNECTED);
    expect(active, RDMA_EVENT_DISCONNECTED);
    ask(after, sizeof(after));
    assert_int_equal(change(before, after, "cm_sent"), 5);
    assert_int_equal(change(before, after, "cm_received"), 5);
    assert_int_equal(change(before, after, "sent_pkts"), 5);
    assert_int_equal(change(before, after, "rcvd_pkts"), 5);
    assert_int_equal(change(before, after, "sent_bytes"), 5 * CM_MAD_BYTES);
    assert_int_equal(change(before, after, "rcvd_bytes"), 5 * CM_MAD_BYTES);
    close(active);
    close(passive);
}

/* One request that the program has not fetched may wait, and two come: the second is told nothing,
 * and its sender asks again until there is room. */
static void test_backlog(void **state)
{
    (void)state;
    char before[8192], after[8192];
    struct rdma_ucm_query_addr_resp bound = {0};
    const int active = open_device(0), passive = open_device(0);
    const uint32_t listener = create_id(passive, RDMA_PS_TCP, 0x11);
    const struct rdma_ucm_listen listen = {.id = listener, .backlog = 1};
    assert_int_equal(command(passive, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0), 0);
    const struct rdma_ucm_query query = {
        .response = (uintptr_t)&bound, .id = listener, .option = RDMA_USER_CM_QUERY_ADDR};
    assert_int_equal(command(passive, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(bound)),
                     0);
    struct sockaddr_in address;
    memcpy(&address, &bound.src_addr, sizeof(address));
    const uint32_t first = routed(active, RDMA_PS_TCP, ntohs(address.sin_port));
    const uint32_t second = routed(active, RDMA_PS_TCP, ntohs(address.sin_port));
    ask(before, sizeof(before));
    assert_int_equal(connect_id(active, first, 0), 0);
    struct pollfd wait = {.fd = passive, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_int_equal(connect_id(active, second, 0), 0);
    do {
        usleep(1000);
        ask(after, sizeof(after));
    } while (change(before, after, "cm_backlog_full") == 0);
    expect(passive, RDMA_EVENT_CONNECT_REQUEST);
    expect(passive, RDMA_EVENT_CONNECT_REQUEST);
    assert_int_equal(poll(&(struct pollfd){.fd = active, .events = POLLIN}, 1, 0), 0);
    ask(after, sizeof(after));
    assert_int_equal(change(before, after, "cm_no_listener"), 0);
    close(active);
    close(passive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_connection),
        cmocka_unit_test(test_backlog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
