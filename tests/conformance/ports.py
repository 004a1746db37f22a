"""A device whose interface goes down, loses its carrier or its address, and recovers: the events that programs get,
what they see, and whether their connections go on."""
import os
import re
import select
import signal
import subprocess
import time

import harness
from harness import Failure, alone, free_port, start, test, wait_for_listener
from namespaces import Namespaces, ip

DEVICE = ['--device', 'rdma0']
BOTH = ['--device', 'rdma0,rdma1']
PORT_ERROR, PORT_ACTIVE, GIDS = 'IBV_EVENT_PORT_ERR', 'IBV_EVENT_PORT_ACTIVE', 'IBV_EVENT_GID_CHANGE'
DOWN_S = 1.5  # A cable is cut for this time under a transfer.


class Watcher:
    """Debian's ibv_asyncwatch in the first of two namespaces."""
    program = ['ibv_asyncwatch']

    def __init__(self, both, options=DEVICE):
        self.process = start(self.program, 'udp', options, both.inside[0])
        self.rest = ''
        if 'async event FD' not in (self.line() or ''):
            raise Failure(f'{self.program[0]}: {self.rest}')

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        self.process.kill()
        self.process.communicate()

    def line(self, seconds=20):
        """The next line; None: there is none in that time."""
        pipe = self.process.stdout.fileno()
        while '\n' not in self.rest:
            if not select.select([pipe], [], [], seconds)[0]:
                return None
            more = os.read(pipe, 65536).decode()
            if not more:
                raise Failure(f'{self.program[0]} has ended')
            self.rest += more
        line, _, self.rest = self.rest.partition('\n')
        return line

    def next(self, seconds=20):
        """The next event; None: there is none in that time."""
        line = self.line(seconds)
        found = line and re.search(r'event_type (.*) \(\d+\), port 1$', line)
        if line and not found:
            raise Failure(f'ibv_asyncwatch says: {line}')
        return found and found[1]

    def expect(self, *events):
        said = [self.next() for _ in events]
        if said != list(events):
            raise Failure(f'told of {said} instead of {events}')


STATES = """
import time
from pyverbs.device import Context
context, last = Context(name='nonic0'), None
print('async event FD')
while True:
    state = context.query_port(1).phys_state
    if state != last:
        print(state)
    last = state
    time.sleep(0.01)
"""


class Prober(Watcher):
    """One program that asks again and again for the physical state."""
    program = ['/usr/bin/python3', '-u', '-c', STATES]


# Takes a LID for the sign of InfiniBand, and no LID for that of RoCE, as many programs do; the server's argument is
# its own address, the client's the server's.
BY_LID = """
import os, socket, struct, sys
import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR
context = Context(name='nonic0')
pd, cq = PD(context), CQ(context, 10)
memory = MR(pd, 64, e.IBV_ACCESS_LOCAL_WRITE)
qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap()), QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1))
lid, own = context.query_port(1).lid, context.query_gid(1, 0)
if sys.argv[1] == 'server':
    line = socket.create_server((sys.argv[2], int(sys.argv[3]))).accept()[0]
else:
    line = socket.create_connection((sys.argv[2], int(sys.argv[3])))
line.sendall(struct.pack('!IH39s', qp.qp_num, lid, own.gid.encode()))
number, dlid, gid = struct.unpack('!IH39s', line.recv(45, socket.MSG_WAITALL))
if lid == 0:
    path = AHAttr(gr=GlobalRoute(GID(gid.decode()), 0), is_global=1, port_num=1)
else:
    path = AHAttr(dlid=dlid, is_global=0, port_num=1)
attributes = QPAttr(qp_state=e.IBV_QPS_RTS)
attributes.dest_qp_num, attributes.ah_attr, attributes.path_mtu = number, path, e.IBV_MTU_1024
attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 14, 7, 7
qp.to_rts(attributes)
piece = SGE(memory.buf, 64, memory.lkey)
qp.post_recv(RecvWR(num_sge=1, sg=[piece]))
line.sendall(b'.')
line.recv(1)
if sys.argv[1] == 'client':
    memory.write('by a LID' if lid else 'by a GID', 8)
    qp.post_send(SendWR(num_sge=1, sg=[piece], opcode=e.IBV_WR_SEND))
while not (taken := cq.poll()[1]):
    pass
assert taken[0].status == e.IBV_WC_SUCCESS, taken[0]
print('it went', memory.read(8, 0).decode())
line.sendall(b'.')
line.recv(1)
"""


