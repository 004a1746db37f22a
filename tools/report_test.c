/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A report says of captures what is in them, and no bytes make it stumble.
 * Method  Captures of Soft-RoCE (tests/golden), whose names say what was done. The same cut, with
 *         any bit flipped, and with packets missing: counts stay within what there is, and the page
 *         is whole. Packets of blocks and of SRD are encoded here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "tools/report.h"
#include "wire/icrc.h"
#include "wire/roce_frame.h"

static const char *golden;

/* -- Captures -----------------------------------------------------------------------------------*/

enum {
    FRAMES_MAX = 1000,
    FRAME_BYTES = 5000,
    FIRST_SEND = 21, /* In perftest_send_rc_65536, behind a connection of TCP. */
};

struct frames {
    struct report_frame frames[FRAMES_MAX];
    uint8_t bytes[FRAMES_MAX][FRAME_BYTES];
    uint32_t count;
    int link;
};

static struct frames *load(const char *name)
{
    char path[4096], error[PCAP_ERRBUF_SIZE];
    struct frames *frames = calloc(1, sizeof(*frames));
    struct pcap_pkthdr *header;
    const uint8_t *bytes;
    assert_non_null(frames);
    snprintf(path, sizeof(path), "%s/%s.pcap", golden, name);
    pcap_t *capture =
        pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
    assert_non_null(capture);
    frames->link = pcap_datalink(capture);
    while (pcap_next_ex(capture, &header, &bytes) == 1) {
        assert_true(frames->count < FRAMES_MAX && header->caplen <= FRAME_BYTES);
        memcpy(frames->bytes[frames->count], bytes, header->caplen);
        frames->frames[frames->count] = (struct report_frame){
            .number = frames->count + 1,
            .at_ns = (uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec,
            .bytes = frames->bytes[frames->count],
            .kept_bytes = header->caplen,
            .bytes_on_wire = header->len,
        };
        frames->count++;
    }
    pcap_close(capture);
    return frames;
}

/* Looks at each packet in memory of exactly its size, so that a sanitizer sees a step beyond. */
static void look(struct report *report, const struct frames *frames,
                 void (*see)(struct report *report, const struct report_packet *packet))
{
    for (uint32_t i = 0; i < frames->count; i++) {
        struct report_packet packet;
        struct report_frame frame = frames->frames[i];
        uint8_t *bytes = malloc(frame.kept_bytes + (frame.kept_bytes == 0));
        assert_non_null(bytes);
        memcpy(bytes, frame.bytes, frame.kept_bytes);
        frame.bytes = bytes;
        report_read_packet(frames->link, &frame, &packet);
        see(report, &packet);
        free(bytes);
    }
}

static void read_all(struct report *report, const struct frames *frames)
{
    assert_true(report_open(report));
    look(report, frames, report_learn);
    report_pair(report);
    look(report, frames, report_count);
}

static char *text;
static size_t text_bytes;

static char *page_of(const struct report *report, const char *name, const char *broken)
{
    FILE *page = open_memstream(&text, &text_bytes);
    assert_non_null(page);
    report_page(page, report, name, broken);
    assert_int_equal(fclose(page), 0);
    return text;
}

struct sums {
    uint64_t connections, messages, packets, again, not_ready, refused;
};

static struct sums sums_of(const struct report *report)
{
    struct sums sums = {0};
    for (uint32_t i = 0; i < report->half_count; i++) {
        const struct report_half *half = &report->halves[i];
        sums.connections += half->partner == REPORT_NONE || half->partner > i;
        sums.messages += half->messages;
        sums.packets += half->packets;
        sums.again += half->again;
        sums.not_ready += half->not_ready;
        sums.refused += half->refused;
    }
    return sums;
}

static uint64_t count_oddities(const struct report *report)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < REPORT_RULES; i++) {
        count += report->oddities[i].count;
    }
    return count;
}

/* -- Captures of known things -------------------------------------------------------------------*/

