/* SPDX-License-Identifier: BSD-2-Clause
 *
 * table - finds the objects of the account by their numbers.
 */
#include "checker/internal.h"

static struct object **bucket_of(struct checker *checker, enum object_kind kind, uint32_t number)
{
    return &checker->buckets[(number + (uint32_t)kind) % BUCKETS];
}

struct object *object_find(struct checker *checker, enum object_kind kind, uint32_t number)
{
    struct object *object = *bucket_of(checker, kind, number);
    while (object != NULL && (object->kind != kind || object->number != number)) {
        object = object->next;
    }
    return object;
}

void table_enter(struct checker *checker, struct object *object, enum object_kind kind,
                 uint32_t number)
{
    struct object **bucket = bucket_of(checker, kind, number);
    CHECK(object_find(checker, kind, number) == NULL);
    *object = (struct object){.next = *bucket, .kind = kind, .number = number};
    *bucket = object;
    checker->count[kind]++;
}

void *table_leave(struct checker *checker, enum object_kind kind, uint32_t number)
{
    struct object **at = bucket_of(checker, kind, number);
    while (*at != NULL && ((*at)->kind != kind || (*at)->number != number)) {
        at = &(*at)->next;
    }
    struct object *object = *at;
    if (object != NULL) {
        *at = object->next;
        CHECK(checker->count[kind] > 0);
        checker->count[kind]--;
    }
    return object;
}
