"""Litmus tests whose results are known: the checker is right about these, or it is not believed."""
from executions import ARM, C11, F, R, S, TSO, W, X


def writer(*steps):
    def thread():
        for step in steps:
            yield step
    return thread


def reader(*steps):
    """Its result: what it has read."""
    def thread():
        seen = []
        for step in steps:
            value = yield step
            if step[0] == 'read':
                seen.append(int(value))
        return tuple(seen)
    return thread


def exchanging(place, new, order):
    def thread():
        return int((yield X(place, new, order)))
    return thread


def store_buffer(write, read, fence=None):
    return [reader(W('x', 1, write), F(fence), R('y', read)), reader(W('y', 1, write), F(fence), R('x', read))]


def message(write, read, before=None, between=None):
    return [writer(W('x', 1), F(before), W('y', 1, write)), reader(R('y', read), F(between), R('x'))]


def load_buffer(read, write):
    return [reader(R('x', read), W('y', 1, write)), reader(R('y', read), W('x', 1, write))]


def copied(read_from, write_to):
    def thread():
        value = yield R(read_from)
        yield W(write_to, value)
        return (int(value),)
    return thread


def made_up(read_from, write_to):
    """The write depends on the read, whose value it does not have."""
    def thread():
        value = yield R(read_from)
        yield W(write_to, 1, after=(value,))
        return (int(value),)
    return thread


def followed():
    """The second read is at an address that the first one brings."""
    value = yield R('y')
    other = yield R('x', after=(value,))
    return int(value), int(other)


def independent(write, read, fence=None):
    return [writer(W('x', 1, write)), writer(W('y', 1, write)), reader(R('x', read), F(fence), R('y', read)),
            reader(R('y', read), F(fence), R('x', read))]


def two_writes(write, fence=None):
    return [writer(W('x', 1, write), F(fence), W('y', 2, write)), writer(W('y', 1, write), F(fence), W('x', 2, write))]


def causality(write, read):
    return [writer(W('x', 1)), reader(R('x', read), W('y', 1, write)), reader(R('y', read), R('x'))]


def long_causality(write, read):
    return [writer(W('x', 1), W('y', 1, write)), reader(R('y', read), W('z', 1, write)), reader(R('z', read), R('x'))]


def before_and_after(write, read):
    return [writer(W('x', 2), W('y', 1, write)), reader(R('y', read), W('x', 1))]


def release_sequence(order):
    return [writer(W('x', 1), W('y', 1, 'rel')), exchanging('y', lambda before: before + 1, order),
            reader(R('y', 'acq'), R('x'))]


def own_sequence():
    return [writer(W('x', 1), W('y', 1, 'rel'), W('y', 2)), reader(R('y', 'acq'), R('x'))]


def counting(order):
    return [exchanging('x', lambda before: before + 1, order)] * 2


def swapping():
    def thread():
        return int((yield S('x', 0, 1)))
    return [thread] * 2


def swap_between(fence):
    """Store buffers with a compare and swap of one's own word in between."""
    def thread(mine, word, theirs):
        def body():
            yield W(mine, 1)
            yield S(word, 0, 1, 'rel')
            yield F(fence)
            return (int((yield R(theirs))),)
        return body
    return [thread('x', 'a', 'y'), thread('y', 'b', 'x')]


def single_between(order):
    def thread():
        yield W('x', 1)
        yield X('a', 1, order, single=True)
        yield W('y', 1)
    return [thread, reader(R('y', 'acq'), R('x'))]


def both(first, second):
    return lambda results, final: (results[0], results[1]) == ((first,), (second,))


def last(*wanted):
    return lambda results, final: results[-1] == wanted


NEITHER, BOTH = both(0, 0), both(1, 1)
OLD = last(1, 0)


def split(results, final):
    return results[2] == (1, 0) and results[3] == (1, 0)


def crossed(results, final):
    return final['x'] == 1 and final['y'] == 1


def chained(results, final):
    return results[1] == (1,) and results[2] == (1, 0)


def overtaken(results, final):
    return results[1] == (1,) and final['x'] == 2


def twice(results, final):
    return results == [0, 0]


def is_raced(results, final):
    return False


