/* SPDX-License-Identifier: BSD-2-Clause
 *
 * survivor - two connected processes, one of which ends; what the other one's SEND ends with.
 *
 * Prints the address of the one that is to end and its process number. At SIGUSR1 the other one
 * sends, and prints the seconds that the request took and its status.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include "tests/hostile/victim.h"

static struct address connect_by(struct victim *v, int other)
{
    struct address peer;
    victim_open(v);
    const struct address own = victim_address(v);
    EXPECT(write(other, &own, sizeof(own)) == sizeof(own));
    EXPECT(read(other, &peer, sizeof(peer)) == sizeof(peer));
    victim_connect(v->qp, &peer, 12, 7);
    EXPECT(write(other, "c", 1) == 1);
    char connected;
    EXPECT(read(other, &connected, 1) == 1);
    return peer;
}

int main(void)
{
    int pair[2];
    struct victim v;
    char text[INET_ADDRSTRLEN];
    sigset_t awaited;
    int signal;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    EXPECT(pthread_sigmask(SIG_BLOCK, &awaited, NULL) == 0);
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    const pid_t other = fork();
    if (other == 0) {
        close(pair[0]);
        connect_by(&v, pair[1]);
        pause();
    }
    close(pair[1]);
    const struct address peer = connect_by(&v, pair[0]);
    printf("%s %d\n", inet_ntop(AF_INET, peer.gid.raw + 12, text, sizeof(text)), (int)other);
    fflush(stdout);
    EXPECT(sigwait(&awaited, &signal) == 0);
    const double began = seconds_now();
    EXPECT(victim_post(&v, IBV_WR_SEND, &peer, 8) == 0);
    const char *status = ibv_wc_status_str(victim_wait(&v));
    printf("%.3f %s\n", seconds_now() - began, status);
    return 0;
}
