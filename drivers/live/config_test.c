/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each variable of the environment means what `nonic run` promises, or is refused with an
 *         error that names the variable, the value and the valid ones.
 * Method  A table of values for each variable, in an environment without other variables of nonic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/live/live.h"
#include "nic/routes.h"

#define REFUSED (-1)

static const char *const variables[] = {
    "NONIC_WIRE",  "NONIC_DEVICE", "NONIC_CAPTURE",   "NONIC_FAULT", "NONIC_STATS", "NONIC_BATCH",
    "NONIC_PATHS", "NONIC_STRICT", "NONIC_TRANSPORT", "NONIC_NIC",   "NONIC_CHECK", "NONIC_ODD"};

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        unsetenv(variables[i]);
    }
    return 0;
}

struct value {
    const char *text; /* NULL: the variable is not set. */
    int meaning;
};

static int wire_of(const struct live_config *config)
{
    return (int)config->wire;
}

static int nic_of(const struct live_config *config)
{
    return (int)config->nic;
}

static int transport_of(const struct live_config *config)
{
    return (int)config->transport;
}

static int batch_of(const struct live_config *config)
{
    return (int)config->batch;
}

static int paths_of(const struct live_config *config)
{
    return (int)config->paths;
}

static int stats_of(const struct live_config *config)
{
    return config->stats;
}

static int strict_of(const struct live_config *config)
{
    return config->strict;
}

/* The error of a value that is refused names the variable, and the value in quotation marks. */
static void expect(const char *name, const struct value *value,
                   int (*meaning)(const struct live_config *))
{
    char error[512] = "", quoted[64];
    struct live_config config;
    if (value->text == NULL) {
        unsetenv(name);
    } else {
        setenv(name, value->text, 1);
    }
    const bool good = live_config_from_environment(&config, error, sizeof(error));
    if (good != (value->meaning != REFUSED) || (good && meaning(&config) != value->meaning)) {
        fail_msg("%s='%s': %s", name, value->text == NULL ? "" : value->text, error);
    }
    snprintf(quoted, sizeof(quoted), "'%s'", value->text == NULL ? "" : value->text);
    if (!good && (strstr(error, name) == NULL || strstr(error, quoted) == NULL)) {
        fail_msg("%s: the error does not say which value: %s", name, error);
    }
    unsetenv(name);
}

static void test_words(void **state)
{
    (void)state;
    static const struct value wires[] = {
        {NULL, LIVE_WIRE_AUTO}, {"", LIVE_WIRE_AUTO},   {"auto", LIVE_WIRE_AUTO},
        {"udp", LIVE_WIRE_UDP}, {"shm", LIVE_WIRE_SHM}, {"UDP", REFUSED},
        {"udp ", REFUSED},      {"ud", REFUSED},        {"0", REFUSED}};
    static const struct value transports[] = {{NULL, NIC_TRANSPORT_AUTO},
                                              {"", NIC_TRANSPORT_AUTO},
                                              {"rc", NIC_TRANSPORT_RC},
                                              {"block", NIC_TRANSPORT_BLOCK},
                                              {"auto", NIC_TRANSPORT_AUTO},
                                              {"blocks", REFUSED},
                                              {"r", REFUSED}};
    static const struct value nics[] = {{NULL, LIVE_ROCE}, {"", LIVE_ROCE},  {"roce", LIVE_ROCE},
                                        {"efa", LIVE_EFA}, {"EFA", REFUSED}, {"efa ", REFUSED},
                                        {"srd", REFUSED},  {"1", REFUSED}};
    for (size_t i = 0; i < COUNT_OF(nics); i++) {
        expect("NONIC_NIC", &nics[i], nic_of);
    }
    for (size_t i = 0; i < COUNT_OF(wires); i++) {
        expect("NONIC_WIRE", &wires[i], wire_of);
    }
    for (size_t i = 0; i < COUNT_OF(transports); i++) {
        expect("NONIC_TRANSPORT", &transports[i], transport_of);
    }
}

static int maps_queues(const struct live_config *config)
{
    return config->map_queues;
}

/* An EFA device's alone. */
static void test_queues(void **state)
{
    (void)state;
    static const struct value roce[] = {{NULL, 0}, {"0", 0}, {"1", REFUSED}, {"yes", REFUSED}};
    static const struct value efa[] = {{NULL, 0}, {"0", 0}, {"1", 1}, {"2", REFUSED}};
    for (size_t i = 0; i < COUNT_OF(roce); i++) {
        expect("NONIC_MAP_QUEUES", &roce[i], maps_queues);
    }
    setenv("NONIC_NIC", "efa", 1);
    for (size_t i = 0; i < COUNT_OF(efa); i++) {
        expect("NONIC_MAP_QUEUES", &efa[i], maps_queues);
    }
    unsetenv("NONIC_NIC");
}

