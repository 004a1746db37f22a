/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A local peer may reach by itself the memory that packets may reach, as far as the board
 *         has it, and no other; an entry that was taken off a board is not there any more.
 * Method  Random queue pairs, keys and accesses. Each is judged by the engine, whose verdict shows
 *         in its counters and moves; by the board that has them; and by the model of
 *         tests/reach_model.h. Then entries change while a peer copies them: its copy stops at the
 *         end of a page that is out of reach until then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/local_socket.h"
#include "nic/nic.h"
#include "tests/reach_model.h"

enum {
    MTU = 1024,
    PEER_NUMBER = SHM_BOARD_QPS, /* With seed 3, that of the queue pair itself. */
    PEER = 1,                    /* The last byte of its GID. */
    SEEDS = 20000,
};

#define REMOTE (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE)

struct bench {
    struct shm_port port;
    struct prng prng;
    struct nic *nic;
    struct cq cq;
    struct xrcd xrcd;
    struct completion ring[4];
    struct pd pds[2];
    struct region region, window;
    struct qp *qp;
    void *qp_memory;
    uint32_t key; /* The key by which the peer asks. */
    struct modelled_qp qp_model;
    struct modelled_key key_model;
    struct region_request region_model; /* The region behind a window. */
};

static struct gid gid_of(uint8_t last)
{
    return (struct gid){{0xfd, [15] = last}};
}

static void *zeroed(size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    return memset(aligned_alloc(64, bytes), 0, bytes);
}

