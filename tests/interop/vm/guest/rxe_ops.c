/* SPDX-License-Identifier: BSD-2-Clause */
// rxe_ops: run a list of single verbs against a peer and say what completed.
//
//   rxe_ops -l [OPTIONS] [OP...]          wait for one peer on TCP
//   rxe_ops -c HOST [OPTIONS] [OP...]     connect to the peer
// Either side may be given OPs; a side without any only answers. OPTIONS:
//   -d DEV (first)  -g GIDINDEX (1)  -q RC|UC|UD (RC)  -m MTU (1024)  -P TCPPORT (18515)
//   -s PSN (0x100000 listening, 0x200000 connecting)   -r RECVS posted (64)  -z BYTES each (65536)
//   -D MS post the receives only after MS   -R RNRTIMER code (12)  -N rnr_retry (7)
//   -t TIMEOUT code (14)  -y retry_cnt (7)  -a max_rd_atomic (16)  -M (offer a type 2 memory
//   window) -w SECS to wait for the peer at the end (20)
// OPs, each optionally preceded by 'N*' (post N before waiting for any):
//   send:LEN  send_se:LEN (solicited)  send_imm:LEN:IMM  send_inv:LEN  sleep:MS
//   write:LEN:OFF  write_imm:LEN:OFF:IMM  write_mw:LEN:OFF  read:LEN:OFF  read_fence:LEN:OFF
//   fadd:OFF:ADD  cas:OFF:COMPARE:SWAP
//   bad_rkey:LEN (write)  bad_raddr:LEN (write past the end)  bad_rread:LEN (read, wrong rkey)
//   bad_atomic:OFF (fetch-and-add, wrong rkey; a misaligned one librxe itself refuses to post)
// Handshake: each side sends one line over TCP, the listener first:
//   RXEOPS qp=RC qpn=0x.. psn=0x.. gid=<textual> mtu=N addr=0x.. len=N rkey=0x.. mw=0x..
// then 'READY' once its QP is in RTS (receives posted), and 'DONE' after its OPs.
// Memory: a public region of 1 MiB (addr/len/rkey) holding, at byte i, (7i + 13(i>>8) + seed) &
// 255, seed 0x22 for the listener, 0x11 for the connecting side; what is sent comes from a second
// region with the same formula and seed + 0x40, from its start.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#define MB (1u << 20)
#define DIE(...)                                                                                   \
    do {                                                                                           \
        fprintf(stderr, "rxe_ops: " __VA_ARGS__);                                                  \
        fprintf(stderr, " (%s)\n", strerror(errno));                                               \
        exit(2);                                                                                   \
    } while (0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qp;
static struct ibv_mr *mr, *pmr, *rmr;
static struct ibv_mw *mw;
static struct ibv_ah *ah;
static uint8_t *buf, *rbuf;
static int nrecv = 64, rsize = 65536, qpt = IBV_QPT_RC, gidx = 1, fails, flushed;
static unsigned window_key;
static struct {
    unsigned qpn, psn, rkey, mw, mtu;
    uint64_t addr, len;
    union ibv_gid gid;
} peer;
// The other options of the command line.
static struct {
    int listening, mtu, port, receive_delay_ms, rnr_timer, rnr_retry, timeout, retry_cnt, reads,
        window, wait_s;
    long psn;
    const char *host, *device;
} option = {.mtu = 1024,
            .port = 18515,
            .rnr_timer = 12,
            .rnr_retry = 7,
            .timeout = 14,
            .retry_cnt = 7,
            .reads = 16,
            .wait_s = 20,
            .psn = -1};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static uint32_t fnv(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;
    while (n--)
        h = (h ^ *p++) * 16777619u;
    return h;
}
static void fill(uint8_t *p, unsigned n, unsigned seed)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = 7 * i + 13 * (i >> 8) + seed;
}
static enum ibv_mtu mtucode(int m)
{
    return m >= 4096   ? IBV_MTU_4096
           : m >= 2048 ? IBV_MTU_2048
           : m >= 1024 ? IBV_MTU_1024
           : m >= 512  ? IBV_MTU_512
                       : IBV_MTU_256;
}

