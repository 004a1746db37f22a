/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever the network does to read requests, to their acknowledgements and to the data,
 *         each read ends with the right bytes and with its notification, once served by its owner.
 * Method  Machines whose programs read from each other at random, while others write.
 *         Behaviours EXA-52, EXA-53, EXA-55, EXA-56, EXA-66.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/exanest/program.h"

#define VA     EXANEST_MEMORY_VA
#define SECOND UINT64_C(1000000000000)

enum {
    FPGAS = 8,
    READS = 8, /* By each FPGA, and as many writes, to the next one. */
    SLOT_BYTES = 0xa000,
    OURS = 0,                                /* The bytes to read and send, by slot; */
    READ_TO = OURS + READS * SLOT_BYTES,     /* where reads bring it, */
    WROTE_TO = READ_TO + READS * SLOT_BYTES, /* and writes. */
    NOTICES = WROTE_TO + READS * SLOT_BYTES,
    BYTES = NOTICES + 4096,
};

struct soak;

/* A program that reads. */
struct reader {
    struct sim_event notice;
    struct soak *soak;
    uint32_t fpga, asked; /* Reads asked for. */
    struct exanest_read reads[READS];
    struct exanest_write writes[READS];
};

struct soak {
    struct sim sim;
    struct exanest_machine machine;
    struct reader readers[FPGAS];
};

/* The fate of requests. */
struct requests {
    uint64_t sent_again, given_back, duplicates;
};

static uint8_t *at(struct soak *soak, uint32_t fpga, uint64_t va, uint32_t bytes)
{
    return exanest_machine_bytes(&soak->machine, fpga, 0, va, bytes);
}

static bool is_told(struct soak *soak, uint32_t fpga, const struct exanest_read *read)
{
    uint64_t data[2];
    memcpy(data, at(soak, fpga, read->notify_va, sizeof(data)), sizeof(data));
    return data[0] == read->data && data[1] == read->request_id;
}

/* A request after the other; if its data are there, nobody waits for its acknowledgement. */
static void on_notice(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct reader *reader = CONTAINER_OF(event, struct reader, notice);
    struct exanest_machine *machine = &reader->soak->machine;
    if (!exanest_machine_read_ready(machine, reader->fpga, 0)) {
        if (is_told(reader->soak, reader->fpga, &reader->reads[reader->asked - 1])) {
            exanest_machine_read_over(machine, reader->fpga, 0);
        }
        return;
    }
    const struct exanest_packetizer *packetizer =
        &exanest_fabric_fpga(&machine->fabric, reader->fpga)->packetizer;
    assert_int_not_equal(exanest_packetizer_state(packetizer, 0).phase, EXANEST_CHANNEL_FAILED);
    if (reader->asked < READS) {
        assert_true(exanest_machine_read(machine, reader->fpga, 0, &reader->reads[reader->asked]));
        reader->asked++;
    }
}

static void plan(struct soak *soak, struct reader *reader)
{
    struct prng *prng = &soak->sim.prng;
    for (uint32_t k = 0; k < READS; k++) {
        const uint64_t source = VA + OURS + k * SLOT_BYTES;
        reader->reads[k] = (struct exanest_read){
            .owner = (uint32_t)prng_below(prng, FPGAS),
            .source = source + prng_below(prng, 64),
            .va = VA + READ_TO + k * SLOT_BYTES + prng_below(prng, 64),
            .notify_va = VA + NOTICES + 16 * k,
            .bytes = 1 + (uint32_t)prng_below(prng, SLOT_BYTES - 64),
            .request_id = k,
            .data = prng_next(prng),
        };
        reader->writes[k] = (struct exanest_write){
            .to = (reader->fpga + 1) % FPGAS,
            .source = source + prng_below(prng, 64),
            .va = VA + WROTE_TO + k * SLOT_BYTES + prng_below(prng, 64),
            .bytes = 1 + (uint32_t)prng_below(prng, SLOT_BYTES - 64),
        };
    }
}

static void begin(struct soak *soak)
{
    for (uint32_t i = 0; i < FPGAS; i++) {
        struct reader *reader = &soak->readers[i];
        uint8_t *ours = at(soak, i, VA + OURS, READS * SLOT_BYTES);
        for (uint32_t k = 0; k < READS * SLOT_BYTES; k++) {
            ours[k] = (uint8_t)prng_next(&soak->sim.prng);
        }
        reader->soak = soak;
        reader->fpga = i;
        plan(soak, reader);
        for (uint32_t k = 0; k < READS; k++) {
            exanest_machine_write(&soak->machine, i, 0, k, &reader->writes[k]);
        }
        sim_event_init(&reader->notice, on_notice);
        exanest_machine_watch(&soak->machine, i, 0, VA + NOTICES, 16 * READS, &reader->notice);
        sim_after(&soak->sim, &reader->notice, 0);
    }
}

/* Half of the pages are not there, but for those that programs poll: nothing repairs a
 * notification that finds no page. */
static void take_pages(struct soak *soak)
{
    for (uint32_t i = 0; i < FPGAS; i++) {
        struct exanest_memory *memory = &exanest_fabric_fpga(&soak->machine.fabric, i)->memory;
        for (uint64_t page = 0; page < NOTICES; page += SIM_PAGE_BYTES) {
            exanest_memory_set_present(memory, 1, VA + page, prng_below(&soak->sim.prng, 2) == 0);
        }
    }
}

