/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/random.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/system.h"
#include "drivers/taken.h"
#include "wire/inet.h"
#include "wire/roce.h"

/* The bytes around a payload: IPv6 and UDP headers, the longest RoCE headers, and the ICRC. */
#define AROUND_PAYLOAD (40 + 8 + ROCE_HEADERS_BYTES_MAX + ROCE_ICRC_BYTES)

#define CLAIM_TRIES 256

bool address_path_mtu(uint32_t bytes, enum path_mtu *mtu)
{
    for (int code = PATH_MTU_4096; code >= PATH_MTU_256; code--) {
        if (path_mtu_bytes((enum path_mtu)code) + AROUND_PAYLOAD <= bytes) {
            *mtu = (enum path_mtu)code;
            return true;
        }
    }
    return false;
}

static struct gid gid_of(const union socket_address *address)
{
    struct gid gid;
    socket_address_ip(address, gid.bytes);
    return gid;
}

/* Each address of 127.0.0.0/8 belongs to this interface, though the interface lists only one. */
static const char loopback[] = "lo";

/* A socket on the RoCE port of `address`, or -1 with errno. */
static int bind_socket(union socket_address *address)
{
    const int fd =
        descriptor_own(system_socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return -1;
    }
    if (address->any.sa_family == AF_INET) {
        address->v4.sin_port = htons(ROCE_UDP_PORT);
    } else {
        const int one = 1;
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
        address->v6.sin6_port = htons(ROCE_UDP_PORT);
    }
    if (system_bind(fd, &address->any, socket_address_bytes(address)) != 0) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

static bool add(struct address_set *set, union socket_address *address, uint32_t interface_index)
{
    const int fd = bind_socket(address);
    if (fd < 0) {
        return false;
    }
    CHECK(set->count < ADDRESS_MAX);
    set->entries[set->count++] = (struct address){.gid = gid_of(address),
                                                  .interface_index = interface_index,
                                                  .loopback = true,
                                                  .fd = fd,
                                                  .claim = -1};
    return true;
}

/* Each entry has a way of its own by which it is ours, and belongs to one of the user's words. */
static void set_check(const struct address_set *set)
{
    CHECK(set->count <= ADDRESS_MAX && set->words <= ADDRESS_WORDS_MAX);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct address *address = &set->entries[i];
        CHECK(address->word < set->words && address->interface_index != 0);
        CHECK((address->share != NULL) == set->shared);
        CHECK((address->claim >= 0) == (address->share == NULL && address->fd < 0));
    }
}

static bool has(const struct address_set *set, const struct gid *gid)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (gid_equal(&set->entries[i].gid, gid)) {
            return true;
        }
    }
    return false;
}

/* 0 with errno: the system tells no MTU. */
static uint32_t interface_mtu(const char *name)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    const int fd = descriptor_own(system_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return 0;
    }
    const bool good = ioctl(fd, SIOCGIFMTU, &request) == 0;
    descriptor_close(fd);
    return good ? (uint32_t)request.ifr_mtu : 0;
}

/* Returns the interface's MTU; 0, with errno: the MTU is too small, or the system does not tell it,
 * and `error` says so. */
static uint32_t take_mtu(struct address_set *set, const char *interface, char *error,
                         size_t error_bytes)
{
    const uint32_t bytes = interface_mtu(interface);
    enum path_mtu mtu;
    if (bytes == 0) {
        const int reason = errno;
        snprintf(error, error_bytes, "the MTU of interface %s: %s", interface, strerror(reason));
        errno = reason;
        return 0;
    }
    if (!address_path_mtu(bytes, &mtu)) {
        snprintf(error, error_bytes, "the MTU of interface %s is too small for RoCE", interface);
        errno = EINVAL;
        return 0;
    }
    set->mtu = set->count == 0 || mtu < set->mtu ? mtu : set->mtu;
    return bytes;
}

/* The index, by which multicast finds its interface. 0, with errno: the system tells none, and
 * `error` says so. */
static uint32_t index_of(const char *interface, char *error, size_t error_bytes)
{
    const uint32_t index = if_nametoindex(interface);
    if (index == 0) {
        const int reason = errno;
        snprintf(error, error_bytes, "interface %s: %s", interface, strerror(reason));
        errno = reason;
    }
    return index;
}

/* Two interfaces may have one link-local address: are the sockets that we got on our interface? */
static bool is_there(const struct share *share, const union socket_address *address)
{
    union socket_address bound = {.any.sa_family = AF_UNSPEC};
    socklen_t bytes = sizeof(bound);
    return getsockname(share_common_socket(share), &bound.any, &bytes) != 0 ||
           bound.any.sa_family != AF_INET6 || bound.v6.sin6_scope_id == address->v6.sin6_scope_id;
}

