/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files on the remote disk, as the document's validation handled them: an archive that is copied,
 * unpacked, packed, compressed and removed, and a trace that is unpacked, counted and packed
 * again. Their contents are made up, as long and as redundant as those of the document.
 */
#include <bzlib.h>
#include <stdlib.h>

#include "lab/forth/disk.h"
#include "lab/forth/experiments.h"
#include "lab/forth/filesystem.h"

#define MIB           1048576.0
#define TREE_BYTES    (184.9 * MIB)
#define ARCHIVE_BYTES (29.7 * MIB)
#define TRACE_LINES   2169400.0
#define TRACE_PACKED  (23.16 * MIB)
#define TREE_FILES    512u
#define TAR_BLOCK     512u
#define WORDS_MOST    4096u
#define COMPRESSION   9
#define DISK_PAGES    65536u
#define NAME_BYTES    32u

struct buffer {
    char *bytes;
    size_t count, room;
};

static void reserve(struct buffer *buffer, size_t more)
{
    if (buffer->count + more > buffer->room) {
        buffer->room = 2 * (buffer->count + more);
        buffer->bytes = realloc(buffer->bytes, buffer->room);
        CHECK(buffer->bytes != NULL);
    }
}

static void add(struct buffer *buffer, const void *bytes, size_t count)
{
    reserve(buffer, count);
    memcpy(buffer->bytes + buffer->count, bytes, count);
    buffer->count += count;
}

/* -- Contents -----------------------------------------------------------------------------------*/

/* The contents are as redundant as the document's, as their compressed sizes say; how that is
 * reached is fitted. */
struct vocabulary {
    uint32_t count, common;
    char words[WORDS_MOST][12];
};

/* The vocabulary is the same for every seed; only the texts made of it differ. */
static void make_words(struct lab_run *run, struct vocabulary *vocabulary)
{
    vocabulary->count = (uint32_t)lab_value(run, "vocabulary");
    vocabulary->common = (uint32_t)lab_value(run, "common");
    if (vocabulary->common > vocabulary->count) {
        vocabulary->common = vocabulary->count;
    }
    struct prng words;
    struct prng *prng = &words;
    prng_init(prng, 1);
    static const char letters[] = "etaoinshrdlucmfwypvbgkjqxz_";
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        const uint64_t length = 2 + prng_below(prng, 8);
        for (uint64_t k = 0; k < length; k++) {
            vocabulary->words[i][k] = letters[prng_below(prng, sizeof(letters) - 1)];
        }
    }
}

/* Lines of about 249 characters, of which some two dozen bits are news. */
static void make_trace(struct lab_run *run, struct buffer *trace, struct prng *prng, uint32_t lines)
{
    struct vocabulary vocabulary = {.words = {""}};
    const uint64_t calls = (uint64_t)lab_value(run, "calls");
    const uint64_t offsets = UINT64_C(1) << (uint32_t)lab_value(run, "offset_bits");
    uint64_t time = 0;
    make_words(run, &vocabulary);
    for (uint32_t i = 0; i < lines; i++) {
        char line[320];
        const uint64_t call = prng_below(prng, calls);
        time += 1 + prng_below(prng, 40);
        int length = snprintf(
            line, sizeof(line),
            "%012llu cpu%u pid %u syscall %s file /var/lib/trace/%s/%s offset %08x length 00004096 "
            "flags O_RDONLY|O_LARGEFILE|O_DIRECT result 0 duration %06u us comment ",
            (unsigned long long)time, (unsigned)prng_below(prng, 2),
            1000 + (unsigned)prng_below(prng, 16), vocabulary.words[call],
            vocabulary.words[call + 100], vocabulary.words[call + 200],
            (unsigned)prng_below(prng, offsets), (unsigned)prng_below(prng, 200));
        const int end = 249 - (int)prng_below(prng, 3);
        while (length < end) {
            line[length++] = '.';
        }
        line[length++] = '\n';
        add(trace, line, (size_t)length);
    }
}

