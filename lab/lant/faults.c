/* SPDX-License-Identifier: BSD-2-Clause
 *
 * faults - see faults.h.
 */
#include "lab/lant/faults.h"

#include <math.h>

#include "lab/lant/fabric.h"

enum {
    FAR_NODE = 1,
    RETRIES = LANT_RETRIES_MAX,
};

/* Every packet is answered: no timer ever ends. */
#define TIMEOUT_PS (UINT64_C(1) << 50)

uint64_t lant_fault_threshold(double bit_error_rate, uint32_t bits)
{
    return (uint64_t)llround(-expm1(bits * log1p(-bit_error_rate)) * 0x1p32);
}

void lant_fault_pair_open(struct lant_fault_pair *pair, const struct lant_fault_pair_config *config)
{
    struct lant_rdma_config rdma = LANT_RDMA_DEFAULTS;
    rdma.work.segment_bytes = 0;
    rdma.registers.off = true;
    rdma.timeout = TIMEOUT_PS;
    rdma.rows = config->rows;
    rdma.retries = RETRIES;
    rdma.serial_retransmission = !config->pipelined;
    *pair = (struct lant_fault_pair){.config = *config};
    lant_rdma_init(&pair->rdma, &rdma);
    lant_fault_init(&pair->network, &config->network);
}

/* -- The DMA engine and the line ----------------------------------------------------------------*/

static void enter(struct lant_fault_pair *pair)
{
    const uint64_t cycle = (pair->now_ps + LANT_CYCLE_PS - 1) / LANT_CYCLE_PS;
    lant_fault_take(&pair->network, &pair->packet, cycle);
    pair->entering = false;
}

static void start_descriptor(struct lant_fault_pair *pair)
{
    struct lant_rdma_descriptor descriptor;
    switch (lant_rdma_next_descriptor(&pair->rdma, pair->now_ps, &descriptor)) {
    case LANT_RDMA_STARTS_PARTIAL:
    case LANT_RDMA_STARTS_GIVEN_WAY:
    case LANT_RDMA_STARTS_OPERATION:
        pair->engine_ps = pair->now_ps + (uint64_t)pair->config.setup_cycles * LANT_CYCLE_PS;
        return;
    case LANT_RDMA_NOTHING:
    case LANT_RDMA_WAITS_ANSWER: pair->waits = true; return;
    case LANT_RDMA_BUSY:
    case LANT_RDMA_WAITS_SLOT:
    case LANT_RDMA_WAITS_IDENTIFIER:
    default: UNREACHABLE("one message at a time");
    }
}

