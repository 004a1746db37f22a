"""The rows of bench/run and bench/compare: figures of nonic, and of what a user would pick instead."""
import collections
import functools
import itertools
import json
import os
import re
import socket
import subprocess
import time

MB = 1048576
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.join(ROOT, 'build')  # The build that is measured.


def use(directory):
    """From now on the figures are those of this build."""
    global build
    build = os.path.abspath(directory)


def nonic():
    return os.path.join(build, 'tools', 'nonic')


def program(name):
    """One of bench/."""
    return os.path.join(build, 'bench', name)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return str(s.getsockname()[1])


def raw(mode):
    return float(subprocess.run([program('raw'), mode], capture_output=True, text=True, check=True).stdout)


def listens(port):
    """Does a server listen on this TCP port?"""
    with open('/proc/net/tcp') as four, open('/proc/net/tcp6') as six:
        sockets = [line.split() for line in [*four, *six]]
    return any(fields[3] == '0A' and fields[1].endswith(f':{int(port):04X}') for fields in sockets)


def two(server, client, port, env=None):
    """Runs two programs pinned to a processor each, the client when the server listens on its port; returns what
    the client printed."""
    env = {**os.environ, **(env or {})}
    first = subprocess.Popen(['taskset', '-c', '0', *server], env=env, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        while first.poll() is None and not listens(port):
            time.sleep(0.01)
        return subprocess.run(['taskset', '-c', '1', *client], env=env, capture_output=True,
                              text=True, timeout=60).stdout
    finally:
        first.kill()
        first.wait()


def perftest_row(output):
    """The last row of figures that a program of perftest has printed."""
    rows = [line.split() for line in output.splitlines() if re.match(r'\s*\d+\s+\d+\s', line)]
    if not rows:
        raise RuntimeError(f'perftest failed:\n{output}')
    return [float(x) for x in rows[-1]]


def perftest(wire, tool, *options, fault=None, mapped=None, more=()):
    """`mapped`: when memory is mapped (--map-memory); None: nobody says so. `more`: other options of `nonic run`."""
    port = free_port()
    faults = [] if fault is None else ['--fault', fault]
    maps = [] if mapped is None else ['--map-memory', mapped]
    args = [nonic(), 'run', '--wire', wire, *faults, *maps, *more, '--', tool, '-F', '-p', port, *options]
    output = two(args, [*args, '127.0.0.1'], port)
    return perftest_row(output)


def srd(wire, tool, *options, fault=None):
    return perftest(wire, tool, '-c', 'SRD', '-x', '0', *options, fault=fault, more=('--nic', 'efa'))


def srd_rows():
    """SRD beside reliable connections on the same wire; where packets are lost, beside blocks."""
    for wire in 'shm', 'udp':
        yield (f'SRD: 8 B send latency, {wire}', 'us', lambda w=wire: srd(w, 'ib_send_lat', '-s', '8', '-n', '50000')[4],
               lambda w=wire: perftest(w, 'ib_send_lat', '-s', '8', '-n', '50000')[4], 'RC', ('<=', 1.2))
        yield (f'SRD: 64 B sends, {wire}', 'M/s', lambda w=wire: srd(w, 'ib_send_bw', '-s', '64', '-n', '400000')[4],
               lambda w=wire: perftest(w, 'ib_send_bw', '-s', '64', '-n', '400000')[4], 'RC', ('>=', 0.8))
        yield (f'SRD: 1 MB reads, {wire}', 'GB/s',
               lambda w=wire: srd(w, 'ib_read_bw', '-s', str(MB), '-n', '2000')[3] * MB / 1e9,
               lambda w=wire: perftest(w, 'ib_read_bw', '-s', str(MB), '-n', '2000')[3] * MB / 1e9, 'RC', ('>=', 0.95))
    yield ('SRD: 64 KB reads, udp, 1 % loss', 'GB/s',
           lambda: srd('udp', 'ib_read_bw', '-s', '65536', '-n', '5000', fault='drop=0.01')[3] * MB / 1e9,
           lambda: perftest('udp', 'ib_read_bw', '-s', '65536', '-n', '5000', fault='drop=0.01',
                            more=('--transport', 'block'))[3] * MB / 1e9, 'blocks', ('>=', 0.95))


def window_rate(seconds):
    """The window that a queue pair has over UDP, once a round trip: GB/s."""
    output = subprocess.run([nonic(), 'info', '--json', '--wire', 'udp'], capture_output=True, text=True,
                            check=True).stdout
    return json.loads(output)['udp']['window'] / seconds / 1e9


def fault_rows():
    """The costs of a --fault that strikes nothing, and of one that delays each packet of both sides."""
    for wire in 'udp', 'shm':
        for text, size, count in (('64 KB', 65536, 30000), ('1 MB', MB, 3000)):
            def bandwidth(fault, w=wire, s=size, n=count):
                return perftest(w, 'ib_write_bw', '-s', str(s), '-n', str(n), fault=fault)[3] * MB / 1e9
            yield (f'{text} writes, --fault drop=0, {wire}', 'GB/s', functools.partial(bandwidth, 'drop=0'),
                   functools.partial(bandwidth, None), 'without --fault', ('>=', 0.7))
        for text, options in (('8 B', ['-s', '8', '--post_list', '64', '-n', '640000']),
                              ('4 KB', ['-s', '4096', '-n', '100000'])):
            def rate(fault, w=wire, o=options):
                return perftest(w, 'ib_write_bw', *o, fault=fault)[4]
            yield (f'{text} write rate, --fault drop=0, {wire}', 'M/s', functools.partial(rate, 'drop=0'),
                   functools.partial(rate, None), 'without --fault', ('>=', 0.7))
    for text, size, count in (('64 KB', 65536, 3000), ('1 MB', MB, 300)):
        yield (f'{text} writes, --fault delay=5ms:1, udp', 'GB/s',
               lambda s=size, n=count: perftest('udp', 'ib_write_bw', '-s', str(s), '-n', str(n),
                                                fault='delay=5ms:1')[3] * MB / 1e9,
               lambda: window_rate(0.01), 'its window each 10 ms', ('>=', 0.7))


def ucx(transports, test, size, iterations):
    port = free_port()
    args = ['ucx_perftest', '-t', test, '-s', str(size), '-n', str(iterations), '-p', port]
    output = two(args, [*args, '127.0.0.1'], port, {'UCX_TLS': transports, 'UCX_NET_DEVICES': 'all'})
    final = re.search(r'Final:\s+(.*)', output)
    if not final:
        raise RuntimeError(f'ucx_perftest {test}: {output[-300:]}')
    return [float(x) for x in final.group(1).split()]


def fabric(provider, size, iterations):
    """fi_pingpong: microseconds of one transfer."""
    args = ['fi_pingpong', '-p', provider, '-e', 'rdm', '-S', str(size), '-I', str(iterations)]
    port = free_port()
    output = two([*args, '-B', port], [*args, '-P', port, '127.0.0.1'], port)
    lines = [line.split() for line in output.splitlines() if line.strip()]
    return float(lines[-1][-2])


def crossbar(what, ports, packets, switches=1):
    """The laboratory under full load: packets_per_s or events_per_s."""
    args = [program('crossbar'), str(ports), str(packets), str(switches)]
    return json.loads(subprocess.run(['taskset', '-c', '1', *args], capture_output=True, text=True,
                                     check=True).stdout)[what]


def hold(pending, delays):
    """The laboratory's event queue: nanoseconds for one event while `pending` others wait."""
    return json.loads(subprocess.run(['taskset', '-c', '1', program('hold'), str(pending), delays],
                                     capture_output=True, text=True, check=True).stdout)['ns']


def other_queue(which, pending, delays):
    built = program('hold_others')
    source = os.path.join(ROOT, 'bench', 'hold_others.cc')
    if not os.path.exists(built) or os.path.getmtime(built) < os.path.getmtime(source):
        subprocess.run(['g++', '-O2', '-I', ROOT, '-o', built, source], check=True)
    return json.loads(subprocess.run(['taskset', '-c', '1', built, which, str(pending), delays],
                                     capture_output=True, text=True, check=True).stdout)['ns']


def queue_rows():
    for delays, how in (('random', 'random delays'), ('fixed', 'nine delays')):
        for pending in (1000, 30000, 300000):
            what = f'lab: an event among {pending:,}, {how}'
            for which, name in (('heap', 'a binary heap'), ('map', 'std::multimap')):
                yield (what, 'ns', functools.partial(hold, pending, delays),
                       functools.partial(other_queue, which, pending, delays), name, ('<=', 1))
        yield (what, 'ns', functools.partial(hold, 300000, delays), functools.partial(hold, 1000, delays),
               'among 1,000', ('<=', 5))


def ns3_program(name):
    built = program(name)
    source = os.path.join(ROOT, 'bench', name + '.cc')
    if not os.path.exists(built) or os.path.getmtime(built) < os.path.getmtime(source):
        flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'ns3-core', 'ns3-network',
                                'ns3-point-to-point'], capture_output=True, text=True, check=True).stdout
        subprocess.run(['g++', '-O2', '-o', built, source, *flags.replace('\\;', '').split()],
                       check=True, stderr=subprocess.DEVNULL)
    return built


