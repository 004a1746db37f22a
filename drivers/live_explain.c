/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_explain - tells the user why a program does not reach its peer.
 *
 * Programs learn only an error, or wait. What stands in the way (another user, another version of
 * nonic, a port that is taken) is said to standard error, once each.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "drivers/live_internal.h"
#include "drivers/local_socket.h"
#include "drivers/system.h"
#include "drivers/taken.h"

/* The names of all sockets of the machine are looked through so often at most. */
#define LOOK_NS UINT64_C(1000000000)

static const char *to_text(const struct gid *gid, char text[INET6_ADDRSTRLEN])
{
    return inet_is_ipv4(gid->bytes) ? inet_ntop(AF_INET, gid->bytes + 12, text, INET6_ADDRSTRLEN)
                                    : inet_ntop(AF_INET6, gid->bytes, text, INET6_ADDRSTRLEN);
}

static void explain_other_user(struct live *live, const struct gid *peer)
{
    char text[INET6_ADDRSTRLEN];
    if (!live->shm_explained) {
        live->shm_explained = true;
        fprintf(stderr,
                "nonic: the peer at %s is a program of another user, to which no shared "
                "memory leads: use `nonic run --wire auto`\n",
                to_text(peer, text));
    }
}

/* Once for each such process. */
static void explain_layout(struct live *live, pid_t pid)
{
    if (pid != live->other_layout) {
        live->other_layout = pid;
        fprintf(stderr,
                "nonic: process %d speaks another version of shared memory than this program: "
                "without --wire shm the two use UDP\n",
                pid);
    }
}

bool live_explain_no_ring(struct live *live, const struct gid *peer, uint32_t slot,
                          bool of_other_user)
{
    const int names[2] = {LOCAL_NO_SLOT, (int)slot};
    const int cancellation = uncancelled_begin();
    bool explained = of_other_user;
    if (of_other_user) {
        explain_other_user(live, peer);
    }
    for (int i = 0; i < 2 && !explained; i++) {
        const pid_t pid = shm_find_other_layout(peer, names[i]);
        explained = pid != 0;
        if (explained) {
            explain_layout(live, pid);
        }
    }
    uncancelled_end(cancellation);
    return explained;
}

void live_explain_source(struct live *live, const struct gid *source)
{
    char first[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];
    if (live->shm_explained) {
        return;
    }
    const int cancellation = uncancelled_begin();
    live->shm_explained = true;
    fprintf(stderr,
            "nonic: in shared memory connections are from %s, this program's first address, and "
            "not from %s: use its GID, or `nonic run --wire auto`\n",
            to_text(&live->addresses.entries[0].gid, first), to_text(source, from));
    uncancelled_end(cancellation);
}

void live_explain_crowded(struct live *live, const struct gid *peer)
{
    char text[INET6_ADDRSTRLEN];
    if (live->crowd_explained) {
        return;
    }
    const int cancellation = uncancelled_begin();
    live->crowd_explained = true;
    fprintf(stderr,
            "nonic: the program at %s has no place for another caller: it is stopped, or others "
            "keep calling it; no shared memory leads there\n",
            to_text(peer, text));
    uncancelled_end(cancellation);
}

void live_explain_other_layouts(struct live *live)
{
    if (live->config.wire != LIVE_WIRE_SHM || !instant_reached(live_now(live), live->others_due)) {
        return;
    }
    const int cancellation = uncancelled_begin();
    live->others_due = instant_after(live_now(live), LOOK_NS);
    const pid_t pid = shm_find_any_other_layout();
    if (pid != 0) {
        explain_layout(live, pid);
    }
    uncancelled_end(cancellation);
}

void live_explain_other_version(struct live *live)
{
    const pid_t pid = live->services.other_version;
    live->services.other_version = 0;
    if (pid == 0 || pid == live->other_version) {
        return;
    }
    const int cancellation = uncancelled_begin();
    live->other_version = pid;
    fprintf(stderr,
            "nonic: process %d has the port that was asked for, and is of another version of nonic "
            "than this program: it cannot be asked for its address\n",
            pid);
    uncancelled_end(cancellation);
}

static void explain_taken(void)
{
    char text[256];
    fprintf(stderr, "nonic: no shared memory leads to the peer, and there is no UDP: %s\n",
            taken_everywhere(text, sizeof(text)) ? text
                                                 : "its port was taken when this program began");
}

static void explain_families(const struct gid *source, const struct gid *destination)
{
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    fprintf(stderr,
            "nonic: nothing goes from %s to %s, since one is an IPv4 address and the other is not: "
            "give both programs addresses of one kind (`nonic run --device`)\n",
            to_text(source, from), to_text(destination, to));
}

void live_explain_no_udp(struct live *live, const struct gid *source, const struct gid *destination)
{
    const bool taken = udp_port_fd_count(&live->udp) == 0;
    if (live->udp_explained ||
        (!taken && inet_is_ipv4(source->bytes) == inet_is_ipv4(destination->bytes))) {
        return;
    }
    const int cancellation = uncancelled_begin();
    live->udp_explained = true;
    if (taken) {
        explain_taken();
    } else {
        explain_families(source, destination);
    }
    uncancelled_end(cancellation);
}