static int draw(struct bench *bench, int bound)
{
    return (int)prng_below(&bench->prng, (uint64_t)bound);
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

/* One step on the way from RESET to SQD, with the attributes that it takes. */
static uint32_t step_mask(enum qp_type type, enum qp_state to)
{
    const uint32_t connected = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
    const bool responds = type == QP_RC || type == QP_XRC_TARGET;
    const bool requests = type == QP_RC || type == QP_XRC_INITIATOR;
    if (to == QP_INIT) {
        return QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
               (type == QP_UD ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS);
    }
    if (to == QP_RTR) {
        return type == QP_UD ? 0
               : responds    ? connected | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER
                             : connected;
    }
    if (to == QP_RTS) {
        return requests ? QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                              QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_SQ_PSN
                        : QP_ATTR_SQ_PSN | (type == QP_XRC_TARGET ? QP_ATTR_TIMEOUT : 0);
    }
    return 0;
}

static void modify(struct bench *bench, enum qp_state to)
{
    const struct modelled_qp *model = &bench->qp_model;
    const struct qp_attributes attributes = {
        .state = (uint8_t)to,
        .port = 1,
        .access = (uint16_t)model->access,
        .path_mtu = PATH_MTU_1024,
        .av = {.destination = gid_of(model->peer)},
        .destination_qpn = model->peer_number,
        .max_reads_in = (uint8_t)model->reads,
    };
    assert_int_equal(qp_modify(bench->qp, &attributes, step_mask(model->type, to) | QP_ATTR_STATE,
                               (struct instant){1000}),
                     STATUS_OK);
}

/* The queue pair of the model. */
static void make_qp(struct bench *bench)
{
    const struct modelled_qp *model = &bench->qp_model;
    const bool target = model->type == QP_XRC_TARGET;
    struct qp_request request = {.type = model->type, .capacity = {1, 1, 1, 1, 0}};
    if (target) {
        request.xrcd = &bench->xrcd;
        request.capacity.sends = request.capacity.send_sges = 0;
        request.capacity.receives = request.capacity.receive_sges = 0;
    } else {
        request.pd = &bench->pds[model->domain];
        request.send_cq = &bench->cq;
        request.receive_cq = model->type == QP_XRC_INITIATOR ? NULL : &bench->cq;
    }
    if (model->type == QP_XRC_INITIATOR) {
        request.capacity.receives = request.capacity.receive_sges = 0;
    }
    bench->qp_memory = zeroed(qp_bytes(request.type, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, bench->qp_memory, &bench->qp), STATUS_OK);
    for (enum qp_state to = QP_INIT; to <= QP_SQD && to <= model->state; to++) {
        modify(bench, to);
    }
    if (model->state == QP_ERR) {
        modify(bench, QP_ERR);
    }
}

static struct modelled_qp random_qp(struct bench *bench)
{
    static const enum qp_type types[] = {QP_UC, QP_UD, QP_XRC_INITIATOR, QP_XRC_TARGET};
    static const enum qp_state states[] = {QP_RESET, QP_INIT, QP_SQD, QP_ERR};
    struct modelled_qp qp = {
        .type = draw(bench, 6) == 0 ? types[draw(bench, COUNT_OF(types))] : QP_RC,
        .state = draw(bench, 6) == 0 ? states[draw(bench, COUNT_OF(states))]
                                     : QP_RTR + (enum qp_state)draw(bench, 2),
        .access = draw(bench, 3) == 0 ? (uint32_t)draw(bench, 16) : 0xf,
        .reads = draw(bench, 6) != 0,
        .domain = draw(bench, 2),
        .peer = PEER,
        .peer_number = PEER_NUMBER,
        .mtu_bytes = MTU,
    };
    return qp;
}

/* -- Keys ---------------------------------------------------------------------------------------*/

static uint64_t random_address(struct bench *bench)
{
    static const uint64_t places[] = {0, 0x1000, 1ull << 63, UINT64_MAX - 400};
    return places[draw(bench, COUNT_OF(places))] + (uint64_t)draw(bench, 64);
}

static struct region_request random_request(struct bench *bench)
{
    const uint32_t rest = (uint32_t)draw(bench, 0x80);
    struct region_request request = {
        .address = random_address(bench),
        .bytes = (uint64_t)draw(bench, 100),
        .access = draw(bench, 3) == 0 ? rest : REMOTE | (rest & ACCESS_ZERO_BASED),
        .whole_space = draw(bench, 20) == 0,
    };
    request.access |= ACCESS_LOCAL_WRITE | ACCESS_MW_BIND;
    request.start = draw(bench, 2) == 0 ? request.address : random_address(bench);
    if (draw(bench, 8) == 0) {
        const uint64_t most = request.address > request.start ? request.address : request.start;
        request.bytes = UINT64_MAX - most;
    }
    return request;
}

/* Binds a window of the queue pair itself, or of another one. */
static void bind_window(struct bench *bench, struct region_table *table, enum region_kind kind)
{
    static const char other;
    struct modelled_key *model = &bench->key_model;
    const struct region_request *opened = &bench->region_model;
    const int owner = draw(bench, 4) == 0;
    struct window_bind bind = {.window = &bench->window,
                               .region = &bench->region,
                               .address = (uint64_t)model_start(opened),
                               .bytes = 1 + (uint64_t)draw(bench, 24),
                               .access = 2u << draw(bench, 3)};
    assert_int_equal(window_add(table, &bench->pds[model->domain], kind, &bench->window),
                     STATUS_OK);
    bind.key = bench->window.key;
    *model = (struct modelled_key){.live = true, .kind = kind, .domain = model->domain};
    model->owner = NONE;
    const struct qp *qp = owner ? (const struct qp *)(const void *)&other : bench->qp;
    if (window_bind_execute(table, &bind, qp, &bench->pds[model->domain])) {
        model->owner = kind == REGION_WINDOW_TYPE_2 ? owner : NONE;
        model->region = opened;
        model->asked = (struct region_request){
            .address = bind.address, .bytes = bind.bytes, .access = bind.access};
    }
    bench->key = bench->window.key;
}

static void make_key(struct bench *bench)
{
    struct region_table *table = nic_regions(bench->nic);
    const int domain = draw(bench, 5) == 0 ? !bench->qp_model.domain : bench->qp_model.domain;
    bench->region_model = random_request(bench);
    bench->key_model = (struct modelled_key){
        .live = true, .domain = domain, .owner = NONE, .asked = bench->region_model};
    if (bench->region_model.whole_space) {
        bench->region_model.access |= ACCESS_ON_DEMAND;
    }
    assert_int_equal(region_add(table, &bench->pds[domain], &bench->region_model, &bench->region),
                     STATUS_OK);
    bench->key = bench->region.key;
    if (draw(bench, 5) == 0) {
        bind_window(bench, table, REGION_WINDOW_TYPE_1 + (enum region_kind)draw(bench, 2));
    }
    if (draw(bench, 10) == 0) {
        bench->key = draw(bench, 3) == 0 ? 0 : bench->key ^ 1u << draw(bench, 32);
        bench->key_model.live = false;
    }
}

/* -- Accesses -----------------------------------------------------------------------------------*/

static struct modelled_access random_access(struct bench *bench)
{
    const struct region_request *asked = &bench->key_model.asked;
    const uint64_t start =
        bench->key_model.kind == REGION_MEMORY ? (uint64_t)model_start(asked) : asked->address;
    struct modelled_access access = {
        .address = start,
        .bytes = (uint32_t)draw(bench, 12),
        .rights = draw(bench, 2) ? ACCESS_REMOTE_READ : ACCESS_REMOTE_WRITE,
        .source = draw(bench, 10) == 0 ? PEER + 1 : PEER,
        .source_number = draw(bench, 10) == 0 ? PEER_NUMBER + 1 : PEER_NUMBER,
        .source_mtu_bytes = draw(bench, 3) == 0 ? 256u << draw(bench, 5) : MTU,
        .source_reads = draw(bench, 8) == 0 ? 2 : 1,
    };
    if (draw(bench, 2)) {
        access.address += (uint64_t)draw(bench, 12) - 4 + (draw(bench, 2) ? asked->bytes : 0);
    } else if (asked->bytes > 0) {
        access.address += prng_below(&bench->prng, asked->bytes);
    }
    if (draw(bench, 8) == 0) {
        access.bytes = draw(bench, 2) ? 2 * MTU + access.bytes : (1u << 31) - access.bytes;
    }
    return access;
}

/* The verdict of a judge. */
struct answer {
    enum reach_verdict verdict;
    uint64_t memory; /* Set if allowed, and not for 0 bytes. */
};

/* -- The engine's answer ------------------------------------------------------------------------*/

static const struct {
    enum nic_counter counter;
    enum reach_verdict verdict;
} reasons[] = {
    {COUNTER_drop_wrong_service, REACH_WRONG_SERVICE},
    {COUNTER_drop_wrong_state, REACH_WRONG_STATE},
    {COUNTER_drop_wrong_peer, REACH_WRONG_PEER},
    {COUNTER_nak_invalid_opcode, REACH_NO_RIGHT},
    {COUNTER_nak_no_resources, REACH_NO_RIGHT},
    {COUNTER_nak_invalid_length, REACH_OTHER_MTU},
    {COUNTER_nak_unknown_key, REACH_UNKNOWN_KEY},
    {COUNTER_nak_wrong_domain, REACH_WRONG_DOMAIN},
    {COUNTER_nak_out_of_bounds, REACH_OUT_OF_BOUNDS},
    {COUNTER_nak_forbidden, REACH_FORBIDDEN},
};

static enum reach_verdict reason_of(struct bench *bench)
{
    enum reach_verdict verdict = REACH_ALLOWED;
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (nic_counters(bench->nic)->values[reasons[i].counter] != 0) {
            assert_int_equal(verdict, REACH_ALLOWED); /* There is only one reason. */
            verdict = reasons[i].verdict;
        }
    }
    return verdict;
}