static void expect_bytes(struct soak *soak, uint32_t from, uint64_t source, uint32_t to,
                         uint64_t target, uint32_t bytes)
{
    assert_memory_equal(at(soak, from, source, bytes), at(soak, to, target, bytes), bytes);
}

static struct requests check(struct soak *soak)
{
    struct requests requests = {0};
    uint64_t served = 0;
    for (uint32_t i = 0; i < FPGAS; i++) {
        const struct exanest_packetizer_counters *packetizer =
            &exanest_fabric_fpga(&soak->machine.fabric, i)->packetizer.counters;
        const struct exanest_firmware_counters *firmware = &soak->machine.r5s[i].firmware.counters;
        for (uint32_t k = 0; k < READS; k++) {
            const struct exanest_read *read = &soak->readers[i].reads[k];
            const struct exanest_write *write = &soak->readers[i].writes[k];
            assert_true(is_told(soak, i, read));
            expect_bytes(soak, read->owner, read->source, i, read->va, read->bytes);
            expect_bytes(soak, i, write->source, write->to, write->va, write->bytes);
        }
        requests.sent_again += packetizer->retransmissions;
        requests.given_back += packetizer->given_back;
        requests.duplicates += firmware->reads_duplicate;
        served += firmware->reads_done;
    }
    assert_int_equal(served, FPGAS * READS); /* No duplicate was served. */
    assert_true(exanest_machine_idle(&soak->machine));
    return requests;
}

/* The faults strike in front of all blocks, or of the one at this port. */
static void aim(struct soak *soak, struct sim_faults *none, uint32_t port)
{
    for (uint32_t i = 0; i < FPGAS; i++) {
        struct exanest_fpga *fpga = exanest_fabric_fpga(&soak->machine.fabric, i);
        for (uint32_t k = 0; k < EXANEST_PORTS_MAX; k++) {
            if (fpga->misuse[k] != NULL && port != EXANEST_PORTS_MAX && k != port) {
                fpga->misuse[k]->faults = none;
            }
        }
    }
}

static struct requests run_soak(const struct sim_faults *faults, uint32_t port, uint64_t seed,
                                bool absent)
{
    struct sim_faults none = {0};
    struct exanest_machine_config config = exanest_machine_default(2, 1, 1);
    config.process_bytes = BYTES;
    config.faults = *faults;
    config.firmware.sequences = EXANEST_CONTINUING;
    config.firmware.retries_max = 100;
    struct soak *soak = calloc(1, sizeof(*soak));
    assert_non_null(soak);
    sim_init(&soak->sim, seed);
    exanest_machine_open(&soak->machine, &config, &soak->sim);
    aim(soak, &none, port);
    begin(soak);
    if (absent) {
        take_pages(soak);
    }
    assert_true(exanest_machine_settle(&soak->machine, SECOND));
    const struct requests requests = check(soak);
    exanest_machine_close(&soak->machine);
    free(soak);
    return requests;
}

/* EXA-53. */
static void test_good_network(void **state)
{
    (void)state;
    const struct sim_faults none = {0};
    const struct requests requests = run_soak(&none, EXANEST_PORTS_MAX, 1, false);
    assert_int_equal(requests.sent_again, 0);
    assert_int_equal(requests.given_back, 0);
    assert_int_equal(requests.duplicates, 0);
}

/* EXA-55: a third of the packets to mailboxes is lost, requests and responses to blocks. */
static void test_lost_requests(void **state)
{
    (void)state;
    const struct sim_faults faults = {.millionths[SIM_FAULT_drop] = 333333};
    const struct requests requests = run_soak(&faults, EXANEST_PORT_RT_MAILBOX, 1, false);
    assert_true(requests.sent_again >= FPGAS * READS / 4);
    assert_int_equal(requests.duplicates, 0);
}

/* EXA-55: no acknowledgement of a request arrives. Notifications end the reads; those that take
 * longer than the packetizer waits are asked for again, and served once. */
static void test_lost_acknowledgements(void **state)
{
    (void)state;
    const struct sim_faults faults = {.millionths[SIM_FAULT_drop] = 1000000};
    const struct requests requests = run_soak(&faults, EXANEST_PORT_PACKETIZER, 1, false);
    assert_int_equal(requests.given_back, FPGAS * READS);
    assert_true(requests.duplicates > 0);
}

/* EXA-66, with reads. */
static void test_bad_network(void **state)
{
    (void)state;
    struct sim_faults faults = {0};
    uint64_t sent_again = 0, duplicates = 0;
    faults.millionths[SIM_FAULT_drop] = 10000;
    faults.millionths[SIM_FAULT_duplicate] = 10000;
    faults.millionths[SIM_FAULT_damage] = 10000;
    faults.millionths[SIM_FAULT_reorder] = 100000;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const struct requests requests = run_soak(&faults, EXANEST_PORTS_MAX, seed, false);
        sent_again += requests.sent_again;
        duplicates += requests.duplicates;
    }
    assert_true(sent_again > 0 && duplicates > 0);
}

/* EXA-52: of the owner's pages, and of the reader's. */
static void test_page_faults(void **state)
{
    (void)state;
    const struct sim_faults none = {0};
    (void)run_soak(&none, EXANEST_PORTS_MAX, 1, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_network),          cmocka_unit_test(test_lost_requests),
        cmocka_unit_test(test_lost_acknowledgements), cmocka_unit_test(test_bad_network),
        cmocka_unit_test(test_page_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