def ns3(ports, packets):
    """ns-3 moving the same packets through the same switch: packets a second."""
    return json.loads(subprocess.run(['taskset', '-c', '1', ns3_program('ns3_switch'), str(ports), str(packets)],
                                     capture_output=True, text=True, check=True).stdout)['packets_per_s']


def network(what, topology, packets, load=1, *options):
    """The laboratory's connected network: packets_per_s, events_per_s or node_bytes."""
    args = [program('network'), topology, str(packets), str(load), *options]
    return json.loads(subprocess.run(['taskset', '-c', '1', *args], capture_output=True, text=True,
                                     check=True).stdout)[what]


def ns3_network(topology, packets):
    """ns-3 on the same topology, with the same links and routes: packets a second."""
    graph = subprocess.run([program('network'), topology, '--graph'], capture_output=True, text=True, check=True).stdout
    return json.loads(subprocess.run(['taskset', '-c', '1', ns3_program('ns3_network'), str(packets)], input=graph,
                                     capture_output=True, text=True, check=True).stdout)['packets_per_s']


def connections(wire, qps, field='rate', *options, series=0):
    """A figure of `nonic bench connections`, which compares every byte."""
    output = subprocess.run([nonic(), 'bench', 'connections', '--json', '--wire', wire, '--qps', str(qps), *options],
                            capture_output=True, text=True, timeout=300).stdout
    point = json.loads(output)['series'][series]['points'][0]
    if 'error' in point:
        raise RuntimeError(point['error'])
    return point[field]