static uint64_t memory_read(struct bench *bench)
{
    struct nic_departure departure;
    assert_true(nic_next_packet(bench->nic, bench->qp, (struct instant){1000}, &departure));
    return departure.segment_count == 0 ? 0 : departure.segments[0].address;
}

/* Makes a packet of the peer, which the NIC judges. */
static struct answer ask_engine(struct bench *bench, const struct modelled_access *access)
{
    const bool read = access->rights == ACCESS_REMOTE_READ;
    const bool only = access->bytes <= access->source_mtu_bytes;
    const uint32_t bytes = read ? 0 : only ? access->bytes : access->source_mtu_bytes;
    const struct roce_packet packet = {
        .opcode = read   ? ROCE_READ_REQUEST
                  : only ? ROCE_WRITE_ONLY
                         : ROCE_WRITE_FIRST,
        .pkey = ROCE_DEFAULT_PKEY,
        .pad_bytes = roce_pad_bytes(bytes),
        .destination_qpn = qp_number(bench->qp),
        .reth = {.address = access->address, .key = bench->key, .bytes = access->bytes},
    };
    static const uint8_t payload[4096];
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {
        .headers = headers,
        .payload = payload,
        .headers_bytes = (uint32_t)roce_encode_headers(&packet, headers),
        .payload_bytes = bytes + packet.pad_bytes,
        .source = gid_of(access->source),
    };
    struct nic_move move;
    struct answer answer = {0};
    const bool moves =
        nic_on_packet(bench->nic, &frame, (struct instant){1000}, &move) == NIC_MOVES;
    answer.verdict = reason_of(bench);
    assert_int_equal(moves, answer.verdict == REACH_ALLOWED && !read);
    if (answer.verdict == REACH_ALLOWED && access->bytes != 0) {
        answer.memory = read ? memory_read(bench) : move.segments[0].address;
    }
    return answer;
}

