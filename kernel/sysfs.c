/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs - walks the tree of virtual files as a kernel walks a path.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "drivers/system/shortage.h"
#include "kernel/sysfs_tree.h"
#include "world/world.h"

#define DEPTH_MAX 16 /* Levels of the tree: "/" is the first. */
#define LINKS_MAX 8  /* The kernel follows 40; ours lead nowhere near that. */

/* The root of the tree. */
static const struct sysfs_entry *root(void)
{
    return live_personality() == LIVE_EFA ? &sysfs_root_efa : &sysfs_root_roce;
}

struct walk {
    const struct sysfs_entry *stack[DEPTH_MAX]; /* The directories from the root to here. */
    uint32_t depth;
    char rest[SYSFS_PATH_BYTES]; /* The path behind this node. */
    uint32_t links;
};

/* It stands in a directory, at the root at least. */
static void walk_check(const struct walk *walk)
{
    CHECK(walk->depth > 0 && walk->depth <= DEPTH_MAX && walk->stack[0] == root());
    CHECK(walk->stack[walk->depth - 1]->kind == SYSFS_DIRECTORY);
    CHECK(walk->links <= LINKS_MAX);
}

/* A walk ends with an errno, at an entry of ours, which has a path, or at one of the kernel's. */
static void node_check(const struct sysfs_node *node)
{
    CHECK(node->kind != SYSFS_ABSENT || node->error > 0);
    CHECK(node->path[0] == '/' || node->kind == SYSFS_ABSENT || node->kind == SYSFS_KERNEL);
    CHECK(node->kind != SYSFS_DIRECTORY || node->entry != NULL);
}

/* A file, a link or a device has a content: an entry's text, or the answer of a function. */
static void content_check(const struct sysfs_node *node)
{
    const struct sysfs_entry *entry = node->entry;
    CHECK(node->kind == SYSFS_FILE || node->kind == SYSFS_LINK || node->kind == SYSFS_DEVICE);
    CHECK(entry == NULL || (entry->value != NULL) != (entry->text != NULL));
    CHECK(entry != NULL || (node->table != NULL && node->table->value != NULL));
}

static const struct sysfs_entry *here(const struct walk *walk)
{
    return walk->stack[walk->depth - 1];
}

/* -- Names --------------------------------------------------------------------------------------*/

/* The name of an entry; an empty one if it is gone. Returns 0, or the errno of a shortage, which
 * leaves open what the name is. */
static int name_of(const struct sysfs_table *table, uint32_t index, char name[SYSFS_NAME_BYTES])
{
    const int before = errno;
    errno = 0;
    const bool named = table->name(index, name);
    const int error = !named && shortage_is(errno) ? errno : 0;
    name[0] = named ? name[0] : '\0';
    errno = before;
    return error;
}

/* Finds `name` in a directory. Returns 0, ENOENT, or the errno of a shortage. */
static int find_child(const struct sysfs_entry *directory, const char *name, size_t length,
                      struct sysfs_node *child)
{
    CHECK(directory->kind == SYSFS_DIRECTORY);
    for (const struct sysfs_entry *e = directory->entries; e != NULL && e->name != NULL; e++) {
        if (strncmp(e->name, name, length) == 0 && e->name[length] == '\0') {
            child->entry = e;
            child->kind = e->kind;
            return 0;
        }
    }
    const struct sysfs_table *table = directory->table;
    const uint32_t count = table == NULL ? 0 : table->count();
    for (uint32_t i = 0; i < count; i++) {
        char candidate[SYSFS_NAME_BYTES];
        const int error = name_of(table, i, candidate);
        if (error != 0) {
            return error;
        }
        if (strncmp(candidate, name, length) == 0 && candidate[length] == '\0') {
            child->entry = NULL;
            child->table = table;
            child->index = i;
            child->kind = table->kind;
            return 0;
        }
    }
    return ENOENT;
}

/* The path of the directory where the walk stands; "" for the root. */
static size_t path_of(const struct walk *walk, char path[SYSFS_PATH_BYTES])
{
    size_t length = 0;
    path[0] = '\0';
    for (uint32_t i = 1; i < walk->depth; i++) {
        length +=
            (size_t)snprintf(path + length, SYSFS_PATH_BYTES - length, "/%s", walk->stack[i]->name);
        CHECK(length < SYSFS_PATH_BYTES - SYSFS_NAME_BYTES); /* Room for one more name of ours. */
    }
    return length;
}

static void set_path(const struct walk *walk, const char *name, size_t length,
                     struct sysfs_node *node)
{
    const size_t at = path_of(walk, node->path);
    CHECK(length < SYSFS_NAME_BYTES); /* It is the name of an entry. */
    snprintf(node->path + at, SYSFS_PATH_BYTES - at, "/%.*s", (int)length, name);
}

/* -- Steps --------------------------------------------------------------------------------------*/

static void absent(struct sysfs_node *node, int error)
{
    CHECK(error > 0);
    node->kind = SYSFS_ABSENT;
    node->error = error;
}

/* The kernel goes on from here: with the path as the program gave it, unless a link of ours was in
 * it. */