ALL = {C11, ARM, TSO}
# The name, the threads, a result, and the models that allow it.
TESTS = [
    ('SB', store_buffer('rlx', 'rlx'), NEITHER, ALL),
    ('SB, release and acquire', store_buffer('rel', 'acq'), NEITHER, ALL),
    ('SB, seq_cst', store_buffer('sc', 'sc'), NEITHER, set()),
    ('SB, fences', store_buffer('rlx', 'rlx', 'sc'), NEITHER, set()),
    ('SB, release fences', store_buffer('rlx', 'rlx', 'acqrel'), NEITHER, {C11, TSO}),
    ('SB, store barriers', store_buffer('rlx', 'rlx', 'dmb.st'), NEITHER, ALL),
    ('MP', message('rlx', 'rlx'), OLD, {C11, ARM}),
    ('MP, release and acquire', message('rel', 'acq'), OLD, set()),
    ('MP, release alone', message('rel', 'rlx'), OLD, {C11, ARM}),
    ('MP, acquire alone', message('rlx', 'acq'), OLD, {C11, ARM}),
    ('MP, fences', message('rlx', 'rlx', 'rel', 'acq'), OLD, set()),
    ('MP, a store barrier and acquire', message('rlx', 'acq', 'dmb.st'), OLD, {C11}),
    ('MP, a store barrier alone', message('rlx', 'rlx', 'dmb.st'), OLD, {C11, ARM}),
    ('MP, a store barrier and an address', [message('rlx', 'rlx', 'dmb.st')[0], followed], OLD, {C11}),
    ('LB', load_buffer('rlx', 'rlx'), BOTH, {C11, ARM}),
    ('LB, acquire and release', load_buffer('acq', 'rel'), BOTH, set()),
    ('LB, acquire alone', load_buffer('acq', 'rlx'), BOTH, {C11}),
    ('LB, data out of thin air', [copied('x', 'y'), copied('y', 'x')], BOTH, set()),
    ('LB, dependencies', [made_up('x', 'y'), made_up('y', 'x')], BOTH, {C11}),
    ('IRIW', independent('rlx', 'rlx'), split, {C11, ARM}),
    ('IRIW, release and acquire', independent('rel', 'acq'), split, {C11}),
    ('IRIW, seq_cst', independent('sc', 'sc'), split, set()),
    ('IRIW, fences', independent('rlx', 'rlx', 'sc'), split, set()),
    ('2+2W', two_writes('rlx'), crossed, {C11, ARM}),
    ('2+2W, release', two_writes('rel'), crossed, {C11}),
    ('2+2W, seq_cst', two_writes('sc'), crossed, set()),
    ('2+2W, store barriers', two_writes('rlx', 'dmb.st'), crossed, {C11}),
    ('CoRR', [writer(W('x', 1)), reader(R('x'), R('x'))], last(1, 0), set()),
    ('CoWW', [writer(W('x', 1), W('x', 2))], lambda results, final: final['x'] == 1, set()),
    ('CoRW', [reader(R('x'), W('x', 1))], lambda results, final: results[0] == (1,), set()),
    ('CoWR', [writer(W('x', 2)), reader(W('x', 1), R('x'))],
     lambda results, final: results[1] == (2,) and final['x'] == 1, set()),
    ('WRC', causality('rlx', 'rlx'), chained, {C11, ARM}),
    ('WRC, release and acquire', causality('rel', 'acq'), chained, set()),
    ('ISA2, release and acquire', long_causality('rel', 'acq'), chained, set()),
    ('ISA2', long_causality('rlx', 'rlx'), chained, {C11, ARM}),
    ('S', before_and_after('rlx', 'rlx'), overtaken, {C11, ARM}),
    ('S, release and acquire', before_and_after('rel', 'acq'), overtaken, set()),
    ('a release sequence of an exchange', release_sequence('rlx'), last(2, 0), set()),
    ('a later write of its own', own_sequence(), last(2, 0), {C11}),
    ('two exchanges', counting('rlx'), twice, set()),
    ('two compare and swaps', swapping(), twice, set()),
    ('SB, a swap with release between', swap_between(None), NEITHER, {C11, ARM}),
    ('SB, a swap and a full barrier between', swap_between('dmb'), NEITHER, {C11}),
    ('MP, an instruction with both orders between', single_between('acqrel'), OLD, {C11}),
    ('MP, an exchange between', single_between('rlx'), OLD, {C11, ARM}),
    ('a race', [writer(W('x', 1, 'na')), reader(R('x', 'na'))], is_raced, {C11}),
    ('no race', [writer(W('x', 1, 'na'), W('y', 1, 'rel')), reader(R('y', 'acq'))], is_raced, set()),
]
