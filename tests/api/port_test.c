/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    When the interface of a device goes down or comes up, or loses its address or gets it
 *         back, programs get the events, all queries say how it is now, and connections live as
 *         long as their retries.
 * Method  The loopback interface of a network namespace of our own has an address beside its own,
 *         which the device is named by. With "untold", the kernel is made to refuse to tell.
 */
#include "tests/api/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/own_network.h"

#define ADDRESS      0x0a010203u
#define ADDRESS_TEXT "10.1.2.3"
#define PORT_EVENTS  64 /* Events that are kept for a program that asks for none. */
#define PATIENCE_MS  20000
#define SILENCE_MS   50

/* Not in the headers that programs get. */
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes);

static bool untold;

static bool asks_to_be_told(long number, const void *name, size_t bytes)
{
    const struct sockaddr_nl *netlink = name;
    return number == SYS_bind && bytes >= sizeof(*netlink) && netlink->nl_family == AF_NETLINK &&
           netlink->nl_groups != 0;
}

/* The library calls this one: as in a sandbox, nobody is told of changes. A call with fewer
 * arguments passes on whatever is there, and nobody looks at it; AddressSanitizer, neither. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    static long (*next)(long number, ...);
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    }
    va_list arguments;
    va_start(arguments, number);
    long given[6];
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        given[i] = va_arg(arguments, long);
    }
    va_end(arguments);
    if (untold && asks_to_be_told(number, (const void *)given[1], (size_t)given[2])) {
        errno = EPERM;
        return -1;
    }
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* -- Events and states --------------------------------------------------------------------------*/

static bool is_event(struct ibv_context *context, int patience_ms)
{
    struct pollfd readable = {.fd = context->async_fd, .events = POLLIN};
    return poll(&readable, 1, patience_ms) == 1;
}

