/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of ExaNeSt's machine, with their sources, and what they make of it.
 */
#include <math.h>

#include "lab/exanest/experiments.h"

const struct lab_document exanest_document = {
    .title = "Xirouchakis 2020, ExaNeSt's RDMA engine",
    .sections =
        "1 1.1 1.2 2 2.1 2.2 2.3 3 3.1 3.2 3.2.1 3.2.2 3.2.3 3.2.4 4 4.1 4.1.1 4.1.2 5 5.1 5.2 "
        "5.3 5.3.1 5.3.1.1 5.3.1.2 5.3.2 5.3.3 5.3.4 5.3.5 6 6.1 6.2 6.3 6.4 6.5 7 7.1 8 "
        "abstract figure table",
    .others =
        (const char *const[]){
            "PG074: AMD Xilinx, Aurora 64B/66B LogiCORE IP Product Guide, PG074",
            "OSU: Ohio State University, OSU micro-benchmarks of MPI (osu_bw, osu_latency)",
            "Ploumidis2019: M. Ploumidis and others, Software and Hardware Co-design for Low-Power "
            "HPC Platforms, ISC 2019 workshops, LNCS 11887, abstract",
            "Ploumidis2023: M. Ploumidis and others, The ExaNeSt Prototype: Evaluation of "
            "Efficient HPC Communication Hardware in an ARM-based Multi-FPGA Rack, 2023, arXiv "
            "2307.09371, abstract",
            "Psistakis2020: A. Psistakis and others, PART: Pinning Avoidance in RDMA Technologies, "
            "NOCS 2020, abstract",
            NULL,
        },
};

