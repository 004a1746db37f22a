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
static struct {
    unsigned qpn, psn, rkey, mw, mtu;
    uint64_t addr, len;
    union ibv_gid gid;
} peer;

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
    while ((t = strtok(NULL, ":")) && k < 4)
        a[k++] = strtoull(t, NULL, 0);
    if (!strcmp(name, "sleep")) {
        double e = now() + a[0] / 1e3;
        while (now() < e) {
            drain_recv(1);
            usleep(1000);
        }
        return;
    }
    uint8_t *src = buf + MB, *dst = buf + 2 * MB;
    int isread = 0;
    struct ibv_sge s = {(uintptr_t)src, a[0], mr->lkey};
    struct ibv_send_wr w = {.sg_list = &s,
                            .num_sge = a[0] ? 1 : 0,
                            .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    w.wr.rdma.remote_addr = peer.addr + a[1];
    w.wr.rdma.rkey = peer.rkey;
    if (!strcmp(name, "send"))
        w.opcode = IBV_WR_SEND;
    else if (!strcmp(name, "send_se")) {
        w.opcode = IBV_WR_SEND;
        w.send_flags |= IBV_SEND_SOLICITED;
    } else if (!strcmp(name, "send_imm")) {
        w.opcode = IBV_WR_SEND_WITH_IMM;
        w.imm_data = htonl(a[1]);
    } else if (!strcmp(name, "send_inv")) {
        w.opcode = IBV_WR_SEND_WITH_INV;
        w.invalidate_rkey = peer.mw;
    } else if (!strcmp(name, "write"))
        w.opcode = IBV_WR_RDMA_WRITE;
    else if (!strcmp(name, "write_mw")) {
        w.opcode = IBV_WR_RDMA_WRITE;
        w.wr.rdma.rkey = peer.mw;
    } else if (!strcmp(name, "write_imm")) {
        w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        w.imm_data = htonl(a[2]);
    } else if (!strcmp(name, "read") || !strcmp(name, "read_fence")) {
        w.opcode = IBV_WR_RDMA_READ;
        s.addr = (uintptr_t)dst;
        isread = 1;
        if (name[4])
            w.send_flags |= IBV_SEND_FENCE;
    } else if (!strcmp(name, "fadd") || !strcmp(name, "cas") || !strcmp(name, "bad_atomic")) {
        s.addr = (uintptr_t)dst;
        s.length = 8;
        w.num_sge = 1;
        isread = 2;
        w.opcode = name[0] == 'c' ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
        w.wr.atomic.remote_addr = peer.addr + a[0];
        w.wr.atomic.rkey = peer.rkey ^ (name[0] == 'b' ? 0x5a : 0);
        w.wr.atomic.compare_add = name[0] == 'b' ? 1 : a[1];
        w.wr.atomic.swap = a[2];
    } else if (!strcmp(name, "bad_rkey")) {
        w.opcode = IBV_WR_RDMA_WRITE;
        w.wr.rdma.remote_addr = peer.addr;
        w.wr.rdma.rkey = peer.rkey ^ 0x5a;
    } else if (!strcmp(name, "bad_rread")) {
        w.opcode = IBV_WR_RDMA_READ;
        w.wr.rdma.remote_addr = peer.addr;
        w.wr.rdma.rkey = peer.rkey ^ 0x5a;
        s.addr = (uintptr_t)dst;
    } else if (!strcmp(name, "bad_raddr")) {
        w.opcode = IBV_WR_RDMA_WRITE;
        w.wr.rdma.remote_addr = peer.addr + peer.len - a[0] / 2;
    } else {
        errno = EINVAL;
        DIE("unknown op %s", name);
    }
    if (qpt == IBV_QPT_UD) {
        w.wr.ud.ah = ah;
        w.wr.ud.remote_qpn = peer.qpn;
        w.wr.ud.remote_qkey = 0x11111111;
    }
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
        printf("%s ok %.3f ms", what, (now() - t0) * 1e3);
        if (isread == 1)
            printf(" fnv=%08x", fnv(dst, a[0]));
        if (isread == 2) {
            uint64_t v;
            memcpy(&v, dst, 8);
            printf(" returned=0x%016lx", (unsigned long)v);
        }
        printf("\n");
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int o, listening = 0, mtu = 1024, port = 18515, rdelay = 0, rnrt = 12, rnrr = 7, tmo = 14,
           rtry = 7, rd = 16, usemw = 0, waits = 20;
    long psn = -1;
    const char *host = NULL, *dev = NULL;
    while ((o = getopt(argc, argv, "+lc:d:g:q:m:P:s:r:z:D:R:N:t:y:a:Mw:")) != -1)
        switch (o) {
        case 'l': listening = 1; break;
        case 'c': host = optarg; break;
        case 'd': dev = optarg; break;
        case 'g': gidx = atoi(optarg); break;
        case 'm': mtu = atoi(optarg); break;
        case 'P': port = atoi(optarg); break;
        case 'q':
            qpt = !strcmp(optarg, "UD")   ? IBV_QPT_UD
                  : !strcmp(optarg, "UC") ? IBV_QPT_UC
                                          : IBV_QPT_RC;
            break;
        case 's': psn = strtol(optarg, 0, 0); break;
        case 'r': nrecv = atoi(optarg); break;
        case 'z': rsize = atoi(optarg); break;
        case 'D': rdelay = atoi(optarg); break;
        case 'R': rnrt = atoi(optarg); break;
        case 'N': rnrr = atoi(optarg); break;
        case 't': tmo = atoi(optarg); break;
        case 'y': rtry = atoi(optarg); break;
        case 'a': rd = atoi(optarg); break;
        case 'M': usemw = 1; break;
        case 'w': waits = atoi(optarg); break;
        default: return 2;
        }
    if (listening == !!host) {
        fprintf(stderr, "rxe_ops: one of -l and -c HOST\n");
        return 2;
    }
    if (psn < 0)
        psn = listening ? 0x100000 : 0x200000;
    int nd;
    struct ibv_device **l = ibv_get_device_list(&nd), *d = NULL;
    for (int i = 0; l && i < nd; i++)
        if (!dev || !strcmp(dev, ibv_get_device_name(l[i]))) {
            d = l[i];
            break;
        }
    if (!d || !(ctx = ibv_open_device(d)))
        DIE("no device");
    pd = ibv_alloc_pd(ctx);
    scq = ibv_create_cq(ctx, 512, 0, 0, 0);
    rcq = ibv_create_cq(ctx, nrecv + 16, 0, 0, 0);
    int acc = qpt == IBV_QPT_UD
                  ? IBV_ACCESS_LOCAL_WRITE
                  : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | (usemw ? IBV_ACCESS_MW_BIND : 0);
    buf = aligned_alloc(4096, 3 * MB);
    rbuf = aligned_alloc(4096, ((size_t)nrecv * rsize + 4095) & ~4095ul);
    unsigned seed = listening ? 0x22 : 0x11;
    fill(buf, MB, seed);
    fill(buf + MB, MB, seed + 0x40);
    memset(buf + 2 * MB, 0, MB);
    pmr = ibv_reg_mr(pd, buf, MB, acc);
    mr = ibv_reg_mr(pd, buf + MB, 2 * MB, IBV_ACCESS_LOCAL_WRITE);
    rmr = ibv_reg_mr(pd, rbuf, (size_t)nrecv * rsize, IBV_ACCESS_LOCAL_WRITE);
    if (!pmr || !mr || !rmr)
        DIE("reg_mr");
    struct ibv_qp_init_attr qi = {
        .send_cq = scq, .recv_cq = rcq, .qp_type = qpt, .cap = {256, nrecv + 8, 2, 2, 0}};
    if (!(qp = ibv_create_qp(pd, &qi)))
        DIE("create_qp");
    struct ibv_qp_attr A = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qkey = 0x11111111,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                               IBV_ACCESS_REMOTE_ATOMIC};
    if (ibv_modify_qp(qp, &A,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                          (qpt == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
        DIE("to INIT");
    unsigned mwkey = 0;
    if (usemw) {
        if (!(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2)))
            DIE("alloc_mw");
        mwkey = ibv_inc_rkey(mw->rkey);
    }
    union ibv_gid gid;
    if (ibv_query_gid(ctx, 1, gidx, &gid))
        DIE("query_gid");
    char gt[64], lb[512], pq[8], pg[64];
    if (gid.raw[10] == 0xff && gid.raw[11] == 0xff && !gid.raw[0])
        sprintf(gt, "::ffff:%d.%d.%d.%d", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
    else
        inet_ntop(AF_INET6, gid.raw, gt, sizeof gt);

    int fd = -1;
    if (listening) {
        int s = socket(AF_INET6, SOCK_STREAM, 0), one = 1, zero = 0;
        struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
        if (bind(s, (void *)&sa, sizeof sa) || listen(s, 1))
            DIE("listen");
        struct pollfd p = {s, POLLIN, 0};
        if (poll(&p, 1, 60000) < 1)
            DIE("nobody connected in 60 s");
        fd = accept(s, 0, 0);
        close(s);
    } else {
        char ps[16];
        sprintf(ps, "%d", port);
        struct addrinfo h = {.ai_socktype = SOCK_STREAM}, *r;
        if (getaddrinfo(host, ps, &h, &r))
            DIE("address %s", host);
        for (int i = 0; i < 50; i++) {
            fd = socket(r->ai_family, SOCK_STREAM, 0);
            if (!connect(fd, r->ai_addr, r->ai_addrlen))
                break;
            close(fd);
            fd = -1;
            usleep(200000);
        }
    }
    if (fd < 0)
        DIE("connect");
    snprintf(lb, sizeof lb,
             "RXEOPS qp=%s qpn=0x%06x psn=0x%06lx gid=%s mtu=%d addr=0x%lx len=%u rkey=0x%08x "
             "mw=0x%08x\n",
             qpt == IBV_QPT_UD   ? "UD"
             : qpt == IBV_QPT_UC ? "UC"
                                 : "RC",
             qp->qp_num, psn, gt, mtu, (unsigned long)(uintptr_t)buf, MB, pmr->rkey, mwkey);
    printf("local  %s", lb);
    char in[512];
    if (!listening && line(fd, in, sizeof in, 0) < 1)
        DIE("no handshake");
    if (write(fd, lb, strlen(lb)) < 0)
        DIE("write");
    if (listening && line(fd, in, sizeof in, 0) < 1)
        DIE("no handshake");
    printf("remote %s\n", in);
    fflush(stdout);
    if (sscanf(in, "RXEOPS qp=%7s qpn=%i psn=%i gid=%63s mtu=%i addr=%lx len=%lu rkey=%x mw=%x", pq,
               (int *)&peer.qpn, (int *)&peer.psn, pg, (int *)&peer.mtu,
               (unsigned long *)&peer.addr, (unsigned long *)&peer.len, &peer.rkey, &peer.mw) < 8 ||
        inet_pton(AF_INET6, pg, peer.gid.raw) != 1)
        DIE("bad handshake");
    if ((int)peer.mtu < mtu)
        mtu = peer.mtu;
    struct ibv_ah_attr av = {.is_global = 1,
                             .port_num = 1,
                             .grh = {.dgid = peer.gid, .sgid_index = gidx, .hop_limit = 64}};
    memset(&A, 0, sizeof A);
    A.qp_state = IBV_QPS_RTR;
    int mask = IBV_QP_STATE;
    if (qpt != IBV_QPT_UD) {
        A.path_mtu = mtucode(mtu);
        A.dest_qp_num = peer.qpn;
        A.rq_psn = peer.psn;
        A.ah_attr = av;
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qpt == IBV_QPT_RC) {
        A.max_dest_rd_atomic = rd;
        A.min_rnr_timer = rnrt;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    if (ibv_modify_qp(qp, &A, mask))
        DIE("to RTR");
    memset(&A, 0, sizeof A);
    A.qp_state = IBV_QPS_RTS;
    A.sq_psn = psn;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qpt == IBV_QPT_RC) {
        A.timeout = tmo;
        A.retry_cnt = rtry;
        A.rnr_retry = rnrr;
        A.max_rd_atomic = rd;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    if (ibv_modify_qp(qp, &A, mask))
        DIE("to RTS");
    if (qpt == IBV_QPT_UD && !(ah = ibv_create_ah(pd, &av)))
        DIE("create_ah");
    if (usemw) { // bind over the public region
        struct ibv_send_wr w = {.opcode = IBV_WR_BIND_MW,
                                .send_flags = IBV_SEND_SIGNALED,
                                .bind_mw = {.mw = mw,
                                            .rkey = mwkey,
                                            .bind_info = {.mr = pmr,
                                                          .addr = (uintptr_t)buf,
                                                          .length = MB,
                                                          .mw_access_flags =
                                                              IBV_ACCESS_REMOTE_WRITE |
                                                              IBV_ACCESS_REMOTE_READ}}},
                           *bad;
        int r = ibv_post_send(qp, &w, &bad);
        if (r)
            printf("bind_mw refused: %s\n", strerror(r));
        else
            wait_send(1, "bind_mw");
    }
    if (!rdelay)
        for (int i = 0; i < nrecv; i++)
            post_recv(i);
    if (write(fd, "READY\n", 6) < 0 || line(fd, in, sizeof in, now() + 60) < 1)
        DIE("peer not ready");
    uint32_t h0 = fnv(buf, MB);
    if (rdelay) {
        usleep(rdelay * 1000);
        for (int i = 0; i < nrecv; i++)
            post_recv(i);
    }
    for (int i = optind; i < argc; i++)
        run_op(argv[i]);
    if (write(fd, "DONE\n", 5) < 0)
        perror("write");
    int r;
    double end = now() + waits;
    while ((r = line(fd, in, sizeof in, end)) == 1 && strcmp(in, "DONE"))
        ;
    usleep(100000);
    drain_recv(0);
    uint32_t h1 = fnv(buf, MB);
    printf("public region fnv %08x%s\n", h1, h1 == h0 ? " (unchanged)" : " (changed)");
    struct ibv_qp_init_attr qi2;
    struct ibv_qp_attr qa;
    if (!ibv_query_qp(qp, &qa, IBV_QP_STATE, &qi2))
        printf("qp state %d (3 RTS, 6 ERR)\n", qa.qp_state);
    if (flushed)
        printf("recv flushed %d\n", flushed);
    printf("failures %d\n", fails);
    fflush(stdout);
    close(fd);
    if (ah)
        ibv_destroy_ah(ah);
    ibv_destroy_qp(qp);
    if (mw)
        ibv_dealloc_mw(mw);
    ibv_dereg_mr(pmr);
    ibv_dereg_mr(mr);
    ibv_dereg_mr(rmr);
    return fails ? 1 : 0;
}
