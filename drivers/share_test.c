/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Processes that share an address each get what is for their queue pairs, whoever of them
 *         came first, died, or is stopped; what one reads of another is handed on, once, whole, and
 *         only there; a port that is not to be shared is an error in words.
 * Method  Members are children that admit newcomers and tell what they receive; the test is a
 *         stranger with a plain socket. Members of one process try the letters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/local_socket.h"
#include "drivers/share_route.h"
#include "drivers/udp_port.h"
#include "wire/icrc.h"

#define CHILDREN         8
#define PACKET_BYTES     64
#define MAD_PACKET_BYTES (12 + 8 + 256 + 4)

/* An address of each test, children and all, so that none finds what another one that failed left:
 * loopback, and not one that a lone process draws. */
static char own_text[32];

static int take_address(void **state)
{
    (void)state;
    static int tests;
    const int host = getpid() % 4000 * 16 + tests++ % 16 + 1;
    snprintf(own_text, sizeof(own_text), "127.255.%d.%d", host / 256, host % 256);
    return 0;
}

static const char *own_address(void)
{
    return own_text;
}

static struct sockaddr_in port_of(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return address;
}

/* From a stranger; the last four bytes become the ICRC. */
static void send_bytes(int fd, uint8_t *packet, size_t count)
{
    struct sockaddr_in to = port_of(own_address()), from;
    socklen_t bytes = sizeof(from);
    struct inet_flow flow = {.destination_port = ROCE_UDP_PORT};
    assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &bytes), 0);
    flow.source[10] = flow.source[11] = flow.destination[10] = flow.destination[11] = 0xff;
    memcpy(flow.source + 12, &from.sin_addr, 4);
    memcpy(flow.destination + 12, &to.sin_addr, 4);
    flow.source_port = ntohs(from.sin_port);
    uint32_t crc = icrc_begin(&flow, 0, count, packet);
    crc = icrc_extend(crc, packet + ROCE_BTH_BYTES, count - ROCE_BTH_BYTES - 4);
    store_le32(packet + count - 4, icrc_finish(crc));
    assert_int_equal(sendto(fd, packet, count, 0, (struct sockaddr *)&to, sizeof(to)), count);
}

static void send_packet(int fd, uint32_t qpn, uint32_t tag)
{
    uint8_t packet[PACKET_BYTES] = {[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY)};
    store_be32(packet + 4, qpn);
    store_be32(packet + 12, tag);
    send_bytes(fd, packet, sizeof(packet));
}

/* A message of communication management, in 280 bytes. */
static void put_mad(uint8_t *packet, uint16_t attribute, uint32_t local_id, uint32_t remote_id)
{
    memset(packet, 0, MAD_PACKET_BYTES);
    packet[0] = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY);
    packet[7] = 1;     /* Queue pair 1. */
    packet[20] = 1;    /* Version of MADs, */
    packet[21] = 0x07; /* communication management. */
    store_be16(packet + 20 + 16, attribute);
    store_be32(packet + 20 + 24, local_id);
    store_be32(packet + 20 + 28, remote_id);
}

static int stranger(void)
{
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in self = {.sin_family = AF_INET};
    const int discover = IP_PMTUDISC_DO;
    inet_pton(AF_INET, "127.0.0.1", &self.sin_addr);
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    assert_int_equal(bind(fd, (struct sockaddr *)&self, sizeof(self)), 0);
    return fd;
}

/* -- Sockets ------------------------------------------------------------------------------------*/

