"""`nonic run --odd`: programs that rely on what no document promises break, right ones and Debian's do not."""
import os
import random
import subprocess
import tempfile

import harness
from harness import Failure, alone, pair, test

MISTAKES = 'opcode', 'immediate', 'length', 'flag', 'source', 'vendor', 'event', 'capacity', 'late', 'pieces', 'order', \
    'between', 'grh', 'mtu', 'reads', 'inlined', 'keys', 'atomics', 'changes'
# Debian's, which rely on nothing.
PROGRAMS = ['ibv_rc_pingpong', '-g', '0', '-e', '-n', '200'], ['ib_send_bw', '-F', '-e', '-n', '500'], \
    ['ib_read_lat', '-F', '-n', '200'], ['ibv_ud_pingpong', '-g', '0', '-n', '200'], ['ib_write_bw', '-F', '-n', '500']


def build(directory):
    path = os.path.join(directory, 'odd')
    source = os.path.join(harness.ROOT, 'tests', 'conformance', 'odd.c')
    subprocess.run(['gcc', '-O1', '-w', '-I', harness.ROOT, source, '-o', path, '-libverbs', '-lpthread'], check=True)
    return path


def works_usually(program, mistake, wire):
    """On the usual device: once in three times at least, since some rely on time."""
    for left in 2, 1, 0:
        try:
            alone([program, mistake], wire)
            return
        except Failure:
            if left == 0:
                raise


def breaks(mistake, wire):
    """The same seed breaks it at the same line again; the right twin never breaks. Without --odd it works usually."""
    seed = str(random.SystemRandom().randrange(1 << 32))
    with tempfile.TemporaryDirectory() as directory:
        program, said = build(directory), []
        works_usually(program, mistake, wire)
        for _ in range(2):
            process = harness.start([program, mistake], wire, [f'--odd={seed}'])
            said.append(harness.finish(process, 30))
            if process.returncode != 1 or 'not so' not in said[-1]:
                raise Failure(f'--odd={seed}: {process.returncode}: {said[-1]}')
        if said[0] != said[1]:
            raise Failure(f'--odd={seed}: {said}')
        alone([program, mistake, 'right'], wire, [f'--odd={seed}'])


def bears(words, wire):
    seed = str(random.SystemRandom().randrange(1 << 32))
    pair(words, wire, [f'--odd={seed}'])


def tests():
    if harness.arguments.options:
        return  # Each of these is run with a seed of its own, and on the usual device.
    for wire in harness.ROCE:
        for mistake in MISTAKES:
            test(f'{wire}: nonic run --odd: {mistake}', breaks, mistake, wire, smoke=wire == 'shm')
        for words in PROGRAMS:
            test(f'{wire}: nonic run --odd: {" ".join(words)}', bears, words, wire, smoke=wire == 'udp' and '-e' in words)
