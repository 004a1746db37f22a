/* SPDX-License-Identifier: BSD-2-Clause
 *
 * delay - a long cable between two interfaces: a frame that comes in by one leaves by the other,
 * later.
 *
 * Usage: delay IFACE IFACE MICROSECONDS
 * For kernels without netem. Each frame waits in the ring where the kernel has put it: it is
 * copied once on the way in and once on the way out, and order is kept. Prints "ready", and when
 * it is told to end (SIGTERM) what it has done, as JSON: frames, those that found the ring full
 * (`dropped`) or that the next interface refused (`refused`), and the processor time it took.
 * Needs CAP_NET_RAW, and checksums that are computed before (ethtool -K IFACE tx off): what a
 * frame lacks when it comes in, it lacks when it leaves.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES  (32u << 20) /* 5 ms of 3 million small frames a second. */
#define BLOCK_BYTES (1u << 20)
#define BATCH       64
/* Before and in a frame, beside what the MTU counts. */
#define HEADERS_BYTES (sizeof(struct tpacket2_hdr) + sizeof(struct sockaddr_ll) + 96)
#define SECOND_NS     1000000000ll

/* An end of the cable. */
struct end {
    int fd;
    uint8_t *ring;
    uint32_t slot_bytes, slots;
    uint32_t next; /* The slot whose frame leaves next. */
};

static struct end ends[2];
static unsigned long long frames, refused;
static volatile sig_atomic_t stop;

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "delay: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static uint32_t mtu_of(int fd, const char *name)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    must(ioctl(fd, SIOCGIFMTU, &request), name);
    return (uint32_t)request.ifr_mtu;
}

static void open_end(struct end *end, const char *name)
{
    end->fd = socket(AF_PACKET, SOCK_RAW, 0);
    must(end->fd, "socket");
    const int version = TPACKET_V2, yes = 1;
    must(setsockopt(end->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)), "version");
    must(setsockopt(end->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)), "outgoing");
    must(setsockopt(end->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof(yes)), "bypass");
    end->slot_bytes = 2048;
    while (end->slot_bytes < mtu_of(end->fd, name) + HEADERS_BYTES) {
        end->slot_bytes *= 2;
    }
    end->slots = RING_BYTES / end->slot_bytes;
    const struct tpacket_req ring = {BLOCK_BYTES, RING_BYTES / BLOCK_BYTES, end->slot_bytes,
                                     end->slots};
    must(setsockopt(end->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)), "ring");
    end->ring =
        mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, end->fd, 0);
    must(end->ring == MAP_FAILED ? -1 : 0, "mmap");
    const struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                        .sll_protocol = htons(ETH_P_ALL),
                                        .sll_ifindex = (int)if_nametoindex(name)};
    must(bind(end->fd, (const struct sockaddr *)&address, sizeof(address)), name);
}

/* By the clock with which the kernel stamps frames. */
static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * SECOND_NS + t.tv_nsec;
}

static struct tpacket2_hdr *slot_at(const struct end *end, uint32_t index)
{
    return (struct tpacket2_hdr *)(void *)(end->ring + (size_t)index * end->slot_bytes);
}

/* There is a frame in the slot; it is to leave at *due. */
static int frame_at(struct tpacket2_hdr *slot, int64_t delay_ns, int64_t *due)
{
    if ((*(volatile uint32_t *)&slot->tp_status & TP_STATUS_USER) == 0) {
        return 0;
    }
    atomic_thread_fence(memory_order_acquire);
    *due = slot->tp_sec * SECOND_NS + slot->tp_nsec + delay_ns;
    return 1;
}

static void send_all(int fd, struct mmsghdr *messages, unsigned int count)
{
    unsigned int sent = 0;
    while (sent < count) {
        const int done = sendmmsg(fd, messages + sent, count - sent, 0);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            refused++;
            sent++; /* This one is lost, as by a cable. */
        } else {
            sent += (unsigned int)done;
            frames += (unsigned int)done;
        }
    }
}

/* Sends the frames that are due, at most BATCH, and returns how many. *next: when the next one is
 * due, or INT64_MAX. */
static unsigned int carry(struct end *from, const struct end *to, int64_t delay_ns, int64_t *next)
{
    struct iovec parts[BATCH];
    struct mmsghdr messages[BATCH];
    memset(messages, 0, sizeof(messages));
    const int64_t now = now_ns();
    unsigned int count = 0;
    *next = INT64_MAX;
    for (uint32_t index = from->next; count < BATCH; count++, index = (index + 1) % from->slots) {
        struct tpacket2_hdr *slot = slot_at(from, index);
        int64_t due;
        if (!frame_at(slot, delay_ns, &due)) {
            break;
        }
        if (due > now) {
            *next = due;
            break;
        }
        parts[count] = (struct iovec){(uint8_t *)slot + slot->tp_mac, slot->tp_snaplen};
        messages[count].msg_hdr.msg_iov = &parts[count];
        messages[count].msg_hdr.msg_iovlen = 1;
    }
    send_all(to->fd, messages, count);
    atomic_thread_fence(memory_order_release);
    for (unsigned int i = 0; i < count; i++, from->next = (from->next + 1) % from->slots) {
        *(volatile uint32_t *)&slot_at(from, from->next)->tp_status = TP_STATUS_KERNEL;
    }
    return count;
}

/* Frames that come in meanwhile are due later than the one that is waited for. */
static void wait_until(int64_t due)
{
    if (due == INT64_MAX) {
        struct pollfd fds[2] = {{.fd = ends[0].fd, .events = POLLIN},
                                {.fd = ends[1].fd, .events = POLLIN}};
        poll(fds, 2, 1000);
        return;
    }
    const struct timespec t = {due / SECOND_NS, due % SECOND_NS};
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

static unsigned int dropped(int fd)
{
    struct tpacket_stats statistics = {0};
    socklen_t bytes = sizeof(statistics);
    getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes);
    return statistics.tp_drops;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: delay IFACE IFACE MICROSECONDS\n");
        return 2;
    }
    const int64_t delay_ns = (int64_t)(atof(argv[3]) * 1000);
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul);
    open_end(&ends[0], argv[1]);
    open_end(&ends[1], argv[2]);
    printf("ready\n");
    fflush(stdout);
    while (!stop) {
        int64_t there, back;
        const unsigned int moved = carry(&ends[0], &ends[1], delay_ns, &there) +
                                   carry(&ends[1], &ends[0], delay_ns, &back);
        if (moved == 0) {
            wait_until(there < back ? there : back);
        }
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"frames\": %llu, \"dropped\": %u, \"refused\": %llu, \"processor_s\": %.3f}\n",
           frames, dropped(ends[0].fd) + dropped(ends[1].fd), refused,
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
    return 0;
}
