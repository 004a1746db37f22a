/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One point, as the parameters say: boards, a switch, a receiver.
 */
#include "lab/feroce/experiments.h"
#include "lab/feroce/rows.h"
#include "lab/reading.h"

#define LOOK_PS UINT64_C(1000000) /* Between two looks at the queues. */

/* Looks at the switch now and then. */
struct looks {
    struct sim_event event;
    const struct feroce_machine *machine;
    struct lab_lengths queue;
};

/* -- Setting up ---------------------------------------------------------------------------------*/

/* Parameters of other speeds and stacks are the experiment's, too, though nothing comes of them. */
static struct feroce_setup setup_of(struct lab_run *run)
{
    struct feroce_setup setups[FEROCE_SPEEDS][2];
    for (enum feroce_speed speed = FEROCE_10G; speed < FEROCE_SPEEDS; speed++) {
        setups[speed][0] = feroce_setup_of(run, speed);
        setups[speed][1] = feroce_setup_2026(run, speed);
    }
    struct feroce_setup setup = setups[lab_word(run, "speed")][lab_word(run, "stack")];
    setup.receives = feroce_whole(run, "receives");
    setup.rnr_code = (uint8_t)feroce_whole(run, "rnr_code");
    setup.keeps = lab_word(run, "receiver") != 0;
    setup.board.window.resends_alone = lab_word(run, "resend") != 0;
    return setup;
}

static struct feroce_load load_of(struct lab_run *run)
{
    const uint32_t bytes = feroce_whole(run, "bytes"), odd = feroce_whole(run, "bytes_odd");
    struct feroce_load load = feroce_load_of(bytes, feroce_whole(run, "messages"));
    load.bytes[1] = odd == 0 ? bytes : odd;
    load.senders = feroce_whole(run, "senders");
    load.qps = feroce_whole(run, "pairs");
    load.write = lab_word(run, "verb") == 0;
    load.count = (load.messages + load.qps - 1) / load.qps;
    load.warm = feroce_whole(run, "warm");
    load.frequency = feroce_whole(run, "frequency");
    load.stagger_ps = lab_ps(run, "stagger");
    load.loss_millionths = (uint32_t)llround(lab_value(run, "loss") * 1e6);
    load.answer_loss_millionths = (uint32_t)llround(lab_value(run, "answer_loss") * 1e6);
    return load;
}

/* Settings that do not go together. */
static bool fits(struct lab_run *run, const struct feroce_setup *setup,
                 const struct feroce_load *load)
{
    if (lab_word(run, "speed") == FEROCE_100G && lab_word(run, "stack") == 0) {
        lab_fail(run, "speed=100G: the document has no such board, stack=2026 has");
    } else if (load->qps > setup->board.window.qps) {
        lab_fail(run, "pairs=%u: such a board has %u queue pairs", load->qps,
                 setup->board.window.qps);
    } else if (load->bytes[0] % 4 != 0 || load->bytes[1] % 4 != 0) {
        lab_fail(run, "a message is a multiple of 4 bytes");
    } else if (load->warm >= load->messages) {
        lab_fail(run, "warm=%u: of %u messages none is left to be measured", load->warm,
                 load->messages);
    }
    return run->failure[0] == '\0';
}

/* -- The run ------------------------------------------------------------------------------------*/

static uint64_t bytes_waiting(const struct feroce_machine *machine)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < machine->network.port_count; i++) {
        for (uint32_t k = 0; k < PAUSE_CLASSES; k++) {
            bytes += machine->network.ports[i].lanes[k].bytes;
        }
    }
    return bytes;
}

static void on_look(struct sim *sim, struct sim_event *event)
{
    struct looks *looks = CONTAINER_OF(event, struct looks, event);
    lab_lengths_count(&looks->queue, bytes_waiting(looks->machine));
    sim_after(sim, event, LOOK_PS);
}

static struct lab_lengths play(struct feroce_machine *machine)
{
    struct looks looks = {.machine = machine};
    sim_event_init(&looks.event, on_look);
    sim_after(&machine->sim, &looks.event, LOOK_PS);
    feroce_machine_run(machine);
    sim_cancel(&looks.event);
    return looks.queue;
}

/* -- Results ------------------------------------------------------------------------------------*/

/* The line's share of the time that a port used it for frames. */
static double share_of(const struct sim_port *port, double ps)
{
    return (double)port->counters.line_bytes * (double)port->kind.wire.byte_fs / 1e3 / ps;
}

