/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_access - loads and stores as a program sees them: beats of 8 bytes, and these together again.
 *
 * Purpose    Cuts an access into the requests that shm.h takes, and collects their results.
 * Inputs     An access; struct lant_shm_done of each of its beats.
 * Outputs    Requests; the data of a load; when the access is answered, and when it is done.
 * Ownership  Values; the bytes are the caller's.
 * Units      Bytes, the lowest address first.
 * Limits     1, 2 or 4 bytes, or a multiple of 8 up to LANT_SHM_ACCESS_MAX; the address is a
 *            multiple of 1, 2, 4 or 8 accordingly. Any other access needs a program that does it
 *            byte by byte, as a bus does.
 * Source     Lant 5.2.2.1; LNI-20, LNI-28.
 */
#ifndef TRANSPORT_LANT_SHM_ACCESS_H
#define TRANSPORT_LANT_SHM_ACCESS_H

#include "transport/lant/shm.h"

#define LANT_SHM_ACCESS_MAX 4096u /* A burst does not cross a line of 4 KB. */

struct lant_shm_access {
    uint64_t address;          /* Global. */
    uint64_t timeout;          /* 0: the configuration's. */
    uint64_t operand, compare; /* An atomic's. */
    uint32_t bytes;
    uint32_t token;
    uint8_t bus_id, protection;
    uint8_t atomic; /* enum lant_atomic: 8 bytes, neither a store nor exclusive. */
    bool store, lock, accelerator;
};

enum lant_shm_access_verdict {
    LANT_SHM_ACCESS_GOOD,
    LANT_SHM_ACCESS_BYTES_WRONG, /* 0, 3, 5, 6, 7, 9 ... bytes, or too many. */
    LANT_SHM_ACCESS_UNALIGNED,
    LANT_SHM_ACCESS_LOCK_LONG, /* Exclusive, but more than a beat: it cannot be done at once. */
    LANT_SHM_ACCESS_ATOMIC_WRONG,
};

enum lant_shm_access_verdict lant_shm_access_judge(const struct lant_shm_access *access);

/* How many requests a good access is. */
static inline uint32_t lant_shm_access_beats(const struct lant_shm_access *access)
{
    return access->bytes < 8 ? 1 : access->bytes / 8;
}

/* One of them. `bytes` are those of the whole access; NULL: a load. */
struct lant_shm_request lant_shm_access_beat(const struct lant_shm_access *access, uint32_t beat,
                                             const uint8_t *bytes);

/* The state of an access. */
struct lant_shm_gather {
    uint16_t unanswered; /* Beats without an answer on the bus. */
    uint16_t unfinished; /* Beats of which something is still to come: at 0, all peers have it. */
    uint8_t response;    /* On the bus: the first that is no success, or the last. */
    bool denied;         /* A beat that was acknowledged early was not done. */
    bool fake;           /* Data of a load is nobody's. */
};

struct lant_shm_gather lant_shm_gather_begin(const struct lant_shm_access *access);
/* `bytes` takes the data of a load; NULL: a store. */
void lant_shm_gather_add(struct lant_shm_gather *gather, const struct lant_shm_access *access,
                         const struct lant_shm_done *done, uint8_t *bytes);

#endif
