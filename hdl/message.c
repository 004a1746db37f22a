/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdl/message.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define HELLO_MAGIC UINT32_C(0x3142484e) /* "NHB1". */

enum {
    PORT_OF_HELLO_BYTES = 8 + HDL_SCOPE_BYTES,
    CONFIG_BYTES = 7 * 4 + 2 * 8,
    RESET_ASSERTED = 1, /* Flags. */
    FRAME_BAD = 1
};

/* All counters are words of 64 bits: they go as they are. */
_Static_assert(sizeof(struct hdl_counters) % sizeof(uint64_t) == 0, "no holes");

/* The senders of a type, and how many bytes follow its header. */
static const struct kind {
    uint32_t senders, least, most;
} kinds[] = {
    [HDL_HELLO] = {HDL_FROM_MODEL, 4, 4 + HDL_HELLO_PORTS_MAX *PORT_OF_HELLO_BYTES},
    [HDL_PORT] = {HDL_FROM_NONIC, CONFIG_BYTES, CONFIG_BYTES},
    [HDL_TRACE] = {HDL_FROM_NONIC, 1, HDL_PATH_BYTES_MAX},
    [HDL_RESET] = {HDL_FROM_NONIC, 0, 0},
    [HDL_FRAME] = {HDL_FROM_NONIC | HDL_FROM_MODEL, 1, HDL_FRAME_BYTES_MAX},
    [HDL_PAUSE] = {HDL_FROM_NONIC, 0, 0},
    [HDL_GRANT] = {HDL_FROM_NONIC, 0, 0},
    [HDL_VIOLATION] = {HDL_FROM_MODEL, 8, 8},
    [HDL_COUNTERS] = {HDL_FROM_MODEL, sizeof(struct hdl_counters), sizeof(struct hdl_counters)},
    [HDL_DONE] = {HDL_FROM_MODEL, 0, 0},
    [HDL_FINISH] = {HDL_FROM_NONIC | HDL_FROM_MODEL, 0, 0},
};

struct header {
    uint32_t type, port, flags, length;
    uint64_t time_ps, value;
};

static void store_header(const struct header *header, uint8_t *bytes)
{
    bytes[0] = (uint8_t)header->type;
    bytes[1] = (uint8_t)header->port;
    store_le16(bytes + 2, (uint16_t)header->flags);
    store_le32(bytes + 4, header->length);
    store_le64(bytes + 8, header->time_ps);
    store_le64(bytes + 16, header->value);
}

static struct header load_header(const uint8_t *bytes)
{
    return (struct header){.type = bytes[0],
                           .port = bytes[1],
                           .flags = load_le16(bytes + 2),
                           .length = load_le32(bytes + 4),
                           .time_ps = load_le64(bytes + 8),
                           .value = load_le64(bytes + 16)};
}

/* -- Encoding -----------------------------------------------------------------------------------*/

/* Flags, value and length; the rest of a header is the same for all types. */
static struct header header_of(const struct hdl_message *message)
{
    struct header header = {.type = message->type,
                            .port = message->port,
                            .time_ps = message->time_ps,
                            .length = kinds[message->type].least};
    switch (message->type) {
    case HDL_HELLO:
        header.value = message->hello.abi;
        header.length = 4 + message->hello.ports * PORT_OF_HELLO_BYTES;
        break;
    case HDL_TRACE:
        header.length = message->trace.bytes;
        header.value = message->trace.to_ps;
        break;
    case HDL_RESET: header.flags = message->reset ? RESET_ASSERTED : 0; break;
    case HDL_FRAME:
        header.flags = message->frame.bad ? FRAME_BAD : 0;
        header.value = message->frame.at_ps;
        header.length = message->frame.bytes;
        break;
    case HDL_PAUSE:
        header.flags = message->pause.priority;
        header.value = message->pause.quanta;
        break;
    case HDL_GRANT: header.value = message->period_fs; break;
    case HDL_VIOLATION:
        header.flags = message->violation.rule;
        header.value = message->violation.edge;
        break;
    case HDL_PORT:
    case HDL_COUNTERS:
    case HDL_DONE:
    case HDL_FINISH: break;
    default: UNREACHABLE("type");
    }
    return header;
}

