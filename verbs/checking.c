/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/checking.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/guard.h"
#include "drivers/system/raced.h"
#include "drivers/system/system.h"
#include "wire/crc32c.h"

enum {
    FRAMES_MAX = 24,
    POSTED_FRAMES = 8,
    PLACES_MAX = 1024, /* A power of two: places of the program that post. */
    TOLD_MAX = 512,
    LINE_MAX_BYTES = 16384,
};

/* The calls that led to a post. Finding them costs far more than a post, so it is done once for an
 * instruction and a stack pointer. */
struct place {
    const void *code, *stack;
    void *frames[POSTED_FRAMES];
    int count;
};

/* A rule that was broken at a place; later ones there are only counted. */
struct told {
    uint64_t name;
    uint64_t count;
};

bool checking;
static struct {
    pthread_mutex_t mutex;
    struct checker *checker;
    struct live *live; /* The process's NIC, or that of its parent. */
    char report[PATH_MAX];
    struct place places[PLACES_MAX];
    uint32_t place_count;
    struct told told[TOLD_MAX];
    uint32_t told_count;
    struct timespec began;
    uintptr_t own_base; /* Where this library is. */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* -- The program's memory -----------------------------------------------------------------------*/

/* A part of it may have been unmapped. */
static bool add_sum(const struct segment *segment, uint32_t *sum)
{
    uint8_t copy[4096];
    const uint8_t *at = (const uint8_t *)(uintptr_t)segment->address;
    for (uint32_t left = segment->bytes; left > 0;) {
        const uint32_t piece = left < sizeof(copy) ? left : (uint32_t)sizeof(copy);
        if (!guard_copy(copy, at, piece)) {
            return false;
        }
        *sum = crc32c(*sum, copy, piece);
        at += piece;
        left -= piece;
    }
    return true;
}

static enum reach_verdict find(const struct pd *domain, const struct sge *sge, uint32_t access,
                               struct segment *segment)
{
    live_lock(state.live);
    const enum reach_verdict verdict =
        region_judge(nic_regions(live_nic(state.live)), sge->key, domain, NULL, sge->address,
                     sge->bytes, access, segment);
    live_unlock(state.live);
    return verdict;
}

static bool sum_memory(const struct pd *domain, const struct sge *sges, uint32_t count,
                       uint32_t *sum)
{
    *sum = 0;
    if (state.report[0] == '\0') {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct segment segment;
        if (find(domain, &sges[i], 0, &segment) != REACH_ALLOWED || !add_sum(&segment, sum)) {
            return false;
        }
    }
    return true;
}

static enum reach_verdict judge_memory(const struct pd *domain, const struct sge *sge, bool writes,
                                       uint64_t *start, uint64_t *bytes)
{
    struct segment segment;
    const enum reach_verdict verdict = find(domain, sge, writes ? ACCESS_LOCAL_WRITE : 0, &segment);
    live_lock(state.live);
    const struct region *region = region_find(nic_regions(live_nic(state.live)), sge->key);
    *start = region == NULL ? 0 : region->start;
    *bytes = region == NULL ? 0 : region->bytes;
    live_unlock(state.live);
    return verdict;
}

/* -- A program that ThreadSanitizer watches -----------------------------------------------------*/

/* The word that orders all that a thread did before it posted before all that the receiver does
 * that polls it. */
static const char loop;

static void lend(const struct checker_lent *lent)
{
    struct segment segments[NIC_SGE_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < lent->count && count < NIC_SGE_MAX; i++) {
        count += find(lent->domain, &lent->sges[i], 0, &segments[count]) == REACH_ALLOWED;
    }
    struct race_access access = {.kind = lent->receives ? RACE_RECEIVES : RACE_SENDS,
                                 .qpn = lent->qpn,
                                 .writes = lent->writes,
                                 .after = lent->queue,
                                 .before = lent->slot};
    if (lent->place != 0) {
        access.calls = state.places[lent->place - 1].frames;
        access.call_count = state.places[lent->place - 1].count;
    }
    race_release(lent->queue);
    race_release(&loop);
    race_touch(&access, segments, count);
}

/* A receive that is polled is behind what its sender did here, and behind what the peer wrote. */
static void order_received(const struct completion *completion)
{
    if (race_is_noted() && completion_is_receive(completion)) {
        race_acquire(&loop);
        race_acquire(race_peer_word(completion->qpn));
    }
}

/* Nobody reaches the memory any more, and no peer is in the middle of it. */
static void order_withdrawn(void)
{
    for (uint32_t i = 0; i < RACE_FIBERS && race_is_noted(); i++) {
        race_acquire(race_peer_word(i));
    }
}

static const struct checker_memory memory = {.sum = sum_memory, .judge = judge_memory};
static const struct checker_memory raced_memory = {
    .sum = sum_memory, .judge = judge_memory, .lend = lend, .give_back = race_acquire};

/* -- The report ---------------------------------------------------------------------------------*/

static uintptr_t base_of(uintptr_t code, const char **file)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)code, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        *file = "?";
        return 0;
    }
    *file = map->l_name;
    return map->l_addr;
}

