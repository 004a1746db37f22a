/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_board_run - the board as a process: sockets, clock and payload around the pure engine.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/system/clock.h"
#include "tools/feroce_board.h"

#define TEXT_BYTES     256
#define SECOND_NS      UINT64_C(1000000000)
#define ROUND_MAX      64    /* Datagrams and packets until the other side is looked at. */
#define SPIN_NS        30000 /* It looks for answers for this time before it sleeps. */
#define SLEEP_MAX_NS   (SECOND_NS / 5)
#define PIPE_LOOK_NS   1000000
#define LINGER_NS      SECOND_NS /* --once: it waits for this time to be closed when all is done. */
#define FRAME_OVERHEAD (14 + 20 + 8 + 4) /* Ethernet, IPv4, UDP and FCS around a RoCE packet. */
#define LINE_OVERHEAD  20                /* Preamble and gap. */

struct run {
    const struct feroce_wishes *wishes;
    struct feroce_board board;
    void *memory;
    struct feroce_port *port;
    struct feroce_source source;
    struct feroce_stream streams[FEROCE_QPS_MAX];
    uint16_t host_ports[FEROCE_QPS_MAX]; /* Where the hosts that opened them listen. */
    struct instant line_free;            /* --rate: when the line has sent all that left. */
    uint32_t opened, open, started, failed;
    enum feroce_status told;          /* The last status of the master that was printed. */
    struct instant busy, shown, done; /* `done`: 0 ns while there is something to do. */
    uint64_t shown_bytes;
    bool shows_progress, has_line;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* -- Messages -----------------------------------------------------------------------------------*/

static const char *address_text(uint32_t ip)
{
    static char text[INET_ADDRSTRLEN];
    const struct in_addr address = {htonl(ip)};
    return inet_ntop(AF_INET, &address, text, sizeof(text));
}

/* A line of its own, below the progress. */
static void end_progress(struct run *run)
{
    if (run->has_line) {
        fputc('\n', stderr);
        run->has_line = false;
    }
}

static uint64_t bytes_stored(const struct run *run)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < FEROCE_QPS_MAX; i++) {
        bytes += run->streams[i].bytes;
    }
    return bytes;
}

static void show_progress(struct run *run, struct instant now)
{
    if (!run->shows_progress || now.ns - run->shown.ns < SECOND_NS) {
        return;
    }
    const uint64_t bytes = bytes_stored(run);
    const double seconds = (double)(now.ns - run->shown.ns) / 1e9;
    if (bytes != run->shown_bytes) {
        fprintf(stderr,
                "\r%u open, %llu messages, %.3f Gb/s, %.1f us to an ACK, %llu packets sent again ",
                run->open, (unsigned long long)run->board.messages,
                (double)(bytes - run->shown_bytes) * 8e-9 / seconds,
                (double)feroce_latency_mean_ns(&run->board.latency) / 1e3,
                (unsigned long long)run->board.window.resent);
        run->has_line = true;
    }
    run->shown = now;
    run->shown_bytes = bytes;
}

static void print_counter(const char *name, uint64_t value)
{
    printf("%-24s %llu\n", name, (unsigned long long)value);
}

static void print_stats(const struct run *run)
{
    const struct feroce_board *board = &run->board;
    const struct feroce_port_counters *port = feroce_port_counters(run->port);
    uint64_t padded = 0;
    for (uint32_t i = 0; i < FEROCE_QPS_MAX; i++) {
        padded += run->streams[i].padded;
    }
    print_counter("messages", board->messages);
    print_counter("messages_padded", padded);
    print_counter("latency_messages", board->latency.messages);
    print_counter("latency_mean_ns", feroce_latency_mean_ns(&board->latency));
    print_counter("latency_least_ns", board->latency.least_ns);
    print_counter("latency_most_ns", board->latency.most_ns);
    print_counter("packets_stored", board->window.stored);
    print_counter("packets_sent", board->window.sent);
    print_counter("packets_sent_again", board->window.resent);
    print_counter("packets_overwritten", board->window.overwritten);
    print_counter("timeouts", board->window.timeouts);
    print_counter("sequence_rewinds", board->window.sequence_rewinds);
    print_counter("rnr_waits", board->window.rnr_rewinds);
    for (int i = 0; i < FEROCE_ARRIVAL_COUNT; i++) {
        print_counter(feroce_arrival_name((enum feroce_arrival)i), board->arrivals[i]);
    }
    for (int i = 0; i < FEROCE_CM_ARRIVALS; i++) {
        print_counter(feroce_cm_arrival_name((enum feroce_cm_arrival)i), board->cm_arrivals[i]);
    }
    print_counter("cm_version_suspect", board->cm_version_suspect);
    print_counter("wrong_icrc", board->wrong_icrc);
    print_counter("datagrams_sent", port->packets);
    print_counter("calls", port->calls);
    print_counter("refused_by_system", port->refused);
    print_counter("dropped_by_fault", port->dropped);
    print_counter("held_by_fault", port->held);
    print_counter("dropped_in_by_fault", port->dropped_in);
    print_counter("datagrams_received", port->received);
}

