/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_statuses - each status by which a request to a peer ends, from its cause (SRD-9, SRD-10): the
 * vendor's code, that of verbs, and that the queue pair, the peer and requests to others go on.
 *
 * A status is always provoked between two good requests to another peer, which end well.
 *
 * Usage: efa_statuses refusals|flushes|memory|silence, or, where processes share an address,
 *        efa_statuses restart; under `nonic run --nic efa`
 */
#include <arpa/inet.h>
#include <string.h>

#include "tests/conformance/efa_peer.h"

/* Those of efa_io_defs.h. */
enum status {
    OK = 0,
    FLUSHED = 1,
    BAD_LKEY = 5,
    BAD_LENGTH = 6,
    BAD_ADDRESS = 7,
    ABORT = 8,
    BAD_QPN = 9,
    NO_RECEIVE = 10,
    TOO_LONG = 11,
    UNRESPONSIVE = 13,
    UNKNOWN_PEER = 14,
    UNREACHABLE = 15,
    FEATURE_MISMATCH = 18,
};

#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

static struct end end;
static struct target good, bad;
static struct ibv_ah *to_good, *to_bad;

/* -- Checks -------------------------------------------------------------------------------------*/

/* As rdma-core 65 has it. */
static enum ibv_wc_status verbs_status(enum status status)
{
    switch (status) {
    case OK: return IBV_WC_SUCCESS;
    case FLUSHED: return IBV_WC_WR_FLUSH_ERR;
    case BAD_LKEY: return IBV_WC_LOC_PROT_ERR;
    case BAD_LENGTH: return IBV_WC_LOC_LEN_ERR;
    case BAD_ADDRESS: return IBV_WC_REM_ACCESS_ERR;
    case ABORT: return IBV_WC_REM_ABORT_ERR;
    case BAD_QPN: return IBV_WC_REM_INV_RD_REQ_ERR;
    case NO_RECEIVE: return IBV_WC_RNR_RETRY_EXC_ERR;
    case TOO_LONG:
    case FEATURE_MISMATCH: return IBV_WC_REM_INV_REQ_ERR;
    case UNRESPONSIVE:
    case UNREACHABLE: return IBV_WC_RESP_TIMEOUT_ERR;
    case UNKNOWN_PEER: return IBV_WC_REM_OP_ERR;
    }
    return IBV_WC_GENERAL_ERR;
}

static void expect_status(const struct seen *seen, uint64_t wr_id, enum status status)
{
    if (!seen->there || seen->wr_id != wr_id || seen->vendor_err != status ||
        seen->status != verbs_status(status) || seen->qpn != end.qp->qp_num) {
        fprintf(stderr, "request %lu: there %d, wr_id %lu, %s, vendor %u instead of %u\n",
                (unsigned long)wr_id, seen->there, (unsigned long)seen->wr_id,
                ibv_wc_status_str((enum ibv_wc_status)seen->status), seen->vendor_err, status);
        _exit(1);
    }
}

static void expect_ready(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(end.qp, &attr, IBV_QP_STATE, &init) == 0);
    EXPECT(attr.qp_state == IBV_QPS_RTS);
}

static struct request request_of(enum ibv_wr_opcode opcode)
{
    return (struct request){.opcode = opcode, .wr_id = 2, .bytes = 100, .immediate = htonl(5)};
}

static void send_good(uint64_t wr_id)
{
    struct request send = request_of(IBV_WR_SEND);
    send.wr_id = wr_id;
    EXPECT(end_post(&end, to_good, &good.address, &send) == 0);
}

/* The request ends with that status, and nothing else does; it may take its time. */
static void provoke(const struct address *to, const struct request *request, enum status status)
{
    target_order(&good, ORDER_RECEIVE, 100, NULL);
    target_order(&good, ORDER_RECEIVE, 100, NULL);
    send_good(1);
    EXPECT(end_post(&end, to_bad, to, request) == 0);
    send_good(3);
    bool seen_of[4] = {false};
    for (int i = 0; i < 3; i++) {
        const struct seen seen = end_wait(&end, 10000);
        EXPECT(seen.there && seen.wr_id <= 3 && !seen_of[seen.wr_id]);
        seen_of[seen.wr_id] = true;
        expect_status(&seen, seen.wr_id, seen.wr_id == 2 ? status : OK);
    }
    EXPECT(target_order(&good, ORDER_TELL, 0, NULL).seen.status == IBV_WC_SUCCESS);
    EXPECT(target_order(&good, ORDER_TELL, 0, NULL).seen.status == IBV_WC_SUCCESS);
    expect_ready();
}

