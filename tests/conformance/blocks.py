"""Connections of the block transport: both ends come to speak it, and they use several ways at once."""
import os
import re
import signal
import statistics
import subprocess
import time

import harness
from harness import Failure, alone, free_port, pair, shared_address, start, test, wait_for_listener
from namespaces import Namespaces

WRITES = ['ib_write_bw', '-d', 'nonic0', '-F', '-s', '65536']
# The soak's network: worse than BAD_NETWORK.
SOAK = 'drop=0.01,dup=0.01,reorder=0.01,corrupt=0.01,seed='


def spoken(run, tries=5):
    """The output of programs whose counters show that they had streams of blocks. A peer that does not answer within
    20 ms, for want of a processor say, is taken for a stranger that speaks RC alone: hence several tries."""
    for _ in range(tries):
        output = run()
        if re.search(r'^nonic: +block_streams [1-9]', output, re.M):
            return output
    raise Failure(f'no stream of blocks:\n{output[-3000:]}')


def speaks(options):
    spoken(lambda: pair([*WRITES, '-n', '200'], 'block', ['--stats', *options]))


def soak(wire, seed, *options):
    """EXA-106: two processes, random operations both ways, every byte compared."""
    program = os.path.join(harness.arguments.build, 'tests', 'integrity', 'integrity')
    output = spoken(lambda: alone([program, '--seed', str(seed), '--ops', '400'], wire,
                                  ['--stats', '--fault', f'{SOAK}{seed}', *options]))
    if not re.search(r'retransmitted_pkts [1-9]', output) or not re.search('drop_wrong_icrc [1-9]', output):
        raise Failure(f'nothing was lost:\n{output[-3000:]}')


def stand_still(end):
    """A program that is stopped for a while, several times: its peer cannot tell that from dead cables."""
    for pause in (0.05, 0.08, 0.11):
        os.killpg(end.pid, signal.SIGSTOP)
        time.sleep(pause)
        os.killpg(end.pid, signal.SIGCONT)
        time.sleep(0.3)


def two_cables(cut=None, pauses=False):
    """EXA-100: connections of two NICs with two interfaces each use both; one that is cut costs no error, and a peer
    that pauses none of the cables."""
    with Namespaces(4200, cables=2) as both:
        port = free_port()
        args = [*WRITES, '-D', '4', '-u', '14', '-p', port]
        devices = ['--device', 'rdma0,rdma1', '--paths', '2']
        ends = [start(args, 'block', devices, both.inside[0])]
        try:
            wait_for_listener(port, ends[0])
            ends.append(start([*args, '10.77.0.1'], 'block', devices, both.inside[1]))
            harness.wait_for_traffic(ends[1], 5000)
            if pauses:
                stand_still(ends[0])
            before = [both.carried(cable) for cable in (0, 1)]
            if cut == 0:
                both.mute(0)
            elif cut is not None:
                both.cut(cut)
            outputs = [harness.finish(end, 60) for end in reversed(ends)]
        finally:
            for end in ends:
                end.kill()
        if any(end.returncode for end in ends):
            raise Failure('\n'.join(output[-1500:] for output in outputs))
        carried = [both.carried(cable) - first for cable, first in enumerate(before)]
        used = [carried[cable] for cable in (0, 1) if cable != cut]
        if min(used) < sum(carried) / 10:
            raise Failure(f'the cables carried {carried}')


def long_cut():
    """A cable that is cut for longer than the proof of its addresses lasts (5 s) is used again within 11 s."""
    with Namespaces(4200, cables=2) as both:
        port = free_port()
        args = [*WRITES, '-D', '28', '-u', '14', '-p', port]
        devices = ['--device', 'rdma0,rdma1', '--paths', '2', '--stats']
        ends = [start(args, 'block', devices, both.inside[0])]
        try:
            wait_for_listener(port, ends[0])
            ends.append(start([*args, '10.77.0.1'], 'block', devices, both.inside[1]))
            harness.wait_for_traffic(ends[1], 5000)
            both.cut(1)
            time.sleep(9)
            both.mend(1)
            time.sleep(12)
            before = both.carried(1)
            outputs = [harness.finish(end, 90) for end in reversed(ends)]
            carried = both.carried(1) - before
        finally:
            for end in ends:
                end.kill()
    if any(end.returncode for end in ends) or carried < 1000000:
        raise Failure(f'the cable carried {carried}\n' + '\n'.join(output[-1500:] for output in outputs))


