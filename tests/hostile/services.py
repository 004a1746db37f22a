"""Claims on services of the connection manager, management datagrams that come in, and the last messages of a process
that ends."""
import os
import random
import re
import socket
import subprocess
import sys

import harness
from harness import Failure, Skipped, finish, start, test, wait_for_service

NOBODY = '65534'
AS_ANOTHER_USER = ('setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups')


def need_root():
    if os.geteuid() != 0:
        raise Skipped('only root can become another user')


def random_port():
    """One that no other test of this run is given, nor the next one: a client would meet another test's server."""
    while True:
        port = random.randrange(20000, 32000, 2)
        if port not in harness.ports:
            harness.ports.add(port)
            return port


def rping(role, port, wire='auto', inside=()):
    return start(['rping', role, '-p', str(port), '-a', '127.0.0.1', '-C', '3', '-v'], wire, inside=inside)


def serve_and_ask(server, client):
    """The server of rping, then the client, which reaches it."""
    port = random_port()
    serving = rping('-s', port, **server)
    try:
        wait_for_service(port, serving)
        asking = rping('-c', port, **client)
        said = finish(asking, 60)
        if asking.returncode or said.count('ping data: rdma-ping-') != 3:
            raise Failure(f'the client ends with {asking.returncode}:\n{said[-1500:]}')
    finally:
        if serving.poll() is None:
            serving.kill()
        serving.communicate()


# Holds the abstract name, and answers whoever asks that the address given serves the port.
MISLEAD = """
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(bytes.fromhex(sys.argv[1]))
listener.listen(64)
owner = bytes(10) + bytes(2 * [255]) + socket.inet_aton(sys.argv[2])
print('ready', flush=True)
while True:
    asker, _ = listener.accept()
    try:
        asker.send((0x6e6f6e6963706f73).to_bytes(8, 'little') + owner + (-1).to_bytes(4, 'little', signed=True)
                   + bytes(4))
    except OSError:
        pass
    asker.close()
"""


