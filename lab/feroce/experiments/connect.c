/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A connection is opened while a reply is lost: row A32.
 */
#include "lab/feroce/experiments.h"
#include "lab/feroce/rows.h"

enum {
    MESSAGE_BYTES = 4096,
    MESSAGES = 200,
};

struct opened {
    uint32_t taken; /* QPNs that are not free. */
    uint32_t qpn;   /* The one that the host uses. */
    uint64_t opens, replies;
    bool done;
};

static struct opened open_one(struct lab_run *run, struct feroce_sums *sums, bool rtl)
{
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = feroce_load_of(MESSAGE_BYTES, MESSAGES);
    struct opened opened = {0};
    load.write = false;
    load.lost_replies = feroce_whole(run, "lost_replies");
    setup.board.window.quirks = rtl ? (uint32_t)FEROCE_QUIRKS_ALL : 0;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL) {
        return opened;
    }
    feroce_machine_run(machine);
    const struct feroce_node *node = &machine->nodes[0];
    for (uint32_t i = 0; i < setup.board.window.qps; i++) {
        opened.taken += node->board.table.contexts[i].state != FEROCE_RESET;
    }
    opened.qpn = machine->receiver.connections[0].board_qpn;
    opened.opens = machine->receiver.opens;
    opened.replies = node->cm_replies;
    opened.done = feroce_machine_result(machine).done;
    feroce_sums_add(sums, machine);
    feroce_machine_close(machine);
    return opened;
}

static void connect(struct lab_run *run)
{
    static const char *const taken_ids[] = {"FER-A32/none", "FER-A32/rtl"};
    static const char *const wins_ids[] = {"FER-A32.wins/none", "FER-A32.wins/rtl"};
    struct feroce_sums sums = {0};
    for (uint32_t rtl = 0; rtl < 2; rtl++) {
        const struct opened opened = open_one(run, &sums, rtl != 0);
        lab_judge_absolute(lab_add_row(run, taken_ids[rtl], "",
                                       "%s: QPNs taken by one connection, %llu OPENs, %llu replies",
                                       rtl == 0 ? "as meant" : "as RTL2026",
                                       (unsigned long long)opened.opens,
                                       (unsigned long long)opened.replies),
                           2, opened.taken, 0);
        lab_judge_absolute(lab_add_row(run, wins_ids[rtl], "",
                                       "%s: QPN over which %u messages came",
                                       rtl == 0 ? "as meant" : "as RTL2026", MESSAGES),
                           FEROCE_FIRST_QPN + 1, opened.done ? opened.qpn : 0, 0);
    }
    feroce_sums_rows(run, &sums, "FER-A37.bytes.connect", "FER-A37.icrcs.connect");
}

static const struct lab_claim claims[] = {
    {.id = "FER-A32",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "RTL2026: no OPEN is taken for a repeated one; feroce-rs: asks again after 2 s",
     .broken_by = "lost_replies=0",
     .because = "the first reply comes"},
    {.id = "FER-A32.wins",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "RTL2026; feroce-rs: the host uses the queue pair of the reply that comes",
     .broken_by = "lost_replies=0",
     .because = "the first reply comes"},
    FEROCE_SUM_CLAIMS("connect"),
};

const struct lab_experiment feroce_connect = {
    FEROCE_COMMON,
    .name = "feroce/connect",
    .what = "a connection is opened, and the board's reply is lost",
    .uses = "lost_replies qps pmtu qp_width request_cycles visit_cycles packet_cycles pipe_cycles "
            "ack_ns "
            "coalesce cable switch flip",
    FEROCE_CLAIMS(claims),
    .quick = true,
    .run = connect,
    .explains =
        "A host that hears no reply asks again after two seconds. The board does not know that it "
        "is asked again, and opens another queue pair; the first one stays open until it is closed "
        "by hand, so eight lost replies fill a board. With or without the faults of "
        "that design it is the same: nothing in the message tells one OPEN from another. This is "
        "the authors' public design of 2026 and their public receiver; the board of the slides "
        "takes one message and sends no reply, so that nothing can be lost on the way back.",
};
