/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define PAGE SIM_PAGE_BYTES

_Static_assert(EXANEST_PAGE_BYTES == SIM_PAGE_BYTES, "one size of pages");

void exanest_memory_open(struct exanest_memory *memory, const struct exanest_memory_config *config,
                         struct prng *prng)
{
    memset(memory, 0, sizeof(*memory));
    CHECK(config->read_cycles > 0 && (config->jitter_cycles == 0 || prng != NULL));
    memory->config = *config;
    memory->prng = prng;
    sim_memory_open(&memory->bytes, config->bytes);
}

void exanest_memory_close(struct exanest_memory *memory)
{
    for (uint32_t i = 0; i < memory->space_count; i++) {
        free(memory->spaces[i].present);
        free(memory->spaces[i].reported);
    }
    sim_memory_close(&memory->bytes);
}

/* -- The driver ---------------------------------------------------------------------------------*/

static bool overlaps(const struct exanest_space *space, uint16_t pdid, uint64_t va, uint64_t pages)
{
    return space->pdid == pdid && va < space->va + space->pages * PAGE &&
           space->va < va + pages * PAGE;
}

static void set_page(struct exanest_space *space, uint64_t page, bool present)
{
    const uint64_t bit = UINT64_C(1) << page % 64;
    space->present[page / 64] &= ~bit;
    space->present[page / 64] |= present ? bit : 0;
    space->reported[page / 64] &= ~bit;
}

static bool page_present(const struct exanest_space *space, uint64_t page)
{
    return (space->present[page / 64] >> page % 64 & 1) != 0;
}

bool exanest_memory_map(struct exanest_memory *memory, uint16_t pdid, uint64_t va, uint64_t bytes,
                        bool present)
{
    const uint64_t limit = UINT64_C(1) << EXANEST_MEMORY_BITS;
    if (va % PAGE != 0 || bytes == 0 || bytes % PAGE != 0 || va >= limit || bytes > limit - va ||
        bytes > memory->bytes.size - memory->used || memory->space_count == EXANEST_SPACES_MAX) {
        return false;
    }
    const uint64_t pages = bytes / PAGE;
    for (uint32_t i = 0; i < memory->space_count; i++) {
        if (overlaps(&memory->spaces[i], pdid, va, pages)) {
            return false;
        }
    }
    struct exanest_space *space = &memory->spaces[memory->space_count++];
    *space =
        (struct exanest_space){.pdid = pdid, .va = va, .pages = pages, .physical = memory->used};
    space->present = calloc(pages / 64 + 1, sizeof(*space->present));
    space->reported = calloc(pages / 64 + 1, sizeof(*space->reported));
    CHECK(space->present != NULL && space->reported != NULL);
    for (uint64_t i = 0; present && i < pages; i++) {
        set_page(space, i, true);
    }
    memory->used += bytes;
    return true;
}

static struct exanest_space *space_of(struct exanest_memory *memory, uint16_t pdid, uint64_t va)
{
    for (uint32_t i = 0; i < memory->space_count; i++) {
        struct exanest_space *space = &memory->spaces[i];
        if (space->pdid == pdid && va >= space->va && va - space->va < space->pages * PAGE) {
            return space;
        }
    }
    return NULL;
}

bool exanest_memory_set_present(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                                bool present)
{
    struct exanest_space *space = space_of(memory, pdid, va);
    if (space == NULL) {
        return false;
    }
    set_page(space, (va - space->va) / PAGE, present);
    return true;
}

void exanest_memory_set_late(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                             uint32_t cycles)
{
    struct exanest_space *space = space_of(memory, pdid, va);
    CHECK(space != NULL);
    space->late_cycles = cycles;
}

bool exanest_memory_next_fault(struct exanest_memory *memory, struct exanest_page_fault *fault)
{
    if (memory->fault_head == memory->fault_tail) {
        return false;
    }
    *fault = memory->faults[memory->fault_head++ % EXANEST_FAULTS_MAX];
    return true;
}

static uint8_t *physical(struct exanest_memory *memory, const struct exanest_space *space,
                         uint64_t va, uint64_t bytes)
{
    uint8_t *at;
    const enum sim_memory_verdict verdict =
        sim_memory_at(&memory->bytes, space->physical + (va - space->va), bytes, &at);
    CHECK(verdict == SIM_MEMORY_GOOD);
    return at;
}

