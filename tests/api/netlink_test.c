/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The socket by which programs ask for RDMA devices is like any other netlink socket: it
 *         can be named, waited for, inherited and closed, and its answers come from the kernel's
 *         address. Other sockets are not touched. The socket says the same of objects as verbs.
 * Method  Each call that there is on sockets; numbers of descriptors that become other sockets';
 *         children of fork; strangers that send to it; answers that nobody reads.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

#define SEQUENCE 4711

static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

/* A request about the first device, or about all. */
struct request {
    struct nlmsghdr header;
    struct nlattr attribute;
    uint32_t device;
};

static struct request request(int command, uint16_t flags)
{
    return (struct request){
        .header = {.nlmsg_len = sizeof(struct request),
                   .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
                   .nlmsg_flags = NLM_F_REQUEST | flags,
                   .nlmsg_seq = SEQUENCE},
        .attribute = {.nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX}};
}

static int open_socket(int flags)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW | flags, NETLINK_RDMA);
    assert_true(fd >= 0);
    return fd;
}

static uint32_t port_id(int fd)
{
    struct sockaddr_nl name;
    socklen_t bytes = sizeof(name);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &bytes), 0);
    assert_int_equal(bytes, sizeof(name));
    assert_int_equal(name.nl_family, AF_NETLINK);
    return name.nl_pid;
}

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1 && one.revents == POLLIN;
}

static void send_request(int fd, int command, uint16_t flags)
{
    const struct request one = request(command, flags);
    assert_int_equal(send(fd, &one, sizeof(one), 0), sizeof(one));
}

/* The answer to a request about the device is there: it is told of, and that is the end. */
static void expect_device(int fd)
{
    uint8_t bytes[4096];
    struct nlmsghdr header;
    const ssize_t count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    assert_true(count > (ssize_t)sizeof(header));
    memcpy(&header, bytes, sizeof(header));
    assert_int_equal(header.nlmsg_type, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
    assert_int_equal(header.nlmsg_seq, SEQUENCE);
    assert_int_equal(header.nlmsg_pid, port_id(fd));
    assert_non_null(memmem(bytes, (size_t)count, "nonic0", 7));
    assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* -- The socket ---------------------------------------------------------------------------------*/

static void test_flags(void **state)
{
    (void)state;
    const int fd = open_socket(SOCK_CLOEXEC | SOCK_NONBLOCK), plain = open_socket(0);
    uint8_t byte;
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(plain, F_GETFD) & FD_CLOEXEC);
    assert_false(fcntl(plain, F_GETFL) & O_NONBLOCK);
    assert_int_equal(read(fd, &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(fd), -1);
    assert_int_equal(errno, EBADF);
    close(plain);
    assert_int_equal(socket(AF_NETLINK, SOCK_STREAM, NETLINK_RDMA), -1);
    assert_int_equal(errno, ESOCKTNOSUPPORT);
}

static void test_names(void **state)
{
    (void)state;
    const int fd = open_socket(0), unnamed = open_socket(0);
    const int one = 1;
    assert_int_equal(port_id(fd), 0);
    assert_int_equal(setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&kernel, sizeof(kernel)), 0);
    assert_true(port_id(fd) != 0);
    const uint32_t before = port_id(fd);
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_int_equal(port_id(fd), before);
    expect_device(fd);
    /* One without a name gets one when it sends. */
    send_request(unnamed, RDMA_NLDEV_CMD_GET, 0);
    assert_true(port_id(unnamed) != 0 && port_id(unnamed) != before);
    expect_device(unnamed);
    close(fd);
    close(unnamed);
}

static void test_waiting(void **state)
{
    (void)state;
    const int fd = open_socket(0), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    struct timeval now = {0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    assert_false(is_readable(fd));
    assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_true(is_readable(fd));
    assert_int_equal(epoll_wait(epoll, &event, 1, 0), 1);
    assert_int_equal(select(fd + 1, &set, NULL, NULL, &now), 1);
    expect_device(fd);
    assert_false(is_readable(fd));
    assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
    close(epoll);
    close(fd);
}

/* Each call that sends. */
static void test_sending(void **state)
{
    (void)state;
    const int fd = open_socket(0);
    struct request one = request(RDMA_NLDEV_CMD_GET, 0);
    struct iovec parts[] = {{&one, 3}, {NULL, 0}, {(uint8_t *)&one + 3, sizeof(one) - 3}};
    const struct msghdr message = {.msg_name = (void *)(uintptr_t)&kernel,
                                   .msg_namelen = sizeof(kernel),
                                   .msg_iov = parts,
                                   .msg_iovlen = COUNT_OF(parts)};
    assert_int_equal(sendmsg(fd, &message, 0), sizeof(one));
    expect_device(fd);
    assert_int_equal(
        sendto(fd, &one, sizeof(one), 0, (const struct sockaddr *)&kernel, sizeof(kernel)),
        sizeof(one));
    expect_device(fd);
    assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
    expect_device(fd);
    close(fd);
}

/* It is the kernel that answers, whichever call says so. */
static void test_sender(void **state)
{
    (void)state;
    const int fd = open_socket(0);
    uint8_t bytes[4096];
    struct sockaddr_nl from = {.nl_pid = 99};
    socklen_t length = sizeof(from);
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr message = {
        .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1};
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_true(recvmsg(fd, &message, 0) > 0);
    assert_int_equal(message.msg_namelen, sizeof(from));
    assert_memory_equal(&from, &kernel, sizeof(from));
    from.nl_pid = 99;
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_true(recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &length) > 0);
    assert_int_equal(length, sizeof(from));
    assert_memory_equal(&from, &kernel, sizeof(from));
    close(fd);
}

/* Nor is anything behind a buffer touched that is shorter than an address. */
static void test_short_sender(void **state)
{
    (void)state;
    const int fd = open_socket(0);
    const long page = sysconf(_SC_PAGESIZE);
    uint8_t *pages =
        mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && mprotect(pages + page, (size_t)page, PROT_NONE) == 0);
    void *end = pages + page - 4;
    uint8_t bytes[4096];
    socklen_t length = 4;
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr message = {.msg_name = end, .msg_namelen = 4, .msg_iov = &part, .msg_iovlen = 1};
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_true(recvmsg(fd, &message, 0) > 0);
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_true(recvfrom(fd, bytes, sizeof(bytes), 0, end, &length) > 0);
    munmap(pages, 2 * (size_t)page);
    close(fd);
}

