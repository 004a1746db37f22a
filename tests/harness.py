"""Shared by the programs of tests/ that run others: the command line, tests by name, which of them
run side by side, sanitizers' reports, and how processes end.

A test is a function that returns, or raises Failure or Skipped. `test` notes it; `summary` runs all that the
command line wants, several at once, and prints a line for each as it ends. Tests of one name take turns: two
that need the same thing (a fixed port, the whole machine) say so by `alone` or `lock`.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SYSTEM = os.path.join(ROOT, 'build-arm64-root')  # Debian for arm64: `dev/arm64 system` makes it.
# How packets travel, and what `nonic run` is told so that they do. In the name of a test it comes first.
WIRES = {'shm': ['--wire', 'shm'], 'udp': ['--wire', 'udp'], 'block': ['--wire', 'udp', '--transport', 'block'],
         'auto': ['--wire', 'auto']}
ROCE = 'shm', 'udp'
EACH_WIRE = *ROCE, 'block'
# Programs without reliable connections, or that look at RoCE's packets, run alike over `udp` and over `block`.
NO_BLOCKS = r'\bU[CD]\b|\bXRC\b|_u[cd]_|\bu[cd]_|xsrq|multicast|mckey|udaddy|udpong|-M |--capture'
BAD_NETWORK = 'drop=0.01,dup=0.01,reorder=0.01,corrupt=0.001,seed=7'
arguments = None
sanitizer = None  # 'asan', 'tsan' or none.
of_programs = False  # Races between threads of an unmodified program are its own affair.
noted = []
local = threading.local()  # .place: what the test that this thread runs has for itself.
locks = {}
ports = set()
turns = {}


class Failure(Exception):
    pass


class Skipped(Exception):
    """It cannot run here, for the reason given."""


class Place:
    """The resources that one running test has for itself."""

    def __init__(self):
        self.environment = dict(os.environ)
        self.outputs = []  # Of programs that ended since reports were taken.
        self.reports = tempfile.mkdtemp(prefix='nonic-reports-') if sanitizer else None
        if sanitizer:
            self.environment.update(sanitizer_environment(self.reports))
        self.findings = tempfile.mkstemp(prefix='nonic-findings-')[1] if arguments.checked else None
        if arguments.checked:
            self.environment.update(NONIC_CHECK=self.findings, LD_PRELOAD=os.path.join(arguments.build, 'verbs/nonic-freed.so'))

    def close(self):
        if self.findings:
            os.remove(self.findings)
        if self.reports:
            shutil.rmtree(self.reports)


class Test:
    def __init__(self, name, body, words, theirs, alone, lock):
        self.name, self.body, self.words = name, body, words
        self.theirs, self.alone, self.lock = theirs, alone, lock


# -- The command line ---------------------------------------------------------------------------------

def shard(text):
    match = re.fullmatch(r'(\d+)/(\d+)', text)
    if not match or int(match.group(1)) >= int(match.group(2)):
        raise argparse.ArgumentTypeError(f"'{text}' is not K/N with K from 0 to N-1")
    return int(match.group(1)), int(match.group(2))


def parse(description, **more):
    """`more`: options of one program, with what argparse wants to know of them."""
    global arguments
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--full', action='store_true', help='more seeds and sizes')
    parser.add_argument('--smoke', action='store_true', help='one test for each kind of thing')
    parser.add_argument('--one-wire', action='store_true', help='each test over one wire, in turn')
    parser.add_argument('--checked', action='store_true', help='each program as under `nonic run --check`: no errors')
    parser.add_argument('--with', action='append', default=[], dest='options', metavar='OPTION',
                        help='an option of `nonic run` for each program, as --with=--map-memory=now')
    parser.add_argument('--without', action='append', default=[], metavar='WORD',
                        help='leave tests out whose name has this word')
    parser.add_argument('--shard', type=shard, metavar='K/N', help='the Kth of N parts, from 0 on')
    parser.add_argument('--jobs', type=int, default=4, help='tests side by side (default 4)')
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'), help='a build directory')
    for name, how in more.items():
        parser.add_argument('--' + name.replace('_', '-'), **how)
    parser.add_argument('words', nargs='*', help='only tests whose name has all of these')
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    return arguments


def nonic():
    return os.path.join(arguments.build, 'tools', 'nonic')


# -- Programs of another processor --------------------------------------------------------------------

def emulator():
    """The words in front of each program of a build for another processor; none for our own."""
    return ['qemu-aarch64-static', '-L', SYSTEM] if arguments.build.endswith('-arm64') else []


def emulated(args):
    """A program's words. One that is no file of ours comes from the other processor's system."""
    if not emulator():
        return args
    path = args[0] if '/' in args[0] else os.path.join(SYSTEM, 'usr', 'bin', args[0])
    return [*emulator(), path, *args[1:]]


# -- Sanitizers ---------------------------------------------------------------------------------------

runtime = None


def use_sanitizer(theirs=False):
    """A sanitized library needs its runtime in the programs that load it. `theirs`: unmodified programs have
    races between their own threads, and go on."""
    global runtime, sanitizer, of_programs
    library = os.path.join(arguments.build, 'verbs', 'libibverbs.so.1')
    linked = subprocess.run(['ldd', library], capture_output=True, text=True).stdout
    found = re.search(r'=> (\S*/lib([at]san)\.so\S*)', linked)
    if found:
        runtime, sanitizer, of_programs = found.group(1), found.group(2), theirs


def sanitizer_environment(folder):
    """Leaks of unmodified programs are theirs. Reports go to files, so that those of killed servers and of
    children are found, too; UBSan knows no files beside ASan, and speaks among the output."""
    log = f'log_path={folder}/report'
    halt = 'halt_on_error=0:exitcode=0' if of_programs else 'halt_on_error=1'
    return {'LD_PRELOAD': runtime,
            'ASAN_OPTIONS': f'verify_asan_link_order=0:detect_leaks=0:{log}',
            'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
            # perftest -D opens files in a signal handler: its own affair.
            'TSAN_OPTIONS': f'{halt}:report_signal_unsafe=0:{log}'}


def race_of_program(report):
    """Neither thread, nor who made them, is in our library or a program of ours; or it is only how many
    reports there were."""
    ours = ['libibverbs.so.1', *os.listdir(os.path.join(arguments.build, 'tests', 'integrity'))]
    return ('ThreadSanitizer: data race' in report and not any(f'({name}+' in report for name in ours) or
            re.fullmatch(r'ThreadSanitizer: reported \d+ warnings\s*', report))


# ASan says so of programs that change stacks by themselves (QEMU's coroutines), and goes on.
CHANGES_STACKS = r"(?s)==\d+==WARNING: ASan (doesn't fully support makecontext|is ignoring requested __asan_handle_no_return).*"


def take_reports(theirs=None):
    """The sanitizers' reports of this test since the last call, but for those that match `theirs`: bugs of the
    program, met inside our library."""
    place = local.place
    said = []
    for path in sorted(glob.glob(os.path.join(place.reports, '*'))) if place.reports else []:
        with open(path, errors='replace') as file:
            said += [one for one in re.split('^={18}\n', file.read(), flags=re.M) if one.strip()]
        os.remove(path)
    for output in place.outputs:
        said += re.split(r'^(?=.*: runtime error: )', output, flags=re.M)[1:]
    place.outputs.clear()
    return [one for one in said
            if not race_of_program(one) and not re.fullmatch(CHANGES_STACKS, one) and not (theirs and re.search(theirs, one))]


# -- Findings -----------------------------------------------------------------------------------------

# Errors of --check that are no failure: the rule, the test or the places of the program, and the reason.
KNOWN = (
    ('.*', 'nonic run --|a race with|memory that is not|bytes without|under valgrind|: landing', 'mistakes that the test makes'),
    # Mistakes of programs: docs/found.md.
    ('events-overacked', '/fio', 'it acknowledges completions'),
    ('send-changed', r'( -R| meet ).*/ib_\w+\+', 'perftest -R sends from the buffer of a receive'),
    ('address', '/qperf|udpong', 'they give no GRH'),
    ('address', 'by a LID', 'so does the test'),
    ('send-changed', r'ucx_perftest .*put_', 'its numbers of messages go into a buffer that is still sent'),
    ('send-changed', '/qemu-system', 'the guest goes on while its memory is sent; what changed goes again'),
    ('address', '/rping', 'it gives a GID of its own that is of another family'),
)


def take_errors(name):
    """The errors that --check found in the programs of this test, but for those that are known."""
    with open(os.path.join(ROOT, 'checker', 'rules.h')) as file:
        errors = set(re.findall(r'RULE\(\w+, "([a-z-]+)", ERROR', file.read()))
    with open(local.place.findings, errors='replace') as file:
        lines = [dict(pair.split('=', 1) for pair in line.rstrip('\n').split('\t')[1:] if '=' in pair)
                 for line in file if line.startswith('found\t')]
    return [f'{line["rule"]}: {line["text"]} {line["at"]}' for line in lines if line['rule'] in errors and
            not any(re.fullmatch(rule, line['rule']) and re.search(where, f'{name} {line["at"]} {line["posted"]}')
                    for rule, where, _ in KNOWN)]


# -- Processes ----------------------------------------------------------------------------------------

def free_port():
    """One that nobody has, and no other test of this run will be given."""
    while True:
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        if port not in ports:
            ports.add(port)
            return str(port)


def shared_address():
    """A loopback address for the processes of one test to share."""
    return f'127.{random.randrange(64, 100)}.{random.randrange(256)}.{random.randrange(1, 255)}'


def environment(**more):
    """The environment of this test's programs."""
    return {**local.place.environment, **more}


