/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report_steps - which packets of a connection are drawn, and what is written beside them: its
 * first ones, and those around each oddity, until the chart is full.
 */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "tools/report.h"

/* -- Labels -------------------------------------------------------------------------------------*/

static const char *syndrome_name(uint8_t syndrome)
{
    switch (syndrome & ROCE_AETH_KIND_MASK) {
    case ROCE_AETH_ACK: return "";
    case ROCE_AETH_RNR_NAK: return ", RNR NAK";
    default: break;
    }
    switch (syndrome) {
    case ROCE_NAK_PSN_SEQUENCE: return ", NAK: PSN sequence";
    case ROCE_NAK_INVALID_REQUEST: return ", NAK: invalid request";
    case ROCE_NAK_REMOTE_ACCESS: return ", NAK: remote access";
    case ROCE_NAK_REMOTE_OPERATIONAL: return ", NAK: remote operation";
    default: return ", reserved syndrome";
    }
}

static int label_roce(const struct report_packet *packet, char *label)
{
    const struct roce_packet *roce = &packet->roce;
    const uint32_t traits = roce_opcode(roce->opcode)->traits;
    return snprintf(label, REPORT_LABEL, "%s PSN %" PRIu32 "%s", packet->name, roce->psn,
                    (traits & ROCE_HAS_AETH) != 0 ? syndrome_name(roce->aeth.syndrome) : "");
}

static int label_block(const struct report_packet *packet, char *label)
{
    static const char *const statuses[BLOCK_STATUS_COUNT] = {
        "", ", RNR", ", invalid request", ", remote access", ", remote operation"};
    const struct block_packet *block = &packet->block;
    switch (block->opcode) {
    case BLOCK_ANSWER:
        return snprintf(label, REPORT_LABEL, "%s, all before BN %" PRIu32 "%s", packet->name,
                        block->answer.base,
                        block->answer.status < BLOCK_STATUS_COUNT ? statuses[block->answer.status]
                                                                  : "");
    case BLOCK_HELLO:
    case BLOCK_WELCOME:
    case BLOCK_CHALLENGE:
    case BLOCK_RESPONSE: return snprintf(label, REPORT_LABEL, "%s", packet->name);
    default:
        return snprintf(label, REPORT_LABEL, "%s BN %" PRIu32 " [%u/%u]", packet->name,
                        block->number, block->position, block->last_position);
    }
}

static int label_srd(const struct report_packet *packet, char *label)
{
    const struct srd_packet *srd = &packet->srd;
    switch (srd->opcode) {
    case SRD_ANSWER:
        return snprintf(label, REPORT_LABEL, "%s, all before PSN %" PRIu32 "%s", packet->name,
                        srd->answer.taken_before,
                        srd->answer.record_count > 0 &&
                                srd->answer.records[0].kind != SRD_KIND_TAKEN
                            ? ", not taken"
                            : "");
    case SRD_HELLO:
    case SRD_CHALLENGE: return snprintf(label, REPORT_LABEL, "%s", packet->name);
    case SRD_DATA:
        return snprintf(label, REPORT_LABEL, "%s of PSN %" PRIu32 " [%u]", packet->name, srd->psn,
                        srd->index);
    default:
        return snprintf(label, REPORT_LABEL, "%s PSN %" PRIu32 " [%u/%u]", packet->name, srd->psn,
                        srd->index, srd->last);
    }
}

/* The packet's line in a chart. */
static void write_label(const struct report_packet *packet, char label[REPORT_LABEL])
{
    int used = 0;
    switch (packet->kind) {
    case REPORT_ROCE: used = label_roce(packet, label); break;
    case REPORT_BLOCK: used = label_block(packet, label); break;
    case REPORT_SRD: used = label_srd(packet, label); break;
    case REPORT_FOREIGN:
    case REPORT_BROKEN:
    case REPORT_PORT:
        used = snprintf(label, REPORT_LABEL, "%s", packet->flaw != NULL ? packet->flaw : "");
        break;
    }
    CHECK(used >= 0 && used < REPORT_LABEL);
    if (packet->payload_bytes > 0) {
        snprintf(label + used, REPORT_LABEL - (size_t)used, ", %" PRIu32 " bytes",
                 packet->payload_bytes);
    }
}

/* -- Which are drawn ----------------------------------------------------------------------------*/

static void add(struct report_chart *chart, const struct report_step *step)
{
    if (chart->count == REPORT_STEPS) {
        chart->skipped++;
        return;
    }
    for (uint32_t i = 0; i < chart->count && step->again_of != 0; i++) {
        if (chart->steps[i].number == step->again_of) {
            chart->steps[i].again_in = step->number;
        }
    }
    chart->steps[chart->count] = *step;
    chart->steps[chart->count].skipped = chart->skipped;
    chart->skipped = 0;
    chart->count++;
}

/* Keeps the last few, in case that the next packet is odd. */
static void keep(struct report_chart *chart, const struct report_step *step)
{
    if (chart->before_count == REPORT_BEFORE) {
        memmove(chart->before, chart->before + 1, sizeof(chart->before) - sizeof(chart->before[0]));
        chart->before_count--;
        chart->skipped++;
    }
    chart->before[chart->before_count++] = *step;
}

static void add_kept(struct report_chart *chart)
{
    for (uint32_t i = 0; i < chart->before_count; i++) {
        add(chart, &chart->before[i]);
    }
    chart->before_count = 0;
}

void report_draw(struct report *report, uint32_t half, const struct report_packet *packet,
                 uint64_t again_of, const char *odd)
{
    const uint32_t drawn = report->halves[half].drawn;
    if (drawn == REPORT_NONE) {
        return;
    }
    struct report_chart *chart = &report->charts[drawn];
    struct report_step step = {.number = packet->number,
                               .at_ns = packet->at_ns,
                               .again_of = again_of,
                               .half = half,
                               .odd = odd,
                               .is_request = !report_is_response(packet)};
    if (chart->count < REPORT_STEPS) {
        write_label(packet, step.label);
    }
    chart->odd_run = odd != NULL ? chart->odd_run + 1 : 0;
    if (odd != NULL && chart->odd_run <= REPORT_RUN) {
        add_kept(chart);
        chart->behind = REPORT_BEHIND;
        add(chart, &step);
    } else if ((odd == NULL && chart->behind > 0) || chart->count < REPORT_FIRST) {
        chart->behind -= chart->behind > 0;
        add(chart, &step);
    } else {
        keep(chart, &step);
    }
}

uint32_t report_chart_with(const struct report *report, uint32_t half, uint64_t number)
{
    const uint32_t drawn = half == REPORT_NONE ? (uint32_t)REPORT_NONE : report->halves[half].drawn;
    if (drawn != REPORT_NONE) {
        for (uint32_t i = 0; i < report->charts[drawn].count; i++) {
            if (report->charts[drawn].steps[i].number == number) {
                return drawn;
            }
        }
    }
    return REPORT_NONE;
}
