/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_device - answers about the device, its port and its counters.
 *
 * Each process has a NIC of its own, and a program that asks by netlink hardly uses its own. Where
 * a kernel would tell of all that is made on a device, and of all that it counted, the NICs of all
 * programs of the user are taken together.
 */
#include "kernel/nldev_device.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "kernel/describe.h"
#include "kernel/nldev_objects.h"
#include "kernel/personality.h"
#include "kernel/process.h"
#include "kernel/sysfs_values.h"
#include "nic/counters.h"

/* The findings of a look-up; too big for a stack. */
struct found {
    struct nldev_counter counters[COUNTER_COUNT]; /* All NICs' counters, by our own names. */
    struct nldev_counter shown[COUNTER_COUNT];    /* As the device's driver counts. */
    struct nldev_resource objects[NLDEV_OBJECTS_MAX];
    char interface[IF_NAMESIZE];
};

static uint64_t device_number(const char *text)
{
    unsigned first = 0, second = 0;
    CHECK(sscanf(text, "%u:%u", &first, &second) == 2);
    return makedev(first, second);
}

static void describe(struct live *live, struct found *found, struct nldev_device *device)
{
    struct ibv_port_attr port;
    struct ibv_device_attr attributes;
    port_describe(live, &port);
    device_describe(live, &attributes);
    *device = (struct nldev_device){
        .name = personality_shown()->device_name,
        .firmware = personality_shown()->firmware,
        .protocol = personality_shown()->protocol,
        .node_guid = guid_describe(live),
        .capabilities = attributes.device_cap_flags,
        .node_type = (uint8_t)personality_shown()->node_type,
        .port_state = (uint8_t)port.state,
        .port_physical_state = port.phys_state,
        .verbs_number = device_number(UVERBS_NUMBER),
        .verbs_name = "uverbs0",
        .verbs_abi = UVERBS_ABI,
        .cm_number = device_number(RDMA_CM_NUMBER),
        .cm_abi = personality_shown()->has_cm_device ? RDMA_CM_ABI : 0,
    };
    const uint32_t interface_index = live_interface(live);
    if (personality_shown()->has_interfaces &&
        if_indextoname(interface_index, found->interface) != NULL) {
        device->interface_index = interface_index;
        device->interface_name = found->interface;
    }
}

static void show_counters(struct found *found, struct nldev_device *device)
{
    for (uint32_t i = 0; i < counters_described(); i++) {
        const struct named_counter named = counter_described(i);
        found->shown[i] = (struct nldev_counter){.name = named.name};
        for (uint32_t own = named.first; own <= named.last; own++) {
            found->shown[i].value += found->counters[own].value;
        }
    }
    device->counters = found->shown;
    device->counter_count = counters_described();
}

static void count(struct live *live, struct found *found, struct nldev_device *device)
{
    live_lock(live);
    const struct nic_counters own = *nic_counters(live_nic(live));
    live_unlock(live);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        found->counters[i] =
            (struct nldev_counter){nic_counter_name((enum nic_counter)i), own.values[i]};
    }
    others_count(found->counters, COUNTER_COUNT);
    show_counters(found, device);
    device->lasting_counters =
        personality_shown()->counters == NULL ? COUNTER_ecn_marked + 1 : device->counter_count;
}

static void list(struct live *live, enum nldev_kind kind, struct found *found,
                 struct nldev_device *device)
{
    size_t room = NLDEV_OBJECTS_MAX;
    live_lock(live);
    const uint64_t total = objects_collect(live, kind, found->objects, &room);
    live_unlock(live);
    device->totals[kind] = total + others_collect(kind, found->objects, &room);
    CHECK(room <= NLDEV_OBJECTS_MAX);
    device->resources = found->objects;
    device->resource_count = NLDEV_OBJECTS_MAX - room;
}

static void total(struct live *live, struct nldev_device *device)
{
    live_lock(live);
    for (enum nldev_kind kind = 0; kind < NLDEV_KINDS; kind++) {
        size_t room = 0;
        device->totals[kind] = objects_collect(live, kind, NULL, &room);
    }
    live_unlock(live);
    others_total(device->totals);
}

/* A reader would take what it sees for all there is. */
static void say_left_out(const struct nldev_device *device, enum nldev_kind kind, uint64_t before,
                         const struct nldev_out *out)
{
    CHECK(out->left_out >= before);
    const uint64_t unlisted = device->totals[kind] - device->resource_count;
    const uint64_t missing = out->left_out - before + unlisted;
    if (missing > 0) {
        char text[96];
        snprintf(text, sizeof(text), "%llu of %llu objects of kind %s are left out",
                 (unsigned long long)missing, (unsigned long long)device->totals[kind],
                 nldev_kind_name(kind));
        process_complain(text);
    }
}

bool nldev_device_answer(const struct nldev_request *request, struct nldev_out *out)
{
    struct live *live = process_live();
    if (live == NULL) {
        return nldev_answer(request, NULL, out);
    }
    struct found *found = malloc(sizeof(*found));
    if (found == NULL) {
        return false;
    }
    struct nldev_device device;
    enum nldev_kind kind;
    describe(live, found, &device);
    if (nldev_wants_totals(request)) {
        total(live, &device);
    } else if (nldev_wants_counters(request)) {
        count(live, found, &device);
    }
    const bool lists = nldev_wants_objects(request, &kind);
    if (lists) {
        list(live, kind, found, &device);
    }
    const uint32_t before = out->left_out;
    const bool answered = nldev_answer(request, &device, out);
    if (lists && request->dump) {
        say_left_out(&device, kind, before, out);
    }
    free(found);
    return answered;
}