/* Packets do not say which queue pair they come from; those of XRC name a shared queue as well.
 * Only the requester knows of a READ's responses and of further READs. */
static bool engine_can_tell(const struct bench *bench, const struct modelled_access *access)
{
    const enum qp_type type = bench->qp_model.type;
    if (access->rights == ACCESS_REMOTE_READ &&
        (access->source_reads > 1 ||
         !model_cuts_alike(access->bytes, MTU, access->source_mtu_bytes))) {
        return false;
    }
    return access->source_number == bench->qp_model.peer_number && type != QP_XRC_TARGET &&
           type != QP_UC;
}

/* -- The board's answer -------------------------------------------------------------------------*/

static struct answer ask_board(struct bench *bench, const struct modelled_access *access)
{
    const struct shm_reach reach = {
        .number = qp_number(bench->qp),
        .key = bench->key,
        .source = {gid_of(access->source),
                   access->source_number,
                   {access->source_mtu_bytes, access->source_reads}},
        .access = {access->address, access->bytes, access->rights, access->bytes},
    };
    struct shm_grant grant;
    const enum reach_verdict verdict = shm_board_judge(bench->port.board, &reach, &grant);
    const bool somewhere = verdict == REACH_ALLOWED && access->bytes != 0;
    return (struct answer){verdict, somewhere ? grant.memory : 0};
}

static void publish(struct bench *bench)
{
    shm_port_publish_qp(&bench->port, bench->qp);
    shm_port_publish_region(&bench->port, &bench->region);
    if (bench->key_model.kind != REGION_MEMORY) {
        shm_port_publish_region(&bench->port, &bench->window);
    }
}

/* -- The model's answers ------------------------------------------------------------------------*/

static struct answer expected_of_engine(const struct bench *bench,
                                        const struct modelled_access *access)
{
    struct segment segment = {0};
    const enum reach_verdict verdict =
        model_judge(&bench->qp_model, &bench->key_model, access, &segment);
    return (struct answer){verdict, verdict == REACH_ALLOWED ? segment.address : 0};
}

/* A queue pair or key that cannot be reached directly is not on the board. */
static struct answer expected_of_board(const struct bench *bench,
                                       const struct modelled_access *access)
{
    struct segment segment = {0};
    struct modelled_key key = bench->key_model;
    if (!model_qp_is_direct(&bench->qp_model)) {
        return (struct answer){REACH_UNKNOWN_QP, 0};
    }
    key.live = model_key_is_direct(&key);
    const enum reach_verdict verdict = model_judge(&bench->qp_model, &key, access, &segment);
    return (struct answer){verdict, verdict == REACH_ALLOWED ? segment.address : 0};
}

/* -- Both users of the rule ---------------------------------------------------------------------*/

static void begin(struct bench *bench, uint64_t seed)
{
    static const struct nic_limits limits = {.qps = 4,
                                             .qpn_base = SHM_BOARD_QPS,
                                             .qpn_span = 8,
                                             .regions = 4,
                                             .sends_per_qp = 4,
                                             .receives_per_qp = 4,
                                             .sges = 1,
                                             .inline_bytes = 64,
                                             .reads_per_qp = 1,
                                             .cq_entries = 4,
                                             .mtu = PATH_MTU_1024};
    prng_init(&bench->prng, seed);
    bench->nic = nic_init(&limits, seed, zeroed(nic_bytes(&limits)));
    cq_init(&bench->cq, COUNT_OF(bench->ring), bench->ring);
}

static void end(struct bench *bench)
{
    shm_port_withdraw_qp(&bench->port, bench->qp);
    shm_port_withdraw_region(&bench->port, &bench->region);
    qp_destroy(bench->qp);
    free(bench->qp_memory);
    free(bench->nic);
    struct shm_board *board = bench->port.board;
    *bench = (struct bench){.port = {.board = board}};
}

static struct modelled_access begin_random(struct bench *bench, uint64_t seed)
{
    begin(bench, seed);
    bench->qp_model = random_qp(bench);
    make_qp(bench);
    make_key(bench);
    publish(bench);
    return random_access(bench);
}

static void expect_equal(struct answer answer, struct answer expected)
{
    assert_int_equal(answer.verdict, expected.verdict);
    assert_int_equal(answer.memory, expected.memory);
}

