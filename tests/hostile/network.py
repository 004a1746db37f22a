"""Attacks of anybody on the network, and accidents of interfaces: floods, forged packets, small MTUs."""
import contextlib
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
import zlib

import harness
from harness import Failure, finish, free_port, nonic, start, test, wait_for_listener, wait_until
from namespaces import Namespaces, ip

ROCE_PORT = 4791
IP_PKTINFO, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 8, 10, 2  # Linux' own; Python does not name them.
UD_SEND_ONLY, PROBE = 0x64, 0xc0
CM_QKEY = 0x80010000
REQ, DREQ = 0x10, 0x15


class Forger:
    """Sends packets whose ICRC is right from any loopback address, as an ordinary user may."""

    def __init__(self, victim):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Do not fragment: the identification is 0, as the ICRC has it.
        self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        self.socket.bind(('0.0.0.0', 0))
        self.port = self.socket.getsockname()[1]
        self.victim = victim
        self.to = socket.inet_aton(victim)

    def send(self, source, bth, rest):
        """`source` in dotted form. The bytes that routers change count as ones (IBTA A17.3.3)."""
        size = len(bth) + len(rest) + 4
        addresses = socket.inet_aton(source) + self.to
        ip = struct.pack('>BBHHHBBH', 0x45, 0xff, 28 + size, 0, 0x4000, 0xff, 17, 0xffff) + addresses
        udp = struct.pack('>HHHH', self.port, ROCE_PORT, 8 + size, 0xffff)
        masked = b'\xff' * 8 + ip + udp + bth[:4] + b'\xff' + bth[5:] + rest
        packet = bth + rest + struct.pack('<I', zlib.crc32(masked))
        information = struct.pack('=I', 0) + socket.inet_aton(source) + bytes(4)
        self.socket.sendmsg([packet], [(socket.IPPROTO_IP, IP_PKTINFO, information)], 0,
                            (self.victim, ROCE_PORT))


def bth(opcode, qpn, psn=0):
    return struct.pack('>BBHII', opcode, 0, 0xffff, qpn, psn)


def management_datagram(attribute, number):
    """Of the connection manager; all its fields are 0 but for our communication ID."""
    mad = bytes([1, 7, 2, 3]) + bytes(4) + struct.pack('>QHHI', number, attribute, 0, 0)
    mad += struct.pack('>I', number)
    return struct.pack('>II', CM_QKEY, 1) + mad + bytes(256 - len(mad))


def source_of(number):
    return f'127.{200 + number // 62500}.{number // 250 % 250}.{1 + number % 250}'


class Victim:
    """A program that waits for a peer, and says where."""

    def __init__(self, options=()):
        self.process = start(['stdbuf', '-oL', 'ibv_rc_pingpong', '-g', '0', '-p', free_port()],
                             'udp', options)
        self.address = None
        end = time.time() + 30
        while self.address is None and time.time() < end and self.process.poll() is None:
            if select.select([self.process.stdout], [], [], 1)[0]:
                found = re.search(r'GID ::ffff:([\d.]+)', self.process.stdout.readline())
                self.address = found and found.group(1)
        if self.address is None:
            self.end()
            raise Failure('the victim does not start')
        self.pid = self.process.pid

    def counter(self, name):
        output = subprocess.run([nonic(), 'stat', str(self.pid)], capture_output=True, text=True, timeout=30)
        found = re.search(rf'\b{name}\s+(\d+)', output.stdout)
        return int(found.group(1)) if found else 0

    def kilobytes(self):
        with open(f'/proc/{self.pid}/status') as status:
            return int(re.search(r'VmRSS:\s+(\d+)', status.read()).group(1))

    def end(self):
        self.process.kill()
        self.process.communicate()


def flood(send, name):
    """Many packets from many sources, as fast as the victim takes them in, grow it by nothing. The first
    ones may: tables are touched, and pages of the library."""
    victim = Victim()
    try:
        forger = Forger(victim.address)
        sizes = []
        for rounds in (4, 24):
            for number in range(rounds):
                for i in range(1000):
                    send(forger, number * 1000 + i)
                received = victim.counter(name)  # It answers in its turn: a socket holds some thousand.
            sizes.append(victim.kilobytes())
        if received < 2000:
            raise Failure(f'only {received} packets were looked at ({name})')
        if sizes[1] - sizes[0] > 1500:
            raise Failure(f'{received} packets made it grow from {sizes[0]} to {sizes[1]} KB')
    finally:
        victim.end()


