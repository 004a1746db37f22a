/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/sampler.h"

void forth_sampler_set_interval(struct forth_sampler *sampler, uint32_t cycles)
{
    sampler->interval = cycles == 0 ? 1 : cycles;
}

void forth_sampler_set_count(struct forth_sampler *sampler, uint32_t samples)
{
    sampler->wanted = samples < FORTH_SAMPLES_MAX ? samples : FORTH_SAMPLES_MAX;
    sampler->taken = 0;
    sampler->read = 0;
    sampler->waiting = samples > 0;
    sampler->running = false;
}

void forth_sampler_dma(struct forth_sampler *sampler, uint64_t now)
{
    if (!sampler->waiting) {
        return;
    }
    sampler->waiting = false;
    sampler->running = true;
    sampler->next = now + (sampler->interval == 0 ? 1 : sampler->interval);
}

uint64_t forth_sampler_due(const struct forth_sampler *sampler)
{
    return sampler->running ? sampler->next : UINT64_MAX;
}

void forth_sampler_take(struct forth_sampler *sampler, struct forth_sample sample)
{
    CHECK(sampler->running && sampler->taken < sampler->wanted);
    sampler->samples[sampler->taken++] = sample;
    sampler->next += sampler->interval == 0 ? 1 : sampler->interval;
    sampler->running = sampler->taken < sampler->wanted;
}

uint32_t forth_sampler_read(struct forth_sampler *sampler)
{
    const uint32_t at = sampler->read / 2;
    if (at >= sampler->taken) {
        return 0;
    }
    const struct forth_sample *sample = &sampler->samples[at];
    return sampler->read++ % 2 == 0 ? sample->out : sample->in;
}

double forth_sample_rate(uint32_t qwords, uint32_t interval)
{
    CHECK(interval > 0);
    return qwords * 8.0 / (interval * 1e-8) / (1 << 20);
}
