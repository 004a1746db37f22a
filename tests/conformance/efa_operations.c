/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_operations - each kind of request of SRD between two processes: its bytes, and every field of
 * the completions at both ends (SRD-7), for lengths where packets and parts of requests end.
 *
 * Usage: efa_operations, under `nonic run --nic efa`
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tests/conformance/efa_peer.h"

#define NO_HANDLE 0xffffu

static struct end end;
static struct target peer;
static struct ibv_ah *ah;
static uint32_t seed;

/* Our number at the peer, which receives tell: at first it has no handle to us. */
static uint32_t slid = NO_HANDLE;

/* Requests that have ended, as the device's counters tell it (SRD-11). */
static struct tally {
    const char *requests, *bytes;
    uint64_t ended, ended_bytes;
} all_sends = {.requests = "send_wrs", .bytes = "send_bytes"},
  all_writes = {.requests = "rdma_write_wrs", .bytes = "rdma_write_bytes"},
  all_reads = {.requests = "rdma_read_wrs", .bytes = "rdma_read_bytes"};

static uint64_t counter(const char *name)
{
    char path[128];
    unsigned long long value;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
             ibv_get_device_name(end.context->device), name);
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL && fscanf(file, "%llu", &value) == 1);
    fclose(file);
    return value;
}

static void count(const struct request *request)
{
    const bool sent = request->opcode == IBV_WR_SEND || request->opcode == IBV_WR_SEND_WITH_IMM;
    struct tally *tally = sent                                  ? &all_sends
                          : request->opcode == IBV_WR_RDMA_READ ? &all_reads
                                                                : &all_writes;
    tally->ended++;
    tally->ended_bytes += request->bytes;
}

static void check_counters(void)
{
    const struct tally *const tallies[] = {&all_sends, &all_writes, &all_reads};
    for (size_t i = 0; i < 3; i++) {
        EXPECT(counter(tallies[i]->requests) == tallies[i]->ended);
        EXPECT(counter(tallies[i]->bytes) == tallies[i]->ended_bytes);
    }
    EXPECT(counter("rdma_read_wr_err") == 0 && counter("rdma_write_wr_err") == 0);
    EXPECT(counter("unresponsive_remote_events") == 0);
    EXPECT(counter("tx_bytes") >= all_sends.ended_bytes + all_writes.ended_bytes);
    EXPECT(counter("rx_bytes") >= all_reads.ended_bytes);
}

/* -- Completions --------------------------------------------------------------------------------*/

static void check_request(const struct request *request)
{
    const struct seen seen = end_wait(&end, 10000);
    const bool write =
        request->opcode == IBV_WR_RDMA_WRITE || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    EXPECT(seen.there && seen.status == IBV_WC_SUCCESS && seen.vendor_err == 0);
    EXPECT(seen.wr_id == request->wr_id && seen.qpn == end.qp->qp_num);
    EXPECT(seen.opcode == (write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND));
    EXPECT(seen.flags == 0 && !seen.unsolicited);
    EXPECT(!end_wait(&end, 0).there);
}