static double busiest_link(const struct feroce_machine *machine)
{
    const double ps = (double)(machine->sim.now_ps - machine->receiver.start_ps);
    double most = share_of(&machine->network.ports[machine->load.senders].port, ps);
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        most = fmax(most, share_of(&machine->nodes[i].port, ps));
    }
    return machine->receiver.start_ps == 0 || ps <= 0 ? 0 : most;
}

/* Jain's index of the boards' bytes while it was measured. */
static double fairness_of(const struct feroce_machine *machine)
{
    double shares[FEROCE_SENDERS_MAX];
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        shares[i] = (double)(machine->measure.end_bytes[i] - machine->measure.begin_bytes[i]);
    }
    return machine->measure.over ? sim_fairness(shares, machine->load.senders) : LAB_NOTHING;
}

/* Messages that are missing. */
static uint64_t missing(const struct feroce_machine *machine)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        const uint64_t messages = machine->nodes[i].messages;
        sum += messages < machine->load.messages ? machine->load.messages - messages : 0;
    }
    return sum;
}

static void add_results(struct lab_run *run, const struct feroce_machine *machine,
                        const struct lab_lengths *queue)
{
    const struct feroce_result result = feroce_machine_result(machine);
    const struct sim_switch_counters counters = sim_ethernet_switch_total(&machine->network);
    const bool measured = machine->measure.over;
    const struct lab_outcome outcome = {
        .gbps = measured ? result.gbps : LAB_NOTHING,
        .rate = measured ? result.messages_per_s / 1e6 : LAB_NOTHING,
        .latency = &machine->measure.latency,
        .latency_of = "from a message's last bit on the line to its ACK",
        .link = busiest_link(machine),
        .link_of = "of its time, the busiest line to the switch or to the receiver",
        .queue = queue,
        .queue_of = "bytes in the switch",
        .lost = result.lost,
        .lost_of = "packets lost by lines and switch",
        .again = result.resent,
        .again_of = "packets sent again",
    };
    lab_add_outcome(run, &outcome);
    lab_add_reading(run, "input_max", "B", (double)sim_ethernet_switch_worst(&machine->network),
                    "the most bytes of an input of the switch");
    lab_add_reading(run, "pauses", "", (double)counters.xoffs, "that the switch asked for");
    lab_add_reading(run, "fairness", "", fairness_of(machine), "Jain's index of the boards' bytes");
    lab_judge_absolute(lab_add_row(run, "FER-W-one", "", "of %u messages were not acknowledged",
                                   machine->load.senders * machine->load.messages),
                       0, (double)missing(machine), 0);
}

/* -- The experiment -----------------------------------------------------------------------------*/

static void run_one(struct lab_run *run)
{
    const struct feroce_setup setup = setup_of(run);
    const struct feroce_load load = load_of(run);
    struct feroce_sums sums = {0};
    struct feroce_machine *machine =
        fits(run, &setup, &load) ? feroce_machine_open(run, &setup, &load) : NULL;
    if (machine == NULL) {
        return;
    }
    const struct lab_lengths queue = play(machine);
    add_results(run, machine, &queue);
    feroce_sums_add(&sums, machine);
    feroce_machine_close(machine);
    feroce_sums_rows(run, &sums, "FER-A37.bytes.one", "FER-A37.icrcs.one");
}

static const struct lab_claim claims[] = {
    {.id = "FER-W-one",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: nothing is lost where the switch asks for pauses",
     .broken_by = "loss=0.01",
     .because = "lines lose packets, and the slides' boards send nothing twice"},
    FEROCE_SUM_CLAIMS("one"),
};

const struct lab_experiment feroce_one = {
    FEROCE_COMMON,
    .name = "feroce/one",
    .what = "one point: boards, a switch, a receiver, as the parameters say",
    .uses = "speed stack senders=1 pairs verb bytes bytes_odd messages warm frequency stagger "
            "loss=0 answer_loss receives rnr_code receiver resend quirks pmtu qps qp_width "
            "buffer_bits rto retry timer release request_cycles visit_cycles packet_cycles "
            "pipe_cycles read_ahead extra_bytes gap ack_ns host_ns cable switch fec_ns coalesce "
            "pfc pauser paused xoff_10G xoff_25G buffer_bytes flip",
    FEROCE_CLAIMS(claims),
    .quick = true,
    .run = run_one,
    .explains =
        "For exploring, with every byte and every ICRC compared. Rate and latency are measured "
        "from the time when every board has had its first messages acknowledged until one board "
        "has had all of its own. The slides' boards send nothing again: what is lost stays so, "
        "and there is no rate then (stack=2026 repairs it).",
};