/* Adds an address that other processes of our user may have too. Its socket is known once we have a
 * slot. */
static bool add_shared(struct address_set *set, union socket_address *address, const char *text,
                       const char *interface, char *error, size_t error_bytes)
{
    const uint32_t mtu_bytes = take_mtu(set, interface, error, error_bytes);
    const struct gid gid = gid_of(address);
    const uint32_t index = mtu_bytes == 0 ? 0 : index_of(interface, error, error_bytes);
    if (index == 0) {
        return false;
    }
    if (has(set, &gid)) {
        snprintf(error, error_bytes, "the device has the address %s twice", text);
        return false;
    }
    struct share *share = malloc(sizeof(*share));
    if (share == NULL) {
        snprintf(error, error_bytes, "no memory");
        return false;
    }
    if (address->any.sa_family == AF_INET) {
        address->v4.sin_port = htons(ROCE_UDP_PORT);
    } else {
        address->v6.sin6_port = htons(ROCE_UDP_PORT);
    }
    if (!share_join(share, &address->any, socket_address_bytes(address), &gid, text, error,
                    error_bytes)) {
        free(share);
        return false;
    }
    if (!is_there(share, address)) {
        snprintf(error, error_bytes, "%s is shared by nonic programs on another interface", text);
        share_leave(share);
        free(share);
        errno = EADDRINUSE;
        return false;
    }
    CHECK(set->count < ADDRESS_MAX && set->words < ADDRESS_WORDS_MAX);
    set->entries[set->count++] = (struct address){.gid = gid,
                                                  .interface_index = index,
                                                  .interface_bytes = mtu_bytes,
                                                  .word = (uint8_t)set->words,
                                                  .loopback = strcmp(interface, loopback) == 0,
                                                  .fd = -1,
                                                  .share = share,
                                                  .claim = -1};
    return true;
}

/* Claims the same slot at all addresses, because a queue pair has one number. */
static bool claim_slot(struct address_set *set, char *error, size_t error_bytes)
{
    struct share *shares[ADDRESS_MAX];
    for (uint32_t i = 0; i < set->count; i++) {
        shares[i] = set->entries[i].share;
    }
    if (!share_claim_slot(shares, set->count, error, error_bytes)) {
        return false;
    }
    CHECK(!set->shared && shares[0]->slot < SHARE_SLOTS);
    set->shared = true;
    set->slot = shares[0]->slot;
    for (uint32_t i = 0; i < set->count; i++) {
        set->entries[i].fd = share_own_socket(shares[i]);
        CHECK(set->entries[i].fd >= 0);
    }
    const size_t used = strlen(set->text);
    snprintf(set->text + used, sizeof(set->text) - used, ", shared: slot %u", set->slot);
    return true;
}

static const char *to_text(const union socket_address *address, char *text, socklen_t bytes)
{
    const void *from = address->any.sa_family == AF_INET ? (const void *)&address->v4.sin_addr
                                                         : (const void *)&address->v6.sin6_addr;
    return inet_ntop(address->any.sa_family, from, text, bytes);
}

/* Where there is no UDP, a name is the claim: one process has it, and it vanishes with that. */
static bool add_name(struct address_set *set, union socket_address *address,
                     uint32_t interface_index)
{
    const struct gid gid = gid_of(address);
    const struct local_name name = local_name("alone/", &gid, LOCAL_NO_SLOT);
    const int claim = local_listen(&name, 0);
    if (claim < 0) {
        return false;
    }
    CHECK(set->count < ADDRESS_MAX);
    set->entries[set->count++] = (struct address){
        .gid = gid, .interface_index = interface_index, .loopback = true, .fd = -1, .claim = claim};
    return true;
}

/* Claims a loopback address for this process alone: to bind it is to claim it, so processes need no
 * agreement, and nothing is left behind. `add_one` binds. */
