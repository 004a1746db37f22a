/* SPDX-License-Identifier: BSD-2-Clause
 *
 * port - the interface goes and comes, and the program is told.
 */
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fails/program.h"

static int set_up(const char *interface, bool up)
{
    struct ifreq request = {0};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strcpy(request.ifr_name, interface);
    const bool read = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    const bool done = read && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return done ? 0 : -1;
}

/* Events of the table of GIDs come meanwhile, too. */
static void await_event(struct program *p, enum ibv_event_type type)
{
    struct ibv_async_event event;
    struct pollfd wait = {.fd = p->context->async_fd, .events = POLLIN};
    do {
        must(poll(&wait, 1, PATIENCE_MS) == 1, "no event of the port", (int)type);
        (void)NUMBER(ibv_get_async_event(p->context, &event));
        ibv_ack_async_event(&event);
    } while (event.event_type != type);
}

/* Where tests/fails/run has laid a cable, it goes and comes. */
void watch_port(struct program *p)
{
    if (if_nametoindex("left") != 0 && has_ipv4(p)) {
        must(set_up("left", false) == 0, "interface down", errno);
        await_event(p, IBV_EVENT_PORT_ERR);
        must(set_up("left", true) == 0, "interface up", errno);
        await_event(p, IBV_EVENT_PORT_ACTIVE);
    }
}
