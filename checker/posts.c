/* SPDX-License-Identifier: BSD-2-Clause
 *
 * posts - why the NIC refused what the program posted.
 *
 * The NIC has one verdict for all of it. These rules find the reason in the same order.
 */
#include <inttypes.h>

#include "checker/internal.h"

static uint64_t bytes_of(const struct send_request *request)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < request->sge_count; i++) {
        bytes += request->sges[i].bytes;
    }
    return bytes;
}

static bool tell_inline(struct checker *checker, const struct checked_qp *qp,
                        const struct send_request *request)
{
    const bool brings = work_kind_in(work_kinds(WORK_BRINGS_DATA), request->kind);
    if ((request->flags & WORK_INLINE) == 0 ||
        (!brings && bytes_of(request) <= qp->capacity.inline_bytes)) {
        return false;
    }
    if (brings) {
        tell(checker, CHECKER_INLINE_LENGTH, qp->object.number, NULL,
             "a %s brings data home, and cannot be inline", kind_name(request->kind));
    } else {
        tell(checker, CHECKER_INLINE_LENGTH, qp->object.number, NULL,
             "%" PRIu64 " bytes are to be sent inline, and max_inline_data is %u",
             bytes_of(request), qp->capacity.inline_bytes);
    }
    return true;
}

static bool tell_atomic(struct checker *checker, const struct checked_qp *qp,
                        const struct send_request *request)
{
    if (!work_kind_in(work_kinds(WORK_IS_ATOMIC), request->kind) ||
        (bytes_of(request) == 8 && request->remote_address % 8 == 0)) {
        return false;
    }
    tell(checker, CHECKER_ATOMIC_SHAPE, qp->object.number, NULL,
         "a %s is about %" PRIu64 " bytes at %#" PRIx64, kind_name(request->kind),
         bytes_of(request), request->remote_address);
    return true;
}

static void tell_invalid_send(struct checker *checker, const struct checked_qp *qp,
                              enum qp_state state, const struct send_request *request)
{
    const uint32_t qpn = qp->object.number;
    if (state == QP_RESET || state == QP_INIT || state == QP_RTR) {
        tell(checker, CHECKER_POST_STATE, qpn, NULL,
             "a %s is posted to a queue pair in %s: it takes sends from RTS on",
             kind_name(request->kind), state_name(state));
    } else if (!work_kind_in(qp_kinds(qp->type), request->kind)) {
        tell(checker, CHECKER_POST_KIND, qpn, NULL, "a %s is no request of this transport",
             kind_name(request->kind));
    } else if (tell_inline(checker, qp, request)) {
        return;
    } else if (request->sge_count > qp->capacity.send_sges) {
        tell(checker, CHECKER_SGE_COUNT, qpn, NULL, "a request has %u SGEs, and max_send_sge is %u",
             request->sge_count, qp->capacity.send_sges);
    } else if (!tell_atomic(checker, qp, request)) {
        tell(checker, CHECKER_POST_REFUSED, qpn, NULL,
             "a %s of %" PRIu64 " bytes is refused (EINVAL)", kind_name(request->kind),
             bytes_of(request));
    }
}

void checker_send_refused(struct checker *checker, uint32_t qpn, enum qp_state state,
                          const struct send_request *request, enum status status)
{
    const struct checked_qp *qp = find_qp(checker, qpn);
    if (qp == NULL) {
        return;
    }
    if (status == STATUS_FULL) {
        tell(checker, CHECKER_POST_FULL, qpn, NULL,
             "a request is refused (ENOMEM): max_send_wr is %u, and all slots are in use",
             qp->capacity.sends);
    } else {
        tell_invalid_send(checker, qp, state, request);
    }
}

void checker_receive_refused(struct checker *checker, uint32_t qpn, enum qp_state state,
                             uint32_t count, enum status status)
{
    const struct checked_qp *qp = find_qp(checker, qpn);
    if (status == STATUS_FULL) {
        tell(checker, CHECKER_POST_FULL, qpn, NULL,
             "a receive is refused (ENOMEM): all slots are in use");
    } else if (qp != NULL && state == QP_RESET) {
        tell(checker, CHECKER_POST_STATE, qpn, NULL,
             "a receive is posted to a queue pair in RESET: it takes receives from INIT on");
    } else if (qp != NULL && qp->srq == 0 && count > qp->capacity.receive_sges) {
        tell(checker, CHECKER_SGE_COUNT, qpn, NULL, "a receive has %u SGEs, and max_recv_sge is %u",
             count, qp->capacity.receive_sges);
    } else {
        tell(checker, CHECKER_POST_REFUSED, qpn, NULL, "a receive is refused%s",
             qp != NULL && qp->srq != 0 ? ": the queue pair takes those of its shared queue" : "");
    }
}
