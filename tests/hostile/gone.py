"""Peers that are gone are gone: those that come and go leave nothing behind, and nobody takes their place."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Failure, finish, start, test
from namespaces import Namespaces, ip
from network import ROCE_PORT, UD_SEND_ONLY, Forger, bth

QKEY = 0x11111111
STRANGER = 65534  # A user who is neither us nor root.


def tool(name):
    return os.path.join(harness.arguments.build, 'tests', 'hostile', name)


def memory_of(pid):
    with open(f'/proc/{pid}/status') as status:
        return int(status.read().partition('VmRSS:')[2].split()[0])


def grew(before, after, most):
    """By more than `most` KB. A sanitizer keeps memory that is freed, so it proves nothing."""
    return after - before > most and not harness.sanitizer


def visitors(wire, count):
    """A server has as much memory and as many descriptors after its clients as before."""
    said = finish(start([tool('visitors'), str(count)], wire), 300)
    if '{' not in said:
        raise Failure(f'it told no figures: {said}')
    figures = json.loads(said[said.index('{'):])
    before, after = figures['before'], figures['after']
    if grew(before['kilobytes'], after['kilobytes'], 1000) or after['descriptors'] - before['descriptors'] > 2:
        raise Failure(f'{count} clients left something behind: {said}')


# -- Strangers -----------------------------------------------------------------------------------


def write_from_everywhere(victim, qpn, network):
    """A datagram from each of two million addresses: NETWORK.128.0.0 and the next ones."""
    forger = Forger(victim)
    for number in range(1 << 21):
        source = f'{network}.{128 + number // 65536}.{number // 256 % 256}.{number % 256}'
        forger.send(source, bth(UD_SEND_ONLY, qpn, number), struct.pack('>II4s', QKEY, 77, b'once'))
        if number % 50 == 0:
            time.sleep(0.003)


def memory_after(server, count):
    """KB that the server has when it has got `count` datagrams; it tells each thousand."""
    said = 0
    while said < count:
        line = server.stdout.readline()
        if not line:
            raise Failure(f'the server ended after {said} datagrams')
        said = int(line)
    return memory_of(server.pid)


def strangers(options, network, inside):
    """A server that answers whoever writes, from any address, is of the same size after 10,000 more of them."""
    server = start([tool('answerer')], 'auto', options, inside)
    victim, qpn = server.stdout.readline().split()
    crowd = subprocess.Popen([*inside, sys.executable, __file__, victim, qpn, network])
    late = threading.Timer(90, server.kill)
    late.start()
    try:
        few, many = memory_after(server, 3000), memory_after(server, 13000)
    finally:
        late.cancel()
        for process in crowd, server:
            process.kill()
            process.communicate()
    if grew(few, many, 500):
        raise Failure(f'10,000 strangers made the server grow from {few} to {many} KB')


def strangers_on_loopback():
    strangers([], '127', [])


def strangers_on_interface():
    with Namespaces(ends=1) as place:
        name, inside = place.names[0], place.inside[0]
        ip('-n', name, 'address', 'add', '10.1.0.1/8', 'dev', 'lo')
        ip('-n', name, 'route', 'add', 'local', '10.128.0.0/9', 'dev', 'lo')
        strangers(['--device', '10.1.0.1'], '10', inside)


# -- The place of a peer that is gone ------------------------------------------------------------


@contextlib.contextmanager
def silent_stranger(address):
    """Another process, of another user if we may, has the address and reads nothing."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.geteuid() == 0:
            os.setuid(STRANGER)
        place = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        place.bind((address, ROCE_PORT))
        os.write(tell, b'x')
        signal.pause()
    os.close(tell)
    try:
        if os.read(ready, 1) != b'x':
            raise Failure(f'nobody else gets {address}')
        yield
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def taken_place():
    """The peer is dead, and its address is a stranger's who does not read: the SEND fails as without him."""
    survivor = start([tool('survivor')], 'udp')
    try:
        address, other = survivor.stdout.readline().split()
        os.kill(int(other), signal.SIGKILL)
        harness.wait_until(lambda: not is_there(address))
        with silent_stranger(address):
            survivor.send_signal(signal.SIGUSR1)
            said = finish(survivor, 20)
    finally:
        survivor.kill()
    if 'transport retry counter exceeded' not in said:
        raise Failure(f'it ended otherwise: {said}')


def is_there(address):
    """Has anybody the address?"""
    text = socket.inet_aton(address)[::-1].hex().upper() + f':{ROCE_PORT:04X}'
    with open('/proc/net/udp') as sockets:
        return any(line.split()[1] == text for line in sockets)


def tests():
    for wire in ('shm', 'udp'):
        test(f'{wire}: 300 clients come and go', visitors, wire, 300)
    test('datagrams from 13,000 loopback addresses are answered', strangers_on_loopback)
    test('datagrams from 13,000 addresses of a network are answered', strangers_on_interface)
    test('udp: a stranger at the address of a peer that was killed', taken_place)


if __name__ == '__main__':
    write_from_everywhere(sys.argv[1], int(sys.argv[2]), sys.argv[3])