const struct lab_parameter exanest_parameters[EXANEST_PARAMETER_COUNT] = {
    LAB_WHOLE("datapath", "MHz", 150, 10, 1000, "3: 150 MHz; abstract: up to 200",
              "clock of the datapath"),
    LAB_REAL("link", "Gb/s", 10, 0.1, 100, "6.3: 10 Gb/s, of 16 possible ones",
             "rate of a serial link"),
    LAB_WORD("line", "aurora gap", "6.3: Aurora 64B/66B; PG074: blocks, separator, compensation",
             "what a packet takes of a link beside its words: the 66th bits of its blocks, a "
             "separator and clock compensation; or dead cycles of the datapath"),
    LAB_WHOLE("gap", "cycles", 3, 0, 100, "7: \"extra 3 clock cycles\", read as dead time",
              "line=gap: dead time behind a packet"),
    LAB_REAL("wire", "us", 0.42, 0, 100,
             "OC: with a FIFO of 0.02 us at each end it is the \"almost 0.5us\" of 7",
             "latency of transceivers and wire without their FIFOs, one way"),
    LAB_WHOLE("watermark", "words", 72, 1, 127, "6.3",
              "XOFF when so few are free, XON when in use"),
    LAB_WHOLE("slots", "", 8, 1, 16, "5.3.4", "packets that an output buffer holds"),
    LAB_WHOLE("scheduler", "cycles", 5, 5, 200, "OC: 40 / 8 slots", "what a packet occupies it"),
    LAB_WHOLE("read", "cycles", 40, 1, 1000, "5.1: up to 40", "until memory answers a read"),
    LAB_WHOLE("idle", "cycles", 2, 0, 8, "3.2.2", "between two packets of a crossbar's output"),
    LAB_WHOLE("write_blocks", "", 4, 1, 1024, "OC: any amount; 4.1.1",
              "blocks of a write that may be outstanding"),
    LAB_WHOLE("read_blocks", "", 4, 1, 1024, "OC", "blocks of a read that may be outstanding"),
    LAB_REAL("block_cost", "us", 2, 0, 1000, "OC", "what a block and its response cost the R5"),
    LAB_WHOLE("reads_at_once", "", 0, 0, 64, "OC",
              "reads of memory that may be under way; 0: any number"),
    LAB_WORD("cut", "destination source", "5.3.2", "whose 256-byte lines packets end at"),
    LAB_WORD("drains", "off on", "OC", "whether a block is sent whole before the next one's turn"),
    LAB_WORD("responses", "block packet", "1.1: \"1 response per segment\"",
             "what a receiver answers"),
    LAB_WHOLE("megabytes", "MB", 4, 1, 64, "OC", "size of a stream; a MB is 2^20 bytes"),
    LAB_WHOLE("ideal_gap", "cycles", 0, 0, 100, "7: the bound has none",
              "dead time of a link that carries words alone"),
    LAB_FITTED_WHOLE("EXA-A7", "hit", "cycles", 15, 1, 1000, "OC: a cache hit",
                     "until memory answers a short read"),
    LAB_WHOLE("miss", "cycles", 400, 1, 10000, "OC; 5.3.3: DRAM, where others hit a cache",
              "until memory answers a read that no cache can answer"),
    LAB_WORD("ids", "domain one", "5.3.3: an AXI ID a domain",
             "whether reads of different domains are answered in any order, or as those of one"),
    LAB_WORD("paths", "alternate fixed", "OC: of a transfer with two paths",
             "whether its blocks alternate between them, or all take the transfer's"),
    LAB_WORD("buffers", "port shared", "5.3.4: one a port",
             "whether each path of the send unit has an output buffer, or all share one"),
    LAB_REAL("late_wire", "us", 4.2, 0, 100, "OC: ten times the other's",
             "latency of the slower one of two links over which packets are sprayed"),
    LAB_WHOLE("small_blocks", "", 1, 1, 1024, "OC", "write_blocks of the row without overlap"),
    LAB_WORD("other_line", "gap aurora", "7: \"extra 3 clock cycles\"; 6.3",
             "as line, for the link to which a row or a curve compares the first one"),
    LAB_WHOLE("bubble", "cycles", 0, 0, 100, "OC",
              "in which the barrel shifter takes nothing behind a packet that is not aligned"),
    LAB_WORD("block_cut", "destination source", "4", "whose 16 KB lines blocks end at"),
    LAB_FITTED_REAL("EXA-A9", "lookup", "us", 0.095, 0, 100, "OC: what the rest leaves of 4.16 us",
                    "until the R5 has found a transfer its channel"),
    LAB_WORD("request_reads", "12 6 4 3 2", "6.2: reads of 32 bits; OC: 12 of them",
             "slow reads of the mailbox for a request; fewer are wider"),
    LAB_WHOLE("window", "", 64, 1, EXANEST_WINDOW_MAX, "OSU: osu_bw's window",
              "transfers that a program has under way"),
    LAB_WORD("ask", "transfer block", "4.1.2: a request for a transfer",
             "what a program asks for at a time, and waits for"),
    LAB_FITTED_WHOLE("EXA-A4.level", "router_gap", "cycles", 4, 0, 100, "OC: what fits 7.9 Gb/s",
                     "dead time behind a packet of a router"),
    LAB_WHOLE("router_latency", "cycles", 120, 1, 10000,
              "OC; 7: \"significantly higher\" than a crossbar's", "of a header through a router"),
    LAB_WORD("router_ports", "four one", "6.4: one for each FPGA of the QFDB",
             "ports by which a QFDB's packets reach its router"),
    LAB_WORD("fair_ports", "one four", "7.1", "router_ports of the what-if"),
    LAB_WHOLE("neighbours", "", 4, 1, 4, "7.1: a 2D torus", "QFDBs to which four FPGAs send"),
    LAB_WORD("zdma_packet", "64 16 32 128 256", "7: 64 bytes",
             "bytes of payload of the old engine's packets"),
    LAB_WHOLE("zdma_outstanding", "", 6, 1, 64, "7: 6 outstanding transactions",
              "packets of the old engine that wait for their answers"),
    LAB_REAL("software", "%", 100, 0, 1000, "OC",
             "the table of costs of R5 and program, all of its entries"),
    LAB_WORD("eager", "mailbox memory rendezvous", "OC: what if",
             "where the message goes whose latency is the row's"),
    LAB_REAL("word_cost", "us", 0.075, 0, 10, "OC: as long as a store of the R5's",
             "what a program pays for 8 bytes of a message beyond a request's 48"),
    LAB_WHOLE("hold", "cycles", 0, 0, 1000, "5.3.5: freed with the last word of payload",
              "time from a footer to its free slot; 0: free with the payload's last word"),
    LAB_WHOLE("xon", "words", 0, 0, 128, "6.3: the watermark",
              "XON when words in use fall to this number; 0: the watermark"),
    LAB_REAL("drain", "Gb/s", 9.42, 0.1, 19.2, "OC: the line's rate, a word in 13.59 ns",
             "at which rate a receiver takes words"),
    LAB_WHOLE("cores", "", 1, 1, 2, "2.2: one of two R5s", "R5s that run the firmware"),
    LAB_WORD("answers", "hardware firmware", "8: acknowledgments might be received in hardware",
             "who takes responses in the what-if"),
    LAB_WORD("repeat", "block transfer packet", "4: retransmissions of blocks, not of packets",
             "what is sent again when a packet is lost"),
    LAB_WORD("selective", "packet block", "OC", "repeat of the what-if"),
    LAB_WHOLE("retries", "", 16, 0, 255, "OC", "how often a block is sent again at most"),
    LAB_WORD("table", "16x16 32x8 1x256", "6.1: 256 contexts, 16 ways",
             "sets and ways of the receiver's contexts"),
    LAB_WORD("hash", "fold modulo", "OC",
             "a context's set: the TID and the source, folded; or the TID alone"),
    LAB_WORD("tids", "random order", "OC",
             "TIDs of active blocks: any; or the first four of each source"),
    LAB_WHOLE("x", "QFDBs", 4, 1, 16, "OC", "size of the largest torus"),
    LAB_WHOLE("y", "QFDBs", 2, 1, 16, "OC", "size of the largest torus"),
    LAB_WHOLE("z", "QFDBs", 2, 1, 16, "OC", "size of the largest torus"),
    LAB_WHOLE("transfers", "", 16, 1, 32, "OC", "writes of each FPGA to random others"),
    LAB_WORD("dateline", "on off", "3.2: VCs resolve deadlocks",
             "whether a packet changes its virtual channel where a ring of routers closes"),
    LAB_WHOLE("patience", "cycles", EXANEST_PATIENCE_CYCLES, 0, 1000000, "OC",
              "until a receiver whose answers cannot leave takes packets; 0: never"),
    LAB_WHOLE("router_slots", "packets", 12, 1, 64, "OC", "that a router holds of each channel"),
    LAB_WORD("notification", "held early", "OC: appendix A, which has the rule, is missing",
             "whether the block that a notification follows waits until all others are answered"),
    LAB_FITTED_REAL("EXA-E-fault", "fault_wait", "us", 26, 0.1, 10000, "OC; Psistakis2020: 38 us",
                    "until the R5 sends a block again whose destination had a page fault"),
    LAB_FITTED_REAL("EXA-E-faults", "page_in", "us", 9.5, 0, 10000,
                    "OC; Psistakis2020: 2.6 times as long", "until a page that is absent is there"),
    LAB_WHOLE("writes", "", 8, 1, 32, "OC", "writes that are under way at once, where rate counts"),
    LAB_REAL("pin", "us", 1, 0, 1000, "OC", "a call that pins memory, and gives it back"),
    LAB_REAL("pin_page", "us", 0.25, 0, 1000, "OC", "and this for each page"),
    LAB_REAL("r5_read", "us", 0.13, 0, 100, "OC; 6.2: reads of the PL are slow",
             "a read by the R5 of the mailbox or of a descriptor"),
    LAB_REAL("r5_segment", "us", 0.2, 0, 100, "OC; 4.1: software cuts transfers into blocks",
             "until the R5 has cut a block off a transfer"),
    LAB_REAL("r5_build", "us", 0.075, 0, 100, "OC; 5.2: descriptors",
             "until the R5 has made a block's descriptor"),
    LAB_REAL("r5_store", "us", 0.075, 0, 100, "OC; 5.2: words of 64 bits",
             "a store by the R5 of a descriptor's word"),
    LAB_REAL("r5_control", "us", 0, 0, 100, "OC; 5.2: beside the reads of memory",
             "a store by the R5 of a word of a control packet"),
    LAB_REAL("r5_poll", "us", 0, 0, 100, "OC", "a look by the R5 at the scratchpad"),
    LAB_REAL("r5_update", "us", 0, 0, 100, "OC", "until the R5 has told a program its progress"),
    LAB_REAL("r5_response", "us", 1.37, 0, 100, "OC; 4.1: responses of blocks",
             "until the R5 has dealt with a response that it has read"),
    LAB_REAL("call", "us", 0.001 * EXANEST_CALL_NS, 0, 1000, "OC",
             "a program's call, up to its last store"),
    LAB_REAL("look", "us", 0.001 * EXANEST_POLL_NS, 0, 1000, "OC",
             "until a program has seen that something came"),
    LAB_WHOLE("memory_write", "cycles", EXANEST_WRITE_CYCLES, 0, 1000, "OC",
              "until memory answers a write"),
    LAB_WHOLE("answer", "cycles", 4, 0, 1000, "OC", "from a receiver's judgement to its answer"),
    LAB_REAL("timeout", "us", 1000, 1, 1e6, "OC; 4.1: timeouts of blocks",
             "until the R5 sends a block again that nobody has answered"),
    LAB_REAL("back_off", "us", 20, 0, 1e6, "OC; 6.1: no context",
             "until the R5 sends a block again that found no context; twice as long each time"),
    LAB_REAL("done_poll", "us", 2, 0.1, 1e6, "OC; 5.2: the Done bit",
             "until the R5 looks again at a descriptor that was not done"),
    LAB_REAL("loss", "", 0, 0, 0.1, "OC", "one: share of packets that are lost"),
    LAB_REAL("corrupt", "", 0, 0, 0.1, "OC", "one: share of packets of which a bit is flipped"),
    LAB_WORD("order", "chain done none", "5.1: chains",
             "how a block comes behind another one: the send unit enqueues it, the R5 starts it "
             "when it sees the Done bit, or they take turns"),
    LAB_WORD("sequences", "strict continuing", "4.1: retransmission numbers; OC",
             "the number of a block's first instance: 0, or one more than the TID's last one"),
    LAB_WHOLE("processes", "", 1, 1, EXANEST_PROCESSES_MAX, "5.3.3: 8 channels",
              "one: programs of an FPGA, which share its messages"),
    LAB_WORD("work", "write read", "4.1", "one: what programs ask for"),
    LAB_PLAN_PARAMETERS(16384, EXANEST_ONE_BYTES_MAX),
};