static void post_recv(int i)
{
    struct ibv_sge s = {(uintptr_t)(rbuf + (size_t)i * rsize), rsize, rmr->lkey};
    struct ibv_recv_wr w = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
    if (ibv_post_recv(qp, &w, &bad))
        DIE("post_recv");
}
static void drain_recv(int repost)
{
    struct ibv_wc c;
    while (ibv_poll_cq(rcq, 1, &c) > 0) {
        if (c.status == IBV_WC_WR_FLUSH_ERR) {
            flushed++;
            continue;
        }
        printf("recv %s", ibv_wc_status_str(c.status));
        if (c.status == IBV_WC_SUCCESS) {
            int grh = qpt == IBV_QPT_UD ? 40 : 0;
            uint8_t *p = rbuf + (size_t)c.wr_id * rsize + grh;
            printf(" opcode=%d len=%u", c.opcode, c.byte_len - grh);
            if (c.wc_flags & IBV_WC_WITH_IMM)
                printf(" imm=0x%08x", ntohl(c.imm_data));
            if (c.wc_flags & IBV_WC_WITH_INV)
                printf(" invalidated=0x%08x", c.invalidated_rkey);
            if (qpt == IBV_QPT_UD)
                printf(" src_qp=0x%06x grh=%d", c.src_qp, !!(c.wc_flags & IBV_WC_GRH));
            if (c.opcode == IBV_WC_RECV)
                printf(" fnv=%08x", fnv(p, c.byte_len - grh));
            if (repost)
                post_recv(c.wr_id);
        }
        printf("\n");
        fflush(stdout);
    }
}
// one line from the socket into b; 0 at end of file
static int line(int fd, char *b, int n, double until)
{
    int k = 0;
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        drain_recv(1);
        if (until && now() > until)
            return -1;
        if (poll(&p, 1, 20) <= 0)
            continue;
        if (read(fd, b + k, 1) != 1)
            return 0;
        if (b[k] == '\n') {
            b[k] = 0;
            return 1;
        }
        if (k < n - 2)
            k++;
    }
}
static int wait_send(int n, const char *what)
{
    struct ibv_wc c;
    double end = now() + 60;
    for (int i = 0; i < n;) {
        drain_recv(1);
        int r = ibv_poll_cq(scq, 1, &c);
        if (r < 0)
            DIE("poll_cq");
        if (!r) {
            if (now() > end) {
                printf("%s: no completion in 60 s\n", what);
                fails++;
                return -1;
            }
            continue;
        }
        i++;
        if (c.status) {
            fails++;
            printf("%s [%lu]: %s (status %d vendor 0x%x)\n", what, (unsigned long)c.wr_id,
                   ibv_wc_status_str(c.status), c.status, c.vendor_err);
            fflush(stdout);
        }
    }
    return 0;
}

// -- Operations -----------------------------------------------------------------------------------

enum memory {
    FROM_SOURCE, // Sent from the second region's start.
    INTO,        // Read into its end, and said what came.
    INTO_EIGHT,  // Likewise, eight bytes and their value.
    INTO_SILENT, // Likewise, not said: it is to fail.
};

// The meaning of an operation's numbers (LEN, OFF, ...).
struct operation {
    const char *name;
    enum ibv_wr_opcode opcode;
    enum memory memory;
    unsigned flags;
    int bad_key;   // The peer's key with some bits wrong.
    int immediate; // Which number is the immediate; 0: none.
    int window;    // By the key of the peer's window.
};

