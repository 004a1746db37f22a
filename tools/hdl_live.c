/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl live - a design on the real network: its clock runs as fast as it can, and waits for
 * answers.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "drivers/design/design_live.h"
#include "drivers/design/design_tap.h"
#include "drivers/system/clock.h"
#include "sim/capture.h"
#include "sim/parts/design.h"
#include "tools/hdl.h"
#include "tools/hdl_connect.h"
#include "tools/hdl_design.h"
#include "tools/hdl_faults.h"
#include "tools/nonic.h"
#include "wire/feroce.h"
#include "wire/pause.h"
#include "wire/roce.h"

#define LOOK_EDGES   64 /* The sockets are looked at this often. */
#define PORTS_MAX    64
#define ICRCS_TOLD   8
#define ALWAYS_PORTS 2 /* That receive without --port. */
#define NS_PER_MS    1000000u

static const char help[] =
    "usage: nonic hdl live DESIGN.so --address A.B.C.D|--tap NAME [OPTION]...\n\n"
    "A design on the network of this machine, through UDP sockets, without privileges: its frames\n"
    "leave as datagrams, and datagrams for its address reach port 0 of it as frames. Its clock "
    "runs\n"
    "as fast as it can, and stands still while an answer is owed to the design, so that its "
    "timers\n"
    "do not run out because a computer is slow. Ends with $finish, --for or a signal.\n\n"
    "  --address A.B.C.D      of the design; one that this machine can bind\n"
    "  --tap NAME             instead: all frames pass as they are, by a TAP device of this name, "
    "which\n"
    "                         needs CAP_NET_ADMIN (`unshare -rn`) or is there and this user's\n"
    "  --port N               a UDP port that receives, beside 4791 and 0x4321 and those that the\n"
    "                         design has sent from; may be repeated\n"
    "  --hold H,G             the clock waits up to G when nothing came for H since a frame left, "
    "or "
    "when\n"
    "                         nothing passed for H (5us,50ms); off: it never waits\n"
    "  --period NS            of clk, in ns (6.4)\n"
    "  --period2 NS           of clk2, if the design has one\n"
    "  --rate GBPS            of the line, in Gb/s (10); 0: the line takes no time\n"
    "  --cut-through          beats come while their frame still arrives, at the line's rate\n"
    "  --seed N               of registers without reset (1)\n"
    "  --ready P, --gap P     probabilities: tready in a cycle (1), a gap between two beats (0)\n"
    "  --fault SPEC           a bad network, as nonic run --fault says it; and badfcs=P, "
    "truncate=P,\n"
    "                         reset=P and reset=TIME, as for replay\n"
    "  --connect WORDS|FILE   the peer of the design's nonic_qp: \"ip=127.0.0.1 qpn=0x11 psn=0\n"
    "                         address=0 rkey=0\", or a file in which such a line is or will be\n"
    "  --pingpong PORT        its peers are ibv_rc_pingpong programs, which ask at this TCP port\n"
    "  --cm PORT              its peers are librdmacm programs, which connect to this port\n"
    "  --pmtu BYTES           of --connect and --pingpong (1024)\n"
    "  --for SECONDS          ends after this time\n"
    "  --capture FILE.pcapng  the design's frames, both ways, with its own time\n" HDL_TRACE_HELP
    "  --strict               status 1 if the design breaks a rule of its stream, or has sent a "
    "wrong\n"
    "                         ICRC\n";

struct wishes {
    const char *address, *tap, *capture;
    char network[256]; /* Faults of it; "": none. */
    struct sim_design_fault_rates hardware;
    struct hdl_wishes plain;
    struct in_addr ip;
    uint16_t ports[PORTS_MAX];
    uint32_t port_count;
    double seconds;
    uint64_t hold_ps;
    uint32_t grant_ms;
    struct hdl_connect_wishes connect;
};

