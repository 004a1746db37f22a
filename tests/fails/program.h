/* SPDX-License-Identifier: BSD-2-Clause
 *
 * program - a program that does all it can with verbs and the connection manager, and judges each
 * call that fails: something has failed under it, the errno tells of that, and the same call
 * succeeds at once when it is repeated.
 */
#ifndef TESTS_FAILS_PROGRAM_H
#define TESTS_FAILS_PROGRAM_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is over sooner is quick; what takes longer hangs. */
#define PATIENCE_MS 8000
/* So long a datagram may be under way; one that was lost is sent again. */
#define DATAGRAM_MS 300

struct program {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; /* With events in the channel. */
    union ibv_gid gid;
    uint8_t *memory; /* MEMORY_BYTES, registered as `mr`. */
    struct ibv_mr *mr;
};

/* Or an IPv6 address, of which there is neither a group nor a manager here. */
bool has_ipv4(const struct program *p);

#define MEMORY_BYTES ((size_t)1 << 18)
#define ACCESS_ALL                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* -- Judging ------------------------------------------------------------------------------------*/

/* A call has failed, with that errno. Ends the program if it must not. */
void judge(const char *call, int reason);
/* Likewise, where an event or a status says that something has failed. */
void judge_outcome(const char *what, int outcome);
/* Ends the program if it is not so. */
void must(bool good, const char *what, int reason);

uint64_t now_ms(void);

/* Calls that return a pointer, 0 or an errno, and at least 0 or -1 with an errno. */
#define POINTER(call)                                                                              \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        __typeof__(call) answer_ = (call);                                                         \
        if (answer_ == NULL) {                                                                     \
            judge(#call, errno);                                                                   \
            answer_ = (call);                                                                      \
            must(answer_ != NULL, #call " again", errno);                                          \
        }                                                                                          \
        answer_;                                                                                   \
    })
#define ZERO(call)                                                                                 \
    do {                                                                                           \
        int answer_ = (call);                                                                      \
        if (answer_ != 0) {                                                                        \
            judge(#call, answer_);                                                                 \
            answer_ = (call);                                                                      \
            must(answer_ == 0, #call " again", answer_);                                           \
        }                                                                                          \
    } while (0)
#define NUMBER(call)                                                                               \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        __typeof__(call) answer_ = (call);                                                         \
        if (answer_ < 0) {                                                                         \
            judge(#call, errno);                                                                   \
            answer_ = (call);                                                                      \
            must(answer_ >= 0, #call " again", errno);                                             \
        }                                                                                          \
        answer_;                                                                                   \
    })

/* -- Parts --------------------------------------------------------------------------------------*/

/* device.c: the device is there; its files and netlink; what `nonic stat` is told. */
void open_program(struct program *p);
void close_program(struct program *p);
void look_at_files(void);
void ask_netlink(void);
void ask_counters(void);
void use_fork(void);
/* Do counters of the device tell of packets that were lost? */
bool losses_counted(void);

/* objects.c: everything that can be made is made, changed and destroyed. */
void make_objects(struct program *p);

/* traffic.c: queue pairs connected to each other, data compared; events. */
void move_data(struct program *p);
void take_events(struct program *p);
struct ibv_qp *make_qp(struct program *p, enum ibv_qp_type type, struct ibv_srq *srq);
void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer);
/* Posts it signaled, and waits for its success. */
void complete(struct program *p, struct ibv_qp *qp, struct ibv_send_wr *wr, const char *what);

/* manager.c: by address and port; and for another process, until something comes by `line`. */
void use_manager(void);
void serve_manager(int line);
void call_manager(uint16_t port);

/* other.c: another process, which is forked before there is a device. */
void start_other(void);
void talk_to_other(struct program *p);
void end_other(void);

#endif
