/* SPDX-License-Identifier: BSD-2-Clause
 *
 * loopback - the run's network: an interface that delivers while the sender sends.
 *
 * Under load the kernel leaves delivery to a thread of its own, which may come later. The box waits
 * for that (call_io.c). TCP tells its sender by an acknowledgement, so routes ask for one at once.
 *
 * Source: rtnetlink(7).
 */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "box/walls.h"

enum {
    TEXT_MAX = 256, /* of a request */
};

static bool raise_interface(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    const bool done = any >= 0 && ioctl(any, SIOCSIFFLAGS, &request) == 0;
    if (any >= 0) {
        close(any);
    }
    return done;
}

struct request {
    struct nlmsghdr header;
    struct rtmsg route;
    uint8_t attributes[TEXT_MAX];
};

static void add(struct request *request, unsigned short type, const void *value, size_t bytes)
{
    struct rtattr *attribute =
        (struct rtattr *)(void *)((uint8_t *)request + NLMSG_ALIGN(request->header.nlmsg_len));
    attribute->rta_type = type;
    attribute->rta_len = (unsigned short)RTA_LENGTH(bytes);
    memcpy(RTA_DATA(attribute), value, bytes);
    request->header.nlmsg_len =
        NLMSG_ALIGN(request->header.nlmsg_len) + (uint32_t)RTA_ALIGN(attribute->rta_len);
}

/* The route that the kernel made to addresses of its own. */
static struct request route_request(uint16_t type, uint16_t flags, int family, const char *to,
                                    uint8_t prefix)
{
    struct request request = {
        .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                   .nlmsg_type = type,
                   .nlmsg_flags = flags | NLM_F_REQUEST | NLM_F_ACK},
        .route = {.rtm_family = (uint8_t)family,
                  .rtm_dst_len = prefix,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_KERNEL,
                  .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                  .rtm_type = RTN_LOCAL}};
    uint8_t address[sizeof(struct in6_addr)];
    const uint32_t interface = if_nametoindex("lo");
    inet_pton(family, to, address);
    add(&request, RTA_DST, address, family == AF_INET ? 4 : sizeof(address));
    add(&request, RTA_OIF, &interface, sizeof(interface));
    return request;
}

static bool ask(int kernel, const struct request *request)
{
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        uint8_t rest[TEXT_MAX];
    } answer;
    const size_t bytes = request->header.nlmsg_len;
    return send(kernel, request, bytes, 0) == (ssize_t)bytes &&
           recv(kernel, &answer, sizeof(answer), 0) > 0 &&
           answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error == 0;
}

/* TCP is not to delay acknowledgements on this route. */
static bool acknowledge_at_once(int kernel, int family, const char *to, uint8_t prefix)
{
    const struct {
        struct rtattr header;
        uint32_t value;
    } metric = {{sizeof(metric), RTAX_QUICKACK}, 1};
    const struct request old = route_request(RTM_DELROUTE, 0, family, to, prefix);
    struct request new =
        route_request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, family, to, prefix);
    const uint32_t source = htonl(INADDR_LOOPBACK);
    if (family == AF_INET) {
        add(&new, RTA_PREFSRC, &source, sizeof(source));
    } else {
        (void)ask(kernel, &old); /* One of another priority does not replace it. */
    }
    add(&new, RTA_METRICS, &metric, sizeof(metric));
    return ask(kernel, &new);
}

bool loopback_raise(bool has_nodes)
{
    const int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    const bool done = kernel >= 0 && raise_interface() &&
                      acknowledge_at_once(kernel, AF_INET, "127.0.0.0", 8) &&
                      acknowledge_at_once(kernel, AF_INET, "127.0.0.1", 32) &&
                      (!has_nodes || acknowledge_at_once(kernel, AF_INET, "10.0.0.0", 8));
    if (done) {
        (void)acknowledge_at_once(kernel, AF_INET6, "::1", 128); /* Not every system has it. */
    }
    if (kernel >= 0) {
        close(kernel);
    }
    return done;
}
