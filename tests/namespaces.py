"""Network namespaces for tests: made by root, joined by a cable, gone when the test ends."""
import os
import subprocess
import threading

from harness import Skipped


def ip(*args):
    return subprocess.run(['ip', *args], check=True, capture_output=True, text=True).stdout


class Namespaces:
    """Two, 10.77.0.1 and 10.77.0.2 on interface rdma0, joined by a cable, and 10.78.0.1 and 10.78.0.2 on rdma1 by a
    second one; or one that has a loopback alone.

    names: of the namespaces. inside: the commands that run others in them.
    """

    def __init__(self, mtu=1500, ends=2, cables=1):
        if os.geteuid() != 0:
            raise Skipped('makes network namespaces, for which it takes root')
        self.names = [f'nonic{os.getpid()}{threading.get_ident() % 1000000}{end}' for end in 'ab'[:ends]]
        self.inside = [['ip', 'netns', 'exec', name] for name in self.names]
        self.mtu, self.cables = mtu, cables

    def __enter__(self):
        for name in self.names:
            ip('netns', 'add', name)
            ip('-n', name, 'link', 'set', 'lo', 'up')
        for cable in range(self.cables if len(self.names) == 2 else 0):
            self.lay(cable)
        return self

    def lay(self, cable):
        a, b = self.names
        device = f'rdma{cable}'
        ip('link', 'add', device, 'netns', a, 'type', 'veth', 'peer', 'name', device, 'netns', b)
        for number, name in enumerate(self.names, 1):
            ip('-n', name, 'address', 'add', f'10.{77 + cable}.0.{number}/24', 'dev', device)
            ip('-n', name, 'link', 'set', device, 'mtu', str(self.mtu), 'up')

    def remove(self, cable):
        """The interfaces at both ends are there no more."""
        ip('-n', self.names[0], 'link', 'delete', f'rdma{cable}')

    def cut(self, cable, end=1):
        ip('-n', self.names[end], 'link', 'set', f'rdma{cable}', 'down')

    def mend(self, cable, end=1):
        ip('-n', self.names[end], 'link', 'set', f'rdma{cable}', 'up')

    def address(self, what, cable, end=0):
        """what: 'add' or 'del', as iproute2 says it."""
        ip('-n', self.names[end], 'address', what, f'10.{77 + cable}.0.{end + 1}/24', 'dev', f'rdma{cable}')

    def mute(self, cable):
        """From now on no UDP passes the cable, and nobody is told; perftest's own connection goes on."""
        rules = ['table ip mute {', 'chain arrivals {', 'type filter hook prerouting priority 0;',
                 f'iifname "rdma{cable}" meta l4proto udp drop', '}', '}']
        for inside in self.inside:
            subprocess.run([*inside, 'nft', '-f', '-'], input='\n'.join(rules), text=True, check=True)

    def carried(self, cable):
        """Bytes that the second namespace has sent over a cable; 0: there is none."""
        with subprocess.Popen([*self.inside[1], 'cat', f'/sys/class/net/rdma{cable}/statistics/tx_bytes'],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            return int(process.stdout.read() or 0)

    def __exit__(self, *reason):
        for name in self.names:
            subprocess.run(['ip', 'netns', 'delete', name], capture_output=True)
