/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Processes that share an address each get the packets for their queue pairs, also when the
 *         first one of them has ended, or some are stopped; a port that is not to be shared is an
 *         error in words.
 * Method  Members are children that admit newcomers and tell what they receive; the test itself is
 *         a stranger with a plain socket.
 */
#include "tests/share_stranger.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "drivers/share_route.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

#define CHILDREN 8

/* -- Sockets ------------------------------------------------------------------------------------*/

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
    /* Packets that belong to no single process, and packets that are too short to name a queue
     * pair. */
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

/* Each living member gets its own packets. */
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

/* All members start at once, and one of them makes the sockets. Then each one in turn is killed and
 * replaced, also the one that made the sockets. */
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
    /* With the last member, all sockets and names are gone. */
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
    /* The fourth member is not stopped: it admits newcomers, and gets its packets. */
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

/* A socket of another program that comes later gets nothing, and a member that looks notices it. */
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

/* Opens and closes sockets of the port, at other addresses, as fast as it can. */
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

/* None of those sockets is taken for an intruder, though the list of sockets changes all the
 * time. */
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

/* Another user cannot join the address, nor connect to a member's slot. */
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
    /* A process of another user that connects without looking who listens is not heard. */
    const struct share_handover handover = {.magic = SHARE_MAGIC_HANDOVER};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    good = good && connect(fd, (const struct sockaddr *)&name.address, name.bytes) == 0 &&
           send(fd, &handover, sizeof(handover), 0) == sizeof(handover);
    _exit(good ? 0 : 1);
}

static void test_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    char error[256];
    uint8_t handover[256];
    struct address_set set;
    int status;
    assert_true(address_find(&set, own_address(), error, sizeof(error)));
    const pid_t child = fork();
    if (child == 0) {
        be_another_user(&set);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(share_collect(set.entries[0].share, handover, sizeof(handover)), 0);
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
        /* Two slots share a socket only when each socket has a slot. */
        assert_true(one->slot / SHARE_SOCKETS == i / SHARE_SOCKETS);
    }
    for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
        descriptor_close(shares[i].slot_listener);
        descriptor_close(shares[i].mail);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