static void test_packets_go_by_the_rule(void **state)
{
    struct bench *bench = *state;
    uint32_t seen[REACH_VERDICT_COUNT] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct modelled_access access = begin_random(bench, seed);
        if (engine_can_tell(bench, &access)) {
            const struct answer answer = ask_engine(bench, &access);
            expect_equal(answer, expected_of_engine(bench, &access));
            seen[answer.verdict]++;
        }
        end(bench);
    }
    for (enum reach_verdict i = REACH_WRONG_SERVICE; i <= REACH_FORBIDDEN; i++) {
        assert_true(seen[i] > SEEDS / 400);
    }
    assert_true(seen[REACH_ALLOWED] > SEEDS / 10);
}

static void test_peers_go_by_the_rule(void **state)
{
    struct bench *bench = *state;
    uint32_t seen[REACH_VERDICT_COUNT] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct modelled_access access = begin_random(bench, seed);
        const struct answer answer = ask_board(bench, &access);
        expect_equal(answer, expected_of_board(bench, &access));
        seen[answer.verdict]++;
        end(bench);
    }
    static const enum reach_verdict all[] = {
        REACH_UNKNOWN_QP,  REACH_WRONG_PEER,   REACH_NO_RIGHT,
        REACH_UNKNOWN_KEY, REACH_WRONG_DOMAIN, REACH_OUT_OF_BOUNDS,
        REACH_FORBIDDEN,   REACH_OTHER_MTU,    REACH_OTHER_READS};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        assert_true(seen[all[i]] > SEEDS / 400);
    }
    assert_true(seen[REACH_ALLOWED] > SEEDS / 10);
}

/* Compares board and engine without the model: the board allows no access that packets would not
 * have, and says the same about the entries that it has. */
static void test_both_say_the_same(void **state)
{
    struct bench *bench = *state;
    uint32_t same = 0, allowed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct modelled_access access = begin_random(bench, seed);
        const struct answer board = ask_board(bench, &access);
        if (engine_can_tell(bench, &access)) {
            const struct answer engine = ask_engine(bench, &access);
            if (board.verdict != REACH_UNKNOWN_QP && board.verdict != REACH_UNKNOWN_KEY) {
                expect_equal(board, engine);
                same++;
                allowed += board.verdict == REACH_ALLOWED;
            }
        }
        end(bench);
    }
    assert_true(same > SEEDS / 4 && allowed > SEEDS / 10);
}

/* -- Entries that were taken off ----------------------------------------------------------------*/

/* Makes a connection of RC that grants all accesses, and a region of it. */
static void begin_open(struct bench *bench, uint64_t seed)
{
    begin(bench, seed);
    bench->qp_model = (struct modelled_qp){.type = QP_RC,
                                           .state = QP_RTR,
                                           .access = 0xf,
                                           .reads = 1,
                                           .peer = PEER,
                                           .peer_number = PEER_NUMBER,
                                           .mtu_bytes = MTU};
    make_qp(bench);
    bench->region = (struct region){
        .pd = &bench->pds[0], .key = 0x100, .start = 0x1000, .bytes = 0x1000, .access = REMOTE};
    shm_port_publish_qp(&bench->port, bench->qp);
}

static enum reach_verdict ask(struct bench *bench, uint32_t number, uint32_t key)
{
    const struct shm_reach reach = {.number = number,
                                    .key = key,
                                    .source = {gid_of(PEER), PEER_NUMBER, {MTU, 1}},
                                    .access = {0x1800, 8, ACCESS_REMOTE_WRITE, 8}};
    struct shm_grant grant;
    return shm_board_judge(bench->port.board, &reach, &grant);
}

/* A place that is free has the key 0, or the number 0, and is nothing to a peer that asks for 0. */
static void test_nothing_is_0(void **state)
{
    struct bench *bench = *state;
    begin_open(bench, 3);
    const uint32_t number = qp_number(bench->qp);
    assert_int_equal(number % SHM_BOARD_QPS, 0);        /* The first place where 0 is looked for. */
    for (uint32_t i = 1; i <= SHM_BOARD_REGIONS; i++) { /* Some of them at the first place. */
        const uint32_t key = i << 8;
        bench->region.key = key;
        shm_port_publish_region(&bench->port, &bench->region);
        assert_int_equal(ask(bench, number, key), REACH_ALLOWED);
        if (i == SHM_BOARD_REGIONS) {
            shm_port_withdraw_qp(&bench->port, bench->qp);
            assert_int_equal(ask(bench, number, key), REACH_UNKNOWN_QP);
            assert_int_equal(ask(bench, 0, key), REACH_UNKNOWN_QP);
            shm_port_publish_qp(&bench->port, bench->qp);
        }
        shm_port_withdraw_region(&bench->port, &bench->region);
        assert_int_equal(ask(bench, number, key), REACH_UNKNOWN_KEY);
        assert_int_equal(ask(bench, number, 0), REACH_UNKNOWN_KEY);
    }
    end(bench);
}

