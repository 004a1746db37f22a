/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_internal - structures and functions that the cm_*.c files share: open files of the rdma_cm
 * device and their objects. The live lock guards everything.
 */
#ifndef KERNEL_CM_INTERNAL_H
#define KERNEL_CM_INTERNAL_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stdatomic.h>

#include "base/list.h"
#include "kernel/cm_newer.h"
#include "kernel/process.h"
#include "world/manager.h"

/* An event channel. */
struct cm_file {
    struct rdma_channel channel;
    struct live *live;
    struct list ids; /* struct cm_id. */
    int fd;          /* eventfd: 1 while events wait, so that the program can poll it. */
    int wait_fd;     /* eventfd: counts up for each thread that waits for an event. */
    uint32_t waiters;
    pid_t reader;      /* The thread that waited last; 0: none. */
    pid_t taker;       /* The thread that took the last event; 0: none. */
    bool readable;     /* The state that `fd` shows. */
    bool closed;       /* Its objects are gone; commands that come late fail. */
    int flags;         /* The descriptor's when it was closed. */
    uint32_t users;    /* The descriptor and commands under way; under a mutex of cm_device.c. */
    atomic_uint looks; /* How often a destroy has looked after the taker. */
};

struct cm_id {
    struct rdma_id core;
    struct list node;        /* In its file. */
    struct list multicasts;  /* struct cm_multicast. */
    struct service *service; /* The port it claims, if any. */
    bool reuse_address;      /* It may share a port until it listens. */
};

struct cm_multicast {
    struct rdma_multicast core;
    struct list node;
};

enum cm_handle_kind {
    CM_HANDLE_FREE,
    CM_HANDLE_ID,
    CM_HANDLE_MULTICAST,
};

/* cm_handles.c: the numbers by which programs know objects. 0: no memory. */
MUST_USE uint32_t cm_handle_take(enum cm_handle_kind kind, void *object);
void cm_handle_give(uint32_t handle);
/* NULL: none of this kind. */
void *cm_handle_find(uint32_t handle, enum cm_handle_kind kind);
/* Those of a kind, from `*at` on, which starts at 0 and moves on; NULL: there are no more. */
void *cm_handle_each(uint32_t *at, enum cm_handle_kind kind);

/* cm_device.c: the file behind a descriptor, NULL if there is none. */
struct cm_file *cm_file_of(int fd);
struct cm_id *cm_id_make(void);
void cm_id_destroy(struct live *live, struct cm_id *id);

/* (locked) An id that its program knows: by a number, and in the list of the file that tells it of
 * the id's events. */
void cm_id_check(const struct cm_file *file, const struct cm_id *id);

/* cm_reader.c: an id is about to be destroyed: a thread that is on its way to fetch an event about
 * it gets there first. Without the live lock. */
void cm_let_reader_take(struct cm_file *file, uint32_t handle);

/* cm_commands.c: one command without its header. Returns 0 or a positive errno. */
struct cm_command {
    struct cm_file *file;
    const uint8_t *in;
    size_t in_bytes;
    size_t out_bytes; /* Room for the response. */
};
int cm_execute(uint32_t number, struct cm_command *command);

/* The command's own struct; false: it is not all there. */
bool cm_read_in(const struct cm_command *command, void *to, size_t bytes);
#define CM_READ_IN(command, in)                                                                    \
    do {                                                                                           \
        if (!cm_read_in((command), &(in), sizeof(in))) {                                           \
            return EINVAL;                                                                         \
        }                                                                                          \
    } while (0)
/* The program's memory for a response is named in the command, as to the kernel. 0 or an errno. */
int cm_write_out(const struct cm_command *command, uint64_t response, const void *from,
                 size_t bytes);
/* An id of the command's file; NULL: it has none of this number. */
struct cm_id *cm_find_id(const struct cm_command *command, uint32_t handle);
struct rdma_cm *cm_manager(const struct cm_command *command);
struct instant cm_now(const struct cm_command *command);

/* The commands: 0 or a positive errno; of get_event EAGAIN: there is none. */
/* cm_id.c */
int cm_command_create_id(struct cm_command *command);
int cm_command_destroy_id(struct cm_command *command);
int cm_command_migrate_id(struct cm_command *command);
int cm_command_set_option(struct cm_command *command);
/* cm_address.c */
int cm_command_bind_ip(struct cm_command *command);
int cm_command_bind(struct cm_command *command);
int cm_command_listen(struct cm_command *command);
int cm_command_resolve_ip(struct cm_command *command);
int cm_command_resolve_address(struct cm_command *command);
int cm_command_resolve_route(struct cm_command *command);
int cm_command_resolve_ib_service(struct cm_command *command);
/* cm_query.c */
int cm_command_query(struct cm_command *command);
int cm_command_query_route(struct cm_command *command);
/* cm_connect.c */
int cm_command_connect(struct cm_command *command);
int cm_command_accept(struct cm_command *command);
int cm_command_reject(struct cm_command *command);
int cm_command_disconnect(struct cm_command *command);
int cm_command_init_qp_attributes(struct cm_command *command);
int cm_command_notify(struct cm_command *command);
int cm_command_get_event(struct cm_command *command);
int cm_command_write_event(struct cm_command *command);
/* cm_multicast.c */
int cm_command_join_ip_multicast(struct cm_command *command);
int cm_command_join_multicast(struct cm_command *command);
int cm_command_leave_multicast(struct cm_command *command);

/* cm_translate.c: the manager's words in the kernel's structs. */
bool cm_read_address(const void *sockaddr, size_t bytes, struct rdma_address *address);
void cm_write_address(const struct rdma_address *address, void *sockaddr);
void cm_read_parameters(const struct rdma_ucm_conn_param *from, struct rdma_parameters *to);
void cm_write_event(const struct live *live, const struct rdma_event *event,
                    struct rdma_ucm_event_resp *to);
void cm_write_path(const struct rdma_id *id, struct ib_user_path_rec *path);
void cm_pack_path(const struct ib_user_path_rec *path, struct ib_path_rec_data *data);
/* As an address of the IB family. Returns its bytes. */
uint16_t cm_write_gid(const uint8_t gid[16], void *sockaddr);
/* 0 or EINVAL: the id is not so far. */
int cm_write_qp_attributes(const struct live *live, const struct rdma_id *id, uint32_t state,
                           struct ib_uverbs_qp_attr *attr);

#endif