/* A place of the code as FILE+OFFSET; the program itself has no name. */
static size_t put_place(char *text, size_t bytes, uintptr_t code)
{
    char self[PATH_MAX];
    const char *file;
    const uintptr_t base = base_of(code, &file);
    if (file[0] == '\0') {
        const ssize_t length = system_read_link(AT_FDCWD, "/proc/self/exe", self, sizeof(self) - 1);
        self[length < 0 ? 0 : length] = '\0';
        file = self;
    }
    const int written = snprintf(text, bytes, "%s+%#lx", file, (unsigned long)(code - base));
    return written < 0 || (size_t)written >= bytes ? 0 : (size_t)written;
}

/* The call of the program, and those that led to it: a list with semicolons. */
static void put_calls(char *text, size_t bytes, void *const *frames, int count)
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        const char *file;
        if (base_of((uintptr_t)frames[i], &file) == state.own_base) {
            continue;
        }
        if (used > 0 && used + 1 < bytes) {
            text[used++] = ';';
        }
        used += put_place(text + used, bytes - used, (uintptr_t)frames[i]);
    }
    text[used] = '\0';
}

/* Without those of this library. */
static void note_calls(struct place *place)
{
    void *frames[POSTED_FRAMES + 4];
    const char *file;
    const int count = backtrace(frames, COUNT_OF(frames));
    for (int i = 0; i < count && place->count < POSTED_FRAMES; i++) {
        if (base_of((uintptr_t)frames[i], &file) != state.own_base) {
            place->frames[place->count++] = frames[i];
        }
    }
}

uint32_t checking_place(const void *code, const void *stack)
{
    const void *const key[] = {code, stack};
    uint32_t at = crc32c(0, key, sizeof(key));
    for (;; at++) {
        struct place *place = &state.places[at % PLACES_MAX];
        if (place->code == code && place->stack == stack) {
            return at % PLACES_MAX + 1;
        }
        if (place->code == NULL) {
            if (state.place_count == PLACES_MAX / 2) {
                return 0;
            }
            state.place_count++;
            *place = (struct place){.code = code, .stack = stack};
            note_calls(place);
            return at % PLACES_MAX + 1;
        }
    }
}

/* A name for the rule, the calls that led there, and those that posted the request. */
static uint64_t name_finding(const struct checker_finding *finding, void *const *frames, int count)
{
    const uint32_t words[] = {(uint32_t)finding->rule, finding->posted};
    const uint32_t calls = crc32c(0, frames, (size_t)count * sizeof(*frames));
    return (uint64_t)crc32c(calls, words, sizeof(words)) << 32 | calls;
}

/* Counts it. Is it the first? */
static bool is_first(uint64_t name)
{
    for (uint32_t i = 0; i < state.told_count; i++) {
        if (state.told[i].name == name) {
            state.told[i].count++;
            return false;
        }
    }
    if (state.told_count < TOLD_MAX) {
        state.told[state.told_count++] = (struct told){.name = name, .count = 1};
    }
    return true;
}

/* One call, so that lines of several processes do not mix. */
static void write_line(const char *line, size_t bytes)
{
    if (state.report[0] == '\0') {
        return;
    }
    const int file = descriptor_own(system_create(state.report, O_APPEND, 0600));
    if (file >= 0) {
        (void)!system_write(file, line, bytes);
        descriptor_close(file);
    }
}

static double seconds_since_begin(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - state.began.tv_sec) +
           (double)(now.tv_nsec - state.began.tv_nsec) / 1e9;
}

static void report(const struct checker_finding *finding)
{
    void *frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    const uint64_t name = name_finding(finding, frames, count);
    if (!is_first(name)) {
        return;
    }
    char line[LINE_MAX_BYTES], posted[LINE_MAX_BYTES / 4] = "", calls[LINE_MAX_BYTES / 2];
    if (finding->posted != 0) {
        const struct place *place = &state.places[finding->posted - 1];
        put_calls(posted, sizeof(posted), place->frames, place->count);
    }
    put_calls(calls, sizeof(calls), frames, count);
    const int bytes =
        snprintf(line, sizeof(line),
                 "found\trule=%s\tpid=%d\tplace=%016llx\tqp=%u\tseconds=%.6f\tposted=%s\tat=%s\t"
                 "text=%s\n",
                 checker_rules[finding->rule].name, getpid(), (unsigned long long)name,
                 finding->qpn, seconds_since_begin(), posted, calls, finding->text);
    if (bytes > 0) {
        write_line(line, (size_t)bytes < sizeof(line) ? (size_t)bytes : sizeof(line) - 1);
    }
}

