/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev - replies.
 */
#include "kernel/nldev.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include "base/check.h"
#include "kernel/nldev_internal.h"

/* Room that is kept for the end of an answer: two messages, one of which may repeat a request. */
#define END_BYTES (2 * (size_t)NLDEV_DATAGRAM_BYTES)

/* A message under way ends within its datagram, and that within the buffer. */
static void out_check(const struct nldev_out *out)
{
    CHECK(out->used <= out->message_end && out->message_end <= out->room);
    CHECK(out->used == nldev_padded(out->used));
}

/* -- Attributes ---------------------------------------------------------------------------------*/

void nldev_put(struct nldev_out *out, uint16_t type, const void *value, size_t bytes)
{
    const size_t whole = nldev_padded(ATTRIBUTE_HEADER + bytes);
    INVARIANTS(out_check(out));
    if (out->full || whole > out->message_end - out->used) {
        out->full = true;
        return;
    }
    const struct nlattr attribute = {.nla_len = (uint16_t)(ATTRIBUTE_HEADER + bytes),
                                     .nla_type = type};
    memset(out->bytes + out->used, 0, whole);
    memcpy(out->bytes + out->used, &attribute, sizeof(attribute));
    if (bytes > 0) {
        memcpy(out->bytes + out->used + ATTRIBUTE_HEADER, value, bytes);
    }
    out->used += whole;
    INVARIANTS(out_check(out));
}

void nldev_put_u8(struct nldev_out *out, uint16_t type, uint8_t value)
{
    nldev_put(out, type, &value, sizeof(value));
}

void nldev_put_u32(struct nldev_out *out, uint16_t type, uint32_t value)
{
    nldev_put(out, type, &value, sizeof(value));
}

void nldev_put_u64(struct nldev_out *out, uint16_t type, uint64_t value)
{
    nldev_put(out, type, &value, sizeof(value));
}

static void nldev_put_text(struct nldev_out *out, uint16_t type, const char *text)
{
    nldev_put(out, type, text, strlen(text) + 1);
}

size_t nldev_begin_nest(struct nldev_out *out, uint16_t type)
{
    const size_t nest = out->used;
    nldev_put(out, type | NLA_F_NESTED, NULL, 0);
    return nest;
}

void nldev_end_nest(struct nldev_out *out, size_t nest)
{
    struct nlattr attribute;
    if (out->full) {
        return;
    }
    CHECK(nest + sizeof(attribute) <= out->used && out->used - nest <= UINT16_MAX);
    memcpy(&attribute, out->bytes + nest, sizeof(attribute));
    CHECK(attribute.nla_type & NLA_F_NESTED);
    attribute.nla_len = (uint16_t)(out->used - nest);
    memcpy(out->bytes + nest, &attribute, sizeof(attribute));
}

/* -- Messages -----------------------------------------------------------------------------------*/

static size_t begin_message(struct nldev_out *out, const struct nldev_request *request,
                            uint16_t type, uint16_t flags)
{
    const size_t begin = out->used;
    const size_t left = out->room - begin;
    const struct nlmsghdr header = {.nlmsg_type = type,
                                    .nlmsg_flags = flags,
                                    .nlmsg_seq = request->sequence,
                                    .nlmsg_pid = out->port_id};
    CHECK(left >= sizeof(header));
    memcpy(out->bytes + begin, &header, sizeof(header));
    out->used += sizeof(header);
    out->message_end = begin + (left < NLDEV_DATAGRAM_BYTES ? left : NLDEV_DATAGRAM_BYTES);
    out->full = false;
    INVARIANTS(out_check(out));
    return begin;
}

/* False: it was not whole, and is not there. */
static bool end_message(struct nldev_out *out, size_t begin)
{
    INVARIANTS(out_check(out));
    CHECK(begin < out->used);
    if (out->full) {
        out->used = begin;
        return false;
    }
    const uint32_t bytes = (uint32_t)(out->used - begin);
    memcpy(out->bytes + begin + offsetof(struct nlmsghdr, nlmsg_len), &bytes, sizeof(bytes));
    return true;
}

static void put_raw(struct nldev_out *out, const void *bytes, size_t count)
{
    CHECK(nldev_padded(count) <= out->message_end - out->used);
    memset(out->bytes + out->used, 0, nldev_padded(count));
    memcpy(out->bytes + out->used, bytes, count);
    out->used += nldev_padded(count);
}