/* Text like source code: words of a vocabulary, a few of them most often, and repeated lines. */
static void make_source(struct buffer *file, struct prng *prng, const struct vocabulary *vocabulary,
                        size_t bytes)
{
    const size_t end = file->count + bytes;
    while (file->count < end) {
        char line[160];
        int length = 0;
        for (uint64_t words = 2 + prng_below(prng, 6); words > 0; words--) {
            const uint64_t among =
                prng_below(prng, 4) == 0 ? vocabulary->count : vocabulary->common;
            length +=
                snprintf(line + length, sizeof(line) - (size_t)length, "%s%s",
                         vocabulary->words[prng_below(prng, among)], words > 1 ? ", " : "();\n\t");
        }
        const size_t left = end - file->count;
        add(file, line, (size_t)length < left ? (size_t)length : left);
    }
}

/* -- Archives -----------------------------------------------------------------------------------*/

/* A header block: name and size; then the file, padded to blocks. */
static void tar_add(struct buffer *tar, const char *name, const void *bytes, size_t count)
{
    char header[TAR_BLOCK] = {0};
    snprintf(header, sizeof(header), "%s", name);
    snprintf(header + 124, 12, "%011o", (unsigned)count);
    memcpy(header + 257, "ustar", 6);
    add(tar, header, sizeof(header));
    add(tar, bytes, count);
    memset(header, 0, sizeof(header));
    add(tar, header, (TAR_BLOCK - count % TAR_BLOCK) % TAR_BLOCK);
}

static bool pack(const struct buffer *from, struct buffer *to)
{
    unsigned int bytes = (unsigned int)(from->count + from->count / 100 + 600);
    reserve(to, bytes);
    const bool good =
        BZ2_bzBuffToBuffCompress(to->bytes, &bytes, from->bytes, (unsigned int)from->count,
                                 COMPRESSION, 0, 0) == BZ_OK;
    to->count = bytes;
    return good;
}

static bool unpack(const struct buffer *from, struct buffer *to, size_t most)
{
    unsigned int bytes = (unsigned int)most;
    reserve(to, most);
    const bool good = BZ2_bzBuffToBuffDecompress(to->bytes, &bytes, from->bytes,
                                                 (unsigned int)from->count, 0, 0) == BZ_OK;
    to->count = bytes;
    return good;
}

/* -- The disk -----------------------------------------------------------------------------------*/

static bool device_read(void *owner, uint64_t page, uint32_t pages, void *bytes)
{
    return forth_disk_read(owner, page, pages, bytes);
}

static bool device_write(void *owner, uint64_t page, uint32_t pages, const void *bytes)
{
    return forth_disk_write(owner, page, pages, bytes);
}

static bool read_file(struct filesystem *fs, const char *name, struct buffer *to)
{
    const int64_t bytes = filesystem_size(fs, name);
    if (bytes < 0) {
        return false;
    }
    reserve(to, (size_t)bytes + FILESYSTEM_PAGE_BYTES);
    to->count = (size_t)bytes;
    return filesystem_read(fs, name, to->bytes);
}

static bool same(const struct buffer *a, const struct buffer *b)
{
    return a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
}

/* -- The archive (FNX-63) -----------------------------------------------------------------------*/

/* Writes every file of the archive to the disk. */
static bool untar(struct filesystem *fs, const struct buffer *tar)
{
    for (size_t at = 0; at + TAR_BLOCK <= tar->count;) {
        const char *header = tar->bytes + at;
        const size_t bytes = strtoul(header + 124, NULL, 8);
        at += TAR_BLOCK;
        if (at + bytes > tar->count ||
            !filesystem_write(fs, header, tar->bytes + at, (uint32_t)bytes)) {
            return false;
        }
        at += (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    }
    return true;
}

static bool tar_tree(struct filesystem *fs, struct buffer *tar)
{
    struct buffer file = {.count = 0};
    bool good = true;
    for (uint32_t i = 0; i < TREE_FILES && good; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof(name), "linux/%03u.c", i);
        good = read_file(fs, name, &file);
        if (good) {
            tar_add(tar, name, file.bytes, file.count);
        }
    }
    free(file.bytes);
    return good;
}

