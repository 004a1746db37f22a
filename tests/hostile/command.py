"""What `nonic stat` shows, with names that strangers hold."""
import json
import os
import subprocess

from harness import Failure, Skipped, nonic, test

STRANGER = 65534  # A user who is neither us nor root.
BYSTANDER = 65533
UNPRINTABLE = '\x1b]0;owned\x07\x1b[2Jpretend'

# Holds names of `nonic stat` and says terminal escapes to whoever connects. The first name is never
# accepted from, and its queue is full.
LIAR = """
import os, select, socket, sys
listeners = []
for i in range(COUNT):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(b'\\0nonic-stat/%d' % (FIRST + i))
    s.listen(0 if i == 0 else 64)
    listeners.append(s)
callers = []
while FULL:
    callers.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    callers[-1].setblocking(False)
    try:
        callers[-1].connect(listeners[0].getsockname())
    except BlockingIOError:
        break
print('ready', flush=True)
while True:
    for s in select.select(listeners[1:], [], [])[0]:
        caller, _ = s.accept()
        try:
            caller.send(TEXT)
        except OSError:
            pass
        caller.close()
"""
TEXT = (f'device {UNPRINTABLE} \u009b31m\nsent_pkts 5\n{UNPRINTABLE} 7\n' + 'x' * 300 + ' 1\n'
        'rcvd_pkts nine\nduplicate_request 18446744073709551616\n').encode()


def need_root():
    if os.geteuid() != 0:
        raise Skipped('only root can be two users')


def liar(user, count, first, full):
    """A process of that user that holds so many names, once it does."""
    text = (LIAR.replace('COUNT', str(count)).replace('FIRST', str(first)).replace('FULL', str(full))
            .replace('TEXT', repr(TEXT)))
    process = subprocess.Popen(['/usr/bin/python3', '-c', text], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True, user=user, cwd='/')
    process.stdout.readline()
    return process


def stat(args, user, seconds=60):
    """What `nonic stat` says to this user, who is not to wait for ever."""
    try:
        return subprocess.run([nonic(), 'stat', *args], capture_output=True, text=True, user=user,
                              timeout=seconds, errors='replace')
    except subprocess.TimeoutExpired:
        raise Failure(f'nonic stat: no end after {seconds} s')
    except PermissionError:
        raise Skipped('another user cannot reach the build directory')


def check_printable(done):
    for text in (done.stdout, done.stderr):
        bad = sorted({c for c in text if not c.isprintable() and c != '\n'})
        if bad:
            raise Failure(f'unprintable {bad!r} in {text!r}')


def strangers_are_left_out():
    """Another user's names cost no time, whether anybody answers there or not, and are not believed."""
    need_root()
    holder = liar(STRANGER, 900, 3000001, True)
    try:
        done = stat([], BYSTANDER)
        check_printable(done)
        if 'pretend' in done.stdout or 'of other users' not in done.stderr or done.returncode != 1:
            raise Failure(f'status {done.returncode}: {done.stdout!r} {done.stderr!r}')
        named = stat(['3000002'], BYSTANDER)
        if 'of other users' not in named.stderr or named.stdout:
            raise Failure(f'by name: {named.stdout!r} {named.stderr!r}')
    finally:
        holder.kill()
        holder.communicate()


def a_liar_is_cleaned(user, says):
    """Whoever may be shown is shown without control characters, and only what can be a counter."""
    holder = liar(user, 2, 3100001, True)
    try:
        done = stat(['3100001', '3100002'], None)
        check_printable(done)
        if 'sent_pkts' not in done.stdout or says not in done.stdout:
            raise Failure(f'{done.stdout!r} {done.stderr!r}')
        for word in ('xxxx', 'rcvd_pkts', 'duplicate_request'):
            if word in done.stdout:
                raise Failure(f'{word} is shown: {done.stdout!r}')
        if '1 that did not answer' not in done.stderr:
            raise Failure(f'who was left out: {done.stderr!r}')
        counters = json.loads(stat(['--json', '3100002'], None).stdout)[0]['counters']
        if list(counters) != ['device', 'sent_pkts'] or counters['sent_pkts'] != 5:
            raise Failure(f'as JSON: {counters}')
    finally:
        holder.kill()
        holder.communicate()


def liar_of_a_stranger():
    need_root()
    a_liar_is_cleaned(STRANGER, ' of user ')


def liar_of_ours():
    a_liar_is_cleaned(None, '3100002')


def tests():
    test("nonic stat: names of another user's are left out", strangers_are_left_out)
    test("nonic stat: root sees another user's, without control characters", liar_of_a_stranger)
    test('nonic stat: control characters of a program of ours', liar_of_ours)
