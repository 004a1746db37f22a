/* SPDX-License-Identifier: BSD-2-Clause
 *
 * own_network - a network namespace of a test's own, whose loopback interface it may do anything
 * to: also as an ordinary user, if the system lets users have namespaces.
 */
#ifndef TESTS_OWN_NETWORK_H
#define TESTS_OWN_NETWORK_H

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWN_NETWORK_SKIPPED 77 /* How a test of meson's says that it cannot run here. */

/* Called before there are threads. False: the system does not allow it. */
static inline bool own_network_enter(void)
{
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        fprintf(stderr, "skipped: no network namespace is to be had\n");
        return false;
    }
    return true;
}

static inline bool own_network_ask(unsigned long what, struct ifreq *request)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool done = ioctl(fd, what, request) == 0;
    close(fd);
    return done;
}

static inline bool own_network_set_up(bool up)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};
    return own_network_ask(SIOCSIFFLAGS, &request);
}

/* An address that lo has beside its own, or has no more. Host byte order. */
static inline bool own_network_set_address(uint32_t address, bool there)
{
    struct ifreq request = {.ifr_name = "lo:1"};
    if (there) {
        const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
        memcpy(&request.ifr_addr, &in, sizeof(in));
        return own_network_ask(SIOCSIFADDR, &request);
    }
    request.ifr_flags = 0; /* An alias that is down is gone. */
    return own_network_ask(SIOCSIFFLAGS, &request);
}

#endif