static uint32_t remove_tree(struct filesystem *fs)
{
    uint32_t removed = 0;
    const char *name;
    while ((name = filesystem_list(fs, "linux/", 0)) != NULL) {
        char copy[FILESYSTEM_NAME_BYTES];
        memcpy(copy, name, sizeof(copy));
        removed += filesystem_remove(fs, copy);
    }
    return removed;
}

static void make_tree(struct lab_run *run, struct buffer *tar, struct prng *prng, double bytes)
{
    struct vocabulary vocabulary = {.words = {""}};
    struct buffer file = {.count = 0};
    make_words(run, &vocabulary);
    for (uint32_t i = 0; i < TREE_FILES; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof(name), "linux/%03u.c", i);
        file.count = 0;
        /* Sizes spread evenly around the mean. */
        const double share = 0.5 + (double)i / (TREE_FILES - 1);
        make_source(&file, prng, &vocabulary, (size_t)(bytes / TREE_FILES * share));
        tar_add(tar, name, file.bytes, file.count);
    }
    free(file.bytes);
}

static void handle_archive(struct lab_run *run, struct filesystem *fs, double scale)
{
    struct prng prng;
    struct buffer tar = {.count = 0};
    struct buffer archive = {.count = 0};
    struct buffer back = {.count = 0};
    struct buffer again = {.count = 0};
    prng_init(&prng, run->seed);
    make_tree(run, &tar, &prng, TREE_BYTES / scale);
    bool good = pack(&tar, &archive) &&
                filesystem_write(fs, "linux.tar.bz2", archive.bytes, (uint32_t)archive.count);
    good = good && read_file(fs, "linux.tar.bz2", &back) && same(&back, &archive);
    good = good && unpack(&back, &again, tar.count) && untar(fs, &again);
    again.count = 0;
    good = good && tar_tree(fs, &again) && same(&again, &tar);
    back.count = 0;
    good = good && pack(&again, &back) && same(&back, &archive);
    lab_judge_absolute(
        lab_add_row(run, "FNX-63/files", "files", "unpacked, packed, compressed and removed"),
        TREE_FILES, good ? remove_tree(fs) : 0, 0);
    lab_judge_relative(lab_add_row(run, "FNX-A18.archive", "MiB",
                                   "a tree of 184.9 MiB compressed, scaled; the NIC has no part"),
                       ARCHIVE_BYTES / MIB, (double)archive.count * scale / MIB, 0.02);
    free(tar.bytes);
    free(archive.bytes);
    free(back.bytes);
    free(again.bytes);
}

/* -- The trace (FNX-64) -------------------------------------------------------------------------*/

/* Counts like a wc that reads a byte at a time: it asks the device for a page at the first byte of
 * that page. */
static double count_lines(struct forth_disk *disk, const struct filesystem *fs, const char *name)
{
    const struct filesystem_inode *inode = fs->inodes;
    while (strcmp(inode->name, name) != 0) {
        inode++;
    }
    uint8_t page[FILESYSTEM_PAGE_BYTES];
    double lines = 0;
    for (uint32_t at = 0; at < inode->bytes; at++) {
        const uint32_t offset = at % FILESYSTEM_PAGE_BYTES;
        if (offset == 0 &&
            !forth_disk_read(disk, inode->first_page + at / FILESYSTEM_PAGE_BYTES, 1, page)) {
            return 0;
        }
        lines += page[offset] == '\n';
    }
    return lines;
}

