"""The command `nonic` against names that strangers hold, and programs that nonic cannot enter."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time

import harness
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
        'rcvd_pkts nine\nduplicate_request 18446744073709551616\n'
        f'program rounds={UNPRINTABLE}\nqp qpn=7 state={UNPRINTABLE} sends=1 peer_qpn=9 peer=\u009b31m\n'
        'qp\nqp qpn\n').encode()


def need_root():
    if os.geteuid() != 0:
        raise Skipped('only root can be two users')


def liar(user, count, first, full):
    """A process of `user` that holds `count` names; returns when it holds them."""
    text = (LIAR.replace('COUNT', str(count)).replace('FIRST', str(first)).replace('FULL', str(full))
            .replace('TEXT', repr(TEXT)))
    process = subprocess.Popen(['/usr/bin/python3', '-c', text], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True, user=user, cwd='/')
    process.stdout.readline()
    return process


def stat(args, user, seconds=60):
    """The output of `nonic stat` for this user, who is not to wait for ever."""
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
    """A process that may be shown is shown without control characters, and with possible counters only."""
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
        done = stat(['--hang', '3100002'], None)
        check_printable(done)
        if 'queue pair 7: ' not in done.stdout or done.returncode != 0:
            raise Failure(f'--hang: {done.stdout!r} {done.stderr!r}')
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


# -- Programs that the library cannot be loaded into ------------------------------------------------

EXIT_0 = bytes.fromhex('31ff b83c000000 0f05')  # xor edi,edi; mov eax,60; syscall


def program(path, interpreter=None, at=0x400000, machine=62):
    """Writes a program of one segment, for x86-64 (62) unless told, which ends with status 0."""
    name = (interpreter or '').encode() + b'\0'
    count = 2 if interpreter else 1
    start = 64 + 56 * count
    size = start + len(EXIT_0) + len(name)
    ident = b'\x7fELF\x02\x01\x01' + bytes(9)
    text = ident + struct.pack('<HHIQQQIHHHHHH', 2, machine, 1, at + start, 64, 0, 0, 64, 56, count, 0, 0, 0)
    if interpreter:
        text += struct.pack('<IIQQQQQQ', 3, 4, start + len(EXIT_0), 0, 0, len(name), len(name), 1)
    text += struct.pack('<IIQQQQQQ', 1, 5, 0, at, at, size, size, 4096)
    with open(path, 'wb') as file:
        file.write(text + EXIT_0 + name)
    os.chmod(path, 0o755)
    return path


def in_directory(body):
    with tempfile.TemporaryDirectory(prefix='nonic-hostile-') as directory:
        os.chmod(directory, 0o755)
        body(directory)


def run(args, says, status=0, **others):
    """`nonic run` says that (None: nothing) and ends so (None: in any way)."""
    others.setdefault('env', harness.environment())
    try:
        done = subprocess.run([nonic(), 'run', '--', *args], capture_output=True, text=True, timeout=60,
                              **others)
    except PermissionError:
        raise Skipped('another user cannot reach the build directory')
    said = says in done.stderr if says else 'nonic:' not in done.stderr
    if not said or status not in (None, done.returncode):
        raise Failure(f'{args}: status {done.returncode}, not {status}, or does not say {says!r}: '
                      f'{done.stderr!r}')


def static_program(directory):
    static = program(f'{directory}/static')
    run([static], 'linked statically')
    run(['static'], 'linked statically', env=harness.environment(PATH=f'/nowhere:{directory}'))
    with open(f'{directory}/script', 'w') as file:
        file.write(f'#!{static} -x\n')
    os.chmod(file.name, 0o755)
    run([file.name], f'{static} is linked statically')


def foreign_program(directory):
    loader = program(f'{directory}/ld-musl-x86_64.so.1', at=0x600000)
    run([program(f'{directory}/foreign', loader)], 'another C library')
    run([program(f'{directory}/lost', f'{directory}/ld-gone.so')], 'another C library', 127)
    run([program(f'{directory}/arm', machine=183)], 'not a program for x86-64', None)


def ordinary_programs(directory):
    """They run on nonic, without a warning."""
    run(['true'], None)
    run(['/bin/sh', '-c', 'exit 3'], None, 3)
    run(['/lib64/ld-linux-x86-64.so.2', '/bin/true'], None)
    for text, name in (('#!/usr/bin/env sh\nexit 4\n', 'script'), ('exit 4\n', 'bare')):
        with open(f'{directory}/{name}', 'w') as file:
            file.write(text)
        os.chmod(file.name, 0o755)
        run([file.name], None, 4)
    if os.geteuid() == 0:
        shutil.copy('/bin/true', f'{directory}/privileged')
        os.chmod(f'{directory}/privileged', 0o4755)
        run([f'{directory}/privileged'], None)


def privileged_program(directory):
    """The loader keeps LD_PRELOAD out of these; found through PATH as well."""
    need_root()
    env = {'PATH': directory}
    for mode in (0o4755, 0o2755):
        shutil.copy('/bin/true', f'{directory}/privileged')
        os.chmod(f'{directory}/privileged', mode)
        run(['privileged'], 'gains privileges', user=STRANGER, group=STRANGER, env=env)
        run([f'{directory}/privileged'], 'gains privileges', user=STRANGER, group=STRANGER)
    shutil.copy('/bin/true', f'{directory}/able')
    os.chmod(f'{directory}/able', 0o755)
    # Permitted and effective: CAP_NET_RAW, as ping has it.
    os.setxattr(f'{directory}/able', 'security.capability',
                struct.pack('<IIIII', 0x02000001, 1 << 13, 0, 0, 0))
    run(['able'], 'gains privileges', user=STRANGER, group=STRANGER, env=env)


def no_proc():
    """Where /proc is missing, the reason is given."""
    done = subprocess.run(['unshare', '-rm', 'sh', '-c',
                           f'mount -t tmpfs none /proc && exec {nonic()} run -- true'],
                          capture_output=True, text=True, timeout=60)
    if 'mount' in done.stderr and 'nonic' not in done.stderr or 'unshare' in done.stderr:
        raise Skipped(done.stderr.strip())
    if '/proc is not mounted' not in done.stderr or done.returncode != 1:
        raise Failure(f'status {done.returncode}: {done.stderr!r}')


def prefix_in(directory):
    """nonic as it is installed there; its library."""
    place, library = f'{directory}/lib/nonic', f'{directory}/lib/nonic/libibverbs.so.1'
    os.makedirs(f'{directory}/bin')
    os.makedirs(place)
    shutil.copy(nonic(), f'{directory}/bin')
    shutil.copy(os.path.join(os.path.dirname(nonic()), '..', 'verbs', 'libibverbs.so.1'), library)
    return library


def is_refused(directory, says, before=(), **others):
    """The program is not started, and one line says why."""
    done = subprocess.run([*before, f'{directory}/bin/nonic', 'run', '--', 'echo', 'started'], capture_output=True,
                          text=True, timeout=60, **others)
    if says not in done.stderr or len(done.stderr.splitlines()) != 1 or done.stdout or done.returncode != 1:
        raise Failure(f'status {done.returncode}: {done.stdout!r} {done.stderr!r}')


def unloadable_path(directory):
    """LD_PRELOAD separates names by spaces and colons."""
    for place in f'{directory}/two words', f'{directory}/two:words':
        prefix_in(place)
        is_refused(place, 'a space or a colon')


def unloadable_library(directory):
    """The loader would complain of these and run the program without nonic."""
    library = prefix_in(directory)
    for text in b'', b'no library', bytes(5000):
        with open(library, 'wb') as file:
            file.write(text)
        is_refused(directory, 'install nonic again')


def noexec_library(directory):
    need_root()
    library = prefix_in(directory)
    place = os.path.dirname(library)
    script = f'mount -t tmpfs -o noexec none {place} && cp {directory}/copy {library} && exec "$@"'
    shutil.copy(library, f'{directory}/copy')
    is_refused(directory, 'mounted with noexec', ['unshare', '-m', 'sh', '-c', script, 'sh'])


def unreadable_library(directory):
    """It is there, which is said."""
    need_root()
    library = prefix_in(directory)
    for closed in library, os.path.dirname(library), f'{directory}/lib':
        os.chmod(closed, 0o700)
        is_refused(directory, 'may not read', user=STRANGER, group=STRANGER)
        os.chmod(closed, 0o755)


def pingpong(user, port, *server):
    """One end of a pingpong whose packets may only go through shared memory."""
    return subprocess.Popen([nonic(), 'run', '--wire', 'shm', '--', 'ibv_rc_pingpong', '-g', '0', '-p', port,
                             *server], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, user=user, start_new_session=True,
                            env=harness.environment())


def is_listening(port):
    with open('/proc/net/tcp') as tcp, open('/proc/net/tcp6') as tcp6:
        return re.search(rf':{int(port):04X} \S+ 0A ', tcp.read() + tcp6.read()) is not None


def peer_of_another_user():
    """Shared memory leads only to programs of the same user, which the server (it connects its queue
    pair first) is told."""
    need_root()
    port = harness.free_port()
    try:
        server = pingpong(STRANGER, port)
    except PermissionError:
        raise Skipped('another user cannot reach the build directory')
    try:
        while server.poll() is None and not is_listening(port):
            time.sleep(0.02)
        client = pingpong(None, port, '127.0.0.1')
        said = server.communicate(timeout=60)[0]
        client.communicate(timeout=60)
        if 'of another user' not in said or '--wire auto' not in said:
            raise Failure(f'{said!r}')
    except subprocess.TimeoutExpired:
        raise Failure('no end')
    finally:
        server.kill()


def numbers_of_programs():
    for words in (['+5'], [' 5'], ['5x'], [''], ['0'], ['2147483648'], ['--watch', '+2'], ['--watch', ' 2']):
        done = subprocess.run([nonic(), 'stat', *words], capture_output=True, text=True, timeout=60)
        if done.returncode != 2 or f"'{words[-1]}'" not in done.stderr:
            raise Failure(f'nonic stat {words}: exit status {done.returncode}, {done.stderr!r}')


def tests():
    test('nonic stat: a number has no sign and no space', numbers_of_programs)
    test("nonic stat: names of another user's are left out", strangers_are_left_out, lock='stat')
    test("nonic stat: root sees another user's, without control characters", liar_of_a_stranger, lock='stat')
    test('nonic stat: control characters of a program of ours', liar_of_ours, lock='stat')
    for name, body in (('a static program', static_program), ('another C library', foreign_program),
                       ('a privileged program', privileged_program),
                       ('no warning of ordinary programs', ordinary_programs),
                       ('a path that cannot be preloaded', unloadable_path),
                       ('a library that cannot be loaded', unloadable_library),
                       ('a library on a file system with noexec', noexec_library),
                       ('a library that may not be read', unreadable_library)):
        test(f'nonic run: {name}', in_directory, body)
    test('nonic run: without /proc', no_proc)
    test('nonic run --wire shm: a peer of another user', peer_of_another_user)
