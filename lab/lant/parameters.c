/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of Lant's machine, with their sources. Those that were fitted name the row; no
 * other may move to meet one.
 */
#include "lab/lant/experiments.h"
#include "lab/lant/sender.h"

static const char sections[] =
    "abstract 3.1.2 3.1.3 3.2.2 3.2.3 3.3.2 3.3.3 3.3.4.2 3.3.4.3 3.4.1 3.4.2 3.4.3 4.1.4.1 "
    "4.1.4.2 4.4 4.5 5.2.2.1 5.2.3 5.2.3.1 5.3.1 5.3.2.1 5.3.2.2 5.3.3 6.1 6.2 6.2.1.1 6.2.1.2 "
    "6.3 6.4 6.5 7.1.2 7.1.3 7.2.2 7.2.3.1 7.2.3.2 7.3 8.2.3 8.2.4 Table Fig.";

static const char *const others[] = {
    "ARCS2019: J. Lant, A. Attwood, J. Navaridas, M. Lujan, J. Goodacre, Receive-Side Notification "
    "for Enhanced RDMA in FPGA Based Networks, ARCS 2019, LNCS 11479 (its abstract)",
    "Micro2020: J. Lant, J. Navaridas, M. Lujan, J. Goodacre, Toward FPGA-Based HPC: Advancing "
    "Interconnect Technologies, IEEE Micro 40(1), 2020 (its abstract)",
    "Karol1987: M. J. Karol, M. G. Hluchyj, S. P. Morgan, Input Versus Output Queueing on a "
    "Space-Division Packet Switch, IEEE Transactions on Communications 35, 1987",
    "Dally1987: W. J. Dally, C. L. Seitz, Deadlock-Free Message Routing in Multiprocessor "
    "Interconnection Networks, IEEE Transactions on Computers 36, 1987",
    NULL,
};

const struct lab_document lant_document = {
    .title = "Lant 2019, network interface of FPGAs",
    .sections = sections,
    .others = others,
    .note =
        "KB and MB are 2^10 and 2^20 bytes, as in the document, whose packets of 512 bytes make 64 "
        "KB of 128. Its figures are lost: a row that is called after one rests on its caption and "
        "on the text. Not here, since nothing is made of gates: the areas of Tables 6.1, 7.1 and "
        "7.4, and with them the estimates of 7.3. Not modelled: the memories of the STREAM "
        "benchmark's other columns (Table 3.7), BlueGene/Q and Tofu (Table 3.1), TCP (Table 7.2).",
};