static void leave_to_kernel(const struct walk *walk, const char *rest, struct sysfs_node *node)
{
    node->kind = SYSFS_KERNEL;
    node->path[0] = '\0';
    if (walk->links > 0) {
        const size_t at = path_of(walk, node->path);
        snprintf(node->path + at, SYSFS_PATH_BYTES - at, "/%s", rest);
    }
}

/* Puts the target of a link in front of the rest of the path. */
static bool follow_link(struct walk *walk, const struct sysfs_node *link, const char *rest,
                        struct sysfs_node *node)
{
    char target[SYSFS_VALUE_BYTES];
    char joined[SYSFS_PATH_BYTES];
    if (++walk->links > LINKS_MAX) {
        absent(node, ELOOP);
        return false;
    }
    if (!sysfs_read(link, target)) {
        absent(node, errno);
        return false;
    }
    const size_t length = strlen(target);
    if (length + strlen(rest) + 2 > sizeof(joined)) {
        absent(node, ENAMETOOLONG);
        return false;
    }
    memcpy(joined, target, length);
    strcpy(joined + length, rest);
    CHECK(link->kind == SYSFS_LINK && length > 0);
    if (joined[0] == '/') {
        walk->depth = 1;
    }
    strcpy(walk->rest, joined);
    return true;
}

/* The last component was reached, or something that has nothing below it. */
static void arrive(const struct walk *walk, const char *name, size_t length, const char *rest,
                   struct sysfs_node *node)
{
    if (node->kind != SYSFS_DIRECTORY && rest[0] == '/') {
        absent(node, ENOTDIR);
        return;
    }
    set_path(walk, name, length, node);
}

/* The walk ended in a directory. */
static void arrive_here(const struct walk *walk, struct sysfs_node *node)
{
    node->kind = SYSFS_DIRECTORY;
    node->entry = here(walk);
    if (path_of(walk, node->path) == 0) {
        strcpy(node->path, "/");
    }
}

/* Takes one component of the path: false when `node` is the answer. */
static bool step(struct walk *walk, bool follow, struct sysfs_node *node)
{
    const char *name = walk->rest + strspn(walk->rest, "/");
    const size_t length = strcspn(name, "/");
    const char *rest = name + length;
    INVARIANTS(walk_check(walk));
    if (length == 0) {
        arrive_here(walk, node);
        return false;
    }
    if (length <= 2 && strncmp(name, "..", length) == 0) {
        walk->depth -= length == 2 && walk->depth > 1;
        memmove(walk->rest, rest, strlen(rest) + 1);
        return true;
    }
    const int error = find_child(here(walk), name, length, node);
    if (error == ENOENT && here(walk)->shared) {
        leave_to_kernel(walk, name, node);
        return false;
    }
    if (error != 0) {
        absent(node, error);
        return false;
    }
    if (node->kind == SYSFS_LINK && (follow || rest[0] == '/')) {
        return follow_link(walk, node, rest, node);
    }
    if (node->kind != SYSFS_DIRECTORY) {
        arrive(walk, name, length, rest, node);
        return false;
    }
    CHECK(walk->depth < DEPTH_MAX);
    walk->stack[walk->depth++] = node->entry;
    memmove(walk->rest, rest, strlen(rest) + 1);
    return true;
}

void sysfs_find(const char *path, bool follow, struct sysfs_node *node)
{
    node->kind = SYSFS_KERNEL;
    node->path[0] = '\0';
    const size_t length = strlen(path);
    if (length >= SYSFS_PATH_BYTES) {
        return;
    }
    struct walk walk = {.depth = 1};
    walk.stack[0] = root();
    memcpy(walk.rest, path, length + 1);
    while (step(&walk, follow, node)) {
    }
    INVARIANTS(node_check(node));
}

/* -- Contents -----------------------------------------------------------------------------------*/

bool sysfs_read(const struct sysfs_node *node, char value[SYSFS_VALUE_BYTES])
{
    INVARIANTS(content_check(node));
    if (node->entry == NULL) {
        return node->table->value(node->index, value);
    }
    if (node->entry->value != NULL) {
        return node->entry->value(value);
    }
    snprintf(value, SYSFS_VALUE_BYTES, "%s", node->entry->text);
    return true;
}

bool sysfs_shared(const struct sysfs_node *node)
{
    return node->kind == SYSFS_DIRECTORY && node->entry->shared;
}

enum sysfs_kind sysfs_list(const struct sysfs_node *node, uint32_t index,
                           char name[SYSFS_NAME_BYTES])
{
    uint32_t i = 0;
    CHECK(node->kind == SYSFS_DIRECTORY);
    for (const struct sysfs_entry *e = node->entry->entries; e != NULL && e->name != NULL; e++) {
        if (i++ == index) {
            snprintf(name, SYSFS_NAME_BYTES, "%s", e->name);
            return e->kind;
        }
    }
    const struct sysfs_table *table = node->entry->table;
    if (table != NULL && index - i < table->count() && table->name(index - i, name)) {
        return table->kind;
    }
    return SYSFS_ABSENT;
}