static void handle_trace(struct lab_run *run, struct forth_disk *disk, struct filesystem *fs,
                         double scale)
{
    struct prng prng;
    struct buffer trace = {.count = 0};
    struct buffer packed = {.count = 0};
    struct buffer back = {.count = 0};
    struct buffer again = {.count = 0};
    const uint32_t lines = (uint32_t)(TRACE_LINES / scale);
    prng_init(&prng, run->seed + 1);
    make_trace(run, &trace, &prng, lines);
    bool good = pack(&trace, &packed) &&
                filesystem_write(fs, "trace.bz2", packed.bytes, (uint32_t)packed.count) &&
                read_file(fs, "trace.bz2", &back) && unpack(&back, &again, trace.count) &&
                same(&again, &trace) &&
                filesystem_write(fs, "trace", again.bytes, (uint32_t)again.count);
    const double counted = good ? count_lines(disk, fs, "trace") : 0;
    good = good && read_file(fs, "trace", &back) && pack(&back, &again) && same(&again, &packed);
    lab_judge_absolute(lab_add_row(run, "FNX-64/lines", "lines", "counted a byte at a time"), lines,
                       counted, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-64/steps", "", "steps that changed a byte"), 0, !good,
                       0);
    lab_judge_relative(lab_add_row(run, "FNX-A18.trace", "MiB",
                                   "a trace of 515.4 MiB compressed, scaled; the NIC has no part"),
                       TRACE_PACKED / MIB, (double)packed.count * scale / MIB, 0.02);
    free(trace.bytes);
    free(packed.bytes);
    free(back.bytes);
    free(again.bytes);
}

static void files(struct lab_run *run)
{
    struct forth_disk disk;
    struct filesystem fs = {.mounted = false};
    const double scale = lab_value(run, "scale");
    forth_disk_open(&disk, run, false, DISK_PAGES);
    const struct filesystem_device device = {.read = device_read,
                                             .write = device_write,
                                             .owner = &disk,
                                             .pages = DISK_PAGES,
                                             .request_pages = FORTH_DISK_REQUEST_PAGES};
    bool good = filesystem_format(&device) && filesystem_mount(&fs, &device);
    if (good) {
        handle_archive(run, &fs, scale);
        lab_progress(run, 0.5);
        handle_trace(run, &disk, &fs, scale);
        good = filesystem_remove(&fs, "trace");
        good = filesystem_unmount(&fs) && good;
        /* Mounted again, the disk holds the files that were not removed. */
        good = good && filesystem_mount(&fs, &device) && filesystem_size(&fs, "trace") < 0 &&
               filesystem_size(&fs, "trace.bz2") > 0;
    }
    good = filesystem_unmount(&fs) && good; /* Frees the mounted file system in any case. */
    lab_judge_absolute(
        lab_add_row(run, "FNX-63/mounts", "", "steps of mkfs, mount, unmount that failed"), 0,
        !good, 0);
    forth_disk_close(&disk);
}

static const struct lab_claim files_claims[] = {
    {.id = "FNX-63",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5: validated; 4.1: the operations of the validation",
     .broken_by = "bit_errors=1e-5",
     .because = "links flip bits, and nothing repeats a packet"},
    {.id = "FNX-64",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5: validated; 4.1: the operations of the validation",
     .broken_by = "bit_errors=1e-5",
     .because = "links flip bits, and nothing repeats a packet"},
    {.id = "FNX-A18.archive",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.1",
     .broken_by = "common=100",
     .because = "fewer words are common, so that the files say less"},
    {.id = "FNX-A18.trace",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.1",
     .broken_by = "offset_bits=20",
     .because = "offsets have fewer random bits"},
};

const struct lab_experiment forth_files = {
    FORTH_COMMON,
    .name = "forth/files",
    .what = "archives and a trace on a file system on the remote disk",
    .uses = FORTH_USES_DIRECT "scale vocabulary common calls offset_bits",
    FORTH_CLAIMS(files_claims),
    .run = files,
    .explains =
        "The document's files are not to be had. Made-up ones, a 64th as long, take their place; "
        "what they say is fitted so that they compress to the document's sizes, which is all that "
        "the rows of sizes show. The fit holds for a 64th (scale): an eighth gives 29.1 for the "
        "archive of 29.7. The other rows show that every byte arrives. A small file system of our "
        "own stands in for ReiserFS; disk and compression take no time.",
};