/* An owner may write anything on its board. */
static void test_a_range_that_wraps(void **state)
{
    struct bench *bench = *state;
    begin_open(bench, 1);
    bench->region.key = 0x100;
    bench->region.start = 0x1900;
    bench->region.bytes = UINT64_MAX - 8;
    shm_port_publish_region(&bench->port, &bench->region);
    assert_int_equal(ask(bench, qp_number(bench->qp), 0x100), REACH_UNKNOWN_KEY);
    end(bench);
}

/* -- Entries that change meanwhile --------------------------------------------------------------*/

/* The board begins here in its first page: then the entry 83 of the regions and the entry 125 of
 * the queue pairs lie across the ends of pages. */
enum {
    PAGE = 4096,
    BOARD_OFFSET = 16,
    REGION_ACROSS = 83,
    QP_ACROSS = 125,
};

/* The entry that takes the place of another one while a peer copies that. */
static struct {
    uint8_t *page; /* It is not accessible until then. */
    struct shm_board_region *region;
    struct shm_board_qp *qp;
    uint32_t faults;
} meanwhile;

static void on_fault(int signal)
{
    (void)signal;
    if (mprotect(meanwhile.page, PAGE, PROT_READ | PROT_WRITE) != 0) {
        _exit(1);
    }
    meanwhile.faults++;
    if (meanwhile.region != NULL) {
        atomic_store(&meanwhile.region->key, 0x55555500);
        atomic_store(&meanwhile.region->memory, 0xbad0000);
    } else {
        atomic_store(&meanwhile.qp->number, 1);
        atomic_store(&meanwhile.qp->domain, 2);
    }
}

/* Asks while the entry's second page is out of reach. Returns the verdict; the entry was found
 * before the change, and is judged after it. */
static enum reach_verdict ask_meanwhile(struct bench *bench, uint32_t key, const void *entry)
{
    meanwhile.page = (uint8_t *)(((uintptr_t)entry | (PAGE - 1)) + 1);
    meanwhile.faults = 0;
    assert_int_equal(mprotect(meanwhile.page, PAGE, PROT_NONE), 0);
    const enum reach_verdict verdict = ask(bench, QP_ACROSS, key);
    assert_int_equal(meanwhile.faults, 1);
    return verdict;
}

/* Puts a connection of RC on the board by hand, at the place of its number. */
static struct shm_board_qp *put_up_qp(struct shm_board *board)
{
    struct shm_board_qp *entry = &board->qps[QP_ACROSS];
    const struct gid gid = gid_of(PEER);
    uint64_t peer[2];
    memcpy(peer, &gid, sizeof(peer));
    atomic_store(&entry->grant, PEER_NUMBER | REMOTE << SHM_GRANT_SHIFT);
    atomic_store(&entry->domain, 1);
    atomic_store(&entry->peer[0], peer[0]);
    atomic_store(&entry->peer[1], peer[1]);
    atomic_store(&entry->number, QP_ACROSS);
    return entry;
}

/* A region whose key has its first place there. */
static struct shm_board_region *put_up_region(struct bench *bench)
{
    struct shm_board_region *entry = &bench->port.board->regions[REGION_ACROSS];
    for (uint32_t key = 0x100; atomic_load(&entry->key) == 0; key += 0x100) {
        if (key > 0x100) {
            shm_port_withdraw_region(&bench->port, &bench->region);
        }
        bench->region = (struct region){
            .pd = &bench->pds[0], .key = key, .start = 0x1000, .bytes = 0x1000, .access = REMOTE};
        shm_port_publish_region(&bench->port, &bench->region);
    }
    return entry;
}

/* A peer may be held up between any two words of an entry, until another entry has come to the
 * place: its copy is of both entries then, and does not count. */