static bool has_packet(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

static void test_every_slot_has_its_socket(void **state)
{
    (void)state;
    char error[256], packet[PACKET_BYTES];
    struct address_set set;
    assert_true(address_find(&set, own_address(), error, sizeof(error)));
    const struct share *share = set.entries[0].share;
    const int fd = stranger();
    for (uint32_t slot = 0; slot < SHARE_SLOTS; slot++) {
        const uint32_t qpns[3] = {slot << 16 | 2, slot << 16 | 0xfffe, slot << 16 | 0x8000};
        for (int i = 0; i < 3; i++) {
            send_packet(fd, qpns[i], 0);
            const int expected = share->sockets[slot % SHARE_SOCKETS];
            assert_int_equal(recv(expected, packet, sizeof(packet), MSG_DONTWAIT), PACKET_BYTES);
        }
    }
    /* What is nobody's in particular; a packet too short to have a queue pair, too. */
    const uint32_t common[3] = {0, 1, 0xffffff};
    for (int i = 0; i < 3; i++) {
        send_packet(fd, common[i], 0);
        assert_int_equal(recv(share_common_socket(share), packet, sizeof(packet), MSG_DONTWAIT),
                         PACKET_BYTES);
    }
    const struct sockaddr_in to = port_of(own_address());
    for (size_t bytes = 0; bytes < 12; bytes++) {
        sendto(fd, packet, bytes, 0, (const struct sockaddr *)&to, sizeof(to));
        assert_int_equal(recv(share_common_socket(share), packet, sizeof(packet), MSG_DONTWAIT),
                         bytes);
    }
    close(fd);
    address_release(&set);
}

/* -- Members that are processes -----------------------------------------------------------------*/

struct child {
    pid_t pid;
    uint32_t slot;
    int reports; /* A pipe: the tag of every packet that came to its socket. */
};

static void be_member(int reports)
{
    char error[256] = "";
    struct address_set set;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!address_find(&set, own_address(), error, sizeof(error))) {
        fprintf(stderr, "%s\n", error);
        _exit(1);
    }
    const struct share *share = set.entries[0].share;
    const int epoll = epoll_create1(0);
    struct epoll_event admit = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = share->listener};
    struct epoll_event own = {.events = EPOLLIN, .data.fd = set.entries[0].fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, share->listener, &admit);
    epoll_ctl(epoll, EPOLL_CTL_ADD, set.entries[0].fd, &own);
    if (write(reports, &set.slot, sizeof(set.slot)) != sizeof(set.slot)) {
        _exit(1);
    }
    for (;;) {
        struct epoll_event event;
        uint8_t packet[PACKET_BYTES];
        if (epoll_wait(epoll, &event, 1, -1) != 1) {
            continue;
        }
        if (event.data.fd == share->listener) {
            share_admit(share);
        } else if (recv(event.data.fd, packet, sizeof(packet), MSG_DONTWAIT) == PACKET_BYTES) {
            const uint32_t tag = load_be32(packet + 12);
            (void)!write(reports, &tag, sizeof(tag));
        }
    }
}

static bool next_report(const struct child *child, uint32_t *value)
{
    struct pollfd wait = {.fd = child->reports, .events = POLLIN};
    return poll(&wait, 1, 10000) == 1 &&
           read(child->reports, value, sizeof(*value)) == sizeof(*value);
}

static void fork_member(struct child *child)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    child->pid = fork();
    if (child->pid == 0) {
        be_member(ends[1]);
    }
    close(ends[1]);
    child->reports = ends[0];
}

static void start_members(struct child *children, int count)
{
    for (int i = 0; i < count; i++) {
        fork_member(&children[i]);
    }
    for (int i = 0; i < count; i++) {
        assert_true(next_report(&children[i], &children[i].slot));
        for (int k = 0; k < i; k++) {
            assert_int_not_equal(children[i].slot, children[k].slot);
        }
    }
}

static void end_member(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->reports);
    child->pid = 0;
}

static void stop_member(const struct child *child)
{
    int status;
    kill(child->pid, SIGSTOP);
    assert_int_equal(waitpid(child->pid, &status, WUNTRACED), child->pid);
    assert_true(WIFSTOPPED(status));
}

/* Every living member gets its own. */
static void check_delivery(int fd, const struct child *children, int count, uint32_t *tag)
{
    for (int i = 0; i < count; i++) {
        if (children[i].pid != 0) {
            uint32_t came = 0;
            send_packet(fd, children[i].slot << 16 | 77, ++*tag);
            assert_true(next_report(&children[i], &came));
            assert_int_equal(came, *tag);
        }
    }
}

/* All start at once: one of them makes the sockets. Then each in turn is killed and replaced, the
 * one who made them too. */
static void test_members_come_and_go(void **state)
{
    (void)state;
    struct child children[CHILDREN];
    uint32_t tag = 0;
    const int fd = stranger();
    start_members(children, CHILDREN);
    check_delivery(fd, children, CHILDREN, &tag);
    for (int i = 0; i < CHILDREN; i++) {
        end_member(&children[i]);
        check_delivery(fd, children, CHILDREN, &tag);
        fork_member(&children[i]);
        assert_true(next_report(&children[i], &children[i].slot));
        check_delivery(fd, children, CHILDREN, &tag);
    }
    for (int i = 0; i < CHILDREN; i++) {
        end_member(&children[i]);
    }
    /* With the last one everything is gone. */
    const struct sockaddr_in address = port_of(own_address());
    struct share nobody;
    memset(&nobody, 0xff, sizeof(nobody)); /* No descriptor. */
    assert_false(share_is_disturbed(&nobody, (const struct sockaddr *)&address));
    close(fd);
}

