"""What anybody on the network can send, and what interfaces do: floods, forged packets, small MTUs."""
import os
import re
import select
import socket
import struct
import subprocess
import time
import zlib

from harness import Failure, free_port, nonic, start, test

ROCE_PORT = 4791
IP_PKTINFO, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 8, 10, 2  # Linux' own; Python does not name them.
UD_SEND_ONLY, PROBE = 0x64, 0xc0
CM_QKEY = 0x80010000
DREQ = 0x15


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
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children') as children:
            self.pid = int((children.read().split() or [self.process.pid])[0])

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


def tests():
    test('a flood of probes from forged addresses', lambda: flood(send_probe, 'udp_datagrams_received'))
    test('a flood of management datagrams from forged addresses', lambda: flood(send_farewell, 'cm_sent'))
