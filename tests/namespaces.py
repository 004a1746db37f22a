"""Network namespaces for tests: made by root, joined by a cable, gone when the test ends."""
import os
import subprocess
import threading

from harness import Skipped


def ip(*args):
    return subprocess.run(['ip', *args], check=True, capture_output=True, text=True).stdout


class Namespaces:
    """Two, 10.77.0.1 and 10.77.0.2 on interface rdma0, joined by a cable; or one that has a loopback alone.

    names: of the namespaces. inside: the commands that run others in them.
    """

    def __init__(self, mtu=1500, ends=2):
        if os.geteuid() != 0:
            raise Skipped('makes network namespaces, for which it takes root')
        self.names = [f'nonic{os.getpid()}{threading.get_ident() % 1000000}{end}' for end in 'ab'[:ends]]
        self.inside = [['ip', 'netns', 'exec', name] for name in self.names]
        self.mtu = mtu

    def __enter__(self):
        for name in self.names:
            ip('netns', 'add', name)
            ip('-n', name, 'link', 'set', 'lo', 'up')
        if len(self.names) == 2:
            a, b = self.names
            ip('link', 'add', 'rdma0', 'netns', a, 'type', 'veth', 'peer', 'name', 'rdma0', 'netns', b)
            for number, name in enumerate(self.names, 1):
                ip('-n', name, 'address', 'add', f'10.77.0.{number}/24', 'dev', 'rdma0')
                ip('-n', name, 'link', 'set', 'rdma0', 'mtu', str(self.mtu), 'up')
        return self

    def __exit__(self, *reason):
        for name in self.names:
            subprocess.run(['ip', 'netns', 'delete', name], capture_output=True)