/* Members that are killed while they join leave no half of a share behind. */
static void test_killed_while_joining(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    for (int round = 0; round < 40; round++) {
        struct child children[3], last;
        for (int i = 0; i < 3; i++) {
            fork_member(&children[i]);
        }
        usleep((useconds_t)prng_below(&prng, 4000));
        for (int i = 0; i < 3; i++) {
            end_member(&children[i]);
        }
        fork_member(&last);
        assert_true(next_report(&last, &last.slot));
        end_member(&last);
    }
}

static void test_stopped_members(void **state)
{
    (void)state;
    struct child children[4];
    struct address_set set;
    char error[256];
    uint32_t tag = 0;
    const int fd = stranger();
    start_members(children, 4);
    for (int i = 0; i < 3; i++) {
        stop_member(&children[i]);
    }
    /* The fourth admits, and gets its packets. */
    assert_true(address_find(&set, own_address(), error, sizeof(error)));
    address_release(&set);
    check_delivery(fd, children + 3, 1, &tag);
    stop_member(&children[3]);
    assert_false(address_find(&set, own_address(), error, sizeof(error)));
    assert_non_null(strstr(error, "stopped"));
    /* They go on where they were. */
    for (int i = 0; i < 4; i++) {
        kill(children[i].pid, SIGCONT);
    }
    check_delivery(fd, children, 4, &tag);
    for (int i = 0; i < 4; i++) {
        end_member(&children[i]);
    }
    close(fd);
}

/* -- Errors -------------------------------------------------------------------------------------*/

static void test_port_taken(void **state)
{
    (void)state;
    for (int reuse = 0; reuse < 2; reuse++) {
        const struct sockaddr_in address = port_of(own_address());
        struct address_set set;
        char error[256] = "";
        const int fd = socket(AF_INET, SOCK_DGRAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &reuse, sizeof(reuse));
        assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_false(address_find(&set, own_address(), error, sizeof(error)));
        assert_non_null(strstr(error, "taken by a program"));
        close(fd);
    }
}

/* A socket that comes later gets nothing, and is noticed by who looks. */
static void test_intruder(void **state)
{
    (void)state;
    const struct sockaddr_in address = port_of(own_address());
    struct address_set set;
    char error[256] = "";
    const int one = 1, fd = socket(AF_INET, SOCK_DGRAM, 0), sender = stranger();
    assert_true(address_find(&set, own_address(), error, sizeof(error)));
    const struct share *share = set.entries[0].share;
    assert_false(share_is_disturbed(share, (const struct sockaddr *)&address));
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    /* On a busy machine one look may miss it, but not every look does. */
    bool noticed = false;
    for (int looks = 0; looks < 100 && !noticed; looks++) {
        noticed = share_is_disturbed(share, (const struct sockaddr *)&address);
    }
    assert_true(noticed);
    for (uint32_t slot = 0; slot < SHARE_SLOTS; slot++) {
        send_packet(sender, slot << 16 | 2, slot);
    }
    assert_false(has_packet(fd));
    close(fd);
    close(sender);
    address_release(&set);
}

