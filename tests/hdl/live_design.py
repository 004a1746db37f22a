"""A design of hdl/examples that is compiled, and one that runs on the network of this machine."""
import os
import signal
import subprocess
import tempfile
import time

from checks import ROOT, check, finish
import host

use = {}


def use_nonic(nonic, slow):
    """Which nonic; how many times as slow as an ordinary build it is."""
    use.update(nonic=nonic, slow=slow)


class Live:
    """A design as a process; its output is kept."""

    def __init__(self, design, *words, address=None):
        self.address = address or host.free_addresses(1)[0]
        self.file = tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen([use['nonic'], 'hdl', 'live', design, '--address', self.address, *words],
                                        stdout=self.file, stderr=subprocess.STDOUT)
        end = time.monotonic() + 20 * use['slow']
        while f'at {self.address}' not in self.said() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)

    def said(self):
        self.file.seek(0)
        return self.file.read()

    def wait(self):
        """(status, output, CPU seconds)."""
        status, usage = os.wait4(self.process.pid, 0)[1:]
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode, self.said(), usage.ru_utime + usage.ru_stime

    def end(self):
        """As from the keyboard."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()


def build(work, name, top, *words):
    design = os.path.join(work, f'{name}.so')
    done = subprocess.run([use['nonic'], 'hdl', 'build', os.path.join(ROOT, 'hdl', 'examples', f'{top}.sv'), '-o', design, *words],
                          capture_output=True, text=True, timeout=300)
    if not os.path.exists(design):
        check(f'{top}.sv compiles', False, done.stderr)
        finish()
    return design
