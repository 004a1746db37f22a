"""What programs do to themselves: exit in signal handlers, cancelled threads, forks, small stacks."""
import os
import tempfile

import harness
from harness import alone, test


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


def tests():
    for wire in ('shm', 'udp'):
        for what in ('cm', 'verbs', 'threads'):
            test(f'{wire}: exit() in a signal handler ({what})', exits_in_handler, wire, what)
        test(f'{wire}: threads are cancelled inside calls', cancels, wire)
        for what in ('ghost', 'anew', 'inherited'):
            test(f'{wire}: fork without exec ({what})', forks, wire, what)
            test(f'{wire}: fork without exec, shared address ({what})', forks, wire, what, '--device',
                 harness.shared_address())
