/* SPDX-License-Identifier: BSD-2-Clause
 *
 * numbers - a right program whose NIC makes descriptors in the program's thread and in its own, in
 * turn with the same numbers: ThreadSanitizer has nothing to say of that.
 *
 * Each connection asks who serves a port: the NIC's thread accepts a socket for that. And over UDP
 * each queue pair asks whether its peer is local, by a socket of the program's thread.
 *
 * Usage: numbers, under `nonic run`
 */
#include "tests/api/cm_program.h"
#include "tests/hostile/victim.h"

enum {
    PEERS = 4,
    PAUSE_US = 20000, /* Until the NIC's thread has closed what it accepted. */
};

static void ask_for_service(int fd, uint16_t port)
{
    const uint32_t id = routed(fd, RDMA_PS_TCP, port);
    EXPECT(connect_id(fd, id, 0) == 0);
    destroy_id(fd, id);
    usleep(PAUSE_US);
}

static void meet(struct victim *v)
{
    const struct address own = victim_address(v);
    struct ibv_qp *qp = victim_create_qp(v);
    EXPECT(qp != NULL);
    victim_connect(qp, &own, 14, 7);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* It gets such a number, too. */
static void make_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    EXPECT(channel != NULL && ibv_destroy_comp_channel(channel) == 0);
}

int main(void)
{
    struct victim v;
    uint32_t listener;
    victim_open(&v);
    const int passive = open_device(0), active = open_device(0);
    const uint16_t port = listen_somewhere(passive, &listener, RDMA_PS_TCP);
    for (uint8_t i = 1; i <= PEERS; i++) {
        ask_for_service(active, port);
        meet(&v);
        make_channel(v.context);
    }
    printf("done\n");
    return 0;
}
