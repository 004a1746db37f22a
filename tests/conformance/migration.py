"""A virtual machine moves to another process while it runs (docs/migration.md): Debian's QEMU, whose guest's memory goes
over RDMA."""
import contextlib
import filecmp
import json
import os
import shutil
import socket
import subprocess
import tempfile

import harness
from harness import BAD_NETWORK, EACH_WIRE, Failure, Skipped, free_port, start, test

QEMU = 'qemu-system-x86_64'
GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'migration_guest.S')
MEMORY = {'val': 1 << 20, 'size': 62 << 20}     # The guest fills it, and writes to it.


class Machine:
    """A virtual machine of a name, in a folder that has its boot sector, and the line over which it takes commands."""

    def __init__(self, folder, name, wire, options, *words):
        self.folder, self.name = folder, name
        self.process = start([QEMU, '-display', 'none', '-nodefaults', '-m', '64', '-accel', 'tcg', '-drive',
                              'format=raw,file=guest.img,snapshot=on', '-serial', f'file:{name}.serial', '-qmp',
                              f'unix:{name}.qmp,server=on,wait=off', *words], wire, options, folder=folder)
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(60)
        path = os.path.join(folder, f'{name}.qmp')
        if not harness.wait_until(lambda: line.connect_ex(path) == 0):
            self.process.kill()
            raise Failure(f'{name} has not begun:\n{self.process.communicate()[0][-1500:]}')
        self.line = line.makefile('rw')
        self.line.readline()
        self.ask('qmp_capabilities')

    def ask(self, execute, **arguments):
        self.line.write(json.dumps({'execute': execute, 'arguments': arguments}) + '\n')
        self.line.flush()
        while True:
            answer = json.loads(self.line.readline())
            if 'error' in answer:
                raise Failure(f'{self.name}: {execute}: {answer["error"]["desc"]}')
            if 'return' in answer:
                return answer['return']

    def rounds(self):
        with contextlib.suppress(OSError):
            return os.path.getsize(os.path.join(self.folder, f'{self.name}.serial'))
        return 0

    def save(self):
        path = os.path.join(self.folder, f'{self.name}.memory')
        self.ask('pmemsave', filename=path, **MEMORY)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        self.process.kill()
        self.process.communicate()


def runs(machine):
    """The guest finishes rounds from now on."""
    before = machine.rounds()
    if not harness.wait_until(lambda: machine.rounds() > before + 10):
        raise Failure(f'the guest of {machine.name} stands still')


def moves(wire, options, pinned):
    """The guest writes while its memory goes, goes on where it was, and not a byte differs."""
    if shutil.which(QEMU) is None:
        raise Skipped(f'no {QEMU}; dev/install-packages migration')
    if harness.sanitizer == 'tsan':
        raise Skipped("ThreadSanitizer's runtime ends QEMU, whose coroutines jump from stack to stack")
    with tempfile.TemporaryDirectory(prefix='nonic-migration-') as folder:
        subprocess.run(['gcc', '-m32', '-nostdlib', '-static', '-Wl,-Ttext=0x7c00,--oformat=binary,--build-id=none', GUEST, '-o',
                        os.path.join(folder, 'guest.img')], check=True)
        with Machine(folder, 'here', wire, options) as here, \
                Machine(folder, 'there', wire, options, '-S', '-incoming', 'defer') as there:
            runs(here)
            for machine in here, there:
                machine.ask('migrate-set-capabilities', capabilities=[{'capability': 'rdma-pin-all', 'state': pinned}])
            where = f'rdma:127.0.0.1:{free_port()}'
            there.ask('migrate-incoming', uri=where)
            here.ask('migrate', uri=where)
            if not harness.wait_until(lambda: here.ask('query-migrate')['status'] not in ('setup', 'active', 'device'), 60):
                raise Failure(f'the move does not end: {here.ask("query-migrate")}')
            status = here.ask('query-migrate')
            if status['status'] != 'completed' or status['ram']['dirty-sync-count'] < 2:
                raise Failure(f'the move ended like this: {status}')
            if not filecmp.cmp(here.save(), there.save(), shallow=False):
                raise Failure('the memories differ')
            there.ask('cont')
            runs(there)


def tests():
    for wire in EACH_WIRE:
        test(f'{wire}: a virtual machine moves', moves, wire, (), False, smoke=True)
        test(f'{wire}: a virtual machine moves, all its memory registered first', moves, wire, (), True)
        if wire != 'shm':       # Where losses make timeouts of RC, which QEMU sets to 67 ms, it takes half a minute.
            test(f'{wire}: a virtual machine moves, bad network', moves, wire, ['--fault', BAD_NETWORK], False)
