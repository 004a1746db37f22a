/* SPDX-License-Identifier: BSD-2-Clause
 *
 * multicast - an ordinary verbs program that checks every byte of what a group hears.
 *
 * Goal       What any process sends to a multicast group, every queue pair of every process that is
 *            attached gets: once, whole, from whom it should be; on a bad network, what arrives is
 *            whole, and everything arrives in the end.
 * Method     Several processes, each started by itself, meet on a board, a file they map. Each
 *            sends numbered messages whose bytes anybody can compute, and notes on the board what
 *            its queue pairs have heard; nobody is a window ahead of the slowest. With --lossy, who
 *            sees no progress goes back to what the slowest lacks. Usage: multicast --board FILE
 *            --member I --of N [--seed S] [--messages M] [--lossy] [--events] [--group GID]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS_MAX     8
#define LISTENERS       2 /* Queue pairs of each member in the group; the first also sends. */
#define WINDOW          8
#define MESSAGE_MAX     4096
#define GRH_BYTES       40
#define QKEY            0x1ee7u
#define MULTICAST_QPN   0xffffffu
#define PATIENCE_MS     5
#define GIVE_UP_SECONDS 100

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "multicast: member %d: ", member);                                         \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fprintf(stderr, " (--seed %" PRIu64 " --messages %u)\n", seed, messages);                  \
        exit(1);                                                                                   \
    } while (0)

enum stage {
    ABSENT,
    ATTACHED,
    FINISHED,
};

struct board {
    struct {
        _Atomic uint32_t stage;
        union ibv_gid gid;
        uint32_t sender_qpn;
        _Atomic uint32_t heard[LISTENERS][MEMBERS_MAX]; /* Messages of each member, in order. */
    } members[MEMBERS_MAX];
};

struct listener {
    struct ibv_qp *qp;
    uint8_t *inbox; /* One place for each receive. */
    struct ibv_mr *mr;
};

static uint64_t seed = 1;
static uint32_t messages = 1000;
static int member = -1, members;
static bool lossy, events;
static const char *group_text = "::ffff:239.195.47.91";

static struct board *board;
static union ibv_gid group;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_ah *ah;
static struct listener listeners[LISTENERS];
static uint8_t *outbox; /* WINDOW places. */
static struct ibv_mr *outbox_mr;
static uint32_t in_flight[WINDOW]; /* Sends of each place that have not completed. */
static uint32_t mtu_bytes, repeated, ignored;

/* -- Messages -----------------------------------------------------------------------------------*/

static uint64_t tag_of(int from, uint32_t number)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (uint64_t)from * 0xbf58476d1ce4e5b9u + number;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Half of them small; empty and full ones too. */
static uint32_t bytes_of(int from, uint32_t number)
{
    const uint64_t tag = tag_of(from, number);
    const uint32_t bound = tag % 2 ? 65 : mtu_bytes + 1;
    return (tag >> 8) % 16 == 0 ? mtu_bytes : (uint32_t)((tag >> 16) % bound);
}

static uint8_t pattern(uint64_t tag, uint32_t index)
{
    return (uint8_t)(tag + index * 7 + (index >> 8) * 13);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static uint32_t receives(void)
{
    return (uint32_t)members * WINDOW;
}

static void post_receive(int l, uint32_t place)
{
    struct listener *listener = &listeners[l];
    struct ibv_sge sge = {(uintptr_t)listener->inbox + (uint64_t)place * (GRH_BYTES + MESSAGE_MAX),
                          GRH_BYTES + MESSAGE_MAX, listener->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1};
    if (ibv_post_recv(listener->qp, &wr, &bad) != 0) {
        FAIL("ibv_post_recv");
    }
}

/* The last bytes of a GID are the IPv4 address, where it is one. */
static bool header_names(const uint8_t *grh, const union ibv_gid *source)
{
    const bool ipv4 = grh[0] >> 4 != 6;
    const size_t skip = ipv4 ? 12 : 0, bytes = 16 - skip;
    return memcmp(grh + (ipv4 ? 32 : 8), source->raw + skip, bytes) == 0 &&
           memcmp(grh + (ipv4 ? 36 : 24), group.raw + skip, bytes) == 0;
}

static int sender_of(const struct ibv_wc *wc, const uint8_t *grh)
{
    for (int m = 0; m < members; m++) {
        if (board->members[m].sender_qpn == wc->src_qp &&
            header_names(grh, &board->members[m].gid)) {
            return m;
        }
    }
    FAIL("a message of queue pair %u, whom nobody knows", wc->src_qp);
}

static void on_message(const struct ibv_wc *wc)
{
    const int l = wc->qp_num == listeners[0].qp->qp_num ? 0 : 1;
    const uint8_t *grh = listeners[l].inbox + wc->wr_id * (uint64_t)(GRH_BYTES + MESSAGE_MAX);
    const int from = sender_of(wc, grh);
    const uint32_t number = ntohl(wc->imm_data);
    const uint64_t tag = tag_of(from, number);
    if (wc->byte_len != GRH_BYTES + bytes_of(from, number)) {
        FAIL("message %u of %d has %u bytes", number, from, wc->byte_len);
    }
    for (uint32_t i = 0; i < wc->byte_len - GRH_BYTES; i++) {
        if (grh[GRH_BYTES + i] != pattern(tag, i)) {
            FAIL("message %u of %d: byte %u is %02x, not %02x", number, from, i, grh[GRH_BYTES + i],
                 pattern(tag, i));
        }
    }
    /* A member that reads on the board that its message was heard may count on the receive. */
    post_receive(l, (uint32_t)wc->wr_id);
    _Atomic uint32_t *heard = &board->members[member].heard[l][from];
    if (number == atomic_load(heard)) {
        atomic_fetch_add(heard, 1);
    } else if (lossy) {
        ignored++;
    } else {
        FAIL("listener %d: message %u of %d instead of %u", l, number, from, atomic_load(heard));
    }
}

static bool poll_once(void)
{
    struct ibv_wc wcs[16];
    const int count = ibv_poll_cq(cq, 16, wcs);
    for (int i = 0; i < count; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS) {
            FAIL("a completion says %s", ibv_wc_status_str(wcs[i].status));
        }
        if (wcs[i].opcode == IBV_WC_SEND) {
            in_flight[wcs[i].wr_id]--;
        } else {
            on_message(&wcs[i]);
        }
    }
    return count > 0;
}