def mislead(name, address):
    """Another user's process that claims a name which is none of its business."""
    process = subprocess.Popen([*AS_ANOTHER_USER, sys.executable, '-c', MISLEAD, name.hex(), address],
                               stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != 'ready\n':
        process.wait()
        raise Failure('the attacker does not get the name')
    return process


def another_user_at_a_more_special_name():
    """A server listens at any address; another user binds the name of one address of the same port."""
    need_root()
    port = random_port()
    attacker = None
    serving = start(['rping', '-s', '-p', str(port), '-C', '3'], 'auto')
    try:
        wait_for_service(port, serving)
        address = bytes(10) + b'\xff\xff' + bytes((127, 0, 0, 1))
        attacker = mislead(b'\0nonic/port/0106/%d/' % port + address.hex().encode(), '127.66.66.66')
        asking = rping('-c', port)
        said = finish(asking, 60)
        if asking.returncode or said.count('ping data: rdma-ping-') != 3:
            raise Failure(f'the client was led astray, {asking.returncode}:\n{said[-1500:]}')
    finally:
        if attacker is not None:
            attacker.kill()
            attacker.wait()
        serving.kill()
        serving.communicate()


def server_of_another_user(wire):
    need_root()
    serve_and_ask({'wire': wire, 'inside': AS_ANOTHER_USER}, {'wire': wire})


def client_of_another_user(wire):
    need_root()
    serve_and_ask({'wire': wire}, {'wire': wire, 'inside': AS_ANOTHER_USER})


def attacker(name):
    return os.path.join(harness.arguments.build, 'tests', 'hostile', name)


def served_in_a_flood():
    """Two programs share an address; requests for ports that nobody serves pour in, and whoever asks for
    one that is served gets it. They come from another address, so that all go through one socket."""
    address = f'127.253.{random.randrange(256)}.{random.randrange(1, 255)}'
    port = random_port()
    servers = [start(['rping', '-s', '-P', '-p', str(port + i), '-a', address], 'udp', ['--device', address])
               for i in range(2)]
    flood = None
    try:
        for i, server in enumerate(servers):
            wait_for_service(port + i, server)
        flood = subprocess.Popen([attacker('request_flood'), address, '120'], stdout=subprocess.PIPE, text=True)
        if flood.stdout.readline() != 'ready\n':
            raise Failure('no flood')
        for i in range(6):
            client = start(['rping', '-c', '-p', str(port + i % 2), '-a', address, '-C', '3'], 'udp')
            said = finish(client, 30)
            if client.returncode:
                raise Failure(f'client {i} is not served:\n{said[-1500:]}')
    finally:
        for process in (*servers, flood):
            if process is not None and process.poll() is None:
                process.kill()
                process.communicate()


# -- Last messages of a process -----------------------------------------------------------------------

def last_words(server, client):
    """Both sides of a connection on a network that loses a tenth of all packets: both have to end."""
    for _ in range(20 if harness.arguments.full else 4):
        port = random_port()
        seed = random.randrange(1, 1 << 20)
        ends = []
        try:
            ends.append(start([*server, str(port)], 'udp', ['--fault', f'drop=0.1,seed={seed}']))
            wait_for_service(port, ends[0])
            ends.append(start([*client, str(port)], 'udp', ['--fault', f'drop=0.1,seed={seed + 1}']))
            for process, name in zip(reversed(ends), ('client', 'server')):
                said = finish(process, 60)
                if process.returncode or 'hear' in process.args and 'heard: ' not in said:
                    raise Failure(f'seed {seed}: the {name} ends with {process.returncode}:\n{said[-1500:]}')
        finally:
            for process in ends:
                if process.poll() is None:
                    process.kill()
                    process.communicate()


def last_words_tests():
    test('last words: ucmatose', last_words, ['ucmatose', '-c', '5', '-C', '3', '-p'],
         ['ucmatose', '-c', '5', '-C', '3', '-s', '127.0.0.1', '-p'])
    program = attacker('last_words')
    for side, how in (('server', 'disconnect'), ('client', 'disconnect'), ('server', 'exit'), ('client', 'exit'),
                      ('server', 'reject')):
        ways = {'server': 'hear', 'client': 'hear', side: how}
        test(f'last words: the {side} ends ({how})', last_words,
             [program, 'server', ways['server']], [program, 'client', ways['client']])


# -- UDP port 4791 in other hands ---------------------------------------------------------------------

# In a network namespace of its own, as another user: it has the port at every address.
HOLD = """
import socket, time
holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
holder.bind(('0.0.0.0', 4791))
print('ready', flush=True)
time.sleep(600)
"""
RXE_IS_LOADED = ('unshare', '-m', 'sh', '-c',
                 'mount -t tmpfs none /sys/module && mkdir /sys/module/rdma_rxe && exec "$@"', 'sh')


def port_held(body, *words):
    """`body` gets the command that runs others where the port is taken."""
    need_root()
    shell = f'ip link set lo up && exec {" ".join(AS_ANOTHER_USER)} "$0" -c "$1"'
    holder = subprocess.Popen(['unshare', '-n', 'sh', '-c', shell, sys.executable, HOLD],
                              stdout=subprocess.PIPE, text=True)
    try:
        if holder.stdout.readline() != 'ready\n':
            raise Skipped('no network namespace with a loopback')
        body(('nsenter', '-t', str(holder.pid), '-n'), *words)
    finally:
        holder.kill()
        holder.communicate()


def taken_port_is_said(inside, wire, says, *options):
    process = start(['ibv_devinfo'], wire, options, inside)
    said = finish(process, 60)
    if says not in said or process.returncode == 0:
        raise Failure(f'{process.returncode}, not {says!r}:\n{said}')


def works_without_udp(inside, wire):
    """Programs that reach one another by shared memory need no UDP."""
    port = harness.free_port()
    args = ['ibv_rc_pingpong', '-g', '0', '-p', port]
    ends = [start(args, wire, (), inside)]
    try:
        harness.wait_for_listener(port, ends[0])
        ends.append(start([*args, '127.0.0.1'], wire, (), inside))
        for process in reversed(ends):
            said = finish(process, 60)
            if process.returncode:
                raise Failure(f'{process.returncode}:\n{said[-1500:]}')
    finally:
        for process in ends:
            if process.poll() is None:
                process.kill()
                process.communicate()
    serve_and_ask({'wire': wire, 'inside': inside}, {'wire': wire, 'inside': inside})
    info = subprocess.run([*inside, harness.nonic(), 'info', '--wire', wire], capture_output=True, text=True,
                          timeout=60)
    if 'UDP         none: ' not in info.stdout or '0.0.0.0:4791' not in info.stdout:
        raise Failure(f'nonic info: {info.stdout}{info.stderr}')


def stranger_without_udp(inside):
    """Shared memory does not lead to another user's program, nor does anything else: that is said."""
    port = harness.free_port()
    args = ['ibv_rc_pingpong', '-g', '0', '-p', port]
    server = start(args, 'auto', (), (*inside, *AS_ANOTHER_USER))
    try:
        harness.wait_for_listener(port, server)
        client = start([*args, '127.0.0.1'], 'auto', (), inside)
        said = [finish(process, 60) for process in (client, server)]
        if not any('there is no UDP: UDP port 4791 is taken' in output for output in said):
            raise Failure('\n'.join(said))
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()


def with_rxe(inside, wire, *words):
    taken_port_is_said((*inside, *RXE_IS_LOADED), wire, *words)


# Binds the names given, each for all 256 slots.
SQUAT = """
import socket, sys, time
held = []
for name in (f'{prefix}/{slot}' for prefix in sys.argv[1:] for slot in range(256)):
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    try:
        held[-1].bind(b'\\0' + name.encode())
        held[-1].listen(1)
    except OSError:
        pass
print('ready', flush=True)
time.sleep(600)
"""


def ring_layout():
    """Names of rings have it, so that builds that would misread one another do not meet."""
    with open(os.path.join(harness.ROOT, 'drivers', 'shm', 'shm_layout.h')) as file:
        return re.search(r'define SHM_LAYOUT +(\d+)', file.read()).group(1)


def random_address():
    return f'127.252.{random.randrange(256)}.{random.randrange(1, 255)}'


def squatted(kind, wire, says, *options):
    """Another user can keep programs from an address that is shared (a denial, no more): that is said."""
    need_root()
    address = random_address()
    name = f'nonic/{kind}/' + (bytes(10) + b'\xff\xff' + socket.inet_aton(address)).hex()
    squatter = subprocess.Popen([*AS_ANOTHER_USER, sys.executable, '-c', SQUAT, name], stdout=subprocess.PIPE,
                                text=True)
    try:
        if squatter.stdout.readline() != 'ready\n':
            raise Failure('the squatter does not get the names')
        process = start(['ibv_devinfo'], wire, ['--device', address, *options])
        said = finish(process, 60)
        if says not in said:
            raise Failure(f'{process.returncode}, not {says!r}:\n{said}')
    finally:
        squatter.kill()
        squatter.communicate()


def has_the_address(wire, *options):
    """Programs of two users never have one address, so nobody's packets are taken for another user's."""
    need_root()
    options, port = ['--device', random_address(), *options], harness.free_port()
    first = start(['ibv_ud_pingpong', '-g', '0', '-p', port], wire, options, AS_ANOTHER_USER)
    try:
        harness.wait_for_listener(port, first)
        for other in 'udp', 'auto':
            taken_port_is_said((), other, 'shared by nonic programs of another user', *options)
    finally:
        first.kill()
        first.communicate()


def port_tests():
    test("another user holds an address' slots", squatted, 'slot', 'auto', "another user's program holds the names")
    for wire, says in (('shm', 'another program holds the name'), ('auto', 'hca_id')):
        test(f'{wire}: another user holds the names of rings', squatted, f'layout-{ring_layout()}', wire, says)
        test(f'{wire}: another user holds the names of rings, a device like EFA', squatted, f'layout-{ring_layout()}', wire,
             says, '--nic', 'efa')
    for wire in ('udp', 'auto'):
        test(f"{wire}: an address that another user's program has", has_the_address, wire)
        test(f"{wire}: an address that another user's program has, a device like EFA", has_the_address, wire, '--nic', 'efa')
    for wire, options in (('udp', ()), ('udp', ('--device', '127.66.1.1')), ('auto', ('--device', '127.66.1.1')),
                          ('udp', ('--nic', 'efa'))):
        name = f'UDP port 4791 is taken, {" ".join(("--wire", wire, *options))}'
        test(name, port_held, taken_port_is_said, wire, 'taken by another program (0.0.0.0:4791)', *options)
        test(f'{name}, by rdma_rxe', port_held, with_rxe, wire, 'modprobe -r rdma_rxe', *options)
    for wire in ('shm', 'auto'):
        test(f'{wire}: programs of one user meet where UDP port 4791 is taken', port_held, works_without_udp, wire)
    test('auto: two users where UDP port 4791 is taken', port_held, stranger_without_udp)


def tests():
    port_tests()
    last_words_tests()
    test('services are found in a flood of requests for others', served_in_a_flood)
    test('a stranger at a more special name than a service', another_user_at_a_more_special_name)
    for wire in ('auto', 'udp'):
        test(f'{wire}: a server of another user', server_of_another_user, wire)
        test(f'{wire}: a client of another user', client_of_another_user, wire)
