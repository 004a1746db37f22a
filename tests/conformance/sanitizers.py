"""Programs under sanitizers and valgrind: a right one runs and is not accused, and what is wrong is found."""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import Failure, Skipped, alone, test

INTEGRITY = os.path.join(harness.ROOT, 'tests', 'integrity', 'integrity.c')
# It opens a device, and then makes its mistake.
FAULTY = '''
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices[0] == NULL ? NULL : ibv_open_device(devices[0]);
    volatile char *memory = malloc(8);
    return context == NULL || (FAULT) ? 1 : 0;
}
'''
# By sanitizer: mistakes, and what is said of them.
FAULTS = (
    ('address', 'reads behind its memory', 'memory[8]', 'heap-buffer-overflow'),
    ('memory', 'reads what it has not written', 'memory[0]', 'use-of-uninitialized-value'),
    ('memory', 'writes that to a file', 'write(1, memory, 8)', 'use-of-uninitialized-value'),
    ('memory', 'does so in a child', 'fork() == 0 ? write(1, memory, 8) : wait(NULL)', 'use-of-uninitialized-value'),
)

# Memory that the NIC reads or writes (poison.c): what AddressSanitizer says, and of which access.
POISONS = {'write': ('heap-use-after-free', 'READ'), 'read': ('heap-use-after-free', 'WRITE'),
           'beyond': ('heap-buffer-overflow', 'WRITE'), 'in-flight': ('heap-use-after-free', 'READ'),
           'written': ('heap-use-after-free', 'WRITE'), 'inline': ('heap-use-after-free', 'READ')}

# Races of a program with its NIC (races.c).
RACES = 'sent', 'received', 'read', 'order', 'unsignaled', 'inlined', 'written', 'written-before', 'withdrawn', 'threads'

SANITIZERS = 'address', 'thread', 'undefined'


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
        program = build(compiler, sanitizer, INTEGRITY, directory)
        # A thread that takes the NIC's lock thousands of times in a row has it by bias from then on.
        alone([*before, program, '--ops', '500' if sanitizer == 'thread' else '60', '--qps', '2'], wire)


def is_believed(program, wire):
    """MemorySanitizer takes all that a program is told for initialised. Options lead to other parts of nonic."""
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(harness.ROOT, 'tests', 'conformance', f'{program}.c')
        program = build('clang', 'memory', source, directory)
        for options in (), ('--device', 'lo'), ('--strict', '--stats', '--capture', f'{directory}/%p.pcapng'):
            alone([program], wire, options)


def is_found(compiler, sanitizer, fault, report, wire):
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, 'faulty.c')
        with open(source, 'w') as file:
            file.write(FAULTY.replace('FAULT', fault))
        process = harness.start([build(compiler, sanitizer, source, directory)], wire)
        said = harness.finish(process, 60)
        if report not in said:
            raise Failure(said)


def poison(compiler, mistake, wire):
    """The NIC's accesses are judged as the program's own are; the right twin is not accused."""
    with tempfile.TemporaryDirectory() as directory:
        program = build(compiler, 'address', os.path.join(harness.ROOT, 'tests', 'conformance', 'poison.c'), directory)
        kind, access = POISONS[mistake]
        process = harness.start([program, mistake], wire)
        said = harness.finish(process, 60)
        if process.returncode == 0 or kind not in said or f'{access} of size' not in said or 'nonic: the NIC' not in said \
                or 'allocated by' not in said:
            raise Failure(f'{process.returncode}: {said}')
        alone([program, mistake, 'right'], wire)


def race(compiler, mistake, wire):
    """The NIC is a thread that touches the memory of requests; the right twin is not accused."""
    with tempfile.TemporaryDirectory() as directory:
        program = build(compiler, 'thread', os.path.join(harness.ROOT, 'tests', 'conformance', 'races.c'), directory)
        process = harness.start([program, mistake], wire)
        said = harness.finish(process, 60)
        if process.returncode == 0 or 'ThreadSanitizer: data race' not in said or \
                mistake != 'threads' and 'nonic queue pair' not in said:
            raise Failure(f'{process.returncode}: {said}')
        right = alone([program, mistake, 'right'], wire)
        if right and 'ThreadSanitizer' in right:
            raise Failure(right)


def valgrind(wire):
    if shutil.which('valgrind') is None:
        raise Skipped('valgrind is not there')
    # It does not see what other processes write into our memory, and takes that for undefined.
    is_right('gcc', None, wire, 'valgrind', '-q', '--error-exitcode=9', '--undef-value-errors=no')


def tests():
    if harness.sanitizer:
        return
    for wire in 'shm', 'udp':
        for compiler, sanitizers in ('gcc', SANITIZERS), ('clang', (*SANITIZERS, 'memory')):
            for sanitizer in sanitizers:
                test(f'{wire}: a right program of {compiler} with -fsanitize={sanitizer}', is_right, compiler,
                     sanitizer, wire, smoke=(wire, compiler, sanitizer) == ('shm', 'gcc', 'address'))
            for sanitizer, mistake, fault, report in FAULTS:
                if sanitizer in sanitizers:
                    test(f'{wire}: a program of {compiler} with -fsanitize={sanitizer} that {mistake}', is_found,
                         compiler, sanitizer, fault, report, wire)
        for compiler in 'gcc', 'clang':
            for mistake in POISONS:
                test(f'{wire}: memory that is not the program\'s, by {compiler}: {mistake}', poison, compiler, mistake, wire,
                     smoke=(wire, compiler) == ('shm', 'gcc'))
            for mistake in RACES:
                test(f'{wire}: a race with the NIC, by {compiler}: {mistake}', race, compiler, mistake, wire,
                     smoke=(wire, compiler) == ('shm', 'gcc'))
        for program in 'answers', 'landing':
            test(f'{wire}: {program}: each byte, by clang with -fsanitize=memory', is_believed, program, wire)
        test(f'{wire}: a right program under valgrind', valgrind, wire)
