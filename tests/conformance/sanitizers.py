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

# Bytes that are sent and have no value: MemorySanitizer and memcheck; memcheck says of the programs above:
UNDEFINED = 'undefined', 'undefined-inline'
CHECKED = {'write': 'Unaddressable byte(s)', 'in-flight': 'Unaddressable byte(s)', 'written': 'Unaddressable byte(s)',
           **{mistake: 'Uninitialised byte(s)' for mistake in UNDEFINED}}

# Races of a program with its NIC (races.c).
RACES = 'sent', 'received', 'read', 'order', 'unsignaled', 'inlined', 'written', 'written-before', 'withdrawn', \
    'deregistered', 'failed', 'threads', 'filled', 'told', 'announced', 'resized', 'device'

SANITIZERS = 'address', 'thread', 'undefined'


def build(compiler, sanitizer, source, directory, *more):
    if shutil.which(compiler) is None:
        raise Skipped(f'{compiler} is not there')
    program = os.path.join(directory, 'program')
    flags = [f'-fsanitize={sanitizer}', '-fno-sanitize-recover=all'] if sanitizer else []
    done = subprocess.run([compiler, '-g', '-O1', '-w', *flags, '-I', harness.ROOT, source, *more, '-o', program, '-libverbs',
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
                mistake not in ('threads', 'announced') and 'nonic queue pair' not in said:
            raise Failure(f'{process.returncode}: {said}')
        right = alone([program, mistake, 'right'], wire)
        if right and 'ThreadSanitizer' in right:
            raise Failure(right)


def numbers(compiler, wire):
    """The descriptors of the NIC are nothing to ThreadSanitizer."""
    with tempfile.TemporaryDirectory() as directory:
        source, commands = (os.path.join(harness.ROOT, 'tests', *path)
                            for path in (('conformance', 'numbers.c'), ('api', 'cm_program.c')))
        alone([build(compiler, 'thread', source, directory, commands, '-lcmocka')], wire)


def undefined(mistake, wire):
    with tempfile.TemporaryDirectory() as directory:
        program = build('clang', 'memory', os.path.join(harness.ROOT, 'tests', 'conformance', 'poison.c'), directory)
        process = harness.start([program, mistake], wire)
        said = harness.finish(process, 60)
        if process.returncode == 0 or 'use-of-uninitialized-value' not in said and 'Uninitialized bytes' not in said:
            raise Failure(f'{process.returncode}: {said}')
        alone([program, mistake, 'right'], wire)


VALGRIND = 'valgrind', '-q', '--error-exitcode=9'


def needs_valgrind():
    if shutil.which('valgrind') is None:
        raise Skipped('valgrind is not there')


def valgrind(wire):
    needs_valgrind()
    is_right('gcc', None, wire, *VALGRIND)


def valgrind_finds(mistake, wire):
    needs_valgrind()
    with tempfile.TemporaryDirectory() as directory:
        program = build('gcc', None, os.path.join(harness.ROOT, 'tests', 'conformance', 'poison.c'), directory)
        process = harness.start([*VALGRIND, program, mistake], wire)
        said = harness.finish(process, 120)
        if process.returncode != 9 or CHECKED[mistake] not in said:
            raise Failure(f'{process.returncode}: {said}')
        alone([*VALGRIND, program, mistake, 'right'], wire)


def leaks(compiler, wire):
    """LeakSanitizer finds pointers that only requests have, and what nobody has."""
    with tempfile.TemporaryDirectory() as directory:
        program = build(compiler, 'address', os.path.join(harness.ROOT, 'tests', 'conformance', 'kept.c'), directory)
        words = 'env', 'ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=1', program
        alone(words, wire)
        process = harness.start([*words, 'leak'], wire)
        said = harness.finish(process, 60)
        if 'SUMMARY: AddressSanitizer: 777 byte(s) leaked' not in said:
            raise Failure(f'{process.returncode}: {said}')


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
            test(f'{wire}: a race with the NIC, by {compiler}: none about its descriptors', numbers, compiler, wire,
                 smoke=(wire, compiler) == ('udp', 'gcc'))
        for program in 'answers', 'landing':
            test(f'{wire}: {program}: each byte, by clang with -fsanitize=memory', is_believed, program, wire)
        for mistake in UNDEFINED:
            test(f'{wire}: bytes without a value are sent, by clang: {mistake}', undefined, mistake, wire)
        for compiler in 'gcc', 'clang':
            test(f'{wire}: pointers in requests are no leaks, by {compiler}', leaks, compiler, wire)
        test(f'{wire}: a right program under valgrind', valgrind, wire)
        for mistake in CHECKED:
            test(f'{wire}: under valgrind: {mistake}', valgrind_finds, mistake, wire, smoke=(wire, mistake) == ('shm', 'undefined'))
