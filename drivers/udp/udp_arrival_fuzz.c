/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_arrival_fuzz - all messages that come in at an address that several processes share:
 * datagrams and probes of strangers, coalesced in any way, handovers of other processes, requests
 * of the connection manager, and answers about the owner of a port.
 *
 * Goal    Whatever comes, no assertion fails, the engines' invariants hold, nothing outside the
 *         region is written, a stranger makes no link, no probe is answered twice, and the requests
 *         of strangers that are kept stay within their bounds.
 * Method  The real code, from recvmsg on, which the linker replaces. The input is a sequence of
 *         steps: a call's worth of datagrams, sealed or not, of some source and with some size that
 *         the kernel is said to have coalesced; a handover; a link of ours, packets that we send
 *         there, time.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "drivers/live/live_bare.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_receive.h"
#include "drivers/system/local_socket.h"
#include "tests/fuzz/fake_world.h"
#include "tests/fuzz/nic_target.h"
#include "wire/roce_frame.h"

#define SLOT          3
#define FD_OWN        100001
#define FD_COMMON     100002
#define FD_MAIL       100003
#define FD_LISTENER   100004
#define MESSAGE_BYTES 4096
#define CONTROL_BYTES 64
#define COPIES_MAX    3
#define LOOKUPS_MAX   1024
#define LINKS_MAX     16

static struct {
    struct nic_target nic;
    struct live *live;
    struct share share;
    struct input *input;
    struct sockaddr_storage from; /* The message that the next call brings, ... */
    uint8_t message[MESSAGE_BYTES];
    size_t bytes; /* ... 0: none. */
    uint8_t control[CONTROL_BYTES];
    size_t control_bytes;
    uint8_t handover[MESSAGE_BYTES];
    size_t handover_bytes;
    uint8_t copies; /* Messages of one call that asks for several: copies of it. */
    uint32_t probes, answers;
    uint32_t links;
} world;

/* Buffers of the port, which are written before they are read. */
static struct udp_link passing[UDP_PASSING_MAX];
static uint8_t receive_buffer[UDP_MESSAGES_MAX * UDP_RECEIVE_STRIDE];
static struct udp_inbox inbox;
static uint8_t handover_buffer[SHARE_HANDOVER_BYTES_MAX];

static const struct gid peers[] = {
    {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}}, /* nic_target has it. */
    {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}},
    {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, /* This is our own address. */
    {.bytes = {[0] = 0xfd, [15] = 2}},
};

/* -- Functions that the linker replaces ---------------------------------------------------------*/

long __wrap_syscall(long number, ...);
void __wrap_udp_port_transmit_headers(struct udp_port *port, struct udp_link *link,
                                      const uint8_t *headers, uint32_t headers_bytes);
void __wrap_udp_port_flush(struct udp_port *port);
enum share_fate __wrap_share_hand_on(struct share *share, uint32_t slot, const void *handover,
                                     size_t bytes);
size_t __wrap_share_collect(struct share *share, void *handover, size_t bytes_max);
void __wrap_share_admit(const struct share *share);
enum status __wrap_live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot);

static size_t fill(struct msghdr *message)
{
    CHECK(message->msg_iov->iov_len >= world.bytes &&
          message->msg_controllen >= world.control_bytes);
    memcpy(message->msg_name, &world.from, sizeof(world.from));
    memcpy(message->msg_iov->iov_base, world.message, world.bytes);
    memcpy(message->msg_control, world.control, world.control_bytes);
    message->msg_controllen = world.control_bytes;
    message->msg_flags = 0;
    return world.bytes;
}

/* The message once by recvmsg, or `copies` times by recvmmsg. */
long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    (void)va_arg(arguments, int);
    void *place = va_arg(arguments, void *);
    const bool many = number == SYS_recvmmsg;
    const uint32_t most = many ? va_arg(arguments, uint32_t) : 1;
    va_end(arguments);
    if ((number != SYS_recvmsg && !many) || world.bytes == 0) {
        errno = number != SYS_recvmsg && !many ? ENOSYS : EAGAIN;
        return -1;
    }
    long result = 0;
    if (!many) {
        result = (long)fill(place);
    }
    for (struct mmsghdr *one = place; many && result < world.copies && result < most; one++) {
        one->msg_len = (uint32_t)fill(&one->msg_hdr);
        result++;
    }
    world.bytes = 0;
    return result;
}

void __wrap_udp_port_transmit_headers(struct udp_port *port, struct udp_link *link,
                                      const uint8_t *headers, uint32_t headers_bytes)
{
    struct roce_probe probe;
    (void)port;
    CHECK(link->link.kind == LINK_UDP);
    CHECK(roce_probe_decode(headers, headers_bytes, &probe));
    world.answers += probe.opcode == ROCE_OPCODE_ANSWER;
}

