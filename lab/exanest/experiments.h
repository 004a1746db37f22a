/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on ExaNeSt's engine share.
 */
#ifndef LAB_EXANEST_EXPERIMENTS_H
#define LAB_EXANEST_EXPERIMENTS_H

#include "base/check.h"
#include "lab/exanest/program.h"
#include "lab/lab.h"

#define EXANEST_PARAMETER_COUNT (88 + LAB_PLAN_PARAMETER_COUNT)
extern const struct lab_document exanest_document;
extern const struct lab_parameter exanest_parameters[EXANEST_PARAMETER_COUNT];

#define EXANEST_COMMON                                                                             \
    .document = &exanest_document, .parameters = exanest_parameters,                               \
    .parameter_count = EXANEST_PARAMETER_COUNT
#define EXANEST_CLAIMS(list) .claims = (list), .claim_count = COUNT_OF(list)

/* A machine of x * y * z QFDBs with the run's parameters, which are EXANEST_USES; or those but the
 * first of them, if the R5's times are set one by one. */
struct exanest_machine_config exanest_config_of(struct lab_run *run, uint32_t x, uint32_t y,
                                                uint32_t z);
#define EXANEST_USES_MACHINE                                                                       \
    "datapath link line gap wire watermark slots scheduler read idle write_blocks read_blocks "    \
    "lookup reads_at_once cut drains responses notification "
#define EXANEST_USES "block_cost " EXANEST_USES_MACHINE

/* The times of R5, memory and receiver one by one, which elsewhere have their defaults. */
void exanest_set_times(struct lab_run *run, struct exanest_machine_config *config);
#define EXANEST_USES_TIMES                                                                         \
    "r5_read r5_segment r5_build r5_store r5_control r5_poll r5_update r5_response memory_write "  \
    "answer timeout back_off done_poll "
#define EXANEST_ONE_BYTES_MAX (1u << 26)

/* The parameter `link` in Mb/s. */
uint32_t exanest_link_mbps(struct lab_run *run);

/* The two models of the line, as the words of `line`. */
enum exanest_line_model {
    EXANEST_LINE_AURORA,
    EXANEST_LINE_GAP,
};
struct exanest_line exanest_line_of(enum exanest_line_model model, uint32_t gap, uint32_t mhz,
                                    uint32_t mbps);
/* Rows compare a stream with this: the time for which a packet of the greatest length takes the
 * line. Its payload is EXANEST_STREAM_BITS. The line carries its 18 words, and dead time behind
 * them; or its 36 blocks of 66 bits, a separator, and their share of clock compensation. */
#define EXANEST_STREAM_BITS (EXANEST_PAYLOAD_BYTES_MAX * 8.0)
double exanest_gap_packet_ns(double gbps, double dead_ns);
double exanest_aurora_packet_ns(double gbps);
/* The value of the parameter `other_line`. */
enum exanest_line_model exanest_other_line(struct lab_run *run);
/* The routers of such a machine: their parameters are EXANEST_ROUTER_USES. */
void exanest_set_router(struct lab_run *run, struct exanest_machine_config *config);
#define EXANEST_ROUTER_USES "router_gap router_latency "

/* One world of a run. */
struct exanest_world {
    struct lab_run *run;
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct exanest_machine machine;
    struct exanest_watch *watch;
};

/* To be ended. */
struct exanest_world *exanest_world_begin(struct lab_run *run,
                                          const struct exanest_machine_config *config);
void exanest_world_end(struct exanest_world *world);
/* 64 bits to an address of an FPGA's send unit, as soon as it takes them: returns when; and from
 * there. They cost no time beside the unit's. */
uint64_t exanest_world_store(struct exanest_world *world, uint32_t fpga, uint32_t address,
                             uint64_t value);
uint64_t exanest_world_load(struct exanest_world *world, uint32_t fpga, uint32_t address);

/* The results of a stream of writes. */
struct exanest_stream {
    double gbps;        /* The second half of the bytes, by words of the target's memory. */
    double us;          /* From the post to the descriptor's end, the whole transfer. */
    uint64_t blocks;    /* Issued, */
    uint64_t packets;   /* the packets that carried data, */
    uint64_t responses; /* and what answered them. */
    uint64_t resent;    /* Blocks that were sent again. */
    bool whole;         /* Every byte is right. */
};

/* One transfer of `bytes` from FPGA `from` to FPGA `to`, between addresses that lie `source_offset`
 * and `target_offset` bytes behind the beginning of a 16 KB line. */
struct exanest_stream exanest_stream_of(struct lab_run *run,
                                        const struct exanest_machine_config *config, uint32_t from,
                                        uint32_t to, uint32_t bytes, uint32_t source_offset,
                                        uint32_t target_offset);

/* The results of programs that run side by side. */
struct exanest_flows {
    double gbps; /* All together, the second half of the bytes. */
    double us;   /* A transfer, from the call to the look that sees its end; the mean. */
};

/* The programs of one FPGA and process, and those that share a target, have transfers of the same
 * size. */
struct exanest_flows exanest_flows_of(struct lab_run *run,
                                      const struct exanest_machine_config *config,
                                      const struct exanest_program_config *programs,
                                      uint32_t count);

/* How long one read or write of so many bytes takes that FPGA `fpga` posts, in us. */
double exanest_transfer_us(struct lab_run *run, const struct exanest_machine_config *config,
                           uint32_t fpga, uint32_t other, bool writes, uint32_t bytes);

/* The old engine's parameters; and the times of a write by FPGA 0 with it, from the store that
 * starts it to the last byte in memory, and to the last answer. */
struct exanest_zdma_times {
    double written_us, answered_us;
};
void exanest_set_zdma(struct lab_run *run, struct exanest_machine_config *config);
struct exanest_zdma_times exanest_zdma_times_of(struct lab_run *run,
                                                const struct exanest_machine_config *config,
                                                uint32_t to, uint32_t bytes);

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/exanest/experiments.def"
#undef EXPERIMENT

#endif