/* Sockets of the port, at other addresses, that come and go as fast as they can. */
static void be_busy(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sockaddr_in other = port_of(own_address());
    other.sin_addr.s_addr = htonl(ntohl(other.sin_addr.s_addr) ^ 0x00ff0000); /* 127.0.X.Y */
    const int one = 1;
    for (;;) {
        int fds[8];
        for (size_t i = 0; i < COUNT_OF(fds); i++) {
            fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
            setsockopt(fds[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
            (void)!bind(fds[i], (const struct sockaddr *)&other, sizeof(other));
        }
        for (size_t i = 0; i < COUNT_OF(fds); i++) {
            close(fds[i]);
        }
    }
}

/* None of them is taken for an intruder, though the list of sockets is never the same. */
static void test_busy_machine(void **state)
{
    (void)state;
    char error[256] = "";
    const pid_t child = fork();
    if (child == 0) {
        be_busy();
    }
    for (int i = 0; i < 100; i++) {
        struct address_set set;
        if (!address_find(&set, own_address(), error, sizeof(error))) {
            break;
        }
        address_release(&set);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_string_equal(error, "");
}

/* Another user is kept out of the address, and away from a member's slot. */
static void be_another_user(const struct address_set *members)
{
    char error[256] = "";
    struct address_set set;
    pid_t pid;
    const struct share *share = members->entries[0].share;
    const struct local_name name = local_name("slot/", &share->gid, (int)share->slot);
    bool good = setresuid(65534, 65534, 65534) == 0 &&
                !address_find(&set, own_address(), error, sizeof(error)) &&
                strstr(error, "another user") != NULL && local_dial(&name, &pid) < 0 &&
                errno == EPERM;
    /* One that does not ask who is there is not heard. */
    const struct share_letter letter = {.magic = SHARE_MAGIC_LETTER};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    good = good && connect(fd, (const struct sockaddr *)&name.address, name.bytes) == 0 &&
           send(fd, &letter, sizeof(letter), 0) == sizeof(letter);
    _exit(good ? 0 : 1);
}

static void test_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    char error[256];
    uint8_t letter[256];
    struct address_set set;
    int status;
    assert_true(address_find(&set, own_address(), error, sizeof(error)));
    const pid_t child = fork();
    if (child == 0) {
        be_another_user(&set);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(share_collect(set.entries[0].share, letter, sizeof(letter)), 0);
    address_release(&set);
}

static void test_all_slots(void **state)
{
    (void)state;
    static struct share shares[SHARE_SLOTS + 1];
    char error[256] = "";
    bool used[SHARE_SLOTS] = {false};
    const struct sockaddr_in address = port_of(own_address());
    struct gid gid = {{[10] = 0xff, [11] = 0xff}};
    memcpy(gid.bytes + 12, &address.sin_addr, 4);
    for (uint32_t i = 0; i <= SHARE_SLOTS; i++) {
        struct share *one = &shares[i];
        memset(one, 0xff, sizeof(*one)); /* No descriptor yet. */
        one->gid = gid;
        if (i == SHARE_SLOTS) {
            assert_false(share_claim_slot(&one, 1, error, sizeof(error)));
            assert_non_null(strstr(error, "256"));
            break;
        }
        assert_true(share_claim_slot(&one, 1, error, sizeof(error)));
        assert_false(used[one->slot]);
        used[one->slot] = true;
        /* Two of one socket only when every socket has one. */
        assert_true(one->slot / SHARE_SOCKETS == i / SHARE_SOCKETS);
    }
    for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
        local_close(shares[i].slot_listener);
        local_close(shares[i].mail);
    }
}

/* -- Letters ------------------------------------------------------------------------------------*/

struct pair {
    struct address_set sets[2];
    struct udp_port *ports[2];
    int fd;
};

struct inbox {
    uint32_t count, mads, last_tag;
};

static void note(void *context, const struct udp_datagram *datagram)
{
    struct inbox *inbox = context;
    const bool mad = datagram->count == MAD_PACKET_BYTES - ROCE_ICRC_BYTES;
    assert_true(mad || datagram->count == PACKET_BYTES - ROCE_ICRC_BYTES);
    const uint8_t from[4] = {127, 0, 0, 1};
    assert_memory_equal(datagram->source.bytes + 12, from, 4);
    inbox->count++;
    inbox->mads += mad;
    inbox->last_tag = load_be32(datagram->bytes + 12);
}

static void open_pair(struct pair *pair)
{
    char error[256];
    assert_true(address_find(&pair->sets[0], own_address(), error, sizeof(error)));
    /* The second one is admitted by the first one, who must be awake meanwhile. */
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
        assert_true(udp_port_serve_shared(pair->ports[which], share->mail, note, inbox));
    }
    return inbox->count - before;
}

/* The first one reads the second one's socket, as if both had the same. */
static void read_of_other(struct pair *pair, struct inbox *inbox)
{
    struct address swapped = pair->sets[0].entries[0];
    bool more;
    swapped.fd = pair->sets[1].entries[0].fd;
    while (udp_receive_once(pair->ports[0], &swapped, note, inbox, NULL, &more) > 0) {
    }
}

static void test_letters(void **state)
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

/* Whoever reads the common socket keeps what is its own and what is anybody's. */
static void test_common_socket(void **state)
{
    (void)state;
    struct pair pair;
    struct inbox first = {0}, second = {0};
    uint8_t packet[MAD_PACKET_BYTES];
    open_pair(&pair);
    const int common = share_common_socket(pair.sets[0].entries[0].share);
    const int also_common = share_common_socket(pair.sets[1].entries[0].share);
    /* Of the two and of a slot that nobody has; an id of 0, also in slot 0, would be no id. */
    const uint32_t nobody = pair.sets[0].slot + pair.sets[1].slot + 1 + SHARE_SOCKETS;
    const uint32_t ids[3] = {pair.sets[0].slot << 24 | 7, pair.sets[1].slot << 24 | 7,
                             nobody << 24 | 7};
    for (int i = 0; i < 30; i++) {
        put_mad(packet, 0x13, 1, ids[i % 3]);
        send_bytes(pair.fd, packet, sizeof(packet));
        assert_true(has_packet(common));
        assert_true(udp_port_serve_shared(pair.ports[0], common, note, &first));
        assert_false(has_packet(common));
        serve_mail(&pair, 1, &second);
    }
    assert_int_equal(first.mads, 10);
    assert_int_equal(second.mads, 10);
    assert_int_equal(pair.ports[0]->counters.no_process, 10);
    put_mad(packet, 0x10, ids[1], 0);
    send_bytes(pair.fd, packet, sizeof(packet));
    assert_true(udp_port_serve_shared(pair.ports[1], also_common, note, &second));
    assert_int_equal(second.count, second.mads);
    close_pair(&pair);
}

/* An owner that takes nothing loses what is too much, and only that. */
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

/* The owner is gone: nobody's. Another one comes to its slot: its packets, on a new connection. */
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
    /* What the kernel does when a process ends. */
    struct epoll_event event;
    while (epoll_wait(share->mail, &event, 1, 0) == 1) {
        local_close(event.data.fd);
    }
    local_close(share->slot_listener);
    for (int fd = 3; fd < 1024; fd++) { /* The accepted connection, too. */
        struct sockaddr_un name = {0};
        socklen_t bytes = sizeof(name);
        if (getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 && name.sun_family == AF_UNIX &&
            strstr(name.sun_path + 1, "nonic/slot/") != NULL &&
            fd != pair.sets[0].entries[0].share->slot_listener) {
            local_close(fd);
        }
    }
    local_close(share->mail);
    share->mail = share->slot_listener = -1;
    send_packet(pair.fd, share->slot << 16 | 99, 2);
    read_of_other(&pair, &first);
    assert_int_equal(pair.ports[0]->counters.no_process, 1);
    /* A newcomer in the same slot: claimed until it is that one. */
    char error[256];
    const uint32_t slot = share->slot;
    for (int tries = 0; tries < 100000; tries++) {
        assert_true(share_claim_slot(&share, 1, error, sizeof(error)));
        if (share->slot == slot) {
            break;
        }
        local_close(share->slot_listener);
        local_close(share->mail);
    }
    assert_int_equal(share->slot, slot);
    send_packet(pair.fd, slot << 16 | 99, 3);
    read_of_other(&pair, &first);
    assert_int_equal(serve_mail(&pair, 1, &second), 1);
    assert_int_equal(second.last_tag, 3);
    close_pair(&pair);
}

