/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timing - the time codes of queue pair attributes and AETHs, in nanoseconds.
 */
#ifndef TRANSPORT_COMMON_TIMING_H
#define TRANSPORT_COMMON_TIMING_H

#include <stdint.h>

/* Retry counts of 7 mean "for ever" for RNR retries only (IBTA 9.9.2.1.3). */
#define RNR_RETRY_FOREVER 7

/* Transport timer: 4.096 us * 2^code; 0 switches the timer off: UINT64_MAX (IBTA 9.9.2.1.1). */
uint64_t ack_timeout_ns(uint8_t code);

/* RNR NAK timer field (IBTA 9.7.5.2.8, table 45): code 0 is the longest, 655.36 ms. */
uint64_t rnr_timer_ns(uint8_t code);

/* End-to-end credits as an AETH carries them (IBTA 9.7.7.2.1, table 46): the largest code whose
 * count does not exceed `receives`, and the count of a code (not for 31, "no limit"). */
uint8_t credits_encode(uint32_t receives);
uint32_t credits_decode(uint8_t code);

#endif