/* The peer that refused goes on: it takes a message. */
static void expect_goes_on(void)
{
    const struct request send = request_of(IBV_WR_SEND);
    target_order(&bad, ORDER_RECEIVE, 100, NULL);
    provoke(&bad.address, &send, OK);
    const struct seen seen = target_order(&bad, ORDER_TELL, 0, NULL).seen;
    EXPECT(seen.there && seen.status == IBV_WC_SUCCESS && seen.wr_id == 1100);
}

static void start(uint16_t flags)
{
    good = target_start();
    bad = target_start();
    end_open(&end);
    end.qp = end_queue_pair(&end, flags, 0);
    target_order(&good, ORDER_OPEN, 0, NULL);
    target_order(&bad, ORDER_OPEN, 0, NULL);
    to_good = end_handle(&end, &good.address.gid);
    to_bad = end_handle(&end, &bad.address.gid);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static const enum ibv_wr_opcode reaching[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                              IBV_WR_RDMA_READ};
#define REACHING (sizeof(reaching) / sizeof(reaching[0]))

/* 14: RDMA wants that the target knows its peer; a message does not. */
static void unknown_peer(void)
{
    const struct address own = end_address(&end);
    for (size_t i = 0; i < REACHING; i++) {
        const struct request request = request_of(reaching[i]);
        provoke(&bad.address, &request, UNKNOWN_PEER);
    }
    expect_goes_on();
    target_order(&bad, ORDER_HANDLE, 0, &own);
    const struct request request = request_of(IBV_WR_RDMA_READ);
    provoke(&bad.address, &request, OK);
    target_order(&bad, ORDER_HANDLE_GONE, 0, NULL);
    provoke(&bad.address, &request, UNKNOWN_PEER);
    target_order(&bad, ORDER_HANDLE, 0, &own);
}

/* 7: beyond the region, with a wrong key, without the right, and when the region is gone. */
static void bad_address(void)
{
    const struct address right = bad.address;
    struct address wrong;
    for (size_t i = 0; i < REACHING; i++) {
        struct request request = request_of(reaching[i]);
        wrong = right;
        wrong.memory += PEER_BYTES - request.bytes + 1;
        provoke(&wrong, &request, BAD_ADDRESS);
        wrong = right;
        wrong.rkey ^= 0x100;
        provoke(&wrong, &request, BAD_ADDRESS);
        target_order(&bad, ORDER_FORGET_MEMORY, 0, NULL);
        provoke(&right, &request, BAD_ADDRESS);
        target_order(&bad, ORDER_REGISTER, IBV_ACCESS_LOCAL_WRITE, NULL);
        provoke(&bad.address, &request, BAD_ADDRESS);
        target_order(&bad, ORDER_FORGET_MEMORY, 0, NULL);
        target_order(&bad, ORDER_REGISTER, ALL, NULL);
    }
    expect_goes_on();
}

/* 9: no such queue pair, another Q_Key, one that failed, one that was destroyed. */
static void bad_qpn(void)
{
    const struct request send = request_of(IBV_WR_SEND);
    struct address wrong = bad.address;
    wrong.qpn ^= 0x40;
    provoke(&wrong, &send, BAD_QPN);
    wrong = bad.address;
    wrong.qkey++;
    provoke(&wrong, &send, BAD_QPN);
    const struct address old = bad.address;
    target_order(&bad, ORDER_FAIL, 0, NULL);
    provoke(&old, &send, BAD_QPN);
    target_order(&bad, ORDER_RENEW, 0, NULL);
    for (size_t i = 0; i < REACHING && bad.address.qpn != old.qpn; i++) {
        const struct request request = request_of(reaching[i]);
        provoke(&old, &request, BAD_QPN);
    }
    expect_goes_on();
}

/* 10 and 11: no receive, and one that is too short; neither is delivered. */
static void receives(void)
{
    static const enum ibv_wr_opcode consuming[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
                                                   IBV_WR_RDMA_WRITE_WITH_IMM};
    for (size_t i = 0; i < 3; i++) {
        const struct request request = request_of(consuming[i]);
        provoke(&bad.address, &request, NO_RECEIVE);
        EXPECT(!target_order(&bad, ORDER_TELL_NONE, 0, NULL).seen.there);
    }
    const struct request send = request_of(IBV_WR_SEND);
    target_order(&bad, ORDER_RECEIVE, 99, NULL);
    provoke(&bad.address, &send, TOO_LONG);
    EXPECT(!target_order(&bad, ORDER_TELL_NONE, 0, NULL).seen.there);
    struct request shorter = send;
    shorter.bytes = 99;
    provoke(&bad.address, &shorter, OK);
    EXPECT(target_order(&bad, ORDER_TELL, 0, NULL).seen.wr_id == 1099);
    expect_goes_on();
}

/* 5, 6: what this end is to blame for. */
static void own_mistakes(void)
{
    struct request request = request_of(IBV_WR_SEND);
    request.lkey = end.mr->lkey ^ 0x100;
    provoke(&bad.address, &request, BAD_LKEY);
    request = request_of(IBV_WR_SEND);
    request.bytes = 8193;
    provoke(&bad.address, &request, BAD_LENGTH);
    expect_goes_on();
}

static void refusals(void)
{
    start(0);
    unknown_peer();
    bad_address();
    bad_qpn();
    receives();
    own_mistakes();
    /* 18: only one end has a queue pair that takes unsolicited WRITEs. */
    struct ibv_qp *plain = end.qp;
    const struct request write = request_of(IBV_WR_RDMA_WRITE_WITH_IMM);
    end.qp = end_queue_pair(&end, EFA_QP_UNSOLICITED_WRITE_RECV, 0);
    target_order(&bad, ORDER_RECEIVE, 100, NULL);
    provoke(&bad.address, &write, FEATURE_MISMATCH);
    EXPECT(!target_order(&bad, ORDER_TELL_NONE, 0, NULL).seen.there);
    end.qp = plain;
    provoke(&bad.address, &write, OK);
    EXPECT(target_order(&bad, ORDER_TELL, 0, NULL).seen.wr_id == 1100);
}

/* -- Silence ------------------------------------------------------------------------------------*/

/* Requests to one that does not answer. */
struct silent {
    struct ibv_ah *ah;
    struct address address;
    enum status status;
};

enum {
    SILENT_EACH = 20,
    SILENT_MAX = 4,
};

static void post_to_silent(const struct silent *silent, uint32_t count)
{
    struct request send = request_of(IBV_WR_SEND);
    for (uint32_t i = 0; i < count * SILENT_EACH; i++) {
        send.wr_id = 10 + i;
        EXPECT(end_post(&end, silent[i % count].ah, &silent[i % count].address, &send) == 0);
    }
}

/* All have ended after 4 s, give or take; not one after the other. */
static void wait_for_silent(const struct silent *silent, uint32_t count)
{
    bool done[SILENT_MAX * SILENT_EACH] = {false};
    for (uint32_t i = 0; i < count * SILENT_EACH; i++) {
        const struct seen seen = end_wait(&end, i == 0 ? 10000 : 5000);
        const uint32_t number = (uint32_t)seen.wr_id - 10;
        EXPECT(seen.there && number < count * SILENT_EACH && !done[number]);
        done[number] = true;
        expect_status(&seen, seen.wr_id, silent[number % count].status);
    }
    expect_ready();
}

static struct silent known(struct target *target, enum status status)
{
    return (struct silent){
        .ah = end_handle(&end, &target->address.gid), .address = target->address, .status = status};
}

/* 13: a peer that is stopped, one that was killed. 15: one that was killed before it ever answered,
 * and, where there is UDP, an address that is nobody's. Others do not wait for them; and who was
 * stopped goes on. */
static void silence(void)
{
    struct target killed = target_start(), early = target_start();
    start(0);
    target_order(&killed, ORDER_OPEN, 0, NULL);
    target_order(&early, ORDER_OPEN, 0, NULL);
    static struct silent silent[SILENT_MAX]; /* Handles that last as long as the program. */
    silent[0] = known(&bad, UNRESPONSIVE);
    silent[1] = known(&killed, UNRESPONSIVE);
    silent[2] = silent[3] = known(&early, UNREACHABLE);
    const char *wire = getenv("NONIC_WIRE");
    const uint32_t count = wire != NULL && strcmp(wire, "shm") == 0 ? 3 : 4;
    if (count == 4) {
        const union ibv_gid nobody = {.raw = {[10] = 0xff, 0xff, 127, 200, 201, 202}};
        silent[3].ah = end_handle(&end, &nobody);
    }
    expect_goes_on();
    target_order(&killed, ORDER_RECEIVE, 100, NULL);
    const struct request send = request_of(IBV_WR_SEND);
    EXPECT(end_post(&end, silent[1].ah, &killed.address, &send) == 0);
    struct seen seen = end_wait(&end, 5000);
    expect_status(&seen, 2, OK);
    target_stop(&bad);
    target_kill(&killed);
    target_kill(&early);
    post_to_silent(silent, count);
    for (int i = 0; i < 20; i++) {
        target_order(&good, ORDER_RECEIVE, 100, NULL);
        send_good(1);
        seen = end_wait(&end, 1000);
        expect_status(&seen, 1, OK);
        EXPECT(target_order(&good, ORDER_TELL, 0, NULL).seen.there);
    }
    wait_for_silent(silent, count);
    target_continue(&bad);
    /* It meets what was sent meanwhile, for which it has no receive. */
    EXPECT(!target_order(&bad, ORDER_TELL_NONE, 0, NULL).seen.there);
    expect_goes_on();
}

/* -- Another process at the same place ----------------------------------------------------------*/

/* 8: the peer went, and another process has its address and its slot. The next request was for the
 * old one, and ends so, although the new one has a receive; later ones are for the new one.
 * Processes draw their slots, so it takes some until one has that of the old. */
static void restart(void)
{
    start(0);
    expect_goes_on();
    const uint32_t slot = bad.address.qpn >> 8;
    do {
        target_kill(&bad);
        bad = target_start();
        target_order(&bad, ORDER_OPEN, 0, NULL);
    } while (bad.address.qpn >> 8 != slot);
    const struct request send = request_of(IBV_WR_SEND);
    target_order(&bad, ORDER_RECEIVE, 100, NULL);
    provoke(&bad.address, &send, ABORT);
    EXPECT(!target_order(&bad, ORDER_TELL_NONE, 0, NULL).seen.there);
    provoke(&bad.address, &send, OK);
    EXPECT(target_order(&bad, ORDER_TELL, 0, NULL).seen.wr_id == 1100);
}

/* -- Flushes ------------------------------------------------------------------------------------*/

/* Requests wait for a peer that is stopped. */
static void post_to_stopped(uint32_t count, uint64_t first)
{
    struct request send = request_of(IBV_WR_SEND);
    for (uint32_t i = 0; i < count; i++) {
        send.wr_id = first + i;
        EXPECT(end_post(&end, to_bad, &bad.address, &send) == 0);
    }
}

static void expect_flushed(uint32_t count, uint64_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct seen seen = end_wait(&end, 0);
        expect_status(&seen, first + i, FLUSHED);
    }
    EXPECT(!end_wait(&end, 20).there);
}