static void known_captures(void **state)
{
    /* tests/golden/softroce: what was done, and how often Soft-RoCE sent what again. `rule`: of
     * the oddities beside what was sent again; REPORT_RULES: none. */
    static const struct {
        const char *name;
        struct sums sums;
        enum report_rule rule;
        uint64_t times;
    } rows[] = {
        {"ops_rc_all", {1, 29, 74, 0, 0, 0}, REPORT_RULES, 0},
        {"ops_rc_ipv6", {1, 6, 20, 0, 0, 0}, REPORT_RULES, 0},
        {"ops_rc_psn_wrap", {1, 4, 18, 0, 0, 0}, REPORT_RULES, 0},
        {"ops_rc_read_psn_wrap", {1, 2, 11, 0, 0, 0}, REPORT_RULES, 0},
        {"ops_rc_rnr", {1, 2, 25, 10, 10, 0}, REPORT_NOT_READY, 10},
        {"ops_rc_nak_rkey", {1, 2, 4, 0, 0, 1}, REPORT_NAK_ACCESS, 1},
        {"ops_rc_recv_too_short", {1, 2, 4, 0, 0, 1}, REPORT_NAK_OPERATION, 1},
        {"ops_rc_loss_requests", {1, 18, 98, 24, 0, 0}, REPORT_NAK_SEQUENCE, 3},
        {"ops_rc_loss_responses", {1, 18, 93, 9, 0, 0}, REPORT_RULES, 0},
        {"ops_rc_dead_peer", {1, 1, 4, 3, 0, 0}, REPORT_RULES, 0},
        {"perftest_read_rc_65536", {1, 5, 325, 0, 0, 0}, REPORT_RULES, 0},
        {"ops_uc", {1, 8, 14, 0, 0, 0}, REPORT_RULES, 0},
        {"pingpong_uc", {1, 10, 10, 0, 0, 0}, REPORT_RULES, 0},
        {"ops_ud_ipv6", {1, 2, 2, 0, 0, 0}, REPORT_RULES, 0},
        {"pingpong_srq", {16, 36, 72, 0, 0, 0}, REPORT_RULES, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct report report;
        struct frames *frames = load(rows[i].name);
        read_all(&report, frames);
        const struct sums sums = sums_of(&report);
        print_message("%s\n", rows[i].name);
        assert_memory_equal(&sums, &rows[i].sums, sizeof(sums));
        assert_int_equal(count_oddities(&report), sums.again + rows[i].times);
        if (rows[i].rule != REPORT_RULES) {
            assert_int_equal(report.oddities[rows[i].rule].count, rows[i].times);
        }
        report_close(&report);
        free(frames);
    }
}

/* A packet that repeats another one, and that other one, name each other. */
static void repetitions_are_linked(void **state)
{
    struct report report;
    struct frames *frames = load("ops_rc_loss_responses");
    uint32_t linked = 0;
    (void)state;
    read_all(&report, frames);
    const struct report_chart *chart = &report.charts[0];
    for (uint32_t i = 0; i < chart->count; i++) {
        for (uint32_t k = 0; k < i && chart->steps[i].again_of != 0; k++) {
            if (chart->steps[k].number == chart->steps[i].again_of) {
                linked++;
                assert_true(chart->steps[k].again_in >= chart->steps[i].number);
                assert_int_equal(chart->steps[k].half, chart->steps[i].half);
            }
        }
    }
    assert_true(linked >= 4);
    report_close(&report);
    free(frames);
}

/* A capture that lacks packets of requests tells so, unless these are the first or last ones. */
static void missing_packets(void **state)
{
    struct frames *frames = load("perftest_send_rc_65536");
    (void)state;
    for (uint32_t left_out = FIRST_SEND + 1; left_out < FIRST_SEND + 60; left_out++) {
        struct report report;
        struct report_packet packet;
        struct frames *fewer = load("perftest_send_rc_65536");
        report_read_packet(frames->link, &frames->frames[left_out], &packet);
        memmove(&fewer->frames[left_out], &fewer->frames[left_out + 1],
                (fewer->count - left_out - 1) * sizeof(fewer->frames[0]));
        fewer->count--;
        read_all(&report, fewer);
        assert_int_equal(report.oddities[REPORT_GAP].count, !report_is_response(&packet));
        assert_int_equal(report.oddities[REPORT_ORDER].count, 0);
        report_close(&report);
        free(fewer);
    }
    free(frames);
}

/* -- Rules that senders break ---------------------------------------------------------------------
 */

/* Puts the right ICRC behind a packet that was changed. */
static void seal(struct frames *frames, uint32_t at)
{
    struct report_packet packet;
    report_read_packet(frames->link, &frames->frames[at], &packet);
    uint8_t *bytes = frames->bytes[at];
    const uint32_t headers = 14 + 20 + 8;
    const uint32_t count = frames->frames[at].kept_bytes - headers;
    const uint16_t identification = load_be16(bytes + 14 + 4);
    store_le32(bytes + headers + count - 4,
               icrc_compute(&packet.flow, identification, bytes + headers, count - 4, NULL, 0));
}

static void broken_rules(void **state)
{
    /* A byte of a packet of this capture is changed: what is told. */
    static const struct {
        uint32_t packet, at;
        uint8_t value;
        bool sealed;
        enum report_rule rule;
    } rows[] = {
        {FIRST_SEND + 2, 0, ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_FIRST), true, REPORT_ORDER},
        {FIRST_SEND + 2, 0, ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_WRITE_MIDDLE), true, REPORT_ORDER},
        {FIRST_SEND + 2, 1, 0x40, false, REPORT_ICRC},
        {FIRST_SEND + 2, 1, 0x41, true, REPORT_MALFORMED},
        {FIRST_SEND + 2, 0, 0x1f, true, REPORT_MALFORMED},
        {FIRST_SEND + 2, 1, 0x10, true, REPORT_LENGTH},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct report report;
        struct frames *frames = load("perftest_send_rc_65536");
        frames->bytes[rows[i].packet][14 + 20 + 8 + rows[i].at] = rows[i].value;
        if (rows[i].sealed) {
            seal(frames, rows[i].packet);
        }
        read_all(&report, frames);
        assert_true(report.oddities[rows[i].rule].count >= 1);
        assert_int_equal(report.oddities[rows[i].rule].examples[0].number, rows[i].packet + 1);
        char *page = page_of(&report, "x", NULL);
        assert_non_null(strstr(page, report_rules[rows[i].rule].title));
        assert_non_null(strstr(page, "class=broken"));
        free(page);
        report_close(&report);
        free(frames);
    }
}

