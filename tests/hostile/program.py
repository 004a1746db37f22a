"""What programs do to themselves: exit in signal handlers, cancelled threads, forks, small stacks."""
import os

import harness
from harness import alone, test


def victim(name):
    return os.path.join(harness.arguments.build, 'tests', 'hostile', name)


def exits_in_handler(wire, what):
    alone([victim('exit_in_handler'), what, '200' if harness.arguments.full else '30'], wire, seconds=500)


def tests():
    for wire in ('shm', 'udp'):
        for what in ('cm', 'verbs', 'threads'):
            test(f'{wire}: exit() in a signal handler ({what})', lambda: exits_in_handler(wire, what))
