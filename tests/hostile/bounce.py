#!/usr/bin/env python3
"""A peer that wants its victim to send to somebody else: it names a stranger's address as its own, or asks for data
at an address where it does not listen.

Usage: bounce.py PEER STRANGER liar|reader|welcomer    the peer itself, in a namespace: the victim's line on stdin
"""
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Failure, nonic, test
from namespaces import Namespaces
from network import PROBE, ROCE_PORT, Forger, bth

READ, DATA, BLOCK_PROBE, HELLO, WELCOME, CHALLENGE = 0xc6, 0xc8, 0xca, 0xcb, 0xcc, 0xcd
FLOW_ANSWER = 0xc1
QPN, NONCE, BLOCKS, BLOCK_BYTES = 0x123456, 0xabcdef01, 16, 64 * 1024
HEADERS = 28  # Of IPv4 and UDP.
SECONDS = 3
PEER, STRANGER = '127.5.5.5', '127.6.6.6'


class Peer:
    """Speaks blocks as far as it has to. It counts the packets that arrive: at its own address, and at the
    stranger's."""

    def __init__(self, peer, stranger, victim):
        address, qpn, rkey, memory = victim.split()
        self.forger, self.peer = Forger(address), peer
        self.qpn, self.rkey, self.memory = int(qpn), int(rkey), int(memory)
        self.sockets = [self.listen(peer), self.listen(stranger)]
        self.gid = bytes(10) + b'\xff\xff' + socket.inet_aton(stranger)
        self.sent, self.arrived, self.data, self.most = 0, [0, 0], 0, 0
        self.challenges = []
        self.honest = False

    @staticmethod
    def listen(address):
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        listener.bind((address, ROCE_PORT))
        return listener

    def send(self, opcode, rest, tsn=0):
        self.forger.send(self.peer, bth(opcode, self.qpn, tsn), rest)
        self.sent += HEADERS + 12 + len(rest) + 4

    def greet(self, opcode, nonce, psn):
        self.send(opcode, struct.pack('>BBBBIIIHH', 1, 1 << 4, 3, 4, nonce, psn, QPN, 64, 64) + bytes(12) + self.gid)

    def ask(self, tsn):
        """The first blocks again, each by another path: whether they were executed or not."""
        for number in range(BLOCKS):
            self.send(READ, struct.pack('>IIII', NONCE, number, number, 63 << 20 | (number == BLOCKS - 1) << 19 |
                                        number % 4 << 8 | 1) +
                      struct.pack('>QIIQ', self.memory, self.rkey, BLOCKS * BLOCK_BYTES, (1 << 64) - 1), tsn + number)

    def take(self, at, packet):
        self.arrived[at] += HEADERS + len(packet)
        self.most = max(self.most, len(packet)) if at else self.most
        opcode = packet[0]
        if opcode == DATA and not at:
            self.data += 1
        elif opcode == CHALLENGE and at:
            self.challenges.append(packet[16:24].hex())
        elif opcode == PROBE and not at and self.honest:
            self.send(FLOW_ANSWER, packet[12:24])
        elif opcode == HELLO and not at:
            self.greet(WELCOME, *struct.unpack_from('>II', packet, 16))

    def listen_until(self, end):
        while (left := end - time.time()) > 0:
            for ready in select.select(self.sockets, [], [], left)[0]:
                self.take(self.sockets.index(ready), ready.recv(65536))

    def read(self):
        """Says, too, that each path is dead: the way back is to be another one."""
        self.greet(HELLO, NONCE, 0)
        self.listen_until(time.time() + 0.2)
        for path in range(4):
            self.send(BLOCK_PROBE, struct.pack('>IIII', NONCE, 0, 0, path << 8 | 1), path)
        end, tsn = time.time() + SECONDS, 100
        while time.time() < end:
            self.ask(tsn)
            tsn += BLOCKS
            self.listen_until(time.time() + 0.1)


def play(peer, stranger, role):
    player = Peer(peer, stranger, sys.stdin.readline())
    player.honest = role == 'reader'
    print('ready', flush=True)
    sys.stdin.readline()
    if role == 'welcomer':
        player.listen_until(time.time() + SECONDS)
    else:
        player.read()
    print(json.dumps({'sent': player.sent, 'back': player.arrived[0], 'astray': player.arrived[1],
                      'most': player.most, 'data': player.data, 'challenges': player.challenges}))


def meet(role, options=()):
    """The peer's counts."""
    program = os.path.join(harness.arguments.build, 'tests', 'hostile', 'bounced')
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'text': True}
    with Namespaces(ends=1) as net:
        writes = ['writes'] if role == 'welcomer' else []
        victim = subprocess.Popen([*net.inside[0], nonic(), 'run', '--wire', 'udp', *options, '--', program, *writes],
                                  env=harness.environment(), **pipes)
        peer = subprocess.Popen([*net.inside[0], sys.executable, __file__, PEER, STRANGER, role], **pipes)
        try:
            peer.stdin.write(victim.stdout.readline())
            peer.stdin.flush()
            if peer.stdout.readline() != 'ready\n':
                raise Failure('the peer does not start')
            victim.stdin.write(f'{PEER} {QPN} 1\n')
            victim.stdin.flush()
            if victim.stdout.readline() != 'connected\n':
                raise Failure('the victim does not connect')
            output = peer.communicate('go\n', timeout=60)[0]
            return json.loads(output)
        finally:
            victim.kill()
            victim.communicate()
            peer.kill()
            peer.communicate()


def names_a_stranger(role, *options):
    """The stranger gets challenges alone, few, small, all with one number; it is not told of what was asked."""
    found = meet(role, options)
    if not 1 <= len(found['challenges']) <= 16 or len(set(found['challenges'])) != 1 or found['most'] != 28:
        raise Failure(f'challenges: {found}')
    if found['astray'] != len(found['challenges']) * (HEADERS + 28) or found['astray'] > 3 * found['sent']:
        raise Failure(f'the stranger got {found}')


def asks_and_is_silent(*options):
    """A peer that proves nothing gets at most three times what it has sent. The victim sends nothing by itself."""
    found = meet('liar', options)
    if found['data'] != 0 or found['back'] + found['astray'] > 3 * found['sent']:
        raise Failure(f'a silent peer got {found}')


def answers_probes(*options):
    """One that knows no challenges, as an earlier nonic, reads at its first address."""
    found = meet('reader', options)
    if found['data'] < 64 or found['astray'] > 16 * (HEADERS + 28):
        raise Failure(f'{found}')


def tests():
    for transport in 'auto', 'block':
        options = ['--transport', transport]
        test(f'{transport}: a peer names a stranger, and reads', names_a_stranger, 'liar', *options)
        test(f'{transport}: a peer reads, and does not show that it is there', asks_and_is_silent, *options)
        test(f'{transport}: a peer that knows no challenges reads', answers_probes, *options)
    test('block: a peer names a stranger, and is written to', names_a_stranger, 'welcomer', '--transport', 'block')


if __name__ == '__main__':
    play(*sys.argv[1:])
