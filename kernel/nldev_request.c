/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_request - requests of a program: reading and judging them.
 */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include "base/check.h"
#include "kernel/nldev_internal.h"

/* -- Commands -----------------------------------------------------------------------------------*/

#define ONE(what)                                                                                  \
    {                                                                                              \
        .answers = what                                                                            \
    }
#define ALL(what)                                                                                  \
    {                                                                                              \
        .answers = what, .dumps = true                                                             \
    }
#define OBJECTS(what)                                                                              \
    {                                                                                              \
        .answers = NLDEV_ANSWERS_OBJECTS, .dumps = true, .kind = what                              \
    }

static const struct nldev_command commands[RDMA_NLDEV_NUM_OPS] = {
    [RDMA_NLDEV_CMD_GET] = ALL(NLDEV_ANSWERS_DEVICE),
    [RDMA_NLDEV_CMD_PORT_GET] = ALL(NLDEV_ANSWERS_PORT),
    [RDMA_NLDEV_CMD_SYS_GET] = ONE(NLDEV_ANSWERS_SYSTEM),
    [RDMA_NLDEV_CMD_GET_CHARDEV] = ONE(NLDEV_ANSWERS_CHARDEV),
    [RDMA_NLDEV_CMD_RES_GET] = ALL(NLDEV_ANSWERS_TOTALS),
    [RDMA_NLDEV_CMD_RES_PD_GET] = OBJECTS(NLDEV_PD),
    [RDMA_NLDEV_CMD_RES_CQ_GET] = OBJECTS(NLDEV_CQ),
    [RDMA_NLDEV_CMD_RES_QP_GET] = OBJECTS(NLDEV_QP),
    [RDMA_NLDEV_CMD_RES_CM_ID_GET] = OBJECTS(NLDEV_CM_ID),
    [RDMA_NLDEV_CMD_RES_MR_GET] = OBJECTS(NLDEV_MR),
    [RDMA_NLDEV_CMD_RES_CTX_GET] = OBJECTS(NLDEV_CTX),
    [RDMA_NLDEV_CMD_RES_SRQ_GET] = OBJECTS(NLDEV_SRQ),
    [RDMA_NLDEV_CMD_STAT_GET] = ALL(NLDEV_ANSWERS_COUNTERS),
    [RDMA_NLDEV_CMD_STAT_GET_STATUS] = ALL(NLDEV_ANSWERS_COUNTER_NAMES),
};

/* Numbers that no command ever had. */
static bool is_unknown(uint16_t command)
{
    return command == RDMA_NLDEV_CMD_UNSPEC || command == 8 || command >= RDMA_NLDEV_NUM_OPS;
}

const struct nldev_command *nldev_command_of(const struct nldev_request *request)
{
    CHECK(request->command < COUNT_OF(commands)); /* Others were answered with an error. */
    return &commands[request->command];
}

/* -- Attributes ---------------------------------------------------------------------------------*/

static int read_u32(const uint8_t *value, size_t bytes, uint32_t *number, bool *given)
{
    if (bytes != sizeof(*number)) {
        return ERANGE;
    }
    memcpy(number, value, sizeof(*number));
    *given = true;
    return 0;
}

static int read_name(const uint8_t *value, size_t bytes, char name[NLDEV_NAME_BYTES])
{
    if (bytes == 0 || value[bytes - 1] != '\0') {
        return EINVAL;
    }
    if (bytes > NLDEV_NAME_BYTES) {
        return ERANGE;
    }
    memcpy(name, value, bytes);
    return 0;
}

static int read_attribute(struct nldev_request *request, uint16_t type, const uint8_t *value,
                          size_t bytes)
{
    switch (type) {
    case RDMA_NLDEV_ATTR_DEV_INDEX:
        return read_u32(value, bytes, &request->device, &request->has_device);
    case RDMA_NLDEV_ATTR_PORT_INDEX:
        return read_u32(value, bytes, &request->port, &request->has_port);
    case RDMA_NLDEV_ATTR_STAT_RES:
        return read_u32(value, bytes, &request->statistic, &request->has_statistic);
    case RDMA_NLDEV_ATTR_CHARDEV_TYPE: return read_name(value, bytes, request->chardev);
    default: break;
    }
    const struct nldev_command *command = nldev_command_of(request);
    if (command->answers == NLDEV_ANSWERS_OBJECTS &&
        type == nldev_number_attribute(command->kind)) {
        return read_u32(value, bytes, &request->number, &request->has_number);
    }
    return 0;
}