def by_lid(wire, options, address, wanted, inside=((), ())):
    """No LID is shown where a LID leads nowhere, and each program then takes the GID."""
    number = free_port()
    program = ['/usr/bin/python3', '-c', BY_LID]
    server = start([*program, 'server', address, str(number)], wire, options, inside[0])
    try:
        wait_for_listener(number, server)
        said = alone([*program, 'client', address, str(number)], wire, options, inside=inside[1])
        said += harness.finish(server, 30)
    finally:
        server.kill()
    if server.returncode or said.count(wanted) != 2:
        raise Failure(said)


def by_lid_between():
    with Namespaces() as both:
        by_lid('udp', DEVICE, '10.77.0.1', 'by a GID', both.inside)


def port(both):
    """The port as another program sees it: in verbs, in sysfs, by netlink."""
    inside = both.inside[0]
    verbs = re.search(r'state:\s+PORT_(\w+)', alone(['ibv_devinfo'], 'udp', DEVICE, inside=inside))[1]
    files = alone(['cat', '/sys/class/infiniband/nonic0/ports/1/state',
                   '/sys/class/infiniband/nonic0/ports/1/phys_state'], 'udp', DEVICE, inside=inside)
    link = alone(['rdma', 'link'], 'udp', DEVICE, inside=inside)
    return (verbs, *re.findall(r'\d: (\w+)', files),
            *re.search(r'state (\w+) physical_state (\w+) netdev rdma0', link).groups())


def expect_port(both, *wanted):
    seen = port(both)
    if seen != wanted:
        raise Failure(f'the port is {seen}, not {wanted}')


def events():
    """The cable's other end, its own switch, its address."""
    with Namespaces() as both, Watcher(both) as watcher:
        expect_port(both, 'ACTIVE', 'ACTIVE', 'LinkUp', 'ACTIVE', 'LINK_UP')
        both.cut(0, 1)
        watcher.expect(PORT_ERROR)
        expect_port(both, 'DOWN', 'DOWN', 'Polling', 'DOWN', 'POLLING')
        both.mend(0, 1)
        watcher.expect(PORT_ACTIVE)
        both.cut(0, 0)
        watcher.expect(PORT_ERROR)
        both.mend(0, 0)
        watcher.expect(PORT_ACTIVE)
        both.address('del', 0)
        watcher.expect(GIDS)
        both.address('add', 0)
        watcher.expect(GIDS)
        expect_port(both, 'ACTIVE', 'ACTIVE', 'LinkUp', 'ACTIVE', 'LINK_UP')


def states():
    """A program that has the device open sees what no event tells of, too."""
    with Namespaces() as both, Prober(both) as prober:
        seen = [prober.line()]
        for change, where in ((both.cut, 1), (both.cut, 0), (both.mend, 0), (both.mend, 1)):
            change(0, where)
            seen.append(prober.line())
        if seen != ['5', '2', '3', '2', '5']:  # LinkUp, Polling, Disabled.
            raise Failure(f'the physical states were {seen}')


def removed():
    """An interface that is gone, and another one that gets its name and its address."""
    with Namespaces() as both, Watcher(both) as watcher:
        both.remove(0)
        watcher.expect(PORT_ERROR, GIDS)
        both.lay(0)
        watcher.expect(GIDS, PORT_ACTIVE)
        expect_port(both, 'ACTIVE', 'ACTIVE', 'LinkUp', 'ACTIVE', 'LINK_UP')


