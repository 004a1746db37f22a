/* SPDX-License-Identifier: BSD-2-Clause
 *
 * translate - the address translation module: before the NIC reads the host's memory, it needs the
 * region's entry (MPT) and the page's (MTT), and reads those that it has not cached.
 *
 * One read is under way at a time, and the others wait behind it, as in the public model. An entry
 * that is cached costs no time: it is looked up while others are read.
 *
 * Each connection has a region for its send queue. Its data lie in another region of its own, or
 * with those of all others in one.
 */
#include "lab/csrna/internal.h"
#include "lab/csrna/machine.h"

#define PAGE 4096u

static bool is_modelled(const struct csrna_nic *nic)
{
    return nic->config.mpt_entries != 0;
}

/* The numbers of a read's entries: send queues first. */
static uint32_t region_of(const struct csrna_nic *nic, const struct csrna_dma *dma)
{
    if (dma->kind == CSRNA_DMA_WQES) {
        return dma->number;
    }
    return nic->qp_count + (nic->config.own_regions ? dma->number : 0);
}

static uint32_t page_of(const struct csrna_nic *nic, const struct csrna_dma *dma)
{
    const size_t offset = csrna_offset(nic->machine, dma->number, 0);
    return dma->kind == CSRNA_DMA_WQES || nic->config.own_regions
               ? region_of(nic, dma)
               : nic->qp_count + (uint32_t)(offset / PAGE);
}

/* The entry is read like anything else that PCIe brings. */
static void read_entry(struct csrna_nic *nic, uint32_t bytes)
{
    struct csrna_translation *translation = &nic->translation;
    const uint64_t read_ps = csrna_port_move(nic, &nic->pcie_in, bytes) + nic->pcie_in.latency_ps;
    sim_schedule(nic->sim, &translation->event, read_ps);
}

/* Goes on with the oldest read, from the look-up that is its next one. False: it waits. */
static bool translate_next(struct csrna_nic *nic)
{
    struct csrna_translation *translation = &nic->translation;
    const uint32_t at = translation->head % CSRNA_DMA_MAX;
    const struct csrna_untranslated *read = &translation->waiting[at];
    /* A read of nothing only keeps its place. */
    while (read->bytes != 0 && translation->looked < CSRNA_LOOKS) {
        const bool is_page = translation->looked++ == CSRNA_LOOK_PAGE;
        struct translation_cache *cache = is_page ? &translation->mtt : &translation->mpt;
        const uint32_t entry = is_page ? page_of(nic, &read->dma) : region_of(nic, &read->dma);
        if (!translation_cache_look(cache, entry)) {
            read_entry(nic, is_page ? nic->config.mtt_bytes : nic->config.mpt_bytes);
            return false;
        }
    }
    translation->looked = CSRNA_LOOK_REGION;
    translation->head++;
    csrna_read_bytes(nic, &nic->pcie_reads, &nic->pcie_in, read->bytes, read->dma);
    return true;
}

static void translate_all(struct csrna_nic *nic)
{
    struct csrna_translation *translation = &nic->translation;
    while (translation->head != translation->tail && translate_next(nic)) {
    }
}

static void on_entry(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    translate_all(CONTAINER_OF(event, struct csrna_translation, event)->nic);
}

void csrna_translated_read(struct csrna_nic *nic, uint32_t bytes, struct csrna_dma dma)
{
    struct csrna_translation *translation = &nic->translation;
    if (!is_modelled(nic)) {
        csrna_read_bytes(nic, &nic->pcie_reads, &nic->pcie_in, bytes, dma);
        return;
    }
    CHECK(translation->tail - translation->head < CSRNA_DMA_MAX);
    translation->waiting[translation->tail++ % CSRNA_DMA_MAX] =
        (struct csrna_untranslated){.dma = dma, .bytes = bytes};
    if (!sim_event_scheduled(&translation->event)) {
        translate_all(nic);
    }
}

static void open_cache(struct csrna_nic *nic, struct translation_cache *cache, uint32_t room,
                       uint32_t all, void **memory)
{
    *memory = csrna_zeroed(translation_cache_bytes(room, all));
    nic->bytes += translation_cache_bytes(room, all);
    translation_cache_init(cache, room, all, nic->node, *memory);
}

void csrna_translation_open(struct csrna_nic *nic)
{
    struct csrna_translation *translation = &nic->translation;
    const struct csrna_config *config = &nic->config;
    if (!is_modelled(nic)) {
        return;
    }
    translation->nic = nic;
    translation->waiting = csrna_zeroed(CSRNA_DMA_MAX * sizeof(translation->waiting[0]));
    sim_event_init(&translation->event, on_entry);
    const size_t data = csrna_offset(nic->machine, nic->qp_count, 0);
    const uint32_t pages = nic->qp_count + (uint32_t)(data / PAGE) + 1;
    open_cache(nic, &translation->mpt, config->mpt_entries, 2 * nic->qp_count + 1,
               &translation->memory[0]);
    open_cache(nic, &translation->mtt, config->mtt_entries, pages + nic->qp_count,
               &translation->memory[1]);
}

void csrna_translation_count_anew(struct csrna_nic *nic)
{
    struct csrna_translation *translation = &nic->translation;
    translation->mpt.hits = translation->mpt.misses = 0;
    translation->mtt.hits = translation->mtt.misses = 0;
}

void csrna_translation_close(struct csrna_nic *nic)
{
    if (is_modelled(nic)) {
        csrna_free(nic->translation.waiting);
        csrna_free(nic->translation.memory[0]);
        csrna_free(nic->translation.memory[1]);
    }
}