/* How many packets there are in a letter, if it is whole: a model of share_collect. */
static uint32_t packets_in(const uint8_t *letter, size_t count)
{
    uint32_t packets = 0;
    size_t at = sizeof(struct share_letter);
    for (; at + 2 <= count; packets++) {
        at += 2u + load_be16(letter + at);
    }
    return at == count ? packets : 0;
}

struct judge {
    uint32_t slot, count;
};

/* What a letter brings to the engine is any packet, but long enough and for us. */
static void judge(void *context, const struct udp_datagram *datagram)
{
    struct judge *judge = context;
    assert_true(datagram->count >= ROCE_BTH_BYTES);
    assert_true(share_route(judge->slot, datagram->bytes, datagram->count).mine);
    judge->count++;
}

static void put_wrong_letter(struct prng *prng, uint32_t slot, uint8_t *bytes, size_t count)
{
    const uint64_t magic = SHARE_MAGIC_LETTER;
    const size_t at = sizeof(struct share_letter);
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

/* Whoever of our user connects to a slot may send anything. */
static void test_wrong_letters(void **state)
{
    (void)state;
    struct pair pair;
    struct prng prng;
    pid_t pid;
    uint32_t packets = 0;
    open_pair(&pair);
    prng_init(&prng, 5);
    struct judge verdicts = {.slot = pair.sets[1].slot};
    const struct share *share = pair.sets[1].entries[0].share;
    const struct local_name name = local_name("slot/", &share->gid, (int)share->slot);
    for (int i = 0; i < 3000; i++) {
        uint8_t bytes[600];
        const size_t count = prng_below(&prng, sizeof(bytes)) + 1;
        put_wrong_letter(&prng, share->slot, bytes, count);
        packets += packets_in(bytes, count);
        const int fd = local_dial(&name, &pid);
        assert_true(fd >= 0);
        assert_true(local_send(fd, bytes, count, NULL, 0));
        local_close(fd);
        while (has_packet(share->mail)) {
            assert_true(udp_port_serve_shared(pair.ports[1], share->mail, judge, &verdicts));
        }
    }
    const struct udp_counters *counters = &pair.ports[1]->counters;
    assert_true(verdicts.count > 0 && verdicts.count <= counters->handed_to_us);
    assert_int_equal(counters->handed_to_us + counters->no_process, packets);
    close_pair(&pair);
}

/* -- Routes -------------------------------------------------------------------------------------*/

static void test_routes(void **state)
{
    (void)state;
    uint8_t packet[MAD_PACKET_BYTES];
    static const uint16_t answers[] = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        put_mad(packet, answers[i], 0x05000001, 0x2a000007);
        struct share_route route = share_route(0x2a, packet, 276);
        assert_true(route.mine && !route.nobody);
        route = share_route(5, packet, 276);
        assert_true(!route.mine && !route.nobody && route.slot == 0x2a);
        /* Cut off before the id: whoever has it judges it. */
        assert_true(share_route(5, packet, 20 + 31).mine);
    }
    put_mad(packet, 0x18, 0x2a000007, 0);
    assert_int_equal(share_route(5, packet, 276).slot, 0x2a);
    assert_int_equal(share_slot_of_mad(packet + 20, 256), 0x2a);
    /* Slot 0 is one like the others, as no id is 0. */
    put_mad(packet, 0x13, 0x05000001, 0x00000007);
    assert_int_equal(share_slot_of_mad(packet + 20, 256), 0);
    assert_int_equal(share_route(5, packet, 276).slot, 0);
    /* From a peer that gave up before it learned our id. */
    put_mad(packet, 0x12, 0x2a000007, 0);
    assert_true(share_route(5, packet, 276).mine);
    assert_int_equal(share_slot_of_mad(packet + 20, 256), LOCAL_NO_SLOT);
    static const uint16_t others[] = {0x10, 0x17, 0x01, 0xffff};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        put_mad(packet, others[i], 0x2a000007, 0x2a000007);
        assert_true(share_route(5, packet, 276).mine);
    }
    for (uint32_t slot = 0; slot < SHARE_SLOTS; slot++) {
        packet[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
        store_be32(packet + 4, slot << 16 | 1234);
        assert_true(share_route(slot, packet, 12).mine);
        assert_int_equal(share_route((slot + 1) % 256, packet, 12).slot, slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_slot_has_its_socket, take_address),
        cmocka_unit_test_setup(test_members_come_and_go, take_address),
        cmocka_unit_test_setup(test_killed_while_joining, take_address),
        cmocka_unit_test_setup(test_stopped_members, take_address),
        cmocka_unit_test_setup(test_port_taken, take_address),
        cmocka_unit_test_setup(test_intruder, take_address),
        cmocka_unit_test_setup(test_busy_machine, take_address),
        cmocka_unit_test_setup(test_another_user, take_address),
        cmocka_unit_test_setup(test_all_slots, take_address),
        cmocka_unit_test_setup(test_letters, take_address),
        cmocka_unit_test_setup(test_common_socket, take_address),
        cmocka_unit_test_setup(test_full_mailbox, take_address),
        cmocka_unit_test_setup(test_owner_changes, take_address),
        cmocka_unit_test_setup(test_wrong_letters, take_address),
        cmocka_unit_test_setup(test_routes, take_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
