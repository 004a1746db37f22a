/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_guesses - a NIC that refuses WRITEs of one who guesses keys, for callgrind: how many
 * instructions that takes, from the packet to the answer.
 *
 * Usage: srd_guesses GUESS COUNT
 *   GUESS  a number of enum crowd_guess
 *   COUNT  WRITEs
 */
#include <stdio.h>
#include <valgrind/callgrind.h>

#include "tests/srd_crowd.h"

#define GUESSER 1u

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    const enum crowd_guess guess = (enum crowd_guess)atoi(argv[1]);
    const uint32_t count = (uint32_t)atoi(argv[2]);
    const struct srd_limits limits = {.contacts = 100,
                                      .peers = 64,
                                      .hosts = 8,
                                      .assemblies = 16,
                                      .requests = 16,
                                      .parts = 16,
                                      .packets = 64,
                                      .reads = 16};
    struct crowd *crowd = crowd_start(&limits);
    struct crowd_secrets secrets = {0};
    uint16_t host;
    const struct gid gid = crowd_gid(GUESSER);
    crowd_hide(crowd, &secrets);
    CHECK(srd_hold_host(crowd->nic, &gid, &host) == STATUS_OK);
    const uint64_t tag = crowd_tag(crowd, GUESSER, 1);
    struct srd_packet packet = crowd_request(crowd, SRD_WRITE, GUESSER, 1, tag, 100);
    packet.message_bytes = CROWD_CHUNK;
    packet.payload_bytes = CROWD_CHUNK;
    CALLGRIND_TOGGLE_COLLECT;
    for (uint32_t i = 0; i < count; i++, packet.psn++) {
        crowd_guess(crowd, &secrets, guess, i, &packet);
        CHECK(crowd_say(crowd, GUESSER, &packet) == NIC_DONE);
        CHECK(crowd_hear(crowd) && crowd->last.opcode == SRD_ANSWER);
        CHECK(crowd->last.answer.records[0].status == SRD_STATUS_BAD_ADDRESS);
    }
    CALLGRIND_TOGGLE_COLLECT;
    crowd_reveal(crowd, &secrets);
    crowd_end(crowd);
    return 0;
}