/* An acknowledgement of a PSN that was never sent. */
static void answer_to_nothing(void **state)
{
    struct report report;
    struct report_packet packet;
    struct frames *frames = load("perftest_send_rc_1");
    (void)state;
    for (uint32_t i = 2; i < frames->count; i++) {
        report_read_packet(frames->link, &frames->frames[i], &packet);
        if (report_is_response(&packet)) {
            store_be32(frames->bytes[i] + 14 + 20 + 8 + 8, packet.roce.psn + 1000);
            seal(frames, i);
            break;
        }
    }
    read_all(&report, frames);
    assert_int_equal(report.oddities[REPORT_UNSENT].count, 1);
    report_close(&report);
    free(frames);
}

/* -- Blocks and SRD -----------------------------------------------------------------------------*/

static struct inet_flow flow_of(bool back)
{
    return inet_flow_ipv4(back ? 0x7f000002 : 0x7f000001, ROCE_UDP_PORT,
                          back ? 0x7f000001 : 0x7f000002, ROCE_UDP_PORT);
}

/* A packet of IP: from 127.0.0.1, or `back`. */
static void add_packet(struct frames *frames, bool back, const uint8_t *headers,
                       size_t headers_bytes, const uint8_t *payload, size_t payload_bytes)
{
    uint8_t whole[BLOCK_PACKET_BYTES_MAX];
    const struct inet_flow flow = flow_of(back);
    const size_t count =
        roce_frame_join(&flow, headers, headers_bytes, payload, payload_bytes, whole);
    uint8_t *bytes = frames->bytes[frames->count];
    const size_t ip_bytes = inet_encode(bytes, &flow, 0, whole, count);
    memcpy(bytes + ip_bytes, whole, count);
    frames->link = DLT_RAW;
    frames->frames[frames->count] = (struct report_frame){
        .number = frames->count + 1,
        .at_ns = frames->count * 1000,
        .bytes = bytes,
        .kept_bytes = (uint32_t)(ip_bytes + count),
        .bytes_on_wire = (uint32_t)(ip_bytes + count),
    };
    frames->count++;
}

