"""What programs do to themselves: exit in signal handlers, cancelled threads, forks, small stacks."""
import os

import harness
from harness import alone, test


def victim(name):
    return os.path.join(harness.arguments.build, 'tests', 'hostile', name)


def exits_in_handler(wire, what):
    alone([victim('exit_in_handler'), what, '200' if harness.arguments.full else '30'], wire, seconds=500)


def forks(wire, what, *options):
    alone([victim('fork_child'), what], wire, options, seconds=120)


def tests():
    for wire in ('shm', 'udp'):
        for what in ('cm', 'verbs', 'threads'):
            test(f'{wire}: exit() in a signal handler ({what})', lambda: exits_in_handler(wire, what))
        for what in ('ghost', 'anew', 'inherited'):
            test(f'{wire}: fork without exec ({what})', lambda: forks(wire, what))
            test(f'{wire}: fork without exec, shared address ({what})',
                 lambda: forks(wire, what, '--device', '127.0.0.77'))