struct exanest_line exanest_line_of(enum exanest_line_model model, uint32_t gap, uint32_t mhz,
                                    uint32_t mbps)
{
    return model == EXANEST_LINE_GAP ? exanest_line_gap(gap, mhz, mbps) : exanest_line_aurora(mbps);
}

double exanest_gap_packet_ns(double gbps, double dead_ns)
{
    return EXANEST_PACKET_WORDS_MAX * EXANEST_WORD_BYTES * 8 / gbps + dead_ns;
}

double exanest_aurora_packet_ns(double gbps)
{
    const double blocks = 2 * EXANEST_PACKET_WORDS_MAX + 1;
    const double every = EXANEST_AURORA_BLOCKS;
    return blocks * 66 / gbps * every / (every - EXANEST_AURORA_STOPPED);
}

/* The words of `line`, in the other order. */
enum exanest_line_model exanest_other_line(struct lab_run *run)
{
    return lab_word(run, "other_line") == 0 ? EXANEST_LINE_GAP : EXANEST_LINE_AURORA;
}

uint32_t exanest_link_mbps(struct lab_run *run)
{
    return (uint32_t)llround(lab_value(run, "link") * 1000);
}

static uint32_t whole(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value(run, name);
}

static uint32_t ns(struct lab_run *run, const char *name)
{
    return (uint32_t)llround(lab_value(run, name) * 1000);
}

