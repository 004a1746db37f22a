/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Storage workloads: sequential requests like xdd's, and PostMark.
 */
#include <math.h>
#include <stdlib.h>

#include "lab/forth/disk.h"
#include "lab/forth/experiments.h"

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

enum {
    SIZES = 9 /* 4 KB, 8 KB, up to 1 MB. */
};

struct rates {
    double write[SIZES], read[SIZES];
};

/* False: the run has failed. */
static bool measure(struct lab_run *run, bool switched, struct rates *rates)
{
    const uint64_t bytes = (uint64_t)lab_value(run, "file_bytes");
    struct forth_disk disk;
    forth_disk_open(&disk, run, switched, bytes / FORTH_DISK_PAGE_BYTES + FORTH_DISK_REQUEST_PAGES);
    for (uint32_t i = 0; i < SIZES; i++) {
        rates->write[i] = sequential(&disk, true, 1u << i, bytes);
        rates->read[i] = sequential(&disk, false, 1u << i, bytes);
        lab_progress(run, (switched ? 0.5 : 0) + (i + 1.0) / SIZES / 2);
    }
    forth_disk_close(&disk);
    return run->failure[0] == '\0';
}

/* The time of a page on the links, in us: a packet of 4 KB on a pair; on one link 8 packets of
 * 496 B and one of 128 B. */
static double page_us(struct lab_run *run, bool switched)
{
    const double cycles =
        switched ? 8.0 * forth_frame_words(62) + forth_frame_words(16) : 4.0 + FORTH_WORDS_MAX;
    return cycles / lab_value(run, "net_clock");
}

/* A page and the messages around it, in us: each message is written, and then a word that notifies.
 * The last message of a read comes right behind the page. */
static double request_us(struct lab_run *run, bool read)
{
    const uint32_t message = sizeof(struct forth_disk_message) / FORTH_QWORD_BYTES;
    const double pci_ns = 1e3 / lab_value(run, "pci_clock");
    const double overhead = forth_costs_of(run, forth_account_of(run)).write;
    const double notify_ns = pci_ns * (overhead + 1);
    const double message_ns = forth_one_way_ns(run, message) + notify_ns;
    const double behind_ns = pci_ns * (overhead + message) + notify_ns;
    const double page_ns = forth_one_way_ns(run, FORTH_WORDS_MAX);
    return (page_ns + (read ? message_ns + behind_ns : 3 * message_ns)) / 1e3;
}

static void add_small_row(struct lab_run *run, bool read, double rate)
{
    const char *what = read ? "read" : "write";
    char id[LAB_ID_BYTES];
    lab_judge_relative(lab_add_row(run, forth_row_id(id, "FNX-A17.page", "%s", what), "MiB/s",
                                   "%ss of 4 KB, direct", what),
                       FORTH_DISK_PAGE_BYTES / FORTH_MB / request_us(run, read) * 1e6, rate, 0.01);
}

static void add_large_row(struct lab_run *run, bool read, bool switched, const double *rates)
{
    const char *what = read ? "read" : "write";
    const char *claim = switched ? "FNX-A17.switch" : "FNX-A17.direct";
    const char *how = switched ? "through the switch" : "direct";
    char id[LAB_ID_BYTES];
    const double page_mb = FORTH_DISK_PAGE_BYTES / FORTH_MB;
    /* A request of 256 pages takes what a request of one takes, and 255 pages more. */
    const double first_us = page_mb / rates[0] * 1e6;
    const double all_us = first_us + 255 * page_us(run, switched);
    lab_judge_relative(lab_add_row(run, forth_row_id(id, claim, "%s", what), "MiB/s",
                                   "%ss of 1 MB, %s", what, how),
                       256 * page_mb / all_us * 1e6, rates[SIZES - 1], 0.01);
}

static void draw(struct lab_run *run, const char *name, const double *rates)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t i = 0; i < SIZES; i++) {
        lab_add_point(series, 4 << i, rates[i], LAB_NOTHING);
    }
}

static void xdd(struct lab_run *run)
{
    struct rates direct, switched;
    if (!measure(run, false, &direct) || !measure(run, true, &switched)) {
        return;
    }
    struct lab_figure *figure = lab_add_figure(run, "xdd", "Sequential requests to a remote disk",
                                               "request, KB", "MiB/s", true);
    lab_add_level(figure, 596, "a pair of links");
    lab_add_level(figure, 287, "one way through the switch");
    lab_add_level(figure, 200, "block I/O, elsewhere: about 200");
    draw(run, "writes, direct", direct.write);
    draw(run, "reads, direct", direct.read);
    draw(run, "writes, through the switch", switched.write);
    draw(run, "reads, through the switch", switched.read);
    add_small_row(run, false, direct.write[0]);
    add_small_row(run, true, direct.read[0]);
    add_large_row(run, false, false, direct.write);
    lab_judge_relative(lab_add_row(run, "FNX-A17.elsewhere", "MiB/s",
                                   "remote block I/O: about 200; ours is writes of 1 MB, direct"),
                       200, direct.write[SIZES - 1], 0.1);
    add_large_row(run, true, false, direct.read);
    add_large_row(run, false, true, switched.write);
    add_large_row(run, true, true, switched.read);
}