/* How often each place was come by, if more than once. */
static void report_counts(void)
{
    for (uint32_t i = 0; i < state.told_count; i++) {
        char line[128];
        const struct told *told = &state.told[i];
        if (told->count > 1) {
            const int bytes =
                snprintf(line, sizeof(line), "counted\tpid=%d\tplace=%016llx\tcount=%llu\n",
                         getpid(), (unsigned long long)told->name, (unsigned long long)told->count);
            write_line(line, (size_t)bytes);
        }
    }
}

static void report_all(void)
{
    struct checker_finding finding;
    while (checker_take(state.checker, &finding)) {
        report(&finding);
    }
}

/* -- Begin and end ------------------------------------------------------------------------------*/

static void end(void)
{
    struct checker *checker = checking_enter();
    /* Without the live lock: other threads of the program may still hold it, and go no further. */
    const uint64_t *counted = nic_counters(live_nic(state.live))->values;
    const struct checker_counts counts = {.rnr_naks = counted[COUNTER_rcvd_rnr_err],
                                          .wrong_qkeys = counted[COUNTER_drop_wrong_qkey],
                                          .no_receives = counted[COUNTER_drop_no_receive]};
    checker_counted(checker, &counts);
    checker_ended(checker);
    report_all();
    report_counts();
    pthread_mutex_unlock(&state.mutex);
    race_leave();
}

static void announce(void)
{
    char line[64];
    const int bytes = snprintf(line, sizeof(line), "process\tpid=%d\n", getpid());
    write_line(line, (size_t)bytes);
}

void checking_begin(struct live *live)
{
    const char *report = secure_getenv("NONIC_CHECK");
    if ((report == NULL || report[0] == '\0') && !race_is_noted()) {
        return;
    }
    pthread_mutex_lock(&state.mutex);
    if (state.checker == NULL) {
        void *frames[1];
        const char *file;
        backtrace(frames, 1); /* The first time, it loads a library. */
        state.own_base = base_of((uintptr_t)checking_begin, &file);
        snprintf(state.report, sizeof(state.report), "%s", report == NULL ? "" : report);
        clock_gettime(CLOCK_MONOTONIC, &state.began);
        void *room = calloc(1, checker_bytes());
        if (room == NULL) {
            process_complain("no memory for the checker: nothing is checked");
        } else {
            state.checker = checker_init(room, race_is_noted() ? &raced_memory : &memory);
            state.live = live;
            checking = true;
            atexit(end);
            announce();
        }
    }
    pthread_mutex_unlock(&state.mutex);
}

/* Its NIC is a new one, and has none of the objects. Their memory is left where it is. */
void checking_in_child(void)
{
    pthread_mutex_init(&state.mutex, NULL);
    state.checker = NULL;
    state.told_count = 0;
    checking = false;
}

struct checker *checking_enter(void)
{
    race_enter();
    pthread_mutex_lock(&state.mutex);
    race_release(&race_told);
    return state.checker;
}

void checking_leave(void)
{
    report_all();
    pthread_mutex_unlock(&state.mutex);
    race_leave();
}

/* -- Hooks --------------------------------------------------------------------------------------*/

static uint32_t number_of(const struct ibv_cq *cq)
{
    return cq == NULL ? 0 : cq->handle;
}

uint32_t checking_srq_number(const struct verbs_srq *srq)
{
    return srq->core.xrcd != NULL ? checker_xrc_srq(srq->core.number) : srq->ibv.handle;
}

void checking_qp_made(const struct verbs_qp *qp, bool signal_all)
{
    const struct ibv_qp *ibv = &qp->ex.qp_base;
    const struct checker_qp_request request = {
        .qpn = ibv->qp_num,
        .type = qp_type_of(qp->core),
        .capacity = *qp_capacity_of(qp->core),
        .signal_all = signal_all,
        .send_cq = number_of(ibv->send_cq),
        .receive_cq = number_of(ibv->recv_cq),
        .srq = ibv->srq == NULL ? 0 : checking_srq_number(srq_of(ibv->srq)),
        .domain = qp_pd(qp->core),
    };
    struct checker *checker = checking_enter();
    void *room = calloc(1, checker_qp_bytes(&request));
    if (room != NULL) {
        checker_qp_made(checker, &request, room);
    }
    checking_leave();
}

