/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Storage workloads: sequential requests like xdd's, and PostMark.
 */
#include <math.h>
#include <stdlib.h>

#include "lab/forth_disk.h"
#include "lab/forth_experiments.h"

#define GIB ((double)(UINT64_C(1) << 30))

/* -- Pages whose content is known ---------------------------------------------------------------*/

static void fill_pages(uint64_t *bytes, uint64_t page, uint32_t pages, uint32_t version)
{
    for (uint32_t i = 0; i < pages; i++) {
        sim_payload_fill(bytes + (size_t)i * (FORTH_DISK_PAGE_BYTES / 8), FORTH_DISK_PAGE_BYTES / 8,
                         version, page + i);
    }
}

static bool pages_right(const uint64_t *bytes, uint64_t page, uint32_t pages, uint32_t version)
{
    for (uint32_t i = 0; i < pages; i++) {
        struct sim_sink sink = {.expected = page + i};
        if (sim_sink_judge(&sink, bytes + (size_t)i * (FORTH_DISK_PAGE_BYTES / 8),
                           FORTH_DISK_PAGE_BYTES / 8, version) != SIM_PAYLOAD_GOOD) {
            return false;
        }
    }
    return true;
}

/* -- xdd (A17) ----------------------------------------------------------------------------------*/

/* MB/s of sequential requests of `pages` each, one behind the other. */
static double sequential(struct forth_disk *disk, bool write, uint32_t pages, uint64_t bytes)
{
    static uint64_t buffer[FORTH_DISK_REQUEST_PAGES * FORTH_DISK_PAGE_BYTES / 8];
    const uint64_t from = disk->machine.sim.now_ps;
    const uint64_t all = bytes / FORTH_DISK_PAGE_BYTES;
    for (uint64_t page = 0; page + pages <= all; page += pages) {
        if (write) {
            fill_pages(buffer, page, pages, pages);
            if (!forth_disk_write(disk, page, pages, buffer)) {
                return 0;
            }
        } else {
            if (!forth_disk_read(disk, page, pages, buffer)) {
                return 0;
            }
            if (!pages_right(buffer, page, pages, pages)) {
                lab_fail(disk->machine.run, "page %llu came back wrong", (unsigned long long)page);
                return 0;
            }
        }
    }
    const double seconds = (double)(disk->machine.sim.now_ps - from) / 1e12;
    return (double)(all / pages * pages * FORTH_DISK_PAGE_BYTES) / seconds / FORTH_MB;
}

static void sequential_requests(struct lab_run *run, bool switched)
{
    const uint64_t bytes = (uint64_t)lab_value(run, "file_bytes");
    const double bound = switched ? 287 : 596;
    const char *how = switched ? "through the switch" : "direct";
    char name[64];
    struct forth_disk disk;
    snprintf(name, sizeof(name), "writes, %s", how);
    struct lab_series *writes = lab_add_series(run, name, "request, KB", "MB/s of 2^20", true);
    snprintf(name, sizeof(name), "reads, %s", how);
    struct lab_series *reads = lab_add_series(run, name, "request, KB", "MB/s of 2^20", true);
    forth_disk_open(&disk, run, switched, bytes / FORTH_DISK_PAGE_BYTES + FORTH_DISK_REQUEST_PAGES);
    double last[2] = {0};
    uint32_t falls = 0;
    for (uint32_t pages = 1; pages <= FORTH_DISK_REQUEST_PAGES; pages *= 2) {
        for (uint32_t read = 0; read < 2; read++) {
            const double rate = sequential(&disk, !read, pages, bytes);
            lab_add_point(read ? reads : writes, 4.0 * pages, rate, LAB_NOTHING);
            falls += rate < last[read];
            last[read] = rate;
        }
        lab_progress(run, (switched ? 0.5 : 0) + log2(pages) / 16);
    }
    lab_judge_absolute(lab_add_row(run, "A17", "", "sizes at which it gets slower, %s", how), 0,
                       falls, 0);
    for (uint32_t read = 0; read < 2; read++) {
        lab_judge_range(
            lab_add_row(run, "A17", "MB/s", "%s of 1 MB, %s", read ? "reads" : "writes", how),
            0.8 * bound, bound, last[read]);
    }
    forth_disk_close(&disk);
}

