/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink - the device as `rdma` of iproute2 asks for it.
 */
#include <linux/netlink.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fails/program.h"
#include "tests/fails/wrap.h"

static ssize_t request(int fd, uint16_t command)
{
    const struct nlmsghdr ask = {.nlmsg_len = sizeof(ask),
                                 .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
                                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
    return send(fd, &ask, sizeof(ask), 0);
}

/* Until the end of the answer. */
static void hear_answer(int fd)
{
    bool done = false;
    while (!done) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        must(poll(&wait, 1, PATIENCE_MS) == 1, "no answer from netlink", 0);
        char bytes[16384];
        struct sockaddr_nl from;
        socklen_t from_bytes = sizeof(from);
        const ssize_t count =
            recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)(void *)&from, &from_bytes);
        must(count > 0, "recvfrom netlink", errno);
        /* Where we cannot ask for our own address, the answer has it instead of the kernel's. */
        must(from.nl_pid == 0 || fails_struck() > 0, "an answer of a stranger", (int)from.nl_pid);
        for (size_t at = 0; at + sizeof(struct nlmsghdr) <= (size_t)count && !done;) {
            struct nlmsghdr head;
            memcpy(&head, bytes + at, sizeof(head));
            done = head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR;
            at += NLMSG_ALIGN(head.nlmsg_len);
        }
    }
}

static int open_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
}

void ask_netlink(void)
{
    static const uint16_t commands[] = {RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_RES_GET,
                                        RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_MR_GET};
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        /* One that the kernel made, when ours could not be had, answers otherwise. */
        const int fd = NUMBER(open_netlink());
        (void)NUMBER(request(fd, commands[i]));
        hear_answer(fd);
        close(fd);
    }
}
