"""Other users of the machine, whom the kernel does not always name: what they are given, and what they hinder."""
import os
import re
import subprocess
import sys

import harness
from harness import Failure, Skipped, finish, free_port, start, test, wait_for_listener
from namespaces import Namespaces

OVERFLOW = 65534  # The user that a user namespace shows for everybody whom it does not map.
KNOCK = os.path.join(harness.arguments.build, 'tests', 'hostile', 'knock')


def as_user(user):
    return ['setpriv', '--reuid', str(user), '--regid', str(user), '--clear-groups']


# As user 65534 of a user namespace that names 65,536 users: a container without privileges has such a map.
CONTAINER = """
import ctypes, os, sys
from_program = os.pipe()
program = os.getpid()
if os.fork() == 0:
    os.read(from_program[0], 1)
    for name in ('uid_map', 'gid_map'):
        with open(f'/proc/{program}/{name}', 'w') as file:
            file.write('0 100000 65536')
    os._exit(0)
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
    sys.exit(f'unshare: {os.strerror(ctypes.get_errno())}')
os.write(from_program[1], b'.')
if os.wait()[1]:
    sys.exit('the map of users is refused')
os.setgroups([]), os.setgid(65534), os.setuid(65534)
os.execvp(sys.argv[1], sys.argv[1:])
"""

# Commands that run another one as a user of that kind.
USERS = {
    'an ordinary user': as_user(1000),
    'nobody, whom all know': as_user(OVERFLOW),
    'a user without a name': [*as_user(1000), 'unshare', '-U'],
    'nobody of a container': [sys.executable, '-c', CONTAINER],
}


def need_root(inside=()):
    if os.geteuid() != 0:
        raise Skipped('only root can become another user')
    done = subprocess.run([*inside, 'true'], capture_output=True, text=True)
    if done.returncode:
        raise Skipped(done.stderr.strip())


def knock(inside, user):
    done = subprocess.run([*inside, *as_user(user), KNOCK, 'take'], capture_output=True, text=True, timeout=60)
    return done.stdout


def what_is_given(who, options, program, to, wanted):
    """To a program of that user of the machine, by all listeners of a program."""
    need_root(USERS[who])
    with Namespaces(ends=1) as space:
        port = free_port()
        inside = [*space.inside[0], *USERS[who]]
        victim = start([*program, '-p', port], 'auto', options, inside)
        try:
            harness.wait_until(lambda: victim.poll() is not None or ready(space, program, port, victim))
            said = knock(space.inside[0], to)
            if '@' in said or 'nonic-stat' not in said:
                raise Failure(f'no listeners were found:\n{said}')
            given = re.findall(r'^.*: [1-9]\d* descriptors.*|^nonic-stat.* words', said, re.M)
            if bool(given) != wanted:
                raise Failure(said)
        finally:
            victim.kill()
            output, _ = victim.communicate()
        is_named = 'name' not in who and 'container' not in who
        if ('shared memory: this program\'s user ID' in output) == is_named:
            raise Failure(f'said of its user:\n{output}')


def ready(space, program, port, victim):
    if program[0] == 'rping':
        done = subprocess.run([*space.inside[0], 'cat', '/proc/net/unix'], capture_output=True, text=True)
        return f'/{port}/' in done.stdout
    return harness.listens(port, victim.pid)


PINGPONG = ('ibv_rc_pingpong', '-g', '0')
RPING = ('rping', '-s', '-a', '127.0.0.1')


def two_of_nobody():
    """Where every user has a name, 65534 is a user like any other: two of its programs meet by rings."""
    who = 'nobody, whom all know'
    need_root(USERS[who])
    with Namespaces(ends=1) as space:
        inside, port = [*space.inside[0], *USERS[who]], free_port()
        server = start([*PINGPONG, '-p', port], 'shm', inside=inside)
        try:
            wait_for_listener(port, server)
            client = start([*PINGPONG, '-p', port, '127.0.0.1'], 'shm', inside=inside)
            output = finish(client, 60)
            if client.returncode:
                raise Failure(output)
        finally:
            server.kill()
            server.communicate()


def two_without_a_name(who):
    """They do not know one another, and use UDP."""
    need_root(USERS[who])
    with Namespaces(ends=1) as space:
        inside, port = [*space.inside[0], *USERS[who]], free_port()
        server = start([*PINGPONG, '-p', port], 'auto', inside=inside)
        try:
            wait_for_listener(port, server)
            client = start([*PINGPONG, '-p', port, '127.0.0.1'], 'auto', inside=inside)
            output = finish(client, 60)
            if client.returncode or 'this program uses UDP alone' not in output:
                raise Failure(output)
        finally:
            server.kill()
            server.communicate()


def service_without_a_name():
    """One at any address is found; of who claims one address, nobody could tell whether he may."""
    who = 'a user without a name'
    need_root(USERS[who])
    with Namespaces(ends=1) as space:
        inside = [*space.inside[0], *USERS[who]]
        for address, found in ((), True), (('-a', '127.0.0.1'), False):
            port = free_port()
            server = start(['rping', '-s', '-p', port, '-C', '3', *address], 'auto', inside=inside)
            try:
                harness.wait_until(lambda: ready(space, RPING, port, server))
                client = start(['rping', '-c', '-p', port, '-C', '3', '-a', '127.0.0.1'], 'auto', inside=inside)
                output = finish(client, 60)
                if (client.returncode == 0) != found:
                    raise Failure(f'{address}, {client.returncode}:\n{output}')
            finally:
                server.kill()
                server.communicate()


def crowded(attackers, pairs):
    """Others call at all listeners and hang up, as fast as they can: programs of one user meet by rings."""
    need_root()
    with Namespaces(ends=1) as space:
        inside = space.inside[0]
        crowd = [subprocess.Popen([*inside, *as_user(OVERFLOW), KNOCK, 'crowd', '60'], stdout=subprocess.DEVNULL)
                 for _ in range(attackers)]
        try:
            for _ in range(pairs):
                meet_by_ring(inside)
        finally:
            for one in crowd:
                one.kill()
                one.wait()


def meet_by_ring(inside):
    port = free_port()
    args, options = [*PINGPONG, '-n', '100', '-p', port], ['--stats']
    server = start(args, 'auto', options, inside)
    try:
        wait_for_listener(port, server)
        client = start([*args, '127.0.0.1'], 'auto', options, inside)
        output = finish(client, 60, server)
        if client.returncode or 'udp_datagrams_sent' in output or 'sent_pkts' not in output:
            raise Failure(output)
    finally:
        server.kill()
        server.communicate()


def tests():
    for who in USERS:
        for options, program in (((), PINGPONG), (('--device', '127.0.0.1'), PINGPONG), ((), RPING)):
            words = f'{who}: {" ".join((program[0], *options))}'
            test(f'strangers are given nothing by {words}', what_is_given, who, options, program, 1001, False)
    test('strangers: the same user is given what is its own', what_is_given, 'an ordinary user', (), PINGPONG, 1000,
         True)
    test('strangers: two programs of nobody meet by rings', two_of_nobody)
    test('strangers: services of a user without a name', service_without_a_name)
    test('strangers: four who call and hang up', crowded, 4, 40 if harness.arguments.full else 8, alone=True)
    for who in ('a user without a name', 'nobody of a container'):
        test(f'strangers: two programs of {who} use UDP', two_without_a_name, who)