static void xdd(struct lab_run *run)
{
    sequential_requests(run, false);
    sequential_requests(run, true);
}

/* -- PostMark (A16) -----------------------------------------------------------------------------*/

#define FILES       1000u
#define TABLE       (2 * FILES) /* As many files as can exist at a time. */
#define SIZE_LEAST  (10u << 10)
#define SIZE_MOST   (10u << 20)
#define REPETITIONS 10u /* The number of runs that are averaged; single ones spread by 2.5 %. */

struct file {
    uint32_t bytes; /* 0: the file does not exist. */
    uint32_t version;
    uint64_t first_page; /* The first page on the disk, if the data moves. */
};

struct postmark {
    struct prng prng;
    struct file files[TABLE];
    uint32_t count;
    uint64_t read, written;
    /* For the part whose data moves: a disk, and where its free pages begin. */
    struct forth_disk *disk;
    uint64_t free_page;
    uint32_t versions;
    uint64_t wrong;
};

static uint32_t pages_of(uint32_t bytes)
{
    return (bytes + FORTH_DISK_PAGE_BYTES - 1) / FORTH_DISK_PAGE_BYTES;
}

/* Moves a file's pages in requests of up to 256. */
static void carry(struct postmark *mark, const struct file *file, uint32_t from, bool write)
{
    static uint64_t buffer[FORTH_DISK_REQUEST_PAGES * FORTH_DISK_PAGE_BYTES / 8];
    const uint32_t all = pages_of(file->bytes);
    for (uint32_t page = from / FORTH_DISK_PAGE_BYTES; page < all;) {
        const uint32_t left = all - page;
        const uint32_t pages = left < FORTH_DISK_REQUEST_PAGES ? left : FORTH_DISK_REQUEST_PAGES;
        const uint64_t at = file->first_page + page;
        if (write) {
            fill_pages(buffer, at, pages, file->version);
            mark->wrong += !forth_disk_write(mark->disk, at, pages, buffer);
        } else {
            mark->wrong += !forth_disk_read(mark->disk, at, pages, buffer) ||
                           !pages_right(buffer, at, pages, file->version);
        }
        page += pages;
    }
}

static void create(struct postmark *mark)
{
    if (mark->count == TABLE) {
        return;
    }
    uint32_t slot = 0;
    while (mark->files[slot].bytes != 0) {
        slot++;
    }
    struct file *file = &mark->files[slot];
    file->bytes = SIZE_LEAST + (uint32_t)prng_below(&mark->prng, SIZE_MOST - SIZE_LEAST + 1);
    file->version = ++mark->versions;
    file->first_page = mark->free_page;
    mark->free_page += pages_of(SIZE_MOST);
    mark->count++;
    mark->written += file->bytes;
    if (mark->disk != NULL) {
        carry(mark, file, 0, true);
    }
}

static struct file *pick(struct postmark *mark)
{
    uint32_t slot;
    do {
        slot = (uint32_t)prng_below(&mark->prng, TABLE);
    } while (mark->files[slot].bytes == 0);
    return &mark->files[slot];
}

static void read_whole(struct postmark *mark)
{
    const struct file *file = pick(mark);
    mark->read += file->bytes;
    if (mark->disk != NULL) {
        carry(mark, file, 0, false);
    }
}

static void append(struct postmark *mark)
{
    struct file *file = pick(mark);
    if (file->bytes >= SIZE_MOST) {
        return;
    }
    const uint32_t from = file->bytes;
    const uint32_t more = 1 + (uint32_t)prng_below(&mark->prng, SIZE_MOST - from);
    file->bytes += more;
    mark->written += more;
    if (mark->disk != NULL) {
        carry(mark, file, from, true);
    }
}