static const struct operation operations[] = {
    {"send", IBV_WR_SEND, FROM_SOURCE, 0, 0, 0, 0},
    {"send_se", IBV_WR_SEND, FROM_SOURCE, IBV_SEND_SOLICITED, 0, 0, 0},
    {"send_imm", IBV_WR_SEND_WITH_IMM, FROM_SOURCE, 0, 0, 1, 0},
    {"send_inv", IBV_WR_SEND_WITH_INV, FROM_SOURCE, 0, 0, 0, 0},
    {"write", IBV_WR_RDMA_WRITE, FROM_SOURCE, 0, 0, 0, 0},
    {"write_mw", IBV_WR_RDMA_WRITE, FROM_SOURCE, 0, 0, 0, 1},
    {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, FROM_SOURCE, 0, 0, 2, 0},
    {"read", IBV_WR_RDMA_READ, INTO, 0, 0, 0, 0},
    {"read_fence", IBV_WR_RDMA_READ, INTO, IBV_SEND_FENCE, 0, 0, 0},
    {"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, INTO_EIGHT, 0, 0, 0, 0},
    {"cas", IBV_WR_ATOMIC_CMP_AND_SWP, INTO_EIGHT, 0, 0, 0, 0},
    {"bad_atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, INTO_EIGHT, 0, 1, 0, 0},
    {"bad_rkey", IBV_WR_RDMA_WRITE, FROM_SOURCE, 0, 1, 0, 0},
    {"bad_rread", IBV_WR_RDMA_READ, INTO_SILENT, 0, 1, 0, 0},
    {"bad_raddr", IBV_WR_RDMA_WRITE, FROM_SOURCE, 0, 0, 0, 0},
};

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!strcmp(name, operations[i].name)) {
            return &operations[i];
        }
    }
    errno = EINVAL;
    DIE("unknown op %s", name);
}

static void fill_atomic(const struct operation *op, const uint64_t a[4], struct ibv_send_wr *w)
{
    w->sg_list->length = 8;
    w->num_sge = 1;
    w->wr.atomic.remote_addr = peer.addr + a[0];
    w->wr.atomic.rkey = peer.rkey ^ (op->bad_key ? 0x5a : 0);
    w->wr.atomic.compare_add = op->bad_key ? 1 : a[1];
    w->wr.atomic.swap = a[2];
}

static void fill_rdma(const struct operation *op, const uint64_t a[4], struct ibv_send_wr *w)
{
    w->wr.rdma.rkey = op->window ? peer.mw : peer.rkey ^ (op->bad_key ? 0x5a : 0);
    w->wr.rdma.remote_addr = peer.addr + (op->bad_key ? 0 : a[1]);
    if (!strcmp(op->name, "bad_raddr")) {
        w->wr.rdma.remote_addr = peer.addr + peer.len - a[0] / 2;
    }
}

static void fill_request(const struct operation *op, const uint64_t a[4], struct ibv_sge *s,
                         struct ibv_send_wr *w)
{
    uint8_t *at = buf + (op->memory == FROM_SOURCE ? MB : 2 * MB);
    *s = (struct ibv_sge){(uintptr_t)at, a[0], mr->lkey};
    *w = (struct ibv_send_wr){.sg_list = s,
                              .num_sge = a[0] ? 1 : 0,
                              .opcode = op->opcode,
                              .send_flags = IBV_SEND_SIGNALED | op->flags};
    if (op->memory == INTO_EIGHT) {
        fill_atomic(op, a, w);
    } else {
        fill_rdma(op, a, w);
    }
    if (op->immediate) {
        w->imm_data = htonl(a[op->immediate]);
    }
    if (op->opcode == IBV_WR_SEND_WITH_INV) {
        w->invalidate_rkey = peer.mw;
    }
    if (qpt == IBV_QPT_UD) {
        w->wr.ud.ah = ah;
        w->wr.ud.remote_qpn = peer.qpn;
        w->wr.ud.remote_qkey = 0x11111111;
    }
}

static void say_success(const struct operation *op, const char *what, uint64_t bytes, double since)
{
    uint8_t *into = buf + 2 * MB;
    printf("%s ok %.3f ms", what, (now() - since) * 1e3);
    if (op->memory == INTO) {
        printf(" fnv=%08x", fnv(into, bytes));
    }
    if (op->memory == INTO_EIGHT) {
        uint64_t v;
        memcpy(&v, into, 8);
        printf(" returned=0x%016lx", (unsigned long)v);
    }
    printf("\n");
}

// Posts n of them and waits for all.
static void run_request(const struct operation *op, const char *what, const uint64_t a[4], int n)
{
    struct ibv_sge s;
    struct ibv_send_wr w, *bad;
    fill_request(op, a, &s, &w);
    double t0 = now();
    int i, before = fails;
    for (i = 0; i < n; i++) {
        w.wr_id = i;
        int r = ibv_post_send(qp, &w, &bad);
        if (r) {
            printf("%s [%d]: post_send refused: %s\n", what, i, strerror(r));
            fails++;
            break;
        }
    }
    wait_send(i, what);
    if (fails == before) {
        say_success(op, what, a[0], t0);
    }
    fflush(stdout);
}