/* An error repeats the request, as far as a datagram has room for it; "no error" its header. */
static void put_acknowledgement(struct nldev_out *out, const struct nldev_request *request,
                                int error)
{
    CHECK(error >= 0);
    const int32_t code = -error;
    const size_t room = NLDEV_DATAGRAM_BYTES - MESSAGE_HEADER - sizeof(code);
    const bool whole = error != 0 && nldev_padded(request->count) <= room;
    const size_t begin = begin_message(out, request, NLMSG_ERROR, whole ? 0 : NLM_F_CAPPED);
    put_raw(out, &code, sizeof(code));
    put_raw(out, request->bytes, whole ? request->count : sizeof(struct nlmsghdr));
    CHECK(end_message(out, begin));
}

static void put_done(struct nldev_out *out, const struct nldev_request *request)
{
    const int32_t code = 0;
    const size_t begin = begin_message(out, request, NLMSG_DONE, NLM_F_MULTI);
    put_raw(out, &code, sizeof(code));
    CHECK(end_message(out, begin));
}

/* Each reply begins with the device. */
static size_t begin_reply(struct nldev_out *out, const struct nldev_request *request,
                          const struct nldev_device *device)
{
    const size_t begin =
        begin_message(out, request, request->type, request->dump ? NLM_F_MULTI : 0);
    if (device != NULL) {
        nldev_put_u32(out, RDMA_NLDEV_ATTR_DEV_INDEX, device->index);
        nldev_put_text(out, RDMA_NLDEV_ATTR_DEV_NAME, device->name);
    }
    return begin;
}

/* -- Answers: 0, or the error of a request about something that is not there --------------------*/

static void put_device(struct nldev_out *out, const struct nldev_request *request,
                       const struct nldev_device *device)
{
    const size_t begin = begin_reply(out, request, device);
    nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, 1); /* How many there are. */
    nldev_put_u64(out, RDMA_NLDEV_ATTR_CAP_FLAGS, device->capabilities);
    nldev_put_text(out, RDMA_NLDEV_ATTR_FW_VERSION, device->firmware);
    nldev_put_u64(out, RDMA_NLDEV_ATTR_NODE_GUID, device->node_guid);
    nldev_put_u64(out, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, device->node_guid);
    nldev_put_u8(out, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, device->node_type);
    nldev_put_u8(out, RDMA_NLDEV_ATTR_DEV_DIM, 0);
    if (device->protocol != NULL) {
        nldev_put_text(out, RDMA_NLDEV_ATTR_DEV_PROTOCOL, device->protocol);
    }
    CHECK(end_message(out, begin));
}

/* On Ethernet ports have no local identifiers, subnet or capabilities of InfiniBand's. */
static void put_port(struct nldev_out *out, const struct nldev_request *request,
                     const struct nldev_device *device)
{
    const size_t begin = begin_reply(out, request, device);
    nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    nldev_put_u8(out, RDMA_NLDEV_ATTR_PORT_STATE, device->port_state);
    nldev_put_u8(out, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, device->port_physical_state);
    if (device->interface_index != 0) {
        nldev_put_u32(out, RDMA_NLDEV_ATTR_NDEV_INDEX, device->interface_index);
        nldev_put_text(out, RDMA_NLDEV_ATTR_NDEV_NAME, device->interface_name);
    }
    CHECK(end_message(out, begin));
}