static void expect_refusal(int fd, const void *bytes, size_t count, const struct sockaddr_nl *to,
                           socklen_t length, int error)
{
    assert_int_equal(sendto(fd, bytes, count, 0, (const struct sockaddr *)to, length), -1);
    assert_int_equal(errno, error);
    assert_false(is_readable(fd));
}

static void test_refused(void **state)
{
    (void)state;
    const int fd = open_socket(0);
    static uint8_t long_request[20000];
    const struct request one = request(RDMA_NLDEV_CMD_GET, 0);
    struct sockaddr_nl to = kernel;
    expect_refusal(fd, long_request, sizeof(long_request), &to, sizeof(to), EMSGSIZE);
    expect_refusal(fd, &one, sizeof(one), &to, sizeof(to) - 1, EINVAL);
    to.nl_pid = (uint32_t)getpid();
    expect_refusal(fd, &one, sizeof(one), &to, sizeof(to), EPERM);
    to = (struct sockaddr_nl){.nl_family = AF_INET};
    expect_refusal(fd, &one, sizeof(one), &to, sizeof(to), EINVAL);
    /* No message at all is none. */
    assert_int_equal(send(fd, &one, 5, 0), 5);
    assert_false(is_readable(fd));
    close(fd);
}

/* Nobody but the kernel is heard from when an answer is waited for, and nobody passes for it. */
static void test_strangers(void **state)
{
    (void)state;
    const int fd = open_socket(0), stranger = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
    struct sockaddr_nl to = kernel, from;
    socklen_t length = sizeof(from);
    uint8_t byte = 1;
    assert_int_equal(bind(fd, (const struct sockaddr *)&kernel, sizeof(kernel)), 0);
    to.nl_pid = port_id(fd);
    assert_int_equal(sendto(stranger, &byte, 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
    assert_int_equal(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &length), 1);
    assert_int_equal(from.nl_pid, port_id(stranger));
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    assert_int_equal(sendto(stranger, &byte, 1, 0, (struct sockaddr *)&to, sizeof(to)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    expect_device(fd);
    close(stranger);
    close(fd);
}

/* Answers that nobody reads: the program is told that there is no room, and none is half there. */
static void test_unread(void **state)
{
    (void)state;
    const int fd = open_socket(0);
    const struct request one = request(RDMA_NLDEV_CMD_GET, 0);
    uint8_t bytes[4096];
    uint32_t sent = 0;
    while (send(fd, &one, sizeof(one), 0) == (ssize_t)sizeof(one)) {
        assert_true(++sent < 1000000);
    }
    assert_int_equal(errno, ENOBUFS);
    assert_true(sent > 10);
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    expect_device(fd);
    close(fd);
}

/* -- Others -------------------------------------------------------------------------------------*/

static void test_other_protocol(void **state)
{
    (void)state;
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
    } one = {.header = {.nlmsg_len = sizeof(one),
                        .nlmsg_type = RTM_GETLINK,
                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    static uint8_t bytes[65536];
    struct nlmsghdr header;
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int protocol;
    socklen_t length = sizeof(protocol);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length), 0);
    assert_int_equal(protocol, NETLINK_ROUTE);
    assert_int_equal(send(fd, &one, sizeof(one), 0), sizeof(one));
    assert_true(recv(fd, bytes, sizeof(bytes), 0) > (ssize_t)sizeof(header));
    memcpy(&header, bytes, sizeof(header));
    assert_int_equal(header.nlmsg_type, RTM_NEWLINK);
    close(fd);
}

static void expect_through(int from, int to)
{
    const struct request one = request(RDMA_NLDEV_CMD_GET, 0);
    struct request other;
    assert_int_equal(send(from, &one, sizeof(one), 0), sizeof(one));
    assert_int_equal(recv(to, &other, sizeof(other), MSG_DONTWAIT), sizeof(other));
    assert_memory_equal(&one, &other, sizeof(one));
    assert_int_equal(write(from, &one, sizeof(one)), sizeof(one));
    assert_int_equal(recv(to, &other, sizeof(other), MSG_DONTWAIT), sizeof(other));
}

/* A number of ours becomes another socket's: by close, by dup2, and behind our back. */
static void test_numbers(void **state)
{
    (void)state;
    int pair[2], fd = open_socket(0);
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    close(fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(pair[0], fd);
    expect_through(pair[0], pair[1]);
    fd = open_socket(0);
    assert_int_equal(dup2(pair[0], fd), fd);
    expect_through(fd, pair[1]);
    close(fd);
    fd = open_socket(0);
    assert_int_equal(syscall(SYS_dup3, pair[0], fd, 0), fd);
    expect_through(fd, pair[1]);
    close(fd);
    fd = open_socket(0);
    expect_through(pair[0], pair[1]);
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    expect_device(fd);
    close(fd);
    close(pair[0]);
    close(pair[1]);
}

/* A child has its parent's socket, and asks by it for a device of its own. */
static void test_fork(void **state)
{
    (void)state;
    const int fd = open_socket(SOCK_CLOEXEC);
    int status;
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    expect_device(fd);
    const pid_t child = fork();
    if (child == 0) {
        send_request(fd, RDMA_NLDEV_CMD_GET, 0);
        expect_device(fd);
        close(fd);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    send_request(fd, RDMA_NLDEV_CMD_GET, 0);
    expect_device(fd);
    close(fd);
}

static void *ask_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        const int fd = open_socket(0);
        send_request(fd, RDMA_NLDEV_CMD_GET, 0);
        expect_device(fd);
        close(fd);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
}

/* -- Objects ------------------------------------------------------------------------------------*/

/* A value of an attribute of up to 8 bytes, at any depth; false: it is not there. */
static bool find_value(const uint8_t *bytes, size_t count, uint16_t type, uint64_t *value)
{
    for (size_t at = 0; at + 4 <= count;) {
        struct nlattr attribute;
        memcpy(&attribute, bytes + at, sizeof(attribute));
        assert_true(attribute.nla_len >= 4 && attribute.nla_len <= count - at);
        const size_t length = attribute.nla_len - 4u;
        if ((attribute.nla_type & NLA_F_NESTED) &&
            find_value(bytes + at + 4, length, type, value)) {
            return true;
        }
        if (attribute.nla_type == type) {
            *value = 0;
            memcpy(value, bytes + at + 4, length < 8 ? length : 8);
            return true;
        }
        at += (attribute.nla_len + 3u) & ~3u;
    }
    return false;
}

static pid_t owner; /* The process whose objects are looked for; 0: this one. */

/* How many there are; how many have `number` as attribute `by`, and attribute `type` of one of
 * those, which all of them have. */
struct seen {
    uint32_t all, matching;
    uint64_t value;
};

static void look_into(const uint8_t *bytes, size_t count, uint16_t by, uint64_t number,
                      uint16_t type, struct seen *seen)
{
    uint64_t value;
    const pid_t wanted = owner == 0 ? getpid() : owner;
    if (!find_value(bytes, count, RDMA_NLDEV_ATTR_RES_PID, &value) || value != (uint64_t)wanted) {
        return;
    }
    seen->all++;
    if (find_value(bytes, count, by, &value) && value == number) {
        seen->matching++;
        assert_true(find_value(bytes, count, type, &seen->value));
    }
}

static struct seen look(int command, uint16_t by, uint64_t number, uint16_t type)
{
    const int fd = open_socket(0);
    struct seen seen = {0};
    uint8_t bytes[8192];
    send_request(fd, command, NLM_F_DUMP);
    for (bool done = false; !done;) {
        const ssize_t count = recv(fd, bytes, sizeof(bytes), 0);
        assert_true(count > 0);
        for (size_t at = 0; at < (size_t)count;) {
            struct nlmsghdr header;
            memcpy(&header, bytes + at, sizeof(header));
            done = header.nlmsg_type == NLMSG_DONE;
            assert_int_not_equal(header.nlmsg_type, NLMSG_ERROR);
            if (!done) {
                look_into(bytes + at + sizeof(header), header.nlmsg_len - sizeof(header), by,
                          number, type, &seen);
            }
            at += (header.nlmsg_len + 3u) & ~3u;
        }
    }
    close(fd);
    return seen;
}

static void expect_object(int command, uint16_t by, uint64_t number, uint16_t type, uint64_t value,
                          uint32_t all)
{
    const struct seen seen = look(command, by, number, type);
    assert_int_equal(seen.all, all);
    assert_int_equal(seen.matching, 1);
    assert_int_equal(seen.value, value);
}

static void test_objects(void **state)
{
    struct api *api = *state;
    for (int i = 0; i < 2; i++) {
        const struct ibv_qp *qp = api->qps[i];
        expect_object(RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_LQPN, qp->qp_num,
                      RDMA_NLDEV_ATTR_RES_RQPN, api->qps[1 - i]->qp_num, 2);
        expect_object(RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_LQPN, qp->qp_num,
                      RDMA_NLDEV_ATTR_RES_STATE, IBV_QPS_RTS, 2);
        expect_object(RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_LQPN, qp->qp_num,
                      RDMA_NLDEV_ATTR_RES_PDN, api->pd->handle, 2);
        expect_object(RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_RKEY, api->mrs[i]->rkey,
                      RDMA_NLDEV_ATTR_RES_MRLEN, MEMORY_BYTES, 2);
        expect_object(RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_RKEY, api->mrs[i]->rkey,
                      RDMA_NLDEV_ATTR_RES_IOVA, (uintptr_t)api->memory[i], 2);
        expect_object(RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQN, api->cqs[i]->handle,
                      RDMA_NLDEV_ATTR_RES_CQE, (uint64_t)api->cqs[i]->cqe, 2);
    }
    /* Two queue pairs and two regions. */
    expect_object(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PDN, api->pd->handle,
                  RDMA_NLDEV_ATTR_RES_USECNT, 4, 1);
    assert_int_equal(look(RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTXN, 0, 0).all, 1);
}

static void test_srq(void **state)
{
    struct api *api = *state;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
    assert_int_equal(look(RDMA_NLDEV_CMD_RES_SRQ_GET, 0, 0, 0).all, 0);
    struct ibv_srq *srq = ibv_create_srq(api->pd, &attr);
    assert_non_null(srq);
    expect_object(RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQN, srq->handle,
                  RDMA_NLDEV_ATTR_RES_PDN, api->pd->handle, 1);
    struct ibv_cq *cq = ibv_create_cq(api->context, 77, NULL, NULL, 0);
    expect_object(RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQN, cq->handle,
                  RDMA_NLDEV_ATTR_RES_CQE, 77, 3);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(look(RDMA_NLDEV_CMD_RES_SRQ_GET, 0, 0, 0).all, 0);
    assert_int_equal(look(RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQN, 0, 0).all, 2);
}

#define ROUNDS 1000

/* Makes one of each and destroys it, often. */
static void *make_often(void *of)
{
    struct api *api = of;
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_mr *mr = ibv_reg_mr(api->pd, api->memory[0], 64, 0);
        struct ibv_cq *cq = ibv_create_cq(api->context, 4, NULL, NULL, 0);
        struct ibv_srq_init_attr few = {.attr = {.max_wr = 4, .max_sge = 1}};
        struct ibv_srq *srq = ibv_create_srq(api->pd, &few);
        struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, cq, srq);
        CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0 &&
              ibv_dereg_mr(mr) == 0);
    }
    return NULL;
}

