/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_packet - one packet into a port, or as bytes.
 */
#include <string.h>

#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_packet.h"
#include "drivers/system/memory.h"
#include "wire/roce_frame.h"

/* Tells the NIC whether the peer is a nonic: then its connections may move to blocks. */
static void note_answers(struct live *live, struct link *link)
{
    INVARIANTS(CHECK(link->kind == LINK_UDP && link->number <= LIVE_NUMBERS_MAX));
    nic_note_answers(live->nic, link->number, udp_link_answers(link));
}

bool live_has_room(struct live *live, struct link *link)
{
    switch (link->kind) {
    case LINK_UDP:
        if (live->config.transport != NIC_TRANSPORT_RC) {
            note_answers(live, link);
        }
        return udp_link_has_room(&live->udp, link, live->now);
    case LINK_SHM: return shm_link_has_room(link);
    case LINK_SHARED:
    case LINK_NOWHERE: break;
    }
    return true;
}

/* Each route over UDP has a link and a flow of its own. */
struct inet_flow live_flow_of(const struct link *link, const struct nic_av *av)
{
    return link->kind == LINK_UDP ? *udp_link_flow(link)
                                  : roce_flow(av->source.bytes, av->destination.bytes);
}

/* Adds pads and ICRC behind `count` bytes from the BTH on. Returns how many there are then. */
uint32_t live_seal(const struct link *link, const struct nic_av *av, uint8_t *bytes, size_t count,
                   size_t pad_bytes)
{
    const struct inet_flow flow = live_flow_of(link, av);
    CHECK(count + pad_bytes + ROCE_ICRC_BYTES <= BLOCK_PACKET_BYTES_MAX);
    return (uint32_t)roce_frame_seal(&flow, bytes, count, pad_bytes);
}

uint32_t live_serialize(const struct link *link, const struct nic_departure *departure,
                        uint8_t *bytes)
{
    CHECK(departure->headers_bytes + departure->payload_bytes <= BLOCK_PACKET_BYTES_MAX);
    memcpy(bytes, departure->headers, departure->headers_bytes);
    const uint32_t count = departure->headers_bytes;
    if (!memory_gather(departure->segments, departure->segment_count, bytes + count)) {
        return 0;
    }
    return live_seal(link, departure->av, bytes, count + departure->payload_bytes,
                     departure->pad_bytes);
}

/* Without room the packet is lost like any other; only captured packets and those that faults
 * strike come by here. */
void live_transmit_raw(struct live *live, struct link *link, struct inet_variant variant,
                       const uint8_t *bytes, uint32_t count)
{
    CHECK(link->kind != LINK_SHARED); /* It would be lost without a word. */
    if (link->kind == LINK_UDP) {
        udp_port_transmit_raw(&live->udp, link, variant, bytes, count);
    } else if (link->kind == LINK_SHM) {
        (void)!shm_link_transmit_raw(live->shm, link, variant, bytes, count);
    }
}

bool live_transmit_packet(struct live *live, struct link *link,
                          const struct nic_departure *departure)
{
    INVARIANTS(CHECK(link->kind != LINK_SHARED));
    switch (link->kind) {
    case LINK_UDP: return udp_port_transmit(&live->udp, link, departure);
    case LINK_SHM: return shm_link_transmit(live->shm, link, departure);
    case LINK_SHARED:
    case LINK_NOWHERE: break;
    }
    return true;
}

void live_flush_ports(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    if (live->shm != NULL) {
        live->links.parked |= !shm_port_flush(live->shm);
    }
    udp_port_flush(&live->udp);
    live->links.parked |= udp_port_has_waiting(&live->udp);
}