/* A packet's first flit leaves, or a descriptor begins, or the engine waits. */
static void step_engine(struct lant_fault_pair *pair, struct lant_fault_message *message)
{
    struct lant_packet packet;
    struct lant_rdma_push push;
    switch (lant_rdma_next_packet(&pair->rdma, pair->now_ps, &packet, &push)) {
    case LANT_RDMA_PUSHED:
        pair->packet = (struct lant_ends){.header = packet.header, .footer = packet.footer};
        pair->goes_back[packet.footer.row] = false;
        pair->entering = true;
        pair->enter_ps = pair->now_ps + pair->config.packet_ps;
        pair->engine_ps = pair->enter_ps;
        message->packets += !push.again;
        message->again += push.again;
        return;
    case LANT_RDMA_PUSH_NOTHING:
    case LANT_RDMA_PUSH_GIVES_WAY: start_descriptor(pair); return;
    case LANT_RDMA_PUSH_WAITS: pair->waits = true; return;
    default: UNREACHABLE("a verdict outside its enum");
    }
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* Packets that were sent behind the failed one, and have no answer, fail as well. */
static void go_back(struct lant_fault_pair *pair, const struct lant_footer *failed)
{
    const struct lant_transactions *rows = &pair->rdma.transactions;
    for (uint32_t row = 0; row < rows->rows; row++) {
        const struct lant_transaction *other = &rows->table[row];
        pair->goes_back[row] |= other->busy && other->offset > failed->offset;
    }
}

static void take_answers(struct lant_fault_pair *pair)
{
    struct lant_ends answer;
    uint32_t hops;
    while (lant_fault_offer(&pair->network, &answer, &hops)) {
        struct lant_footer *footer = &answer.footer;
        lant_fault_taken(&pair->network);
        if (pair->goes_back[footer->row]) {
            footer->response = LANT_NACK_CRC;
        } else if (pair->config.goes_back &&
                   lant_response_is_nack((enum lant_response)footer->response)) {
            go_back(pair, footer);
        }
        (void)lant_rdma_on_answer(&pair->rdma, pair->now_ps, footer);
        pair->waits = false;
    }
}

/* The message's end, if this is it. */
static bool take_notification(struct lant_fault_pair *pair, struct lant_notification *notification)
{
    struct lant_packet packet;
    if (lant_rdma_next_completion(&pair->rdma, pair->now_ps, &packet)) {
        const struct lant_ends word = {.header = packet.header, .footer = packet.footer};
        const struct lant_ends answer = lant_answer(&word, FAR_NODE, LANT_OKAY);
        (void)lant_rdma_on_answer(&pair->rdma, pair->now_ps, &answer.footer);
    }
    return lant_rdma_next_notification(&pair->rdma, pair->now_ps, LANT_QUEUE_CPU, notification);
}

/* -- Messages -----------------------------------------------------------------------------------*/

static uint64_t network_ps(const struct lant_fault_pair *pair)
{
    const uint64_t deadline = lant_fault_deadline(&pair->network);
    return deadline == LANT_NEVER ? LANT_NEVER : deadline * LANT_CYCLE_PS;
}

/* When the line or the engine can go on by itself. */
static uint64_t line_ps(const struct lant_fault_pair *pair)
{
    if (pair->entering) {
        /* If not, the network makes room at a time of its own. */
        return lant_fault_ready(&pair->network) ? pair->enter_ps : LANT_NEVER;
    }
    return pair->waits ? LANT_NEVER : pair->engine_ps;
}

/* Carries out the next event, and takes its time. */
static void step(struct lant_fault_pair *pair, struct lant_fault_message *message)
{
    const uint64_t network = network_ps(pair), line = line_ps(pair);
    const uint64_t next = network < line ? network : line;
    CHECK(next != LANT_NEVER);
    pair->now_ps = next > pair->now_ps ? next : pair->now_ps;
    if (network <= line) {
        lant_fault_step(&pair->network, network / LANT_CYCLE_PS);
        take_answers(pair);
    } else if (pair->entering) {
        enter(pair);
    } else {
        step_engine(pair, message);
    }
}

bool lant_fault_pair_send(struct lant_fault_pair *pair, uint32_t packets,
                          struct lant_fault_message *message)
{
    const struct lant_work work = {.descriptor = {.destination = lant_global(FAR_NODE, 0),
                                                  .bytes = packets * LANT_PAYLOAD_BYTES_MAX}};
    const uint64_t begin_ps = pair->now_ps;
    struct lant_notification notification = {0};
    *message = (struct lant_fault_message){0};
    if (lant_work_submit(&pair->rdma.work, LANT_QUEUE_CPU, &work) != LANT_SUBMIT_COMMITTED) {
        UNREACHABLE("a message that can be sent");
    }
    pair->engine_ps = pair->now_ps;
    pair->waits = false;
    for (;;) {
        step(pair, message);
        if (pair->waits || lant_rdma_in_flight(&pair->rdma) != 0) {
            continue;
        }
        if (take_notification(pair, &notification)) {
            break;
        }
    }
    message->ps = pair->now_ps - begin_ps;
    return (notification.status & LANT_STATUS_ERRORS) == 0;
}
