"""iproute2's `rdma`, which asks the kernel by netlink: what it shows is what verbs says of the same device, and what
running programs have."""
import contextlib
import json
import os
import re
import subprocess

import harness
from harness import Failure, alone, free_port, start, test, wait_for_listener

# Opening the socket makes no NIC; what asks by it for other things than RDMA devices gets the kernel's answers.
OPENED = '''
import os, socket
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20) as one:
    one.bind((0, 0))
    assert one.getsockname()[0] != 0
    links = [os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') if int(fd) > 2
             and os.path.exists('/proc/self/fd/' + fd)]
    assert len([link for link in links if not link.startswith('/proc')]) == 1, links
    assert len(os.listdir('/proc/self/task')) == 1
print('untouched')
'''


def run(words, options=(), fails=False, inside=()):
    """The output of `rdma`. nonic's messages to people go elsewhere."""
    done = subprocess.run([*inside, harness.nonic(), 'run', *options, '--', 'rdma', *words], capture_output=True, text=True,
                          timeout=60, env=harness.environment(), stdin=subprocess.DEVNULL)
    if (done.returncode != 0) != fails or fails and 'not supported' not in done.stderr:
        raise Failure(f'rdma {" ".join(words)}: exit status {done.returncode}:\n{done.stdout}{done.stderr}')
    return done.stdout


def shown(*words, options=(), inside=()):
    """The objects that it shows as JSON."""
    output = run(['-j', '-d', *words], options, inside=inside)
    try:
        return [one for one in json.loads(output) if one]
    except json.JSONDecodeError as error:
        raise Failure(f'rdma {" ".join(words)}: {error}:\n{output}') from error


def same(what, one, other):
    if one != other:
        raise Failure(f'{what}: {one!r} and {other!r}')


def wait_for(shows):
    if not harness.wait_until(shows, 30):
        raise Failure('it is not shown')


def device():
    """Programs that name an address are one device, so that two of them say the same."""
    options = ['--device', 'lo']
    verbs = dict(re.findall(r'(\w+):\s+(.*)', alone(['ibv_devinfo'], 'auto', options)))
    one, = shown('dev', options=options)
    same('the name', one['ifname'], verbs['hca_id'])
    same('the GUID', one['node_guid'], verbs['node_guid'])
    same('the system image', one['sys_image_guid'], verbs['sys_image_guid'])
    same('the firmware', one['fw'], verbs['fw_ver'])
    same('the device by its name', run(['dev', 'show', 'nonic0'], options), run(['dev'], options))
    if 'XRC' not in one['caps'] or one['node_type'] != 'ca':
        raise Failure(f'{one}')
    link, = shown('link', options=options)
    same('the port', (link['ifname'], link['port'], link['netdev']), ('nonic0', 1, 'lo'))
    same('the state', f"PORT_{link['state']}", verbs['state'].split()[0])
    same('the physical state', link['physical_state'], 'LINK_UP')
    same('the port by its name', run(['link', 'show', 'nonic0/1'], options), run(['link'], options))
    same('the system', run(['system', 'show']).strip(), 'netns exclusive copy-on-fork on')


def interface():
    """The network interface of a port is the one that was named."""
    listed = json.loads(subprocess.run(['ip', '-j', '-4', 'addr', 'show', 'up'], capture_output=True, text=True,
                                       check=True).stdout)
    names = [one['ifname'] for one in listed if one.get('addr_info') and one['ifname'] != 'lo']
    if not names:
        raise harness.Skipped('no interface has an IPv4 address')
    link, = shown('link', options=['--device', names[0]])
    with open(f'/sys/class/net/{names[0]}/ifindex') as index:
        same('the interface', (link['netdev'], link['netdev_index']), (names[0], int(index.read())))


def refusals():
    for words in (['dev', 'set', 'nonic0', 'name', 'other'], ['system', 'set', 'netns', 'shared'],
                  ['link', 'add', 'rxe0', 'type', 'rxe', 'netdev', 'lo'], ['link', 'delete', 'nonic0']):
        run(words, fails=True)
    same('queue pairs with counters', run(['statistic', 'qp', 'show']), '')


