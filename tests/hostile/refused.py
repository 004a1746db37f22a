"""A filter of system calls refuses one of them: what docs/system-calls.md says happens, with each errno."""
import errno
import os
import re
import time

import harness
from harness import Failure, alone, finish, start, test

ERRORS = ('EPERM', 'EACCES', 'EINVAL', 'ENOSYS')
FAMILIES = {'AF_UNIX': 1, 'AF_NETLINK': 16}


def numbers():
    with open('/usr/include/x86_64-linux-gnu/asm/unistd_64.h') as file:
        return {name: int(number) for name, number in re.findall(r'#define __NR_(\w+) (\d+)', file.read())}


def without(call, error, first=None):
    """A command that runs others where the call, with this first argument if one is named, is answered so."""
    argument = '' if first is None else f',{first}'
    return (os.path.join(harness.arguments.build, 'tests', 'hostile', 'without'), f'{numbers()[call]}{argument}',
            str(getattr(errno, error)))


def rows():
    """Of docs/system-calls.md: the calls of a row, and what happens without them."""
    with open(os.path.join(os.path.dirname(__file__), '..', '..', 'docs', 'system-calls.md')) as file:
        found = re.findall(r'^\| ((?:`\w+`(?:, )?)+) \| [^|]+ \| (goes on|UDP|told)', file.read(), re.M)
    for names, outcome in found:
        for call in re.findall(r'\w+', names):
            yield call, outcome


def goes_on(wire, *refused):
    """Every byte is right, and no retry was needed for it, whose timeouts would take seconds."""
    program = os.path.join(harness.arguments.build, 'tests', 'integrity', 'integrity')
    for error in ERRORS:
        alone([program, '--ops', '60', '--qps', '2'], wire, inside=without(refused[0], error, *refused[1:]), seconds=60)


def is_told(wire, *refused):
    for error in ERRORS:
        process = start(['ibv_devinfo'], wire, inside=without(refused[0], error, *refused[1:]))
        output = finish(process, 30)
        told = re.search(f'^nonic: .*{re.escape(os.strerror(getattr(errno, error)))}', output, re.M)
        if process.returncode < 0 or 'hca_id' in output or not told:
            raise Failure(f'{error}: exit status {process.returncode}:\n{output[-1500:]}')


def sleeps(call):
    """A program that waits for events, of which there are none, leaves the processor alone."""
    for error in ERRORS:
        process = start(['ibv_asyncwatch'], 'auto', inside=without(call, error))
        try:
            process.stdout.readline()
            before = ticks(process.pid)
            time.sleep(1)
            spent = ticks(process.pid) - before
        finally:
            process.kill()
            process.communicate()
        if spent > 30:
            raise Failure(f'{error}: {spent} of 100 ticks')


def looks_at_files():
    for error in ERRORS:
        alone(['stat', '/dev', '/sys/class/infiniband/nonic0/node_type'], 'auto', inside=without('faccessat', error))


def ticks(pid):
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rpartition(')')[2].split()
    return int(fields[11]) + int(fields[12])


def tests():
    if harness.sanitizer:
        return  # Their runtimes make calls of their own.
    cases = [((call,), outcome) for call, outcome in rows()]
    cases += [(('socket', FAMILIES['AF_UNIX']), 'UDP'), (('socket', FAMILIES['AF_NETLINK']), 'goes on')]
    for refused, outcome in cases:
        name = ' of family '.join(map(str, refused))
        for wire in ('shm', 'udp') if outcome == 'goes on' else ('auto', 'udp') if outcome == 'UDP' else ():
            test(f'{wire}: refused: {name}', goes_on, wire, *refused, smoke=wire == 'shm')
        if outcome != 'goes on':
            wire = 'shm' if outcome == 'UDP' else 'auto'
            test(f'{wire}: refused, and told: {name}', is_told, wire, *refused)
    test('auto: refused, and files: faccessat', looks_at_files)
    for call in ('epoll_pwait2', 'nanosleep', 'ppoll'):
        test(f'auto: refused, and asleep: {call}', sleeps, call)
