"""The view of a person at a shell: a line is typed on a terminal, and completed."""
import os
import pty
import re
import select
import socket
import time

SETUP = {'bash': ('bash --norc --noprofile -i', 'source {0}/share/bash-completion/completions/nonic'),
         'zsh': ('zsh -f -i', 'fpath=({0}/share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D')}


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def again(attempt, seconds=20):
    """Until it ends well: its server may not listen yet."""
    end = time.monotonic() + seconds
    done = attempt()
    while done.returncode and time.monotonic() < end:
        time.sleep(0.1)
        done = attempt()
    return done


def read_until(fd, pattern, seconds):
    """All that comes until the pattern has, or the time is over."""
    said, end = '', time.monotonic() + seconds
    while not re.search(pattern, said) and (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            try:
                said += os.read(fd, 65536).decode(errors='replace')
            except OSError:  # The shell has ended.
                break
    return said


def completed(shell, prefix, line):
    """The line after TAB; prefix: where nonic is installed. The shell is asked to print it, so that what it draws
    meanwhile does not matter."""
    program, setup = SETUP[shell]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM='dumb', PATH=f'{prefix}/bin:{os.environ["PATH"]}', HOME='/nonexistent')
        os.execvp(program.split()[0], program.split())
    try:
        os.write(fd, f'{setup.format(prefix)}; echo REA""DY\n'.encode())
        read_until(fd, 'READY\r\n', 20)
        # Control-A goes to the line's begin. The shell reads it after it has completed.
        os.write(fd, f'{line}\t\x01echo GO""T:\n'.encode())
        found = re.search(r'\nGOT:(.*?) *\r', said := read_until(fd, r'\nGOT:.*\r', 20))
        return found[1] if found else said
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