/* Unbiased: half read, half append; half create, half delete. */
static void transact(struct postmark *mark)
{
    if (mark->count > 0) {
        if (prng_below(&mark->prng, 2)) {
            read_whole(mark);
        } else {
            append(mark);
        }
    }
    if (prng_below(&mark->prng, 2) || mark->count == 0) {
        create(mark);
    } else {
        pick(mark)->bytes = 0;
        mark->count--;
    }
}

static struct postmark *begin(uint64_t seed, uint32_t files, struct forth_disk *disk)
{
    struct postmark *mark = calloc(1, sizeof(*mark));
    CHECK(mark != NULL);
    prng_init(&mark->prng, seed);
    mark->disk = disk;
    for (uint32_t i = 0; i < files; i++) {
        create(mark);
    }
    return mark;
}

/* The part of the benchmark whose data moves. It has fewer files, so that they fit on the disk. */
static void carry_part(struct lab_run *run, bool switched)
{
    enum {
        CARRIED_FILES = 4
    };
    const uint32_t transactions = (uint32_t)lab_value(run, "carried");
    if (transactions == 0) {
        return;
    }
    struct forth_disk disk;
    forth_disk_open(&disk, run, switched, (CARRIED_FILES + transactions) * pages_of(SIZE_MOST));
    struct postmark *mark = begin(run->seed, CARRIED_FILES, &disk);
    for (uint32_t i = 0; i < transactions; i++) {
        transact(mark);
    }
    const double seconds = (double)disk.machine.sim.now_ps / 1e12;
    const char *how = switched ? "through the switch" : "direct";
    lab_judge_absolute(
        lab_add_row(run, "FNX-65", "requests", "wrong, %u transactions %s", transactions, how), 0,
        (double)mark->wrong, 0);
    lab_judge_range(lab_add_row(run, "FNX-65", "MB/s", "reads and writes, %s", how),
                    switched ? 0.8 * 287 : 0.8 * 596, switched ? 287 : 596,
                    (double)(disk.bytes_read + disk.bytes_written) / seconds / FORTH_MB);
    free(mark);
    forth_disk_close(&disk);
}

static void postmark(struct lab_run *run)
{
    double read = 0;
    double written = 0;
    for (uint32_t i = 0; i < REPETITIONS; i++) {
        struct postmark *mark = begin(run->seed * REPETITIONS + i, FILES, NULL);
        for (uint32_t k = 0; k < (uint32_t)lab_value(run, "transactions"); k++) {
            transact(mark);
        }
        read += (double)mark->read / GIB / REPETITIONS;
        written += (double)mark->written / GIB / REPETITIONS;
        free(mark);
        lab_progress(run, (i + 1.0) / REPETITIONS / 2);
    }
    lab_judge_relative(lab_add_row(run, "A16", "2^30 B", "read (mean of %u)", REPETITIONS), 15.2,
                       read, 0.03);
    lab_judge_relative(lab_add_row(run, "A16", "2^30 B", "written (mean of %u)", REPETITIONS), 21.6,
                       written, 0.03);
    carry_part(run, false);
    lab_progress(run, 0.75);
    carry_part(run, true);
}

FORTH_EXPERIMENT(forth_xdd, "forth/xdd", "sequential requests of 4 KB to 1 MB to a remote disk",
                 xdd,
                 "The document gives no rates. A request costs a round trip and its data; larger "
                 "ones come close to the plateau of the streams.");
FORTH_EXPERIMENT(forth_postmark, "forth/postmark", "PostMark's transactions on a remote disk",
                 postmark,
                 "The volumes follow from the benchmark's algorithm alone. A part of its "
                 "transactions is carried over the network, every page checked.");
