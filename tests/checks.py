"""For the tests of nonic's own commands: which nonic, and one line for each thing that was looked at.

A runner says what it is with `nonic_of`, calls `check`, and ends with `finish`. Programs that run against each
other over a network have tests/harness.py instead.
"""
import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
counted = {True: 0, False: 0}


def nonic_of(description):
    """The build that --build names, and the path of its nonic."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--build', default='build', help='a build directory')
    build = parser.parse_args().build
    return build, os.path.join(ROOT, build, 'tools', 'nonic')


def check(what, good, shown=''):
    good = bool(good)
    counted[good] += 1
    print(f'{what:<70} {"ok" if good else "FAIL"}')
    if not good:
        print('    ' + str(shown)[:2000].replace('\n', '\n    '))


def finish():
    print(f'{counted[True]} passed, {counted[False]} failed')
    sys.exit(counted[False] > 0)
