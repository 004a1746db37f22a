"""A disk that is elsewhere (docs/remote-disk.md): Debian's tgt is the target, which speaks iSER, and QEMU's tools are the
initiator. Debian's libiscsi, which these use, ends at transfers of 512 KB and more, so none is larger than 256 KB."""
import filecmp
import os
import random
import shutil
import subprocess
import tempfile

import harness
from harness import BAD_NETWORK, EACH_WIRE, Failure, Skipped, alone, environment, free_port, start, test
from namespaces import Namespaces

NAME = 'iqn.2026-12.example:disk'
QEMU = 'iqn.2008-11.org.linux-kvm'
MODULE = '/usr/lib/x86_64-linux-gnu/qemu/block-iscsi.so'
KILOBYTES = 16384


class Target:
    """A disk of KILOBYTES in a folder of its own, and tgtd, which offers it at an address."""

    def __init__(self, wire, address='127.0.0.1', options=(), inside=(), kilobytes=KILOBYTES):
        for needed in '/usr/sbin/tgtd', '/usr/bin/qemu-img', MODULE:
            if not os.path.exists(needed):
                raise Skipped(f'no {needed}; dev/install-packages remote-disk')
        if harness.sanitizer:
            raise Skipped("tgtd takes no port where a sanitizer's runtime has set errno before, which it does not clear")
        self.wire, self.address, self.options, self.inside = wire, address, options, inside
        self.kilobytes = kilobytes

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='nonic-disk-')
        self.disk, self.data = os.path.join(self.folder, 'disk'), os.path.join(self.folder, 'data')
        for path, content in (self.disk, b''), (self.data, os.urandom(1024 * self.kilobytes)):
            with open(path, 'wb') as file:
                file.write(content)
                file.truncate(1024 * self.kilobytes)
        self.port = str(random.randrange(20000, 32000))     # The connection manager's own.
        self.process = start(['env', f'TGT_IPC_SOCKET={self.folder}/socket', 'tgtd', '-f', '--iser', f'port={self.port}',
                              '--iscsi', f'portal={self.address}:{free_port()}'], self.wire, self.options, self.inside)
        try:
            harness.wait_for_service(self.port, self.process)
            self.offer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def offer(self):
        harness.wait_until(lambda: os.path.exists(f'{self.folder}/socket.0'))
        for words in (['new', '--mode', 'target', '--targetname', NAME],
                      ['new', '--mode', 'logicalunit', '--lun', '1', '--backing-store', self.disk],
                      ['bind', '--mode', 'target', '--initiator-address', 'ALL'],
                      ['bind', '--mode', 'target', '--initiator-name', QEMU]):
            done = subprocess.run(['tgtadm', '--lld', 'iser', '--tid', '1', '--op', *words], capture_output=True, text=True,
                                  env=environment(TGT_IPC_SOCKET=f'{self.folder}/socket'), timeout=30)
            if done.returncode:
                raise Failure(f'tgtadm {" ".join(words)}: {done.stdout}{done.stderr}')

    def image(self):
        """The disk, in the words of QEMU's tools."""
        return (f'driver=blkdebug,max-transfer=262144,image.driver=iscsi,image.transport=iser,image.lun=1,'
                f'image.portal={self.address}:{self.port},image.target={NAME}')

    def write(self):
        """The words that copy the data to the disk."""
        return ['qemu-img', 'convert', '-n', '-f', 'raw', '--target-image-opts', self.data, self.image()]

    def compare(self, path):
        if not filecmp.cmp(self.data, path, shallow=False):
            raise Failure(f'{path} differs from what was written')

    def __exit__(self, *reason):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder)


def logged_in(args, wire, options):
    """Runs a program to its end. tgt ends a connection whose first command it sees before the completion of its own answer
    to the login (docs/found.md), and libiscsi waits a second for an answer. That is not tried for ever."""
    for left in range(5, 0, -1):
        try:
            return alone(args, wire, options)
        except Failure as failure:
            if left == 1 or 'Failed to connect to LUN' not in str(failure):
                raise


def copies(wire, options=()):
    """To the disk and back: both have what was written."""
    with Target(wire, options=options) as target:
        logged_in(target.write(), wire, options)
        target.compare(target.disk)
        back = os.path.join(target.folder, 'back')
        logged_in(['qemu-img', 'convert', '-O', 'raw', '--image-opts', target.image(), back], wire, options)
        target.compare(back)


def cable():
    """It is cut for a moment while a file is on its way."""
    device = ['--device', 'rdma0']
    with Namespaces() as both, Target('auto', '10.77.0.1', device, both.inside[0], 16 * KILOBYTES) as target:
        writer = start(target.write(), 'auto', device, both.inside[1])
        try:
            harness.wait_for_traffic(writer, 10000)
            both.cut(0)
            if harness.wait_until(lambda: writer.poll() is not None, 2):
                raise Failure('it ended while the cable was cut')
            both.mend(0)
            said = harness.finish(writer, 60)
        finally:
            writer.kill()
        if writer.returncode:
            raise Failure(f'exit status {writer.returncode}:\n{said[-1500:]}')
        target.compare(target.disk)


def tests():
    for wire in EACH_WIRE:
        test(f'{wire}: a remote disk', copies, wire, smoke=True)
        test(f'{wire}: a remote disk, bad network', copies, wire, ['--fault', BAD_NETWORK])
    test('a remote disk whose cable is cut', cable)