def ucx_endpoints(transports, qps, field='rate'):
    """Likewise of UCX: an operation is done when its endpoint says that it arrived."""
    built = program('ucx_endpoints')
    if not os.path.exists(built):
        subprocess.run(['meson', 'setup', '--reconfigure', build], capture_output=True, check=True)
        subprocess.run(['ninja', '-C', build, 'bench/ucx_endpoints'], capture_output=True, check=True)
    output = subprocess.run([built, '--json', '--tls', transports, '--done', 'there', '--qps', str(qps)],
                            capture_output=True, text=True, timeout=300).stdout
    point = json.loads(output)['series'][0]['points'][0]
    if 'error' in point:
        raise RuntimeError(point['error'])
    return point[field]


def front_end(pace, count):
    """A detector's front end sends `count` messages of 16 KB to its receiver, which compares every byte: GB/s."""
    command = [nonic(), 'feroce']
    with subprocess.Popen(['taskset', '-c', '0', *command, 'board', '--start', f'16384,{count}', '--pace', pace, '--once'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as board:
        try:
            if not board.stdout.readline().startswith('board at'):
                raise RuntimeError('the board did not start')
            output = subprocess.run(['taskset', '-c', '1', *command, 'receive', '--active', '--remote', '127.0.0.10',
                                     '--buf-size', '16384', '--max-messages', str(count)], capture_output=True,
                                    text=True, timeout=60).stdout
        finally:
            board.kill()
    found = re.search(r'(\d+) bytes, the last one after ([\d.]+) s; 0 words missing, 0 repeated, 0 messages with a wrong',
                      output)
    if not found or int(found[1]) != 16384 * count:
        raise RuntimeError(f'not every byte: {output[-200:]}')
    return int(found[1]) / float(found[2]) / 1e9


# Open MPI over nonic alone, and over what it would use otherwise.
MPI_UCX = ['--mca', 'pml', 'ucx', '--mca', 'osc', 'ucx', '--mca', 'pml_ucx_tls', 'any', '--mca', 'pml_ucx_devices',
           'any', '--mca', 'btl', '^vader,tcp,openib,uct', '-x', 'UCX_TLS', '-x', 'UCX_NET_DEVICES']
MPI_OB1 = ['--mca', 'pml', 'ob1', '--mca', 'btl']
# Of each: UCX's transports, whether it runs on nonic, what mpirun is told.
MPI_KINDS = {
    'nonic': ('rc_v,self', True, MPI_UCX),
    'MPI TCP': ('', False, [*MPI_OB1, 'tcp,self']),
    'MPI UCX TCP': ('tcp,self', False, MPI_UCX),
    'MPI vader': ('', False, [*MPI_OB1, 'vader,self']),
    'MPI UCX shared memory': ('posix,cma,self', False, MPI_UCX),
}
MPI_SIZES = [8, 512, 4096, 16384, 65536, 262144, 1048576, 4194304]
def mpi_measure(kind):
    built = program('mpi_pair')
    source = os.path.join(ROOT, 'bench', 'mpi_pair.c')
    if not os.path.exists(built) or os.path.getmtime(built) < os.path.getmtime(source):
        subprocess.run(['mpicc', '-O2', '-o', built, source], check=True)
    transports, ours, options = MPI_KINDS[kind]
    before = [nonic(), 'run', '--wire', 'shm', '--'] if ours else []
    env = {**os.environ, 'UCX_TLS': transports or 'all', 'UCX_NET_DEVICES': 'nonic0:1' if before else 'all',
           'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
    output = subprocess.run([*before, 'mpirun', '--bind-to', 'core', '-n', '2', *options, built,
                             *map(str, MPI_SIZES)], env=env, capture_output=True, text=True, timeout=120).stdout
    rows = [line.split() for line in output.splitlines()]
    return {(column, int(row[0])): float(row[place]) for row in rows if len(row) == 3
            for place, column in ((1, 'us'), (2, 'MB/s'))}


class Rounds:
    """Figures of several kinds of program: in a round all kinds run one after another, and all rows share the
    rounds."""

    def __init__(self, kinds, measure):
        self.kinds = list(kinds)  # Those that are measured.
        self.measure = measure  # Of a kind: its figures by name.
        self.rounds = collections.defaultdict(list)  # By build: {kind: figures}

    def figure(self, kind, name):
        """For a row: a function that gives this figure, of the next round at each call."""
        rounds_of_row = collections.defaultdict(itertools.count)

        def next_figure():
            rounds, number = self.rounds[build], next(rounds_of_row[build])
            if number == len(rounds):
                rounds.append({each: self.measure(each) for each in self.kinds})
            if name not in rounds[number][kind]:
                raise RuntimeError(f'{kind} has no figure of {name}')
            return rounds[number][kind][name]
        return next_figure


mpi_pairs = Rounds(MPI_KINDS, mpi_measure)


def mpi_rows():
    for kind in list(MPI_KINDS)[1:]:
        bound = 3 if 'TCP' in kind else 0.5
        for size in MPI_SIZES:
            text = f'{size} B' if size < 1024 else f'{size >> 10} KB' if size < 1 << 20 else f'{size >> 20} MB'
            for what, unit, held in (('latency', 'us', ('<=', round(1 / bound, 2))), ('bandwidth', 'MB/s', ('>=', bound))):
                yield (f'MPI {what}, {text}, shm', unit, mpi_pairs.figure('nonic', (unit, size)),
                       mpi_pairs.figure(kind, (unit, size)), kind, held)


# OpenSHMEM of Open MPI. Of each: UCX's transports, what nonic is told (None: it is not there), what is measured, and
# what oshrun is told: UCX allocates the heap otherwise, and then nonic (as root) finds no file of it to map.
# Over TCP the memory of a target is written by UCX in its program, which does nothing in a one-way.
SHMEM_SOME = ['put', 'put-quiet', 'get']
SHMEM_KINDS = {
    'nonic udp': ('rc_v,self', ['--wire', 'udp'], [*SHMEM_SOME, 'one-way'], []),
    'nonic shm': ('rc_v,self', ['--wire', 'shm'], SHMEM_SOME, []),
    'nonic shm, mapped': ('rc_v,self', ['--wire', 'shm', '--map-memory', 'now'], SHMEM_SOME, ['--mca', 'sshmem', 'sysv']),
    'UCX TCP': ('tcp,self', None, SHMEM_SOME, []),
    'UCX shared memory': ('posix,cma,self', None, SHMEM_SOME, []),
}


def shmem_measure(kind):
    built = program('shmem_pair')
    source = os.path.join(ROOT, 'bench', 'shmem_pair.c')
    if not os.path.exists(built) or os.path.getmtime(built) < os.path.getmtime(source):
        subprocess.run(['oshcc', '-O2', '-o', built, source], check=True)
    transports, wire, names, options = SHMEM_KINDS[kind]
    before = [] if wire is None else [nonic(), 'run', *wire, '--']
    env = {**os.environ, 'UCX_TLS': transports, 'UCX_NET_DEVICES': 'nonic0:1' if before else 'all',
           'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
    output = subprocess.run([*before, 'oshrun', '--bind-to', 'core', '-n', '2', *MPI_UCX, *options, '--mca', 'spml',
                             'ucx', '--mca', 'spml_ucx_tls', 'any', '--mca', 'spml_ucx_devices', 'any', built, *names],
                            env=env, capture_output=True, text=True, timeout=120).stdout
    rows = [line.split() for line in output.splitlines()]
    return {row[0]: float(row[1]) for row in rows if len(row) == 2 and row[0] in names}


shmem_pairs = Rounds(SHMEM_KINDS, shmem_measure)


def shmem_rows():
    def row(what, name, kind, other, whose, bound):
        return f'OpenSHMEM {what}', 'us', shmem_pairs.figure(kind, name), other, whose, bound

    tcp = 'OpenSHMEM, UCX TCP'
    yield row('get of 8 B, udp', 'get', 'nonic udp', lambda: 2 * raw('udp-pingpong'), 'UDP there and back, both polling',
              ('<=', 1.5))
    yield row('get of 8 B, udp', 'get', 'nonic udp', shmem_pairs.figure('UCX TCP', 'get'), tcp, ('<=', 0.7))
    yield row('put of 8 B and quiet, udp', 'put-quiet', 'nonic udp', shmem_pairs.figure('UCX TCP', 'put-quiet'), tcp,
              ('<=', 0.4))
    one_way = 'put to a passive target, one way, udp'
    yield row(one_way, 'one-way', 'nonic udp', lambda: raw('udp-pingpong'), 'UDP, both polling', ('<=', 3))
    yield row(one_way, 'one-way', 'nonic udp', lambda: raw('udp-aside'), 'UDP, a thread aside takes it in', ('<=', 2.5))
    for mapped in '', ', mapped':
        for what, name in ('put of 8 B', 'put'), ('put of 8 B and quiet', 'put-quiet'), ('get of 8 B', 'get'):
            yield row(f'{what}, shm{mapped}', name, f'nonic shm{mapped}', shmem_pairs.figure('UCX shared memory', name),
                      'OpenSHMEM, UCX shared memory', None)


# name, unit, nonic, other, whose, how the ratio is held: ('<=' or '>=', bound) or None.
last_visits = {}


def visits(wire, what, count=3000):
    """Resources of a server after `count` clients came and went, each of them a process."""
    done = subprocess.run([nonic(), 'run', '--wire', wire, '--', os.path.join(build, 'tests', 'hostile', 'visitors'),
                           str(count)], capture_output=True, text=True, timeout=900)
    last_visits[wire] = json.loads(done.stdout)
    return last_visits[wire]['after'][what]


def before_visits(wire, what):
    """Resources of the server of the last row before the first client came."""
    return last_visits[wire]['before'][what]


ROWS = [
    ('8 B send latency, shm', 'us', lambda: perftest('shm', 'ib_send_lat', '-s', '8', '-n', '100000')[4],
     lambda: ucx('posix,cma,self', 'tag_lat', 8, 200000)[1], 'UCX shared memory, tag', ('<=', 1.5)),
    ('8 B send latency, shm', 'us', lambda: perftest('shm', 'ib_send_lat', '-s', '8', '-n', '100000')[4],
     lambda: fabric('shm', 8, 50000), 'libfabric shm', None),
    ('8 B write latency, shm', 'us', lambda: perftest('shm', 'ib_write_lat', '-s', '8', '-n', '100000')[4],
     lambda: raw('vm-write'), 'one process_vm_writev', ('<=', 2)),
    ('8 B write latency, shm: 99th percentile', 'us',
     lambda: perftest('shm', 'ib_write_lat', '-s', '8', '-n', '100000')[7],
     lambda: perftest('shm', 'ib_write_lat', '-s', '8', '-n', '100000')[4], 'its own median', ('<=', 5)),
    *[(f'{text} read latency, shm, passive target', 'us',
       lambda s=size, n=count: perftest('shm', 'ib_read_lat', '-s', str(s), '-n', str(n))[4],
       lambda s=size, n=count: ucx('posix,cma,self', 'ucp_get', s, n)[1], 'UCX shared memory, get', None)
      for text, size, count in (('8 B', 8, 100000), ('4 KB', 4096, 100000), ('64 KB', 65536, 20000),
                                ('1 MB', MB, 5000))],
    # Their target's program sleeps from its registration on, so that only there its memory can be mapped.
    *[(f'{text} read latency, shm, passive target, mapped', 'us',
       lambda s=size, n=count: perftest('shm', 'ib_read_lat', '-s', str(s), '-n', str(n), mapped='now')[4],
       lambda s=size, n=count: ucx('posix,cma,self', 'ucp_get', s, n)[1], 'UCX shared memory, get', ('<=', bound))
      for text, size, count, bound in (('8 B', 8, 100000, 8), ('4 KB', 4096, 100000, 4), ('64 KB', 65536, 20000, 1.5),
                                       ('1 MB', MB, 5000, 1.2))],
    *[(f'1 MB {what} bandwidth, shm, mapped', 'GB/s',
       lambda w=what: perftest('shm', f'ib_{w}_bw', '-s', str(MB), '-n', '8000', mapped='now')[3] * MB / 1e9,
       lambda: raw('memcpy-mapped'), 'one memcpy to mapped memory', ('>=', 0.9)) for what in ('read', 'write')],
    ('8 B write latency, shm, mapped', 'us',
     lambda: perftest('shm', 'ib_write_lat', '-s', '8', '-n', '100000', mapped='now')[4],
     lambda: perftest('shm', 'ib_write_lat', '-s', '8', '-n', '100000', mapped='never')[4], 'by the kernel', ('<=', 0.7)),
    ('1 MB read bandwidth, shm', 'GB/s',
     lambda: perftest('shm', 'ib_read_bw', '-s', str(MB), '-n', '8000')[3] * MB / 1e9,
     lambda: raw('memcpy'), 'memcpy through a ring', ('>=', 0.7)),
    ('1 MB write bandwidth, shm', 'GB/s',
     lambda: perftest('shm', 'ib_write_bw', '-s', str(MB), '-n', '8000')[3] * MB / 1e9,
     lambda: raw('memcpy'), 'memcpy through a ring', ('>=', 0.7)),
    ('1 MB write bandwidth, shm', 'GB/s',
     lambda: perftest('shm', 'ib_write_bw', '-s', str(MB), '-n', '8000')[3] * MB / 1e9,
     lambda: ucx('posix,cma,self', 'tag_bw', MB, 8000)[4] * MB / 1e9, 'UCX shared memory, tag', None),
    ('64 KB write bandwidth, udp', 'GB/s',
     lambda: perftest('udp', 'ib_write_bw', '-s', '65536', '-n', '50000')[3] * MB / 1e9,
     lambda: raw('udp-placed'), 'UDP, segmented, put where it belongs', ('>=', 0.7)),
    ('64 KB write bandwidth, udp', 'GB/s',
     lambda: perftest('udp', 'ib_write_bw', '-s', '65536', '-n', '50000')[3] * MB / 1e9,
     lambda: ucx('tcp,self', 'tag_bw', 65536, 50000)[4] * MB / 1e9, 'UCX TCP, tag', None),
    ('8 B send latency, udp', 'us', lambda: perftest('udp', 'ib_send_lat', '-s', '8', '-n', '50000')[4],
     lambda: raw('udp-pingpong'), 'UDP, both polling', ('<=', 1.5)),
    ('8 B send latency, udp', 'us', lambda: perftest('udp', 'ib_send_lat', '-s', '8', '-n', '50000')[4],
     lambda: ucx('tcp,self', 'tag_lat', 8, 50000)[1], 'UCX TCP, tag', None),
    ('8 B send latency, udp', 'us', lambda: perftest('udp', 'ib_send_lat', '-s', '8', '-n', '50000')[4],
     lambda: fabric('tcp;ofi_rxm', 8, 20000), 'libfabric TCP', None),
    ('8 B read latency, udp, passive target', 'us',
     lambda: perftest('udp', 'ib_read_lat', '-s', '8', '-n', '50000')[4], lambda: raw('udp-blocking'),
     'UDP, its server sleeps', ('<=', 1.3)),
    ('8 B write rate, udp, 64 a post', 'M/s',
     lambda: perftest('udp', 'ib_write_bw', '-s', '8', '--post_list', '64', '-n', '640000')[4],
     lambda: raw('udp-single') / 1e6, 'UDP, one a call', ('>=', 5)),
    ("front end's 16 KB SENDs, --pace exact", 'GB/s', lambda: front_end('exact', 50000), lambda: raw('udp-unsummed'),
     'UDP, a packet a call', ('>=', 0.5)),
    ("front end's 16 KB SENDs, --pace fast", 'GB/s', lambda: front_end('fast', 150000), lambda: raw('udp-segmented'),
     'UDP, segmented', ('>=', 0.46)),
    *fault_rows(),
    *srd_rows(),
    *[row for wire, tls, whose in (('shm', 'posix,cma,self', 'UCX shared memory'), ('udp', 'tcp,self', 'UCX TCP'))
      for row in (
          (f'connections: 51,200, 64 B writes, {wire}', 'M/s', lambda w=wire: connections(w, 51200) / 1e6,
           lambda w=wire: connections(w, 16) / 1e6, '16 connections', ('>=', 0.8)),
          (f'connections: 51,200, 64 B writes, {wire}', 'M/s', lambda w=wire: connections(w, 51200) / 1e6,
           lambda w=wire: connections(w, 51200, 'rate', '--baseline', series=1) / 1e6,
           'one by one, no prefetch', ('>=', 3)),
          (f'connections: 16,384, 64 B writes, {wire}', 'M/s', lambda w=wire: connections(w, 16384) / 1e6,
           lambda t=tls: ucx_endpoints(t, 16384) / 1e6, whose, None),
          (f'connections: UCX alone, 16,384, {wire}', 'M/s', lambda t=tls: ucx_endpoints(t, 16384) / 1e6,
           lambda t=tls: ucx_endpoints(t, 16) / 1e6, f'{whose}, 16 endpoints', None))],
    ('connections: 51,200, bytes each, shm', 'B', lambda: connections('shm', 51200, 'bytes_per_qp'),
     lambda: 768, 'twelve cache lines', ('<=', 1)),
    ('connections: 51,200, made and connected', 's', lambda: connections('shm', 51200, 'setup_s'),
     lambda: 10, 'ten seconds', ('<=', 1)),
    *[(f'{text} after 3,000 clients, {wire}', unit, lambda w=wire, f=what: visits(w, f),
       lambda w=wire, f=what: before_visits(w, f), 'before them', ('<=', most))
      for wire in ('shm', 'udp')
      for text, unit, what, most in (('8 B to itself', 'us', 'latency_us', 1.5), ('memory', 'KB', 'kilobytes', 1.1))],
    *mpi_rows(),
    *shmem_rows(),
    ('lab: packets, 4-port crossbar', 'M/s', lambda: crossbar('packets_per_s', 4, 1000000) / 1e6,
     lambda: ns3(4, 1000000) / 1e6, 'ns-3', ('>=', 5)),
    ('lab: packets, 64-port crossbar', 'M/s', lambda: crossbar('packets_per_s', 64, 1000000) / 1e6,
     lambda: ns3(64, 1000000) / 1e6, 'ns-3', ('>=', 5)),
    ('lab: events, 64-port crossbar', 'M/s', lambda: crossbar('events_per_s', 64, 2000000) / 1e6,
     lambda: crossbar('events_per_s', 4, 2000000) / 1e6, '4-port crossbar', None),
    ('lab: cost of an event, 1,024 nodes of 16 stars', 'ns', lambda: 1e9 / crossbar('events_per_s', 64, 8000000, 16),
     lambda: 1e9 / crossbar('events_per_s', 4, 2000000), '4 nodes', ('<=', 2)),
    *queue_rows(),
    ('lab: connected network, 1,024 nodes', 'M/s', lambda: network('packets_per_s', 'fat-tree:16', 1000000) / 1e6,
     lambda: ns3_network('fat-tree:16', 200000) / 1e6, 'ns-3', ('>=', 3)),
    ('lab: connected network, 1,024 nodes, payloads', 'M/s',
     lambda: network('packets_per_s', 'fat-tree:16', 1000000) / 1e6,
     lambda: network('packets_per_s', 'fat-tree:16', 1000000, 1, 'none') / 1e6, 'lengths only', None),
    ('lab: connected network, 16,384 nodes, events', 'M/s',
     lambda: network('events_per_s', 'torus:16x16x16:4', 1000000, 0.1) / 1e6,
     lambda: network('events_per_s', 'torus:8x8x8:2', 1000000, 0.1) / 1e6, '1,024 nodes', None),
    ('lab: connected network, 16,384 nodes, memory', 'B',
     lambda: network('node_bytes', 'torus:16x16x16:4', 1000000, 0.1, 'none'),
     lambda: network('node_bytes', 'torus:8x8x8:2', 1000000, 0.1, 'none'), 'a node of 1,024', None),
]


def lower_is_better(unit):
    return unit in ('us', 'ns', 's', 'B', 'KB')
