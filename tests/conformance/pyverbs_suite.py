"""rdma-core's own test suite, as its runners need it (tests/conformance/pyverbs on nonic, tests/interop/pyverbs
on Soft-RoCE): the modules that are run, how a module is started, and what its output says."""
import glob
import gzip
import os
import re
import shutil

# Of each module: its tests, those that pass on nonic, and how many more do with huge pages.
MODULES = {
    'device': (22, 22, 0),
    'addr': (3, 3, 0),
    'pd': (4, 4, 0),
    'mr': (27, 17, 0),
    'cq': (4, 4, 0),
    'cq_events': (2, 2, 0),
    'cqex': (5, 5, 0),
    'qp': (26, 21, 0),
    'qpex': (20, 20, 0),
    'atomic': (9, 9, 0),
    'relaxed_ordering': (3, 3, 0),
    'fork': (1, 1, 0),
    'odp': (17, 15, 2),
    'parent_domain': (6, 5, 1),
    'shared_pd': (1, 1, 0),
    'rdmacm': (10, 10, 0),
}
HUGE_PAGES = 8  # Of 2 MB: enough for the three tests that want some.


def unpack(source, folder):
    """The suite as it came, without the compression of documentation."""
    for path in glob.glob(os.path.join(source, '*.py*')):
        name = os.path.join(folder, os.path.basename(path).removesuffix('.gz'))
        with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as packed, \
                open(name, 'wb') as copy:
            shutil.copyfileobj(packed, copy)


def command(python, folder, module, device, gid):
    """Runs one module on a device."""
    return [python, os.path.join(folder, 'run_tests.py'), '--dev', device, '--port', '1',
            '--gid', str(gid), '-v', f'tests.test_{module}']


def skips(output):
    """The reason of each skip."""
    return re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", output, re.M)


def counts(output):
    """Passes, failures and errors, skips, as the suite sums them up; None if it did not come to its end."""
    ran = re.search(r'^Ran (\d+) tests? in', output, re.M)
    if not ran:
        return None
    said = dict(re.findall(r'(failures|errors|skipped)=(\d+)', output[ran.end():]))
    bad = int(said.get('failures', 0)) + int(said.get('errors', 0))
    skipped = int(said.get('skipped', 0))
    return int(ran.group(1)) - bad - skipped, bad, skipped
