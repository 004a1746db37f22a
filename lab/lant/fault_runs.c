/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fault_runs - see fault_runs.h.
 */
#include "lab/lant/fault_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/lant/fabric.h"

enum {
    PACKET_FLITS = 68,
    PACKET_BITS = 64 * PACKET_FLITS,
    HUNDRED = 100,
};

#define PS_PER_CYCLE  ((double)LANT_CYCLE_PS)
#define GBPS_PER_BYTE (8e3 / PS_PER_CYCLE) /* For one byte a cycle. */

const double lant_fault_rates[LANT_FAULT_RATES] = {0, 1e-7, 2e-7, 3.3e-7, 5e-7, 7e-7, 1e-6, 2e-6};
const uint32_t lant_fault_bytes[LANT_FAULT_SIZES] = {4096, 65536, 2097152};
const char *const lant_fault_size_names[LANT_FAULT_SIZES] = {"4K", "64K", "2M"};
const char *const lant_fault_mode_names[LANT_FAULT_MODES] = {"E2E", "LLV", "ECC"};
const char *const lant_fault_distribution_names[LANT_FAULT_DISTRIBUTIONS] = {"L", "R"};

/* -- A pair -------------------------------------------------------------------------------------*/

uint64_t lant_fault_full_threshold(double bit_error_rate)
{
    return lant_fault_threshold(bit_error_rate, PACKET_BITS);
}

struct lant_fault_pair_config lant_fault_pair_of(struct lab_run *run, enum lant_fault_mode mode)
{
    const struct lant_line line = {.frame_flits = lant_whole(run, "mac_frame"),
                                   .pause_flits = lant_whole(run, "mac_pause")};
    struct lant_fault_pair_config config = {
        .network = lant_fault_defaults(mode),
        .packet_ps = lant_line_ps(&line, PACKET_FLITS),
        .setup_cycles = lant_whole(run, "setup"),
        .rows = (uint16_t)lant_whole(run, "fault_rows"),
        .pipelined = lab_word(run, "service") == 1,
        .goes_back = lab_word(run, "resend") == 1,
    };
    const uint32_t check_cycles = lant_whole(run, "check");
    config.network.hop_cycles = lant_whole(run, "hop");
    config.network.check_cycles = mode == LANT_FAULT_E2E ? 0 : check_cycles;
    config.network.answers_are_safe = lab_word(run, "spoilt") == 1;
    config.network.checks_answers = lab_word(run, "checks") == 1;
    return config;
}

uint32_t lant_fault_packets(struct lab_run *run, enum lant_fault_mode mode, uint32_t bytes)
{
    const uint32_t packets = bytes / LANT_PAYLOAD_BYTES_MAX;
    const double more = lab_value(run, "code");
    return mode == LANT_FAULT_ECC ? (uint32_t)ceil(packets * (HUNDRED + more) / HUNDRED) : packets;
}

uint32_t lant_fault_seed(const struct lab_run *run, uint64_t number)
{
    struct prng prng;
    prng_init(&prng, run->seed * UINT64_C(0x9e3779b97f4a7c15) + number);
    const uint32_t seed = (uint32_t)prng_next(&prng);
    return seed == 0 ? 1 : seed;
}

/* -- Statistics ---------------------------------------------------------------------------------*/

static void add_message(struct lant_fault_statistics *statistics,
                        const struct lant_fault_message *message)
{
    const double cycles = (double)message->ps / PS_PER_CYCLE;
    const double before = cycles - statistics->mean;
    statistics->count++;
    statistics->mean += before / (double)statistics->count;
    statistics->squares += before * (cycles - statistics->mean);
    statistics->packets += message->packets;
    statistics->again += message->again;
}

static void add_all(struct lant_fault_statistics *sum, const struct lant_fault_statistics *other)
{
    const double count = (double)(sum->count + other->count);
    const double apart = other->mean - sum->mean;
    if (other->count == 0) {
        return;
    }
    sum->squares +=
        other->squares + apart * apart * (double)sum->count * (double)other->count / count;
    sum->mean += apart * (double)other->count / count;
    sum->count += other->count;
    sum->packets += other->packets;
    sum->again += other->again;
}

