"""Programs under sanitizers and valgrind: a right one runs and is not accused, and what is wrong is found."""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import Failure, Skipped, alone, test

SOURCE = os.path.join(harness.ROOT, 'tests', 'integrity', 'integrity.c')
# It opens a device, and then reads one byte behind what it has allocated.
FAULTY = '''
#include <infiniband/verbs.h>
#include <stdlib.h>
int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices[0] == NULL ? NULL : ibv_open_device(devices[0]);
    volatile char *memory = malloc(8);
    return context == NULL ? 7 : memory[8] & 0;
}
'''


def build(compiler, sanitizer, source, directory):
    if shutil.which(compiler) is None:
        raise Skipped(f'{compiler} is not there')
    program = os.path.join(directory, 'program')
    flags = [f'-fsanitize={sanitizer}', '-fno-sanitize-recover=all'] if sanitizer else []
    done = subprocess.run([compiler, '-g', '-O1', '-w', *flags, '-I', harness.ROOT, source, '-o', program, '-libverbs',
                           '-lpthread'], capture_output=True, text=True)
    if done.returncode:
        raise Failure(done.stderr)
    return program


def is_right(compiler, sanitizer, wire, *before):
    with tempfile.TemporaryDirectory() as directory:
        program = build(compiler, sanitizer, SOURCE, directory)
        alone([*before, program, '--ops', '60', '--qps', '2'], wire)


def is_found(compiler, wire):
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, 'faulty.c')
        with open(source, 'w') as file:
            file.write(FAULTY)
        process = harness.start([build(compiler, 'address', source, directory)], wire)
        said = harness.finish(process, 60)
        if process.returncode == 0 or 'heap-buffer-overflow' not in said:
            raise Failure(said)


def valgrind(wire):
    if shutil.which('valgrind') is None:
        raise Skipped('valgrind is not there')
    # It does not see what other processes write into our memory, and takes that for undefined.
    is_right('gcc', None, wire, 'valgrind', '-q', '--error-exitcode=9', '--undef-value-errors=no')


def tests():
    if harness.sanitizer:
        return
    for wire in 'shm', 'udp':
        for compiler in 'gcc', 'clang':
            for sanitizer in 'address', 'thread', 'undefined':
                test(f'{wire}: a right program of {compiler} with -fsanitize={sanitizer}', is_right, compiler, sanitizer,
                     wire, smoke=(wire, compiler, sanitizer) == ('shm', 'gcc', 'address'))
            test(f'{wire}: a wrong program of {compiler} with -fsanitize=address', is_found, compiler, wire)
        test(f'{wire}: a right program under valgrind', valgrind, wire)