static void run_op(char *spec)
{
    char what[160];
    snprintf(what, sizeof what, "%s", spec);
    int n = 1;
    char *star = strchr(spec, '*');
    if (star) {
        n = atoi(spec);
        spec = star + 1;
    }
    char *name = strtok(spec, ":");
    uint64_t a[4] = {0};
    char *t;
    int k = 0;
    while ((t = strtok(NULL, ":")) && k < 4) {
        a[k++] = strtoull(t, NULL, 0);
    }
    if (strcmp(name, "sleep")) {
        run_request(find_operation(name), what, a, n);
        return;
    }
    double end = now() + a[0] / 1e3;
    while (now() < end) {
        drain_recv(1);
        usleep(1000);
    }
}

// -- Objects --------------------------------------------------------------------------------------

static void open_device(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count && !ctx; i++) {
        if (!option.device || !strcmp(option.device, ibv_get_device_name(list[i]))) {
            ctx = ibv_open_device(list[i]);
        }
    }
    if (!ctx) {
        DIE("no device");
    }
}

static void make_memory(void)
{
    int access = IBV_ACCESS_LOCAL_WRITE;
    if (qpt != IBV_QPT_UD) {
        access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                  (option.window ? IBV_ACCESS_MW_BIND : 0);
    }
    buf = aligned_alloc(4096, 3 * MB);
    rbuf = aligned_alloc(4096, ((size_t)nrecv * rsize + 4095) & ~4095ul);
    unsigned seed = option.listening ? 0x22 : 0x11;
    fill(buf, MB, seed);
    fill(buf + MB, MB, seed + 0x40);
    memset(buf + 2 * MB, 0, MB);
    pmr = ibv_reg_mr(pd, buf, MB, access);
    mr = ibv_reg_mr(pd, buf + MB, 2 * MB, IBV_ACCESS_LOCAL_WRITE);
    rmr = ibv_reg_mr(pd, rbuf, (size_t)nrecv * rsize, IBV_ACCESS_LOCAL_WRITE);
    if (!pmr || !mr || !rmr) {
        DIE("reg_mr");
    }
}

static void make_qp(void)
{
    struct ibv_qp_init_attr request = {
        .send_cq = scq, .recv_cq = rcq, .qp_type = qpt, .cap = {256, nrecv + 8, 2, 2, 0}};
    if (!(qp = ibv_create_qp(pd, &request))) {
        DIE("create_qp");
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = 0x11111111,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                          (qpt == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS))) {
        DIE("to INIT");
    }
    if (option.window) {
        if (!(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2))) {
            DIE("alloc_mw");
        }
        window_key = ibv_inc_rkey(mw->rkey);
    }
}

static void make_objects(void)
{
    open_device();
    pd = ibv_alloc_pd(ctx);
    scq = ibv_create_cq(ctx, 512, 0, 0, 0);
    rcq = ibv_create_cq(ctx, nrecv + 16, 0, 0, 0);
    make_memory();
    make_qp();
}

static void destroy_objects(void)
{
    if (ah) {
        ibv_destroy_ah(ah);
    }
    ibv_destroy_qp(qp);
    if (mw) {
        ibv_dealloc_mw(mw);
    }
    ibv_dereg_mr(pmr);
    ibv_dereg_mr(mr);
    ibv_dereg_mr(rmr);
}

// -- The peer -------------------------------------------------------------------------------------

static int wait_for_peer(void)
{
    int s = socket(AF_INET6, SOCK_STREAM, 0), one = 1, zero = 0;
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(option.port)};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(s, (void *)&sa, sizeof sa) || listen(s, 1)) {
        DIE("listen");
    }
    struct pollfd p = {s, POLLIN, 0};
    if (poll(&p, 1, 60000) < 1) {
        DIE("nobody connected in 60 s");
    }
    int fd = accept(s, 0, 0);
    close(s);
    return fd;
}