void __wrap_udp_port_flush(struct udp_port *port)
{
    port->answering = false;
}

enum share_fate __wrap_share_hand_on(struct share *share, uint32_t slot, const void *handover,
                                     size_t bytes)
{
    CHECK(slot < SHARE_SLOTS && slot != share->slot);
    CHECK(share_handover_is_whole(handover, bytes));
    return (enum share_fate)(take(world.input) % 3);
}

size_t __wrap_share_collect(struct share *share, void *handover, size_t bytes_max)
{
    (void)share;
    const size_t bytes = world.handover_bytes;
    CHECK(bytes <= bytes_max);
    memcpy(handover, world.handover, bytes);
    world.handover_bytes = 0;
    return bytes;
}

void __wrap_share_admit(const struct share *share)
{
    (void)share;
}

enum status __wrap_live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot)
{
    (void)live;
    (void)av;
    CHECK(slot < SHARE_SLOTS);
    return STATUS_INVALID;
}

/* -- The port -----------------------------------------------------------------------------------*/

static void make_port(void)
{
    struct live *live = world.live;
    struct udp_port *port = &live->udp;
    world.share = (struct share){.gid = world.nic.self,
                                 .slot = SLOT,
                                 .listener = FD_LISTENER,
                                 .slot_listener = -1,
                                 .mail = FD_MAIL};
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        world.share.sockets[i] = FD_OWN;
    }
    world.share.sockets[SHARE_SOCKETS] = FD_COMMON;
    live->addresses = (struct address_set){
        .count = 1, .words = 1, .mtu = PATH_MTU_1024, .shared = true, .slot = SLOT};
    live->addresses.entries[0] = (struct address){
        .gid = world.nic.self, .fd = FD_OWN, .share = &world.share, .interface_bytes = 1500};
    port->addresses = &live->addresses;
    port->groups_fd = -1;
    port->receive_bytes = 1 << 20;
    memset(passing, 0, sizeof(passing));
    port->passing = passing;
    port->receive_buffer = receive_buffer;
    inbox.next = inbox.count = 0;
    port->inbox = &inbox;
    port->handover.bytes = handover_buffer;
}

static void drop_port(void)
{
    struct link *link;
    while ((link = link_table_next(&world.live->udp.links, NULL)) != NULL) {
        udp_port_drop(&world.live->udp, link);
    }
    link_table_close(&world.live->udp.links);
}

static void make(struct input *input)
{
    memset(&world, 0, sizeof(world));
    world.input = input;
    fake_world_begin(input);
    nic_target_make(&world.nic, NULL, SLOT * SHARE_QPN_SPAN, SHARE_QPN_SPAN);
    world.live = live_bare_make(&world.nic.self, 1);
    world.live->nic = world.nic.nic;
    make_port();
    live_lock(world.live); /* For all that an input does. */
    live_now(world.live);
}

static void drop(void)
{
    fake_world_calm();
    drop_port();
    live_unlock(world.live);
    live_bare_drop(world.live);
    CHECK(fake_world_questions() == 0);
    nic_target_drop(&world.nic);
    fake_world_end();
}

/* -- Strangers ----------------------------------------------------------------------------------*/

static size_t lay_probe(struct input *input, uint8_t *bytes)
{
    const uint8_t choice = take(input);
    const struct roce_probe probe = {
        .opcode = choice & 1 ? ROCE_OPCODE_PROBE : ROCE_OPCODE_ANSWER,
        .destination_qpn = SLOT * SHARE_QPN_SPAN + 2,
        .sent = take_number(input, 2),
        .link_slot = choice & 2 ? 0xffff : (uint16_t)(choice >> 4),
        .sender_slot = choice & 4 ? 0xffff : (uint16_t)take_number(input, 1 + (choice & 1))};
    roce_probe_encode(&probe, bytes);
    return ROCE_PROBE_BYTES;
}