uint8_t *exanest_memory_bytes(struct exanest_memory *memory, uint16_t pdid, uint64_t va,
                              uint64_t bytes)
{
    const struct exanest_space *space = space_of(memory, pdid, va);
    if (space == NULL || bytes == 0 || bytes > space->pages * PAGE - (va - space->va)) {
        return NULL;
    }
    return physical(memory, space, va, bytes);
}

void exanest_memory_watch(struct exanest_memory *memory, uint16_t pdid, uint64_t va, uint64_t bytes)
{
    struct exanest_space *space = space_of(memory, pdid, va);
    CHECK(space != NULL);
    space->watched_va = va;
    space->watched_bytes = bytes;
}

/* -- Accesses -----------------------------------------------------------------------------------*/

/* The driver is told once of each page that is missing. */
static void report(struct exanest_memory *memory, struct exanest_space *space, uint64_t va,
                   bool writes)
{
    const uint64_t page = (va - space->va) / PAGE;
    const uint64_t bit = UINT64_C(1) << page % 64;
    if ((space->reported[page / 64] & bit) != 0) {
        return;
    }
    if (memory->fault_tail - memory->fault_head == EXANEST_FAULTS_MAX) {
        memory->faults_lost++;
        return;
    }
    memory->faults[memory->fault_tail++ % EXANEST_FAULTS_MAX] =
        (struct exanest_page_fault){.va = va / PAGE * PAGE, .pdid = space->pdid, .writes = writes};
    space->reported[page / 64] |= bit;
}

/* Finds the word at `va`, a multiple of 16. If nobody can get at it, the response says why. */
static enum exanest_axi_response translate(struct exanest_memory *memory, uint16_t pdid,
                                           uint64_t va, bool writes, uint8_t **at)
{
    struct exanest_space *space = space_of(memory, pdid, va);
    if (space == NULL) {
        return EXANEST_AXI_DECODE_ERROR;
    }
    if (!page_present(space, (va - space->va) / PAGE)) {
        report(memory, space, va, writes);
        return EXANEST_AXI_SLAVE_ERROR;
    }
    memory->watched += writes && va - space->watched_va < space->watched_bytes;
    *at = physical(memory, space, va, EXANEST_WORD_BYTES);
    return EXANEST_AXI_OKAY;
}

bool exanest_memory_read_ready(const struct exanest_memory *memory, uint32_t axi_id)
{
    return memory->tails[axi_id] - memory->heads[axi_id] < EXANEST_READS_MAX;
}

void exanest_memory_on_read(struct exanest_memory *memory, uint16_t pdid,
                            const struct exanest_memory_read *read)
{
    CHECK(read->axi_id < EXANEST_READ_QUEUES && read->bytes > 0);
    CHECK(exanest_memory_read_ready(memory, read->axi_id));
    const uint32_t jitter = memory->config.jitter_cycles;
    const struct exanest_space *space = space_of(memory, pdid, read->address);
    const uint64_t late = (jitter == 0 ? 0 : prng_below(memory->prng, (uint64_t)jitter + 1)) +
                          (space == NULL ? 0 : space->late_cycles);
    const uint64_t offset = read->address % EXANEST_WORD_BYTES;
    memory->reads[read->axi_id][memory->tails[read->axi_id]++ % EXANEST_READS_MAX] =
        (struct exanest_read_under_way){
            .due = memory->now + memory->config.read_cycles + late,
            .address = read->address - offset,
            .taken = memory->now,
            .number = memory->reads_taken++,
            .pdid = pdid,
            .beats =
                (uint8_t)((offset + read->bytes + EXANEST_WORD_BYTES - 1) / EXANEST_WORD_BYTES),
        };
    memory->waiting |= (uint16_t)(1u << read->axi_id);
}

static const struct exanest_read_under_way *oldest(const struct exanest_memory *memory, uint32_t id)
{
    return &memory->reads[id][memory->heads[id] % EXANEST_READS_MAX];
}

/* The ID whose oldest read is the oldest of all; there is one. */
static uint32_t first_asked(const struct exanest_memory *memory)
{
    const uint32_t waiting = memory->waiting & ((1u << EXANEST_AXI_IDS) - 1);
    uint32_t first = (uint32_t)__builtin_ctz(waiting);
    for (uint32_t id = first + 1; id < EXANEST_AXI_IDS; id++) {
        if ((waiting >> id & 1) != 0 &&
            oldest(memory, id)->number - oldest(memory, first)->number > UINT32_MAX / 2) {
            first = id;
        }
    }
    return first;
}