/* -- Events -------------------------------------------------------------------------------------*/

static void start(struct run *run, uint32_t index, const struct feroce_meta *meta,
                  struct instant now)
{
    struct feroce_stream *stream = &run->streams[index];
    feroce_board_start(&run->board, index);
    if (stream->in_message) {
        return; /* The last message of the time before: it runs until that is stored (FER-96). */
    }
    run->started++;
    if (!feroce_generator_start(&stream->generator, meta, now) && !stream->generator.running) {
        end_progress(run);
        printf("queue pair %u: nothing to send (length %u, count %u)\n", FEROCE_FIRST_QPN + index,
               meta->length, meta->count);
    }
}

static void start_those_wished(struct run *run, uint32_t index, struct instant now)
{
    const struct feroce_wishes *wishes = run->wishes;
    if (!wishes->meta.valid) {
        return;
    }
    if (!wishes->waits_for_all) {
        start(run, index, &wishes->meta, now);
    } else if (run->open == wishes->board.window.qps) {
        for (uint32_t i = 0; i < wishes->board.window.qps; i++) {
            if (run->streams[i].waits_for_others) { /* If not, another stream alone was opened
                                                     * anew. */
                run->streams[i].waits_for_others = false;
                start(run, i, &wishes->meta, now);
            }
        }
    }
}

static uint32_t count_open(const struct run *run)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < run->board.config.window.qps; i++) {
        open += run->board.table.contexts[i].state == FEROCE_RTS;
    }
    return open;
}

/* Those that a host may still close, given up or not. */
static uint32_t count_left(const struct run *run)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < run->board.config.window.qps; i++) {
        left += run->board.table.contexts[i].state != FEROCE_RESET;
    }
    return left;
}

static void tell_unreadable(struct run *run, uint32_t index, int reason)
{
    const char *path = run->source.path;
    run->failed++;
    end_progress(run);
    printf("queue pair %u: cannot read %s: %s\n", FEROCE_FIRST_QPN + index,
           path != NULL ? path : "the descriptor", strerror(reason));
}

static void on_opened(struct run *run, const struct feroce_event *event, struct instant now)
{
    const uint32_t index = event->index;
    const struct feroce_side *remote = &run->board.table.contexts[index].remote;
    run->host_ports[index] = event->udp_port != 0 ? event->udp_port : run->wishes->open_port;
    run->opened++;
    run->open = count_open(run);
    end_progress(run);
    printf("queue pair %u: opened for %s, QPN %u, first PSN %u\n", FEROCE_FIRST_QPN + index,
           address_text(remote->ip), remote->qpn, remote->psn);
    if (!feroce_stream_open(&run->streams[index], &run->source, index)) {
        tell_unreadable(run, index, errno);
    }
    run->streams[index].waits_for_others = true;
    start_those_wished(run, index, now);
}

static void tell_refusal(const struct run *run, uint32_t index, uint8_t syndrome, uint8_t opcode)
{
    printf("queue pair %u: given up: refused by the receiver, AETH 0x%02x",
           FEROCE_FIRST_QPN + index, syndrome);
    feroce_print_refusal(syndrome, opcode, run->board.config.window.pmtu,
                         run->streams[index].message.length);
    printf("\n");
}

static void on_ended(struct run *run, const struct feroce_event *event)
{
    const uint32_t qpn = FEROCE_FIRST_QPN + event->index;
    end_progress(run);
    feroce_stream_close(&run->streams[event->index], &run->source);
    if (event->kind == FEROCE_EVENT_CLOSED) {
        printf("queue pair %u: closed\n", qpn);
        run->open = count_open(run);
        return;
    }
    run->failed++;
    run->open = count_open(run);
    if (event->syndrome == FEROCE_SYNDROME_LIMIT) {
        printf("queue pair %u: given up: no progress after %u tries\n", qpn,
               run->wishes->board.window.retry_limit + 1u);
    } else {
        tell_refusal(run, event->index, event->syndrome, event->opcode);
    }
}

