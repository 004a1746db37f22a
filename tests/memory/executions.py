"""All executions of a small program on shared memory that a memory model allows.

A thread is a generator: it yields R, W, F, X or S, is sent what was read, and returns its result, or AWAY if this run of it is
not looked at (it would wait on). Executions are made up without thought: each read may see each value that anything writes
there, each value may come from each write of it, and the writes of a place may come in each order. A model then says which
of these are consistent. Models are written down as their authors did, with relations as rows of bits:

    C11     Lahav et al., Repairing Sequential Consistency in C/C++11 (PLDI 2017), without its rule against values out of
            thin air, and with C++20's release sequences: it allows more than a compiler may do. Accesses that are not
            atomic may race; a race is a failure.
    ARM     Pulte et al., Simplifying ARM Concurrency (POPL 2018), without dependencies but those that a program names, and
            with C's accesses as gcc compiles them at their weakest: LDAPR, and pairs of exclusives.
    TSO     x86: stores wait in a buffer, nothing else is seen out of order.
"""
import itertools

AWAY = object()
C11, ARM, TSO = 'C11', 'ARM', 'TSO'


class Event:
    """kind: R, W or F. order: na (not atomic), rlx, acq, rel, acqrel, sc; of a fence also dmb.st, dmb, of ARM alone."""

    def __init__(self, kind, place=None, value=None, order='rlx', after=()):
        self.kind, self.place, self.value, self.order, self.after = kind, place, value, order, after
        self.partner = None     # Of a read: the write of the same instruction, at once.
        self.single = False     # Both at once in one instruction of ARM (LSE).


class Value(int):
    """A value that was read remembers by which read, so that a write of it depends on that."""


def R(place, order='rlx', after=()):
    return 'read', place, order, after


def W(place, value, order='rlx', after=()):
    return 'write', place, value, order, (*after, *([value] if isinstance(value, Value) else []))


def F(order):
    return 'fence', order


def X(place, value, order='rlx', single=False):
    """An exchange; `value` may be a function of what was there."""
    return 'exchange', place, value, order, single


def S(place, expected, value, order='rlx'):
    """A compare and swap; the value that was there comes back."""
    return 'swap', place, expected, value, order


# The orders of the read and of the write of an exchange, if they are not its own.
READS = {'rel': 'rlx', 'acqrel': 'acq'}
WRITES = {'acq': 'rlx', 'acqrel': 'rel'}


# -- Runs of one thread -------------------------------------------------------------------------------

def run(thread, choices):
    """Plays a thread, whose reads see `choices`. Its events, and its result; or the place of the read that has no choice."""
    events, left = [], list(choices)
    body, answer = thread(), None

    def read(place, order, after=()):
        value = Value(left.pop(0))
        events.append(Event('R', place, int(value), order, tuple(after)))
        value.event = events[-1]
        return value
    try:
        while True:
            what, *rest = body.send(answer)
            answer = None
            if what == 'fence':
                if rest[0] is not None:
                    events.append(Event('F', order=rest[0]))
            elif what == 'write':
                place, value, order, after = rest
                events.append(Event('W', place, int(value), order, after))
            elif not left:
                return None, rest[0]
            elif what == 'read':
                answer = read(*rest)
            else:
                place, *operands, order = rest[:-1] if what == 'exchange' else rest
                answer = read(place, READS.get(order, order))
                new = operands[-1](int(answer)) if callable(operands[-1]) else operands[-1]
                if what == 'exchange' or answer == operands[0]:
                    events.append(Event('W', place, new, WRITES.get(order, order)))
                    events[-2].partner = events[-1]
                    events[-1].single = what == 'exchange' and rest[-1]
    except StopIteration as end:
        return events, end.value


def runs(thread, domain):
    """All of them, for the values that places may have."""
    found, todo = [], [()]
    while todo:
        choices = todo.pop()
        events, result = run(thread, choices)
        if events is None:
            todo += [(*choices, value) for value in sorted(domain.get(result, {0}))]
        else:
            found.append((events, result))
    return found


