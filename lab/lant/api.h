/* SPDX-License-Identifier: BSD-2-Clause
 *
 * api - the calls of a node's program: transfers, notifications, loads, stores, fences.
 *
 * Purpose    The calls of Tables 3.4 and 3.5, and fences, in the virtual world: a call is begun,
 *            and returns later.
 * Inputs     Calls; the node's reports to its program; the time.
 * Outputs    call->result and call->returned_ps, then call->on_return, if it is not NULL.
 * Ownership  A call is the caller's; it must stay where it is until it has returned, a store until
 *            lant_api_poll no longer says LANT_STORE_WAITS. Buffers likewise.
 * Units      Bytes; addresses of the node's own memory, or global ones where it says so.
 * Limits     Calls that wait for the same kind of notification get them in the order in which they
 *            began. A load or store that is no single access of the bus goes out as several, one
 *            after the other.
 * Source     Lant Tables 3.4, 3.5, 3.3.4.3, 6.4; LNI-53, LNI-67. Our choice: fences, which 4.1.4.1
 *            asks for, and the results of loads and stores.
 *
 * config_accelerator() and work_accelerator() are in accelerator.h.
 *
 * No call returns from within another one: on_return is always called by an event of its own, and
 * may begin the next call.
 */
#ifndef LAB_LANT_API_H
#define LAB_LANT_API_H

#include "lab/lant/node.h"

/* The result of a call. Table 3.5 prints the first two. */
enum lant_result {
    LANT_RESULT_OK = 0,
    LANT_RESULT_TIMEOUT = 1,
    LANT_RESULT_REFUSED = 2, /* The interface does not take the request. */
    LANT_RESULT_FAILED = 3,  /* The network gave up, or the peer refused. */
};

enum lant_call_kind {
    LANT_CALL_SEND,
    LANT_CALL_SEND_BLOCKING,
    LANT_CALL_CONFIRM,
    LANT_CALL_RECV,
    LANT_CALL_QUICK_RECV,
    LANT_CALL_SHM_WRITE,
    LANT_CALL_SHM_READ,
    LANT_CALL_SHM_FENCE,
    LANT_CALL_RDMA_FENCE,
};

enum lant_call_step {
    LANT_CALL_PAYS,      /* Its cost passes. */
    LANT_CALL_WANTS,     /* It asks for room until there is some. */
    LANT_CALL_WAITS,     /* For what makes it return. */
    LANT_CALL_RETURNING, /* It has its result. */
    LANT_CALL_RETURNED,
};

struct lant_api;
struct lant_call;
typedef void (*lant_return)(struct lant_call *call);

struct lant_call {
    /* The caller's; kept from call to call. */
    lant_return on_return;
    void *context;
    /* The result. */
    enum lant_result result;
    uint64_t returned_ps;
    struct {
        uint64_t bytes;
        uint64_t address; /* Where the data is. */
        uint32_t node;    /* The sender. */
    } received;           /* RecvStruct: of recv and quick_recv that came to OK. */
    /* The API's. */
    struct list place, store_place; /* Until it has returned; until it is done. */
    struct sim_event event;
    struct lant_api *api;
    uint8_t kind, step; /* enum lant_call_kind, enum lant_call_step. */
    uint32_t name;      /* Its transfer's tag, or its accesses' token. */
    uint64_t order;     /* Calls begin in this order. */
    uint64_t failed;    /* Transfers that had failed when it began. */
    struct lant_work work;
    struct lant_shm_access access; /* The one under way. */
    struct lant_shm_gather gather; /* Its answers. */
    const uint8_t *from;           /* A store's bytes; a load's go `to` here. */
    uint8_t *to;
    uint64_t done, left; /* Bytes before and behind the access under way. */
    uint32_t unfinished; /* Beats that have not come whole. */
    uint32_t node;       /* A fence's, or an access's. */
    uint32_t fence;
    bool denied; /* A store, of a fence one that it covers, was not done. */
};

static inline bool lant_call_has_returned(const struct lant_call *call)
{
    return call->step == LANT_CALL_RETURNED;
}

/* Logic of the node that uses the interface beside the CPU: it has the FPGA's queue. Transfers of a
 * device have lant_device_name() as their tag, its accesses have it as their token. The calls must
 * not call the node; they may schedule events. */
