/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <inttypes.h>

#include "tools/report.h"

static void write_address(FILE *page, const uint8_t address[16])
{
    char text[INET6_ADDRSTRLEN] = "?";
    const bool is_ipv4 = inet_is_ipv4(address);
    inet_ntop(is_ipv4 ? AF_INET : AF_INET6, address + (is_ipv4 ? 12 : 0), text, sizeof(text));
    fputs(text, page);
}

void report_write_end(FILE *page, const struct report *report, const struct report_half *half,
                      bool is_source)
{
    const struct report_half *back = report_partner(report, half);
    const struct report_half *known = is_source ? back : half;
    write_address(page, is_source ? half->source : half->destination);
    if (half->service == REPORT_DATAGRAMS) {
        if (!is_source || back != half) {
            fprintf(page, " process %" PRIu32, SRD_SLOT_OF_PORT(known->qpn));
        }
    } else if (is_source && half->service == REPORT_UD) {
        fprintf(page, " QP %" PRIu32, half->source_qpn);
    } else if (!is_source || back != half) {
        fprintf(page, " QP %" PRIu32, known->qpn);
    } else {
        fprintf(page, " QP ?");
    }
}
