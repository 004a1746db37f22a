/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets that a member reads for another one are handed on to that one, once and whole; a
 *         handover that is wrong in any way does no harm.
 * Method  Two members of one process, a stranger's packets, and a model that judges handovers.
 */
#include "tests/share_stranger.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/prng.h"
#include "drivers/share_route.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

struct pair {
    struct address_set sets[2];
    struct udp_port *ports[2];
    int fd;
};

struct inbox {
    uint32_t count, mads, last_tag;
};

static void note(struct inbox *inbox, const struct udp_datagram *datagram)
{
    const bool mad = datagram->count == MAD_PACKET_BYTES - ROCE_ICRC_BYTES;
    assert_true(mad || datagram->count == PACKET_BYTES - ROCE_ICRC_BYTES);
    const uint8_t from[4] = {127, 0, 0, 1};
    assert_memory_equal(datagram->source.bytes + 12, from, 4);
    inbox->count++;
    inbox->mads += mad;
    inbox->last_tag = load_be32(datagram->bytes + 12);
}

static void note_call(struct inbox *inbox, struct udp_port *port)
{
    const struct udp_datagram *datagram;
    while ((datagram = udp_port_next(port)) != NULL) {
        note(inbox, datagram);
    }
}

/* `fd`, of an address that is shared, is readable. */
static void serve(struct inbox *inbox, struct udp_port *port, int fd)
{
    const struct address *address = udp_port_shared(port, fd);
    assert_non_null(address);
    while (udp_port_look_at_shared(port, address, fd)) {
        note_call(inbox, port);
    }
}

static void open_pair(struct pair *pair)
{
    char error[256];
    assert_true(address_find(&pair->sets[0], own_address(), error, sizeof(error)));
    /* The first member admits the second one, and must be awake meanwhile. */
    const pid_t helper = fork();
    if (helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 10000; i++) {
            share_admit(pair->sets[0].entries[0].share);
            usleep(1000);
        }
        _exit(0);
    }
    assert_true(address_find(&pair->sets[1], own_address(), error, sizeof(error)));
    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
    for (int i = 0; i < 2; i++) {
        pair->ports[i] = calloc(1, sizeof(struct udp_port));
        assert_true(udp_port_open(pair->ports[i], &pair->sets[i], error, sizeof(error)));
    }
    pair->fd = stranger();
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        udp_port_close(pair->ports[i]);
        free(pair->ports[i]);
        address_release(&pair->sets[i]);
    }
    close(pair->fd);
}

static uint32_t serve_mail(struct pair *pair, int which, struct inbox *inbox)
{
    const uint32_t before = inbox->count;
    const struct share *share = pair->sets[which].entries[0].share;
    for (int i = 0; i < 100 && has_packet(share->mail); i++) {
        serve(inbox, pair->ports[which], share->mail);
    }
    return inbox->count - before;
}

/* The first member reads the second one's socket, as if both had the same. */
static void read_of_other(struct pair *pair, struct inbox *inbox)
{
    struct address swapped = pair->sets[0].entries[0];
    swapped.fd = pair->sets[1].entries[0].fd;
    while (udp_receive_once(pair->ports[0], &swapped, swapped.fd) > 0) {
        note_call(inbox, pair->ports[0]);
    }
}

static void test_handovers(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    open_pair(&pair);
    const uint32_t theirs = pair.sets[1].slot << 16 | 99;
    for (uint32_t tag = 1; tag <= 1000; tag++) {
        send_packet(pair.fd, theirs, tag);
        read_of_other(&pair, &first);
        assert_int_equal(serve_mail(&pair, 1, &second), 1);
        assert_int_equal(second.last_tag, tag);
    }
    assert_int_equal(first.count, 0);
    assert_int_equal(pair.ports[0]->counters.handed_on, 1000);
    assert_int_equal(pair.ports[1]->counters.handed_to_us, 1000);
    close_pair(&pair);
}

/* A member that reads the common socket keeps packets of its own and packets that any member may
 * take. */
