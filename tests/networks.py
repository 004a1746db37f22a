"""Bad networks without netem: namespaces around a router that loses, marks, queues, delays and overtakes.

Packets are lost singly, as on a real network: the segmentation offloads of every cable are off, and the router
drops in hook forward. A program that is killed leaves nothing behind: its namespaces go with `private`.
"""
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys

SHARES = 10000  # Of which nftables draws one for each packet.
BURST = 32  # KB that a slow cable sends at once: what its timer may be late.
NUMBERS = itertools.count()  # Of networks, whose names differ.
PRIVATE = 'NONIC_PRIVATE_WORLD'
PRIVATE_WAYS = [[], ['--user', '--map-root-user']]
UNSHARE = ['setpriv', '--pdeathsig', 'KILL',
           'unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']


class Unavailable(Exception):
    """No such network can be made here, for the reason given."""


def private():
    """Runs this program anew where it may make namespaces and nobody sees them: they, and every process in them,
    end with it, however it ends. Returns there; or here, with why that cannot be."""
    if os.environ.pop(PRIVATE, None):
        # Names of namespaces are files: of ours alone.
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/run'], check=True)
        ip('link', 'set', 'lo', 'up')
        return None
    why = ''
    for way in PRIVATE_WAYS:
        args = [*UNSHARE, *way]
        try:
            done = subprocess.run([*args, 'sh', '-c', 'mount -t tmpfs tmpfs /run && ip netns add a && ip -n a link'],
                                  capture_output=True, text=True)
        except OSError as error:
            return str(error)
        if done.returncode == 0:
            sys.exit(run_private(args))
        why = done.stderr.strip() or f'exit status {done.returncode}'
    return why