def all_runs(threads, most=8):
    """Of each thread; a place may have 0 and what any run writes there. Counters end where no more writes could be."""
    domain = {}
    for _ in range(most):
        known = {place: set(values) for place, values in domain.items()}
        found = [runs(thread, domain) for thread in threads]
        for events, _ in itertools.chain(*found):
            for event in events:
                if event.kind == 'W':
                    domain.setdefault(event.place, {0}).add(event.value)
        if domain == known:
            break
    return [[one for one in some if one[1] is not AWAY] for some in found]


# -- Relations ----------------------------------------------------------------------------------------

def union(*relations):
    rows = list(relations[0])
    for relation in relations[1:]:
        for at, row in enumerate(relation):
            rows[at] |= row
    return rows


def then(first, second):
    rows = []
    for row in first:
        reached, at = 0, 0
        while row:
            if row & 1:
                reached |= second[at]
            row >>= 1
            at += 1
        rows.append(reached)
    return rows


def within(relation, sources, targets):
    return [row & targets if sources >> at & 1 else 0 for at, row in enumerate(relation)]


def inverse(relation):
    rows = [0] * len(relation)
    for at, row in enumerate(relation):
        for to in range(len(relation)):
            if row >> to & 1:
                rows[to] |= 1 << at
    return rows


def closure(relation):
    rows = list(relation)
    for middle, _ in enumerate(rows):
        bit, reached = 1 << middle, rows[middle]
        for at, row in enumerate(rows):
            if row & bit:
                rows[at] = row | reached
                if at == middle:
                    reached = rows[at]
    return rows


def has_loop(relation):
    return any(row >> at & 1 for at, row in enumerate(relation))


def has_cycle(relation):
    return has_loop(closure(relation))


# -- An execution -------------------------------------------------------------------------------------

class Frame:
    """The runs of all threads, and what follows from them alone; the first events are the first values of places."""

    def __init__(self, chosen):
        places = sorted({event.place for events, _ in chosen for event in events if event.place is not None})
        self.events = [Event('W', place, 0, 'rlx') for place in places]
        self.threads = [-1] * len(places)
        for thread, (events, _) in enumerate(chosen):
            self.events += events
            self.threads += [thread] * len(events)
        self.results = [result for _, result in chosen]
        self.count = len(self.events)
        self.number = {id(event): at for at, event in enumerate(self.events)}
        everything = range(self.count)
        self.po = [sum(1 << b for b in everything if a < b and self.threads[a] == self.threads[b] >= 0) for a in everything]
        self.same = [sum(1 << b for b in everything if self.events[a].place is not None and
                         self.events[a].place == self.events[b].place) for a in everything]
        self.ours = [sum(1 << b for b in everything if self.threads[a] == self.threads[b]) for a in everything]
        self.rmw = [1 << self.number[id(event.partner)] if event.partner else 0 for event in self.events]
        self.all = (1 << self.count) - 1
        self.writes_of = {place: [at for at in everything if self.events[at].kind == 'W' and self.events[at].place == place]
                          for place in places}
        self.reads = [at for at in everything if self.events[at].kind == 'R']

    def those(self, kind, *orders):
        return sum(1 << at for at, event in enumerate(self.events) if event.kind in kind and (not orders or event.order in orders))

    def sources(self):
        """For each read, the writes that it may see."""
        for read in self.reads:
            event = self.events[read]
            yield [write for write in self.writes_of[event.place] if self.events[write].value == event.value and
                   not self.po[read] >> write & 1]

    def orders(self):
        """For each place, the orders of its writes: the first value first, a thread's in its order."""
        for writes in self.writes_of.values():
            yield [(writes[0], *order) for order in itertools.permutations(writes[1:]) if
                   all(not self.po[b] >> a & 1 for i, a in enumerate(order) for b in order[i + 1:])]