static void add_block(struct frames *frames, bool back, struct block_packet *packet)
{
    static const uint8_t payload[64];
    uint8_t headers[BLOCK_HEADERS_BYTES_MAX];
    packet->destination_qpn = back ? 11 : 22;
    packet->session = 7;
    const size_t count = block_encode(packet, headers);
    add_packet(frames, back, headers, count, payload, packet->payload_bytes);
}

static void blocks(void **state)
{
    struct report report;
    struct frames *frames = calloc(1, sizeof(*frames));
    struct block_packet send = {
        .opcode = BLOCK_SEND, .last_block = true, .message_bytes = 64, .payload_bytes = 64};
    struct block_packet answer = {.opcode = BLOCK_ANSWER};
    (void)state;
    add_block(frames, false, &send);
    send.resent = true;
    send.round = 1;
    add_block(frames, false, &send);
    answer.answer.status = BLOCK_STATUS_RNR;
    add_block(frames, true, &answer);
    answer.answer.status = BLOCK_STATUS_ACCESS;
    add_block(frames, true, &answer);
    send.number = 1;
    add_block(frames, false, &send); /* Its first copy never came here. */
    read_all(&report, frames);
    const struct sums sums = sums_of(&report);
    const struct sums expected = {1, 2, 5, 2, 1, 1};
    assert_memory_equal(&sums, &expected, sizeof(sums));
    assert_int_equal(report.oddities[REPORT_BLOCK_AGAIN].count, 2);
    assert_int_equal(report.oddities[REPORT_BLOCK_NOT_READY].count, 1);
    assert_int_equal(report.oddities[REPORT_BLOCK_REFUSED].count, 1);
    assert_int_equal(report.charts[0].steps[1].again_of, 1);
    assert_int_equal(report.charts[0].steps[0].again_in, 2);
    report_close(&report);
    free(frames);
}

static void add_srd(struct frames *frames, bool back, struct srd_packet *packet)
{
    static const uint8_t payload[64];
    uint8_t headers[SRD_HEADERS_BYTES_MAX];
    packet->destination_qpn = SRD_PORT_OF(back ? 1 : 2);
    packet->flow = 7;
    const size_t count = srd_encode(packet, headers);
    add_packet(frames, back, headers, count, payload, packet->payload_bytes);
}

