"""What programs do to themselves: exit in signal handlers, cancelled threads, forks, small stacks."""


def tests():
    pass