/* 1: the handle is destroyed, the queue pair fails; at once, since nobody has to answer. A queue
 * pair that is destroyed says nothing. */
static void flushes(void)
{
    start(0);
    expect_goes_on();
    target_stop(&bad);
    post_to_stopped(5, 100);
    struct ibv_ah *second = end_handle(&end, &bad.address.gid);
    EXPECT(ibv_destroy_ah(to_bad) == 0);
    EXPECT(!end_wait(&end, 20).there); /* There is another one of that number. */
    EXPECT(ibv_destroy_ah(second) == 0);
    expect_flushed(5, 100);
    expect_ready();
    target_order(&good, ORDER_RECEIVE, 100, NULL);
    send_good(1);
    struct seen seen = end_wait(&end, 1000);
    expect_status(&seen, 1, OK);

    to_bad = end_handle(&end, &bad.address.gid);
    struct ibv_qp *first = end.qp;
    post_to_stopped(5, 200);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    EXPECT(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE) == 0);
    expect_flushed(5, 200);
    end.qp = end_queue_pair(&end, 0, 0);
    EXPECT(ibv_destroy_qp(first) == 0);
    post_to_stopped(5, 300);
    EXPECT(ibv_destroy_qp(end.qp) == 0);
    end.qp = end_queue_pair(&end, 0, 0);
    EXPECT(!end_wait(&end, 20).there);
    target_continue(&bad);
    EXPECT(!target_order(&bad, ORDER_TELL_NONE, 0, NULL).seen.there);
    expect_goes_on();
}

