"""Nobody reaches memory that is not, or no longer, theirs: windows, boards, process ids, unmapped pages."""
import contextlib
import mmap
import os
import re
import signal
import subprocess

import harness
import refused
from harness import Failure, Skipped


def tool(name):
    return os.path.join(harness.arguments.build, 'tests', 'hostile', name)


class Reach:
    """`reach MODE` under nonic, and what it has said so far."""

    def __init__(self, mode, wire='auto', **options):
        self.said = ''
        self.process = harness.start([tool('reach'), *mode.split()], wire, **options)
        os.set_blocking(self.process.stdout.fileno(), False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in re.findall(r'^requester (\d+)$', self.said, re.M):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def listen(self):
        with contextlib.suppress(BlockingIOError):
            self.said += os.read(self.process.stdout.fileno(), 1 << 16).decode()
        return self.said

    def expect(self, pattern, since=0, seconds=30):
        """The match, in what it said from there on."""
        harness.wait_until(lambda: re.search(pattern, self.listen()[since:], re.M) or
                           self.process.poll() is not None, seconds)
        found = re.search(pattern, self.listen()[since:], re.M)
        if not found:
            raise Failure(f"no '{pattern}' after {seconds} s:\n{self.said[-1500:]}")
        return found


def stopped_peer():
    """Wherever it is stopped in the middle of a READ. Only between the opening of its window and the system call,
    some hundred nanoseconds of a millisecond, a stop does hold a region up: until the peer goes on."""
    held = 0
    with Reach('read') as reach:
        requester = int(reach.expect(r'^requester (\d+)$').group(1))
        for _ in range(10):
            reach.expect('^round', since=len(reach.listen()))
            os.kill(requester, signal.SIGSTOP)
            harness.wait_until(lambda: state(requester) == 'T')
            asked = len(reach.listen())
            for _ in range(3):
                answer = reach.expect(r'^round \d+: (.*)\n', since=asked)
                asked += answer.end()
                if 'gone' not in answer.group(1):
                    held += 1
                    break
            os.kill(requester, signal.SIGCONT)
    if held > 3:
        raise Failure(f'{held} of 10 stops held a region up:\n{reach.said[-1500:]}')


def state(pid):
    with open(f'/proc/{pid}/stat') as file:
        return file.read().rpartition(')')[2].split()[0]


def traced_peer():
    """In a debugger it may stand in front of its copy: then no region goes, and says why; the rest goes on."""
    with Reach('read') as reach:
        requester = reach.expect(r'^requester (\d+)$').group(1)
        for _ in range(20):
            asked = reach.expect('^round', since=len(reach.listen())) and len(reach.listen())
            tracer = subprocess.Popen([tool('trace'), requester], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
            try:
                said = tracer.stdout.readline()
                if 'not traced' in said:
                    raise Skipped(said.strip())
                for _ in range(3):
                    asked += reach.expect(r'^round \d+: .*\n', since=asked).end()
                    if 'busy' in reach.said:
                        break
            finally:
                tracer.communicate('')
            reach.expect(r'^round \d+: gone', since=len(reach.listen()))
            if 'busy' in reach.said:
                reach.expect(f'^nonic: process {requester} is stopped while it reaches into')
                return
    raise Skipped('never stopped in the middle of a READ')


def stale_number(mode):
    if ' ' in mode and os.geteuid() != 0:
        raise Skipped('only root can become another user')
    with Reach(mode) as reach:
        reach.process.wait(60)
        if 'may not choose' in reach.listen():
            raise Skipped('choosing process numbers takes privileges')
        if not re.search('^memory of process .*: of another program$', reach.said, re.M) or \
                'WRITE: success' in reach.said:
            raise Failure(reach.said)


def forged_packet():
    """Beside a ring, anybody's packets by UDP do not reach the queue pair; over UDP they do (the attack works)."""
    for wire in ('udp', 'auto'):
        with Reach('listen', wire) as reach:
            source = reach.expect(r'^requester (127\.\S+)').group(1)
            target = reach.expect(r'^target (127\.\S+) qpn (\d+) psn (\d+)$').groups()
            pid = harness.children(reach.process.pid)[0]
            subprocess.run([tool('forge'), source, *target], check=True)
            if wire == 'udp':
                reach.expect('^received: success')
                continue
            harness.wait_until(lambda: counter(pid, 'drop_beside_ring') == 1 or
                               'received' in reach.listen())
            if 'received' in reach.listen() or counter(pid, 'drop_beside_ring') != 1:
                raise Failure(f'taken, or not counted:\n{reach.said}')


def counter(pid, name):
    done = subprocess.run([harness.nonic(), 'stat', '--json', str(pid)], capture_output=True, text=True)
    found = re.search(rf'"{name}": (\d+)', done.stdout)
    return int(found.group(1)) if found else 0


def device_info(wire, inside):
    process = harness.start(['ibv_devinfo'], wire, inside=inside)
    return harness.finish(process, 30), process.returncode


def no_shared_memory(inside, reason):
    """Wires that can use UDP do so; the others say what is missing."""
    output, status = device_info('auto', inside)
    if status or 'PORT_ACTIVE' not in output:
        raise Failure(f'auto: {status}\n{output}')
    output, status = device_info('shm', inside)
    if status < 0 or reason not in output:
        raise Failure(f'shm: {status}\n{output}')


def board_for_others():
    """By the descriptor that peers get, nobody can write what the process believes about itself."""
    with Reach('listen', 'shm') as reach:
        reach.expect('^target')
        boards = 0
        for pid in harness.children(reach.process.pid):
            for name in os.listdir(f'/proc/{pid}/fd'):
                path = f'/proc/{pid}/fd/{name}'
                with contextlib.suppress(OSError):
                    if 'nonic-board' in os.readlink(path):
                        boards += 1
                        expect_read_only(path)
        if boards == 0:
            raise Failure('no boards')


def expect_read_only(path):
    if not os.path.exists(path):
        raise Failure(path)
    try:
        with open(path, 'r+b', buffering=0) as file:
            mmap.mmap(file.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE).close()
    except PermissionError:
        return
    raise Failure('a board was opened again and mapped for writing')

import os
import signal

import harness
from harness import Failure, finish, start, test

USES = ('write', 'read', 'swap', 'add', 'send', 'file', 'local', 'large', 'half')

# A device is open, and then the program itself does something about SIGSEGV.
OPEN = """
import ctypes, os, signal
verbs = ctypes.CDLL('libibverbs.so.1')
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
BEFORE
assert verbs.ibv_open_device(ctypes.c_void_p(verbs.ibv_get_device_list(None)[0]))
THEN
"""


def unmapped(wire, use):
    """Registered memory is unmapped without ibv_dereg_mr. A NIC that pins pages does not notice; this one
    does, refuses what needs them, and the program lives."""
    process = harness.start([tool('unmapped'), use], wire)
    output = harness.finish(process, 60)
    if process.returncode:
        raise Failure(f'exit status {process.returncode}:\n{output[-1500:]}')


def no_growth():
    """No file may grow (ulimit -f 0): a program that reads sysfs is told, and not ended by SIGXFSZ."""
    process = harness.start(['/bin/sh', '-c', 'ulimit -f 0; exec cat /sys/class/infiniband/nonic0/node_type'], 'udp')
    output = harness.finish(process, 60)
    if process.returncode != 1 or 'File too large' not in output:
        raise Failure(f'exit status {process.returncode}:\n{output[-1500:]}')


def ends(before, then, wanted):
    """How a program ends whose own fault it is: as without us."""
    process = harness.start(['/usr/bin/python3', '-c', OPEN.replace('BEFORE', before).replace('THEN', then)], 'shm')
    output = harness.finish(process, 60)
    if process.returncode != wanted:
        raise Failure(f'exit status {process.returncode} instead of {wanted}:\n{output[-1500:]}')


def tests():
    harness.test('memory: a stopped peer holds up no deregistration', stopped_peer)
    harness.test('memory: a traced peer holds up regions, and says so', traced_peer)
    harness.test('memory: a process number that now names another process', stale_number, 'stale')
    for user in (0, 1000):
        harness.test(f'memory: a number of another user, whose former owner lies to user {user}', stale_number,
                     f'liar {user}')
    harness.test('memory: a board is for reading', board_for_others)
    harness.test('memory: a forged packet beside a ring', forged_packet)
    harness.test('memory: a limit on the size of files', no_shared_memory,
                 ('/bin/sh', '-c', 'ulimit -f 100; exec "$@"', 'sh'), 'the limit on the size of files')
    harness.test('memory: sysfs where no file may grow', no_growth)
    harness.test('memory: a kernel without memfd_create', no_shared_memory, refused.without('memfd_create', 'ENOSYS'),
                 'memfd_create: Function not implemented')
    for wire in harness.EACH_WIRE:
        for use in USES:
            harness.test(f'{wire}: unmapped memory, {use}', unmapped, wire, use, smoke=use == 'write')
    if harness.sanitizer:
        return  # It has handlers of its own.
    died = -signal.SIGSEGV
    fault, sent = 'ctypes.string_at(8)', 'os.kill(os.getpid(), signal.SIGSEGV)'
    ignore = 'signal.signal(signal.SIGSEGV, signal.SIG_IGN)'
    harness.test('a fault of the program itself ends it', ends, '', fault, died)
    harness.test('SIGSEGV from elsewhere ends a program', ends, '', sent, died)
    harness.test('a fault ends a program that ignores it', ends, ignore, fault, died)
    harness.test('SIGSEGV from elsewhere is ignored by a program that does', ends, ignore, sent, 0)
