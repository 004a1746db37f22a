/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/design/design_tap.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"

#define DEVICE "/dev/net/tun"

bool design_tap_is_name(const char *name)
{
    /* The system would put a number in the place of "%d". */
    static const char wrong[] = "/:% \t\n\v\f\r";
    return name[0] != '\0' && strlen(name) < DESIGN_TAP_NAME_BYTES && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strpbrk(name, wrong) == NULL;
}

static void explain_device(int reason, char *error, size_t error_bytes)
{
    snprintf(error, error_bytes, "cannot open " DEVICE ": %s%s", strerror(reason),
             reason == ENOENT || reason == ENODEV || reason == ENXIO
                 ? "; the kernel's module is `tun`, and a container has to be given the device"
                 : "");
}

static void explain_name(const char *name, int reason, char *error, size_t error_bytes)
{
    int used =
        snprintf(error, error_bytes, "cannot make the TAP device %s: %s", name, strerror(reason));
    if (used < 0 || (size_t)used >= error_bytes) {
        return;
    }
    error += used;
    error_bytes -= (size_t)used;
    if (reason == EPERM) {
        snprintf(error, error_bytes,
                 "; it needs CAP_NET_ADMIN: be root, or begin with `unshare -rn`, or let root do "
                 "`ip tuntap add dev %s mode tap user USER`",
                 name);
    } else if (reason == EBUSY) {
        snprintf(error, error_bytes, "; another process has it");
    } else if (reason == EINVAL) {
        snprintf(error, error_bytes, "; an interface of this name is no TAP device of one queue");
    }
}

/* A device of another user stays as it is: its owner sets it up. */
static void set_up(const char *name)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    const int fd = descriptor_own(system_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
        request.ifr_flags |= IFF_UP;
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
    }
    descriptor_close(fd);
}

int design_tap_open(const char *name, char *error, size_t error_bytes)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    CHECK(design_tap_is_name(name));
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    const int fd = descriptor_own(system_open(AT_FDCWD, DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0) {
        explain_device(errno, error, error_bytes);
        return -1;
    }
    if (ioctl(fd, TUNSETIFF, &request) != 0) {
        explain_name(name, errno, error, error_bytes);
        descriptor_close(fd);
        return -1;
    }
    set_up(name);
    return fd;
}

bool design_tap_send(int fd, const uint8_t *frame, uint32_t bytes)
{
    ssize_t sent;
    do {
        sent = system_write(fd, frame, bytes);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

uint32_t design_tap_receive(int fd, uint8_t *frame, uint32_t room)
{
    const ssize_t count = system_read(fd, frame, room);
    return count > 0 ? (uint32_t)count : 0;
}

uint64_t design_tap_lost(const char *name)
{
    struct ifaddrs *list;
    uint64_t lost = 0;
    if (getifaddrs(&list) != 0) {
        return 0;
    }
    for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
        if (entry->ifa_addr != NULL && entry->ifa_addr->sa_family == AF_PACKET &&
            entry->ifa_data != NULL && strcmp(entry->ifa_name, name) == 0) {
            lost = ((const struct rtnl_link_stats *)entry->ifa_data)->tx_dropped;
        }
    }
    freeifaddrs(list);
    return lost;
}