static void test_common_socket(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    uint8_t packet[MAD_PACKET_BYTES];
    open_pair(&pair);
    const int common = share_common_socket(pair.sets[0].entries[0].share);
    const int also_common = share_common_socket(pair.sets[1].entries[0].share);
    /* Ids of the two members, and an id of a slot that no process has. An id of 0, also in slot 0,
     * would be no id. */
    const uint32_t nobody = pair.sets[0].slot + pair.sets[1].slot + 1 + SHARE_SOCKETS;
    const uint32_t ids[3] = {pair.sets[0].slot << 24 | 7, pair.sets[1].slot << 24 | 7,
                             nobody << 24 | 7};
    for (int i = 0; i < 30; i++) {
        put_mad(packet, 0x13, 1, ids[i % 3]);
        send_bytes(pair.fd, packet, sizeof(packet));
        assert_true(has_packet(common));
        serve(&first, pair.ports[0], common);
        assert_false(has_packet(common));
        serve_mail(&pair, 1, &second);
    }
    assert_int_equal(first.mads, 10);
    assert_int_equal(second.mads, 10);
    assert_int_equal(pair.ports[0]->counters.no_process, 10);
    put_mad(packet, 0x10, ids[1], 0);
    send_bytes(pair.fd, packet, sizeof(packet));
    serve(&second, pair.ports[1], also_common);
    assert_int_equal(second.count, second.mads);
    close_pair(&pair);
}

/* An owner that takes nothing loses the packets that are too many, and no others. */
static void test_full_mailbox(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    open_pair(&pair);
    const struct udp_counters *counters = &pair.ports[0]->counters;
    while (counters->process_full == 0) {
        assert_true(counters->handed_on < 1000000);
        send_packet(pair.fd, pair.sets[1].slot << 16 | 99, 1);
        read_of_other(&pair, &first);
    }
    for (int i = 0; i < 1000; i++) {
        serve_mail(&pair, 1, &second);
    }
    assert_int_equal(second.count, counters->handed_on);
    send_packet(pair.fd, pair.sets[1].slot << 16 | 99, 2);
    read_of_other(&pair, &first);
    assert_int_equal(serve_mail(&pair, 1, &second), 1);
    close_pair(&pair);
}

/* A connection comes when this process may open no more descriptors: the connection waits, but this
 * process does not. */
static void test_no_descriptor_left(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    struct rlimit before, none;
    open_pair(&pair);
    send_packet(pair.fd, pair.sets[1].entries[0].share->slot << 16 | 5, 77);
    read_of_other(&pair, &first);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint8_t handover[256];
    const size_t bytes = share_collect(pair.sets[1].entries[0].share, handover, sizeof(handover));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(bytes, 0);
    assert_int_equal(serve_mail(&pair, 1, &second), 1);
    assert_int_equal(second.last_tag, 77);
    close_pair(&pair);
}