static void store_hello(const struct hdl_hello *hello, uint8_t *bytes)
{
    store_le32(bytes, HELLO_MAGIC);
    bytes += 4;
    for (uint32_t i = 0; i < hello->ports; i++, bytes += PORT_OF_HELLO_BYTES) {
        store_le32(bytes, hello->port[i].number);
        store_le32(bytes + 4, hello->port[i].width_bits);
        memset(bytes + 8, 0, HDL_SCOPE_BYTES);
        memcpy(bytes + 8, hello->port[i].scope, strlen(hello->port[i].scope));
    }
}

static void store_config(const struct hdl_port_config *config, uint8_t *bytes)
{
    const uint32_t words[] = {config->width_bits, config->frame_bytes, config->frames,
                              config->paused_by,  config->ready_ppm,   config->gap_ppm,
                              config->cut_through};
    memcpy(bytes, words, sizeof(words));
    store_le64(bytes + sizeof(words), config->line_fs_per_byte);
    store_le64(bytes + sizeof(words) + 8, config->seed);
}

uint32_t hdl_message_encode(const struct hdl_message *message, uint8_t *bytes)
{
    const struct header header = header_of(message);
    CHECK(header.length >= kinds[header.type].least && header.length <= kinds[header.type].most);
    store_header(&header, bytes);
    uint8_t *rest = bytes + HDL_MESSAGE_HEADER_BYTES;
    switch (message->type) {
    case HDL_HELLO: store_hello(&message->hello, rest); break;
    case HDL_PORT: store_config(&message->config, rest); break;
    case HDL_TRACE: memcpy(rest, message->trace.path, header.length); break;
    case HDL_FRAME: memcpy(rest, message->frame.data, header.length); break;
    case HDL_VIOLATION: store_le64(rest, message->violation.frame); break;
    case HDL_COUNTERS: memcpy(rest, &message->counters, header.length); break;
    case HDL_RESET:
    case HDL_PAUSE:
    case HDL_GRANT:
    case HDL_DONE:
    case HDL_FINISH: break;
    default: UNREACHABLE("type");
    }
    return HDL_MESSAGE_HEADER_BYTES + header.length;
}

/* -- Decoding -----------------------------------------------------------------------------------*/

/* Letters that one can see, and zeros behind them. */
static bool is_scope(const char *scope)
{
    bool ends = false;
    for (uint32_t i = 0; i < HDL_SCOPE_BYTES; i++) {
        ends |= scope[i] == '\0';
        if (ends ? scope[i] != '\0' : scope[i] <= ' ' || scope[i] > '~') {
            return false;
        }
    }
    return ends;
}

static const char *load_hello(const struct header *header, const uint8_t *rest,
                              struct hdl_hello *hello)
{
    if (load_le32(rest) != HELLO_MAGIC || header->value > UINT32_MAX) {
        return "a greeting that is none";
    }
    hello->abi = (uint32_t)header->value;
    hello->ports = 0;
    if (hello->abi != HDL_ABI) {
        return NULL;
    }
    if ((header->length - 4) % PORT_OF_HELLO_BYTES != 0) {
        return "a part of a port";
    }
    hello->ports = (header->length - 4) / PORT_OF_HELLO_BYTES;
    rest += 4;
    for (uint32_t i = 0; i < hello->ports; i++, rest += PORT_OF_HELLO_BYTES) {
        hello->port[i].number = load_le32(rest);
        hello->port[i].width_bits = load_le32(rest + 4);
        hello->port[i].scope = (const char *)rest + 8;
        if (!is_scope(hello->port[i].scope)) {
            return "a name that is none";
        }
    }
    return NULL;
}

static const char *load_config(const uint8_t *rest, struct hdl_port_config *config)
{
    *config = (struct hdl_port_config){.width_bits = load_le32(rest),
                                       .frame_bytes = load_le32(rest + 4),
                                       .frames = load_le32(rest + 8),
                                       .paused_by = load_le32(rest + 12),
                                       .ready_ppm = load_le32(rest + 16),
                                       .gap_ppm = load_le32(rest + 20),
                                       .cut_through = load_le32(rest + 24) != 0,
                                       .line_fs_per_byte = load_le64(rest + 28),
                                       .seed = load_le64(rest + 36)};
    return load_le32(rest + 24) > 1 ? "bits that mean nothing" : hdl_port_config_error(config);
}