static bool claim_loopback(struct address_set *set,
                           bool (*add_one)(struct address_set *, union socket_address *, uint32_t),
                           char *error, size_t error_bytes)
{
    const uint32_t mtu_bytes = take_mtu(set, loopback, error, error_bytes);
    if (mtu_bytes == 0) {
        return false;
    }
    const uint32_t index = index_of(loopback, error, error_bytes);
    if (index == 0) {
        return false;
    }
    for (int i = 0; i < CLAIM_TRIES; i++) {
        uint32_t drawn;
        random_draw(&drawn, sizeof(drawn));
        /* People choose addresses of 127.0.0.0/16 by hand. */
        const uint32_t host = 0x00010000u + drawn % 0x00fe0000u;
        if ((host & 0xff) == 0 || (host & 0xff) == 0xff) {
            continue;
        }
        union socket_address address = {.v4 = {.sin_family = AF_INET}};
        address.v4.sin_addr.s_addr = htonl(0x7f000000u | host);
        if (add_one(set, &address, index)) {
            set->entries[0].interface_bytes = mtu_bytes;
            set->words = 1;
            CHECK(set->count == 1);
            INVARIANTS(set_check(set));
            char text[INET6_ADDRSTRLEN];
            snprintf(set->text, sizeof(set->text), "%s (loopback, this process alone)",
                     to_text(&address, text, sizeof(text)));
            return true;
        }
        if (errno != EADDRINUSE) {
            break;
        }
    }
    const int reason = errno;
    if (reason != EADDRINUSE || !taken_everywhere(error, error_bytes)) {
        snprintf(error, error_bytes, "no loopback address to be had: %s", strerror(reason));
    }
    errno = reason;
    return false;
}

static bool is_link_local(const union socket_address *address)
{
    const struct gid gid = gid_of(address);
    return inet_is_link_local(gid.bytes);
}

/* An address as people write it, also an IPv4 address as GIDs have it (::ffff:127.0.0.5). */
static bool parse(const char *word, union socket_address *address)
{
    uint8_t ip[16] = {[10] = 0xff, [11] = 0xff};
    if (inet_pton(AF_INET, word, ip + 12) != 1 && inet_pton(AF_INET6, word, ip) != 1) {
        return false;
    }
    *address = socket_address_of(ip, 0, 0);
    return true;
}

/* Ignores the interface that stands behind a link-local address ("fe80::1%eth0"). */
static bool parse_link_local(const char *word, union socket_address *address)
{
    char text[INET6_ADDRSTRLEN];
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(word, "%"), word);
    return parse(text, address) && is_link_local(address);
}

static bool usable(const struct ifaddrs *at)
{
    return at->ifa_addr != NULL && (at->ifa_flags & IFF_UP) &&
           (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
}

/* Adds the first address of each word to the text for people. */
static void add_text(struct address_set *set, const char *address, const char *kind,
                     const char *interface)
{
    const size_t used = strlen(set->text);
    snprintf(set->text + used, sizeof(set->text) - used, "%s%s (%s%s)", used > 0 ? ", " : "",
             address, kind, interface);
}

static bool names(const char *word, const char *interface, const union socket_address *address)
{
    union socket_address named;
    const char *scope = strchr(word, '%');
    if (strcmp(word, interface) == 0) {
        return true;
    }
    if (scope != NULL ? strcmp(scope + 1, interface) != 0 || !parse_link_local(word, &named)
                      : !parse(word, &named) || is_link_local(&named)) {
        return false;
    }
    const struct gid a = gid_of(&named), b = gid_of(address);
    return gid_equal(&a, &b);
}

/* Adds all usable addresses of family `family` that belong to `word`, by name or by address: the
 * link-local ones, or the others. */
static bool add_matching(struct address_set *set, const struct ifaddrs *list, const char *word,
                         int family, bool link_local, char *error, size_t error_bytes)
{
    const uint32_t first = set->count;
    for (const struct ifaddrs *at = list; at != NULL && set->count < ADDRESS_MAX;
         at = at->ifa_next) {
        if (!usable(at) || at->ifa_addr->sa_family != family) {
            continue;
        }
        union socket_address address = {0};
        memcpy(&address, at->ifa_addr, family == AF_INET ? sizeof(address.v4) : sizeof(address.v6));
        char text[INET6_ADDRSTRLEN];
        to_text(&address, text, sizeof(text));
        if (is_link_local(&address) != link_local || !names(word, at->ifa_name, &address)) {
            continue;
        }
        if (!add_shared(set, &address, text, at->ifa_name, error, error_bytes)) {
            return false;
        }
        if (set->count == first + 1) {
            add_text(set, text, "interface ", at->ifa_name);
        }
    }
    return true;
}

static void explain_none(const char *word, bool full, char *error, size_t error_bytes)
{
    union socket_address address;
    if (full) {
        snprintf(error, error_bytes,
                 "device '%s' is one too many: the interfaces before it have 16 addresses", word);
    } else if (parse_link_local(word, &address)) {
        snprintf(error, error_bytes,
                 strchr(word, '%') != NULL
                     ? "device '%s' is a link-local address that no interface of this name has, "
                       "or that is not up"
                     : "device '%s' is a link-local address: name its interface, too, as in "
                       "fe80::1%%eth0",
                 word);
    } else {
        snprintf(error, error_bytes,
                 "device '%s' is neither an interface that is up and has an address, nor an "
                 "address of this machine",
                 word);
    }
}

static bool find_on_interfaces(struct address_set *set, const char *word, char *error,
                               size_t error_bytes)
{
    const uint32_t first = set->count;
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) {
        snprintf(error, error_bytes, "cannot list interfaces: %s", strerror(errno));
        return false;
    }
    /* A link-local address is used if the user names it, or if the interface has no other one. */
    const bool good =
        add_matching(set, list, word, AF_INET, false, error, error_bytes) &&
        add_matching(set, list, word, AF_INET6, false, error, error_bytes) &&
        (set->count > first || add_matching(set, list, word, AF_INET6, true, error, error_bytes));
    freeifaddrs(list);
    if (good && set->count == first) {
        explain_none(word, first == ADDRESS_MAX, error, error_bytes);
    }
    return good && set->count > first;
}