static void lay_request(struct input *input, uint8_t *mad)
{
    const uint8_t choice = take(input);
    struct cm_message message = {.attribute = choice & 1   ? CM_REQ
                                              : choice & 2 ? CM_SIDR_REQ
                                                           : (uint16_t)(CM_REQ + choice / 4 % 9),
                                 .local_id = take(input),
                                 .remote_id = (uint32_t)take(input) << 24 | 1,
                                 .transaction_id = take(input)};
    const uint64_t service = cm_service_id(0x106 + (choice >> 7), take(input) % 32);
    if (message.attribute == CM_REQ) {
        message.req = (struct cm_req){
            .service_id = service, .qpn = 77, .path_mtu = PATH_MTU_1024, .pkey = 0xffff};
    } else if (message.attribute == CM_SIDR_REQ) {
        message.sidr_req.service_id = service;
    }
    struct cm_addresses addresses = {.source_port = 1000};
    memcpy(addresses.source, peers[1].bytes, 16);
    memcpy(addresses.destination, world.nic.self.bytes, 16);
    cm_addresses_encode(&addresses, message.private_data);
    cm_encode(&message, mad);
    for (uint8_t i = take(input) & 3; i > 0; i--) {
        mad[take(input)] = take(input);
    }
}

static size_t lay_mad(struct input *input, uint8_t *bytes)
{
    const struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = CM_QPN,
                                       .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN}};
    const size_t head = roce_encode_headers(&packet, bytes);
    lay_request(input, bytes + head);
    return head + CM_MAD_BYTES;
}

/* Writes a packet from the BTH on, without ICRC. */
static size_t lay_packet(struct input *input, uint8_t *bytes)
{
    const uint8_t kind = take(input), hints = take(input);
    if ((kind & 3) == 1) {
        return lay_probe(input, bytes);
    }
    if ((kind & 3) == 2) {
        return lay_mad(input, bytes);
    }
    const size_t count = take_bytes(input, bytes, take(input) * (kind & 4 ? 4u : 1u));
    struct roce_packet packet;
    if (roce_decode(bytes, count, &packet) == ROCE_GOOD && (kind & 8) == 0) {
        nic_target_hint(&world.nic, hints & (HINT_SERVICE | HINT_PSN | HINT_KEY | HINT_QKEY),
                        &packet);
        packet.destination_qpn ^= (hints & 64) != 0 ? SHARE_QPN_SPAN : 0;
        roce_encode_headers(&packet, bytes);
    }
    return count;
}

static void tell(int level, int type, int value)
{
    struct cmsghdr header = {
        .cmsg_len = CMSG_LEN(sizeof(value)), .cmsg_level = level, .cmsg_type = type};
    CHECK(world.control_bytes + CMSG_SPACE(sizeof(value)) <= CONTROL_BYTES);
    memcpy(world.control + world.control_bytes, &header, sizeof(header));
    memcpy(world.control + world.control_bytes + CMSG_LEN(0), &value, sizeof(value));
    world.control_bytes += CMSG_SPACE(sizeof(value));
}

static void set_source(uint8_t choice, struct gid *source)
{
    *source = peers[choice % COUNT_OF(peers)];
    const uint16_t port = choice & 128 ? (uint16_t)(choice + 1000) : ROCE_UDP_PORT;
    memset(&world.from, 0, sizeof(world.from));
    if (inet_is_ipv4(source->bytes)) {
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&v4.sin_addr, source->bytes + 12, 4);
        memcpy(&world.from, &v4, sizeof(v4));
    } else {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&v6.sin6_addr, source->bytes, 16);
        memcpy(&world.from, &v6, sizeof(v6));
    }
}

/* Writes several packets, one behind the other, as one call brings them. */
static void lay_message(struct input *input)
{
    const uint8_t choice = take(input), packets = 1 + (take(input) & 3);
    struct gid source;
    size_t first = 0;
    set_source(choice, &source);
    struct inet_flow flow = roce_flow(source.bytes, world.nic.self.bytes);
    flow.source_port = choice & 128 ? (uint16_t)(choice + 1000) : ROCE_UDP_PORT;
    world.bytes = world.control_bytes = 0;
    for (uint8_t i = 0; i < packets && world.bytes < sizeof(world.message) - 1100; i++) {
        uint8_t *at = world.message + world.bytes;
        size_t count = lay_packet(input, at);
        if (count >= ROCE_BTH_BYTES && (choice & 64) == 0) {
            count = roce_frame_seal(&flow, at, count, 0);
        }
        first = i == 0 ? count : first;
        world.bytes += count;
        world.probes += COPIES_MAX; /* There is one probe at most in each. */
    }
    if (packets > 1) {
        tell(IPPROTO_UDP, UDP_GRO, choice & 32 ? (int)take_number(input, 4) : (int)first);
        world.probes += COPIES_MAX * MESSAGE_BYTES / (ROCE_PROBE_BYTES + ROCE_ICRC_BYTES);
    }
    if (choice & 16) {
        tell(IPPROTO_IP, choice & 8 ? IP_TOS : IP_TTL, take(input));
    }
}

