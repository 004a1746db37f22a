"""The measurements of bench/bad-networks: programs of nonic and of TCP on networks that lose, overtake, queue and
delay.

A setting is a network that misbehaves in one way, or nonic's own --fault on the loopback. A kind is what carries
the bytes: nonic's 'block', 'auto' or 'rc', or TCP by 'cubic' or 'bbr'. A measurement is a function of a kind, and
returns figures by name.
"""
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import measure

sys.path.insert(0, os.path.join(measure.ROOT, 'tests'))
from harness import listens, wait_until
from networks import Network, Unavailable, private

MB = 1048576
PORT = '7471'
TCP = ('cubic', 'bbr')
SENDERS = 8
LINE_MBIT = 1000
JUMBO = 9000
PART_S = 0.25
QUEUE_KB = 500  # In front of a cable of 1 Gb/s: 4 ms.
ALONE = ['--size', '4096', '--depth', '1']
STREAM = ['--size', '65536', '--depth', '32', '--events']
RECEIVER, SENDER = 0, 1  # Processors of programs that run two at a time.


class Failed(Exception):
    pass


class Loopback:
    """Both ends on this machine's loopback; nonic itself misbehaves as `fault` says."""
    inside = [[], []]
    mtu = 65536

    def __init__(self, fault=None):
        self.options = ['--fault', fault] if fault else []
        self.processes = []

    def address(self, _end, _path=0):
        return '127.0.0.1'

    def start(self, _end, args):
        process = subprocess.Popen(args, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        self.processes.append(process)
        return process

    def stop(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.processes.remove(process)


class Bad(Network):
    """A network whose ends are used by their first device."""
    options = ['--device', 'p0']


def busy():
    """Seconds that processors of this machine have worked, and all their seconds."""
    with open('/proc/stat') as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


class Bench:
    """One choice of transport, seconds a run and MTU; and the networks made so far, which end with it.

    without: why there are no namespaces, or None.
    """

    def __init__(self, transport, seconds, mtu):
        if not os.path.exists(measure.nonic()):
            raise Unavailable(f'{measure.nonic()} is not there: was it built?')
        helped = subprocess.run([measure.nonic(), 'run', '--help'], capture_output=True, text=True).stdout
        self.has_transports = '--transport' in helped
        if transport not in (None, 'rc') and not self.has_transports:
            raise Unavailable(f'{measure.nonic()} has no --transport')
        self.own = transport or ('block' if self.has_transports else 'rc')
        self.seconds, self.mtu, self.without = seconds, mtu, None
        self.made = {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # By way of every `finally`.
        return self

    def __exit__(self, *reason):
        self.stack.close()

    def kinds(self, tcp=True):
        own = [self.own] if self.own == 'rc' else [self.own, 'rc']
        return [*own, *(TCP if tcp and not self.without else ())]

    # -- Places ---------------------------------------------------------------------------------------

    def network(self, name, **how):
        if self.without:
            raise Unavailable('takes network namespaces')
        if name not in self.made:
            self.made[name] = self.stack.enter_context(Bad(**{'mtu': self.mtu, **how}))
        return self.made[name]

    def plain(self, lose=0, late=0):
        if self.without:
            return Loopback(f'drop={lose},reorder={late},seed=7')
        # The sender's processor carries every packet; the receiver's has time left, so the detour runs there.
        network = self.network('plain', relay=measure.program('delay'), detour_processor=RECEIVER)
        network.misbehave(lose=lose, late=late)
        return network

    def far(self, milliseconds):
        if self.without:
            return Loopback(f'delay={milliseconds / 2:g}ms:1' if milliseconds else 'drop=0')
        network = self.network('far', relay=measure.program('delay'), far=True)
        network.delay(milliseconds * 500)
        return network

    def two_paths(self, spread):
        """tbf takes 12 us of a processor for each frame on a virtual machine: frames of 1,500 bytes of two cables are
        more than one processor carries, whoever sends them."""
        network = self.network('paths', paths=2, megabits=LINE_MBIT, slow=[1], queue_kb=QUEUE_KB,
                               mtu=max(self.mtu, JUMBO), router_processors=(RECEIVER, SENDER))
        network.mend()
        network.unspread(1)
        if spread:
            network.spread(1)
        return network

    def many(self):
        return self.network('many', ends=1 + SENDERS, megabits=LINE_MBIT, slow=[0], queue_kb=QUEUE_KB)

    # -- Programs -------------------------------------------------------------------------------------

    def command(self, place, kind, args, options=None):
        transport = ['--transport', kind] if self.has_transports else []
        return [measure.nonic(), 'run', '--wire', 'udp', *transport, *(place.options if options is None else options),
                '--', *args]

    def serve(self, place, end, args, port):
        server = place.start(end, args)
        if wait_until(lambda: server.poll() is not None or listens(port, server.pid), 10) and server.poll() is None:
            return server
        said = server.stderr.read() if server.poll() is not None else 'does not listen'
        place.stop(server)
        raise Failed(said[:200])

    def output(self, place, process, seconds):
        """Of a client that must end soon."""
        try:
            output, errors = process.communicate(timeout=seconds + 10)
        except subprocess.TimeoutExpired:
            raise Failed(f'no end after {seconds + 10:.0f} s') from None
        if process.returncode:
            raise Failed((errors or output).strip()[-200:])
        return output

    def pair(self, place, server_args, client_args, port, seconds=None):
        """Output of the client: end 0, whose peer is end 1."""
        server = self.serve(place, 1, ['taskset', '-c', str(RECEIVER), *server_args], port)
        try:
            client = place.start(0, ['taskset', '-c', str(SENDER), *client_args])
            try:
                return self.output(place, client, seconds or self.seconds)
            finally:
                place.stop(client)
        finally:
            place.stop(server)

    # -- Figures --------------------------------------------------------------------------------------

    def goodput(self, place, kind, size):
        """MB/s of WRITEs, or of TCP. perftest waits for a second before each run, so it makes those of 64 KB only."""
        if kind in TCP:
            return {'goodput': self.tcp(place, kind)}
        if size == MB:
            return self.steady(place, kind, ['--size', str(MB), '--depth', '16'])
        seconds = max(1, round(self.seconds))
        # 64 under way are twice the window; after its time it waits for all of them.
        args = self.command(place, kind, ['ib_write_bw', '-F', '-p', PORT, '-s', str(size), '-t', '64',
                                          '-D', str(seconds), '-f', '0'])
        output = self.pair(place, args, [*args, place.address(1)], PORT, seconds)
        return {'goodput': measure.perftest_row(output)[3] * MB / 1e6}

    def tcp(self, place, kind):
        return self.flows(place, kind, [0])

    def flows(self, place, kind, paths):
        """MB/s of TCP flows at the same time, each by one of these cables."""
        with contextlib.ExitStack() as stack:
            clients = []
            for path in paths:
                port = str(int(PORT) + path)
                stack.callback(place.stop, self.serve(
                    place, 1, ['taskset', '-c', str(RECEIVER), 'iperf3', '-s', '-1', '-p', port], port))
            for path in paths:
                clients.append(place.start(0, [
                    'taskset', '-c', str(SENDER), 'iperf3', '-J', '-C', kind, '-t', str(self.seconds), '-p',
                    str(int(PORT) + path), '-B', place.address(0, path), '-c', place.address(1, path)]))
                stack.callback(place.stop, clients[-1])
            said = [json.loads(self.output(place, client, self.seconds)) for client in clients]
        return sum(one['end']['sum_received']['bits_per_second'] / 8e6 for one in said)

    def stream(self, place, kind, args, during=None, options=None):
        """The output of bench/stream, decoded. `during` is called while it runs."""
        program = measure.program('stream')
        server = self.serve(place, 1, ['taskset', '-c', str(RECEIVER),
                                       *self.command(place, kind, [program, PORT], options)], PORT)
        try:
            client = place.start(0, ['taskset', '-c', str(SENDER), *self.command(
                place, kind, [program, *args, place.address(1), PORT], options)])
            try:
                if during:
                    during()
                return json.loads(self.output(place, client, 3 * self.seconds))
            finally:
                place.stop(client)
        finally:
            place.stop(server)

    def steady(self, place, kind, args=None, options=None):
        """MB/s of a stream whose first tenth does not count."""
        said = self.stream(place, kind, [*(args or STREAM), '--seconds', str(self.seconds)], options=options)
        if said['error']:
            raise Failed(said['error'])
        return {'goodput': rate(said, self.seconds / 10)}

    def alone(self, place, kind):
        """Microseconds that one message takes when it is alone."""
        said = self.stream(place, kind, [*ALONE, '--seconds', str(1.5 * self.seconds)])
        if said['error']:
            raise Failed(said['error'])
        return {'p50': said['p50_us'], 'p99': said['p99_us'], 'over': said['p99_us'] - said['p50_us'],
                'messages': said['messages']}

    def by_one(self, kind):
        network = self.two_paths(False)
        return {'goodput': self.tcp(network, kind)} if kind in TCP else self.steady(network, kind)

    def by_both(self, spread, kind, options=None):
        """A stream by two cables; TCP, which takes one, by a flow on each."""
        if kind in TCP:
            return {'goodput': self.flows(self.two_paths(False), kind, [0, 1])}
        return self.steady(self.two_paths(spread), kind, options=options)

    def cut(self, network, kind, options=None):
        """A stream whose path is cut in the middle: MB/s from half a second later on, and the longest pause."""
        seconds = 2.5 * self.seconds
        before = network.carried(1)

        def in_the_middle():
            time.sleep(seconds / 2)
            carried = [after - first for first, after in zip(before, network.carried(1))]
            network.cut(carried.index(max(carried)))
        said = self.stream(network, kind, [*STREAM, '--seconds', str(seconds)], in_the_middle, options)
        network.mend()
        if said['error']:
            raise Failed(said['error'])
        return {'goodput': rate(said, seconds / 2 + 0.5), 'pause_ms': longest_pause(said) * 1000}

    def granted(self, place):
        """Bytes of payload that the receive buffer of nonic at end 1 lets be under way: half of it, of which each
        packet also takes 512 bytes. Asks the kernel."""
        said = subprocess.run([*place.inside[1], 'ss', '-uamn'], capture_output=True, text=True).stdout
        buffers = [int(size) for size in re.findall(r':4791 .*\n?.*?rb(\d+)', said)]
        if not buffers:
            raise Failed(f'no receive buffer is seen: {said[:200]}')
        packet = payload_of(place.mtu)
        return max(buffers) / 2 * packet / (packet + 512)

    def long_way(self, network, kind, seconds):
        """A stream of large messages, and what the receiver granted."""
        if kind in TCP:
            return {'goodput': self.tcp(network, kind)}
        grants = []

        def look():
            time.sleep(seconds / 2)
            grants.append(self.granted(network))
        said = self.stream(network, kind, ['--size', str(MB), '--depth', '64', '--events', '--seconds', str(seconds)],
                           look)
        if said['error']:
            raise Failed(said['error'])
        lost = {'relay_dropped': network.relayed['far']['dropped']} if getattr(network, 'relayed', None) else {}
        return {'goodput': rate(said, seconds / 4), 'grant': grants[0], **lost}

    # -- Many into one --------------------------------------------------------------------------------

    def into_one(self, kind, senders, beside=None):
        """Goodputs of senders into end 0 in MB/s while all of them send; that of a TCP flow beside them, which begins
        before and ends after; the worst quarter of a second of all together."""
        network = self.many()
        seconds = 2 * self.seconds
        with contextlib.ExitStack() as stack:
            def serve(args, port):
                stack.callback(network.stop, self.serve(network, 0, args, port))

            def send(end, args):
                process = network.start(end, args)
                process.began = time.monotonic()
                stack.callback(network.stop, process)
                return process
            if beside:
                serve(tcp_server('5201'), '5201')
                other = send(SENDERS, tcp_client(network, beside, '5201', seconds + 1.5))
                time.sleep(0.5)
            if kind in TCP:
                for number in range(senders):
                    serve(tcp_server(str(6000 + number)), str(6000 + number))
                clients = [send(1 + number, tcp_client(network, kind, str(6000 + number), seconds))
                           for number in range(senders)]
            else:
                program = measure.program('stream')
                serve(self.command(network, kind, [program, '--clients', str(senders), PORT]), PORT)
                clients = [send(1 + number, self.command(network, kind, [
                    program, *STREAM, '--seconds', str(seconds), network.address(0), PORT]))
                    for number in range(senders)]
            courses = [Course(self.output(network, client, seconds), client.began) for client in clients]
            first = max(course.began for course in courses) + PART_S
            last = min(course.end() for course in courses)
            figures = shared([course.within(first, last) for course in courses])
            if beside:
                figures['beside'] = statistics.mean(
                    Course(self.output(network, other, seconds), other.began).within(first, last))
        return figures


class Course:
    """MB/s that arrived in each quarter of a second, by the clock of all programs. iperf3 does not say when it began:
    we know when it was started."""

    def __init__(self, output, started):
        said = json.loads(output)
        if 'server_output_json' in said:
            self.began = started
            self.rates = [interval['sum']['bits_per_second'] / 8e6
                          for interval in said['server_output_json']['intervals']]
        elif said['error']:
            raise Failed(said['error'])
        else:
            self.began = said['began']
            slots = round(PART_S / said['slot_s'])
            self.rates = [sum(said['bytes'][i:i + slots]) / PART_S / 1e6
                          for i in range(0, len(said['bytes']) - slots + 1, slots)]

    def end(self):
        return self.began + len(self.rates) * PART_S

    def within(self, first, last):
        """Of the parts that begin and end in that time, or nearly so."""
        begin = round((first - self.began) / PART_S)
        return self.rates[begin:max(begin + 1, begin + int((last - first) / PART_S))]


def tcp_server(port):
    return ['iperf3', '-s', '-1', '-J', '-i', str(PART_S), '-p', port]


def tcp_client(network, kind, port, seconds):
    return ['iperf3', '-J', '--get-server-output', '-i', str(PART_S), '-C', kind, '-t', str(seconds), '-p', port, '-c',
            network.address(0)]


def payload_of(mtu):
    """IBTA's path MTU for an interface's."""
    return max(size for size in (256, 512, 1024, 2048, 4096) if size + 100 <= mtu)


def line_rate(mtu):
    """MB/s of payload that UDP datagrams of one path MTU carry over the slow cable."""
    payload = payload_of(mtu)
    return LINE_MBIT / 8 * payload / (payload + 14 + 20 + 8)


def rate(said, first):
    """MB/s from second `first` on."""
    slots = said['bytes'][round(first / said['slot_s']):]
    return sum(slots) / (len(slots) * said['slot_s']) / 1e6


def longest_pause(said):
    """Seconds without a completion."""
    longest = now = 0
    for count in said['bytes']:
        now = 0 if count else now + 1
        longest = max(longest, now)
    return longest * said['slot_s']


def shared(rates):
    """The rate of all flows together, Jain's index, and the flows' worst quarter of a second."""
    means = [statistics.mean(one) for one in rates]
    squares = sum(mean * mean for mean in means)
    return {'goodput': sum(means), 'jain': sum(means) ** 2 / (len(means) * squares) if squares else 0,
            'worst': min(sum(parts) for parts in zip(*rates))}