/* From router to router it is as far as from FPGA to FPGA: a wire, and a FIFO at each end. */
static uint32_t router_wire(uint32_t wire_ps, uint32_t mhz)
{
    const uint64_t us = 1000000;
    const uint64_t fifos_ps = 2 * EXANEST_FIFO_FALL_THROUGH * us / EXANEST_DATAPATH_MHZ;
    const uint64_t cycles = ((wire_ps + fifos_ps) * mhz + us / 2) / us;
    return cycles == 0 ? 1 : (uint32_t)cycles;
}

struct exanest_machine_config exanest_config_of(struct lab_run *run, uint32_t x, uint32_t y,
                                                uint32_t z)
{
    struct exanest_machine_config config = exanest_machine_default(x, y, z);
    struct exanest_fabric_config *fabric = &config.fabric;
    const uint32_t mhz = whole(run, "datapath");
    const uint32_t mbps = exanest_link_mbps(run);
    fabric->datapath_hz = mhz * UINT64_C(1000000);
    const uint32_t gap = whole(run, "gap");
    fabric->link.serializer.line =
        exanest_line_of((enum exanest_line_model)lab_word(run, "line"), gap, mhz, mbps);
    fabric->link.wire_ps = (uint32_t)lab_ps(run, "wire");
    fabric->router_wire_cycles = router_wire(fabric->link.wire_ps, mhz);
    const uint16_t watermark = (uint16_t)whole(run, "watermark");
    fabric->link.deserializer.xoff_free = fabric->link.deserializer.xon_used = watermark;
    fabric->fpga.exadma.slots = whole(run, "slots");
    fabric->fpga.exadma.scheduler_cycles = whole(run, "scheduler");
    fabric->fpga.exadma.reads_max = whole(run, "reads_at_once");
    fabric->fpga.exadma.cuts_at_source = lab_word(run, "cut") == 1;
    fabric->fpga.exadma.drains = lab_word(run, "drains") == 1;
    fabric->fpga.receiver.response_per_packet = lab_word(run, "responses") == 1;
    fabric->fpga.memory.read_cycles = whole(run, "read");
    fabric->fpga.crossbar.idle = (uint8_t)whole(run, "idle");
    config.firmware.writes_outstanding = (uint16_t)whole(run, "write_blocks");
    config.firmware.reads_outstanding = (uint16_t)whole(run, "read_blocks");
    config.firmware.notifies_early = lab_word(run, "notification") == 1;
    config.firmware.costs.lookup = ns(run, "lookup");
    exanest_firmware_set_block_cost(
        &config.firmware.costs, (uint32_t)llround(lab_value_or_default(run, "block_cost") * 1000));
    return config;
}