/* A note on the board wakes no process, so a sleep is short. */
static void sleep_for_event(void)
{
    if (ibv_req_notify_cq(cq, 0) != 0) {
        FAIL("ibv_req_notify_cq");
    }
    if (poll_once()) {
        return;
    }
    struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
    if (poll(&wait, 1, 1) == 1) {
        struct ibv_cq *which;
        void *unused;
        if (ibv_get_cq_event(channel, &which, &unused) != 0) {
            FAIL("ibv_get_cq_event");
        }
        ibv_ack_cq_events(which, 1);
    }
}

/* -- Sending ------------------------------------------------------------------------------------*/

static void send_message(uint32_t number)
{
    const uint32_t place = number % WINDOW, bytes = bytes_of(member, number);
    const uint64_t tag = tag_of(member, number);
    uint8_t *at = outbox + (size_t)place * MESSAGE_MAX;
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = pattern(tag, i);
    }
    struct ibv_sge sge = {(uintptr_t)at, bytes, outbox_mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = place,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND_WITH_IMM,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .imm_data = htonl(number),
                                   .wr.ud = {ah, MULTICAST_QPN, QKEY}};
    if (ibv_post_send(listeners[0].qp, &wr, &bad) != 0) {
        FAIL("ibv_post_send");
    }
    in_flight[place]++;
}

/* How many messages of `from` all members have heard. */
static uint32_t heard_by_all(int from)
{
    uint32_t least = UINT32_MAX;
    for (int m = 0; m < members; m++) {
        for (int l = 0; l < LISTENERS; l++) {
            const uint32_t heard = atomic_load(&board->members[m].heard[l][from]);
            least = heard < least ? heard : least;
        }
    }
    return least;
}

static void talk(void)
{
    uint32_t next = 0, confirmed = 0;
    const double began = seconds();
    double progress = began;
    while (confirmed < messages) {
        const uint32_t heard = heard_by_all(member);
        if (heard > confirmed) {
            confirmed = heard;
            progress = seconds();
        }
        if (next < confirmed) {
            next = confirmed;
        }
        if (next < messages && next < confirmed + WINDOW && in_flight[next % WINDOW] == 0) {
            send_message(next++);
        }
        if (!poll_once() && events) {
            sleep_for_event();
        }
        const double now = seconds();
        if (lossy && now - progress > PATIENCE_MS * 1e-3) {
            repeated += next - confirmed;
            next = confirmed;
            progress = now;
        }
        if (now - began > GIVE_UP_SECONDS) {
            FAIL("everybody heard %u of %u messages, then nothing", confirmed, messages);
        }
    }
}

/* -- Setting up ---------------------------------------------------------------------------------*/

static void *must(void *pointer, const char *what)
{
    if (pointer == NULL) {
        FAIL("%s: %s", what, strerror(errno));
    }
    return pointer;
}

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_send_wr = 2 * WINDOW,
                                            .max_recv_wr = receives(),
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = must(ibv_create_qp(pd, &init), "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    int failed =
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    failed |= ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    failed |= ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (failed) {
        FAIL("ibv_modify_qp");
    }
    return qp;
}