static void take_events(struct run *run, struct instant now)
{
    struct feroce_event event;
    while (feroce_board_next_event(&run->board, &event)) {
        switch (event.kind) {
        case FEROCE_EVENT_OPENED: on_opened(run, &event, now); break;
        case FEROCE_EVENT_META:
            if (event.meta.start && run->board.table.contexts[event.index].state == FEROCE_RTS) {
                start(run, event.index, &event.meta, now);
            }
            break;
        case FEROCE_EVENT_CLOSED:
        case FEROCE_EVENT_FAILED: on_ended(run, &event); break;
        }
    }
    (void)fflush(stdout);
}

static void tell_status(struct run *run)
{
    const enum feroce_status status = run->board.master.status;
    if (status != run->told && status != FEROCE_STATUS_PENDING && status != FEROCE_STATUS_OK) {
        end_progress(run);
        printf("connection manager: %s\n", feroce_status_name(status));
    }
    run->told = status;
}

/* -- A round ------------------------------------------------------------------------------------*/

static bool send_messages(struct run *run, struct instant now)
{
    uint8_t message[FEROCE_CM_BYTES];
    uint32_t ip = 0;
    uint16_t udp_port = 0;
    bool any = false;
    while (feroce_board_next_cm(&run->board, now, message, &ip, &udp_port)) {
        feroce_port_send_cm(run->port, message, ip, udp_port);
        any = true;
    }
    return any;
}

/* The board of 2024 begins no further message, but it gives no queue pair up. */
static void take_answer(struct run *run, const struct feroce_datagram *datagram, struct instant now)
{
    const enum feroce_arrival arrival = feroce_board_on_roce(
        &run->board, datagram->bytes, datagram->count, datagram->icrc_is_right, now);
    if (arrival != FEROCE_ARRIVAL_NAK || run->board.config.stack != FEROCE_STACK_2024 ||
        datagram->bytes[ROCE_BTH_BYTES] == ROCE_NAK_PSN_SEQUENCE ||
        (datagram->bytes[ROCE_BTH_BYTES] & ROCE_AETH_KIND_MASK) != ROCE_AETH_NAK) {
        return;
    }
    const struct psn psn = psn_of(load_be32(datagram->bytes + 8));
    run->failed++;
    end_progress(run);
    tell_refusal(run, 0, datagram->bytes[ROCE_BTH_BYTES],
                 feroce_window_header(&run->board.window, 0, psn)->opcode);
}

static bool receive_some(struct run *run, struct instant now)
{
    struct feroce_datagram datagram;
    uint32_t count = 0;
    while (count < ROUND_MAX && feroce_port_receive(run->port, now, &datagram)) {
        count++;
        if (!datagram.is_cm) {
            take_answer(run, &datagram, now);
            continue;
        }
        const uint64_t suspects = run->board.cm_version_suspect;
        (void)feroce_board_on_cm(&run->board, datagram.bytes, datagram.count, run->board.config.ip,
                                 FEROCE_PORT_CM, datagram.from_port);
        if (suspects == 0 && run->board.cm_version_suspect == 1) {
            end_progress(run);
            fprintf(stderr,
                    "nonic: a message from %s looks little-endian: firmware before "
                    "February 2026? Try --cm-version 2.\n",
                    address_text(datagram.from_ip));
        }
        take_events(run, now);
        /* The next request may have come already; a board would have answered before it came. */
        (void)send_messages(run, now);
    }
    return count > 0;
}

/* One packet of a message into the board's memory. */
static bool store_one(struct run *run, uint32_t index, struct instant now)
{
    static uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
    struct feroce_stream *stream = &run->streams[index];
    if (!feroce_board_has_room(&run->board, index)) {
        return false;
    }
    switch (feroce_stream_begin(stream, &run->source, now)) {
    case FEROCE_SUPPLY_READY: break;
    case FEROCE_SUPPLY_LATER:
    case FEROCE_SUPPLY_ENDED: return false;
    case FEROCE_SUPPLY_FAILED: tell_unreadable(run, index, errno); return false;
    }
    const struct feroce_queue *queue = &run->board.queues[index];
    if (queue->halted && !queue->in_message) {
        feroce_stream_close(stream, &run->source);
        return false;
    }
    const uint32_t rest = stream->message.length - stream->done;
    const uint32_t pmtu = run->board.config.window.pmtu, bytes = rest < pmtu ? rest : pmtu;
    const struct feroce_message message = stream->message;
    feroce_stream_fill(stream, &run->source, payload, bytes);
    const enum feroce_store verdict =
        feroce_board_store(&run->board, index, &message, payload, bytes, bytes == rest, now);
    if (verdict != FEROCE_STORED) {
        feroce_stream_close(stream, &run->source);
    }
    return verdict == FEROCE_STORED;
}

