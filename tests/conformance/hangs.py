"""`nonic stat --hang` says of a program that hangs which queue pairs stand still, and what for."""
import json
import os
import re
import signal
import subprocess
import tempfile

import harness
from harness import Failure, test

# A way to hang: whose queue pair is said to, and words of the sentence.
WAYS = {
    'lost-wakeup': ('B', '1 completion came before the program asked'),
    'not-solicited': ('B', 'solicited ones only'),
    'not-polled': ('B', '1 completion lies in the queue'),
    'error-state': ('A', 'error state'),
    'no-receive': ('A', r'1 send waits for a receive: queue pair {B} of process \d+ \(hangs\) has 0 posted'),
    'peer-state': ('A', r'it waits for queue pair {B} of process \d+ \(hangs\), which takes no packets: its state is '
                        'RESET'),
    'no-answer': ('A', 'no program of yours here has queue pair'),
    'both-wait': ('AB', 'wait for each other'),
    'works': ('', ''),
}


def told(*words):
    done = subprocess.run([harness.nonic(), 'stat', '--hang', '--json', *words], capture_output=True, text=True,
                          timeout=60)
    if done.returncode:
        raise Failure(f'exit status {done.returncode}: {done.stderr}')
    return json.loads(done.stdout)


def program(directory):
    path = os.path.join(directory, 'hangs')
    source = os.path.join(harness.ROOT, 'tests', 'conformance', 'hangs.c')
    subprocess.run(['gcc', '-O1', '-w', '-I', harness.ROOT, source, '-o', path, '-libverbs'], check=True)
    return path


def hangs(way, wire):
    """The sentence is about the queue pairs that it should be about, and no other is said to hang."""
    who, words = WAYS[way]
    with tempfile.TemporaryDirectory() as directory:
        process = harness.start([program(directory), way], wire)
        try:
            first = process.stdout.readline()
            named = re.search(r'hangs (\d+) (\d+)', first)
            if named is None:
                raise Failure(first)
            numbers = dict(zip('AB', map(int, named.groups())))
            found = told(str(process.pid))[0]['hangs']
        finally:
            process.kill()
            harness.finish(process, 20)
        for finding in found:  # Another test's program may be stopped just now.
            finding['rule'] = finding['rule'].replace('silent-peer', 'no-answer')
            finding['sentence'] = finding['sentence'].replace('it waits for its peer', WAYS['no-answer'][1])
        said = {(finding['rule'], number) for finding in found for number in finding['queue_pairs']}
        if said != {(way, numbers[name]) for name in who}:
            raise Failure(f'{numbers}: {found}')
        if who and not all(re.search(words.format(**numbers), finding['sentence']) for finding in found):
            raise Failure(f'{found}')


def stopped(wire):
    """A peer that is stopped cannot say what it has."""
    port = str(harness.free_port())
    server = harness.start(['rping', '-s', '-p', port, '-C', '1000000'], wire)
    harness.wait_for_service(port, server)
    client = harness.start(['rping', '-c', '-a', '127.0.0.1', '-p', port, '-C', '1000000'], wire)
    try:
        harness.wait_for_traffic(client)
        os.kill(server.pid, signal.SIGSTOP)
        found = told(str(client.pid))[0]['hangs']
        if not any(re.search(r'process \d+ \(.*\), which is stopped', finding['sentence']) for finding in found):
            raise Failure(f'{found}')
    finally:
        for process in (client, server):
            process.kill()
            harness.finish(process, 20)


def perftest(wire):
    """ib_send_bw asks for an event, polls once with room for a part of what lies there, and sleeps. It is slower while
    it is judged, so that more lies there. If it does not hang this time, nothing is wrong with it this time."""
    port = harness.free_port()
    words = ['ib_send_bw', '-F', '-b', '-e', '-q', '16', '-n', '200', '-p', port]
    server = harness.start(words, wire, ['--check=json'])
    harness.wait_for_listener(port, server)
    client = harness.start([*words, '127.0.0.1'], wire, ['--check=json'])
    hung = not harness.wait_until(lambda: client.poll() is not None and server.poll() is not None, 6)
    said = []
    for process in client, server:
        if process.poll() is None:
            process.terminate()
        output = harness.finish(process, 20)
        said += [json.loads(line) for line in re.findall(r'{"rule".*}', output)]
    rules = {one['rule'] for one in said}
    if hung != ('hang' in rules) or hung and 'lost-wakeup' not in rules:
        raise Failure(f'{"it hangs" if hung else "it ended"}: {said}')


def tests():
    for wire in harness.EACH_WIRE:
        for way in WAYS:
            test(f'{wire}: nonic stat --hang: {way}', hangs, way, wire, smoke=wire == 'shm' or way == 'lost-wakeup')
        test(f'{wire}: nonic stat --hang: a peer that is stopped', stopped, wire)
    for wire in harness.ROCE:
        test(f'{wire}: nonic run --check: a lost wake-up of perftest', perftest, wire, smoke=wire == 'shm')