static double variance(const struct lant_fault_statistics *statistics)
{
    return statistics->count < 2 ? 0 : statistics->squares / (double)(statistics->count - 1);
}

double lant_fault_deviation(const struct lant_fault_statistics *statistics)
{
    return sqrt(variance(statistics));
}

double lant_fault_above(const struct lant_fault_statistics *a,
                        const struct lant_fault_statistics *b)
{
    const double square = variance(a) / (double)a->count + variance(b) / (double)b->count;
    return square == 0 ? 0 : (b->mean - a->mean) / sqrt(square);
}

double lant_fault_furthest(const double values[LANT_FAULT_SEEDS], double from)
{
    double value = values[0];
    for (uint32_t seed = 1; seed < LANT_FAULT_SEEDS; seed++) {
        value = fabs(values[seed] - from) > fabs(value - from) ? values[seed] : value;
    }
    return value;
}

double lant_fault_goodput(const struct lant_fault_statistics *statistics, uint32_t bytes)
{
    return GBPS_PER_BYTE * bytes / statistics->mean;
}

struct lant_fault_statistics lant_fault_measure(struct lab_run *run,
                                                const struct lant_fault_pair_config *config,
                                                uint32_t packets, uint32_t messages)
{
    struct lant_fault_statistics statistics = {0};
    const uint32_t share = (uint32_t)((uint64_t)messages * lant_whole(run, "messages") / HUNDRED);
    const uint32_t count = share < 2 ? 2 : share;
    struct lant_fault_pair *pair = calloc(1, sizeof(*pair));
    CHECK(pair != NULL);
    lant_fault_pair_open(pair, config);
    for (uint32_t i = 0; i < count; i++) {
        struct lant_fault_message message;
        if (!lant_fault_pair_send(pair, packets, &message)) {
            lab_fail(run, "a packet failed in each of %u attempts", LANT_RETRIES_MAX + 1);
            break;
        }
        add_message(&statistics, &message);
        lab_note(run, message.ps);
        lab_note(run, (uint64_t)message.packets << 32 ^ message.again);
    }
    lab_add_memory(run, "sender", 1, sizeof(pair->rdma));
    lab_add_memory(run, "network", 1, sizeof(pair->network));
    free(pair);
    return statistics;
}

/* -- The grid -----------------------------------------------------------------------------------*/

/* One place of the grid. */
struct place {
    enum lant_fault_size size;
    enum lant_fault_distribution distribution;
    enum lant_fault_mode mode;
    uint32_t rate;
};

static void measure_place(struct lab_run *run, struct lant_fault_grid *grid,
                          const struct place *place, uint32_t messages)
{
    struct lant_fault_statistics *cells =
        grid->cells[place->size][place->distribution][place->mode][place->rate];
    struct lant_fault_pair_config config = lant_fault_pair_of(run, place->mode);
    const uint32_t packets = lant_fault_packets(run, place->mode, lant_fault_bytes[place->size]);
    uint64_t number = place->size;
    number = number * LANT_FAULT_DISTRIBUTIONS + place->distribution;
    number = number * LANT_FAULT_MODES + place->mode;
    number = number * LANT_FAULT_RATES + place->rate;
    if (place->distribution == LANT_FAULT_REMOTE) {
        lant_fault_remote(&config.network);
    } else {
        lant_fault_local(&config.network);
    }
    config.network.threshold = lant_fault_full_threshold(lant_fault_rates[place->rate]);
    cells[LANT_FAULT_ALL_SEEDS] = (struct lant_fault_statistics){0};
    for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
        config.network.seed = lant_fault_seed(run, number * LANT_FAULT_SEEDS + seed);
        cells[seed] = lant_fault_measure(run, &config, packets, messages);
        add_all(&cells[LANT_FAULT_ALL_SEEDS], &cells[seed]);
    }
}