static enum ibv_event_type take_event(struct ibv_context *context)
{
    struct ibv_async_event event;
    assert_true(is_event(context, PATIENCE_MS));
    assert_int_equal(ibv_get_async_event(context, &event), 0);
    assert_int_equal(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    return event.event_type;
}

static void expect_event(struct ibv_context *context, enum ibv_event_type type)
{
    if (untold) {
        assert_false(is_event(context, SILENCE_MS));
    } else {
        assert_int_equal(take_event(context), type);
    }
}

/* NULL: it cannot be read. */
static void expect_file(const char *name, const char *value)
{
    char text[64];
    const int bytes =
        ibv_read_sysfs_file("/sys/class/infiniband/nonic0/ports/1", name, text, sizeof(text));
    if (value == NULL) {
        assert_int_equal(bytes, -1);
    } else {
        assert_string_equal(text, value);
    }
}

static void expect_port(const struct api *api, bool active)
{
    struct ibv_port_attr attr;
    assert_int_equal(ibv_query_port(api->context, 1, &attr), 0);
    assert_int_equal(attr.state, active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
    assert_int_equal(attr.phys_state, active ? 5 : 3);
    assert_int_equal(attr.lid, 0); /* Others than programs of this machine may reach the address. */
    assert_int_equal(attr.sm_lid, 0);
    expect_file("lid", "0x0");
    expect_file("sm_lid", "0x0");
    expect_file("state", active ? "4: ACTIVE" : "1: DOWN");
    expect_file("phys_state", active ? "5: LinkUp" : "3: Disabled");
}

static void expect_gid(const struct api *api, bool there)
{
    static const union ibv_gid own = {.raw = {[10] = 0xff, 0xff, 10, 1, 2, 3}}, none;
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    assert_int_equal(ibv_query_gid(api->context, 1, 0, &gid), 0);
    assert_memory_equal(&gid, there ? &own : &none, sizeof(gid));
    assert_int_equal(ibv_query_gid_ex(api->context, 1, 0, &entry, 0), there ? 0 : ENODATA);
    assert_int_equal(ibv_query_gid_table(api->context, &entry, 1, 0), there ? 1 : 0);
    assert_int_equal(ibv_query_gid_table(api->context, &entry, 0, 0), there ? -EINVAL : 0);
    expect_file("gids/0", there ? "0000:0000:0000:0000:0000:ffff:0a01:0203"
                                : "0000:0000:0000:0000:0000:0000:0000:0000");
    expect_file("gid_attrs/types/0", there ? "RoCE v2" : NULL);
    expect_file("gid_attrs/ndevs/0", there ? "lo" : NULL);
}

static void set_up(const struct api *api, bool up)
{
    assert_true(own_network_set_up(up));
    expect_event(api->context, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

static void set_address(const struct api *api, bool there)
{
    assert_true(own_network_set_address(ADDRESS, there));
    expect_event(api->context, IBV_EVENT_GID_CHANGE);
}

/* -- Events and queries -------------------------------------------------------------------------*/

static void test_interface(void **state)
{
    const struct api *api = *state;
    expect_port(api, true);
    set_up(api, false);
    expect_port(api, false);
    expect_gid(api, true); /* It keeps its address. */
    set_up(api, true);
    expect_port(api, true);
    assert_false(is_event(api->context, SILENCE_MS));
}

static void test_address(void **state)
{
    struct api *api = *state;
    struct ibv_ah_attr attr = {
        .is_global = 1, .grh = {.dgid = api->gid, .hop_limit = 64}, .port_num = 1};
    expect_gid(api, true);
    set_address(api, false);
    expect_gid(api, false);
    expect_port(api, true);
    if (!untold) {
        assert_null(ibv_create_ah(api->pd, &attr));
        assert_int_equal(errno, EINVAL);
    }
    set_address(api, true);
    expect_gid(api, true);
    struct ibv_ah *ah = ibv_create_ah(api->pd, &attr);
    assert_non_null(ah);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_false(is_event(api->context, SILENCE_MS));
}

/* All are told, in order, and every open context is. */
static void test_order(void **state)
{
    static const enum ibv_event_type expected[] = {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
                                                   IBV_EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE};
    const struct api *api = *state;
    struct ibv_context *other = ibv_open_device(api->context->device);
    assert_non_null(other);
    assert_true(own_network_set_up(false));
    assert_true(own_network_set_up(true));
    assert_true(own_network_set_address(ADDRESS, false));
    assert_true(own_network_set_address(ADDRESS, true));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        expect_event(api->context, expected[i]);
        expect_event(other, expected[i]);
    }
    assert_int_equal(ibv_close_device(other), 0);
    set_address(api, false); /* One that is closed is told nothing. */
    set_address(api, true);
}

/* A program that never asks finds the newest ones: how things are is in the last. */
static void test_events_that_nobody_takes(void **state)
{
    struct api diligent = *(struct api *)*state;
    struct ibv_context *lazy = diligent.context;
    enum ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
    diligent.context = ibv_open_device(lazy->device); /* The later one is told later. */
    assert_non_null(diligent.context);
    for (int i = 0; i < PORT_EVENTS; i++) {
        set_up(&diligent, false);
        set_up(&diligent, true);
    }
    set_address(&diligent, false);
    set_address(&diligent, true);
    set_up(&diligent, false);
    for (int i = 1; i <= PORT_EVENTS; i++) {
        type = take_event(lazy);
        assert_int_equal(type == IBV_EVENT_GID_CHANGE,
                         i == PORT_EVENTS - 2 || i == PORT_EVENTS - 1);
    }
    assert_false(is_event(lazy, SILENCE_MS));
    assert_int_equal(type, IBV_EVENT_PORT_ERR);
    set_up(&diligent, true);
    assert_int_equal(take_event(lazy), IBV_EVENT_PORT_ACTIVE);
    assert_int_equal(ibv_close_device(diligent.context), 0);
}

/* A child's copy of the device is asked, and goes; its parent gets all events as before. */
static void test_fork(void **state)
{
    const struct api *api = *state;
    const pid_t child = fork();
    if (child == 0) {
        struct ibv_port_attr attr;
        _exit(ibv_query_port(api->context, 1, &attr) != 0 || attr.state != IBV_PORT_ACTIVE);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    set_up(api, false);
    set_up(api, true);
}

static bool hears(struct ibv_context *context)
{
    struct ibv_async_event event;
    return untold ? !is_event(context, SILENCE_MS)
                  : is_event(context, PATIENCE_MS) && ibv_get_async_event(context, &event) == 0;
}

/* Opens the device anew, says so, gets two events, and stays until all have been told. */
static bool child_hears(int says)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices == NULL ? NULL : ibv_open_device(devices[0]);
    return context != NULL && write(says, "x", 1) == 1 && hears(context) && hears(context) &&
           !is_event(context, SILENCE_MS);
}

/* An event of a child's own device is told to the child alone. */
static void test_child_with_a_device(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* Such a child may start no threads. */
#endif
    const struct api *api = *state;
    int ready[2], status;
    char word;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        _exit(!child_hears(ready[1]));
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &word, 1), 1);
    close(ready[0]);
    set_up(api, false);
    set_up(api, true);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(is_event(api->context, SILENCE_MS));
}

/* -- Connections --------------------------------------------------------------------------------*/

static void post_write(const struct api *api)
{
    memset(api->memory[0], 0x5a, 64);
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 64),
                              (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                     0);
}

