"""What the programs of tests/conformance that run others have in common: the command line, one nonic,
tests by name, and how processes end."""
import argparse
import os
import re
import socket
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BAD_NETWORK = 'drop=0.01,dup=0.01,reorder=0.01,corrupt=0.001,seed=7'
passed = failed = 0
arguments = None


class Failure(Exception):
    pass


def parse(description):
    global arguments
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--full', action='store_true', help='more seeds and sizes')
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'), help='a build directory')
    parser.add_argument('words', nargs='*', help='only tests whose name has all of these')
    arguments = parser.parse_args()
    return arguments


def nonic():
    return os.path.join(arguments.build, 'tools', 'nonic')


def use_sanitizer():
    """A sanitized library needs its runtime in the programs that load it. What unmodified programs
    leak is theirs."""
    library = os.path.join(arguments.build, 'verbs', 'libibverbs.so.1')
    linked = subprocess.run(['ldd', library], capture_output=True, text=True).stdout
    found = re.search(r'=> (\S*/lib[at]san\.so\S*)', linked)
    if found:
        os.environ.update({'LD_PRELOAD': found.group(1),
                           'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0',
                           'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
                           # perftest -D opens files in a signal handler: its own affair.
                           'TSAN_OPTIONS': 'halt_on_error=1:report_signal_unsafe=0'})


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return str(s.getsockname()[1])


def start(args, wire, options=()):
    return subprocess.Popen([nonic(), 'run', '--wire', wire, *options, '--', *args], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


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


def test(name, body):
    global passed, failed
    if not all(w in name for w in arguments.words):
        return
    began = time.time()
    try:
        body()
        passed += 1
        verdict, why = 'ok', ''
    except Failure as failure:
        failed += 1
        verdict, why = 'FAIL', str(failure)
    print(f'{name:<72} {verdict:<5}{time.time() - began:7.1f} s', flush=True)
    if why:
        print('    ' + why.replace('\n', '\n    '), flush=True)


def summary():
    """The last line; how the program ends."""
    print(f'{passed} passed, {failed} failed')
    return failed > 0
