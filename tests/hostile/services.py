"""Who claims services of the connection manager, and what comes in as management datagrams."""


def tests():
    pass
