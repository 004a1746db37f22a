/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_commands_fuzz - a program that writes anything to the rdma_cm device, and peers that answer it
 *                    anything.
 *
 * Goal    Commands of any length come, with any numbers of objects and addresses, and any MADs
 *         arrive in between. No assertion fails. No byte is written outside the memory that a
 *         program named for its answer. A command that fails makes nothing. All objects are given
 *         back when the files are closed.
 * Method  Two files of the real device on a live NIC without ports or threads. Commands come from
 *         the input, as bytes, or with their fields put right as far as hints say; pointers lead to
 *         buffers of exactly the size that the command names. MADs to peers are kept, and come
 *         back as they are or changed. The input says which process serves a port of this machine.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/live/live_bare.h"
#include "drivers/share.h"
#include "drivers/system/local_socket.h"
#include "kernel/cm_device.h"
#include "kernel/cm_internal.h"
#include "tests/fuzz/fake_world.h"
#include "world/manager.h"

#define FILES   2
#define LETTERS 4
#define HANDLES 8
#define BUFFER  1024

static struct {
    struct live *live;
    int fds[FILES];
    uint32_t handles[HANDLES]; /* That the device told us, ... */
    uint32_t handle_count;     /* ... ever. */
    uint8_t mads[LETTERS][CM_MAD_BYTES];
    uint32_t mad_count;
} world;

static const struct gid gids[] = {{.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
                                  {.bytes = {[0] = 0xfd, [15] = 1}}};

/* -- The layer below ----------------------------------------------------------------------------*/

enum status __wrap_live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot);
void __wrap_live_transmit_mad(struct live *live, const struct nic_av *av,
                              const uint8_t mad[CM_MAD_BYTES]);

struct live *process_live_started(void)
{
    return world.live;
}

enum status __wrap_live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot)
{
    (void)live;
    (void)av;
    CHECK(slot < SHARE_SLOTS);
    return STATUS_OK;
}

void __wrap_live_transmit_mad(struct live *live, const struct nic_av *av,
                              const uint8_t mad[CM_MAD_BYTES])
{
    struct cm_message message;
    (void)live;
    (void)av;
    CHECK(cm_decode(mad, CM_MAD_BYTES, &message) == CM_GOOD);
    memcpy(world.mads[world.mad_count++ % LETTERS], mad, CM_MAD_BYTES);
}

/* -- Commands -----------------------------------------------------------------------------------*/

static void write_address(struct input *input, void *to)
{
    const uint8_t choice = take(input);
    if (choice & 1) {
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(choice >> 6)};
        v4.sin_addr.s_addr =
            htonl(choice & 2 ? 0 : (choice & 4 ? 0x7f000000u : 0x0a000000u) | (choice >> 3 & 7));
        memcpy(to, &v4, sizeof(v4));
    } else if (choice & 2) {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(choice >> 6)};
        v6.sin6_addr.s6_addr[0] = choice & 4 ? 0xfd : choice & 8 ? 0xff : 0;
        v6.sin6_addr.s6_addr[15] = choice >> 4 & 3;
        memcpy(to, &v6, sizeof(v6));
    }
}

static uint32_t handle_of(struct input *input)
{
    const uint8_t choice = take(input);
    return choice == 0xff ? take_number(input, 4) : world.handles[choice % HANDLES];
}

/* Where each command has the number of its object, its answer's address (+ 1; 0: none), its
 * addresses. */
