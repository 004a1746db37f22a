/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_csrna - csRNA's parameters (lab/csrna/parameters.c) as a RoCE machine with csRNA's units
 * (docs/decisions/0071).
 *
 * Real frames are on the lines, as with the parameter framing=rocev2 of the laboratory's own
 * programs; a node's line and that of its peer share the latency between the two.
 */
#include "tools/repeat_csrna.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "lab/csrna/experiments.h"

/* The parameters of `csrna/one` that the NIC has here. The others are of the laboratory's own
 * programs, of their network, and of connections' windows. */
static const char *const taken[] = {
    "clock",      "read",        "write",     "pcie",     "access",   "board",    "board_rate",
    "ethernet",   "link",        "placement", "context",  "cache",    "victims",  "write_back",
    "policy",     "prefetch",    "oocap",     "acks",     "software", "wqe_room", "processing",
    "visit_wqes", "visit_bytes", "ready",     "payloads", "backlog",  "cqe"};

static bool is_taken(const char *setting)
{
    const size_t bytes = strcspn(setting, "=");
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        if (strlen(taken[i]) == bytes && memcmp(taken[i], setting, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool prepare(struct lab_run *run, const char *const *settings, int count, char *error,
                    size_t error_bytes)
{
    char why[LAB_FAILURE_BYTES];
    lab_prepare(run, &csrna_one, 1);
    for (int i = 0; i < count; i++) {
        if (!lab_set(run, settings[i], why, sizeof(why))) {
            (void)snprintf(error, error_bytes, "--set %s: %s", settings[i], why);
            return false;
        }
        if (!is_taken(settings[i])) {
            (void)snprintf(error, error_bytes,
                           "--set %s: that is for the laboratory's own programs; here the program "
                           "is yours, lines carry RoCEv2's frames, and windows are the engine's",
                           settings[i]);
            return false;
        }
    }
    return true;
}

static struct roce_units_config units_of(const struct csrna_config *nic, uint64_t software_ps)
{
    return (struct roce_units_config){
        .cycle_ps = nic->cycle_ps,
        .blocks = nic->policy->order == QPC_FCFS,
        .hides = nic->policy->hides,
        .prefetch = nic->prefetch,
        .on_board = nic->placement == CSRNA_BOARD,
        .writes_back = nic->write_back,
        .acks_ask = nic->acks == CSRNA_ACKS_CONTEXT,
        .victims = nic->victims,
        .oocap = nic->oocap,
        .board_ps = nic->board_ps,
        .board_byte_fs = nic->board_byte_fs,
        .access_bytes = nic->access_bytes,
        .software_ps = software_ps,
        .processing = nic->processing,
        .wqe_room = nic->wqe_room,
        .visit_wqes = nic->visit_wqes,
        .visit_bytes = nic->visit_bytes,
        .ready = nic->ready,
        .payloads = nic->payloads,
        .backlog_ps = nic->backlog_ps,
    };
}

/* An access costs a number of bytes beside its own, whatever its length. */
static struct roce_pcie pcie_of(const struct csrna_config *nic)
{
    return (struct roce_pcie){
        .byte_fs = nic->pcie_byte_fs,
        .payload_bytes = UINT32_MAX / 2,
        .request_bytes = UINT32_MAX / 2,
        .write_header_bytes = nic->access_bytes,
        .completion_header_bytes = nic->access_bytes,
        .read_ps = nic->read_ps,
        .write_ps = nic->write_ps,
        .doorbell_ps = nic->write_ps,
    };
}

bool repeat_csrna(struct roce_config *config, const char *const *settings, int count, char *error,
                  size_t error_bytes)
{
    static struct lab_run run;
    if (!prepare(&run, settings, count, error, error_bytes)) {
        return false;
    }
    struct csrna_load load = csrna_load_of(&run);
    load.policy = (enum csrna_policy)lab_word(&run, "policy");
    if (csrna_policy_kinds[load.policy]->contexts != NULL) {
        (void)snprintf(error, error_bytes,
                       "--set policy: that stands for another NIC, of which no more than a size is "
                       "known; programs have hiding, non-blocking and fcfs");
        return false;
    }
    load.placement = (enum csrna_placement)lab_word(&run, "placement");
    load.oocap = (uint32_t)lab_value(&run, "oocap");
    const struct csrna_config nic = csrna_config_of(&run, &load);
    const struct csrna_world world = csrna_world_of(&run, &load);
    const struct roce_settings defaults = roce_settings_default();
    *config = roce_config_of(&defaults);
    config->units = units_of(&nic, world.software_ps);
    config->pcie = pcie_of(&nic);
    config->posts_writes = true;
    config->doorbell_carries = false;
    config->wqe_bytes = SQ_WQE_BYTES;
    config->cqe_bytes = nic.cqe_bytes;
    config->context_bytes = nic.context_bytes;
    config->contexts = nic.cache_entries;
    config->send_ps = config->receive_ps = config->complete_ps = config->packet_ps = 0;
    config->line = world.output.wire;
    config->line.latency_ps /= 2;
    config->switches.delay_ps = 0;
    config->switches.input =
        (struct sim_input_limits){.flow = SIM_NO_FLOW_CONTROL, .room_bytes = SIM_NO_BOUND};
    config->switches.output_bytes = config->switches.ecn_bytes = SIM_NO_BOUND;
    return true;
}
