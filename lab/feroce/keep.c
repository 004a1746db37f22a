/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A receiver that keeps packets behind a lost one, which no RC receiver has to do: A23 would then
 * be this. It stands in front of the NIC, which sees everything in order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "lab/feroce/machine.h"
#include "lab/feroce/receiver_internal.h"

static void ask_again(struct feroce_receiver *receiver, const struct feroce_connection *connection)
{
    struct feroce_packet_on_line *packet = feroce_receiver_packet(receiver, connection->sender);
    const struct roce_packet nak = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = connection->board_qpn,
        .psn = connection->expected.value,
        .aeth = {.syndrome = ROCE_AETH_NAK},
    };
    packet->header_bytes = (uint32_t)roce_encode_headers(&nak, packet->headers);
    receiver->naks++;
    feroce_seal(packet);
    sim_port_send(&receiver->port, &packet->frame);
}

void feroce_receiver_keep(struct feroce_receiver *receiver, struct feroce_packet_on_line *packet,
                          void (*hand_in)(struct feroce_receiver *receiver,
                                          struct feroce_packet_on_line *packet))
{
    struct feroce_connection *connection = NULL;
    for (uint32_t i = 0; i < receiver->connection_count; i++) {
        struct feroce_connection *one = &receiver->connections[i];
        if (one->sender == packet->from && one->board_qpn == FEROCE_FIRST_QPN + packet->index) {
            connection = one;
        }
    }
    CHECK(connection != NULL);
    if (connection->kept == NULL) {
        connection->kept = calloc(FEROCE_KEPT_MAX, sizeof(struct feroce_packet_on_line *));
        CHECK(connection->kept != NULL);
    }
    const int32_t ahead = psn_distance(connection->expected, packet->psn);
    struct feroce_packet_on_line **place = &connection->kept[packet->psn.value % FEROCE_KEPT_MAX];
    if (ahead < 0 || *place != NULL) {
        feroce_give_packet(receiver->machine, packet); /* It has it. */
        return;
    }
    *place = packet;
    if (ahead > 0 && !connection->asked) {
        connection->asked = true;
        ask_again(receiver, connection);
    }
    for (;;) {
        place = &connection->kept[connection->expected.value % FEROCE_KEPT_MAX];
        if (*place == NULL) {
            break;
        }
        hand_in(receiver, *place);
        *place = NULL;
        connection->expected = psn_after(connection->expected, 1);
        connection->asked = false;
    }
}
