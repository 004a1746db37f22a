/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/host.h"

#include <stdlib.h>

static void go_on(struct forth_host *host);

static struct forth_node *node_of(const struct forth_host *host)
{
    return &host->hosts->machine->nodes[host->self];
}

/* -- Places -------------------------------------------------------------------------------------*/

static uint32_t place_of(const struct forth_hosts *hosts, uint32_t from, uint32_t to,
                         uint64_t number)
{
    return hosts->first[from * hosts->machine->count + to] + (uint32_t)number;
}

static void find_places(struct forth_hosts *hosts)
{
    const struct lab_plan *plan = hosts->plan;
    const uint32_t nodes = hosts->machine->count;
    hosts->first = calloc((size_t)nodes * nodes + 1, sizeof(hosts->first[0]));
    CHECK(hosts->first != NULL);
    for (uint32_t from = 0; from < nodes; from++) {
        for (uint32_t i = plan->first[from]; i < plan->first[from + 1]; i++) {
            hosts->first[from * nodes + plan->messages[i].to + 1]++;
        }
    }
    for (uint32_t i = 0; i < nodes * nodes; i++) {
        hosts->first[i + 1] += hosts->first[i];
    }
}

/* -- The processor ------------------------------------------------------------------------------*/

static void begin(struct forth_host *host, enum forth_host_job job, uint64_t time_ps)
{
    host->job = (uint8_t)job;
    host->busy_ps += time_ps;
    sim_after(&host->hosts->machine->sim, &host->done, time_ps);
}

static void call(struct forth_host *host)
{
    struct forth_hosts *hosts = host->hosts;
    const struct lab_plan_message *message = &hosts->plan->messages[host->next];
    const uint32_t place = place_of(hosts, host->self, message->to, host->posted_to[message->to]);
    hosts->began_ps[place] = hosts->plan->timed ? message->at_ps : hosts->machine->sim.now_ps;
    hosts->bytes[place] = message->bytes;
    begin(host, FORTH_HOST_CALLS, hosts->call_ps);
}

static void go_on(struct forth_host *host)
{
    const struct forth_hosts *hosts = host->hosts;
    struct sim *sim = &hosts->machine->sim;
    if (host->job != FORTH_HOST_RESTS) {
        return;
    }
    if (host->arrived_head != host->arrived_tail) {
        begin(host, FORTH_HOST_LEARNS, hosts->interrupt_ps);
        return;
    }
    if (host->ready || host->next == hosts->plan->first[host->self + 1]) {
        return;
    }
    const uint64_t at_ps = hosts->plan->messages[host->next].at_ps;
    if (at_ps > sim->now_ps) {
        sim_reschedule(sim, &host->wanted, at_ps);
        return;
    }
    call(host);
}

static void on_done(struct sim *sim, struct sim_event *event)
{
    struct forth_host *host = CONTAINER_OF(event, struct forth_host, done);
    struct forth_hosts *hosts = host->hosts;
    if (host->job == FORTH_HOST_LEARNS) {
        const uint32_t place = host->arrived[host->arrived_head++];
        lab_tally_count(&hosts->tally, hosts->began_ps[place], sim->now_ps, hosts->bytes[place]);
        sim_note(sim, sim->now_ps - hosts->began_ps[place]);
    } else {
        host->ready = true;
    }
    host->job = FORTH_HOST_RESTS;
    if (host->ready) {
        forth_node_kick(node_of(host));
    }
    go_on(host);
}

static void on_wanted(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    go_on(CONTAINER_OF(event, struct forth_host, wanted));
}

/* -- With the stream ----------------------------------------------------------------------------*/

bool forth_host_next(struct forth_host *host, uint32_t *to, uint32_t *qwords)
{
    if (!host->ready || forth_node_pending(node_of(host)) >= host->hosts->window) {
        return false;
    }
    const struct lab_plan_message *message = &host->hosts->plan->messages[host->next++];
    *to = message->to;
    *qwords = message->bytes / sizeof(uint64_t);
    host->posted_to[message->to]++;
    host->ready = false;
    go_on(host);
    return true;
}

void forth_host_came(struct forth_host *host, uint32_t from, uint64_t number)
{
    const struct forth_hosts *hosts = host->hosts;
    /* The switch may have let a wrong number pass (crc=ignored). */
    if (from >= hosts->machine->count) {
        return;
    }
    const uint32_t first = place_of(hosts, from, host->self, 0);
    if (number < place_of(hosts, from, host->self + 1, 0) - first) {
        host->arrived[host->arrived_tail++] = first + (uint32_t)number;
        go_on(host);
    }
}

bool forth_host_over(const struct forth_host *host)
{
    return host->job == FORTH_HOST_RESTS && !host->ready &&
           host->next == host->hosts->plan->first[host->self + 1];
}

/* -- Construction -------------------------------------------------------------------------------*/

/* A host learns of a message once, so of no more than all are for it. */
static uint32_t messages_for(const struct forth_hosts *hosts, uint32_t node)
{
    const uint32_t nodes = hosts->machine->count;
    uint32_t count = 0;
    for (uint32_t from = 0; from < nodes; from++) {
        count += hosts->first[from * nodes + node + 1] - hosts->first[from * nodes + node];
    }
    return count;
}

void forth_hosts_open(struct forth_hosts *hosts, struct forth_machine *machine,
                      const struct lab_plan *plan)
{
    *hosts = (struct forth_hosts){.machine = machine, .plan = plan, .window = UINT32_MAX};
    const uint32_t count = lab_plan_count(plan);
    find_places(hosts);
    hosts->hosts = calloc(machine->count, sizeof(hosts->hosts[0]));
    hosts->began_ps = calloc((size_t)count + 1, sizeof(hosts->began_ps[0]));
    hosts->bytes = calloc((size_t)count + 1, sizeof(hosts->bytes[0]));
    CHECK(hosts->hosts != NULL && hosts->began_ps != NULL && hosts->bytes != NULL);
    for (uint32_t i = 0; i < machine->count; i++) {
        struct forth_host *host = &hosts->hosts[i];
        *host = (struct forth_host){.hosts = hosts, .self = i, .next = plan->first[i]};
        host->arrived = calloc((size_t)messages_for(hosts, i) + 1, sizeof(host->arrived[0]));
        CHECK(host->arrived != NULL);
        sim_event_init(&host->done, on_done);
        sim_event_init(&host->wanted, on_wanted);
    }
}

void forth_hosts_begin(struct forth_hosts *hosts)
{
    for (uint32_t i = 0; i < hosts->machine->count; i++) {
        go_on(&hosts->hosts[i]);
    }
}

void forth_hosts_close(struct forth_hosts *hosts)
{
    for (uint32_t i = 0; i < hosts->machine->count; i++) {
        free(hosts->hosts[i].arrived);
    }
    free(hosts->hosts);
    free(hosts->first);
    free(hosts->began_ps);
    free(hosts->bytes);
}