static bool store_some(struct run *run, struct instant now)
{
    bool any = false;
    for (uint32_t i = 0; i < run->board.config.window.qps; i++) {
        for (uint32_t count = 0; count < ROUND_MAX && store_one(run, i, now); count++) {
            any = true;
        }
    }
    return any;
}

/* --rate: a bucket of one frame. */
static bool line_is_free(const struct run *run, struct instant now)
{
    return run->wishes->rate == 0 || instant_reached(now, run->line_free);
}

static void take_line(struct run *run, uint32_t roce_bytes, struct instant now)
{
    if (run->wishes->rate == 0) {
        return;
    }
    const uint32_t frame = roce_bytes + FRAME_OVERHEAD;
    const uint64_t bits = ((frame < 64 ? 64 : frame) + LINE_OVERHEAD) * UINT64_C(8);
    const uint64_t ns = bits * SECOND_NS / run->wishes->rate;
    if (run->line_free.ns + ns < now.ns) {
        run->line_free.ns = now.ns - ns; /* A delay of one frame is made up for, no more. */
    }
    run->line_free.ns += ns;
}

static bool send_some(struct run *run, struct instant now)
{
    struct feroce_packet packet;
    uint32_t count = 0;
    while (count < ROUND_MAX && line_is_free(run, now) &&
           feroce_board_next_packet(&run->board, now, &packet)) {
        feroce_port_send(run->port, &packet, now);
        take_line(run, packet.header_bytes + packet.payload_bytes + ROCE_ICRC_BYTES, now);
        count++;
    }
    feroce_port_flush(run->port, now);
    return send_messages(run, now) || count > 0;
}

static bool do_round(struct run *run, struct instant now)
{
    feroce_board_on_time(&run->board, now);
    bool any = receive_some(run, now);
    any |= store_some(run, now);
    any |= send_some(run, now);
    take_events(run, now);
    tell_status(run);
    show_progress(run, now);
    return any;
}

static struct instant earlier(struct instant a, struct instant b)
{
    return instant_before(a, b) ? a : b;
}

static struct instant next_deadline(struct run *run, struct instant now)
{
    struct instant due =
        earlier(feroce_board_deadline(&run->board), feroce_port_deadline(run->port));
    if (run->wishes->rate != 0 && instant_before(now, run->line_free)) {
        due = earlier(due, run->line_free);
    }
    for (uint32_t i = 0; i < run->board.config.window.qps; i++) {
        const struct instant next = feroce_generator_deadline(&run->streams[i].generator);
        if (instant_before(now, next)) {
            due = earlier(due, next);
        } else if (run->source.data == FEROCE_DATA_FD) {
            due = earlier(due, instant_after(now, PIPE_LOOK_NS));
        }
    }
    return due;
}

static void rest(struct run *run, struct instant now)
{
    const struct instant due = next_deadline(run, now);
    const uint64_t left = instant_before(now, due) ? due.ns - now.ns : 0;
    if (now.ns - run->busy.ns < SPIN_NS || left < SPIN_NS) {
        return;
    }
    feroce_port_wait(run->port, left < SLEEP_MAX_NS ? left - SPIN_NS / 2 : SLEEP_MAX_NS);
}

/* -- Beginning and end --------------------------------------------------------------------------*/

/* Has all that was to be sent been acknowledged? A board of 2024 waits for no acknowledgement. */
static bool is_done(const struct run *run)
{
    const bool acknowledged = run->board.config.stack == FEROCE_STACK_2026;
    for (uint32_t i = 0; i < run->board.config.window.qps; i++) {
        const struct feroce_window *window = &run->board.window.windows[i];
        const struct feroce_stream *stream = &run->streams[i];
        const struct psn reached = acknowledged ? window->acked : window->sent;
        if (stream->generator.running || stream->in_message ||
            (window->open && !psn_equal(reached, window->written))) {
            return false;
        }
    }
    return run->opened > 0 && (run->started > 0 || run->failed > 0 || run->open == 0);
}