/* Only digits are a number. The last ones are too large for the type in which they are read. */
static void test_numbers(void **state)
{
    (void)state;
    static const struct value batches[] = {{NULL, 32},
                                           {"", 32},
                                           {"1", 1},
                                           {"256", 256},
                                           {"9", 9},
                                           {"032", 32},
                                           {"0", REFUSED},
                                           {"257", REFUSED},
                                           {"-1", REFUSED},
                                           {"1x", REFUSED},
                                           {"x", REFUSED},
                                           {" ", REFUSED},
                                           {"1 ", REFUSED},
                                           {" 1", REFUSED},
                                           {"+1", REFUSED},
                                           {"4294967297", REFUSED},
                                           {"18446744073709551617", REFUSED},
                                           {"-18446744073709551615", REFUSED}};
    static const struct value paths[] = {{NULL, 0},
                                         {"", 0},
                                         {"1", 1},
                                         {"16", NIC_ROUTES_MAX},
                                         {"0", REFUSED},
                                         {"17", REFUSED},
                                         {"-16", REFUSED},
                                         {"two", REFUSED},
                                         {"-18446744073709551614", REFUSED}};
    for (size_t i = 0; i < COUNT_OF(batches); i++) {
        expect("NONIC_BATCH", &batches[i], batch_of);
    }
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        expect("NONIC_PATHS", &paths[i], paths_of);
    }
}

static void test_switches(void **state)
{
    (void)state;
    static const struct value switches[] = {{NULL, false},    {"", false},     {"0", false},
                                            {"1", true},      {"00", REFUSED}, {"no", REFUSED},
                                            {"yes", REFUSED}, {" 1", REFUSED}, {"11", REFUSED}};
    for (size_t i = 0; i < COUNT_OF(switches); i++) {
        expect("NONIC_STATS", &switches[i], stats_of);
        expect("NONIC_STRICT", &switches[i], strict_of);
    }
}

static void test_texts(void **state)
{
    (void)state;
    char error[512];
    struct live_config config;
    setenv("NONIC_DEVICE", "eth0", 1);
    setenv("NONIC_CAPTURE", "", 1);
    assert_true(live_config_from_environment(&config, error, sizeof(error)));
    assert_string_equal(config.device, "eth0");
    assert_null(config.capture);
    assert_null(config.fault);
    setenv("NONIC_CAPTURE", "a.pcapng", 1);
    setenv("NONIC_DEVICE", "", 1);
    assert_true(live_config_from_environment(&config, error, sizeof(error)));
    assert_string_equal(config.capture, "a.pcapng");
    assert_null(config.device);
}

/* Faults are parsed here already, so that a mistake is told before the device is opened. */
static void test_faults_are_judged(void **state)
{
    (void)state;
    char error[512] = "";
    struct live_config config;
    setenv("NONIC_FAULT", "drop=0.5,seed=7", 1);
    assert_true(live_config_from_environment(&config, error, sizeof(error)));
    assert_string_equal(config.fault, "drop=0.5,seed=7");
    setenv("NONIC_FAULT", "drip=0.5", 1);
    assert_false(live_config_from_environment(&config, error, sizeof(error)));
    assert_non_null(strstr(error, "NONIC_FAULT"));
    assert_non_null(strstr(error, "drip"));
}

/* Modes that judge by RoCE's rules do not judge an EFA device; the error names both. */
static void test_efa_alone(void **state)
{
    (void)state;
    static const char *const others[][2] = {
        {"NONIC_STRICT", "1"}, {"NONIC_CHECK", "/a/file"}, {"NONIC_ODD", "1,late"}};
    char error[512];
    struct live_config config;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        setenv(others[i][0], others[i][1], 1);
        setenv("NONIC_NIC", "roce", 1);
        assert_true(live_config_from_environment(&config, error, sizeof(error)));
        setenv("NONIC_NIC", "efa", 1);
        assert_false(live_config_from_environment(&config, error, sizeof(error)));
        assert_non_null(strstr(error, others[i][0]));
        assert_non_null(strstr(error, "--nic efa"));
        unsetenv(others[i][0]);
    }
    setenv("NONIC_STRICT", "0", 1);
    assert_true(live_config_from_environment(&config, error, sizeof(error)));
    unsetenv("NONIC_NIC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queues),
        cmocka_unit_test_setup(test_words, setup),
        cmocka_unit_test_setup(test_numbers, setup),
        cmocka_unit_test_setup(test_switches, setup),
        cmocka_unit_test_setup(test_texts, setup),
        cmocka_unit_test_setup(test_faults_are_judged, setup),
        cmocka_unit_test_setup(test_efa_alone, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