static void test_a_copy_is_of_one_entry(void **state)
{
    struct bench *bench = *state;
    const size_t bytes = (sizeof(struct shm_board) + BOARD_OFFSET + PAGE - 1) / PAGE * PAGE;
    uint8_t *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    struct shm_board *board = bench->port.board;
    bench->port.board = (struct shm_board *)(void *)(pages + BOARD_OFFSET);
    const struct sigaction action = {.sa_handler = on_fault};
    struct sigaction before;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    meanwhile.qp = put_up_qp(bench->port.board);
    meanwhile.region = put_up_region(bench);
    const uint32_t key = bench->region.key;
    enum reach_verdict verdicts[4];
    verdicts[0] = ask(bench, QP_ACROSS, key);
    verdicts[1] = ask_meanwhile(bench, key, meanwhile.region);

    atomic_store(&meanwhile.region->key, key);
    meanwhile.region = NULL;
    verdicts[2] = ask(bench, QP_ACROSS, key);
    verdicts[3] = ask_meanwhile(bench, key, meanwhile.qp);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(munmap(pages, bytes), 0);
    bench->port.board = board;
    assert_int_equal(verdicts[0], REACH_ALLOWED);
    assert_int_equal(verdicts[1], REACH_UNKNOWN_KEY);
    assert_int_equal(verdicts[2], REACH_ALLOWED);
    assert_int_equal(verdicts[3], REACH_UNKNOWN_QP);
}

/* -- Counters -----------------------------------------------------------------------------------*/

static struct shm_port *open_port(const struct gid *gid)
{
    char error[256];
    struct shm_port *port = shm_port_open(gid, LOCAL_NO_SLOT, error, sizeof(error));
    assert_non_null(port);
    return port;
}

static void serve(struct shm_port *port)
{
    struct pollfd wait = {.fd = shm_port_fd(port), .events = POLLIN};
    while (poll(&wait, 1, 0) == 1) {
        shm_port_serve(port);
    }
}

/* A link from one port to another one of this process. */
struct way {
    struct shm_port *port, *target;
    struct link *link;
    struct qp *qp;
    uint32_t number; /* The queue pair that is asked for. */
    uint32_t psn;
    struct nic_direct direct;
    struct region region;
    uint8_t memory[16];
};

static void open_way(struct way *way, struct bench *bench)
{
    const pid_t pid = getpid();
    struct gid gids[2] = {gid_of(PEER), gid_of(PEER + 1)};
    memcpy(gids[1].bytes + 4, &pid, sizeof(pid));
    *way = (struct way){.port = open_port(&gids[0]), .target = open_port(&gids[1])};
    way->link = shm_port_link(way->port, &gids[1], LOCAL_NO_SLOT);
    assert_non_null(way->link);
    serve(way->target);
    serve(way->port);
    way->qp = bench->qp;
    way->number = qp_number(bench->qp);
}

/* Lets the next access be to 8 bytes of a region like this, by its key and `address`. */
static void aim(struct way *way, struct pd *pd, uint64_t memory, uint32_t access, uint64_t address)
{
    way->region = (struct region){.pd = pd,
                                  .key = way->region.key + 0x100,
                                  .start = 0x1000,
                                  .bytes = sizeof(way->memory),
                                  .memory = memory,
                                  .access = access};
    shm_port_publish_region(way->target, &way->region);
    way->direct.key = way->region.key;
    way->direct.address = address;
    way->direct.bytes = way->direct.message_bytes = 8;
}

/* Expects that a WRITE, or a READ, by the requester itself raises this counter. */
static void expect_counted(struct way *way, uint32_t right, const uint64_t *counter)
{
    static uint8_t local[8];
    const struct shm_direct_counters *counters = shm_port_direct(way->port);
    const bool read = right == ACCESS_REMOTE_READ;
    way->direct.kind = read ? NIC_DIRECT_READ : NIC_DIRECT_WRITE;
    const struct nic_departure departure = {
        .qp = way->qp,
        .destination_qpn = way->number,
        .psn = way->psn,
        .direct = way->direct,
        .headers_bytes = 28,
        .payload_bytes = read ? 0 : sizeof(local),
        .segment_count = 1,
        .segments = {{(uintptr_t)local, sizeof(local), false}},
    };
    const uint64_t before = *counter;
    const bool done =
        read ? shm_link_fetch(way->port, way->link, &departure, departure.segments, 1, false)
             : shm_link_place(way->port, way->link, &departure, false);
    assert_int_equal(done, counter == &counters->done);
    assert_int_equal(*counter, before + 1);
}

static uint32_t windows_of(const struct way *way)
{
    return CONTAINER_OF(way->link, struct shm_link, link)->windows;
}

static void drain(struct shm_port *port)
{
    while (shm_port_next(port, SHM_SLOTS, NULL) != NULL) {
    }
}