static void listen_with(struct listener *listener)
{
    const size_t bytes = (size_t)receives() * (GRH_BYTES + MESSAGE_MAX);
    listener->qp = make_qp();
    listener->inbox = must(malloc(bytes), "memory");
    listener->mr =
        must(ibv_reg_mr(pd, listener->inbox, bytes, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
    for (uint32_t place = 0; place < receives(); place++) {
        post_receive((int)(listener - listeners), place);
    }
    const int failed = ibv_attach_mcast(listener->qp, &group, 0);
    if (failed) {
        FAIL("ibv_attach_mcast: %s", strerror(failed));
    }
}

/* A GID of the family of the group. */
static uint8_t find_source(union ibv_gid *gid)
{
    for (uint8_t i = 0; ibv_query_gid(context, 1, i, gid) == 0; i++) {
        if ((gid->raw[0] == 0) == (group.raw[0] == 0)) {
            return i;
        }
    }
    FAIL("no GID of the family of %s", group_text);
}

static void open_device(void)
{
    struct ibv_device **list = must(ibv_get_device_list(NULL), "ibv_get_device_list");
    struct ibv_port_attr port;
    context = must(ibv_open_device(must(list[0], "a device")), "ibv_open_device");
    ibv_free_device_list(list);
    if (ibv_query_port(context, 1, &port) != 0) {
        FAIL("ibv_query_port");
    }
    mtu_bytes = 128u << port.active_mtu;
    pd = must(ibv_alloc_pd(context), "ibv_alloc_pd");
    channel = must(ibv_create_comp_channel(context), "ibv_create_comp_channel");
    cq = must(ibv_create_cq(context, (int)receives() * LISTENERS + 2 * WINDOW, NULL, channel, 0),
              "ibv_create_cq");
    outbox = must(malloc((size_t)WINDOW * MESSAGE_MAX), "memory");
    outbox_mr = must(ibv_reg_mr(pd, outbox, (size_t)WINDOW * MESSAGE_MAX, 0), "ibv_reg_mr");
    for (int l = 0; l < LISTENERS; l++) {
        listen_with(&listeners[l]);
    }
    struct ibv_ah_attr attr = {.is_global = 1, .grh = {.dgid = group, .hop_limit = 1}};
    attr.port_num = 1;
    attr.grh.sgid_index = find_source(&board->members[member].gid);
    ah = must(ibv_create_ah(pd, &attr), "ibv_create_ah");
    board->members[member].sender_qpn = listeners[0].qp->qp_num;
}

static void close_device(void)
{
    int failed = ibv_destroy_ah(ah);
    for (int l = 0; l < LISTENERS; l++) {
        failed |= ibv_detach_mcast(listeners[l].qp, &group, 0);
        failed |= ibv_destroy_qp(listeners[l].qp);
        failed |= ibv_dereg_mr(listeners[l].mr);
        free(listeners[l].inbox);
    }
    failed |= ibv_dereg_mr(outbox_mr) | ibv_destroy_cq(cq);
    free(outbox);
    failed |= ibv_destroy_comp_channel(channel) | ibv_dealloc_pd(pd) | ibv_close_device(context);
    if (failed) {
        FAIL("something does not go away");
    }
}

/* All members get here before any goes on; messages are heard meanwhile. */
static void meet(enum stage stage)
{
    const double began = seconds();
    atomic_store(&board->members[member].stage, stage);
    for (int m = 0; m < members; m++) {
        while (atomic_load(&board->members[m].stage) < (uint32_t)stage) {
            if (stage == FINISHED) {
                poll_once();
            }
            if (seconds() - began > GIVE_UP_SECONDS) {
                FAIL("member %d is not there", m);
            }
        }
    }
}

static void open_board(const char *path)
{
    const int fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*board)) != 0) {
        FAIL("--board %s: %s", path == NULL ? "is missing" : path, strerror(errno));
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED) {
        FAIL("mmap");
    }
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"board", required_argument, NULL, 'b'},
        {"member", required_argument, NULL, 'm'},
        {"of", required_argument, NULL, 'o'},
        {"seed", required_argument, NULL, 's'},
        {"group", required_argument, NULL, 'g'},
        {"messages", required_argument, NULL, 'n'},
        {"lossy", no_argument, NULL, 'l'},
        {"events", no_argument, NULL, 'e'},
        {NULL, 0, NULL, 0},
    };
    const char *path = NULL;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'b': path = optarg; break;
        case 'm': member = atoi(optarg); break;
        case 'o': members = atoi(optarg); break;
        case 's': seed = strtoull(optarg, NULL, 10); break;
        case 'n': messages = (uint32_t)atoi(optarg); break;
        case 'g': group_text = optarg; break;
        case 'l': lossy = true; break;
        case 'e': events = true; break;
        default: return 2;
        }
    }
    if (members < 1 || members > MEMBERS_MAX || member < 0 || member >= members ||
        inet_pton(AF_INET6, group_text, group.raw) != 1) {
        FAIL("--member I --of N: I from 0, N up to %d; --group is an IPv6 address", MEMBERS_MAX);
    }
    open_board(path);
    open_device();
    meet(ATTACHED);
    talk();
    meet(FINISHED);
    close_device();
    printf("%u messages to %d queue pairs, every byte right; %u sent again, %u ignored\n", messages,
           members * LISTENERS, repeated, ignored);
    return 0;
}