def send_probe(forger, number):
    forger.send(source_of(number // 256), bth(PROBE, 2), struct.pack('>QHH', 1, 0xffff, number % 256))


def send_farewell(forger, number):
    """The end of a connection that there is not: the answer goes to whoever sent it."""
    forger.send(source_of(number), bth(UD_SEND_ONLY, 1, number), management_datagram(DREQ, number + 1))


# -- Interfaces ---------------------------------------------------------------------------------------

class Cable(Namespaces):
    """With a program at each end."""

    def pair(self, args, between=lambda server: None):
        """A server at 10.77.0.1, and its client; what is between the two happens when the server waits."""
        port = free_port()
        args = [*args, '-p', port]
        server = start(args, 'udp', ['--device', 'rdma0'], self.inside[0])
        try:
            wait_for_listener(port, server)
            between(server)
            client = start([*args, '10.77.0.1'], 'udp', ['--device', 'rdma0'], self.inside[1])
            output = finish(client, 60)
            other = finish(server, 60)
            if client.returncode or server.returncode:
                raise Failure(f'client {client.returncode}:\n{output[-1500:]}\n'
                              f'server {server.returncode}:\n{other[-1500:]}')
            return output
        finally:
            server.kill()
            server.communicate()


# Prints the flags with the fragment offset, and the identification, of what is sent to the RoCE port.
SNIFFER = """
import socket, struct
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
packets.bind(('rdma0', 0))
print('ready', flush=True)
while True:
    packet = packets.recv(65536)
    if packet[9] == 17 and struct.unpack_from('>H', packet, 22)[0] == 4791:
        print(*struct.unpack_from('>HH', packet, 4), flush=True)
"""


def unfragmented():
    """The IP header's fields that the ICRC covers: Do not Fragment, and an identification that is 0 or, within one
    segmented call, counts from there."""
    with Cable() as cable:
        sniffer = subprocess.Popen([*cable.inside[1], sys.executable, '-c', SNIFFER], text=True,
                                   stdout=subprocess.PIPE)
        try:
            sniffer.stdout.readline()
            cable.pair(['ibv_rc_pingpong', '-g', '0', '-s', '8192', '-n', '500'])
        finally:
            sniffer.kill()
            lines = sniffer.communicate()[0].split('\n')[:-1]
        seen = [tuple(map(int, line.split())) for line in lines]
        if len(seen) < 20:  # The sniffer is slower than the programs.
            raise Failure(f'only {len(seen)} packets were seen')
        bad = [(number, fragment) for number, fragment in seen if fragment != 0x4000 or number >= 64]
        if bad:
            raise Failure(f'(identification, flags) of {len(bad)} packets: {bad[:10]}')


# An ICMP message as a router would send it: the packet from 10.77.0.1 was too large, only 600 bytes pass.
def request(source, target, port):
    """A REQ for a reliable connection to a port of RDMA_PS_TCP, with the addresses of librdmacm (annex A11)."""
    gids = [bytes(10) + b'\xff\xff' + socket.inet_aton(ip) for ip in (source, target)]
    req = struct.pack('>IIQQQ', 77, 0, 0x01060000 | port, 1, 0)
    req += struct.pack('>IIII', 78 << 8, 0, 20 << 3, 20 << 3 | 7)
    req += struct.pack('>HBBHH', 0xffff, 3 << 4 | 7, 15 << 4, 0xffff, 0xffff) + gids[0] + gids[1]
    req = (req + bytes([0, 0, 0, 0, 0, 64, 0, 18 << 3])).ljust(140, b'\0')
    addresses = b''.join(bytes(12) + socket.inet_aton(ip) for ip in (source, target))
    mad = bytes([1, 7, 2, 3]) + bytes(4) + struct.pack('>QHHI', 99, REQ, 0, 0)
    mad += req + bytes([0, 0x40]) + struct.pack('>H', 45000) + addresses
    return struct.pack('>II', CM_QKEY, 1) + mad.ljust(256, b'\0')


def amplified():
    """One request from a forged address to a program that accepts: who has the address gets no more than three
    times its bytes, however long the program waits, and when it ends."""
    stranger, target, port = '127.9.9.9', harness.shared_address(), free_port()
    server = start(['rping', '-s', '-P', '-a', target, '-p', port], 'udp', ['--device', target])
    received = 0
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
            ear.bind((stranger, ROCE_PORT))
            ear.settimeout(1)

            def listens():
                with open('/proc/net/unix') as names:
                    return f'/{port}/' in names.read()
            if not wait_until(listens):
                raise Failure('the server does not listen')
            time.sleep(0.2)
            Forger(target).send(stranger, bth(UD_SEND_ONLY, 1, 1), request(stranger, target, int(port)))
            end = time.time() + 6
            while time.time() < end:
                if time.time() > end - 2:
                    server.terminate()
                with contextlib.suppress(socket.timeout):
                    received += len(ear.recv(9000)) + 28
    finally:
        server.kill()
        server.communicate()
    if not 308 <= received <= 3 * 308:
        raise Failure(f'308 bytes brought {received} to somebody else')


TOO_LARGE = """
import socket, struct
def checksum(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
addresses = socket.inet_aton('10.77.0.1') + socket.inet_aton('10.77.0.2')
ip = struct.pack('>BBHHHBBH', 0x45, 0, 1084, 0, 0x4000, 64, 17, 0) + addresses
udp = struct.pack('>HHHH', 4791, 4791, 1064, 0)
body = struct.pack('>BBHHH', 3, 4, 0, 0, 600) + ip + udp
body = body[:2] + struct.pack('>H', checksum(body)) + body[4:]
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).sendto(body, ('10.77.0.1', 0))
"""


def forged_icmp():
    """Anybody can say that packets are too large. The kernel believes it; we do not."""
    with Cable() as cable:
        def forge(_server):
            subprocess.run([*cable.inside[1], sys.executable, '-c', TOO_LARGE], check=True)

            def believed():
                return 'mtu 600' in ip('-n', cable.names[0], 'route', 'get', '10.77.0.2')
            if not wait_until(believed):
                raise Failure('the forged message did not arrive')
        cable.pair(['ibv_rc_pingpong', '-g', '0', '-m', '1024', '-s', '8192', '-n', '50'], forge)


def small_loopback(wire, options, mtu, active):
    """The port's MTU follows the interface's, though it is the loopback; more is refused, by whichever wire
    packets go."""
    with Cable(ends=1) as cable:
        ip('-n', cable.names[0], 'link', 'set', 'lo', 'mtu', str(mtu))
        victim = os.path.join(harness.arguments.build, 'tests', 'hostile', 'too_large')
        one = start([victim, str(active)], wire, options, cable.inside[0])
        output = finish(one, 30)
        if one.returncode:
            raise Failure(f'exit status {one.returncode}:\n{output[-1500:]}')
        port = free_port()
        args = ['ibv_rc_pingpong', '-g', '0', '-s', '8192', '-n', '100', '-m', str(min(active, 1024)), '-p', port]
        server = start(args, wire, options, cable.inside[0])
        try:
            wait_for_listener(port, server)
            client = start([*args, '127.0.0.1'], wire, options, cable.inside[0])
            output = finish(client, 60)
            if client.returncode:
                raise Failure(f'exit status {client.returncode}:\n{output[-1500:]}')
        finally:
            server.kill()
            server.communicate()


def tests():
    test('a flood of probes from forged addresses', lambda: flood(send_probe, 'udp_datagrams_received'))
    test('a flood of management datagrams from forged addresses', lambda: flood(send_farewell, 'cm_sent'))
    test('a request from a forged address is not amplified', amplified)
    test('packets are not fragmented and number themselves from 0', unfragmented)
    test('a forged ICMP message that packets are too large', forged_icmp)
    for wire in ('shm', 'udp'):
        test(f'{wire}: an MTU of 1280 on the loopback', small_loopback, wire, [], 1280, 1024)
        test(f'{wire}: an MTU of 600 on the loopback, shared', small_loopback, wire,
             ['--device', '127.0.0.1'], 600, 256)
    test('udp: an MTU of 9000 on the loopback', small_loopback, 'udp', [], 9000, 4096)
