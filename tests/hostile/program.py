"""Programs that harm themselves: exit in signal handlers, cancelled threads, forks, small stacks."""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import Failure, Skipped, alone, finish, start, test

NOBODY = 65534


def victim(name):
    return os.path.join(harness.arguments.build, 'tests', 'hostile', name)


def exits_in_handler(wire, what):
    alone([victim('exit_in_handler'), what, '200' if harness.arguments.full else '30'], wire, seconds=500)


def forks(wire, what, *options):
    alone([victim('fork_child'), what], wire, options, seconds=120)


def cancels(wire):
    if harness.sanitizer == 'asan':
        # It does not know that frames of a cancelled thread are gone, and trips over them itself.
        harness.local.place.environment['ASAN_OPTIONS'] += ':use_sigaltstack=0'
    with tempfile.TemporaryDirectory(prefix='nonic-') as directory:
        alone([victim('cancelled')], wire, ['--capture', os.path.join(directory, 'a.pcapng')])
    alone([victim('cancelled')], wire)


def captures_beyond_limit():
    """A limit on the size of files is answered by a signal, which would end the program: the capture ends alone, and
    what it has is whole packets."""
    program = os.path.join(harness.arguments.build, 'tests', 'integrity', 'integrity')
    with tempfile.TemporaryDirectory(prefix='nonic-') as directory:
        name = os.path.join(directory, 'a.pcapng')
        output = alone(['/bin/sh', '-c', 'ulimit -f 100; exec "$@"', 'sh', program, '--seed', '1', '--ops', '400'], 'udp',
                       ['--capture', name])
        with open(name, 'rb') as file:
            blocks = file.read()
    if 'the capture ends here: File too large' not in output:
        raise Failure(f'no limit was met:\n{output[-1500:]}')
    at = 0
    while at < len(blocks):
        at += int.from_bytes(blocks[at + 4:at + 8], 'little')
    if at != len(blocks) or not blocks:
        raise Failure(f'{len(blocks)} bytes, and the last block ends at {at}')


def closes(wire, how):
    """All that it does not know: the NIC keeps what it needs, and writes nothing into what comes in its place."""
    alone([victim('closes'), how], wire)


def more_rights():
    """A set-user-ID program of root, run by somebody else: whom it obeys is not that user's environment."""
    if os.geteuid() != 0:
        raise Skipped('makes a program of root and runs it as another user')
    if harness.sanitizer:
        raise Skipped('such a program does not load the runtime of a sanitizer')
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(os.path.join(harness.arguments.build, 'tests', 'hostile', 'set_user_id'), folder)
        os.chmod(program, 0o4755)
        precious = os.path.join(folder, 'precious')
        with open(precious, 'w') as file:
            file.write('of root')
        os.chmod(precious, 0o600)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            raise Skipped(f'{folder} is mounted without set-user-ID')
        for name, value in (('NONIC_WIRE', 'shm'), ('NONIC_CAPTURE', precious)):
            done = subprocess.run([program, '4096'], user=NOBODY, group=NOBODY, extra_groups=[],
                                  env={name: value}, capture_output=True, text=True, timeout=30)
            if done.returncode:
                raise Failure(f'exit status {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-500:]}')
        with open(precious, 'rb') as file:
            if file.read() != b'of root':
                raise Failure("its user's environment made it write a file of root")


def runs_out_of_memory(wire):
    if harness.sanitizer:
        raise Skipped('sanitizers have a malloc of their own')
    alone([victim('no_memory')], wire)


def few_descriptors(wire, limits, *options):
    """However few a program may have: it gets a device, or people are told why not."""
    for limit in limits:
        process = start(['/bin/sh', '-c', f'ulimit -n {limit}; exec ibv_devinfo'], wire, options)
        output = finish(process, 60)
        # Its first few descriptors a program needs itself.
        said = 'nonic: ' in output or 'error while loading shared libraries' in output
        if process.returncode < 0 or not (said or 'hca_id' in output):
            raise Failure(f'with {limit} descriptors, exit status {process.returncode}:\n{output}')


def tests():
    for wire in ('shm', 'udp'):
        for how in ('one', 'range', 'from', 'over', 'streams'):
            test(f'{wire}: a program closes what it does not know: {how}', closes, wire, how)
    for wire in harness.EACH_WIRE:
        for what in ('cm', 'verbs', 'threads'):
            test(f'{wire}: exit() in a signal handler ({what})', exits_in_handler, wire, what)
        test(f'{wire}: threads are cancelled inside calls', cancels, wire)
        test(f'{wire}: events while memory is used up', runs_out_of_memory, wire)
        for what in ('ghost', 'anew', 'inherited'):
            test(f'{wire}: fork without exec ({what})', forks, wire, what)
            test(f'{wire}: fork without exec, shared address ({what})', forks, wire, what, '--device',
                 harness.shared_address())
        test(f'{wire}: hardly any descriptors', few_descriptors, wire, range(6, 24))
        test(f'{wire}: hardly any descriptors, shared address', few_descriptors, wire, range(66, 90),
             '--device', harness.shared_address())
    test('a program with more rights than its user', more_rights)
    test('a capture beyond the limit on the size of files', captures_beyond_limit)
