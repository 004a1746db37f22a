/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requests - the account of what is posted and not polled, and rules about slots.
 */
#include "checker/internal.h"

/* -- Rings --------------------------------------------------------------------------------------*/

static uint32_t ring_entries(uint32_t limit)
{
    uint32_t entries = 2;
    while (entries < 2 * limit) {
        entries *= 2;
    }
    return entries;
}

static uint32_t ring_stride(uint32_t sges)
{
    return (uint32_t)(sizeof(struct posted) + sges * (sizeof(struct sge) + sizeof(struct segment)));
}

size_t ring_bytes(uint32_t limit, uint32_t sges)
{
    return (size_t)ring_entries(limit) * ring_stride(sges);
}

void ring_init(struct ring *ring, uint32_t limit, uint32_t sges, void *memory)
{
    *ring = (struct ring){.slots = memory,
                          .stride = ring_stride(sges),
                          .mask = ring_entries(limit) - 1,
                          .sge_max = sges,
                          .limit = limit};
}

/* -- Completions that queues are owed -----------------------------------------------------------*/

static void owe(struct checker *checker, uint32_t number, uint32_t qpn, const struct posted *posted)
{
    struct checked_cq *cq = find_cq(checker, number);
    if (cq != NULL && ++cq->owed > cq->entries && !cq->told_room) {
        cq->told_room = true;
        tell(checker, CHECKER_CQ_ROOM, qpn, posted,
             "%u requests that are not polled complete to one completion queue of %u entries: it "
             "may overrun",
             cq->owed, cq->entries);
    }
}

void pay(struct checker *checker, uint32_t number)
{
    struct checked_cq *cq = find_cq(checker, number);
    if (cq != NULL && cq->owed > 0) {
        cq->owed--;
    }
}

/* -- Posting ------------------------------------------------------------------------------------*/

static struct posted *push(struct ring *ring, uint64_t wr_id, const struct sge *sges,
                           uint32_t count, uint32_t place)
{
    CHECK(ring_count(ring) <= ring->mask);
    struct posted *posted = ring_at(ring, ring->tail);
    *posted = (struct posted){.wr_id = wr_id,
                              .place = place,
                              .segments = (struct segment *)(void *)&posted->sges[ring->sge_max]};
    for (uint32_t i = 0; i < count; i++) {
        posted->bytes += sges[i].bytes;
        if (i < ring->sge_max) {
            posted->sges[i] = sges[i];
            posted->sge_count++;
        }
    }
    return posted;
}

static bool has_visible(const struct checked_qp *qp)
{
    for (uint32_t at = qp->sends.head; at != qp->sends.tail; at++) {
        if (is_visible(qp, ring_at(&qp->sends, at))) {
            return true;
        }
    }
    return false;
}

static void judge_send_slots(struct checker *checker, struct checked_qp *qp)
{
    struct ring *sends = &qp->sends;
    if (ring_count(sends) < sends->limit || qp->failed || sends->told_full) {
        return;
    }
    sends->told_full = true;
    if (has_visible(qp)) {
        tell(checker, CHECKER_SEND_SLOTS, qp->object.number, ring_at(sends, sends->head),
             "%u requests are posted and not polled, and max_send_wr is %u: hardware refuses the "
             "next",
             ring_count(sends), sends->limit);
    } else {
        tell(checker, CHECKER_NEVER_SIGNALED, qp->object.number, ring_at(sends, sends->head),
             "none of the newest %u requests is signaled, and max_send_wr is %u: hardware has no "
             "room for the next, and never will",
             ring_count(sends), sends->limit);
    }
}

static void drop_oldest_send(struct checker *checker, struct checked_qp *qp)
{
    struct posted *posted = ring_at(&qp->sends, qp->sends.head++);
    give_back(checker, posted);
    if (is_visible(qp, posted)) {
        pay(checker, qp->send_cq);
    }
}

static void sum_up(const struct checker *checker, struct posted *posted)
{
    posted->summed = !brings_data(posted) && posted->bytes > 0 && posted->sge_count > 0 &&
                     checker->memory->sum(posted->segments, posted->sge_count, &posted->sum);
}

void checker_send(struct checker *checker, uint32_t qpn, const struct send_request *request,
                  uint32_t place)
{
    struct checked_qp *qp = find_qp(checker, qpn);
    if (qp == NULL) {
        return;
    }
    checker->posts++;
    judge_send_slots(checker, qp);
    if (ring_count(&qp->sends) > qp->sends.mask) {
        drop_oldest_send(checker, qp);
    }
    const bool named = (request->flags & WORK_INLINE) == 0;
    struct posted *posted =
        push(&qp->sends, request->wr_id, request->sges, named ? request->sge_count : 0, place);
    posted->kind = (uint8_t)request->kind;
    posted->flags = (uint8_t)request->flags;
    posted->remote_address = request->remote_address;
    posted->remote_key = request->remote_key;
    posted->handle = request->av;
    judge_keys(checker, qpn, qp->domain, posted, brings_data(posted));
    judge_order(checker, qp, posted);
    judge_reuse(checker, qp, posted);
    sum_up(checker, posted);
    lend(checker, &qp->sends, qpn, posted, false);
    qp->sends.tail++;
    qp->posts++;
    qp->signaled += is_visible(qp, posted);
    qp->deepest = ring_count(&qp->sends) > qp->deepest ? ring_count(&qp->sends) : qp->deepest;
    if (is_visible(qp, posted)) {
        owe(checker, qp->send_cq, qpn, posted);
    }
}