/* A process that cannot open a connection does not conclude that nobody is there. */
static void test_no_descriptor_for_a_connection(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    struct rlimit before, none;
    open_pair(&pair);
    const uint32_t theirs = pair.sets[1].slot << 16 | 99;
    const struct udp_counters *counters = &pair.ports[0]->counters;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    send_packet(pair.fd, theirs, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    read_of_other(&pair, &first);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(counters->no_process, 0);
    assert_int_equal(counters->process_full, 1);
    send_packet(pair.fd, theirs, 2);
    read_of_other(&pair, &first);
    assert_int_equal(serve_mail(&pair, 1, &second), 1);
    assert_int_equal(second.last_tag, 2);
    close_pair(&pair);
}

/* The owner is gone: the packets are nobody's. Another process comes to its slot: it gets them, on
 * a new connection. */
static void test_owner_changes(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    open_pair(&pair);
    struct share *share = pair.sets[1].entries[0].share;
    send_packet(pair.fd, share->slot << 16 | 99, 1);
    read_of_other(&pair, &first);
    assert_int_equal(serve_mail(&pair, 1, &second), 1);
    /* Here we do what the kernel does when a process ends. */
    struct epoll_event event;
    while (epoll_wait(share->mail, &event, 1, 0) == 1) {
        descriptor_close(event.data.fd);
    }
    descriptor_close(share->slot_listener);
    for (int fd = 3; fd < 1024; fd++) { /* The accepted connection, too. */
        struct sockaddr_un name = {0};
        socklen_t bytes = sizeof(name);
        if (getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 && name.sun_family == AF_UNIX &&
            strstr(name.sun_path + 1, "nonic/slot/") != NULL &&
            fd != pair.sets[0].entries[0].share->slot_listener) {
            descriptor_close(fd);
        }
    }
    descriptor_close(share->mail);
    share->mail = share->slot_listener = -1;
    send_packet(pair.fd, share->slot << 16 | 99, 2);
    read_of_other(&pair, &first);
    assert_int_equal(pair.ports[0]->counters.no_process, 1);
    /* A newcomer takes the same slot: we claim slots until it is that one. */
    char error[256];
    const uint32_t slot = share->slot;
    for (int tries = 0; tries < 100000; tries++) {
        assert_true(share_claim_slot(&share, 1, error, sizeof(error)));
        if (share->slot == slot) {
            break;
        }
        descriptor_close(share->slot_listener);
        descriptor_close(share->mail);
        share->mail = share->slot_listener = -1;
    }
    assert_int_equal(share->slot, slot);
    send_packet(pair.fd, slot << 16 | 99, 3);
    read_of_other(&pair, &first);
    assert_int_equal(serve_mail(&pair, 1, &second), 1);
    assert_int_equal(second.last_tag, 3);
    close_pair(&pair);
}

/* How many packets there are in a handover, if it is whole: a model of share_collect. */
static uint32_t packets_in(const uint8_t *handover, size_t count)
{
    uint32_t packets = 0;
    size_t at = sizeof(struct share_handover);
    for (; at + 2 <= count; packets++) {
        at += 2u + load_be16(handover + at);
    }
    return at == count ? packets : 0;
}

/* A handover brings any packets to the engine, but they are long enough and for us. */
static uint32_t judge_mail(struct udp_port *port, const struct address *address)
{
    const struct share *share = address->share;
    const struct udp_datagram *datagram;
    uint32_t count = 0;
    while (udp_port_look_at_shared(port, address, share->mail)) {
        for (; (datagram = udp_port_next(port)) != NULL; count++) {
            assert_true(datagram->count >= ROCE_BTH_BYTES);
            assert_true(share_route(share->slot, datagram->bytes, datagram->count).mine);
        }
    }
    return count;
}

static void put_wrong_handover(struct prng *prng, uint32_t slot, uint8_t *bytes, size_t count)
{
    const uint64_t magic = SHARE_MAGIC_HANDOVER;
    const size_t at = sizeof(struct share_handover);
    for (size_t k = 0; k < count; k++) {
        bytes[k] = (uint8_t)prng_next(prng) & (prng_below(prng, 2) ? 0xff : 0x0f);
    }
    if (count >= sizeof(magic)) {
        memcpy(bytes, &magic, sizeof(magic));
    }
    if (count >= at + 2 + ROCE_BTH_BYTES && prng_below(prng, 2)) {
        store_be16(bytes + at, (uint16_t)(count - at - 2)); /* Whole, */
        if (prng_below(prng, 2)) {
            bytes[at + 2 + 5] = (uint8_t)slot; /* and for its reader. */
        }
    }
}

/* A process of our user that connects to a slot may send anything. */
static void test_wrong_handovers(void **state)
{
    (void)state;
    struct pair pair;
    struct prng prng;
    pid_t pid;
    uint32_t packets = 0, judged = 0;
    open_pair(&pair);
    prng_init(&prng, 5);
    const struct address *address = &pair.sets[1].entries[0];
    const struct share *share = address->share;
    const struct local_name name = local_name("slot/", &share->gid, (int)share->slot);
    for (int i = 0; i < 3000; i++) {
        uint8_t bytes[600];
        const size_t count = prng_below(&prng, sizeof(bytes)) + 1;
        put_wrong_handover(&prng, share->slot, bytes, count);
        packets += packets_in(bytes, count);
        const int fd = local_dial(&name, &pid);
        assert_true(fd >= 0);
        assert_true(local_send(fd, bytes, count, NULL, 0));
        descriptor_close(fd);
        while (has_packet(share->mail)) {
            judged += judge_mail(pair.ports[1], address);
        }
    }
    const struct udp_counters *counters = &pair.ports[1]->counters;
    assert_true(judged > 0 && judged <= counters->handed_to_us);
    assert_int_equal(counters->handed_to_us + counters->no_process, packets);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_handovers, take_address),
        cmocka_unit_test_setup(test_common_socket, take_address),
        cmocka_unit_test_setup(test_full_mailbox, take_address),
        cmocka_unit_test_setup(test_no_descriptor_left, take_address),
        cmocka_unit_test_setup(test_no_descriptor_for_a_connection, take_address),
        cmocka_unit_test_setup(test_owner_changes, take_address),
        cmocka_unit_test_setup(test_wrong_handovers, take_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
