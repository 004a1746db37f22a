/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sampler - the bandwidth sampling memory of the FORTH NIC.
 *
 * A host writes an interval and a number of samples. From the first DMA behind that on, every
 * interval keeps how many QWords have gone out and come in since, until the number is reached; the
 * host then reads them in halves, outgoing first.
 *
 * Source: TR376 3.1.4.2.
 */
#ifndef HARDWARE_FORTH_SAMPLER_H
#define HARDWARE_FORTH_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#define FORTH_SAMPLES_MAX 2048

struct forth_sample {
    uint32_t out, in; /* QWords since sampling began. */
};

struct forth_sampler {
    uint32_t interval; /* PCI cycles. */
    uint32_t wanted, taken;
    bool waiting; /* The sampler waits for the first DMA. */
    bool running;
    uint64_t next; /* The cycle of the next sample, while running. */
    uint32_t read; /* Halves read so far. */
    struct forth_sample samples[FORTH_SAMPLES_MAX];
};

/* The host writes the interval (0 counts as 1 cycle) and the count (at most FORTH_SAMPLES_MAX).
 * Writing the count arms the sampler and puts reading back to the start. */
void forth_sampler_set_interval(struct forth_sampler *sampler, uint32_t cycles);
void forth_sampler_set_count(struct forth_sampler *sampler, uint32_t samples);

/* A DMA transaction at PCI cycle `now`: the first one starts an armed sampler. */
void forth_sampler_dma(struct forth_sampler *sampler, uint64_t now);

/* The cycle at which the world takes the next sample; UINT64_MAX: none is due. */
uint64_t forth_sampler_due(const struct forth_sampler *sampler);
void forth_sampler_take(struct forth_sampler *sampler, struct forth_sample sample);

/* The data register: the next half. Behind the last sample it reads 0. */
uint32_t forth_sampler_read(struct forth_sampler *sampler);

/* MB/s, 2^20 bytes, of QWords in one interval of 10 ns cycles. */
double forth_sample_rate(uint32_t qwords, uint32_t interval);

#endif