void checker_unsend(struct checker *checker, uint32_t qpn, uint32_t count)
{
    struct checked_qp *qp = find_qp(checker, qpn);
    for (; qp != NULL && count > 0 && ring_count(&qp->sends) > 0; count--) {
        struct posted *posted = ring_at(&qp->sends, --qp->sends.tail);
        give_back(checker, posted);
        if (is_visible(qp, posted)) {
            pay(checker, qp->send_cq);
        }
    }
}

struct ring *receives_of(struct checker *checker, uint32_t qpn, uint32_t srq,
                         const struct pd **domain)
{
    struct checked_qp *qp = srq == 0 ? find_qp(checker, qpn) : NULL;
    const uint32_t number = qp != NULL ? qp->srq : srq;
    if (number != 0) {
        struct checked_srq *shared = find_srq(checker, number);
        *domain = shared == NULL ? NULL : shared->domain;
        return shared == NULL ? NULL : &shared->receives;
    }
    *domain = qp == NULL ? NULL : qp->domain;
    return qp == NULL || qp->receives.slots == NULL ? NULL : &qp->receives;
}

static void judge_receive_slots(struct checker *checker, uint32_t qpn, struct ring *receives)
{
    if (receives->open >= receives->limit && receives->limit > 0 && !receives->told_full) {
        receives->told_full = true;
        tell(checker, CHECKER_RECEIVE_SLOTS, qpn, ring_at(receives, receives->head),
             "%u receives are posted and not polled, and the queue has room for %u: hardware "
             "refuses the next",
             receives->open, receives->limit);
    }
}

static void make_room(struct checker *checker, struct ring *receives)
{
    if (ring_count(receives) > receives->mask) {
        struct posted *oldest = ring_at(receives, receives->head++);
        give_back(checker, oldest);
        receives->open -= !oldest->over;
    }
}

void checker_receive(struct checker *checker, uint32_t qpn, uint32_t srq, uint64_t wr_id,
                     const struct sge *sges, uint32_t count, uint32_t place)
{
    const struct checked_qp *qp = srq == 0 ? find_qp(checker, qpn) : NULL;
    const struct pd *domain;
    struct ring *receives = receives_of(checker, qpn, srq, &domain);
    if (receives == NULL) {
        return;
    }
    checker->posts++;
    if (qp == NULL || !qp->failed) {
        judge_receive_slots(checker, qpn, receives);
    }
    make_room(checker, receives);
    struct posted *posted = push(receives, wr_id, sges, count, place);
    judge_keys(checker, qpn, domain, posted, true);
    if (qp != NULL && qp->type == QP_UD && posted->bytes < NIC_GRH_BYTES) {
        tell(checker, CHECKER_UD_ROOM, qpn, posted,
             "a receive of %u bytes has no room for the 40 bytes of the GRH that come before each "
             "datagram",
             posted->bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sges[i].bytes == 0) {
            tell(checker, CHECKER_EMPTY_SGE, qpn, posted, "SGE %u of a receive has no bytes", i);
        }
    }
    lend(checker, receives, srq != 0 ? srq : qpn, posted, true);
    receives->tail++;
    receives->open++;
    if (qp != NULL) {
        owe(checker, qp->receive_cq, qpn, posted);
    }
}

void checker_unreceive(struct checker *checker, uint32_t qpn, uint32_t srq, uint32_t count)
{
    const struct checked_qp *qp = srq == 0 ? find_qp(checker, qpn) : NULL;
    const struct pd *domain;
    struct ring *receives = receives_of(checker, qpn, srq, &domain);
    for (; receives != NULL && count > 0 && ring_count(receives) > 0; count--) {
        give_back(checker, ring_at(receives, --receives->tail));
        receives->open--;
        if (qp != NULL) {
            pay(checker, qp->receive_cq);
        }
    }
}

void receives_move(struct checker *checker, uint32_t srq, struct ring *from, struct ring *to)
{
    CHECK(from->stride == to->stride);
    for (; from->head != from->tail; from->head++) {
        struct posted *posted = ring_at(from, from->head);
        if (!posted->over) {
            make_room(checker, to);
            struct posted *moved = ring_at(to, to->tail++);
            memcpy(moved, posted, to->stride);
            moved->segments = (struct segment *)(void *)&moved->sges[to->sge_max];
            lend_moved(checker, to, srq, posted, moved);
            to->open++;
        }
    }
}

/* -- Ends ---------------------------------------------------------------------------------------*/

void receives_forget(struct checker *checker, struct ring *receives)
{
    for (; receives->head != receives->tail; receives->head++) {
        give_back(checker, ring_at(receives, receives->head));
    }
    receives->open = 0;
}

void requests_forget(struct checker *checker, struct checked_qp *qp)
{
    while (qp->sends.head != qp->sends.tail) {
        drop_oldest_send(checker, qp);
    }
    for (uint32_t i = ring_count(&qp->receives); i > 0; i--) {
        pay(checker, qp->receive_cq);
    }
    receives_forget(checker, &qp->receives);
    qp->failed = false;
    qp->sends.told_full = qp->receives.told_full = false;
}

static bool names_region(const struct posted *posted, uint32_t key)
{
    for (uint32_t i = 0; i < posted->sge_count; i++) {
        if (posted->sges[i].key == key && posted->sges[i].bytes > 0) {
            return true;
        }
    }
    return false;
}

/* A queue pair that has failed touches its memory no more, so that it loses nothing; but only now
 * is its last access over for certain. */
void requests_lose_region(struct checker *checker, const struct checked_qp *qp, struct ring *ring,
                          uint32_t key)
{
    for (uint32_t at = ring->head; at != ring->tail; at++) {
        struct posted *posted = ring_at(ring, at);
        if (names_region(posted, key)) {
            take_from_nic(checker, posted);
            posted->gone_key = qp != NULL && qp->failed ? posted->gone_key : key;
        }
    }
}