/* Shared memory leads to the processes of this machine, even if the interface goes. */
static bool has_no_use_for_interface(void)
{
    return strcmp(getenv("NONIC_WIRE"), "shm") == 0;
}

static int open_patient(void **state)
{
    api_open(state);
    struct api *api = *state;
    api->timeout = 17; /* 537 ms, seven times. */
    for (int i = 0; i < 2; i++) {
        api->qps[i] = api_create_qp(api, IBV_QPT_RC, api->cqs[i], NULL);
    }
    api_connect(api, api->qps[0], api->qps[1]);
    api_connect(api, api->qps[1], api->qps[0]);
    return 0;
}

static void test_address_comes_back(void **state)
{
    const struct api *api = *state;
    struct ibv_wc wc;
    post_write(api);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    set_address(api, false);
    post_write(api);
    usleep(200000);
    assert_int_equal(ibv_poll_cq(api->cqs[0], 1, &wc), has_no_use_for_interface() ? 1 : 0);
    set_address(api, true);
    if (!has_no_use_for_interface()) {
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
    for (int i = 0; i < 100; i++) {
        post_write(api);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
}

static void test_address_stays_away(void **state)
{
    const struct api *api = *state;
    set_address(api, false);
    post_write(api);
    api_expect(api->cqs[0], has_no_use_for_interface() ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
    set_address(api, true);
}

#define PORT_TEST(test, open) cmocka_unit_test_setup_teardown(test, open, api_close)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PORT_TEST(test_interface, api_open),
        PORT_TEST(test_address, api_open),
        PORT_TEST(test_fork, api_open),
        PORT_TEST(test_child_with_a_device, api_open),
        PORT_TEST(test_address_comes_back, open_patient),
        PORT_TEST(test_address_stays_away, api_open_rc),
        PORT_TEST(test_order, api_open), /* From here on, of events alone. */
        PORT_TEST(test_events_that_nobody_takes, api_open),
    };
    const size_t all = sizeof(tests) / sizeof(tests[0]);
    untold = argc > 1 && strcmp(argv[1], "untold") == 0;
    if (!own_network_enter()) {
        return OWN_NETWORK_SKIPPED;
    }
    if (!own_network_set_up(true) || !own_network_set_address(ADDRESS, true) ||
        setenv("NONIC_DEVICE", ADDRESS_TEXT, 1) != 0) {
        perror("the network of our own");
        return 1;
    }
    return untold ? _cmocka_run_group_tests("untold", tests, all - 2, NULL, NULL)
                  : _cmocka_run_group_tests("port", tests, all, NULL, NULL);
}
