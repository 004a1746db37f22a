/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/feroce_text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool text_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end = NULL;
    const bool is_hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (!isdigit((unsigned char)text[0])) {
        return false; /* strtoull takes spaces and signs. */
    }
    errno = 0;
    const unsigned long long number = strtoull(text, &end, is_hexadecimal ? 16 : 10);
    if (errno != 0 || *end != '\0' || number < least || number > most) {
        return false;
    }
    *value = number;
    return true;
}

bool text_ip(const char *text, uint32_t *ip)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1) {
        return false;
    }
    *ip = ntohl(address.s_addr);
    return true;
}

bool text_door(const char *text, uint32_t *ip, uint16_t *port)
{
    char address[TEXT_IP_BYTES];
    const char *colon = strchr(text, ':');
    const size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    uint64_t number = 0;
    if (length >= sizeof(address) ||
        (colon != NULL && !text_number(colon + 1, 1, UINT16_MAX, &number))) {
        return false;
    }
    memcpy(address, text, length);
    address[length] = '\0';
    if (!text_ip(address, ip)) {
        return false;
    }
    *port = colon == NULL ? *port : (uint16_t)number;
    return true;
}

const char *text_of_ip(uint32_t ip, char out[TEXT_IP_BYTES])
{
    const struct in_addr address = {htonl(ip)};
    inet_ntop(AF_INET, &address, out, TEXT_IP_BYTES);
    return out;
}