struct live {
    struct sim sim;
    struct sim_design design;
    struct design_live net; /* Port 0 has it. */
    bool connects;
    struct hdl_connect connect;
    struct sim_capture *capture;
    uint64_t elsewhere; /* Frames of other ports. */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* `name` is the wave that shows the packet's number. */
static void capture(struct live *live, const struct hdl_frame *frame, const char *name,
                    uint64_t number)
{
    if (live->capture != NULL) {
        char comment[64];
        snprintf(comment, sizeof(comment), "port 0, %s %" PRIu64 ", edge %" PRIu64, name, number,
                 live->design.edges);
        sim_capture_commented(live->capture, frame->at_ps, frame->data, frame->bytes, comment);
    }
}

/* -- Frames -------------------------------------------------------------------------------------*/

/* A pause is the MAC's, and has no number. */
static bool give(struct design_live *net, const struct hdl_frame *frame)
{
    struct live *live = CONTAINER_OF(net, struct live, net);
    struct pause pause;
    struct hdl_frame struck = *frame;
    sim_design_strike(&live->design, 0, &struck);
    if (!sim_design_push(&live->design, 0, &struck)) {
        return false;
    }
    const bool passes = !pause_decode(frame->data, frame->bytes, &pause);
    capture(live, frame, "rx_packet", passes ? net->given + 1 : 0);
    return passes;
}

static bool takes(struct design_live *net, const struct inet_datagram *datagram)
{
    struct live *live = CONTAINER_OF(net, struct live, net);
    return live->connects && hdl_connect_takes(&live->connect, datagram, clock_now());
}

static void tell_icrc(const struct live *live)
{
    const struct bridge *bridge = &live->net.bridge;
    if (bridge->counts[BRIDGE_ICRC] <= ICRCS_TOLD) {
        printf("frame %" PRIu64 " at %.4f us: ICRC %08" PRIx32 ", expected %08" PRIx32 "\n",
               live->net.taken, (double)live->sim.now_ps / PS_PER_US, bridge->icrc.found,
               bridge->icrc.expected);
    }
}

static void on_frame(struct sim_design *design, uint32_t port, const struct hdl_frame *frame)
{
    struct live *live = CONTAINER_OF(design, struct live, design);
    if (port != 0) {
        live->elsewhere++;
        return;
    }
    capture(live, frame, "tx_packet", hdl_port_counters(live->net.line)->sent_frames);
    if (design_live_leave(&live->net, frame, live->sim.now_ps) == BRIDGE_ICRC) {
        tell_icrc(live);
    }
}

/* -- The loop -----------------------------------------------------------------------------------*/

static void send_of_connect(struct live *live)
{
    struct inet_datagram datagram;
    while (hdl_connect_next(&live->connect, &datagram)) {
        design_port_send(live->net.port, &datagram, sim_instant(&live->sim));
    }
}

static void run(struct live *live, const struct wishes *wishes)
{
    struct instant *end = &live->net.config.end;
    *end = wishes->seconds > 0 ? instant_after(clock_now(), (uint64_t)(wishes->seconds * 1e9))
                               : INSTANT_NEVER;
    while (!interrupted && sim_step(&live->sim)) {
        (void)design_live_turn(&live->net, live->sim.now_ps);
        if (live->design.edges % LOOK_EDGES != 0) {
            continue;
        }
        if (live->connects) {
            hdl_connect_turn(&live->connect, clock_now());
            send_of_connect(live);
        }
        if (instant_reached(clock_now(), *end)) {
            return;
        }
    }
}

/* -- The end ------------------------------------------------------------------------------------*/

static void print_port(const struct design_live *net)
{
    const struct design_port_counters *port = design_port_counters(net->port);
    const char *what = net->whole ? "frames" : "datagrams";
    if (port->refused > 0) {
        printf("%" PRIu64 " %s did not leave, the last one", port->refused, what);
        if (!net->whole) {
            printf(" from port %u", port->refused_port);
        }
        printf(": %s\n", strerror(port->refused_why));
    }
    if (port->gone) {
        printf("the TAP device was deleted\n");
    }
    if (port->lost > 0) {
        printf("%" PRIu64 " %s were lost: the design takes them too slowly\n", port->lost, what);
    }
    if (port->dropped_out + port->dropped_in + port->held_out + port->held_in > 0) {
        printf("faults: %" PRIu64 " %s dropped on their way out, %" PRIu64
               " on their way in; %" PRIu64 " and %" PRIu64 " held\n",
               port->dropped_out, what, port->dropped_in, port->held_out, port->held_in);
    }
}

static int conclude(struct live *live, const struct wishes *wishes)
{
    char error[160];
    const struct design_live *net = &live->net;
    const struct bridge *bridge = &net->bridge;
    const uint64_t *counts = bridge->counts;
    const uint64_t broken = hdl_print_violations(&live->design, &wishes->plain);
    printf("%" PRIu64 " frames in, %" PRIu64 " out; %" PRIu64 " edges, %.3f us; %" PRIu64
           " rules broken\n",
           net->given, net->taken, live->design.edges, (double)live->sim.now_ps / PS_PER_US,
           broken);
    printf("ICRCs: %" PRIu64 " right and %" PRIu64 " wrong of the design, %" PRIu64
           " right and %" PRIu64 " wrong of peers\n",
           bridge->roce_left, counts[BRIDGE_ICRC], bridge->roce_came, counts[BRIDGE_CAME_ICRC]);
    if (live->design.error[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", live->design.error);
        return 1;
    }
    if (!net->whole) {
        hdl_print_dropped(bridge);
    } else if (counts[BRIDGE_CAME_LONG] > 0) {
        printf("%" PRIu64 " frames of more than %u bytes were dropped\n", counts[BRIDGE_CAME_LONG],
               HDL_FRAME_BYTES_MAX);
    }
    print_port(net);
    const uint64_t refused = hdl_port_counters(net->line)->refused;
    if (refused > 0) {
        printf("%" PRIu64 " frames did not reach the design: it takes them too slowly\n", refused);
    }
    if (bridge->trailing > 0) {
        printf("%" PRIu64 " frames have bytes behind the IPv4 packet\n", bridge->trailing);
    }
    if (live->elsewhere > 0) {
        printf("%" PRIu64
               " frames left by another port than port 0, which alone is on the network\n",
               live->elsewhere);
    }
    hdl_print_faults("the design", &live->design);
    printf("the clock was held %" PRIu64 " times, %.3f s\n", net->sleeps,
           (double)net->slept_ns / 1e9);
    if (live->capture != NULL && !sim_capture_close(live->capture, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return 1;
    }
    return wishes->plain.strict && (broken > 0 || counts[BRIDGE_ICRC] > 0);
}

/* -- The beginning ------------------------------------------------------------------------------*/

static bool open_design(struct live *live, const struct hdl_model_ops *ops,
                        const struct wishes *wishes)
{
    struct sim_design_config config = hdl_config(ops, &wishes->plain);
    config.port.paused_by = 1u << HDL_LINK;
    config.faults = wishes->hardware;
    config.on_frame = on_frame;
    if (!hdl_open(&live->design, &live->sim, &config, &wishes->plain)) {
        return false;
    }
    live->net.line = live->design.ports[0];
    live->connects = hdl_connect_wanted(&wishes->connect);
    if (!live->connects) {
        return true;
    }
    if ((live->design.pair_numbers & 1) == 0) {
        fprintf(stderr, "nonic: %s has no nonic_qp of number 0 to connect\n", ops->name);
        return false;
    }
    live->design.pairs[0].local.ip = ntohl(wishes->ip.s_addr);
    return hdl_connect_open(&live->connect, &live->design.pairs[0], &wishes->connect);
}

static bool open_net(struct live *live, const struct wishes *wishes)
{
    char error[256];
    const double period_ps = wishes->plain.period_ns * PS_PER_NS;
    const struct design_port_config port = {.tap = wishes->tap,
                                            .ip = ntohl(wishes->ip.s_addr),
                                            .ports = wishes->ports,
                                            .port_count = wishes->port_count,
                                            .fault = wishes->network[0] != '\0' ? wishes->network
                                                                                : NULL};
    const struct design_live_config config = {
        .hold_ps = wishes->hold_ps,
        .grant_ms = wishes->grant_ms,
        .look_ps = (uint64_t)(LOOK_EDGES * period_ps),
        .reset_ps = (uint64_t)(2 * SIM_DESIGN_RESET_EDGES * period_ps),
        .give = give,
        .takes = takes};
    bool good = design_live_open(&live->net, &config, &port, error, sizeof(error));
    if (good && wishes->capture != NULL) {
        live->capture =
            sim_capture_open(wishes->capture, PCAPNG_LINK_ETHERNET, error, sizeof(error));
        good = live->capture != NULL;
    }
    if (!good) {
        fprintf(stderr, "nonic: %s\n", error);
    }
    return good;
}

static void announce(const struct wishes *wishes, const char *name)
{
    if (wishes->tap != NULL) {
        printf("%s at the TAP device %s", name, wishes->tap);
    } else {
        printf("%s at %s, UDP ports", name, wishes->address);
    }
    for (uint32_t i = 0; i < wishes->port_count; i++) {
        printf(wishes->ports[i] == FEROCE_PORT_CM ? " 0x%x" : " %u", wishes->ports[i]);
    }
    printf("\n");
    fflush(stdout);
}

static int live_with(const struct wishes *wishes, const char *path)
{
    static struct live live;
    const struct hdl_model_ops *ops = hdl_load(path);
    struct sigaction action = {.sa_handler = on_signal};
    if (ops == NULL || !open_net(&live, wishes)) {
        return 1;
    }
    sim_init(&live.sim, (uint64_t)wishes->plain.seed);
    if (!open_design(&live, ops, wishes)) {
        return 1;
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    announce(wishes, ops->name);
    run(&live, wishes);
    if (live.connects) {
        hdl_connect_close(&live.connect, clock_now());
        send_of_connect(&live);
    }
    const int status = conclude(&live, wishes);
    sim_design_close(&live.design);
    design_live_close(&live.net);
    return status;
}

/* -- The command line ---------------------------------------------------------------------------*/

static bool read_time(const char *text, const char **end, double *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *behind;
    *ns = strtod(text, &behind);
    for (size_t i = 0; i < COUNT_OF(units) && behind != text; i++) {
        const size_t length = strlen(units[i].unit);
        if (strncmp(behind, units[i].unit, length) == 0 &&
            (behind[length] == '\0' || behind[length] == ',')) {
            *ns *= units[i].ns;
            *end = behind + length;
            return *ns > 0;
        }
    }
    return false;
}

static bool read_hold(const char *text, struct wishes *wishes)
{
    double after_ns, grant_ns;
    const char *end = text;
    if (strcmp(text, "off") == 0) {
        wishes->hold_ps = HOLD_OFF;
        return true;
    }
    if (!read_time(text, &end, &after_ns) || *end != ',' || after_ns > 1e12 ||
        !read_time(end + 1, &end, &grant_ns) || *end != '\0' || grant_ns < 1e6 || grant_ns > 60e9) {
        fprintf(stderr,
                "nonic: --hold takes two times such as 5us,50ms (the second one from 1ms to 60s), "
                "or off, not '%s'\n",
                text);
        return false;
    }
    wishes->hold_ps = (uint64_t)(after_ns * PS_PER_NS);
    wishes->grant_ms = (uint32_t)(grant_ns / NS_PER_MS);
    return true;
}

static bool read_port(const char *option, const char *text, uint16_t *port)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > UINT16_MAX) {
        fprintf(stderr, "nonic: --%s takes a port, 1 to 65535, not '%s'\n", option, text);
        return false;
    }
    *port = (uint16_t)number;
    return true;
}

static bool add_port(const char *text, struct wishes *wishes)
{
    if (wishes->port_count == PORTS_MAX) {
        fprintf(stderr, "nonic: --port may be given %d times\n", PORTS_MAX - ALWAYS_PORTS);
        return false;
    }
    return read_port("port", text, &wishes->ports[wishes->port_count++]);
}

static bool read_pmtu(const char *text, struct hdl_connect_wishes *wishes)
{
    char *end;
    const unsigned long bytes = strtoul(text, &end, 10);
    if (*end != '\0' || bytes < 256 || bytes > 4096 || (bytes & (bytes - 1)) != 0) {
        fprintf(stderr, "nonic: --pmtu is 256, 512, 1024, 2048 or 4096, not '%s'\n", text);
        return false;
    }
    wishes->pmtu = (uint32_t)bytes;
    return true;
}

static bool read_option(int option, struct wishes *wishes)
{
    switch (option) {
    case 'a':
        wishes->address = optarg;
        if (inet_pton(AF_INET, optarg, &wishes->ip) == 1 && wishes->ip.s_addr != 0) {
            return true;
        }
        fprintf(stderr, "nonic: --address takes an IPv4 address of this machine, not '%s'\n",
                optarg);
        return false;
    case 't':
        wishes->tap = optarg;
        if (design_tap_is_name(optarg)) {
            return true;
        }
        fprintf(stderr, "nonic: --tap takes the name of an interface, 1 to %d letters, not '%s'\n",
                DESIGN_TAP_NAME_BYTES - 1, optarg);
        return false;
    case 'P': return add_port(optarg, wishes);
    case 'C': wishes->connect.words = optarg; return true;
    case 'p': return read_port("pingpong", optarg, &wishes->connect.pingpong_port);
    case 'm': return read_port("cm", optarg, &wishes->connect.cm_port);
    case 'u': return read_pmtu(optarg, &wishes->connect);
    case 'H': return read_hold(optarg, wishes);
    case 'F': return hdl_read_number("for", optarg, 0.001, 1e9, &wishes->seconds);
    case 'f':
        return hdl_split_faults(optarg, &wishes->hardware, wishes->network,
                                sizeof(wishes->network));
    case 'c': wishes->capture = optarg; return true;
    default: return hdl_read_option(&wishes->plain, option, optarg, help);
    }
}

int hdl_live(int argc, char **argv)
{
    static const struct option options[] = {
        {"address", required_argument, NULL, 'a'},  {"tap", required_argument, NULL, 't'},
        {"port", required_argument, NULL, 'P'},     {"hold", required_argument, NULL, 'H'},
        {"fault", required_argument, NULL, 'f'},    {"for", required_argument, NULL, 'F'},
        {"capture", required_argument, NULL, 'c'},  {"connect", required_argument, NULL, 'C'},
        {"pingpong", required_argument, NULL, 'p'}, {"cm", required_argument, NULL, 'm'},
        {"pmtu", required_argument, NULL, 'u'},     HDL_OPTIONS};
    struct wishes wishes = {.plain = hdl_plain_wishes,
                            .ports = {ROCE_UDP_PORT, FEROCE_PORT_CM},
                            .port_count = ALWAYS_PORTS,
                            .hold_ps = 5000000,
                            .grant_ms = 50,
                            .connect = {.pmtu = 1024}};
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            printf("%s", help);
            return 0;
        }
        if (!read_option(option, &wishes)) {
            return EXIT_USAGE;
        }
    }
    if (argc - optind != 1 || (wishes.address == NULL) == (wishes.tap == NULL)) {
        fprintf(stderr, "nonic: a design and either --address or --tap are needed\n%s", help);
        return EXIT_USAGE;
    }
    if ((wishes.connect.words != NULL) + (wishes.connect.pingpong_port != 0) +
            (wishes.connect.cm_port != 0) >
        1) {
        fprintf(stderr, "nonic: --connect, --pingpong or --cm, one of them\n");
        return EXIT_USAGE;
    }
    if (wishes.tap != NULL &&
        (wishes.port_count > ALWAYS_PORTS || hdl_connect_wanted(&wishes.connect))) {
        fprintf(stderr, "nonic: --port, --connect, --pingpong and --cm are for --address, for by "
                        "--tap all frames are the design's affair\n");
        return EXIT_USAGE;
    }
    wishes.port_count = wishes.tap != NULL ? 0 : wishes.port_count;
    return live_with(&wishes, argv[optind]);
}