class Program(subprocess.Popen):
    """Its children end with it: one that lives on would hold the pipe that its output comes from."""

    def communicate(self, *args, **kwargs):
        output, errors = super().communicate(*args, **kwargs)
        local.place.outputs.append(output or '')
        return output, errors

    def kill(self):
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)

    def wait_for_children(self, seconds=10):
        """Until it has none: who is killed in the middle of a report does not finish it."""
        wait_until(lambda: self.poll() is not None or not children(self.pid), seconds)


def children(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children') as file:
            return file.read().split()
    except OSError:
        return []


def wait_until(true, seconds=20, interval=0.01):
    """Whether it has become true in that time."""
    end = time.time() + seconds
    while not true():
        if time.time() > end:
            return False
        time.sleep(interval)
    return True


def listens(port, pid='self'):
    """Does anybody listen on this TCP port, in the network namespace of `pid`?"""
    wanted = f':{int(port):04X}'
    for name in ('tcp', 'tcp6'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/net/{name}') as sockets:
            for line in sockets:
                fields = line.split()
                if fields[3] == '0A' and fields[1].endswith(wanted):
                    return True
    return False


def wait_for_listener(port, server, seconds=30):
    """Until the server's TCP port is open. One that ended has said why."""
    if not wait_until(lambda: server.poll() is not None or listens(port, server.pid), seconds):
        raise Failure(f'the server does not listen on port {port}')


def packets_sent(process):
    """By a program that runs on nonic; 0 if it does not answer. It answers in its own network namespace only."""
    done = subprocess.run([*process.inside, nonic(), 'stat', '--json', str(process.pid)], capture_output=True,
                          text=True)
    found = re.search(r'"sent_pkts": (\d+)', done.stdout)
    return int(found.group(1)) if found else 0


def wait_for_traffic(process, packets=1000, seconds=30):
    """Until a program is in the middle of its transfer."""
    wait_until(lambda: process.poll() is not None or packets_sent(process) >= packets, seconds, 0.1)
    if process.poll() is not None or packets_sent(process) < packets:
        raise Failure(f'{" ".join(process.args)}: no transfer has begun, or it is over')


LISTENS = ' 00010000 '  # As /proc/net/unix writes it.


def wait_for_service(port, server, seconds=30):
    """Until a port of the connection manager is claimed: the names of claims are seen by all."""
    def claimed():
        with contextlib.suppress(OSError), open(f'/proc/{server.pid}/net/unix') as sockets:
            return any(LISTENS in line and '@nonic/port/' in line and f'/{port}/' in line
                       for line in sockets)
    if not wait_until(lambda: claimed() or server.poll() is not None, seconds):
        raise Failure(f'the server does not listen on port {port}')
    if server.poll() is not None:
        raise Failure(f'the server ended:\n{server.communicate()[0][-1500:]}')


def wait_for_datagrams(port):
    """Until somebody has this port of UDP."""
    def bound():
        for name in ('udp', 'udp6'):
            with open(f'/proc/net/{name}') as sockets:
                if any(line.split()[1].endswith(f':{int(port):04X}') for line in sockets):
                    return True
        return False
    if not wait_until(bound):
        raise Failure(f'nobody has port {port}')


def start(args, wire, options=(), inside=(), folder=None):
    """`inside`: a command that runs others, in a namespace say. `folder`: where it works."""
    words = [*inside, *emulator(), nonic(), 'run', *WIRES[wire], *arguments.options, *options, '--', *emulated(args)]
    program = Program(words, text=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      start_new_session=True, env=environment())
    program.inside = inside
    return program


def threads_of(pid):
    """A line for each thread: its name, its state, and what it waits for in the kernel."""
    for folder in sorted(glob.glob(f'/proc/{pid}/task/*')):
        with contextlib.suppress(OSError), open(f'{folder}/stat') as stat, open(f'{folder}/wchan') as wchan:
            name, _, rest = stat.read().partition(') ')
            yield f'  thread {name}): state {rest[0]}, waits in {wchan.read()}'


def standing(process):
    """Where all processes of a program's session stand, for a test that does not end; where there is gdb, with
    the innermost calls of each thread."""
    said = []
    for folder in glob.glob('/proc/[0-9]*'):
        pid = int(os.path.basename(folder))
        with contextlib.suppress(OSError):
            if os.getsid(pid) != process.pid:
                continue
            said += [f'process {pid}:', *threads_of(pid)]
            if shutil.which('gdb'):
                done = subprocess.run(['gdb', '-p', str(pid), '-batch', '-ex', 'thread apply all bt 8'],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                said += [line for line in done.stdout.splitlines() if line.startswith(('Thread', '#'))]
    return '\n'.join(said)


def finish(process, seconds, peer=None):
    """The output of a process that must end well within the time. If it does not, a failure says where it stands,
    and its peer."""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        where = standing(process) + (f'\nits peer:\n{standing(peer)}' if peer else '')
        process.kill()
        output, _ = process.communicate()
        raise Failure(f'no end after {seconds} s\n{output[-1500:]}\n{where}')
    return output


def pair(args, wire, options=(), seconds=120, fails=None, server_options=None):
    """Server and client of one program; both end with 0, or (fails) the client with that text. The output of
    both, the client's first."""
    port = free_port()
    args = [*args, '-p', port]
    server = start(args, wire, options if server_options is None else server_options)
    try:
        wait_for_listener(port, server)
        client = start([*args, '127.0.0.1'], wire, options)
        output = finish(client, seconds, server)
        if fails:
            if fails not in output or client.returncode == 0:
                raise Failure(f'client did not say "{fails}":\n{output[-1500:]}')
            server.kill()
        other, _ = server.communicate(timeout=seconds)
        if not fails and (client.returncode or server.returncode):
            raise Failure(f'client {client.returncode}:\n{output[-1500:]}\n'
                          f'server {server.returncode}:\n{other[-1500:]}')
        return output + other
    except subprocess.TimeoutExpired:
        raise Failure('the server does not end')
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()


def alone(args, wire, options=(), seconds=120, inside=()):
    process = start(args, wire, options, inside)
    output = finish(process, seconds)
    if process.returncode:
        raise Failure(f'exit status {process.returncode}:\n{output[-1500:]}')
    return output


# -- Tests --------------------------------------------------------------------------------------------

def wires_of(rest, smoke):
    """Over which wires a test is run whose name has this behind the wire."""
    if arguments.smoke:
        return ROCE if smoke is True else smoke
    return ROCE if re.search(NO_BLOCKS, rest) else EACH_WIRE


def wanted(name, smoke):
    """It has all words, is of the set, and its wire is the one whose turn it is."""
    if arguments.smoke and not smoke:
        return False
    if not all(w in name for w in arguments.words) or any(w in name for w in arguments.without):
        return False
    wire, _, rest = name.partition(' ')
    wire = wire.rstrip(':')
    wires = wires_of(rest, smoke)
    if wire in EACH_WIRE and wire not in wires:
        return False
    if arguments.one_wire and wire in EACH_WIRE:
        turn = turns.setdefault(rest, len(turns))
        if wire != wires[turn % len(wires)]:
            return False
    if arguments.shard:
        index, count = arguments.shard
        return zlib.crc32(name.encode()) % count == index
    return True


def test(name, body, *words, theirs=None, alone=False, lock=None, smoke=False):
    """Notes a test, which calls body(*words). theirs: reports of sanitizers that are no failure. alone: nothing
    else runs beside it. lock: of tests with one lock, one runs at a time. smoke: it is of the small set; True:
    over ROCE's wires, else over those that it names."""
    if wanted(name, smoke):
        noted.append(Test(name, body, words, theirs, alone, lock))


def run_body(one):
    """Why it failed ('': it did not), and why it was skipped (None: it was not)."""
    local.place = Place()
    why, skipped = '', None
    try:
        one.body(*one.words)
    except Skipped as reason:
        skipped = str(reason)
    except Failure as failure:
        why = str(failure) or 'failed'
    except (OSError, subprocess.SubprocessError, AssertionError, ValueError) as error:
        why = f'{type(error).__name__}: {error}'
    said = take_reports(one.theirs)
    if said:
        why += f'\n{len(said)} reports:\n{said[0][:6000]}'
    errors = take_errors(one.name) if arguments.checked else []
    if errors:
        why += f'\n{len(errors)} errors:\n{errors[0][:2000]}'
    local.place.close()
    return why, skipped


def run_one(one):
    """Runs it and says how it went: 'passed', 'failed' or 'skipped'."""
    with locks.setdefault(one.lock, threading.Lock()) if one.lock else contextlib.nullcontext():
        began = time.time()
        why, skipped = run_body(one)
    result = 'failed' if why else 'passed' if skipped is None else 'skipped'
    word = {'passed': 'ok', 'failed': 'FAIL', 'skipped': 'skip'}[result]
    text = f'{one.name:<72} {word:<5}{time.time() - began:7.1f} s'
    if skipped is not None and not why:
        text += f'\n    skipped: {skipped}'
    if why:
        text += '\n    ' + why.replace('\n', '\n    ')
    print(text + '\n', end='', flush=True)
    return result


def run_all():
    """Each test and its result; those that can stand company first."""
    together = [one for one in noted if not one.alone]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(zip(together, pool.map(run_one, together)))
    return results + [(one, run_one(one)) for one in noted if one.alone]


# Two threads hand buffers that are too short to nonic, which writes 32 bytes.
WRONG = """
import ctypes, threading
verbs, libc = ctypes.CDLL('libibverbs.so.1'), ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
to, source = ctypes.c_void_p(libc.malloc(BYTES)), ctypes.create_string_buffer(4096)
def copy():
    for _ in range(10000):
        verbs.ibv_copy_ah_attr_from_kern(to, source)
threads = [threading.Thread(target=copy) for _ in range(2)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
"""


def sanitizer_speaks():
    """Neither its exit status nor its output is looked at: reports must be found without them."""
    room, report = {'asan': ('4', 'heap-buffer-overflow'), 'tsan': ('4096', 'data race')}[sanitizer]
    finish(start(['/usr/bin/python3', '-c', WRONG.replace('BYTES', room)], 'auto'), 60)
    said = take_reports()
    if not said or report not in said[0] or 'ibv_copy_ah_attr' not in said[0]:
        raise Failure(f'no report of a {report}: {said}')


def test_sanitizer():
    if sanitizer:
        test("a sanitizer's report is a failure", sanitizer_speaks, smoke=True)


def summary():
    """Runs the tests that were noted. Prints the last lines: which failed, and how many; returns how the program
    ends."""
    results = run_all()
    for one, result in results:
        if result == 'failed':
            print(f'failed: {one.name}')
    results = [result for _, result in results]
    passed, failed, skipped = (results.count(kind) for kind in ('passed', 'failed', 'skipped'))
    print(f'{passed} passed, {failed} failed' + (f', {skipped} skipped' if skipped else ''))
    if arguments.words and not results:
        print(f'no test has all of: {" ".join(arguments.words)}', file=sys.stderr)
        return True
    return failed > 0
