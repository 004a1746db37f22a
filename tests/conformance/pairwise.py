"""Few combinations of options in which every two values of any two options meet."""
import itertools
import random


def pairs_of(row):
    """The pairs of options' values that meet in this row."""
    return {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}


def combinations(options, allowed, tries=50):
    """Rows {option: value} for {option: [values]}. allowed(row): whether the row, which may lack options yet,
    can be run. The same rows at every run: of some random candidates the one that covers most is taken."""
    chance = random.Random(1)
    missing = set()
    for (one, values), (other, others) in itertools.combinations(options.items(), 2):
        for value, another in itertools.product(values, others):
            pair = {one: value, other: another}
            if completed(pair, options, allowed, chance):
                missing.add(frozenset(pair.items()))
    while missing:
        begun = [dict(pair) for pair in sorted(missing, key=sorted_text)[:tries]]
        rows = [row for row in (completed(b, options, allowed, chance) for b in begun) if row]
        best = max(rows, key=lambda row: len(pairs_of(row) & missing))
        missing -= pairs_of(best)
        yield best


def sorted_text(pair):
    return sorted(map(str, pair))


def completed(begun, options, allowed, chance, tries=200):
    """A row that has these values and is allowed; None if none is found."""
    for _ in range(tries):
        row = {name: begun.get(name, chance.choice(values)) for name, values in options.items()}
        if allowed(row):
            return row
    return None