/* A reader meets an object as a whole or not at all. */
static void test_half_made(void **state)
{
    static const int commands[] = {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
                                   RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_CMD_RES_SRQ_GET};
    struct api *api = *state;
    pthread_t maker;
    assert_int_equal(pthread_create(&maker, NULL, make_often, api), 0);
    do {
        for (size_t i = 0; i < COUNT_OF(commands); i++) {
            assert_in_range(look(commands[i], 0, 0, 0).all, 0, 3);
        }
    } while (pthread_tryjoin_np(maker, NULL) == EBUSY);
}

/* A kernel has destroyed with a context what was made on it. */
static void test_closed(void **state)
{
    (void)state;
    void *made = NULL;
    assert_int_equal(api_open_rc(&made), 0);
    struct api *api = made;
    assert_int_equal(look(RDMA_NLDEV_CMD_RES_QP_GET, 0, 0, 0).all, 2);
    assert_int_equal(ibv_close_device(api->context), 0);
    static const int commands[] = {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
                                   RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_CMD_RES_PD_GET,
                                   RDMA_NLDEV_CMD_RES_CTX_GET};
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        assert_int_equal(look(commands[i], 0, 0, 0).all, 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_destroy_qp(api->qps[i]), 0);
        assert_int_equal(ibv_destroy_cq(api->cqs[i]), 0);
        assert_int_equal(ibv_dereg_mr(api->mrs[i]), 0);
        free(api->memory[i]);
    }
    assert_int_equal(ibv_dealloc_pd(api->pd), 0);
    free(api);
}