struct lant_device {
    struct list place;
    uint32_t number;
    void (*on_done)(struct lant_device *device, const struct lant_shm_done *done);
    void (*on_notification)(struct lant_device *device,
                            const struct lant_notification *notification);
    void (*on_stored)(struct lant_device *device, uint64_t address);
};

#define LANT_DEVICE_NAMES (UINT32_C(1) << 19) /* Tags have 20 bits on their way. */

static inline uint32_t lant_device_name(const struct lant_device *device)
{
    return LANT_DEVICE_NAMES | device->number;
}

struct lant_api_config {
    uint64_t send_ps;    /* The program's time for a call that puts a transfer on the queue. */
    uint64_t timeout_ps; /* How long calls wait for a notification; LANT_NEVER: for ever. */
};

struct lant_api_counters {
    uint64_t sends, notified; /* Transfers submitted; notifications of them that were read. */
    uint64_t failed;          /* Notifications that say so. */
    uint64_t strange;         /* Notifications and answers that are nobody's. */
};

/* Notifications that were read while something else was looked for. */
enum lant_aside {
    LANT_ASIDE_SENT,
    LANT_ASIDE_RECV,
    LANT_ASIDE_RECV_REG,
    LANT_ASIDE_COUNT,
};

struct lant_api {
    struct lant_node *node;
    struct lant_api_config config;
    struct list calls;  /* Calls that have not returned, in the order in which they began. */
    struct list stores; /* Loads and stores that are not done. */
    struct list devices;
    struct sim_event wake; /* Something has happened: calls look again. */
    uint64_t began;        /* Calls. */
    uint32_t device_count;
    struct lant_notifications aside[LANT_ASIDE_COUNT];
    struct lant_api_counters counters;
};

/* Takes the node's program for itself. `api` must not move until lant_api_close. */
void lant_api_open(struct lant_api *api, const struct lant_api_config *config,
                   struct lant_node *node);
/* Calls under way never return. */
void lant_api_close(struct lant_api *api);
/* Gives the device its number. */
void lant_api_add_device(struct lant_api *api, struct lant_device *device);

/* -- Transfers ----------------------------------------------------------------------------------*/

/* From the node's own memory to a global address. send() returns when all data is in the network;
 * its source must not change until it is confirmed. LANT_RESULT_REFUSED: no such transfer. A full
 * queue makes the call wait. */
void lant_api_send(struct lant_api *api, struct lant_call *call, uint64_t source,
                   uint64_t destination, uint32_t bytes);
/* Returns when the receiver has acknowledged all data, or with a timeout: the transfer then goes
 * on, and confirm_notif() may still get its notification. */
void lant_api_send_blocking(struct lant_api *api, struct lant_call *call, uint64_t source,
                            uint64_t destination, uint32_t bytes);
/* Returns with the oldest unread notification of a send(). */
void lant_api_confirm_notif(struct lant_api *api, struct lant_call *call);
/* Return with the oldest arrival: one whose sender has said that all has come, or one that the
 * registration module has seen complete. */
void lant_api_recv(struct lant_api *api, struct lant_call *call);
void lant_api_quick_recv(struct lant_api *api, struct lant_call *call);
/* Returns when every transfer that was submitted has been notified. FAILED: one of those that were
 * under way has failed. */
void lant_api_rdma_fence(struct lant_api *api, struct lant_call *call);

/* Reads and forgets what has arrived: of a program that hears of its data in another way. */
void lant_api_forget_arrivals(struct lant_api *api);

/* -- Loads and stores ---------------------------------------------------------------------------*/

/* Returns when the bus has answered, which early acknowledgement does before the peer has. */
void lant_api_shm_write(struct lant_api *api, struct lant_call *call, uint64_t address,
                        const void *bytes, uint64_t length);
void lant_api_shm_read(struct lant_api *api, struct lant_call *call, uint64_t address, void *bytes,
                       uint64_t length);
/* Returns when every earlier store to `node`, or LANT_ALL_NODES, is done. FAILED: one of those that
 * were under way is not. */
void lant_api_shm_fence(struct lant_api *api, struct lant_call *call, uint32_t node);

enum lant_store_state {
    LANT_STORE_WAITS,
    LANT_STORE_DONE,
    LANT_STORE_FAILED,
};

/* The state of a store. */
enum lant_store_state lant_api_poll(const struct lant_call *call);

#endif