static const struct {
    uint16_t bytes, id, response, address, second;
} forms[] = {
#define AT(type, member) (1 + offsetof(struct type, member))
#define FORM(type)       .bytes = sizeof(struct type), .id = offsetof(struct type, id)
    [RDMA_USER_CM_CMD_CREATE_ID] = {sizeof(struct rdma_ucm_create_id), 0,
                                    AT(rdma_ucm_create_id, response), 0, 0},
    [RDMA_USER_CM_CMD_DESTROY_ID] = {FORM(rdma_ucm_destroy_id), AT(rdma_ucm_destroy_id, response),
                                     0, 0},
    [RDMA_USER_CM_CMD_BIND_IP] = {FORM(rdma_ucm_bind_ip), 0,
                                  offsetof(struct rdma_ucm_bind_ip, addr), 0},
    [RDMA_USER_CM_CMD_RESOLVE_IP] = {FORM(rdma_ucm_resolve_ip), 0,
                                     offsetof(struct rdma_ucm_resolve_ip, src_addr),
                                     offsetof(struct rdma_ucm_resolve_ip, dst_addr)},
    [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {FORM(rdma_ucm_resolve_route), 0, 0, 0},
    [RDMA_USER_CM_CMD_QUERY_ROUTE] = {FORM(rdma_ucm_query), AT(rdma_ucm_query, response), 0, 0},
    [RDMA_USER_CM_CMD_CONNECT] = {FORM(rdma_ucm_connect), 0, 0, 0},
    [RDMA_USER_CM_CMD_LISTEN] = {FORM(rdma_ucm_listen), 0, 0, 0},
    [RDMA_USER_CM_CMD_ACCEPT] = {FORM(rdma_ucm_accept), 0, 0, 0},
    [RDMA_USER_CM_CMD_REJECT] = {FORM(rdma_ucm_reject), 0, 0, 0},
    [RDMA_USER_CM_CMD_DISCONNECT] = {FORM(rdma_ucm_disconnect), 0, 0, 0},
    [RDMA_USER_CM_CMD_INIT_QP_ATTR] = {FORM(rdma_ucm_init_qp_attr),
                                       AT(rdma_ucm_init_qp_attr, response), 0, 0},
    [RDMA_USER_CM_CMD_GET_EVENT] = {sizeof(struct rdma_ucm_get_event), 0,
                                    AT(rdma_ucm_get_event, response), 0, 0},
    [RDMA_USER_CM_CMD_SET_OPTION] = {FORM(rdma_ucm_set_option), AT(rdma_ucm_set_option, optval), 0,
                                     0},
    [RDMA_USER_CM_CMD_NOTIFY] = {FORM(rdma_ucm_notify), 0, 0, 0},
    [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {FORM(rdma_ucm_join_ip_mcast),
                                        AT(rdma_ucm_join_ip_mcast, response),
                                        offsetof(struct rdma_ucm_join_ip_mcast, addr), 0},
    [RDMA_USER_CM_CMD_LEAVE_MCAST] = {FORM(rdma_ucm_destroy_id), AT(rdma_ucm_destroy_id, response),
                                      0, 0},
    [RDMA_USER_CM_CMD_MIGRATE_ID] = {FORM(rdma_ucm_migrate_id), AT(rdma_ucm_migrate_id, response),
                                     0, 0},
    [RDMA_USER_CM_CMD_QUERY] = {FORM(rdma_ucm_query), AT(rdma_ucm_query, response), 0, 0},
    [RDMA_USER_CM_CMD_BIND] = {FORM(rdma_ucm_bind), 0, offsetof(struct rdma_ucm_bind, addr), 0},
    [RDMA_USER_CM_CMD_RESOLVE_ADDR] = {FORM(rdma_ucm_resolve_addr), 0,
                                       offsetof(struct rdma_ucm_resolve_addr, src_addr),
                                       offsetof(struct rdma_ucm_resolve_addr, dst_addr)},
    [RDMA_USER_CM_CMD_JOIN_MCAST] = {FORM(rdma_ucm_join_mcast), AT(rdma_ucm_join_mcast, response),
                                     offsetof(struct rdma_ucm_join_mcast, addr), 0},
    [CM_RESOLVE_IB_SERVICE] = {FORM(cm_resolve_ib_service), 0, 0, 0},
    [CM_WRITE_EVENT] = {FORM(cm_write_event), 0, 0, 0},
};

/* Numbers that a program has of the kernel, and that no fuzzer guesses. */
static void fill_in(struct input *input, uint32_t number, uint8_t *in)
{
    const uint32_t handle = handle_of(input);
    static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB};
    if (number == RDMA_USER_CM_CMD_CREATE_ID) {
        struct rdma_ucm_create_id create = {.uid = take(input),
                                            .qp_type = (uint8_t)(2 + take(input) % 3)};
        create.ps = spaces[take(input) % COUNT_OF(spaces)];
        memcpy(in, &create, sizeof(create));
    } else if (number != RDMA_USER_CM_CMD_GET_EVENT) {
        memcpy(in + forms[number].id, &handle, sizeof(handle));
    }
    if (number == RDMA_USER_CM_CMD_MIGRATE_ID) {
        const uint32_t fd = (uint32_t)world.fds[take(input) % FILES];
        memcpy(in + offsetof(struct rdma_ucm_migrate_id, fd), &fd, sizeof(fd));
    }
    if (forms[number].address != 0) {
        write_address(input, in + forms[number].address);
    }
    if (forms[number].second != 0) {
        write_address(input, in + forms[number].second);
    }
    if (number == RDMA_USER_CM_CMD_BIND || number == RDMA_USER_CM_CMD_JOIN_MCAST) {
        const uint16_t bytes = sizeof(struct sockaddr_in6);
        const size_t at = number == RDMA_USER_CM_CMD_BIND
                              ? offsetof(struct rdma_ucm_bind, addr_size)
                              : offsetof(struct rdma_ucm_join_mcast, addr_size);
        memcpy(in + at, &bytes, sizeof(bytes));
    } else if (number == RDMA_USER_CM_CMD_RESOLVE_ADDR) {
        const uint16_t bytes = sizeof(struct sockaddr_in6);
        memcpy(in + offsetof(struct rdma_ucm_resolve_addr, src_size), &bytes, sizeof(bytes));
        memcpy(in + offsetof(struct rdma_ucm_resolve_addr, dst_size), &bytes, sizeof(bytes));
    }
}

static uint32_t objects(void)
{
    uint32_t count = 0, at = 0;
    while (cm_handle_each(&at, CM_HANDLE_ID) != NULL) {
        count++;
    }
    for (at = 0; cm_handle_each(&at, CM_HANDLE_MULTICAST) != NULL;) {
        count++;
    }
    return count;
}

static bool tells_handle(uint32_t number)
{
    return number == RDMA_USER_CM_CMD_CREATE_ID || number == RDMA_USER_CM_CMD_JOIN_IP_MCAST ||
           number == RDMA_USER_CM_CMD_JOIN_MCAST;
}

static void remember(uint32_t handle)
{
    world.handles[world.handle_count++ % HANDLES] = handle;
}

/* Remembers the handles in the device's answer, which has `room` bytes. */
static void listen_to(uint32_t number, const uint8_t *out, size_t room)
{
    uint32_t handle;
    if (tells_handle(number) && room >= sizeof(handle)) {
        memcpy(&handle, out, sizeof(handle));
        CHECK(handle != 0);
        remember(handle);
    } else if (number == RDMA_USER_CM_CMD_GET_EVENT) {
        struct rdma_ucm_event_resp event;
        memset(&event, 0, sizeof(event));
        memcpy(&event, out, room < sizeof(event) ? room : sizeof(event));
        if (event.event == RDMA_EVENT_CONNECT_REQUEST) {
            remember(event.id);
        }
    }
}

static bool is_known(uint32_t number)
{
    return number < COUNT_OF(forms) && forms[number].bytes != 0;
}

/* The parts of a command that are put right. */
enum hint {
    HINT_ROOM = 1,        /* There is room for any answer. */
    HINT_NUMBERS = 2,     /* Not: objects, addresses. */
    HINT_NOWHERE = 4,     /* Not: the answer has a place. */
    HINT_EMPTY = 8,       /* All other bytes are 0. */
    HINT_SHORT = 16,      /* Not: as long as it should be, ... */
    HINT_MISCOUNTED = 32, /* ... as long as its header says, ... */
    HINT_CUT = 64,        /* ... and written as a whole. */
    HINT_FILE = 128,      /* Which file. */
};

/* Pointers, which lead to `out` or nowhere; an option's value is read from there. */
static void point(struct input *input, uint32_t number, uint8_t *in, uint8_t *out, size_t room,
                  bool nowhere)
{
    const uint64_t response = nowhere ? 0 : (uintptr_t)out;
    if (is_known(number) && forms[number].response != 0) {
        memcpy(in + forms[number].response - 1, &response, sizeof(response));
    }
    if (number == RDMA_USER_CM_CMD_SET_OPTION) {
        const size_t at = offsetof(struct rdma_ucm_set_option, optlen);
        uint32_t length;
        memcpy(&length, in + at, sizeof(length));
        length %= (uint32_t)room + 1;
        memcpy(in + at, &length, sizeof(length));
        take_bytes(input, out, length < 8 ? length : 8);
    }
}

/* Takes `written` bytes of `bytes`, as far as there are `count` of them; the rest is 0. */
static void write_command(uint8_t file, const uint8_t *bytes, size_t count, size_t written,
                          uint32_t number, const uint8_t *out, size_t room)
{
    uint8_t *copy = calloc(1, written + 1);
    CHECK(copy != NULL);
    memcpy(copy, bytes, written < count ? written : count);
    const uint32_t before = objects();
    const ssize_t done = cm_device_write(world.fds[file], copy, written);
    CHECK(done == -1 || done == (ssize_t)written);
    if (done > 0) {
        listen_to(number, out, room);
    } else {
        CHECK(objects() == before);
    }
    free(copy);
}

static void command(struct input *input)
{
    const uint8_t choice = take(input), hints = take(input);
    const uint32_t number = choice % 26; /* Two more than there are. */
    uint8_t bytes[sizeof(struct rdma_ucm_cmd_hdr) + BUFFER] = {0};
    uint8_t *in = bytes + sizeof(struct rdma_ucm_cmd_hdr);
    const size_t whole = is_known(number) ? forms[number].bytes : 16;
    const size_t room = hints & HINT_ROOM ? 512 : take(input) * 2u;
    uint8_t *out = calloc(1, room + 1); /* One byte more is watched. */
    CHECK(out != NULL);
    out[room] = 0xa5;
    if ((hints & HINT_EMPTY) == 0) {
        take_bytes(input, in, take(input) % whole + 1);
    }
    if ((hints & HINT_NUMBERS) == 0 && is_known(number)) {
        fill_in(input, number, in);
    }
    point(input, number, in, out, room, hints & HINT_NOWHERE);
    const size_t count = hints & HINT_SHORT ? take(input) * 2u : whole;
    const struct rdma_ucm_cmd_hdr header = {
        .cmd = number,
        .in = (uint16_t)(hints & HINT_MISCOUNTED ? take_number(input, 2) : count),
        .out = (uint16_t)room,
    };
    memcpy(bytes, &header, sizeof(header));
    write_command(hints & HINT_FILE ? 1 : 0, bytes, sizeof(bytes),
                  hints & HINT_CUT ? take(input) : sizeof(header) + count, number, out, room);
    CHECK(out[room] == 0xa5);
    free(out);
}

/* -- Peers and time -----------------------------------------------------------------------------*/

/* A MAD of ours comes back, as an answer or as a question, with some bytes changed. */
static void hear(struct input *input)
{
    const uint8_t choice = take(input);
    uint8_t mad[CM_MAD_BYTES];
    memcpy(mad, world.mads[choice % LETTERS], sizeof(mad));
    struct cm_message message;
    if ((choice & 4) != 0 && cm_decode(mad, sizeof(mad), &message) == CM_GOOD) {
        const uint32_t local = message.local_id;
        message.local_id = message.remote_id != 0 ? message.remote_id : 7;
        message.remote_id = local;
        message.attribute = (uint16_t)(CM_REQ + take(input) % 9);
        cm_encode(&message, mad);
    }
    for (uint8_t i = choice >> 4 & 7; i > 0; i--) {
        mad[take(input)] = take(input);
    }
    const struct gid peer = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = choice >> 7}};
    live_lock(world.live);
    CHECK(live_cm_prepare(world.live));
    rdma_cm_on_message(live_cm(world.live), peer.bytes, gids[0].bytes, mad, sizeof(mad),
                       live_now(world.live));
    live_cm_settle(world.live);
    live_unlock(world.live);
}