static void receive(struct input *input, bool common)
{
    const uint8_t copies = take(input);
    lay_message(input);
    world.copies = copies % (COPIES_MAX + 1);
    world.live->udp.alone = world.copies > 0;
    world.live->udp.fruitful_looks = world.copies > 0 ? UINT32_MAX / 2 : 0;
    if (common) {
        CHECK(live_receive_shared(world.live, FD_COMMON));
    } else {
        (void)live_receive(world.live, 32, true);
    }
    world.bytes = 0;
}

static void receive_handover(struct input *input)
{
    const uint8_t choice = take(input);
    struct share_handover handover = {.magic = SHARE_MAGIC_HANDOVER + (choice >> 7),
                                      .source = peers[choice % COUNT_OF(peers)],
                                      .hop_limit = take(input),
                                      .flow_label = take_number(input, 3)};
    size_t at = sizeof(handover);
    memcpy(world.handover, &handover, sizeof(handover));
    for (uint8_t i = 0; i < (choice >> 4 & 7) && at < sizeof(world.handover) - 1100; i++) {
        const size_t count = lay_packet(input, world.handover + at + 2);
        store_be16(world.handover + at, (uint16_t)count);
        at += 2 + count;
    }
    if (choice & 8) {
        world.handover[take_number(input, 2) % at] = take(input);
    }
    uint8_t *copy = malloc(at);
    CHECK(copy != NULL);
    memcpy(copy, world.handover, at);
    world.handover_bytes = share_handover_is_whole(copy, at) ? at : 0;
    world.probes += (uint32_t)(at / ROCE_PROBE_BYTES);
    free(copy);
    CHECK(live_receive_shared(world.live, FD_MAIL));
}

/* -- We -----------------------------------------------------------------------------------------*/

static uint32_t count_links(void)
{
    uint32_t count = 0;
    struct link *base = NULL;
    while ((base = link_table_next(&world.live->udp.links, base)) != NULL) {
        const struct udp_link *link = CONTAINER_OF_CONST(base, struct udp_link, link);
        CHECK(link->sent - link->confirmed <= link->sent);
        count++;
    }
    CHECK(count == world.live->udp.links.count);
    return count;
}

static void check(void)
{
    const struct list *head = &world.live->manager.lookups;
    uint32_t lookups = 0;
    for (const struct list *node = head->next; node != head; node = node->next) {
        lookups++;
    }
    CHECK(world.live->manager.parked_count <= LOOKUPS_MAX &&
          lookups <= world.live->manager.parked_count);
    CHECK(count_links() == world.links);
    CHECK(world.answers <= world.probes);
    CHECK(world.live->udp.handover.count == 0 && world.live->udp.handover.packets == 0);
    nic_target_check(&world.nic);
}

static void use_link(struct input *input)
{
    const uint8_t choice = take(input);
    const struct gid *peer = &peers[choice % COUNT_OF(peers)];
    const int slot = (int)(choice >> 4 & 3) - 1;
    const bool known = udp_port_known_link(&world.live->udp, &world.nic.self, peer, slot) != NULL;
    if (!known && world.links == LINKS_MAX) {
        return;
    }
    struct link *link = udp_port_link(&world.live->udp, &world.nic.self, peer, slot);
    world.links += !known && link != NULL;
    CHECK(!known || link != NULL);
    if (link != NULL) {
        for (uint32_t i = take(input) & 15; i > 0; i--) {
            udp_flow_sent(&world.live->udp, CONTAINER_OF(link, struct udp_link, link),
                          take_number(input, 2));
        }
        (void)udp_link_has_room(&world.live->udp, link, world.live->now);
    }
}

static void pass_time(uint64_t ns)
{
    fake_world_pass(ns);
    live_bare_on_time(world.live);
    if (instant_reached(world.live->now, nic_deadline(world.nic.nic))) {
        nic_on_time(world.nic.nic, world.live->now);
    }
}

static void pull(void)
{
    struct nic_departure departure;
    struct qp *qp;
    while ((qp = nic_next_qp(world.nic.nic)) != NULL) {
        (void)nic_next_packet(world.nic.nic, qp, world.live->now, &departure);
    }
}

static void step(struct input *input)
{
    const uint8_t kind = take(input);
    switch (kind & 7) {
    default: receive(input, kind & 8); break;
    case 3:
    case 4: receive_handover(input); break;
    case 5: use_link(input); break;
    case 6: pass_time((uint64_t)take(input) << (8 + (kind >> 4))); break;
    case 7:
        pull();
        live_cm_settle(world.live);
        break;
    }
    check();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    make(&input);
    while (input.count > 0) {
        step(&input);
    }
    drop();
    return 0;
}
