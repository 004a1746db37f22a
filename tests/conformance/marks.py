"""Congestion notification of RC and UC: routers' marks are seen, answered with CNPs, and slow the sender down."""
import re

import harness
from blocks import mark_arrivals
from harness import Failure, free_port, start, test, wait_for_listener
from namespaces import Namespaces, ip

SECONDS = 3
NOTIFIED = 'np_ecn_marked_roce_packets', 'np_cnp_sent'


def counter(output, name):
    found = re.search(rf'^nonic: +{name} (\d+)', output, re.M)
    return int(found[1]) if found else 0


def carried(both, service, marked, devices):
    """Bytes that a sender gets through, while every packet that may have a mark arrives with one, or none does."""
    port = free_port()
    args = ['ib_write_bw', '-d', 'nonic0', '-F', '-s', '4096', '-c', service, '-D', str(SECONDS), '-p', port]
    options = [['--device', device, '--transport', 'rc', '--stats'] for device in devices]
    before = both.carried(0)
    ends = [start(args, 'udp', options[0], both.inside[0])]
    try:
        wait_for_listener(port, ends[0])
        ends.append(start([*args, '10.77.0.1'], 'udp', options[1], both.inside[1]))
        sender, receiver = [harness.finish(end, 60) for end in reversed(ends)]
    finally:
        for end in ends:
            end.kill()
    if any(end.returncode for end in ends):
        raise Failure(f'{sender[-1500:]}\n{receiver[-1500:]}')
    seen = [counter(receiver, name) for name in NOTIFIED]
    heeded = counter(sender, 'rp_cnp_handled')
    if [*map(bool, [*seen, heeded])] != [marked] * 3 or marked and (seen[1] < 100 or heeded < 100):
        raise Failure(f'marked: {marked}, {NOTIFIED}: {seen}, rp_cnp_handled: {heeded}\n{receiver}\n{sender}')
    lost = counter(sender, 'retransmitted_pkts') + counter(sender, 'timeouts')
    if marked and lost and not harness.sanitizer:
        raise Failure(f'slow, and sent again: {lost}\n{sender}')
    return both.carried(0) - before


def give_ipv6(both, end):
    address = f'fd77::{end + 1}'
    ip('-n', both.names[end], 'address', 'add', f'{address}/64', 'dev', 'rdma0', 'nodad')
    return address


def slows(service, family='ip'):
    """To less than half, once in three tries. The rate that is left is far less on a quiet machine; where others take
    the processor for milliseconds, CNPs are as late, and the rate rises meanwhile. Under a sanitizer they always are,
    and what is sent says nothing: CNPs are sent and heeded, which `carried` looks at."""
    for last in False, False, True:
        with Namespaces(4200) as both:
            devices = ['rdma0', 'rdma0'] if family == 'ip' else [give_ipv6(both, end) for end in (0, 1)]
            free = carried(both, service, False, devices)
            mark_arrivals(both.inside[0], family)
            slow = carried(both, service, True, devices)
        if harness.sanitizer or harness.arguments.checked or slow < free / 2:
            return
        if last:
            raise Failure(f'without marks {free} bytes in {SECONDS} s, with marks on all packets {slow}')


def datagrams():
    """UD is not marked: nobody would tell its sender."""
    with Namespaces(4200) as both:
        mark_arrivals(both.inside[0])
        port = free_port()
        args = ['ib_send_bw', '-d', 'nonic0', '-F', '-c', 'UD', '-s', '64', '-n', '300', '-r', '512', '-p', port]
        options = ['--device', 'rdma0', '--stats']
        ends = [start(args, 'udp', options, both.inside[0])]
        try:
            wait_for_listener(port, ends[0])
            ends.append(start([*args, '10.77.0.1'], 'udp', options, both.inside[1]))
            sender, receiver = [harness.finish(end, 60) for end in reversed(ends)]
        finally:
            for end in ends:
                end.kill()
    if any(end.returncode for end in ends) or 'np_ecn' in receiver or 'rp_cnp' in sender:
        raise Failure(f'{sender[-1500:]}\n{receiver[-1500:]}')


def tests():
    for service in 'RC', 'UC':
        test(f'marks: {service} is slowed down', slows, service, alone=True)
    test('marks: RC over IPv6 is slowed down', slows, 'RC', 'ip6', alone=True)
    test('marks: not on UD', datagrams)