static void put_totals(struct nldev_out *out, const struct nldev_request *request,
                       const struct nldev_device *device)
{
    const size_t begin = begin_reply(out, request, device);
    const size_t summary = nldev_begin_nest(out, RDMA_NLDEV_ATTR_RES_SUMMARY);
    for (enum nldev_kind kind = 0; kind < NLDEV_KINDS; kind++) {
        const size_t entry = nldev_begin_nest(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
        nldev_put_text(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, nldev_kind_name(kind));
        nldev_put_u64(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, device->totals[kind]);
        nldev_end_nest(out, entry);
    }
    nldev_end_nest(out, summary);
    CHECK(end_message(out, begin));
}

static void put_counter(struct nldev_out *out, const struct nldev_counter *counter, bool names,
                        uint32_t index)
{
    const size_t before = out->used;
    const size_t entry = nldev_begin_nest(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
    nldev_put_text(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, counter->name);
    if (names) {
        nldev_put_u32(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
        nldev_put_u8(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC, 0);
    } else {
        nldev_put_u64(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, counter->value);
    }
    nldev_end_nest(out, entry);
    if (out->full) {
        out->full = false;
        out->used = before;
        out->left_out++;
    }
}

/* A message has no room for all counters. Of the counters of rare events it has those that are not
 * 0. */
static void put_counters(struct nldev_out *out, const struct nldev_request *request,
                         const struct nldev_device *device)
{
    const bool names = nldev_command_of(request)->answers == NLDEV_ANSWERS_COUNTER_NAMES;
    const size_t begin = begin_reply(out, request, device);
    nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    const size_t table = nldev_begin_nest(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    CHECK(device->lasting_counters <= device->counter_count);
    for (size_t i = 0; i < device->counter_count; i++) {
        if (i < device->lasting_counters || device->counters[i].value != 0) {
            put_counter(out, &device->counters[i], names, (uint32_t)i);
        }
    }
    nldev_end_nest(out, table);
    CHECK(end_message(out, begin));
}

static void dump_objects(struct nldev_out *out, const struct nldev_request *request,
                         const struct nldev_device *device)
{
    for (size_t i = 0; i < device->resource_count; i++) {
        if (out->room - out->used < END_BYTES + NLDEV_DATAGRAM_BYTES) {
            out->left_out += (uint32_t)(device->resource_count - i);
            return;
        }
        const size_t begin = begin_reply(out, request, device);
        nldev_put_object(out, request, nldev_command_of(request)->kind, &device->resources[i]);
        CHECK(end_message(out, begin));
    }
}

/* Numbers are a process's own: the first that has it. */
static int put_object(struct nldev_out *out, const struct nldev_request *request,
                      const struct nldev_device *device)
{
    for (size_t i = 0; request->has_number && i < device->resource_count; i++) {
        const struct nldev_resource *resource = &device->resources[i];
        if (resource->values[NLDEV_NUMBER] == request->number) {
            const size_t begin = begin_reply(out, request, device);
            nldev_put_object(out, request, nldev_command_of(request)->kind, resource);
            CHECK(end_message(out, begin));
            return 0;
        }
    }
    return request->has_number ? ENOENT : EINVAL;
}

/* All devices are in the network namespace of their process, and in no other; memory is not pinned,
 * so that fork copies it like any other. */
static void put_system(struct nldev_out *out, const struct nldev_request *request)
{
    const size_t begin = begin_reply(out, request, NULL);
    nldev_put_u8(out, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 0);
    nldev_put_u8(out, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
    CHECK(end_message(out, begin));
}

static int put_chardev(struct nldev_out *out, const struct nldev_request *request,
                       const struct nldev_device *device)
{
    const bool cm = strcmp(request->chardev, "rdma_cm") == 0;
    const bool verbs = strcmp(request->chardev, "uverbs") == 0;
    if (request->chardev[0] == '\0' || (verbs && !request->has_device)) {
        return EINVAL;
    }
    if (device == NULL || (!cm && !verbs) || (cm && device->cm_abi == 0)) {
        return EOPNOTSUPP;
    }
    const size_t begin = begin_reply(out, request, verbs ? device : NULL);
    nldev_put_text(out, RDMA_NLDEV_ATTR_CHARDEV_NAME, cm ? "rdma_cm" : device->verbs_name);
    nldev_put_u64(out, RDMA_NLDEV_ATTR_CHARDEV_ABI, cm ? device->cm_abi : device->verbs_abi);
    nldev_put_u64(out, RDMA_NLDEV_ATTR_CHARDEV, cm ? device->cm_number : device->verbs_number);
    CHECK(end_message(out, begin));
    return 0;
}

/* -- Requests -----------------------------------------------------------------------------------*/

/* Does the object of the request exist? Dumps of all devices, and of the counts of each, need not
 * name a device. Dumps of the objects of one device must. */
static int judge_target(const struct nldev_request *request, const struct nldev_device *device)
{
    const enum nldev_answers answers = nldev_command_of(request)->answers;
    const bool about_all =
        request->dump &&
        (answers == NLDEV_ANSWERS_DEVICE || answers == NLDEV_ANSWERS_TOTALS ||
         answers == NLDEV_ANSWERS_COUNTERS || answers == NLDEV_ANSWERS_COUNTER_NAMES);
    const bool about_port =
        !request->dump && (answers == NLDEV_ANSWERS_PORT || answers == NLDEV_ANSWERS_COUNTERS ||
                           answers == NLDEV_ANSWERS_COUNTER_NAMES);
    if (answers == NLDEV_ANSWERS_SYSTEM) {
        return 0;
    }
    if (request->has_device ? device == NULL || request->device != device->index
                            : !about_all && answers != NLDEV_ANSWERS_CHARDEV) {
        return EINVAL;
    }
    if (about_port ? !request->has_port || request->port != 1
                   : request->has_port && request->port != 1) {
        return EINVAL;
    }
    return 0;
}

/* Counters of single queue pairs and regions: there are none. */
static int judge_statistic(const struct nldev_request *request)
{
    if (nldev_command_of(request)->answers != NLDEV_ANSWERS_COUNTERS) {
        return 0;
    }
    if (!request->has_statistic) {
        return request->dump ? EINVAL : 0;
    }
    if (request->statistic != RDMA_NLDEV_ATTR_RES_QP &&
        request->statistic != RDMA_NLDEV_ATTR_RES_MR) {
        return EINVAL;
    }
    return request->dump ? 0 : ENOENT;
}

static int put_replies(struct nldev_out *out, const struct nldev_request *request,
                       const struct nldev_device *device)
{
    const enum nldev_answers answers = nldev_command_of(request)->answers;
    CHECK(device != NULL || request->dump || answers == NLDEV_ANSWERS_SYSTEM ||
          answers == NLDEV_ANSWERS_CHARDEV); /* judge_target has refused all others. */
    const bool nothing = device == NULL && request->dump;
    switch (nothing ? NLDEV_ANSWERS_NOT : answers) {
    case NLDEV_ANSWERS_DEVICE: put_device(out, request, device); break;
    case NLDEV_ANSWERS_PORT: put_port(out, request, device); break;
    case NLDEV_ANSWERS_TOTALS: put_totals(out, request, device); break;
    case NLDEV_ANSWERS_SYSTEM: put_system(out, request); break;
    case NLDEV_ANSWERS_CHARDEV: return put_chardev(out, request, device);
    case NLDEV_ANSWERS_COUNTERS:
        if (!request->has_statistic) {
            put_counters(out, request, device);
        }
        break;
    case NLDEV_ANSWERS_COUNTER_NAMES: put_counters(out, request, device); break;
    case NLDEV_ANSWERS_OBJECTS:
        if (!request->dump) {
            return put_object(out, request, device);
        }
        dump_objects(out, request, device);
        break;
    case NLDEV_ANSWERS_NOT: break;
    }
    return 0;
}

static int answer(const struct nldev_request *request, const struct nldev_device *device,
                  struct nldev_out *out)
{
    if (request->error != 0) {
        return request->error;
    }
    int error = judge_target(request, device);
    error = error != 0 ? error : judge_statistic(request);
    return error != 0 ? error : put_replies(out, request, device);
}

bool nldev_answer(const struct nldev_request *request, const struct nldev_device *device,
                  struct nldev_out *out)
{
    if (out->room - out->used < END_BYTES + NLDEV_DATAGRAM_BYTES) {
        return false;
    }
    const int error = nldev_is_control(request) ? 0 : answer(request, device, out);
    if (error == 0 && request->dump) {
        put_done(out, request);
    } else if (error != 0 || (request->flags & NLM_F_ACK)) {
        put_acknowledgement(out, request, error);
    }
    return true;
}

/* -- Datagrams ----------------------------------------------------------------------------------*/

size_t nldev_datagram(const uint8_t *bytes, size_t count)
{
    size_t used = 0;
    while (count - used >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr header;
        memcpy(&header, bytes + used, sizeof(header));
        const size_t whole = nldev_padded(header.nlmsg_len);
        /* An acknowledgement stands alone, as a kernel's does. */
        const bool alone = header.nlmsg_type == NLMSG_ERROR;
        CHECK(whole >= sizeof(header) && whole <= count - used);
        if (used > 0 && (alone || used + whole > NLDEV_DATAGRAM_BYTES)) {
            break;
        }
        used += whole;
        if (alone) {
            break;
        }
    }
    return used;
}