def two_interfaces():
    """One port: it is active as long as one of them is, and has the GIDs of both."""
    with Namespaces(cables=2) as both, Watcher(both, BOTH) as watcher:
        both.cut(0, 0)
        both.address('del', 1)
        watcher.expect(GIDS)
        both.cut(1, 0)
        watcher.expect(PORT_ERROR)
        both.mend(0, 0)
        watcher.expect(PORT_ACTIVE)


def ipv6():
    """Linux takes such addresses from an interface that goes down, and does not give them back."""
    with Namespaces() as both:
        address = ['fd77::1/64', 'dev', 'rdma0', 'nodad']
        ip('-n', both.names[0], 'address', 'add', *address)
        with Watcher(both) as watcher:
            both.cut(0, 0)
            watcher.expect(PORT_ERROR, GIDS)
            both.mend(0, 0)
            watcher.expect(PORT_ACTIVE)
            ip('-n', both.names[0], 'address', 'add', *address)
            watcher.expect(GIDS)


def overrun():
    """A process that is stopped while more happens than the kernel keeps for it finds out how things are."""
    with Namespaces() as both, Watcher(both) as watcher:
        os.kill(watcher.process.pid, signal.SIGSTOP)
        flaps = 'link set rdma0 down\nlink set rdma0 up\n' * 400
        subprocess.run(['ip', '-n', both.names[0], '-batch', '-'], input=flaps + 'link set rdma0 down\n', text=True,
                       check=True, capture_output=True)
        os.kill(watcher.process.pid, signal.SIGCONT)
        said = []
        while not said or said[-1]:
            said.append(watcher.next(1 if said else 20))
        if said[-2] != PORT_ERROR or len(said) > 700:
            raise Failure(f'of {len(said)} events the last is {said[-2]}')


def transfer(wire, cut, mend):
    """A transfer in the middle of which `cut` is done and then undone ends well, and with the right data."""
    with Namespaces(4200) as both:
        number = free_port()
        args = ['ib_write_bw', '-d', 'nonic0', '-F', '-s', '65536', '-D', '5', '-u', '17', '-p', number]
        ends = [start(args, wire, DEVICE, both.inside[0])]
        try:
            wait_for_listener(number, ends[0])
            ends.append(start([*args, '10.77.0.1'], wire, DEVICE, both.inside[1]))
            harness.wait_for_traffic(ends[1], 5000)
            cut(both)
            time.sleep(0.2)
            before = both.carried(0)  # Of a new cable: nothing.
            time.sleep(DOWN_S)
            between = both.carried(0) - before
            mend(both)
            time.sleep(1.5)
            after = both.carried(0) - before
            outputs = [harness.finish(end, 60) for end in reversed(ends)]
        finally:
            for end in ends:
                end.kill()
        if any(end.returncode for end in ends):
            raise Failure('\n'.join(output[-1500:] for output in outputs))
        if between > 100000 or after < 10 * 65536:
            raise Failure(f'{between} bytes were carried meanwhile, {after} until some time later')


def tests():
    test('ports: events', events, smoke=True)
    test('ports: states', states)
    test('ports: an interface is removed', removed)
    test('ports: events of two interfaces', two_interfaces)
    test('ports: events of an IPv6 address', ipv6)
    test('ports: more happens than the kernel keeps', overrun)
    test('ports: no LID between machines', by_lid_between, smoke=True)
    for wire in 'shm', 'udp':
        test(f'{wire} ports: by a LID', by_lid, wire, (), '127.0.0.1', 'by a LID')
        test(f'{wire} ports: by a LID, named address', by_lid, wire, ['--device', harness.shared_address()], '127.0.0.1',
             'by a LID')
    for wire in 'udp', 'block':
        test(f'{wire} ports: a transfer outlasts a cut cable', transfer, wire,
             lambda both: both.cut(0, 1), lambda both: both.mend(0, 1))
        test(f'{wire} ports: a transfer outlasts a lost address', transfer, wire,
             lambda both: both.address('del', 0, 1), lambda both: both.address('add', 0, 1))
        test(f'{wire} ports: a transfer outlasts a removed interface', transfer, wire,
             lambda both: both.remove(0), lambda both: both.lay(0))