/* -- Memory that goes ---------------------------------------------------------------------------*/

enum {
    LONG_BYTES = 1 << 20,
    LONG_REQUESTS = 4,
    GOING_ROUNDS = 20,
};

static void post_long(enum ibv_wr_opcode opcode)
{
    struct request request = request_of(opcode);
    request.bytes = LONG_BYTES;
    for (uint64_t i = 0; i < LONG_REQUESTS; i++) {
        request.wr_id = i;
        EXPECT(end_post(&end, to_bad, &bad.address, &request) == 0);
    }
}

/* Those that are not done end with that status, or had been done. How many did so? */
static uint32_t wait_for_long(uint32_t done, enum status status)
{
    uint32_t cut = 0;
    for (; done < LONG_REQUESTS; done++) {
        const struct seen seen = end_wait(&end, 10000);
        expect_status(&seen, seen.wr_id, seen.vendor_err == OK ? OK : status);
        cut += seen.vendor_err != OK;
    }
    return cut;
}

/* The longer the round, the more of the requests is done before something goes. */
static uint32_t wait_a_little(int round)
{
    uint32_t done = 0;
    for (int i = 0; i < round * 3; i++) {
        const struct seen seen = end_wait(&end, 0);
        EXPECT(!seen.there || seen.vendor_err == OK);
        done += seen.there;
    }
    return done;
}