static void check_receive(const struct request *request, bool consumed)
{
    const struct seen seen = target_order(&peer, ORDER_TELL, 0, NULL).seen;
    const bool write = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    const bool immediate = write || request->opcode == IBV_WR_SEND_WITH_IMM;
    EXPECT(seen.there && seen.status == IBV_WC_SUCCESS && seen.vendor_err == 0);
    EXPECT(seen.wr_id == (consumed ? 1000 + request->bytes : 0));
    EXPECT(seen.unsolicited == !consumed);
    EXPECT(seen.opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
    EXPECT(seen.bytes == request->bytes);
    EXPECT(seen.flags == (immediate ? IBV_WC_WITH_IMM : 0));
    EXPECT(!immediate || seen.immediate == request->immediate);
    EXPECT(seen.qpn == peer.address.qpn && seen.source_qpn == end.qp->qp_num);
    EXPECT(seen.slid == slid);
    EXPECT(seen.sgid_reason == (slid == NO_HANDLE ? 0 : -ENOENT));
    EXPECT(slid != NO_HANDLE || memcmp(&seen.sgid, &end.gid, sizeof(end.gid)) == 0);
    EXPECT(!target_order(&peer, ORDER_TELL_NONE, 0, NULL).seen.there);
}

/* -- Requests -----------------------------------------------------------------------------------*/

static bool consumes(enum ibv_wr_opcode opcode)
{
    return opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_READ;
}

static bool peer_has(uint32_t bytes)
{
    const struct address with = {.qkey = seed};
    return target_order(&peer, ORDER_COMPARE, bytes, &with).alike;
}

static void run(enum ibv_wr_opcode opcode, uint32_t bytes, bool inlined, bool unsolicited)
{
    const struct request request = {.opcode = opcode,
                                    .wr_id = (uint64_t)seed << 32 | bytes,
                                    .bytes = bytes,
                                    .immediate = htonl(seed + bytes),
                                    .inlined = inlined};
    const bool reads = opcode == IBV_WR_RDMA_READ;
    seed++;
    end_fill(&end, reads ? seed + 1000000 : seed);
    target_order(&peer, ORDER_FILL, reads ? seed : seed + 1000000, NULL);
    if (consumes(opcode) && !unsolicited) {
        target_order(&peer, ORDER_RECEIVE, bytes, NULL);
    }
    EXPECT(end_post(&end, ah, &peer.address, &request) == 0);
    if (inlined) {
        memset(end.memory, 0xee, bytes); /* It was copied. */
    }
    check_request(&request);
    count(&request);
    if (consumes(opcode)) {
        check_receive(&request, !unsolicited);
    } else {
        EXPECT(!target_order(&peer, ORDER_TELL_NONE, 0, NULL).seen.there);
    }
    EXPECT(reads ? end_is_filled(&end, seed, bytes) : peer_has(bytes));
    EXPECT(reads ? !end_is_filled(&end, seed, bytes + 64) : !peer_has(bytes + 64));
}

static void messages(void)
{
    static const uint32_t sizes[] = {0, 1, 32, 33, 4096, 4097, 8192};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        run(IBV_WR_SEND, sizes[i], false, false);
        run(IBV_WR_SEND_WITH_IMM, sizes[i], false, false);
    }
    run(IBV_WR_SEND, 32, true, false);
    run(IBV_WR_SEND_WITH_IMM, 1, true, false);
    run(IBV_WR_SEND, 0, true, false);
}

static void memory(bool unsolicited)
{
    static const uint32_t sizes[] = {0, 1, 4096, 4097, 65536, 300001, 1 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        run(IBV_WR_RDMA_WRITE, sizes[i], false, false);
        run(IBV_WR_RDMA_WRITE_WITH_IMM, sizes[i], false, unsolicited);
        run(IBV_WR_RDMA_READ, sizes[i], false, false);
    }
}

/* A receive that was posted is there for a message when unsolicited WRITEs have come. */
static void unsolicited(void)
{
    const struct address own = end_address(&end);
    ibv_destroy_qp(end.qp);
    end.qp = end_queue_pair(&end, EFA_QP_UNSOLICITED_WRITE_RECV, 0);
    target_order(&peer, ORDER_RENEW, EFA_QP_UNSOLICITED_WRITE_RECV, &own);
    memory(true);
    run(IBV_WR_SEND, 100, false, false);
}

int main(void)
{
    peer = target_start();
    end_open(&end);
    end.qp = end_queue_pair(&end, 0, 0);
    target_order(&peer, ORDER_OPEN, 0, NULL);
    ah = end_handle(&end, &peer.address.gid);
    const struct address own = end_address(&end);
    messages();
    slid = target_order(&peer, ORDER_HANDLE, 0, &own).address.ahn;
    messages();
    memory(false);
    unsolicited();
    check_counters();
    printf("operations: ok\n");
    return 0;
}
