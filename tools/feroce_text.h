/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_text - numbers of command lines, and addresses of those about FERoCE, to and from text.
 *
 * IPv4 addresses are in host order. Nothing is changed where false is returned.
 */
#ifndef TOOLS_FEROCE_TEXT_H
#define TOOLS_FEROCE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal, or hexadecimal with 0x; the whole text. */
bool text_number(const char *text, uint64_t least, uint64_t most, uint64_t *value);
bool text_ip(const char *text, uint32_t *ip);
/* A or A:PORT; without a port `*port` stays. */
bool text_door(const char *text, uint32_t *ip, uint16_t *port);

#define TEXT_IP_BYTES 16
/* Returns `out`. */
const char *text_of_ip(uint32_t ip, char out[TEXT_IP_BYTES]);

#endif