#define OTHERS 300 /* More than are told in one message. */

/* Another program of this user: says that it is ready, and goes when it is told to, or its parent
 * has gone. */
static void be_another(int socket)
{
    uint8_t byte = 0;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices[0] == NULL ? NULL : ibv_open_device(devices[0]);
    int count = 0;
    while (context != NULL && count < OTHERS && ibv_alloc_pd(context) != NULL) {
        count++;
    }
    const bool told = send(socket, &byte, 1, 0) == 1 && recv(socket, &byte, 1, 0) == 1;
    _exit(told && count == OTHERS ? 0 : 1);
}

/* Objects that another process made are listed, too, with its number, until it ends. */
static void test_others(void **state)
{
    (void)state;
    int pair[2], status;
    uint8_t byte = 0;
#ifdef __SANITIZE_THREAD__
    skip(); /* It knows no threads in children of programs with threads. */
#endif
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        be_another(pair[1]);
    }
    close(pair[1]);
    assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
    owner = child;
    const struct seen domains = look(RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PDN, OTHERS,
                                     RDMA_NLDEV_ATTR_RES_USECNT);
    const struct seen contexts = look(RDMA_NLDEV_CMD_RES_CTX_GET, 0, 0, 0);
    assert_int_equal(send(pair[0], &byte, 1, 0), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(domains.all, OTHERS);
    assert_int_equal(domains.matching, 1);
    assert_int_equal(contexts.all, 1);
    assert_int_equal(look(RDMA_NLDEV_CMD_RES_PD_GET, 0, 0, 0).all, 0);
    owner = 0;
    close(pair[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_sending),
        cmocka_unit_test(test_sender),
        cmocka_unit_test(test_short_sender),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_other_protocol),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_threads),
        cmocka_unit_test_setup_teardown(test_objects, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_srq, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_half_made, api_open_rc, api_close),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
