/* SPDX-License-Identifier: BSD-2-Clause
 *
 * region - memory regions, memory windows, and the table that finds them by key.
 *
 * Purpose    Judges every access that a program or a peer names by (key, address, length), by the
 *            rule of nic/reach.h.
 * Inputs     region_add and friends from verbs; region_judge and the window calls from the engines.
 * Outputs    A verdict, and the segment of this process's memory the access stands for.
 * Ownership  The caller owns each struct and keeps it in place while it is in the table.
 * Limits     The table's capacity, given at init; at most REGION_COUNT_MAX.
 * Source     IBTA Vol. 1 chapter 10.6 (memory management), 10.6.7 (windows).
 */
#ifndef NIC_REGION_H
#define NIC_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/prng.h"
#include "base/status.h"
#include "nic/reach.h"
#include "nic/types.h"

/* Protection domains are compared by address only. */
struct pd {
    uint32_t users;  /* Objects that live in it; it cannot go while there are any. */
    uint32_t number; /* The world's number of it for other processes; 0: none yet. */
};

struct qp;

/* One entry of the key table. A window that is not bound (yet, or since it was invalidated) is in
 * the table with `bound` NULL; its key opens nothing. A bound window carries its own translation:
 * the region it opens cannot change or go before the window is unbound. */
struct region {
    enum region_kind kind;
    uint32_t key; /* The rkey (and the lkey, see region_lkey). A bind changes the low 8 bits. */
    struct pd *pd;
    uint64_t start; /* First address of the region as peers and SGEs name it. */
    uint64_t bytes;
    uint64_t memory;      /* Address in this process that `start` stands for. */
    uint32_t access;      /* enum access bits. */
    bool whole_space;     /* Implicit on-demand region: every address, each standing for itself. */
    bool null;            /* Every address: bytes written are lost, bytes read are 0. */
    struct region *bound; /* Windows: the region they open; NULL when not bound. */
    const struct qp *owner; /* Type 2 windows: the queue pair they are bound to. */
    uint32_t windows;       /* Regions: windows bound to it; it cannot go while there are any. */
};

/* The region as the rule of nic/reach.h sees it. The names of domains and queue pairs are their
 * addresses. */
static inline struct reach_region region_view(const struct region *region)
{
    return (struct reach_region){
        .open = region->kind == REGION_MEMORY || region->bound != NULL,
        .null = region->null,
        .kind = region->kind,
        .access = region->access,
        .domain = (uintptr_t)region->pd,
        .owner = (uintptr_t)region->owner,
        .start = region->start,
        .bytes = region->bytes,
        .memory = region->memory,
    };
}

/* Entries a table can have at most: then half of all keys are free, so drawing one is quick. With
 * short keys there are fewer. */
#define REGION_COUNT_MAX       (1u << 23)
#define REGION_SHORT_KEY_BITS  24
#define REGION_SHORT_COUNT_MAX (1u << 15)

/* The upper 24 bits of a key are random and unique in the table: the hash is those bits, masked. */
struct region_table {
    struct region **slots; /* Open addressing; 2^n, at least half of them NULL. */
    uint32_t mask;
    uint32_t count, count_max;
    uint32_t owned_windows; /* Bound type 2 windows. */
    uint8_t key_bits;       /* 32, or REGION_SHORT_KEY_BITS: the upper bits are 0. */
    uint8_t lkey_bits;      /* An lkey is the key with these bits changed; 0: they are equal. */
    struct prng *prng;
};

/* The arguments of ibv_reg_mr. */
struct region_request {
    uint64_t address;
    uint64_t bytes;
    uint64_t start;   /* The iova; equal to `address` unless the program chose another. Not looked
                       * at with ACCESS_ZERO_BASED, which means 0. */
    uint32_t access;  /* enum access bits, without the optional ones verbs take off. */
    bool whole_space; /* Implies ACCESS_ON_DEMAND; of the above only `access` is looked at. */
};

/* Slots (pointers) for a table of at most `count_max` entries. */
size_t region_table_slots(uint32_t count_max);
void region_table_init(struct region_table *table, uint32_t count_max, struct region **slots,
                       struct prng *prng);

/* Fills *region, draws its key, enters it, counts it in `pd`. STATUS_INVALID: access bits that are
 * not known or contradict each other (remote write or atomic without local write; persistence of
 * memory that may come and go), or a range that wraps. Whether memory can be made persistent at all
 * is the caller's to know. STATUS_FULL: no room in the table. */
MUST_USE enum status region_add(struct region_table *table, struct pd *pd,
                                const struct region_request *request, struct region *region);

/* A null region (ibv_alloc_null_mr), for local use only: every address of it stands for
 * REGION_NULL_BYTES that may be written, or as many behind them that are 0. STATUS_FULL as above.
 */
#define REGION_NULL_BYTES 8192
MUST_USE enum status region_add_null(struct region_table *table, struct pd *pd, uint64_t memory,
                                     struct region *region);