def untouched():
    """Routes and links are the kernel's, and without `nonic run` so are RDMA devices."""
    for words in (['ip', '-j', 'link'], ['ip', '-j', 'route'], ['ip', '-j', 'rule']):
        plain = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        same(' '.join(words), re.sub(r'"\w+":\d{6,}', '', alone(words, 'auto')), re.sub(r'"\w+":\d{6,}', '', plain))
    done = subprocess.run(['rdma', 'dev'], capture_output=True, text=True)
    if 'nonic0' in done.stdout:
        raise Failure(done.stdout)
    if 'untouched' not in alone(['/usr/bin/python3', '-c', OPENED], 'auto'):
        raise Failure('opening the socket does something')


def of(pid, kind, inside=()):
    return [one for one in shown('resource', 'show', kind, inside=inside) if one['pid'] == pid]


def objects(wire):
    """Of a running pair: each has a queue pair of the other's, and what belongs to it."""
    port = free_port()
    words = ['ib_write_bw', '--run_infinitely', '-p', port]
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(running(words, wire))]
        wait_for_listener(port, programs[0])
        programs.append(stack.enter_context(running([*words, '127.0.0.1'], wire)))
        wait_for(lambda: any(one['state'] == 'RTS' for one in of(programs[1].pid, 'qp')))
        found = {kind: [one for program in programs for one in of(program.pid, kind)]
                 for kind in ('qp', 'cq', 'mr', 'pd', 'ctx')}
        for kind, ones in found.items():
            same(f'programs with {kind}', [one['comm'] for one in ones], ['ib_write_bw'] * 2)
        server, client = found['qp']
        same('queue pairs', (server['lqpn'], server['rqpn']), (client['rqpn'], client['lqpn']))
        same('types', (server['type'], client['type']), ('RC', 'RC'))
        for kind in 'mr', 'qp':
            same(f'domains of {kind}', [one['pdn'] for one in found[kind]], [one['pdn'] for one in found['pd']])
        same('contexts', [one['ctxn'] for one in found['cq']], [one['ctxn'] for one in found['ctx']])
        total, = shown('resource', 'show')
        if any(total[kind] < 2 for kind in found):
            raise Failure(f'too few: {total}')
        wait_for(lambda: shown('statistic', 'show', 'link', 'nonic0/1')[0]['rdma_writes'] > 0)


def ids():
    """A server that listens, and what it says of itself."""
    port = free_port()
    with running(['rping', '-s', '-a', '127.0.0.1', '-p', port], 'auto') as program:
        wait_for(lambda: of(program.pid, 'cm_id'))
        one, = of(program.pid, 'cm_id')
        same('the id', (one['state'], one['ps'], one['src-addr']), ('LISTEN', 'TCP', f'127.0.0.1:{port}'))


def keys():
    """Keys of other programs are root's to see, and programs their user's."""
    if os.geteuid() != 0:
        raise harness.Skipped('has programs of another user: needs root')
    nobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    words = ['ibv_rc_pingpong', '-g', '0', '-p']
    with running([*words, free_port()], 'auto', nobody) as theirs, running([*words, free_port()], 'auto') as ours:
        wait_for(lambda: of(theirs.pid, 'mr') and of(ours.pid, 'pd'))
        for_root, = of(theirs.pid, 'mr')
        for_them, = of(theirs.pid, 'mr', nobody)
        same('the region', {**for_them, 'rkey': for_root['rkey'], 'lkey': for_root['lkey']}, for_root)
        if 'rkey' in for_them or 'lkey' in for_them:
            raise Failure(f'keys: {for_them}')
        same("root's domains", of(ours.pid, 'pd', nobody), [])


@contextlib.contextmanager
def running(words, wire, inside=()):
    program = start(words, wire, inside=inside)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def tests():
    test('rdma: dev, link, system', device, smoke=True)
    test("rdma: a port's network interface", interface)
    test('rdma: what cannot be changed', refusals)
    test('rdma: nothing else', untouched, smoke=True)
    for wire in harness.ROCE:
        test(f'{wire} rdma: resource, statistic', objects, wire, smoke=('shm',))
    test('rdma: resource show cm_id', ids)
    test('rdma: keys and users', keys)