def marked():
    """Blocks may be marked instead of dropped by a router whose queue grows (ECN): who receives counts the marks, and
    who sends hears of them and has less under way."""
    with Namespaces(4200) as both:
        windows = [marked_window(both, every) for every in (False, True)]
    if windows[1] > windows[0] / 2:
        raise Failure(f'without marks a window of {windows[0]} bytes, with marks on all packets {windows[1]}')


def marked_window(both, every):
    """The sender's, while every packet that may have a mark arrives with one, or none does. The median of several
    looks: a long queue makes the window fall and rise again without marks, too."""
    if every:
        mark_arrivals(both.inside[0])
    port = free_port()
    args = [*WRITES, '-D', '3', '-p', port]
    devices = ['--device', 'rdma0', '--stats']
    ends = [start(args, 'block', devices, both.inside[0])]
    try:
        wait_for_listener(port, ends[0])
        ends.append(start([*args, '10.77.0.1'], 'block', devices, both.inside[1]))
        harness.wait_for_traffic(ends[1], 5000)
        time.sleep(0.5)
        looks = looks_at(both.inside[1])
        outputs = [harness.finish(end, 60) for end in reversed(ends)]
    finally:
        for end in ends:
            end.kill()
    if bool(re.search(r'^nonic: +ecn_marked [1-9]', outputs[1], re.M)) != every:
        raise Failure(f'marked: {every}\n{outputs[1]}')
    return statistics.median(looks)


def looks_at(inside):
    """Windows while the programs run, which is for 3 s: a busy machine looks a few times only."""
    looks = []
    while len(looks) < 11:
        try:
            looks.append(window_of(inside))
        except Failure:
            if len(looks) < 3:
                raise
            break
    return looks


def window_of(inside):
    time.sleep(0.1)
    told = subprocess.run([*inside, harness.nonic(), 'stat', '--connections'], env=harness.environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    row = re.search(r'^ +\d+ +block +\S+ +\d+ +\d+ +\d+ +(\d+)', told, re.M)
    if not row:
        raise Failure(f'no connection of blocks:\n{told}')
    return int(row[1])


def mark_arrivals(inside, family='ip'):
    rules = [f'table {family} marks {{', 'chain arrivals {', 'type filter hook prerouting priority 0;',
             f'{family} ecn != not-ect {family} ecn set ce', '}', '}']
    subprocess.run([*inside, 'nft', '-f', '-'], input='\n'.join(rules), text=True, check=True)


def tests():
    test('blocks: congestion marks', marked, alone=True)
    test('blocks: both ends speak it', speaks, [], smoke=True)
    # EXA-102: requests, answers and data reach the one of two processes that they are for.
    test('blocks: both ends speak it on one address', speaks, ['--device', shared_address()], smoke=True)
    for seed in range(1, 9 if harness.arguments.full else 4):
        test(f'blocks: soak, --seed {seed}', soak, 'block', seed)
        # EXA-109: from RC to blocks while both sides are in the middle of their work.
        test(f'blocks: soak, from RC on, --seed {seed}', soak, 'udp', seed, '--transport', 'auto')
    test('blocks: two cables', two_cables)
    test('blocks: two cables, and a peer that pauses', two_cables, None, True)
    for cut in 0, 1:
        test(f'blocks: two cables, number {cut} is cut', two_cables, cut)
    if harness.arguments.full:
        test('blocks: two cables, one is cut for long', long_cut)