const struct lab_parameter lant_parameters[LANT_PARAMETER_COUNT] = {
    /* Lines and switches. */
    LAB_WHOLE("mac", "cycles", 59, 0, 100000, "Table 3.6",
              "from the flit into a MAC to the flit "
              "out of the other one"),
    LAB_FITTED_WHOLE("LNI-A11", "mac_frame", "flits", 4, 0, 64, "3.4.3",
                     "what a packet takes of the line beside its flits"),
    LAB_FITTED_WHOLE("LNI-A12", "mac_pause", "flits", 24, 0, 1024, "3.4.3",
                     "flits after which the line takes one more; 0: none"),
    LAB_FITTED_WHOLE("LNI-A17.level", "mac_rest", "cycles", 7, 0, 1000, "6.1",
                     "what the 10G MAC of chapter 6 takes beside storing a packet"),
    LAB_FITTED_WHOLE("LNI-A7", "switch", "cycles", 18, 0, 100000, "Table 3.7",
                     "from a packet's head into a switch to its head out"),
    LAB_WHOLE("remapper", "cycles", 2, 0, 1000, "3.4.2; OC: how long",
              "what the address remapper takes"),
    /* Loads and stores. */
    LAB_WHOLE("bus", "cycles", 28, 0, 10000,
              "Table 3.7: 3.52 s of 2 x 10^7 accesses, local; 3.4.2 has about 150 ns",
              "an access of the CPU to the programmable logic, there and back"),
    LAB_FITTED_WHOLE("LNI-A1", "shm_issue", "cycles", 9, 0, 1000, "Table 3.6",
                     "from a load or store to its packet's first flit"),
    LAB_FITTED_WHOLE("LNI-A1", "shm_beat", "cycles", 10, 1, 1000, "Table 3.6",
                     "between two beats of one access"),
    LAB_FITTED_WHOLE("LNI-A1", "shm_receive", "cycles", 16, 0, 1000, "Table 3.6",
                     "from a packet stored and forwarded to its answer's first flit"),
    LAB_FITTED_WHOLE("LNI-A1", "shm_done", "cycles", 5, 0, 1000, "Table 3.6",
                     "from an answer's last flit to the initiator"),
    LAB_WHOLE("shm_rows", "", 16, 1, 64, "5.2.2.1", "loads and stores under way"),
    LAB_WORD("posted", "off on", "OC", "whether a store is done for the CPU when it is issued"),
    LAB_WHOLE("accesses", "", 1, 1, 16, "3.4.2: two at most; OC: one",
              "accesses that the CPU has under way"),
    /* RDMA. */
    LAB_FITTED_WHOLE("LNI-A2", "rdma_setup", "cycles", 33, 0, 10000, "Table 3.6",
                     "from a descriptor to the read of memory"),
    LAB_WHOLE("ram", "cycles", 30, 0, 10000, "Table 3.6", "until memory answers"),
    LAB_FITTED_WHOLE("LNI-A2", "rdma_receive", "cycles", 17, 0, 1000, "Table 3.6",
                     "from a packet stored and forwarded to its answer's first flit"),
    LAB_FITTED_WHOLE("LNI-A2", "rdma_done", "cycles", 18, 0, 1000, "Table 3.6",
                     "from an answer's last flit to the notification"),
    LAB_WHOLE("ack", "cycles", 2, 0, 1000, "OC: a part of rdma_done",
              "from an acknowledgement's last flit until its row is free"),
    LAB_WHOLE("rows", "", 16, 1, 1024, "5.2.3", "packets under way"),
    LAB_WHOLE("operations", "", 16, 1, 64, "5.2.3", "operations under way"),
    LAB_WHOLE("timers", "", 16, 1, 1024, "6.1", "timers for early acknowledgements"),
    LAB_WHOLE("early_timer", "cycles", 2, 0, 4, "6.1", "until one is granted; less than a packet"),
    LAB_FITTED_WHOLE("LNI-A16b", "t_gen", "cycles", 8, 0, 1000, "6.1: degraded; OC: by how much",
                     "from the bus's answer to the DMA engine's next beat"),
    LAB_WORD("early", "on off", "6.1", "early acknowledgement"),
    LAB_FITTED_WHOLE("LNI-A18", "engine_window", "packets", 3, 1, 1024, "6.1: roughly half",
                     "bursts that the DMA engine has unanswered at most"),
    LAB_WHOLE("timeout", "cycles", 10000, 1, 100000000, "5.2.2.1", "until a packet goes again"),
    LAB_WHOLE("retries", "", 3, 0, 7, "OC", "how often it does"),
    LAB_WHOLE("cam", "", 8, 1, 64, "3.3.3", "entries of the inbound CAM"),
    LAB_WHOLE("dram", "cycles", 30, 0, 10000, "3.3.3", "from the interface to DRAM and back"),
    LAB_WHOLE("mask", "packets", 128, 64, 1024, "Table 6.1: 64 to 1024; OC: 128",
              "that can be registered"),
    LAB_WHOLE("entries", "", 64, 1, 1024, "Table 6.1: 64 to 1024; OC: 64",
              "operations that can be registered"),
    LAB_WHOLE("escapes", "packets", 64, 1, 256, "6.5", "in the escape channel"),
    LAB_WHOLE("escape_time", "cycles", 5000, 1, 100000000, "OC", "until one is dropped there"),
    LAB_WHOLE("register", "bytes", 32768, 0, 524288, "6.4: insignificant at around 32KB; OC",
              "that are registered at most"),
    LAB_WHOLE("segment", "packets", 128, 0, 131071, "Fig. 6.10", "of a segment; 0: no segments"),
    LAB_FITTED_WHOLE("LNI-A25", "u_send", "cycles", 325, 0, 10000, "Table 7.2",
                     "what a program pays for send()"),
    LAB_WORD("receiver", "store cut", "6.2.1.1", "store and forward, or cut through"),
    /* Faults of links (chapter 5). */
    LAB_WHOLE("setup", "cycles", 69, 0, 10000, "Table 3.6", "of a descriptor, in chapter 5's runs"),
    LAB_WHOLE("hop", "cycles", 156, 1, 10000, "5.3.2.1", "a hop of the fault injector"),
    LAB_WHOLE("check", "cycles", 64, 0, 10000, "5.3.2.1", "what checking adds to a hop"),
    LAB_REAL("code", "%", 12.5, 0, 100, "5.3.2.2", "more packets for error correction"),
    LAB_FITTED_WORD("LNI-A28a", "service", "serial pipelined", "OC",
                    "whether packets that go again wait for each other's answers"),
    LAB_FITTED_WORD("LNI-A28a", "spoilt", "both data", "OC",
                    "whether the way back spoils packets, too"),
    LAB_WORD("checks", "data both", "5.3.2.1: each hop; OC: of the data alone",
             "on which ways checking adds to a hop"),
    LAB_WORD("resend", "selective all", "5.2.3",
             "what goes again: the lost packet; or it and all "
             "behind it"),
    LAB_WHOLE("fault_rows", "", 16, 1, 1024, "5.2.3", "packets under way in chapter 5's runs"),
    LAB_WHOLE("messages", "%", 100, 1, 100, "OC",
              "of the messages that chapter 5's runs send to have small errors"),
    LAB_WORD("told_by", "switches ends", "5.3.2.1",
             "who answers a packet that is damaged where links have checks"),
    /* Accelerators (chapter 7). */
    LAB_FITTED_WHOLE("LNI-A42", "copy", "cycles", 22, 0, 1000, "Table 7.3",
                     "a local copy of 128 bytes"),
    LAB_FITTED_WHOLE("LNI-A36", "submit", "cycles", 100, 0, 10000, "Table 7.3",
                     "from the time stamp until the first accelerator has its work"),
    LAB_FITTED_WHOLE("LNI-A36", "notice", "cycles", 50, 0, 10000, "Table 7.3",
                     "from the second accelerator's notification to the time stamp"),
    LAB_FITTED_WHOLE("LNI-A43", "cpu_path", "cycles", 404, 0, 10000, "7.2.3.2: 29 %",
                     "what the way through the CPU adds"),
    LAB_FITTED_REAL("LNI-A44", "detour", "cycles", 0.03, 0, 10, "7.2.3.1: 8.6 %",
                    "what the way through DRAM adds for a byte"),
    LAB_FITTED_WHOLE("LNI-A47", "turn", "cycles", 37, 0, 10000, "7.3: 1.1 Gb/s",
                     "of an accelerator, from a block given on to the next one"),
    LAB_WHOLE("blocks", "", 3, 1, 8, "OC", "under way through both accelerators"),
    LAB_WHOLE("buffers", "", 1, 1, 2, "7.2.3.1", "for results of the first accelerator"),
    LAB_WORD("intermediate", "copied direct",
             "7.2.3.1: a local intermediate buffer; 7.1.3: feasible without",
             "whether results are copied to where the DMA engine reads them"),
    LAB_WORD("overlap", "off on", "7.2.3.1", "whether parts of a result are sent before the next"),
    LAB_WORD("software", "cpu bypass", "7.1.2; 7.1.3",
             "what drives transfers of the software transport"),
    /* Networks. */
    LAB_WORD("torus", "near_cube power mesh", "Table 3.1; OC: their sides", "shapes of the tori"),
    LAB_FITTED_WORD("LNI-A54", "tree_counts", "switches links", "Table 3.1",
                    "what a distance in a fat tree counts"),
    LAB_WORD("tree_top", "full half", "Table 3.1", "ports down of the switches at the top"),
    LAB_WORD("ways", "minimal valiant", "3.1.3", "of a dragonfly"),
    LAB_FITTED_WORD("LNI-A55", "group", "8x16 16x8 4x32", "Table 3.1",
                    "routers of a dragonfly's group, and hosts of a router"),
    LAB_WORD("stores", "genuine early", "OC: as in Table 3.6, whose stores are acknowledged",
             "which answer a store waits for in STREAM"),
    LAB_WORD("mac_kind", "store cut", "6.1", "whether the 10G MAC of chapter 6 stores a packet"),
    LAB_WORD("recv", "unregistered registered", "6.2", "what recv() waits for"),
    LAB_WHOLE("pieces", "packets", 2048, 0, 131071, "Fig. 6.9", "of a piece of 3 MB; 0: whole"),
    LAB_WHOLE("unsegmented", "packets", 0, 0, 131071, "6.3", "segment, of the row without"),
    LAB_WORD("tree_turns", "nearest top", "OC",
             "the switch at which packets turn down: the first that is above both nodes, or one "
             "at the top"),
    LAB_WORD("paths", "random one", "3.1.3", "which of several equal paths a packet takes"),
    LAB_WORD("detours", "on off", "3.1.3", "whether packets that are to take detours do"),
    LAB_WORD("forwards", "head packet", "5.3.2.1: virtual cut-through",
             "what of a packet a switch waits for"),
    /* Many nodes, where bits are flipped. */
    LAB_WHOLE("crowd", "nodes", 1024, 2, 4096, "OC", "that exchange data"),
    LAB_REAL("bit_errors", "", 2e-6, 0, 1e-3, "OC: above 5.3.3's", "the rate of each line"),
    LAB_WHOLE("block", "bytes", 1001, 1, 32768, "OC", "that a node has for each other"),
    LAB_WHOLE("steps", "", 6, 0, 10000, "OC", "of a halo exchange"),
    LAB_WORD("crc", "checked believed", "6.2.1.1", "what receivers do with a packet's CRC"),
    LAB_WORD("rings", "on off", "OC: a remedy for 4.5",
             "whether receivers remember what is complete"),
    LAB_WHOLE("ring", "", 256, 2, 65536, "OC", "how many; a power of two, or the next one"),
    LAB_WORD("fence", "on off", "4.1.4.1",
             "whether a program waits for it before it stores a flag"),
    LAB_WORD("queues", "outputs inputs", "OC", "where switches queue: the document says nothing"),
    /* What-ifs. */
    LAB_WORD("timeout_by", "fixed distance", "5.2.2.1", "what a packet's timer follows from"),
    LAB_WHOLE("timeout_base", "cycles", 500, 0, 100000, "OC",
              "of a timer by distance: the ends, and what waits on the way"),
    LAB_WHOLE("timeout_hop", "cycles", 200, 1, 100000, "OC: above 2 x (59 + 18)",
              "of a timer by distance, for each hop"),
    LAB_WORD("flow", "none credits drop", "OC", "how buffers of switches are kept"),
    LAB_WHOLE("buffer", "flits", 205, 69, 65536, "OC: three packets",
              "of a switch, for each line to it; none: no bound"),
    LAB_WORD("credit_network", "tree star torus", "OC", "of 16 nodes"),
    LAB_WHOLE("channels", "", 2, 1, 2, "Dally1987",
              "virtual channels of a line, with a buffer each; a torus needs two"),
    LAB_WORD("atomics", "off on", "8.2.3", "whether nodes do atomic requests"),
    LAB_WORD("repeated", "answered done", "OC",
             "what becomes of an atomic request that comes once more"),
    /* One point. */
    LAB_WORD("network", "line torus tree dragonfly", "3.1.3; OC",
             "one: two nodes on a line without switches; or a network of nodes or more"),
    LAB_WHOLE("nodes", "", 16, 2, 4096, "OC", "one: nodes, if the network has switches"),
    LAB_WORD("work", "transfer store load", "3.3.2; OC", "one: what programs ask for"),
    LAB_WORD("seen", "sender receiver", "6.2: receive-side notification",
             "one: who sees the end of a transfer"),
    LAB_WHOLE("window", "", 4, 1, LANT_SENDER_WINDOW_MAX, "OC",
              "one: messages that a program has under way"),
    LAB_WHOLE("call", "cycles", 0, 0, 1000000, "OC; Table 7.2: 325 of send()",
              "one: processor time of a call"),
    LAB_WHOLE("look", "cycles", 0, 0, 1000000, "OC",
              "one: processor time until a program has seen an end"),
    LAB_REAL("loss", "", 0, 0, 0.1, "OC", "one: share of packets that each line loses"),
    LAB_PLAN_PARAMETERS(4096, 1u << 20),
};
