/* SPDX-License-Identifier: BSD-2-Clause
 *
 * estimate - see estimate.h.
 */
#include "lab/lant/estimate.h"

#include "wire/lant.h"

struct lant_estimate lant_estimate(const struct lant_estimate_input *input)
{
    struct lant_estimate estimate = {0};
    estimate.ratio = lant_estimate_share(input->hls_cycles, input->path_cycles);
    estimate.blocks_per_s = input->path_bps / (8.0 * input->block_bytes);
    estimate.block_flops = estimate.blocks_per_s * input->block_flops;
    estimate.flops = estimate.block_flops * input->accelerators;
    estimate.logic_fits = input->logic * (1 - input->stack_share) / input->block_logic;
    estimate.needed_bps = input->path_bps * input->accelerators;
    estimate.exceeds_link = estimate.needed_bps > input->link_bps;
    estimate.link_fits = (uint32_t)(input->link_bps / input->path_bps);
    estimate.link_flops = estimate.block_flops * estimate.link_fits;
    return estimate;
}

double lant_estimate_gain(double slower, double faster)
{
    return 1 - faster / slower;
}

double lant_estimate_share(double part, double whole)
{
    return part / whole;
}

double lant_estimate_overhead(uint32_t payload_flits)
{
    return lant_estimate_share(LANT_PACKET_FLITS_MIN, LANT_PACKET_FLITS_MIN + payload_flits);
}

double lant_estimate_mac_share(uint32_t packet_flits, uint32_t frame_flits, uint32_t pause_flits)
{
    const double pauses = pause_flits == 0 ? 0 : (double)packet_flits / pause_flits;
    return lant_estimate_share(frame_flits + pauses, packet_flits + frame_flits + pauses);
}

double lant_estimate_compute_cycles(double ratio, double path_cycles)
{
    return ratio * path_cycles;
}