static const char *load_pause(const struct header *header, struct hdl_pause *pause)
{
    *pause = (struct hdl_pause){
        .at_ps = header->time_ps, .priority = header->flags, .quanta = (uint32_t)header->value};
    return header->flags >= HDL_CLASSES ? "a pause of a class that there is not"
           : header->value > UINT16_MAX ? "a pause that is too long"
                                        : NULL;
}

static const char *load_violation(const struct header *header, const uint8_t *rest,
                                  struct hdl_violation *violation)
{
    if (header->flags >= HDL_RULES) {
        return "a rule that there is not";
    }
    *violation = (struct hdl_violation){.rule = (enum hdl_rule)header->flags,
                                        .at_ps = header->time_ps,
                                        .edge = header->value,
                                        .frame = load_le64(rest)};
    return NULL;
}

static const char *load_rest(const struct header *header, const uint8_t *rest,
                             struct hdl_message *message)
{
    switch (message->type) {
    case HDL_HELLO: return load_hello(header, rest, &message->hello);
    case HDL_PORT: return load_config(rest, &message->config);
    case HDL_PAUSE: return load_pause(header, &message->pause);
    case HDL_VIOLATION: return load_violation(header, rest, &message->violation);
    case HDL_COUNTERS: memcpy(&message->counters, rest, sizeof(message->counters)); return NULL;
    case HDL_RESET: message->reset = header->flags == RESET_ASSERTED; return NULL;
    case HDL_TRACE:
        message->trace.path = (const char *)rest;
        message->trace.bytes = header->length;
        message->trace.to_ps = header->value;
        return NULL;
    case HDL_FRAME:
        message->frame = (struct hdl_frame){.at_ps = header->value,
                                            .data = rest,
                                            .bytes = header->length,
                                            .bad = header->flags == FRAME_BAD};
        return header->length < HDL_FRAME_BYTES_MIN && !message->frame.bad
                   ? "a frame that is too short"
                   : NULL;
    case HDL_GRANT:
        message->period_fs = header->value;
        return header->value < HDL_PERIOD_FS_MIN ? "a period that is too short" : NULL;
    case HDL_DONE:
    case HDL_FINISH: return NULL;
    default: UNREACHABLE("type");
    }
}

static const char *judge_header(const struct header *header, enum hdl_sender sender)
{
    if (header->type >= COUNT_OF(kinds) || (kinds[header->type].senders & sender) == 0) {
        return "a type of message that it does not send";
    }
    const struct kind *kind = &kinds[header->type];
    if (header->length < kind->least || header->length > kind->most) {
        return "a message of a wrong length";
    }
    return header->port >= HDL_PORTS_MAX ? "a port that there is not" : NULL;
}

const char *hdl_message_decode(const uint8_t *bytes, size_t count, enum hdl_sender sender,
                               struct hdl_message *message, uint32_t *used)
{
    *used = 0;
    if (count < HDL_MESSAGE_HEADER_BYTES) {
        return NULL;
    }
    const struct header header = load_header(bytes);
    const char *wrong = judge_header(&header, sender);
    if (wrong != NULL || count - HDL_MESSAGE_HEADER_BYTES < header.length) {
        return wrong;
    }
    *message = (struct hdl_message){
        .type = (enum hdl_message_type)header.type, .port = header.port, .time_ps = header.time_ps};
    wrong = load_rest(&header, bytes + HDL_MESSAGE_HEADER_BYTES, message);
    if (wrong != NULL) {
        return wrong;
    }
    if (message->type == HDL_HELLO && message->hello.abi != HDL_ABI) {
        *used = HDL_MESSAGE_HEADER_BYTES + header.length;
        return NULL;
    }
    /* Bits without a meaning are 0: what was understood says all that the header says. */
    uint8_t again[HDL_MESSAGE_HEADER_BYTES];
    const struct header understood = header_of(message);
    store_header(&understood, again);
    if (memcmp(again, bytes, sizeof(again)) != 0) {
        return "bits that mean nothing";
    }
    *used = HDL_MESSAGE_HEADER_BYTES + header.length;
    return NULL;
}
