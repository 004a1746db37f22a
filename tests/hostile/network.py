"""What anybody on the network can send, and what interfaces do: floods, forged packets, small MTUs."""


def tests():
    pass