/* Takes a region out. STATUS_BUSY while windows are bound to it. */
MUST_USE enum status region_remove(struct region_table *table, struct region *region);

/* ibv_rereg_mr: changes what the three `change_` flags name. The key stays, because programs that
 * told it a peer rely on that, as hardware lets them (IBTA 11.2.8.4 leaves it open). The region is
 * untouched unless STATUS_OK. STATUS_INVALID: no flag, or as for region_add. STATUS_BUSY while
 * windows are bound to it. `pd` and `request` are looked at only as far as the flags ask. */
MUST_USE enum status region_change(struct region *region, struct pd *pd,
                                   const struct region_request *request, bool change_translation,
                                   bool change_pd, bool change_access);

/* A window that is not bound yet. `kind` is one of the window kinds. STATUS_FULL as above. */
MUST_USE enum status window_add(struct region_table *table, struct pd *pd, enum region_kind kind,
                                struct region *window);
/* Unbinds and takes it out. */
void window_remove(struct region_table *table, struct region *window);

/* The arguments of a bind; `bytes` 0 unbinds a type 1 window. */
struct window_bind {
    struct region *window;
    struct region *region; /* May be NULL; a bind of `bytes` other than 0 then fails. */
    uint64_t address;      /* As peers name it in `region`, even for a zero-based window. */
    uint64_t bytes;
    uint32_t access; /* Remote bits, of ACCESS_FLUSH those that the region has, and
                      * ACCESS_ZERO_BASED (type 2 only). */
    uint32_t key;    /* The new key; differs from the old in the low 8 bits only. The caller that
                        posts the bind chooses it, for type 1 too: ibv_bind_mw has to tell the
                        program at once, not when the bind is executed. */
};

/* Binds, called in send-queue order by the requester of `qp`, which lives in `pd`. Returns false if
 * the bind is not allowed (COMPLETION_WINDOW_BIND); the window then stays as it was. */
MUST_USE bool window_bind_execute(struct region_table *table, const struct window_bind *bind,
                                  const struct qp *qp, const struct pd *pd);

/* Remote (SEND with invalidate) or local invalidate: the window is no longer bound. False, and
 * nothing changes, if `key` is not that of a bound type 2 window, or the window is not bound to
 * `qp`, or not of `pd`. NULL leaves one of the two out, but not both. */
MUST_USE bool window_invalidate(struct region_table *table, uint32_t key, const struct qp *qp,
                                const struct pd *pd);

/* The queue pair goes away: unbinds every window bound to it, so that no later queue pair at the
 * same address inherits them. Cheap unless type 2 windows are bound. */
void window_forget_owner(struct region_table *table, const struct qp *qp);

/* From now on the key opens nothing; a window is unbound. The entry stays in the table until its
 * owner removes it. */
void region_shut(struct region_table *table, struct region *region);

/* May `pd` (and `qp`, for type 2 windows) reach [address, address + bytes) through `key` with all
 * of `access`? Local work passes an lkey, a `qp` of NULL, and ACCESS_LOCAL_WRITE or, to read, 0. A
 * window is no lkey: it answers REACH_FORBIDDEN when `qp` is NULL or `access` has no remote bit.
 * On REACH_ALLOWED *segment is the memory; for 0 bytes the key is not judged (IBTA C9-88: a
 * zero-length access needs no valid key) and the segment is empty. */
MUST_USE enum reach_verdict region_judge(const struct region_table *table, uint32_t key,
                                         const struct pd *pd, const struct qp *qp, uint64_t address,
                                         uint32_t bytes, uint32_t access, struct segment *segment);

/* The range of a FLUSH, as the peer names it. */
struct region_flush {
    uint64_t address;
    uint32_t bytes;
    uint32_t access; /* enum access bits, all of which it takes. */
    bool whole;      /* All that the key opens: address and bytes are not looked at. */
};

/* Memory of this process; longer than a segment may be. */
struct region_range {
    uint64_t address, bytes;
};

/* May `qp` of `pd` flush this range through `key`? The key is judged for 0 bytes as well. On
 * REACH_ALLOWED *range is the memory. */
MUST_USE enum reach_verdict region_judge_flush(const struct region_table *table, uint32_t key,
                                               const struct pd *pd, const struct qp *qp,
                                               const struct region_flush *flush,
                                               struct region_range *range);

/* The entry whose key is exactly `key`, bound or not; NULL if there is none. */
struct region *region_find(const struct region_table *table, uint32_t key);

/* The key for local use, and the entry that it names; NULL if there is none. */
static inline uint32_t region_lkey(const struct region_table *table, const struct region *region)
{
    return region->key ^ table->lkey_bits;
}
struct region *region_find_local(const struct region_table *table, uint32_t lkey);

/* The entry that `key` names whatever its generation, the low 8 bits; NULL if there is none. */
struct region *region_find_generation(const struct region_table *table, uint32_t key);

#endif