/* The attributes lie one behind the other to the end, each padded to 4 bytes but for the last. */
static int read_attributes(struct nldev_request *request)
{
    size_t at = MESSAGE_HEADER;
    CHECK(request->count >= MESSAGE_HEADER);
    while (at < request->count) {
        struct nlattr attribute;
        const size_t left = request->count - at;
        if (left < sizeof(attribute)) {
            return EINVAL;
        }
        memcpy(&attribute, request->bytes + at, sizeof(attribute));
        if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > left) {
            return EINVAL;
        }
        const int error = read_attribute(
            request, attribute.nla_type & (uint16_t) ~(NLA_F_NESTED | NLA_F_NET_BYTEORDER),
            request->bytes + at + ATTRIBUTE_HEADER, attribute.nla_len - sizeof(attribute));
        if (error != 0) {
            return error;
        }
        at += nldev_padded(attribute.nla_len);
    }
    return 0;
}

/* -- Messages -----------------------------------------------------------------------------------*/

static int judge(struct nldev_request *request)
{
    const int client = RDMA_NL_GET_CLIENT(request->type);
    request->command = RDMA_NL_GET_OP(request->type);
    if (client != RDMA_NL_NLDEV || is_unknown(request->command)) {
        return EINVAL;
    }
    const struct nldev_command *command = nldev_command_of(request);
    if (command->answers == NLDEV_ANSWERS_NOT) {
        return EOPNOTSUPP; /* Nothing of a device made of software is there to be changed. */
    }
    request->dump = command->dumps && (request->flags & NLM_F_DUMP) == NLM_F_DUMP;
    return read_attributes(request);
}

/* A kernel answers to control messages, and to what is no request, with an acknowledgement if one
 * is wanted. */
static bool is_request(const struct nldev_request *request)
{
    return (request->flags & NLM_F_REQUEST) && request->type >= NLMSG_MIN_TYPE;
}

bool nldev_next(const uint8_t *bytes, size_t count, size_t *at, struct nldev_request *request)
{
    struct nlmsghdr header;
    if (count < *at || count - *at < sizeof(header)) {
        return false;
    }
    const size_t left = count - *at;
    memcpy(&header, bytes + *at, sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > left) {
        return false;
    }
    *request = (struct nldev_request){
        .type = header.nlmsg_type,
        .flags = header.nlmsg_flags,
        .sequence = header.nlmsg_seq,
        .port_id = header.nlmsg_pid,
        .bytes = bytes + *at,
        .count = header.nlmsg_len,
    };
    if (is_request(request)) {
        request->error = judge(request);
    }
    const size_t whole = nldev_padded(header.nlmsg_len);
    *at += whole < left ? whole : left;
    return true;
}

/* -- Needs of a request -------------------------------------------------------------------------*/

static bool is_good(const struct nldev_request *request)
{
    return request->error == 0 && is_request(request);
}

bool nldev_is_control(const struct nldev_request *request)
{
    return !is_request(request);
}

bool nldev_wants_totals(const struct nldev_request *request)
{
    return is_good(request) && nldev_command_of(request)->answers == NLDEV_ANSWERS_TOTALS;
}

bool nldev_wants_counters(const struct nldev_request *request)
{
    const enum nldev_answers answers =
        is_good(request) ? nldev_command_of(request)->answers : NLDEV_ANSWERS_NOT;
    return answers == NLDEV_ANSWERS_COUNTERS || answers == NLDEV_ANSWERS_COUNTER_NAMES;
}

bool nldev_wants_objects(const struct nldev_request *request, enum nldev_kind *kind)
{
    if (!is_good(request) || nldev_command_of(request)->answers != NLDEV_ANSWERS_OBJECTS) {
        return false;
    }
    *kind = nldev_command_of(request)->kind;
    return true;
}