/* Each reason why packets go instead is counted by its name. The queue pair is its own peer. */
static void test_reasons_are_counted(void **state)
{
    struct bench *bench = *state;
    struct way way;
    begin_open(bench, 3);
    shm_port_withdraw_qp(&bench->port, bench->qp);
    bench->pds[0].number = 0; /* Another port numbers it anew. */
    open_way(&way, bench);
    const struct shm_direct_counters *counters = shm_port_direct(way.port);
    const uint64_t *refused = counters->refused;
    const uint64_t theirs = (uintptr_t)way.memory;
    aim(&way, &bench->pds[0], theirs, REMOTE, 0x1000);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->no_owner);
    shm_port_own(way.target);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &refused[REACH_UNKNOWN_QP]);
    shm_port_publish_qp(way.target, bench->qp);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->done);
    expect_counted(&way, ACCESS_REMOTE_READ, &counters->done);
    aim(&way, &bench->pds[0], theirs, REMOTE, 0x1009);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &refused[REACH_OUT_OF_BOUNDS]);
    aim(&way, &bench->pds[1], theirs, REMOTE, 0x1000);
    expect_counted(&way, ACCESS_REMOTE_READ, &refused[REACH_WRONG_DOMAIN]);
    aim(&way, &bench->pds[0], theirs, ACCESS_REMOTE_READ, 0x1000);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &refused[REACH_FORBIDDEN]);
    /* Atomics are not for a board. */
    aim(&way, &bench->pds[0], theirs, ACCESS_REMOTE_ATOMIC, 0x1000);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &refused[REACH_UNKNOWN_KEY]);
    aim(&way, &bench->pds[0], 8, REMOTE, 0x1000); /* There is no memory at that address. */
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->failed);
    assert_int_equal(counters->done, 2);
    shm_port_disown(way.target);
    shm_port_close(way.port);
    shm_port_close(way.target);
    end(bench);
}

/* The first PSN is compared with what the peer expects; those behind it follow, until either queue
 * pair is modified. While the peer has not read the packets that were sent, nobody knows which PSN
 * it expects. */
static void test_psns_agree_first(void **state)
{
    struct bench *bench = *state;
    struct way way;
    begin_open(bench, 3);
    shm_port_withdraw_qp(&bench->port, bench->qp);
    bench->pds[0].number = 0;
    open_way(&way, bench);
    shm_port_own(way.target);
    shm_port_publish_qp(way.target, bench->qp);
    aim(&way, &bench->pds[0], (uintptr_t)way.memory, REMOTE, 0x1000);
    const struct shm_direct_counters *counters = shm_port_direct(way.port);
    const uint64_t *other = &counters->refused[REACH_OTHER_PSN];
    way.psn = 1;
    expect_counted(&way, ACCESS_REMOTE_WRITE, other);
    way.psn = ROCE_24_BITS;
    expect_counted(&way, ACCESS_REMOTE_READ, other);
    /* The look-up takes a system call of its own, and so a window of its own. */
    const uint32_t windows = windows_of(&way);
    way.psn = 0;
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->done);
    assert_int_equal(windows_of(&way), windows + 2);
    way.psn = 1;
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->done);
    assert_int_equal(windows_of(&way), windows + 3);
    /* The target modifies its queue pair, whose engine has seen neither packet. */
    shm_port_withdraw_qp(way.target, bench->qp);
    shm_port_publish_qp(way.target, bench->qp);
    way.psn = 0;
    expect_counted(&way, ACCESS_REMOTE_WRITE, other); /* Two records are unread. */
    drain(way.target);
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->done);
    /* The requester modifies its own. */
    way.psn = 1;
    modify(bench, QP_RTS);
    expect_counted(&way, ACCESS_REMOTE_WRITE, other);
    drain(way.target);
    expect_counted(&way, ACCESS_REMOTE_WRITE, other);
    way.psn = 0;
    expect_counted(&way, ACCESS_REMOTE_WRITE, &counters->done);
    shm_port_disown(way.target);
    shm_port_close(way.port);
    shm_port_close(way.target);
    end(bench);
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->port.board = zeroed(sizeof(struct shm_board));
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    free(bench->port.board);
    free(bench);
    return 0;
}

#define BOARD_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOARD_TEST(test_packets_go_by_the_rule), BOARD_TEST(test_peers_go_by_the_rule),
        BOARD_TEST(test_both_say_the_same),      BOARD_TEST(test_nothing_is_0),
        BOARD_TEST(test_a_range_that_wraps),     BOARD_TEST(test_a_copy_is_of_one_entry),
        BOARD_TEST(test_reasons_are_counted),    BOARD_TEST(test_psns_agree_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
