/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/fake_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drivers/live/live.h"
#include "drivers/services/services.h"
#include "drivers/share.h"
#include "drivers/system/local_socket.h"

#define CLAIMS    32
#define QUESTIONS 64

static struct {
    struct input *input;
    struct instant now;
    bool running;
    void *claims[CLAIMS];
    void *questions[QUESTIONS];
} world;

static struct input nothing;

void fake_world_begin(struct input *input)
{
    memset(&world, 0, sizeof(world));
    world.input = input;
    world.now.ns = UINT64_C(3600000) * FAKE_MS;
    world.running = true;
}

void fake_world_end(void)
{
    world.running = false;
}

void fake_world_calm(void)
{
    world.input = &nothing;
}

void fake_world_pass(uint64_t ns)
{
    world.now.ns += ns;
}

static uint32_t count_of(void *const *things, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < room; i++) {
        count += things[i] != NULL;
    }
    return count;
}

uint32_t fake_world_claims(void)
{
    return count_of(world.claims, CLAIMS);
}

uint32_t fake_world_questions(void)
{
    return count_of(world.questions, QUESTIONS);
}

/* -- Functions that the linker replaces ---------------------------------------------------------*/

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
bool __wrap_live_is_out_of_reach(struct live *live, const struct gid *peer, uint32_t slot);
bool __wrap_address_is_local(const uint8_t ip[16]);
bool __wrap_address_towards(const uint8_t to[16], uint32_t scope, uint8_t from[16]);
bool __wrap_address_leads(const uint8_t from[16], const uint8_t to[16]);
uint32_t __wrap_address_interface_bytes(const uint8_t ip[16]);
int __wrap_services_claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                          bool ipv6_only, uint16_t port, uint16_t *chosen,
                          struct service **service);
int __wrap_services_offer(struct services *services, struct service *service);
void __wrap_services_release(struct service *service);
enum service_answer __wrap_services_find(struct services *services, uint16_t port_space,
                                         const uint8_t address[16], uint16_t port,
                                         struct instant now, void *context);
enum service_answer __wrap_services_await(struct services *services, uint16_t port_space,
                                          const uint8_t address[16], uint16_t port,
                                          struct instant now, void *context);
void __wrap_services_forget(struct services *services, const void *context);
bool __wrap_services_next_answer(struct services *services, void **context, bool *found,
                                 struct service_owner *owner);
struct instant __wrap_services_deadline(const struct services *services);
void __wrap_services_on_time(struct services *services, struct instant now);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!world.running) {
        return __real_clock_gettime(clock, time);
    }
    *time = (struct timespec){.tv_sec = (time_t)(world.now.ns / (1000 * FAKE_MS)),
                              .tv_nsec = (long)(world.now.ns % (1000 * FAKE_MS))};
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    (void)flags;
    memset(bytes, 0, count);
    take_bytes(world.input, bytes, count);
    return (ssize_t)count;
}

bool __wrap_live_is_out_of_reach(struct live *live, const struct gid *peer, uint32_t slot)
{
    (void)live;
    (void)peer;
    CHECK(slot < SHARE_SLOTS);
    return take(world.input) % 8 == 1;
}

bool __wrap_address_is_local(const uint8_t ip[16])
{
    return ip[12] == 127 || ip[0] == 0xfd;
}

bool __wrap_address_leads(const uint8_t from[16], const uint8_t to[16])
{
    return from[15] == to[15];
}

uint32_t __wrap_address_interface_bytes(const uint8_t ip[16])
{
    return ip[15] == 7 ? 1500 : 0;
}

bool __wrap_address_towards(const uint8_t to[16], uint32_t scope, uint8_t from[16])
{
    (void)scope;
    memcpy(from, to, 16);
    from[15] = 1;
    return to[15] != 9;
}

int __wrap_services_claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                          bool ipv6_only, uint16_t port, uint16_t *chosen, struct service **service)
{
    (void)services;
    (void)port_space;
    (void)address;
    (void)ipv6_only;
    if (take(world.input) % 8 == 1) {
        return EADDRINUSE;
    }
    *chosen = port != 0 ? port : 50000;
    for (int i = 0; i < CLAIMS; i++) {
        if (world.claims[i] == NULL) {
            world.claims[i] = malloc(1);
            CHECK(world.claims[i] != NULL);
            *service = world.claims[i];
            return 0;
        }
    }
    return EMFILE;
}

static void **claim_of(const struct service *service)
{
    for (int i = 0; i < CLAIMS; i++) {
        if (world.claims[i] == service && service != NULL) {
            return &world.claims[i];
        }
    }
    UNREACHABLE("a claim that was given back, or never made");
}

int __wrap_services_offer(struct services *services, struct service *service)
{
    (void)services;
    (void)claim_of(service);
    return take(world.input) % 8 == 1 ? ENOMEM : 0;
}

void __wrap_services_release(struct service *service)
{
    free(service);
    *claim_of(service) = NULL;
}

static enum service_answer put(void *context)
{
    if (take(world.input) % 4 == 1) {
        return SERVICE_NOBODY;
    }
    for (int i = 0; i < QUESTIONS; i++) {
        CHECK(world.questions[i] != context);
        if (world.questions[i] == NULL) {
            world.questions[i] = context;
            return SERVICE_ASKED;
        }
    }
    return SERVICE_NOBODY;
}

enum service_answer __wrap_services_find(struct services *services, uint16_t port_space,
                                         const uint8_t address[16], uint16_t port,
                                         struct instant now, void *context)
{
    (void)services;
    (void)port_space;
    (void)address;
    (void)port;
    (void)now;
    return put(context);
}

enum service_answer __wrap_services_await(struct services *services, uint16_t port_space,
                                          const uint8_t address[16], uint16_t port,
                                          struct instant now, void *context)
{
    (void)services;
    (void)port_space;
    (void)address;
    (void)port;
    (void)now;
    return put(context);
}

void __wrap_services_forget(struct services *services, const void *context)
{
    (void)services;
    for (int i = 0; i < QUESTIONS; i++) {
        world.questions[i] = world.questions[i] == context ? NULL : world.questions[i];
    }
}

/* The answers name any owner, by chance. */
bool __wrap_services_next_answer(struct services *services, void **context, bool *found,
                                 struct service_owner *owner)
{
    (void)services;
    for (int i = 0; i < QUESTIONS; i++) {
        if (world.questions[i] != NULL && take(world.input) % 4 != 0) {
            const uint8_t choice = take(world.input);
            *context = world.questions[i];
            *found = choice & 1;
            *owner = (struct service_owner){.slot = choice & 2 ? LOCAL_NO_SLOT : choice};
            owner->gid.bytes[10] = owner->gid.bytes[11] = 0xff;
            owner->gid.bytes[12] = 127;
            owner->gid.bytes[15] = choice >> 4;
            world.questions[i] = NULL;
            return true;
        }
    }
    return false;
}

struct instant __wrap_services_deadline(const struct services *services)
{
    (void)services;
    return INSTANT_NEVER;
}

void __wrap_services_on_time(struct services *services, struct instant now)
{
    (void)services;
    (void)now;
}