static void on_time(struct live *live)
{
    live_lock(live);
    live_bare_on_time(live);
    live_unlock(live);
}

static void pass_time(struct input *input, uint8_t shift)
{
    fake_world_pass((uint64_t)take(input) << shift);
    on_time(world.live);
}

static void settle(void)
{
    live_lock(world.live);
    live_cm_settle(world.live);
    live_unlock(world.live);
}

static void step(struct input *input)
{
    const uint8_t kind = take(input);
    switch (kind & 7) {
    default: command(input); break;
    case 5: hear(input); break;
    case 6: pass_time(input, 16 + (kind >> 4)); break;
    case 7: settle(); break;
    }
}

static void make(void)
{
    memset(&world, 0, sizeof(world));
    world.live = live_bare_make(gids, COUNT_OF(gids));
}

static void drop(void)
{
    struct live *live = world.live;
    struct rdma_cm *cm = live_cm(live);
    fake_world_calm();
    for (int i = 0; i < FILES; i++) {
        if (world.fds[i] >= 0) {
            cm_device_close(world.fds[i]);
            close(world.fds[i]);
        }
    }
    /* A connection whose peer does not answer ends after a while. */
    for (int i = 0; i < 64; i++) {
        fake_world_pass(60000 * FAKE_MS);
        on_time(live);
    }
    CHECK(objects() == 0);
    CHECK(fake_world_claims() == 0 && fake_world_questions() == 0);
    CHECK(list_empty(&cm->released));
    struct list *node;
    while ((node = list_pop(&cm->spare_ids)) != NULL) {
        const struct rdma_id *id = CONTAINER_OF(node, struct rdma_id, released);
        free((void *)(uintptr_t)CONTAINER_OF_CONST(id, struct cm_id, core));
    }
    live_bare_drop(live);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    make();
    fake_world_begin(&input);
    for (int i = 0; i < FILES; i++) {
        world.fds[i] = cm_device_open(O_NONBLOCK | O_CLOEXEC);
        CHECK(world.fds[i] >= 0);
    }
    while (input.count > 0) {
        step(&input);
    }
    drop();
    fake_world_end();
    return 0;
}
