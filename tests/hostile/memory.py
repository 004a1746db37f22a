"""Who reaches memory that is not, or no longer, theirs: windows, boards, process ids, unmapped pages."""


def tests():
    pass