static void measure_mode(struct lab_run *run, struct lant_fault_grid *grid, struct place place,
                         uint32_t messages)
{
    for (place.rate = 0; place.rate < LANT_FAULT_RATES; place.rate++) {
        if (place.rate == 0 || place.mode != LANT_FAULT_ECC) {
            measure_place(run, grid, &place, messages);
        } else {
            struct lant_fault_statistics(*rates)[LANT_FAULT_SEEDS + 1] =
                grid->cells[place.size][place.distribution][place.mode];
            memcpy(rates[place.rate], rates[0], sizeof(rates[0]));
        }
    }
}

void lant_fault_grid_run(struct lab_run *run, struct lant_fault_grid *grid,
                         const struct lant_fault_plan *plan)
{
    const uint32_t lines = (uint32_t)LANT_FAULT_SIZES * LANT_FAULT_DISTRIBUTIONS * LANT_FAULT_MODES;
    memset(grid, 0, sizeof(*grid));
    for (uint32_t line = 0; line < lines && run->failure[0] == '\0'; line++) {
        const uint32_t mode = line % LANT_FAULT_MODES, rest = line / LANT_FAULT_MODES;
        const struct place place = {
            .size = (enum lant_fault_size)(rest / LANT_FAULT_DISTRIBUTIONS),
            .distribution = (enum lant_fault_distribution)(rest % LANT_FAULT_DISTRIBUTIONS),
            .mode = (enum lant_fault_mode)mode};
        if (plan->messages[place.size] != 0 && !(plan->without_llv && mode == LANT_FAULT_LLV)) {
            measure_mode(run, grid, place, plan->messages[place.size]);
        }
        lab_progress(run, (line + 1.0) / lines);
    }
}

/* -- Values of the grid -------------------------------------------------------------------------*/

double lant_fault_crossing(const struct lant_fault_grid *grid, enum lant_fault_size size,
                           enum lant_fault_distribution distribution, uint32_t seed)
{
    double before = 0;
    for (uint32_t rate = 0; rate < LANT_FAULT_RATES; rate++) {
        const double e2e = grid->cells[size][distribution][LANT_FAULT_E2E][rate][seed].mean;
        const double ecc = grid->cells[size][distribution][LANT_FAULT_ECC][rate][seed].mean;
        const double ahead = e2e - ecc;
        if (ahead > 0) {
            const double from = rate == 0 ? 0 : lant_fault_rates[rate - 1];
            const double share = rate == 0 ? 0 : before / (before - ahead);
            return from + share * (lant_fault_rates[rate] - from);
        }
        before = ahead;
    }
    return lant_fault_rates[LANT_FAULT_RATES - 1];
}

void lant_fault_draw(struct lab_run *run, const struct lant_fault_grid *grid,
                     const struct lant_fault_plan *plan, enum lant_fault_size size,
                     enum lant_fault_distribution distribution, lant_fault_value value,
                     lant_fault_expected expected)
{
    for (uint32_t mode = 0; mode < LANT_FAULT_MODES; mode++) {
        if (plan->without_llv && mode == LANT_FAULT_LLV) {
            continue;
        }
        struct lab_series *series =
            lab_add_curve(run, "%s %s, %s", lant_fault_size_names[size],
                          lant_fault_distribution_names[distribution], lant_fault_mode_names[mode]);
        for (uint32_t rate = 0; rate < LANT_FAULT_RATES; rate++) {
            const double at = lant_fault_rates[rate];
            const struct lant_fault_statistics *all =
                &grid->cells[size][distribution][mode][rate][LANT_FAULT_ALL_SEEDS];
            const double other = expected == NULL
                                     ? LAB_NOTHING
                                     : expected(size, distribution, (enum lant_fault_mode)mode, at);
            lab_add_point(series, at, value(all, lant_fault_bytes[size]), other);
        }
    }
}