static bool is_at(const struct ifaddrs *entry, const uint8_t ip[16])
{
    const struct sockaddr *at = entry->ifa_addr;
    union socket_address address;
    uint8_t own[16];
    if (at == NULL || (at->sa_family != AF_INET && at->sa_family != AF_INET6)) {
        return false;
    }
    memcpy(&address, at, at->sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6));
    socket_address_ip(&address, own);
    return memcmp(own, ip, sizeof(own)) == 0;
}

uint32_t address_interface_bytes(const uint8_t ip[16])
{
    struct ifaddrs *list;
    uint32_t bytes = 0;
    if (getifaddrs(&list) != 0) {
        return 0;
    }
    for (const struct ifaddrs *entry = list; entry != NULL && bytes == 0; entry = entry->ifa_next) {
        bytes = is_at(entry, ip) ? interface_mtu(entry->ifa_name) : 0;
    }
    freeifaddrs(list);
    return bytes;
}

static bool is_loopback(const char *word, union socket_address *address)
{
    return parse(word, address) && address->any.sa_family == AF_INET &&
           ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

static bool find_word(struct address_set *set, const char *word, char *error, size_t error_bytes)
{
    union socket_address address;
    if (!is_loopback(word, &address) || set->count == ADDRESS_MAX) {
        return find_on_interfaces(set, word, error, error_bytes);
    }
    char text[INET6_ADDRSTRLEN];
    to_text(&address, text, sizeof(text));
    add_text(set, text, "loopback", "");
    return add_shared(set, &address, text, loopback, error, error_bytes);
}

static bool find_named(struct address_set *set, const char *device, char *error, size_t error_bytes)
{
    for (const char *at = device; at != NULL;) {
        const char *comma = strchr(at, ',');
        const size_t bytes = comma == NULL ? strlen(at) : (size_t)(comma - at);
        char word[64];
        if (set->words == ADDRESS_WORDS_MAX) {
            snprintf(error, error_bytes, "device '%s' names more than %d interfaces or addresses",
                     device, ADDRESS_WORDS_MAX);
            return false;
        }
        snprintf(word, sizeof(word), "%.*s", (int)bytes, at);
        if (!find_word(set, word, error, error_bytes)) {
            return false;
        }
        set->words++;
        at = comma == NULL ? NULL : comma + 1;
    }
    return true;
}

static void begin(struct address_set *set)
{
    set->count = 0;
    set->words = 0;
    set->shared = false;
    set->text[0] = '\0';
}

bool address_find(struct address_set *set, const char *device, char *error, size_t error_bytes)
{
    begin(set);
    if (device == NULL) {
        return claim_loopback(set, add, error, error_bytes);
    }
    if (!find_named(set, device, error, error_bytes) || !claim_slot(set, error, error_bytes)) {
        address_release(set);
        return false;
    }
    INVARIANTS(set_check(set));
    return true;
}

bool address_find_without_udp(struct address_set *set, char *error, size_t error_bytes)
{
    begin(set);
    return claim_loopback(set, add_name, error, error_bytes);
}

void address_forget(struct address_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        set->entries[i].fd = set->entries[i].claim = -1;
        if (set->entries[i].share != NULL) {
            share_forget(set->entries[i].share);
        }
    }
}

void address_release(struct address_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct address *address = &set->entries[i];
        if (address->share == NULL) {
            descriptor_close(address->fd);
            descriptor_close(address->claim);
        } else {
            share_leave(address->share);
            free(address->share);
        }
    }
    set->count = 0;
}