static void expect_untouched(uint64_t before, int ms)
{
    EXPECT(!end_wait(&end, ms).there);
    EXPECT(end_sum(&end) == before);
}

/* READs, and their memory goes; WRITEs, and the target's memory goes; READs, and their queue pair
 * goes. How many READs were in the middle? */
static uint32_t take_memory_away(int round)
{
    target_order(&bad, ORDER_FILL, (uint32_t)round, NULL);
    post_long(IBV_WR_RDMA_READ);
    uint32_t done = wait_a_little(round);
    EXPECT(ibv_dereg_mr(end.mr) == 0);
    const uint64_t read = end_sum(&end);
    const uint32_t cut = wait_for_long(done, BAD_LKEY);
    expect_untouched(read, 2);
    EXPECT((end.mr = ibv_reg_mr(end.pd, end.memory, PEER_BYTES, ALL)) != NULL);

    end_fill(&end, (uint32_t)round + 1000);
    post_long(IBV_WR_RDMA_WRITE);
    done = wait_a_little(round);
    const uint64_t written = target_order(&bad, ORDER_FORGET_MEMORY, 0, NULL).sum;
    (void)wait_for_long(done, BAD_ADDRESS);
    EXPECT(target_order(&bad, ORDER_SUM, 0, NULL).sum == written);
    target_order(&bad, ORDER_REGISTER, ALL, NULL);

    post_long(IBV_WR_RDMA_READ);
    (void)wait_a_little(round);
    EXPECT(ibv_destroy_qp(end.qp) == 0);
    while (end_wait(&end, 0).there) { /* It was done before. */
    }
    expect_untouched(end_sum(&end), 20);
    end.qp = end_queue_pair(&end, 0, 0);
    return cut;
}

/* No byte moves once the call has returned that takes memory, or the queue pair, away (SRD-10). */
static void memory(void)
{
    start(0);
    const struct address own = end_address(&end);
    target_order(&bad, ORDER_HANDLE, 0, &own);
    uint32_t cut = 0;
    for (int round = 0; round < GOING_ROUNDS; round++) {
        cut += take_memory_away(round);
    }
    EXPECT(cut > 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"refusals", refusals},
                 {"silence", silence},
                 {"restart", restart},
                 {"flushes", flushes},
                 {"memory", memory}};
    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            printf("%s: ok\n", argv[1]);
            return 0;
        }
    }
    return 2;
}