void checking_cq_made(const struct verbs_cq *cq)
{
    struct checker *checker = checking_enter();
    void *room = calloc(1, checker_cq_bytes());
    if (room != NULL) {
        checker_cq_made(checker, cq->ex.handle, cq->core.capacity, room);
    }
    checking_leave();
}

void checking_cq_resized(const struct verbs_cq *cq)
{
    checker_cq_resized(checking_enter(), cq->ex.handle, cq->core.capacity);
    checking_leave();
}

void checking_srq_made(const struct verbs_srq *srq)
{
    const struct checker_srq_request request = {.number = checking_srq_number(srq),
                                                .receives = srq->core.queue.limit,
                                                .sges = srq->core.queue.sge_max,
                                                .domain = srq->core.pd};
    struct checker *checker = checking_enter();
    void *room = calloc(1, checker_srq_bytes(&request));
    if (room != NULL) {
        checker_srq_made(checker, &request, room);
    }
    checking_leave();
}

void checking_qp_gone(uint32_t qpn)
{
    free(checker_qp_gone(checking_enter(), qpn));
    order_withdrawn();
    checking_leave();
}

void checking_cq_gone(uint32_t number)
{
    free(checker_cq_gone(checking_enter(), number));
    checking_leave();
}

void checking_srq_gone(const struct verbs_srq *srq)
{
    free(checker_srq_gone(checking_enter(), checking_srq_number(srq)));
    checking_leave();
}

void checking_region_made(void)
{
    checker_region_made(checking_enter());
    checking_leave();
}

void checking_region_gone(uint32_t key)
{
    checker_region_gone(checking_enter(), key);
    checking_leave();
}

void checking_region_withdrawn(void)
{
    checking_enter();
    order_withdrawn();
    checking_leave();
}

int checking_busy(const char *object)
{
    if (is_checked()) {
        checker_busy(checking_enter(), object);
        checking_leave();
    }
    return EBUSY;
}

void checking_handle_gone(const struct nic_av *handle)
{
    checker_handle_gone(checking_enter(), handle);
    checking_leave();
}

void checking_strict(const char *wrong)
{
    checker_tell(checking_enter(), CHECKER_ADDRESS, 0, wrong);
    checking_leave();
}

/* -- Events -------------------------------------------------------------------------------------*/

void checking_event_taken(const struct verbs_cq *cq)
{
    checker_event_taken(checking_enter(), cq->ex.handle);
    checking_leave();
}

void checking_events_acked(const struct ibv_cq *cq, uint32_t count)
{
    checker_events_acked(checking_enter(), cq->handle, count);
    checking_leave();
}

void checking_cq_ends(const struct verbs_cq *cq)
{
    checker_cq_ends(checking_enter(), cq->ex.handle);
    checking_leave();
}

/* -- Requests and completions -------------------------------------------------------------------*/

void checking_before_sends(const struct verbs_qp *qp, const struct send_request *requests,
                           uint32_t count, const void *code, const void *stack)
{
    struct checker *checker = checking_enter();
    const uint32_t place = checking_place(code, stack);
    for (uint32_t i = 0; i < count; i++) {
        checker_send(checker, qp->ex.qp_base.qp_num, &requests[i], place);
    }
}

void checking_after_sends(const struct verbs_qp *qp, const struct send_request *requests,
                          uint32_t count, int reason)
{
    struct checker *checker = state.checker;
    if (reason != 0 && count > 0) {
        checker_unsend(checker, qp->ex.qp_base.qp_num, count);
        checker_send_refused(checker, qp->ex.qp_base.qp_num, qp_state_of(qp->core), &requests[0],
                             reason == ENOMEM ? STATUS_FULL : STATUS_INVALID);
    }
    checking_leave();
}

void checking_polled(struct checker *checker, const struct completion *completion)
{
    order_received(completion);
    checker_polled(checker, completion);
}

int checking_poll(struct ibv_cq_ex *ex, int (*poll)(struct ibv_cq_ex *ex),
                  const struct completion *current)
{
    struct checker *checker = checking_enter();
    const int reason = poll(ex);
    if (reason == 0) {
        checking_polled(checker, current);
    }
    checking_leave();
    return reason;
}

void checking_modified(const struct verbs_qp *qp, const struct qp_attributes *attributes,
                       uint32_t mask, enum qp_state before, int reason)
{
    uint32_t missing, excess;
    const enum qp_state to = mask & QP_ATTR_STATE ? attributes->state : before;
    qp_judge_change(qp_type_of(qp->core), before, to, mask, &missing, &excess);
    checker_modified(checking_enter(), qp->ex.qp_base.qp_num, attributes, mask,
                     reason == 0 ? STATUS_OK : STATUS_INVALID, missing, excess);
    checking_leave();
}
