"""What the programs of tests/ that run others have in common: the command line, one nonic,
tests by name, and how processes end."""
import argparse
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BAD_NETWORK = 'drop=0.01,dup=0.01,reorder=0.01,corrupt=0.001,seed=7'
passed = failed = 0
arguments = None
turns = {}  # Of tests by their name without the wire.
sanitizer = None  # 'asan', 'tsan' or none.
reports = None  # The directory that they write to.
outputs = []  # Of programs that ended since it was looked at.


class Failure(Exception):
    pass


def parse(description):
    global arguments
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--full', action='store_true', help='more seeds and sizes')
    parser.add_argument('--one-wire', action='store_true', help='each test over one wire, in turn')
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'), help='a build directory')
    parser.add_argument('words', nargs='*', help='only tests whose name has all of these')
    arguments = parser.parse_args()
    return arguments


def nonic():
    return os.path.join(arguments.build, 'tools', 'nonic')


def use_sanitizer(theirs=False):
    """A sanitized library needs its runtime in the programs that load it. What unmodified programs
    leak is theirs, and so are races between their own threads (`theirs`: they have some, and go on).
    Reports go to files, so that those of killed servers and of children are found, too; UBSan knows no
    files beside ASan, and speaks among the output."""
    global reports, sanitizer
    library = os.path.join(arguments.build, 'verbs', 'libibverbs.so.1')
    linked = subprocess.run(['ldd', library], capture_output=True, text=True).stdout
    found = re.search(r'=> (\S*/lib([at]san)\.so\S*)', linked)
    if not found:
        return
    sanitizer = found.group(2)
    reports = tempfile.TemporaryDirectory(prefix='nonic-reports-')
    log = f'log_path={reports.name}/report'
    halt = 'halt_on_error=0:exitcode=0' if theirs else 'halt_on_error=1'
    os.environ.update({'LD_PRELOAD': found.group(1),
                       'ASAN_OPTIONS': f'verify_asan_link_order=0:detect_leaks=0:{log}',
                       'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
                       # perftest -D opens files in a signal handler: its own affair.
                       'TSAN_OPTIONS': f'{halt}:report_signal_unsafe=0:{log}'})


def race_of_program(report):
    """Neither thread, nor who made them, is in our library or a program of ours; or it is only how many
    reports there were."""
    ours = ['libibverbs.so.1', *os.listdir(os.path.join(arguments.build, 'tests', 'integrity'))]
    return ('ThreadSanitizer: data race' in report and not any(f'({name}+' in report for name in ours) or
            re.fullmatch(r'ThreadSanitizer: reported \d+ warnings\s*', report))


def take_reports(theirs=None):
    """What sanitizers have said since this was asked last, but for reports that match `theirs`: bugs of
    the program, met inside our library."""
    said = []
    for path in sorted(glob.glob(os.path.join(reports.name, '*'))) if reports else []:
        with open(path, errors='replace') as file:
            said += [one for one in re.split('^={18}\n', file.read(), flags=re.M) if one.strip()]
        os.remove(path)
    for output in outputs:
        said += re.split(r'^(?=.*: runtime error: )', output, flags=re.M)[1:]
    outputs.clear()
    return [one for one in said
            if not race_of_program(one) and not (theirs and re.search(theirs, one))]


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return str(s.getsockname()[1])


class Program(subprocess.Popen):
    """Its children end with it: one that lives on would hold the pipe that its output comes from."""

    def communicate(self, *args, **kwargs):
        output, errors = super().communicate(*args, **kwargs)
        outputs.append(output)
        return output, errors

    def kill(self):
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)

    def wait_for_children(self, seconds=10):
        """Until it has none: who is killed in the middle of a report does not finish it."""
        end = time.time() + seconds
        while self.poll() is None and time.time() < end:
            with open(f'/proc/{self.pid}/task/{self.pid}/children') as children:
                if not children.read().strip():
                    return
            time.sleep(0.02)


def start(args, wire, options=()):
    return Program([nonic(), 'run', '--wire', wire, *options, '--', *args], text=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                   start_new_session=True)


def finish(process, seconds):
    """The output of a process that must end well within the time."""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        raise Failure(f'no end after {seconds} s\n{output[-1500:]}')
    return output


def pair(args, wire, options=(), seconds=120, fails=None, server_options=None):
    """Server and client of one program; both end with 0, or (fails) the client with that text."""
    args = [*args, '-p', free_port()]
    server = start(args, wire, options if server_options is None else server_options)
    try:
        time.sleep(0.3)
        client = start([*args, '127.0.0.1'], wire, options)
        output = finish(client, seconds)
        if fails:
            if fails not in output or client.returncode == 0:
                raise Failure(f'client did not say "{fails}":\n{output[-1500:]}')
            server.kill()
        other, _ = server.communicate(timeout=seconds)
        if not fails and (client.returncode or server.returncode):
            raise Failure(f'client {client.returncode}:\n{output[-1500:]}\n'
                          f'server {server.returncode}:\n{other[-1500:]}')
        return output
    except subprocess.TimeoutExpired:
        raise Failure('the server does not end')
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()


def alone(args, wire, options=(), seconds=120):
    process = start(args, wire, options)
    output = finish(process, seconds)
    if process.returncode:
        raise Failure(f'exit status {process.returncode}:\n{output[-1500:]}')
    return output


def wanted(name):
    """It has all words, and its wire is the one whose turn it is."""
    wire, _, rest = name.partition(' ')
    wire = wire.rstrip(':')
    if arguments.one_wire and wire in ('shm', 'udp'):
        turn = turns.setdefault(rest, len(turns))
        if wire != ('shm', 'udp')[turn % 2]:
            return False
    return all(w in name for w in arguments.words)


def test(name, body, theirs=None):
    global passed, failed
    if not wanted(name):
        return
    began = time.time()
    why = ''
    try:
        body()
    except Failure as failure:
        why = str(failure) or 'failed'
    said = take_reports(theirs)
    if said:
        why += f'\n{len(said)} reports:\n{said[0][:6000]}'
    if why:
        failed += 1
    else:
        passed += 1
    print(f'{name:<72} {"FAIL" if why else "ok":<5}{time.time() - began:7.1f} s', flush=True)
    if why:
        print('    ' + why.replace('\n', '\n    '), flush=True)


# Two threads hand a buffer of so many bytes to nonic, which writes 32.
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
        test("a sanitizer's report is a failure", sanitizer_speaks)


def summary():
    """The last line; how the program ends."""
    print(f'{passed} passed, {failed} failed')
    if arguments.words and passed + failed == 0:
        print(f'no test has all of: {" ".join(arguments.words)}', file=sys.stderr)
        return True
    return failed > 0
