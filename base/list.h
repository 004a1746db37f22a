/* SPDX-License-Identifier: BSD-2-Clause
 *
 * list - an intrusive, circular, doubly linked list: no allocation, O(1) removal from the middle.
 *
 * A node that is on no list points at itself, so removal is safe to repeat.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct list {
    struct list *next, *previous;
};

static inline void list_init(struct list *node)
{
    node->next = node;
    node->previous = node;
}

/* True for a head without nodes, and for a node on no list. */
static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

/* Its neighbours know it. Those of a node that was added to a second list do not. */
static inline void list_check(const struct list *node)
{
    CHECK(node->next->previous == node);
    CHECK(node->previous->next == node);
}

static inline void list_remove(struct list *node)
{
    INVARIANTS(list_check(node));
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

/* Adds `node`, which is on no list, at the end. */
static inline void list_append(struct list *head, struct list *node)
{
    INVARIANTS(list_check(head));
    node->next = head;
    node->previous = head->previous;
    head->previous->next = node;
    head->previous = node;
}

/* Adds `node`, which is on no list, at the beginning. */
static inline void list_prepend(struct list *head, struct list *node)
{
    list_append(head->next, node);
}

/* Takes the first node off and returns it; NULL: none. */
static inline struct list *list_pop(struct list *head)
{
    if (list_empty(head)) {
        return NULL;
    }
    struct list *node = head->next;
    list_remove(node);
    return node;
}

#endif