def run_private(args):
    """Returns how it ended. It is killed, and with it all that it has started, when we are told to end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    child = subprocess.Popen([*args, sys.executable, *sys.argv], env={**os.environ, PRIVATE: '1'})
    try:
        return child.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        child.kill()
        child.wait()


def run(*args, text=None):
    try:
        return subprocess.run(args, input=text, check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise Unavailable(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise Unavailable(f'{" ".join(args)}: {error.stderr.strip()[:200]}') from error


def ip(*args):
    return run('ip', *args)


class Network:
    """Ends, each joined to one router by a cable for each path. Interface p0 of end 0 has the address 10.0.1.2, p1
    of end 2 10.1.3.2: each path has a subnet of its own for every end.

    megabits: of the cables towards the ends in `slow` (all, if it is not given); what does not fit queue_kb is
    lost. relay: the program bench/delay, for delays and overtaking; `far`: end 0's first cable has a delay.
    detour_processor: of the relay that makes packets late, lest it takes turns with whatever is measured.
    router_processors: what comes to the router is carried on by these, each flow by one; else by its sender's.
    """

    def __init__(self, ends=2, paths=1, mtu=1500, megabits=None, slow=None, queue_kb=500, relay=None, far=False,
                 detour_processor=None, router_processors=()):
        self.ends, self.paths, self.mtu = ends, paths, mtu
        self.megabits, self.slow, self.queue_kb = megabits, slow, queue_kb
        self.relay, self.far = relay, far
        self.detour_processor, self.router_processors = detour_processor, router_processors
        prefix = f'net{os.getpid()}x{next(NUMBERS)}'
        self.names = [f'{prefix}e{end}' for end in range(ends)]
        self.router, self.cable = f'{prefix}r', f'{prefix}d'
        self.inside = [['ip', 'netns', 'exec', name] for name in self.names]
        self.processes = []
        self.relays = {}  # By what they are for: the far cable, the detour of those that are overtaken.
        self.relayed = {}  # The counts of the last one of each.
        self.dead = set()
        self.shares = {}

    def address(self, end, path=0):
        return f'10.{path}.{end + 1}.2'

    # -- Making it ------------------------------------------------------------------------------------

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *reason):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for name in [*self.names, self.router, self.cable]:
            subprocess.run(['ip', 'netns', 'delete', name], capture_output=True)

    def make(self):
        for name in [*self.names, self.router, self.cable]:
            ip('netns', 'add', name)
            ip('-n', name, 'link', 'set', 'lo', 'up')
        run('ip', 'netns', 'exec', self.router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1',
            'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.default.rp_filter=0')
        for name in self.names:  # No connection of TCP profits from what an earlier one has learnt.
            run('ip', 'netns', 'exec', name, 'sysctl', '-qw', 'net.ipv4.conf.all.rp_filter=0',
                'net.ipv4.conf.default.rp_filter=0', 'net.ipv4.tcp_no_metrics_save=1')
        for end in range(self.ends):
            for path in range(self.paths):
                self.join(end, path)
        if self.relay:
            self.make_detour()
        if self.far:
            self.delay(0)
        self.misbehave()

    def veth(self, one, name_one, other, name_other):
        """A cable whose packets are single ones. Packets that a relay takes up need their checksums."""
        ip('link', 'add', name_one, 'netns', one, 'mtu', str(self.mtu), 'type', 'veth', 'peer', 'name', name_other,
           'netns', other, 'mtu', str(self.mtu))
        checksums = ['tx', 'off'] if other == self.cable else []
        for name, interface in ((one, name_one), (other, name_other)):
            ip('-n', name, 'link', 'set', interface, 'up')
            run('ip', 'netns', 'exec', name, 'ethtool', '-K', interface, 'tso', 'off', 'gso', 'off',
                'tx-udp-segmentation', 'off', *checksums)

    def join(self, end, path):
        name, near = f'p{path}', f'p{path}e{end}'
        if self.far and (end, path) == (0, 0):
            self.veth(self.names[end], name, self.cable, 'far0')
            self.veth(self.router, near, self.cable, 'far1')
        else:
            self.veth(self.names[end], name, self.router, near)
        ip('-n', self.router, 'address', 'add', f'10.{path}.{end + 1}.1/24', 'dev', near)
        ip('-n', self.names[end], 'address', 'add', f'{self.address(end, path)}/24', 'dev', name)
        ip('-n', self.names[end], 'route', 'add', f'10.{path}.0.0/16', 'via', f'10.{path}.{end + 1}.1')
        if self.router_processors:
            mask = sum(1 << processor for processor in self.router_processors)
            run('ip', 'netns', 'exec', self.router, 'sh', '-c',
                f'echo {mask:x} > /sys/class/net/{near}/queues/rx-0/rps_cpus')
        if self.megabits and (self.slow is None or end in self.slow):
            run('tc', '-n', self.router, 'qdisc', 'add', 'dev', near, 'root', 'tbf', 'rate', f'{self.megabits}mbit',
                'burst', f'{BURST}kb', 'limit', f'{self.queue_kb}kb')

    def make_detour(self):
        """Marked packets leave the router by `late0`, and come back by `late1` some time later."""
        self.veth(self.router, 'late0', self.cable, 'detour0')
        self.veth(self.router, 'late1', self.cable, 'detour1')
        back = json.loads(ip('-n', self.router, '-j', 'link', 'show', 'late1'))[0]['address']
        ip('-n', self.router, 'address', 'add', '10.255.0.1/24', 'dev', 'late0')
        ip('-n', self.router, 'neighbour', 'add', '10.255.0.2', 'lladdr', back, 'dev', 'late0', 'nud', 'permanent')
        ip('-n', self.router, 'route', 'add', 'default', 'via', '10.255.0.2', 'dev', 'late0', 'table', '100')
        ip('-n', self.router, 'rule', 'add', 'fwmark', '1', 'lookup', '100')

    # -- Misbehaving ----------------------------------------------------------------------------------

    def misbehave(self, lose=0.0, mark=0.0, late=0.0, late_us=200):
        """From now on: shares of the packets that are lost, get a congestion mark, and are overtaken by those of
        the next late_us. Connections of TCP are made undisturbed: none takes a second longer by chance."""
        if late:
            self.carry('late', ['detour0', 'detour1'], late_us, self.detour_processor)
        self.shares = {'lose': lose, 'mark': mark, 'late': late}
        self.apply()

    def cut(self, path, end=1):
        """Nothing that goes by this cable of that end arrives any more, either way, and nobody is told."""
        self.dead.add((path, end))
        self.apply()

    def mend(self):
        self.dead.clear()
        self.apply()

    def spread(self, end):
        """From now on packets to this end's first address, and those from it, go by all its cables: the ports of UDP
        say which."""
        there = [f'nexthop via {self.address(end, path)} dev p{path}e{end} onlink' for path in range(self.paths)]
        # A nexthop whose device has the source address is preferred, so all have it.
        back = [f'nexthop via 10.0.{end + 1}.1 dev p{path} onlink' for path in range(self.paths)]
        for path in range(1, self.paths):
            ip('-n', self.names[end], 'address', 'replace', f'{self.address(end)}/24', 'dev', f'p{path}', 'noprefixroute')
        for name, target, hops in ((self.router, f'{self.address(end)}/32', there),
                                   (self.names[end], '10.0.0.0/16', back)):
            run('ip', 'netns', 'exec', name, 'sysctl', '-qw', 'net.ipv4.fib_multipath_hash_policy=1')
            ip('-n', name, 'route', 'replace', target, *' '.join(hops).split())

    def unspread(self, end):
        subprocess.run(['ip', '-n', self.router, 'route', 'delete', f'{self.address(end)}/32'], capture_output=True)
        ip('-n', self.names[end], 'route', 'replace', '10.0.0.0/16', 'via', f'10.0.{end + 1}.1', 'dev', 'p0')
        for path in range(1, self.paths):
            subprocess.run(['ip', '-n', self.names[end], 'address', 'delete', f'{self.address(end)}/24', 'dev',
                            f'p{path}'], capture_output=True)

    def carried(self, end):
        """Bytes that went to this end, by each of its cables."""
        links = [json.loads(ip('-n', self.router, '-s', '-j', 'link', 'show', f'p{path}e{end}'))[0]
                 for path in range(self.paths)]
        return [link['stats64']['tx']['bytes'] for link in links]

    def delay(self, microseconds):
        """Of the far cable, each way."""
        self.carry('far', ['far0', 'far1'], microseconds)

    def apply(self):
        def drawn(what):
            return f'numgen random mod {SHARES} < {round(self.shares[what] * SHARES)}'
        before, forward = [], []
        if self.shares['late']:
            before += [f'iifname != "late1" ip protocol udp {drawn("late")} meta mark set 1',
                       f'iifname != "late1" tcp flags & syn == 0 {drawn("late")} meta mark set 1']
        for path, end in self.dead:
            forward += [f'iifname "p{path}e{end}" drop', f'oifname "p{path}e{end}" drop']
        forward += ['oifname "late0" accept', 'tcp flags & syn == syn accept']
        if self.shares['lose']:
            forward += [f'{drawn("lose")} drop']
        if self.shares['mark']:
            forward += [f'ip ecn != not-ect {drawn("mark")} ip ecn set ce']
        rules = ['table ip bad', 'delete table ip bad', 'table ip bad {',
                 'chain before { type filter hook prerouting priority -150;', *before, '}',
                 'chain forward { type filter hook forward priority 0;', *forward, '}', '}']
        run('ip', 'netns', 'exec', self.router, 'nft', '-f', '-', text='\n'.join(rules) + '\n')

    def carry(self, what, interfaces, microseconds, processor=None):
        """A relay between two interfaces, anew."""
        if not self.relay:
            raise Unavailable('a delay takes bench/delay')
        old = self.relays.pop(what, None)
        if old:
            old.terminate()
            self.relayed[what] = json.loads(old.communicate()[0])
            self.processes.remove(old)
        pinned = [] if processor is None else ['taskset', '-c', str(processor)]
        relay = self.start_in(self.cable, [*pinned, self.relay, *interfaces, str(microseconds)])
        self.relays[what] = relay
        if relay.stdout.readline() != 'ready\n':
            raise Unavailable(f'{self.relay}: {relay.stderr.read()[:200]}')

    # -- Using it -------------------------------------------------------------------------------------

    def start_in(self, name, args, **how):
        process = subprocess.Popen(['ip', 'netns', 'exec', name, *args], text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **how)
        self.processes.append(process)
        return process

    def start(self, end, args, **how):
        """A program at this end. It is killed with what it started when the network goes, or by `stop`."""
        return self.start_in(self.names[end], args, **how)

    def stop(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.processes.remove(process)

    def seen(self, packets=20000, path=0, ports=1, told_by=0):
        """The faults that single datagrams from end 0 to end 1 really suffer: shares lost, overtaken and marked, by
        how many they are overtaken (median), and milliseconds of the shortest round trip. The receiver reports over a
        path that must not be cut."""
        server = self.start(1, [sys.executable, '-c', RECEIVER])
        try:
            server.stdout.readline()
            client = self.start(0, [sys.executable, '-c', SENDER, self.address(1, path), self.address(1, told_by),
                                    str(packets), str(ports)])
            output, errors = client.communicate(timeout=60)
            self.processes.remove(client)
            if client.returncode:
                raise Unavailable(errors[-200:])
        finally:
            self.stop(server)
        said = json.loads(output)
        numbers, highest, behind = said['numbers'], -1, []
        for number in numbers:
            if number < highest:
                behind.append(highest - number)
            highest = max(highest, number)
        return {'lost': 1 - len(numbers) / packets, 'late': len(behind) / packets, 'marked': said['marked'] / packets,
                'behind': statistics.median(behind) if behind else 0, 'round_trip_ms': said['round_trip_ms']}


# Echoes a datagram of one byte; tells the numbers of the longer ones, in the order of their arrival, to who asks
# by TCP, and how many had a congestion mark.
RECEIVER = """
import json, select, socket, struct
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    udp.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
except OSError:
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
udp.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
udp.bind(('', 7))
tcp = socket.socket()
tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
tcp.bind(('', 7))
tcp.listen()
print('ready', flush=True)
numbers, marked = [], 0
while True:
    ready = select.select([udp, tcp], [], [])[0]
    if udp in ready:
        data, information, _, sender = udp.recvmsg(2048, 64)
        if len(data) == 1:
            udp.sendto(data, sender)
        else:
            numbers.append(struct.unpack_from('>I', data)[0])
            marked += information[0][2][0] & 3 == 3
    elif tcp in ready:
        tcp.accept()[0].sendall(json.dumps([numbers, marked]).encode())
        break
"""
SENDER = """
import json, socket, struct, sys, time
host, other, packets, ports = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(ports)]
for udp in sockets:
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
    udp.connect((host, 7))
udp.settimeout(0.05)
times = []
for _ in range(20):
    began = time.perf_counter()
    udp.send(b'x')
    try:
        udp.recv(10)
        times.append(time.perf_counter() - began)
    except OSError:
        pass
for number in range(packets):
    sockets[number % ports].send(struct.pack('>I', number) + bytes(1000))
    if number % 50 == 49:
        time.sleep(0.0005)
time.sleep(0.3)
tcp = socket.create_connection((other, 7))
data = b''
while piece := tcp.recv(65536):
    data += piece
numbers, marked = json.loads(data)
print(json.dumps({'numbers': numbers, 'marked': marked, 'round_trip_ms': min(times) * 1000 if times else None}))
"""