void exanest_set_times(struct lab_run *run, struct exanest_machine_config *config)
{
    struct exanest_firmware_config *firmware = &config->firmware;
    struct exanest_firmware_costs *costs = &firmware->costs;
    const uint32_t read = ns(run, "r5_read");
    costs->response_read = costs->request_read = costs->descriptor_read = read;
    costs->segment = ns(run, "r5_segment");
    costs->build = ns(run, "r5_build");
    costs->store = ns(run, "r5_store");
    costs->control_store = ns(run, "r5_control");
    costs->poll = ns(run, "r5_poll");
    costs->update = ns(run, "r5_update");
    costs->response_handle = ns(run, "r5_response");
    firmware->block_timeout_ns = ns(run, "timeout");
    firmware->back_off_ns = ns(run, "back_off");
    firmware->descriptor_poll_ns = ns(run, "done_poll");
    config->fabric.fpga.memory.write_cycles = whole(run, "memory_write");
    config->fabric.fpga.receiver.response_cycles = (uint16_t)whole(run, "answer");
}

void exanest_set_router(struct lab_run *run, struct exanest_machine_config *config)
{
    struct exanest_router_config *router = &config->fabric.router;
    router->gap_hundredths = (uint16_t)(100 * whole(run, "router_gap"));
    router->latency = (uint16_t)whole(run, "router_latency");
    /* 128 bits of a link's rate; the router's lanes take a word a cycle at most. */
    const double word = 128e3 / (lab_value(run, "link") * 1e3) * lab_value(run, "datapath") / 10;
    router->word_hundredths = (uint16_t)fmax(100, (double)llround(word));
}
