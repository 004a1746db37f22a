"""Link-local addresses of interfaces: a device of one, and peers that are reached by it."""
import re

import harness
from harness import Failure, alone, finish, free_port, start, test, wait_for_listener, wait_for_service
from namespaces import Namespaces, ip

ENDS = 'fe80::a', 'fe80::b'


class LinkLocal(Namespaces):
    """Two namespaces whose interface rdma0 has a link-local address, and no other."""

    def lay(self, cable):
        super().lay(cable)
        if cable > 0:
            return
        device = ['dev', f'rdma{cable}']
        for name, address in zip(self.names, ENDS):
            ip('-n', name, 'address', 'flush', *device)
            ip('-n', name, 'address', 'add', f'{address}/64', *device, 'nodad')


def gids(both, device, end=0):
    said = alone(['ibv_devinfo', '-v'], 'auto', ['--device', device], inside=both.inside[end])
    return re.findall(r'GID\[\s*\d+\]:\s+([0-9a-f:.]+)', said)


def devices():
    """An interface that has no other address is a device, and so is an address that is named with its interface."""
    with LinkLocal(cables=2) as both:
        ip('-n', both.names[0], 'address', 'add', 'fe80::a/64', 'dev', 'rdma1', 'nodad')
        for device, wanted in (('rdma0', ['fe80::a']), ('fe80::a%rdma1', ['fe80::a']), ('rdma1', ['::ffff:10.78.0.1'])):
            if gids(both, device) != wanted:
                raise Failure(f'{device} has {gids(both, device)}')
        address = ['10.79.0.1/24', 'dev', 'rdma0']
        ip('-n', both.names[0], 'address', 'add', *address)
        for device, wanted in (('rdma0', ['::ffff:10.79.0.1']), ('rdma0,fe80::a%rdma0', ['::ffff:10.79.0.1', 'fe80::a'])):
            if gids(both, device) != wanted:
                raise Failure(f'{device} has {gids(both, device)}')
        # The other interface has the same address: who shares the one does not share the other.
        holder = start(['ibv_asyncwatch'], 'udp', ['--device', 'fe80::a%rdma0'], both.inside[0])
        try:
            holder.stdout.readline()
            other = start(['ibv_devinfo'], 'udp', ['--device', 'fe80::a%rdma1'], both.inside[0])
            if 'on another interface' not in finish(other, 30):
                raise Failure('an address of two interfaces is shared')
        finally:
            holder.kill()
            holder.communicate()


def between(wire, args, wait, number):
    """A server in one namespace, and a client that names it by its link-local address."""
    with LinkLocal(cables=2) as both:
        server = start([*args[0]], wire, ['--device', 'rdma0'], both.inside[0])
        try:
            wait(number, server)
            alone([*args[1]], wire, ['--device', 'rdma0'], inside=both.inside[1], seconds=60)
            output = finish(server, 60)
        finally:
            server.kill()
        if server.returncode:
            raise Failure(output[-1500:])


def programs():
    """Those of verbs meet by TCP over the second cable, where they know IPv4 alone."""
    to, port = f'{ENDS[0]}%rdma0', free_port()
    for words in (['ibv_rc_pingpong', '-g', '0', '-c'], ['ibv_uc_pingpong', '-g', '0', '-c'], ['ibv_ud_pingpong', '-g', '0'],
                  ['ib_write_bw', '-F', '--ipv6', '-x', '0', '-n', '200']):
        words += ['-p', port]
        yield words[0], (words, [*words, '10.78.0.1']), wait_for_listener, port
    rping = ['rping', '-v', '-C', '5', '-p', port]
    yield 'rping', ([*rping, '-s', '-a', to], [*rping, '-c', '-a', to]), wait_for_service, port
    yield 'rping at any address', ([*rping, '-s', '-a', '::0'], [*rping, '-c', '-a', to]), wait_for_service, port
    mates = ['ucmatose', '-p', port, '-C', '20']
    yield 'ucmatose', ([*mates, '-b', to], [*mates, '-s', to]), wait_for_service, port


def tests():
    test('link-local: devices', devices)
    for wire in harness.EACH_WIRE[1:]:
        for name, args, wait, number in programs():
            if wire == 'udp' or name in ('ibv_rc_pingpong', 'ib_write_bw'):
                test(f'{wire} link-local: {name}', between, wire, args, wait, number, smoke=name == 'rping')
