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

/* A call that is over sooner is quick; a call that takes longer hangs. */
#define PATIENCE_MS 8000
/* A datagram may be under way for this time; a lost one is sent again. */
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

/* Linux has no groups of IPv6 on its loopback. */
bool has_groups(const struct program *p);
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

/* Calls that return a pointer, 0 or an errno, and at least 0 or -1 with an errno. Each failure must
 * be one that is excused, so that at last the call succeeds. */
#define POINTER(call)                                                                              \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        __typeof__(call) answer_;                                                                  \
        while ((answer_ = (call)) == NULL) {                                                       \
            judge(#call, errno);                                                                   \
            errno = 0;                                                                             \
        }                                                                                          \
        answer_;                                                                                   \
    })
#define ZERO(call)                                                                                 \
    do {                                                                                           \
        int answer_;                                                                               \
        while ((answer_ = (call)) != 0) {                                                          \
            judge(#call, answer_);                                                                 \
        }                                                                                          \
    } while (0)
#define NUMBER(call)                                                                               \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        __typeof__(call) answer_;                                                                  \
        while ((answer_ = (call)) < 0) {                                                           \
            judge(#call, errno);                                                                   \
            errno = 0;                                                                             \
        }                                                                                          \
        answer_;                                                                                   \
    })

/* -- Parts --------------------------------------------------------------------------------------*/

/* device.c: the device is there; what `nonic stat` is told; a child. */
void open_program(struct program *p);
void close_program(struct program *p);
void ask_counters(void);
void use_fork(void);
/* Do counters of the device tell of packets that were lost? */
bool losses_counted(void);

/* files.c, netlink.c: what the kernel tells of a device. */
void look_at_files(void);
void ask_netlink(void);

/* objects.c: everything that can be made is made, changed and destroyed. */
void make_objects(struct program *p);

/* traffic.c: queue pairs connected to each other, data compared; events. */
void move_data(struct program *p);
void take_events(struct program *p);
void leave_events(struct program *p);
void call_nobody(struct program *p);
struct ibv_qp *make_qp(struct program *p, enum ibv_qp_type type, struct ibv_srq *srq);
void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer);
/* Posts it signaled, and waits for its success. */
void complete(struct program *p, struct ibv_qp *qp, struct ibv_send_wr *wr, const char *what);

/* port.c: the interface goes and comes. */
void watch_port(struct program *p);

/* reader.c: a thread that waits for events. False: an event says that something failed. */
bool use_reader(const struct program *p);

/* manager.c: by address and port; and for another process, until something comes by `line`. */
void use_manager(const struct program *p);
void serve_manager(const struct program *p, int line);
void call_manager(const struct program *p, const union ibv_gid *gid, uint16_t port);

/* other.c: another process, which is forked before there is a device, and a connection to it. */
void start_other(void);
void talk_to_other(struct program *p);
/* By its manager: the program, and a child of it, to which the other is a stranger. */
void call_other(const struct program *p);
void end_other(void);

#endif