/* The next ID in turn whose oldest read has something; EXANEST_AXI_IDS: none has. */
static uint32_t ripe(const struct exanest_memory *memory)
{
    for (uint32_t i = 1; i <= EXANEST_AXI_IDS; i++) {
        const uint32_t id = (memory->last + i) % EXANEST_AXI_IDS;
        if ((memory->waiting >> id & 1) != 0 && oldest(memory, id)->due <= memory->now &&
            (!memory->config.in_order || id == first_asked(memory))) {
            return id;
        }
    }
    return EXANEST_AXI_IDS;
}

/* A word of the oldest read of this ID. */
static void answer(struct exanest_memory *memory, uint32_t id, struct exanest_read_beat *beat)
{
    struct exanest_read_under_way *read = &memory->reads[id][memory->heads[id] % EXANEST_READS_MAX];
    uint8_t *at;
    *beat = (struct exanest_read_beat){.axi_id = (uint8_t)id, .last = read->beats == 1};
    beat->response = (uint8_t)translate(memory, read->pdid, read->address, false, &at);
    if (beat->response == EXANEST_AXI_OKAY) {
        memcpy(&beat->word, at, EXANEST_WORD_BYTES);
    }
    memory->words_read++;
    read->address += EXANEST_WORD_BYTES;
    read->beats--;
    memory->waited[id] = memory->now - read->taken;
    if (read->beats == 0 && ++memory->heads[id] == memory->tails[id]) {
        memory->waiting &= (uint16_t) ~(1u << id);
    }
}

bool exanest_memory_next_beat(struct exanest_memory *memory, struct exanest_read_beat *beat)
{
    const uint32_t id = memory->waiting == 0 ? EXANEST_AXI_IDS : ripe(memory);
    if (id == EXANEST_AXI_IDS) {
        return false;
    }
    memory->last = (uint8_t)id;
    answer(memory, id, beat);
    return true;
}

bool exanest_memory_next_zdma_beat(struct exanest_memory *memory, struct exanest_read_beat *beat)
{
    const uint32_t place = memory->heads[EXANEST_ZDMA_READS] % EXANEST_READS_MAX;
    if ((memory->waiting >> EXANEST_ZDMA_READS & 1) == 0 ||
        memory->reads[EXANEST_ZDMA_READS][place].due > memory->now) {
        return false;
    }
    answer(memory, EXANEST_ZDMA_READS, beat);
    return true;
}

/* Only the bytes that the burst is about change. */
static void store(uint8_t *at, const struct exanest_memory_write *write)
{
    if (write->lanes == UINT16_MAX) {
        memcpy(at, &write->word, EXANEST_WORD_BYTES);
        return;
    }
    const uint8_t *from = (const uint8_t *)&write->word;
    for (uint32_t i = 0; i < EXANEST_WORD_BYTES; i++) {
        if ((write->lanes >> i & 1) != 0) {
            at[i] = from[i];
        }
    }
}

void exanest_memory_on_write(struct exanest_memory *memory, uint32_t port,
                             const struct exanest_memory_write *write)
{
    struct exanest_write_port *writes = &memory->ports[port];
    uint8_t *at;
    if (write->first) {
        writes->response = EXANEST_AXI_OKAY;
    }
    if (write->lanes != 0) {
        const enum exanest_axi_response answer =
            translate(memory, write->pdid, write->va, true, &at);
        if (answer == EXANEST_AXI_OKAY) {
            store(at, write);
            memory->words_written++;
        }
        writes->response |= (uint8_t)answer;
    }
    if (write->last) {
        CHECK(writes->tail - writes->head < EXANEST_BURSTS_MAX);
        const uint32_t place = writes->tail++ % EXANEST_BURSTS_MAX;
        writes->bursts[place].due = memory->now + memory->config.write_cycles;
        writes->bursts[place].response = writes->response;
    }
}

bool exanest_memory_next_response(struct exanest_memory *memory, uint32_t port,
                                  enum exanest_axi_response *response)
{
    struct exanest_write_port *writes = &memory->ports[port];
    const uint32_t place = writes->head % EXANEST_BURSTS_MAX;
    if (writes->head == writes->tail || writes->bursts[place].due > memory->now) {
        return false;
    }
    *response = (enum exanest_axi_response)writes->bursts[place].response;
    writes->head++;
    return true;
}