/* All was sent and acknowledged; hosts that say CLOSE are answered. */
static bool has_ended(struct run *run, struct instant now)
{
    if (!run->wishes->once || !is_done(run)) {
        run->done.ns = 0;
        return false;
    }
    if (run->done.ns == 0) {
        run->done = now;
    }
    return count_left(run) == 0 || now.ns - run->done.ns >= LINGER_NS;
}

/* The board's own request is answered, or was given up. */
static void finish_request(struct run *run)
{
    while (run->board.master.status == FEROCE_STATUS_PENDING) {
        const struct instant now = clock_now();
        if (!do_round(run, now)) {
            rest(run, now);
        }
    }
}

static void say_goodbye(struct run *run)
{
    finish_request(run);
    for (uint32_t i = 0; i < run->board.config.window.qps; i++) {
        if (run->board.table.contexts[i].state != FEROCE_RESET) {
            (void)feroce_master_close(&run->board.master, &run->board.table, FEROCE_FIRST_QPN + i,
                                      run->host_ports[i]);
            finish_request(run);
        }
    }
}

static bool open_port(struct run *run)
{
    char error[TEXT_BYTES];
    run->port = feroce_port_open(&run->wishes->port, error, sizeof(error));
    if (run->port == NULL) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    return true;
}

static void begin(struct run *run)
{
    const struct feroce_wishes *wishes = run->wishes;
    const uint64_t cycle_fs = wishes->board.stack == FEROCE_STACK_2024 ? 6400000 : 3103030;
    feroce_board_init(&run->board, &wishes->board, run->memory);
    run->source = (struct feroce_source){
        .data = wishes->data, .path = wishes->path, .fd = wishes->fd, .seed = wishes->seed};
    for (uint32_t i = 0; i < FEROCE_QPS_MAX; i++) {
        feroce_generator_init(&run->streams[i].generator, wishes->board.stack, cycle_fs);
        run->streams[i].fd = -1;
    }
    printf("board at %s: %u queue pair%s of %u slots, PMTU %u, RTO %g us (time scale %g)%s\n",
           address_text(wishes->board.ip), wishes->board.window.qps,
           wishes->board.window.qps == 1 ? "" : "s", run->board.window.slots,
           wishes->board.window.pmtu, (double)wishes->board.window.rto_ns / 1e3, wishes->time_scale,
           wishes->port.segmenting ? ", segmented calls with a UDP checksum" : "");
    (void)fflush(stdout);
    run->shown = clock_now();
    run->shows_progress = isatty(STDERR_FILENO);
    if (wishes->open_ip != 0) {
        (void)feroce_master_open(&run->board.master, &run->board.table, wishes->open_ip,
                                 wishes->open_port);
    }
}

static int end(struct run *run)
{
    const struct feroce_port_counters *port = feroce_port_counters(run->port);
    end_progress(run);
    printf("%llu messages of %llu bytes, %llu packets, %llu of them again",
           (unsigned long long)run->board.messages, (unsigned long long)bytes_stored(run),
           (unsigned long long)run->board.window.sent,
           (unsigned long long)run->board.window.resent);
    if (run->board.window.rnr_rewinds > 0) { /* Without a word it would look like loss. */
        printf(" (receiver not ready: %llu)", (unsigned long long)run->board.window.rnr_rewinds);
    }
    printf("\n");
    if (port->refused > 0) {
        fprintf(stderr, "nonic: the system refused %llu datagrams: %s%s\n",
                (unsigned long long)port->refused, strerror(port->refused_why),
                port->refused_why == EMSGSIZE ? "; the interface's MTU is too small for --pmtu"
                                              : "");
    }
    if (run->wishes->stats) {
        print_stats(run);
    }
    for (uint32_t i = 0; i < FEROCE_QPS_MAX; i++) {
        feroce_stream_close(&run->streams[i], &run->source);
    }
    feroce_port_close(run->port);
    free(run->memory);
    return run->failed > 0;
}

int feroce_board_run(const struct feroce_wishes *wishes)
{
    static struct run run;
    run = (struct run){.wishes = wishes, .memory = malloc(feroce_board_bytes(&wishes->board))};
    if (run.memory == NULL || !open_port(&run)) {
        free(run.memory);
        return 1;
    }
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)prctl(PR_SET_TIMERSLACK, 1000);
    begin(&run);
    for (struct instant now = clock_now(); !interrupted && !has_ended(&run, now);
         now = clock_now()) {
        if (do_round(&run, now)) {
            run.busy = now;
        } else {
            rest(&run, now);
        }
    }
    if (wishes->polite) {
        say_goodbye(&run);
    }
    return end(&run);
}
