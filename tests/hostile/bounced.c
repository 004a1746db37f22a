/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bounced - the victim of tests/hostile/bounce.py: a connection to whoever is named on stdin, who
 * may read and write 1 MB. With an argument it sends there as well.
 */
#include <arpa/inet.h>
#include <fcntl.h>

#include "tests/hostile/victim.h"

#define BYTES (1u << 20)

static struct address read_peer(void)
{
    struct address peer = {.gid.raw = {[10] = 0xff, [11] = 0xff}};
    char dotted[64];
    EXPECT(scanf("%63s %u %u", dotted, &peer.qpn, &peer.rkey) == 3);
    EXPECT(inet_pton(AF_INET, dotted, peer.gid.raw + 12) == 1);
    return peer;
}

/* Until stdin ends. */
static bool goes_on(void)
{
    char byte;
    return read(STDIN_FILENO, &byte, 1) != 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    struct victim v;
    victim_open(&v);
    v.memory = calloc(1, BYTES);
    EXPECT(v.memory != NULL && ibv_dereg_mr(v.mr) == 0);
    EXPECT((v.mr = ibv_reg_mr(v.pd, v.memory, BYTES, VICTIM_ACCESS)) != NULL);
    const struct address own = victim_address(&v);
    char dotted[64];
    EXPECT(inet_ntop(AF_INET, own.gid.raw + 12, dotted, sizeof(dotted)) != NULL);
    printf("%s %u %u %lu\n", dotted, own.qpn, own.rkey, (unsigned long)own.memory);
    fflush(stdout);
    const struct address peer = read_peer();
    victim_connect(v.qp, &peer, 14, 7);
    if (argc > 1) {
        EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &peer, BYTES) == 0);
    }
    printf("connected\n");
    fflush(stdout);
    EXPECT(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == 0);
    while (goes_on()) {
        struct ibv_wc wc;
        (void)ibv_poll_cq(v.cq, 1, &wc);
    }
    return 0;
}