static const struct lab_claim xdd_claims[] = {
    {.id = "FNX-A17.page",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-A3",
     .source = "OC: the sum of the parts' times; 4.1 gives no rate",
     .broken_by = "cut_through=late",
     .because = "the bus takes a packet when all of it has come"},
    {.id = "FNX-A17.direct",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "OC: the first page's time and the links' for the others; 4.1 gives no rate",
     .broken_by = "commas=16",
     .because = "idle words behind each packet"},
    {.id = "FNX-A17.elsewhere",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "ICS06: a throughput of about 200 MBytes/s",
     .broken_by = "commas=16",
     .because = "idle words behind each packet",
     .not_reproduced = "interrupts, which the authors name as the first limit, processors, the I/O "
                       "stack and the work at the target take no time in the model. Request size, "
                       "requests under way and disks of the measurement are not in the abstract"},
    {.id = "FNX-A17.switch",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "OC: the first page's time and the links' for the others; 4.1 gives no rate",
     .broken_by = "commas=16",
     .because = "idle words behind each packet"},
};

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
    uint32_t choices; /* One of this number of transactions appends, the others read. */
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
        if (prng_below(&mark->prng, mark->choices) != 0) {
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

static struct postmark *begin(struct lab_run *run, uint64_t seed, uint32_t files,
                              struct forth_disk *disk)
{
    struct postmark *mark = calloc(1, sizeof(*mark));
    CHECK(mark != NULL);
    prng_init(&mark->prng, seed);
    mark->choices = lab_word(run, "bias") == 0 ? 2 : 5;
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
    struct postmark *mark = begin(run, run->seed, CARRIED_FILES, &disk);
    for (uint32_t i = 0; i < transactions; i++) {
        transact(mark);
    }
    const char *how = switched ? "switched" : "direct";
    char id[LAB_ID_BYTES];
    lab_judge_absolute(lab_add_row(run, forth_row_id(id, "FNX-65", "%s", how), "requests",
                                   "wrong, %u transactions %s", transactions, how),
                       0, (double)mark->wrong, 0);
    free(mark);
    forth_disk_close(&disk);
}

static void postmark(struct lab_run *run)
{
    double read = 0;
    double written = 0;
    const uint32_t transactions = (uint32_t)lab_value(run, "transactions");
    for (uint32_t i = 0; i < REPETITIONS; i++) {
        struct postmark *mark = begin(run, run->seed * REPETITIONS + i, FILES, NULL);
        for (uint32_t k = 0; k < transactions; k++) {
            transact(mark);
        }
        read += (double)mark->read / GIB / REPETITIONS;
        written += (double)mark->written / GIB / REPETITIONS;
        free(mark);
        lab_progress(run, (i + 1.0) / REPETITIONS / 2);
    }
    lab_judge_relative(lab_add_row(run, "FNX-A16/read", "GiB",
                                   "read (mean of %u); the NIC has no part", REPETITIONS),
                       15.2, read, 0.03);
    lab_judge_relative(lab_add_row(run, "FNX-A16/written", "GiB",
                                   "written (mean of %u); the NIC has no part", REPETITIONS),
                       21.6, written, 0.03);
    carry_part(run, false);
    lab_progress(run, 0.75);
    carry_part(run, true);
}

static const struct lab_claim postmark_claims[] = {
    {.id = "FNX-A16",
     .reference = LAB_PRINTED,
     .ground = LAB_MECHANISM,
     .source = "4.1",
     .broken_by = "bias=reads",
     .because = "four of five transactions read"},
    {.id = "FNX-65",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5: validated; 4.1: the benchmarks of the validation",
     .broken_by = "bit_errors=1e-7",
     .because = "links flip bits, and nothing repeats a packet"},
};

/* -- Their names --------------------------------------------------------------------------------*/

const struct lab_experiment forth_xdd = {
    FORTH_COMMON,
    .name = "forth/xdd",
    .what = "sequential requests of 4 KB to 1 MB to a remote disk",
    .uses = FORTH_USES_SWITCHED "file_bytes",
    FORTH_CLAIMS(xdd_claims),
    .run = xdd,
    .explains =
        "The document gives no rates. In the model a request costs a round trip and its data, and "
        "larger ones come close to what the links carry. Disk, interrupts, operating system and "
        "processor take no time, so a real system is slower: an abstract of the same authors "
        "gives about 200 MBytes/s for block I/O over a network that can deliver about 500, and "
        "names the cost of interrupts, request size and message size as the limits. The model "
        "gives a bound.",
};

const struct lab_experiment forth_postmark = {
    FORTH_COMMON,
    .name = "forth/postmark",
    .what = "PostMark's transactions on a remote disk",
    .uses = FORTH_USES_SWITCHED "transactions bias carried",
    FORTH_CLAIMS(postmark_claims),
    .run = postmark,
    .explains =
        "The volumes follow from the benchmark's algorithm as we understand it; the NIC has no "
        "part in them. A small part of the transactions is carried over the network, and every "
        "page of it is checked.",
};