static void datagrams(void **state)
{
    struct report report;
    struct frames *frames = calloc(1, sizeof(*frames));
    struct srd_packet send = {.opcode = SRD_SEND,
                              .psn = 5,
                              .source_qpn = 0x101,
                              .target_qpn = 0x201,
                              .chunk_bytes = 512,
                              .message_bytes = 64,
                              .payload_bytes = 64};
    struct srd_packet answer = {.opcode = SRD_ANSWER};
    (void)state;
    add_srd(frames, false, &send);
    answer.answer = (struct srd_answer){
        .taken_before = 5,
        .record_count = 2,
        .records = {
            {.psn = 5, .kind = SRD_KIND_NO_RECEIVE, .bitmap = 1},
            {.psn = 6, .kind = SRD_KIND_REFUSED, .status = SRD_STATUS_BAD_ADDRESS, .bitmap = 1}}};
    add_srd(frames, true, &answer);
    send.resent = true;
    add_srd(frames, false, &send);
    read_all(&report, frames);
    const struct sums sums = sums_of(&report);
    const struct sums expected = {1, 1, 3, 1, 1, 1};
    assert_memory_equal(&sums, &expected, sizeof(sums));
    assert_string_equal(report.oddities[REPORT_SRD_REFUSED].examples[0].detail,
                        srd_status_name(SRD_STATUS_BAD_ADDRESS));
    report_close(&report);
    free(frames);
}

/* -- Bytes that anybody may have written --------------------------------------------------------*/

static void check_whole(const struct report *report)
{
    char *page = page_of(report, "x", NULL);
    assert_non_null(strstr(page, "</body></html>"));
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf"));
    free(page);
}

static void any_bytes(void **state)
{
    static const char *const names[] = {"ops_rc_all", "ops_rc_loss_requests", "ops_ud_ipv6"};
    struct prng prng;
    prng_init(&prng, 1);
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        struct report report;
        struct frames *frames = load(names[round % COUNT_OF(names)]);
        for (uint32_t i = 0; i < frames->count; i++) {
            struct report_frame *frame = &frames->frames[i];
            const uint64_t draw = prng_next(&prng);
            if (draw % 3 == 0) {
                frames->bytes[i][(draw >> 8) % frame->kept_bytes] ^=
                    (uint8_t)(1 << (draw >> 40) % 8);
            } else if (draw % 3 == 1 && round % 2 == 0) {
                frame->kept_bytes = (uint32_t)(draw >> 8) % (frame->kept_bytes + 1);
            }
            frame->at_ns = round % 5 == 4 ? draw : frame->at_ns;
        }
        read_all(&report, frames);
        assert_int_equal(report.packets, frames->count);
        assert_true(sums_of(&report).packets <= report.packets);
        check_whole(&report);
        report_close(&report);
        free(frames);
    }
}

/* A file's name, and libpcap's words, are texts of others. */
static void texts_of_others(void **state)
{
    struct report report;
    (void)state;
    assert_true(report_open(&report));
    report_pair(&report);
    char *page = page_of(&report, "<script>alert(\"1\")</script>&", "<b>\"");
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<b>\""));
    assert_non_null(strstr(page, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;"));
    assert_non_null(strstr(page, "There is none"));
    free(page);
    report_close(&report);
}

/* No page grows with its capture. */
static void many_connections(void **state)
{
    struct report report;
    struct frames *frames = calloc(1, sizeof(*frames));
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    struct roce_packet send = {.opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY)};
    (void)state;
    for (uint32_t i = 0; i < FRAMES_MAX; i++) {
        send.destination_qpn = i + 2;
        const size_t count = roce_encode_headers(&send, headers);
        add_packet(frames, false, headers, count, NULL, 0);
    }
    read_all(&report, frames);
    assert_int_equal(sums_of(&report).connections, FRAMES_MAX);
    assert_int_equal(report.chart_count, REPORT_DRAWN);
    char *page = page_of(&report, "x", NULL);
    assert_non_null(strstr(page, "800 more connections are not shown"));
    assert_true(strlen(page) < 200000);
    free(page);
    report_close(&report);
    free(frames);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_captures),    cmocka_unit_test(repetitions_are_linked),
        cmocka_unit_test(missing_packets),   cmocka_unit_test(broken_rules),
        cmocka_unit_test(answer_to_nothing), cmocka_unit_test(blocks),
        cmocka_unit_test(datagrams),         cmocka_unit_test(any_bytes),
        cmocka_unit_test(texts_of_others),   cmocka_unit_test(many_connections),
    };
    golden = argc > 1 ? argv[1] : "tests/golden/softroce";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