static int connect_to_peer(void)
{
    char service[16];
    sprintf(service, "%d", option.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *r;
    if (getaddrinfo(option.host, service, &hints, &r)) {
        DIE("address %s", option.host);
    }
    for (int i = 0; i < 50; i++) {
        int fd = socket(r->ai_family, SOCK_STREAM, 0);
        if (!connect(fd, r->ai_addr, r->ai_addrlen)) {
            return fd;
        }
        close(fd);
        usleep(200000);
    }
    return -1;
}

static void print_gid(char text[64])
{
    union ibv_gid gid;
    if (ibv_query_gid(ctx, 1, gidx, &gid)) {
        DIE("query_gid");
    }
    if (gid.raw[10] == 0xff && gid.raw[11] == 0xff && !gid.raw[0]) {
        sprintf(text, "::ffff:%d.%d.%d.%d", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
    } else {
        inet_ntop(AF_INET6, gid.raw, text, 64);
    }
}

static void describe_us(char *text, size_t bytes)
{
    char gid[64];
    print_gid(gid);
    const char *service = qpt == IBV_QPT_UD ? "UD" : qpt == IBV_QPT_UC ? "UC" : "RC";
    snprintf(text, bytes,
             "RXEOPS qp=%s qpn=0x%06x psn=0x%06lx gid=%s mtu=%d addr=0x%lx len=%u rkey=0x%08x "
             "mw=0x%08x\n",
             service, qp->qp_num, option.psn, gid, option.mtu, (unsigned long)(uintptr_t)buf, MB,
             pmr->rkey, window_key);
    printf("local  %s", text);
}

static void learn_peer(const char *text)
{
    char service[8], gid[64];
    printf("remote %s\n", text);
    fflush(stdout);
    if (sscanf(text, "RXEOPS qp=%7s qpn=%i psn=%i gid=%63s mtu=%i addr=%lx len=%lu rkey=%x mw=%x",
               service, (int *)&peer.qpn, (int *)&peer.psn, gid, (int *)&peer.mtu,
               (unsigned long *)&peer.addr, (unsigned long *)&peer.len, &peer.rkey, &peer.mw) < 8 ||
        inet_pton(AF_INET6, gid, peer.gid.raw) != 1) {
        DIE("bad handshake");
    }
    if ((int)peer.mtu < option.mtu) {
        option.mtu = peer.mtu;
    }
}

// The listener speaks first.
static void shake_hands(int fd)
{
    char ours[512], theirs[512];
    describe_us(ours, sizeof ours);
    if (!option.listening && line(fd, theirs, sizeof theirs, 0) < 1) {
        DIE("no handshake");
    }
    if (write(fd, ours, strlen(ours)) < 0) {
        DIE("write");
    }
    if (option.listening && line(fd, theirs, sizeof theirs, 0) < 1) {
        DIE("no handshake");
    }
    learn_peer(theirs);
}

// -- The connection -------------------------------------------------------------------------------

static void to_rtr(const struct ibv_ah_attr *way)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask = IBV_QP_STATE;
    if (qpt != IBV_QPT_UD) {
        attr.path_mtu = mtucode(option.mtu);
        attr.dest_qp_num = peer.qpn;
        attr.rq_psn = peer.psn;
        attr.ah_attr = *way;
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qpt == IBV_QPT_RC) {
        attr.max_dest_rd_atomic = option.reads;
        attr.min_rnr_timer = option.rnr_timer;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    if (ibv_modify_qp(qp, &attr, mask)) {
        DIE("to RTR");
    }
}

static void to_rts(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = option.psn};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qpt == IBV_QPT_RC) {
        attr.timeout = option.timeout;
        attr.retry_cnt = option.retry_cnt;
        attr.rnr_retry = option.rnr_retry;
        attr.max_rd_atomic = option.reads;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    if (ibv_modify_qp(qp, &attr, mask)) {
        DIE("to RTS");
    }
}

// Binds the window over the public region.
static void bind_window(void)
{
    const struct ibv_mw_bind_info info = {.mr = pmr,
                                          .addr = (uintptr_t)buf,
                                          .length = MB,
                                          .mw_access_flags =
                                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    struct ibv_send_wr w = {.opcode = IBV_WR_BIND_MW,
                            .send_flags = IBV_SEND_SIGNALED,
                            .bind_mw = {.mw = mw, .rkey = window_key, .bind_info = info}},
                       *bad;
    int r = ibv_post_send(qp, &w, &bad);
    if (r) {
        printf("bind_mw refused: %s\n", strerror(r));
    } else {
        wait_send(1, "bind_mw");
    }
}

static void connect_qp(void)
{
    struct ibv_ah_attr way = {.is_global = 1,
                              .port_num = 1,
                              .grh = {.dgid = peer.gid, .sgid_index = gidx, .hop_limit = 64}};
    to_rtr(&way);
    to_rts();
    if (qpt == IBV_QPT_UD && !(ah = ibv_create_ah(pd, &way))) {
        DIE("create_ah");
    }
    if (option.window) {
        bind_window();
    }
}

static void post_receives(void)
{
    for (int i = 0; i < nrecv; i++) {
        post_recv(i);
    }
}

// -- The program ----------------------------------------------------------------------------------

static int take_option(int letter, const char *value)
{
    switch (letter) {
    case 'l': option.listening = 1; return 1;
    case 'c': option.host = value; return 1;
    case 'd': option.device = value; return 1;
    case 'g': gidx = atoi(value); return 1;
    case 'm': option.mtu = atoi(value); return 1;
    case 'P': option.port = atoi(value); return 1;
    case 'q':
        qpt = !strcmp(value, "UD") ? IBV_QPT_UD : !strcmp(value, "UC") ? IBV_QPT_UC : IBV_QPT_RC;
        return 1;
    case 's': option.psn = strtol(value, 0, 0); return 1;
    case 'r': nrecv = atoi(value); return 1;
    case 'z': rsize = atoi(value); return 1;
    case 'D': option.receive_delay_ms = atoi(value); return 1;
    case 'R': option.rnr_timer = atoi(value); return 1;
    case 'N': option.rnr_retry = atoi(value); return 1;
    case 't': option.timeout = atoi(value); return 1;
    case 'y': option.retry_cnt = atoi(value); return 1;
    case 'a': option.reads = atoi(value); return 1;
    case 'M': option.window = 1; return 1;
    case 'w': option.wait_s = atoi(value); return 1;
    default: return 0;
    }
}

static int parse(int argc, char **argv)
{
    int letter;
    while ((letter = getopt(argc, argv, "+lc:d:g:q:m:P:s:r:z:D:R:N:t:y:a:Mw:")) != -1) {
        if (!take_option(letter, optarg)) {
            return 0;
        }
    }
    if (option.listening == !!option.host) {
        fprintf(stderr, "rxe_ops: one of -l and -c HOST\n");
        return 0;
    }
    if (option.psn < 0) {
        option.psn = option.listening ? 0x100000 : 0x200000;
    }
    return 1;
}

// Both are ready, each does what it was told, and waits for the other.
static void run_ops(int fd, char **ops)
{
    char in[512];
    if (!option.receive_delay_ms) {
        post_receives();
    }
    if (write(fd, "READY\n", 6) < 0 || line(fd, in, sizeof in, now() + 60) < 1) {
        DIE("peer not ready");
    }
    uint32_t before = fnv(buf, MB);
    if (option.receive_delay_ms) {
        usleep(option.receive_delay_ms * 1000);
        post_receives();
    }
    while (*ops) {
        run_op(*ops++);
    }
    if (write(fd, "DONE\n", 5) < 0) {
        perror("write");
    }
    double end = now() + option.wait_s;
    while (line(fd, in, sizeof in, end) == 1 && strcmp(in, "DONE")) {
    }
    usleep(100000);
    drain_recv(0);
    uint32_t after = fnv(buf, MB);
    printf("public region fnv %08x%s\n", after, after == before ? " (unchanged)" : " (changed)");
}

static void say_end(void)
{
    struct ibv_qp_init_attr request;
    struct ibv_qp_attr attr;
    if (!ibv_query_qp(qp, &attr, IBV_QP_STATE, &request)) {
        printf("qp state %d (3 RTS, 6 ERR)\n", attr.qp_state);
    }
    if (flushed) {
        printf("recv flushed %d\n", flushed);
    }
    printf("failures %d\n", fails);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        return 2;
    }
    make_objects();
    int fd = option.listening ? wait_for_peer() : connect_to_peer();
    if (fd < 0) {
        DIE("connect");
    }
    shake_hands(fd);
    connect_qp();
    run_ops(fd, argv + optind);
    say_end();
    close(fd);
    destroy_objects();
    return fails ? 1 : 0;
}
