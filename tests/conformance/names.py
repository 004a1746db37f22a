"""A program gets nonic by whatever name it opens libibverbs."""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import Failure, alone, test

ANY_NAME = 'libibverbs.so', 'libibverbs.so.1', '/nowhere/libibverbs.so', './libibverbs.so.1.14.44.0'


def program_of(name):
    return os.path.join(harness.arguments.build, 'tests', 'integrity', name)


def installed(name):
    """The system's library."""
    cache = subprocess.run(['/sbin/ldconfig', '-p'], capture_output=True, text=True).stdout
    return next(line.split()[-1] for line in cache.splitlines() if line.split()[:1] == [name])


def opens(way, name, *opener, program=None):
    said = alone([program or program_of('opens'), way, name, *opener], 'auto')
    if f'1 devices, from {harness.arguments.build}/' not in said:
        raise Failure(said)


def others_untouched():
    """Other libraries are opened as before: by the search path of the opener, with the loader's errors."""
    with tempfile.TemporaryDirectory() as directory:
        program = shutil.copy(program_of('opens'), directory)
        shutil.copy(installed('librdmacm.so.1'), f'{directory}/libbeside.so')
        for way in 'dlopen', 'base':
            opens(way, 'libbeside.so', program=program)
        opens('apart', f'{directory}/libbeside.so', program=program)
    for name in 'libibverbs.so1', 'libibverbs.sole', 'mylibibverbs.so', 'libibverbs.so.1/none':
        process = harness.start([program_of('opens'), 'dlopen', name], 'auto')
        said = harness.finish(process, 60)
        if process.returncode != 1 or f'opens: {name}: cannot open shared object file' not in said:
            raise Failure(said)


def python(code):
    alone(['/usr/bin/python3', '-c', f'import ctypes, ctypes.util\n{code}\n'
           'v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)\n'
           'assert v.ibv_get_device_list(None)[0]\n'], 'auto')


def tests():
    for name in *ANY_NAME, installed('libibverbs.so.1'), installed('librdmacm.so.1'):
        test(f'dlopen {name}', opens, 'dlopen', name, smoke=True)
        test(f'dlmopen {name}', opens, 'base', name)
    if not harness.sanitizer:  # Their runtimes want one namespace, and no RTLD_DEEPBIND.
        for name in *ANY_NAME, installed('librdmacm.so.1'):
            test(f'dlopen {name}, RTLD_DEEPBIND', opens, 'deepbind', name)
            test(f'dlmopen {name}, a new namespace', opens, 'apart', name, smoke=True)
        opener = program_of('opener.so')
        test('dlopen libibverbs.so where RTLD_DEEPBIND was used', opens, 'deepbind', 'libibverbs.so', opener, smoke=True)
        for name in 'libibverbs.so', '/nowhere/libibverbs.so':
            test(f'dlopen {name} in a new namespace', opens, 'apart', name, opener)
        test('dlopen of other libraries', others_untouched, smoke=True)
    test('Python: CDLL by both names', python, 'ctypes.CDLL("libibverbs.so.1")\nv = ctypes.CDLL("libibverbs.so")', smoke=True)
    test('Python: CDLL of find_library', python, 'v = ctypes.CDLL(ctypes.util.find_library("ibverbs"))')
    for wire in harness.EACH_WIRE:
        for qps in '2', '4':
            test(f'{wire} collective {qps}', alone, [program_of('collective'), qps], wire, smoke=qps == '4')
