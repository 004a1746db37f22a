/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_view - memory of a peer that is mapped here: the side of the one who reaches it.
 *
 * An access through the kernel takes a system call, and beyond some KB a search for each page. An
 * access to mapped memory takes a copy. To map memory costs both sides once, so a peer is asked for
 * the memory of a region only when accesses through the kernel have cost as much (docs/decisions/
 * 0061). The board says for each access which extent has the memory, so a view that the owner has
 * taken back is never used again.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"

#define VIEWS    16
#define ACCOUNTS 16

/* The cost of an access through the kernel beyond one to mapped memory, and of pages that are
 * exchanged there and back: medians of two machines. */
#define ACCESS_NS        1000u
#define ACCESS_NS_A_KB   50u
#define EXCHANGE_NS      25000u
#define EXCHANGE_NS_A_KB 1100u
#define EXCHANGE_KB_MAX  (UINT64_C(1) << 32)

struct shm_view {
    uint64_t extent;       /* 0: none. */
    uint64_t start, bytes; /* Addresses of the peer. */
    uint8_t *here;
    bool writable;
};

/* The cost of accesses to a region since the peer was asked for it. */
struct account {
    uint32_t key;
    uint32_t asked;  /* How often; each time makes the next one twice as dear. */
    uint64_t extent; /* The one that was asked for, since it is on the board. */
    uint64_t spent_ns;
};

struct shm_views {
    struct shm_view view[VIEWS];
    uint32_t next; /* The view that goes when all are used. */
    struct account account[ACCOUNTS];
};

static struct shm_view *find(struct shm_views *views, uint64_t extent)
{
    for (uint32_t i = 0; i < VIEWS; i++) {
        if (views->view[i].extent == extent) {
            return &views->view[i];
        }
    }
    return NULL;
}

uint8_t *shm_view_at(const struct shm_link *link, const struct shm_grant *grant, uint32_t bytes,
                     bool write)
{
    if (LIKELY(grant->extent == 0) || link->views == NULL) {
        return NULL;
    }
    const struct shm_view *view = find(link->views, grant->extent);
    if (view == NULL || (write && !view->writable) || grant->memory < view->start ||
        grant->memory - view->start > view->bytes ||
        bytes > view->bytes - (grant->memory - view->start)) {
        return NULL;
    }
    return view->here + (grant->memory - view->start);
}

bool shm_link_maps(const struct link *base)
{
    return CONTAINER_OF_CONST(base, struct shm_link, link)->mapped > 0;
}

/* -- Asking -------------------------------------------------------------------------------------*/

static void ask(const struct shm_link *link, uint32_t key)
{
    const struct shm_ask message = {.mark = shm_mark_of(sizeof(message)), .key = key};
    /* Without an answer the memory is reached as before. */
    (void)!local_send(link->socket, &message, sizeof(message), NULL, 0);
}

/* Accounts of other regions may have the place: they begin anew. */
static struct account *account_of(struct shm_views *views, uint32_t key)
{
    struct account *account = &views->account[(key >> 8) % ACCOUNTS];
    if (account->key != key) {
        *account = (struct account){.key = key};
    }
    return account;
}

/* The price doubles each time that the peer was asked in vain. */
static uint64_t price_ns(const struct account *account, uint64_t region_bytes)
{
    const uint64_t kb = region_bytes >> 10;
    const uint64_t ns =
        EXCHANGE_NS + EXCHANGE_NS_A_KB * (kb < EXCHANGE_KB_MAX ? kb : EXCHANGE_KB_MAX);
    return account->asked < 16 ? ns << account->asked : UINT64_MAX;
}

void shm_view_charge(struct shm_link *link, const struct shm_grant *grant, uint32_t key,
                     uint32_t bytes, uint32_t count)
{
    if (link->views == NULL) {
        link->views = calloc(1, sizeof(*link->views));
        if (link->views == NULL) {
            return;
        }
    }
    struct account *account = account_of(link->views, key);
    account->spent_ns += count * (ACCESS_NS + ACCESS_NS_A_KB * (uint64_t)(bytes >> 10));
    /* It is on the board: there is an answer. */
    const bool there = grant->extent != 0 && grant->extent != account->extent;
    if (there || account->spent_ns >= price_ns(account, grant->bytes)) {
        account->asked += !there;
        account->extent = grant->extent;
        account->spent_ns = 0;
        ask(link, key);
    }
}

/* -- Being answered -----------------------------------------------------------------------------*/

static void close_view(struct shm_link *link, struct shm_view *view)
{
    if (view->extent != 0) {
        syscall(SYS_munmap, view->here, view->bytes);
        link->mapped--;
    }
    *view = (struct shm_view){0};
}

static uint8_t *map(const struct shm_offer *offer, int fd, int protection)
{
    void *pages =
        (void *)syscall(SYS_mmap, NULL, offer->bytes, protection, MAP_SHARED, fd, offer->offset);
    if (pages != MAP_FAILED && system_advise(pages, offer->bytes, MADV_DONTFORK) != 0) {
        syscall(SYS_munmap, pages, offer->bytes);
        pages = MAP_FAILED;
    }
    return pages == MAP_FAILED ? NULL : pages;
}

/* Whole pages, all of them in the file: pages beyond its end would end this program. */
static bool makes_sense(const struct shm_offer *offer, int fd)
{
    struct stat file;
    const uint64_t page = system_page_bytes();
    return offer->extent != 0 && offer->bytes > 0 && offer->start % page == 0 &&
           offer->bytes % page == 0 && offer->offset % page == 0 &&
           offer->bytes <= UINT64_MAX - offer->start && system_status(fd, &file) == 0 &&
           S_ISREG(file.st_mode) && offer->offset <= (uint64_t)file.st_size &&
           offer->bytes <= (uint64_t)file.st_size - offer->offset;
}

static struct shm_view *place_for(struct shm_link *link)
{
    struct shm_views *views = link->views;
    struct shm_view *view = find(views, 0);
    if (view == NULL) {
        view = &views->view[views->next++ % VIEWS];
        close_view(link, view);
    }
    return view;
}

void shm_view_offered(struct shm_link *link, const struct shm_offer *offer, int fd)
{
    struct shm_view *known =
        link->views == NULL || offer->extent == 0 ? NULL : find(link->views, offer->extent);
    if (known != NULL && offer->bytes == 0) {
        close_view(link, known);
    }
    /* Nobody has asked, or it was asked for twice. */
    if (link->views == NULL || known != NULL || !makes_sense(offer, fd)) {
        return;
    }
    uint8_t *here = map(offer, fd, PROT_READ | PROT_WRITE);
    const bool writable = here != NULL;
    here = writable ? here : map(offer, fd, PROT_READ);
    if (here != NULL) {
        *place_for(link) = (struct shm_view){.extent = offer->extent,
                                             .start = offer->start,
                                             .bytes = offer->bytes,
                                             .here = here,
                                             .writable = writable};
        link->mapped++;
    }
}

void shm_views_close(struct shm_link *link)
{
    for (uint32_t i = 0; link->views != NULL && i < VIEWS; i++) {
        close_view(link, &link->views->view[i]);
    }
    free(link->views);
    link->views = NULL;
}
