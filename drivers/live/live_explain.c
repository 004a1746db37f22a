/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_explain - messages to the user why a program does not reach its peer.
 *
 * Programs only get an error, or wait. The reason (another user, another version of nonic, a port
 * that is taken) is written to standard error, once each.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "drivers/live/live_explain.h"
#include "drivers/shm/shm_port.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"
#include "drivers/taken.h"

/* The least time between two searches through the names of all sockets of the machine. */
#define LOOK_NS UINT64_C(1000000000)

static const char *to_text(const struct gid *gid, char text[INET6_ADDRSTRLEN])
{
    return inet_is_ipv4(gid->bytes) ? inet_ntop(AF_INET, gid->bytes + 12, text, INET6_ADDRSTRLEN)
                                    : inet_ntop(AF_INET6, gid->bytes, text, INET6_ADDRSTRLEN);
}

static void explain_other_user(struct live_explained *explained, const struct gid *peer)
{
    char text[INET6_ADDRSTRLEN];
    if (!explained->no_ring) {
        explained->no_ring = true;
        fprintf(stderr,
                "nonic: the peer at %s is a program of another user, to which no shared "
                "memory leads: use `nonic run --wire auto`\n",
                to_text(peer, text));
    }
}

/* A loopback address of its own serves a program on this machine only. */
void live_explain_machine(struct live_explained *explained)
{
    if (!explained->machine) {
        explained->machine = true;
        const int cancellation = uncancelled_begin();
        fprintf(stderr, "nonic: the peer is on another machine, and this program has only an "
                        "address of its own on this one: use `nonic run --device`\n");
        uncancelled_end(cancellation);
    }
}

/* Once for each such process. */
static void explain_layout(struct live_explained *explained, pid_t pid)
{
    if (pid != explained->other_layout) {
        explained->other_layout = pid;
        fprintf(stderr,
                "nonic: process %d speaks another version of shared memory than this program: "
                "without --wire shm the two use UDP\n",
                pid);
    }
}

bool live_explain_no_ring(struct live_explained *explained, const struct gid *peer, uint32_t slot,
                          bool of_other_user)
{
    const int names[2] = {LOCAL_NO_SLOT, (int)slot};
    const int cancellation = uncancelled_begin();
    bool known = of_other_user;
    if (of_other_user) {
        explain_other_user(explained, peer);
    }
    for (int i = 0; i < 2 && !known; i++) {
        const pid_t pid = shm_find_other_layout(peer, names[i]);
        known = pid != 0;
        if (known) {
            explain_layout(explained, pid);
        }
    }
    uncancelled_end(cancellation);
    return known;
}

void live_explain_source(struct live_explained *explained, const struct gid *first,
                         const struct gid *source)
{
    char text[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];
    if (explained->no_ring) {
        return;
    }
    const int cancellation = uncancelled_begin();
    explained->no_ring = true;
    fprintf(stderr,
            "nonic: in shared memory connections are from %s, this program's first address, and "
            "not from %s: use its GID, or `nonic run --wire auto`\n",
            to_text(first, text), to_text(source, from));
    uncancelled_end(cancellation);
}

void live_explain_crowded(struct live_explained *explained, const struct gid *peer)
{
    char text[INET6_ADDRSTRLEN];
    if (explained->crowd) {
        return;
    }
    const int cancellation = uncancelled_begin();
    explained->crowd = true;
    fprintf(stderr,
            "nonic: the program at %s has no place for another caller: it is stopped, or others "
            "keep calling it; no shared memory leads there\n",
            to_text(peer, text));
    uncancelled_end(cancellation);
}

void live_explain_other_layouts(struct live_explained *explained, struct instant now)
{
    if (!instant_reached(now, explained->others_due)) {
        return;
    }
    const int cancellation = uncancelled_begin();
    explained->others_due = instant_after(now, LOOK_NS);
    const pid_t pid = shm_find_any_other_layout();
    if (pid != 0) {
        explain_layout(explained, pid);
    }
    uncancelled_end(cancellation);
}

void live_explain_other_version(struct live_explained *explained, pid_t pid)
{
    if (pid == 0 || pid == explained->other_version) {
        return;
    }
    const int cancellation = uncancelled_begin();
    explained->other_version = pid;
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

void live_explain_no_udp(struct live_explained *explained, bool taken, const struct gid *source,
                         const struct gid *destination)
{
    if (explained->no_udp ||
        (!taken && inet_is_ipv4(source->bytes) == inet_is_ipv4(destination->bytes))) {
        return;
    }
    const int cancellation = uncancelled_begin();
    explained->no_udp = true;
    if (taken) {
        explain_taken();
    } else {
        explain_families(source, destination);
    }
    uncancelled_end(cancellation);
}
