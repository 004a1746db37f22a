/* SPDX-License-Identifier: BSD-2-Clause
 *
 * manager - what a process asks for its connection manager, which is a kernel's in its stead:
 * datagrams from and to QP 1, ports, and a time at which it is woken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/box_address.h"
#include "box/machine_internal.h"

enum {
    LETTERS_MAX = 512, /* the receives that Linux posts to QP 1 */
};

struct letter {
    struct letter *next;
    struct box_datagram datagram;
};

/* -- Datagrams ----------------------------------------------------------------------------------*/

static void put(struct seat *seat, const struct box_datagram *datagram)
{
    struct letter *letter = malloc(sizeof(*letter));
    CHECK(letter != NULL);
    *letter = (struct letter){.datagram = *datagram};
    *(seat->letters.first == NULL ? &seat->letters.first : seat->letters.end) = letter;
    seat->letters.end = &letter->next;
    seat->arena->letters = ++seat->letters.count;
}

static bool take(struct seat *seat, struct box_datagram *datagram)
{
    struct letter *letter = seat->letters.first;
    if (letter == NULL) {
        return false;
    }
    *datagram = letter->datagram;
    seat->letters.first = letter->next;
    seat->arena->letters = --seat->letters.count;
    free(letter);
    return true;
}

static struct seat *seat_at(struct machine *machine, const struct gid *gid)
{
    uint32_t node, function;
    for (uint32_t i = 0; i < machine->seats; i++) {
        const struct box_place *place = &machine->seat[i].box->page->place[i];
        if (box_address_read(gid->bytes, &node, &function) && place->node == node &&
            place->function == function) {
            return &machine->seat[i];
        }
    }
    return NULL;
}

static void meet(struct seat *one, struct seat *other)
{
    one->has_met[other->number] = other->has_met[one->number] = true;
}

/* One that finds no receive is dropped, and so is one that is none of the manager's. */
void seat_on_datagram(void *context, const struct gid *source, const struct gid *destination,
                      const uint8_t *payload, uint32_t bytes)
{
    struct seat *seat = context;
    struct seat *peer = seat_at(seat->box->machine, source);
    struct box_datagram datagram = {.peer = peer == NULL ? 0 : peer->number};
    (void)destination;
    if (peer == NULL || bytes != sizeof(datagram.bytes) || seat->letters.count >= LETTERS_MAX) {
        return;
    }
    meet(seat, peer);
    memcpy(datagram.bytes, payload, bytes);
    put(seat, &datagram);
}

int64_t machine_send(struct seat *seat, const struct box_datagram *datagram)
{
    struct machine *machine = seat->box->machine;
    const struct box_page *page = seat->box->page;
    struct nic_av av = {0};
    if (seat->function == NULL || datagram->peer >= machine->seats) {
        return -EINVAL;
    }
    const struct box_place *from = &page->place[seat->number], *to = &page->place[datagram->peer];
    box_address(from->node, from->function, av.source.bytes);
    box_address(to->node, to->function, av.destination.bytes);
    av.link = (void *)(uintptr_t)to->link;
    meet(seat, &machine->seat[datagram->peer]);
    roce_manage(seat->function, &av, datagram->bytes);
    return 0;
}

bool machine_receive(struct seat *seat, struct box_datagram *datagram)
{
    return take(seat, datagram);
}

void seat_tell_end(struct seat *seat)
{
    struct machine *machine = seat->box->machine;
    struct box_datagram datagram;
    while (take(seat, &datagram)) {
    }
    datagram = (struct box_datagram){.peer = seat->number, .ended = 1};
    for (uint32_t i = 0; i < machine->seats; i++) {
        if (i != seat->number && seat->has_met[i] && machine->seat[i].arena != NULL) {
            put(&machine->seat[i], &datagram);
            seat->box->progress++;
        }
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

/* The thread that waits already may have to wait less. */
void machine_set_alarm(struct seat *seat, uint64_t at_ns)
{
    struct box *box = seat->box;
    seat->alarm_ns = at_ns;
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        if (thread->process == seat->process && thread->state == THREAD_WAITS &&
            thread->wait.kind == WAIT_NEWS) {
            thread->wait.deadline_ns = at_ns;
        }
    }
}

uint64_t machine_alarm(struct seat *seat)
{
    const uint64_t at_ns = seat->alarm_ns;
    if (at_ns <= seat->box->page->clock_ns) {
        seat->alarm_ns = NEVER;
    }
    return at_ns;
}

/* -- Ports --------------------------------------------------------------------------------------*/

/* Processes that were started on no node have ports together, although each has a node. */
static uint32_t host_of(const struct seat *seat)
{
    return (uint32_t)(seat->process->node + 1);
}

int64_t machine_claim(struct seat *seat, struct box_port *port)
{
    const struct ports_place at = {.host = host_of(seat),
                                   .node = seat->box->page->place[seat->number].node};
    return ports_claim(&seat->box->machine->ports, seat->number, &at, port);
}

bool machine_offer(struct seat *seat, uint64_t claim)
{
    return ports_offer(&seat->box->machine->ports, seat->number, claim);
}

bool machine_release(struct seat *seat, uint64_t claim)
{
    return ports_release(&seat->box->machine->ports, seat->number, claim);
}

int64_t machine_find(const struct seat *seat, const struct box_port *port)
{
    return ports_find(&seat->box->machine->ports, host_of(seat), port);
}
