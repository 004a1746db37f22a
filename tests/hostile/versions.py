"""Two versions of nonic on one machine: they work together, or the user is told that they do not. Processes play
another version: they hold its names and answer as it would."""
import random
import socket
import subprocess
import sys

import harness
from harness import Failure, finish, nonic, start, test

OTHER_RINGS = 'speaks another version of shared memory'
OWNER = (0x6e6f6e6963706f73).to_bytes(8, 'little')  # "nonicpos": how an answer of the owner of a port begins.

# Holds the abstract names given, and says the bytes given to whoever connects to one of them.
HOLD = """
import select, socket, sys
says = bytes.fromhex(sys.argv[1])
listeners = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in sys.argv[2:]]
for listener, name in zip(listeners, sys.argv[2:]):
    listener.bind(b'\\0' + name.encode())
    listener.listen(64)
print('ready', flush=True)
while True:
    for listener in select.select(listeners, [], [])[0]:
        caller, _ = listener.accept()
        try:
            caller.send(says)
        except OSError:
            pass
        caller.close()
"""


class Holder:
    def __init__(self, says, *names):
        self.process = subprocess.Popen([sys.executable, '-c', HOLD, says.hex(), *names],
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != 'ready\n':
            raise Failure(f'cannot hold {names}')

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def some_address():
    return f'127.251.{random.randrange(256)}.{random.randrange(1, 255)}'


def gid(address):
    return (bytes(10) + b'\xff\xff' + socket.inet_aton(address)).hex()


def check(process, seconds, status, *texts):
    said = finish(process, seconds)
    if status not in (None, process.returncode) or any(text not in said for text in texts):
        raise Failure(f'status {process.returncode}, not {status}, or does not say {texts}:\n{said[-1500:]}')
    return said


def rings_are_told(prefix):
    """A program is told at its start: of two that do not meet, the other one may fail first."""
    address = some_address()
    with Holder(b'', f'nonic/{prefix}{gid(address)}') as pid:
        check(start(['ibv_devinfo', '-v'], 'shm'), 60, 0, f'process {pid} {OTHER_RINGS}')
        said = check(start(['ibv_devinfo', '-v'], 'auto'), 60, 0)
        if OTHER_RINGS in said:
            raise Failure(f'--wire auto needs no word of it:\n{said}')


def connection_ends(datagrams):
    """The owner of a port is found, and no ring leads to it. The client is told, and does not wait for a
    minute until its requests have been repeated in vain."""
    address, port = some_address(), random.randrange(20000, 32000)
    owner = OWNER + bytes.fromhex(gid(address)) + (-1).to_bytes(4, 'little', signed=True) + bytes(4)
    space = '0111' if datagrams else '0106'
    args = ['udaddy', '-s'] if datagrams else ['rping', '-c', '-C', '1', '-a']
    port = 7174 if datagrams else port  # udaddy has one port only.
    words = [] if datagrams else ['-p', str(port)]
    with Holder(owner, f'nonic/port/{space}/{port}/{gid("127.0.0.1")}', f'nonic/{gid(address)}') as pid:
        process = start([*args, '127.0.0.1', *words], 'shm')
        said = check(process, 40, None, f'process {pid} {OTHER_RINGS}')
        if process.returncode == 0 and 'event' not in said:
            raise Failure(f'the client does not notice:\n{said}')


def answer_of_another_version():
    port = random.randrange(20000, 32000)
    with Holder(b'9opcinon' + bytes(40), f'nonic/port/0106/{port}/any4') as pid:
        process = start(['rping', '-c', '-C', '1', '-a', '127.0.0.1', '-p', str(port)], 'auto')
        said = check(process, 40, None, f'process {pid} has the port', 'of another version of nonic')
        if process.returncode == 0:
            raise Failure(f'the client does not notice:\n{said}')


def share_of_another_version():
    address = some_address()
    with Holder(b'CSHARE9\0' + bytes(100), f'nonic/share/{gid(address)}'):
        check(start(['ibv_devinfo'], 'auto', ['--device', address]), 60, None,
              f'{address} is shared by nonic programs of another version')


def stat_of_another_version():
    """Builds that do not name the version of their answer are understood; one that is newer is left out."""
    number = 3200000 + random.randrange(100000)
    for text, shown in (('device X\nsent_pkts 7\n', True), ('device X\nstat_version 1\nsent_pkts 7\n', True),
                        ('device X\nstat_version 2\nsent_pkts 7\n', False),
                        ('device X\nstat_version new\nsent_pkts 7\n', False)):
        with Holder(text.encode(), f'nonic-stat/{number}'):
            done = subprocess.run([nonic(), 'stat', str(number)], capture_output=True, text=True, timeout=60)
        left_out = '1 of a later version of nonic' in done.stderr
        if ('sent_pkts' in done.stdout) != shown or left_out == shown or 'stat_version' in done.stdout:
            raise Failure(f'{text!r}: {done.stdout!r} {done.stderr!r}')


def own_stat():
    """A program of this build names the version, which older builds take for a counter."""
    port = harness.free_port()
    server = start(['ibv_rc_pingpong', '-g', '0', '-p', port], 'udp')
    try:
        harness.wait_for_listener(port, server)
        name = b'\0nonic-stat/%d' % server.pid
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
            asker.connect(name)
            said = asker.recv(8192)
        if b'\nstat_version 1\n' not in said:
            raise Failure(f'{said!r}')
    finally:
        server.kill()
        server.communicate()


def tests():
    for name, prefix in (('the first version', ''), ('a later version', 'layout-99/')):
        test(f'shm: rings of {name} are told', rings_are_told, prefix, lock='versions')
    for name, datagrams in (('rping', False), ('udaddy', True)):
        test(f'shm: {name}, a server with other rings', connection_ends, datagrams, lock='versions')
    test('a port whose owner is of another version', answer_of_another_version)
    test('an address shared by another version', share_of_another_version)
    test('nonic stat: programs of other versions', stat_of_another_version, lock='stat')
    test('nonic stat: a program names the version of its answer', own_stat)