class Execution:
    def __init__(self, frame, sources, orders):
        self.frame = frame
        self.rf, self.co = [0] * frame.count, [0] * frame.count
        for read, write in zip(frame.reads, sources):
            self.rf[write] |= 1 << read
        for order in orders:
            for i, write in enumerate(order):
                self.co[write] = sum(1 << later for later in order[i + 1:])
        self.fr = [row & ~(1 << at) for at, row in enumerate(then(inverse(self.rf), self.co))]
        self.final = {frame.events[order[-1]].place: frame.events[order[-1]].value for order in orders}

    def external(self, relation):
        return [row & ~self.frame.ours[at] for at, row in enumerate(relation)]

    def is_coherent(self):
        """All models share this: each place for itself is as without a cache, and an exchange is at once."""
        frame = self.frame
        here = [row & frame.same[at] for at, row in enumerate(frame.po)]
        between = then(self.external(self.fr), self.external(self.co))
        return not has_cycle(union(here, self.rf, self.co, self.fr)) and \
            not any(row & between[at] for at, row in enumerate(frame.rmw))

    # C11: `happens` is what happens before what.

    def synchronizes(self):
        frame = self.frame
        atomic = frame.all & ~frame.those('RW', 'na')
        strong, weak = ('rel', 'acqrel', 'sc'), ('acq', 'acqrel', 'sc')
        chain = then(self.rf, frame.rmw)
        sequence = closure(chain)
        sequence = [row | 1 << at for at, row in enumerate(sequence)]
        to_read = within(then(within(sequence, atomic & frame.those('W'), frame.all), self.rf), frame.all, atomic)
        fences, behind = frame.those('F', *strong), frame.those('F', *weak)
        begin = union(within([1 << at for at in range(frame.count)], frame.those('W', *strong), frame.all),
                      within(frame.po, fences, frame.those('W')))
        end = union(within([1 << at for at in range(frame.count)], frame.those('R', *weak), frame.all),
                    within(frame.po, frame.those('R'), behind))
        return then(then(begin, to_read), end)

    def c11(self):
        """Is it consistent, and has it a race?"""
        frame = self.frame
        first = sum(1 << at for at in range(frame.count) if frame.threads[at] < 0)
        before = [row | (frame.all & ~first if first >> at & 1 else 0) for at, row in enumerate(frame.po)]
        happens = closure(union(before, self.synchronizes()))
        extended = closure(union(self.rf, self.co, self.fr))
        if has_loop(happens) or has_loop(then(happens, extended)) or not self.is_sequential(before, happens, extended):
            return False, False
        access, plain = frame.those('RW'), frame.those('RW', 'na')
        writes = frame.those('W')
        for a in range(frame.count):
            others = frame.same[a] & ~frame.ours[a] & access & ~first
            if first >> a & 1 or not others:
                continue
            others &= (frame.all if writes >> a & 1 else writes) & (frame.all if plain >> a & 1 else plain)
            for b in range(frame.count):
                if others >> b & 1 and not happens[a] >> b & 1 and not happens[b] >> a & 1:
                    return True, True
        return True, False

    def is_sequential(self, before, happens, extended):
        """One order of all that is seq_cst."""
        frame = self.frame
        accesses, fences = frame.those('RW', 'sc'), frame.those('F', 'sc')
        if not accesses | fences:
            return True
        one = [1 << at for at in range(frame.count)]
        elsewhere = [row & ~frame.same[at] for at, row in enumerate(before)]
        here = [row & frame.same[at] for at, row in enumerate(happens)]
        order = union(before, then(then(elsewhere, happens), elsewhere), here, self.co, self.fr)
        or_happens = union(one, happens)
        left = union(within(one, accesses, accesses), within(or_happens, fences, frame.all))
        right = union(within(one, accesses, accesses), within(or_happens, frame.all, fences))
        of_fences = within(union(happens, then(then(happens, extended), happens)), fences, fences)
        return not has_cycle(union(then(then(left, order), right), of_fences))

    def arm(self):
        frame, po = self.frame, self.frame.po
        reads, writes = frame.those('R'), frame.those('W')
        acquire, ordered = frame.those('R', 'sc') | self.strong_reads(), frame.those('R', 'acq', 'sc')
        release = frame.those('W', 'rel', 'sc')
        full, loads = frame.those('F', 'sc', 'rel', 'acqrel', 'dmb'), frame.those('F', 'acq')
        stores = frame.those('F', 'dmb.st')
        internal = [row & frame.ours[at] for at, row in enumerate(self.co)]
        to_release = within(po, frame.all, release)

        def around(fence, sources, targets):
            return then(within(po, sources, fence), within(po, fence, targets))
        barriers = union(
            around(full, frame.all, frame.all), within(po, release, acquire), around(loads, reads, frame.all),
            within(po, ordered, frame.all), around(stores, writes, writes), to_release, then(to_release, internal),
            self.around_single())
        depends = [0] * frame.count
        for at, event in enumerate(frame.events):
            for value in event.after:
                depends[frame.number[id(value.event)]] |= 1 << at
        inner = [row & frame.ours[at] for at, row in enumerate(self.rf)]
        written = sum(frame.rmw) if any(frame.rmw) else 0
        atomics = union(frame.rmw, within(inner, written, ordered))
        seen = self.external(union(self.rf, self.fr, self.co))
        return not has_cycle(union(seen, barriers, depends, then(depends, inner), atomics))

    def strong_reads(self):
        """Exclusive loads with acquire are LDAXR, which has no weaker form."""
        frame = self.frame
        return sum(1 << at for at, event in enumerate(frame.events) if event.partner and event.order == 'acq')

    def around_single(self):
        """One instruction that reads with acquire and writes with release is a barrier between what is around it."""
        frame, found = self.frame, [0] * self.frame.count
        for at, event in enumerate(frame.events):
            if event.partner and event.partner.single and event.order in ('acq', 'sc'):
                before = sum(1 << other for other in range(frame.count) if frame.po[other] >> at & 1)
                found = union(found, [frame.po[frame.number[id(event.partner)]] if before >> other & 1 else 0
                                      for other in range(frame.count)])
        return found

    def tso(self):
        frame, po = self.frame, self.frame.po
        writes, reads = frame.those('W'), frame.those('R')
        fence = frame.those('F', 'sc', 'dmb')
        locked = sum(frame.rmw) | sum(1 << at for at, row in enumerate(frame.rmw) if row) | frame.those('W', 'sc')
        delayed, access = within(po, writes, reads), writes | reads
        kept = [row & ~delayed[at] for at, row in enumerate(within(po, access, access))]
        kept = union(kept, then(within(po, access, fence), po), within(po, locked, access), within(po, access, locked))
        return not has_cycle(union(kept, self.external(self.rf), self.co, self.fr))


# -- All executions -----------------------------------------------------------------------------------

def executions(threads):
    """All that are coherent."""
    for chosen in itertools.product(*all_runs(threads)):
        frame = Frame(chosen)
        sources = list(frame.sources())
        if not all(sources):
            continue
        for orders in itertools.product(*frame.orders()):
            for choice in itertools.product(*sources):
                execution = Execution(frame, choice, orders)
                if execution.is_coherent():
                    yield execution


def find(threads, model, wanted):
    """Is there an execution that the model allows with these results and last values? In C11 also: with a race."""
    for execution in executions(threads):
        is_wanted = wanted(execution.frame.results, execution.final)
        if model == C11:
            consistent, race = execution.c11()
            if consistent and (is_wanted or race):
                return execution
        elif is_wanted and (execution.arm() if model == ARM else execution.tso()):
            return execution
    return None
