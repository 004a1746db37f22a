"""The protocols by which processes and threads share memory, as small programs whose memory orders are those of the sources.

A model is a function of these orders: it returns runs, each the threads, what must never be, and what must be possible (a proof
about something that never happens is none). `run` proves each in the models that it names, and then weakens every order
by itself: each must be needed, or the model says why it is there all the same (`spare`).

A place is 0 at first; where a protocol begins with something else, the number 0 stands for that.
"""
from executions import ARM, AWAY, C11, F, R, S, TSO, W, X
from source import mentions, present, steps

RING, BOARD, WINDOW = 'drivers/shm/shm_ring.c', 'drivers/shm/shm_board.c', 'drivers/shm/shm_window.c'
DIRECT, EXTENT, MEMORY = 'drivers/shm/shm_direct.c', 'drivers/shm/shm_extent.c', 'drivers/system/memory.c'
LOCK, LOCK_C, GUARD = 'drivers/system/lock.h', 'drivers/system/lock.c', 'drivers/system/guard_arm64.h'
MAPPED = 'verbs/efa_mapped_serve.c'
C = C11, ARM, TSO      # C's accesses, for all processors.
INSTRUCTIONS = (ARM,)  # arm64's own, of which C knows nothing.


class Model:
    def __init__(self, title, build, orders, spare, models):
        self.title, self.build, self.orders, self.spare, self.models = title, build, orders, spare, models


MODELS = []


def model(title, *orders, spare=None, models=C):
    def note(build):
        together = {}
        for some in orders:
            together.update(some)
        MODELS.append(Model(title, build, together, spare or {}, models))
        return build
    return note


# -- Rings --------------------------------------------------------------------------------------------

PUBLISH = steps(RING, 'publish', fill='slot->flags = flags', publish='&slot->sequence')


@model('a ring: a packet is read whole, and its slot is not used again before',
       PUBLISH, steps(RING, 'look_at_consumer', look='&link->ring->consumed'),
       steps(RING, 'slot_ready', ready='&slot->sequence'), steps(RING, 'take', take='memcpy(slot, &inbound->ring->slots'),
       steps(RING, 'next_ring', free='&inbound->ring->consumed'))
def ring(o):
    def producer():
        yield W('slot', 1, o['fill'])
        yield W('sequence', 1, o['publish'])
        if (yield R('consumed', o['look'])) != 1:
            return AWAY     # The ring, of one slot here, is full.
        yield W('slot', 2, o['fill'])
        yield W('sequence', 2, o['publish'])

    def consumer():
        if (yield R('sequence', o['ready'])) != 1:
            return AWAY
        first = yield R('slot', o['take'])
        yield W('consumed', 1, o['free'])
        if (yield R('sequence', o['ready'])) != 2:
            return int(first), None
        return int(first), int((yield R('slot', o['take'])))
    return [([producer, consumer], lambda results, final: results[1] not in ((1, None), (1, 2)),
             lambda results, final: results[1] == (1, 2))]


@model('the doorbell: who sleeps has seen the packet, or gets a bell',
       PUBLISH, steps(RING, 'shm_port_flush', before_asking='atomic_thread_fence('),
       steps(RING, 'ring_doorbell', ask='&link->board->asleep', ring='&link->ring->rung, 1'),
       steps(RING, 'shm_port_sleep', reset='->ring->rung, 0', tell='&port->board->asleep, 1',
             before_looking='atomic_thread_fence(', look='has_urgent('),
       steps(RING, 'has_urgent', ready='&slot->sequence', read='slot->flags'),
       spare={'ring': 'the fences have ordered all else; what matters is that it is one instruction'})
def doorbell(o):
    # rung: 0 says that it was rung, for an earlier packet; 1 that it was not; 2 that it is for this one.
    def producer():
        yield W('flags', 1, o['fill'])
        yield W('sequence', 1, o['publish'])
        yield F(o['before_asking'])
        if not (yield R('asleep', o['ask'])):
            return 'quiet'
        return 'rang' if (yield X('rung', 2, o['ring'])) == 1 else 'quiet'

    def consumer():
        yield W('rung', 1, o['reset'])
        yield W('asleep', 1, o['tell'])
        yield F(o['before_looking'])
        if not (yield R('sequence', o['ready'])):
            return 'sleeps'
        return 'stays' if (yield R('flags', o['read'])) == 1 else 'misread'
    return [([producer, consumer], lambda results, final: results == ['quiet', 'sleeps'] or results[1] == 'misread',
             lambda results, final: results == ['rang', 'sleeps']),
            ([producer, consumer], lambda results, final: False, lambda results, final: results == ['quiet', 'stays'])]


# -- Boards -------------------------------------------------------------------------------------------

NOTE = steps(WINDOW, 'shm_note_withdrawal', note='atomic_thread_fence(')
STILL = steps(BOARD, 'is_still', still='atomic_thread_fence(', again='GET(*word)')


@model("a board: a peer's copy of a region is of one entry",
       steps(BOARD, 'shm_port_publish_region', start='SET(entry->start', memory='SET(entry->memory', publish='&entry->key'),
       steps(EXTENT, 'shm_port_withdraw_region', withdraw='&entry->key, 0'), NOTE,
       steps(BOARD, 'copy_region', key='&entry->key', get_start='GET(entry->start', get_memory='GET(entry->memory',
             check='is_still('), STILL,
       spare={'withdraw': 'what it orders is before it, in the life of the old entry',
              'note': 'less than all of it: the windows need the rest'})
def region(o):
    def owner():
        yield W('start', 1, o['start'])
        yield W('memory', 1, o['memory'])
        yield W('key', 1, o['publish'])
        yield W('key', 0, o['withdraw'])
        yield F(o['note'])
        yield W('start', 2, o['start'])
        yield W('memory', 2, o['memory'])
        yield W('key', 2, o['publish'])

    def peer():
        if (yield R('key', o['key'])) != 1:
            return None
        start = yield R('start', o['get_start'])
        memory = yield R('memory', o['get_memory'])
        yield F(o['still'])
        return (int(start), int(memory)) if (yield R('key', o['again'])) == 1 else None
    return [([owner, peer], lambda results, final: results[1] not in (None, (1, 1)),
             lambda results, final: results[1] == (1, 1))]


@model("a board: a peer's copy of a queue pair is of one entry",
       steps(BOARD, 'fill_qp', grant='SET(entry->grant', state='SET(entry->state'),
       steps(BOARD, 'shm_port_publish_qp', publish='&entry->number, qp_number'),
       steps(BOARD, 'shm_port_withdraw_qp', withdraw='&entry->number, 0'), NOTE,
       steps(BOARD, 'copy_qp', number='&entry->number', get_grant='GET(entry->grant)', get_state='GET(entry->state)',
             check='is_still('), STILL,
       spare={'withdraw': 'as with a region', 'note': 'as with a region'})
def queue_pair(o):
    return region({**o, 'start': o['grant'], 'memory': o['state'], 'key': o['number'], 'get_start': o['get_grant'],
                   'get_memory': o['get_state']})


@model('a board: the place of what a queue pair awaits is not that of the next one',
       steps(BOARD, 'fill_qp', state='SET(entry->state', awaited='port->board->awaited['),
       steps(BOARD, 'shm_port_publish_qp', publish='&entry->number, qp_number'),
       steps(BOARD, 'shm_port_withdraw_qp', withdraw='&entry->number, 0'), NOTE,
       steps(BOARD, 'copy_qp', number='&entry->number'),
       steps(BOARD, 'shm_board_awaited', get_awaited='board->awaited[', between='atomic_thread_fence(',
             get_state='GET(entry->state)', get_number='GET(entry->number)'),
       spare={'withdraw': 'as with a region', 'note': 'the state alone tells the two apart'})
def awaited(o):
    def owner():
        yield W('state', 1, o['state'])
        yield W('awaited', 1, o['awaited'])
        yield W('number', 1, o['publish'])
        yield W('number', 0, o['withdraw'])
        yield F(o['note'])
        yield W('state', 2, o['state'])
        yield W('awaited', 2, o['awaited'])
        yield W('number', 2, o['publish'])

    def peer():
        if (yield R('number', o['number'])) != 1:
            return AWAY     # It was granted access by the first publication.
        address = yield R('awaited', o['get_awaited'])
        yield F(o['between'])
        state = yield R('state', o['get_state'])
        number = yield R('number', o['get_number'])
        return int(address) if state == 1 and number != 0 else None
    return [([owner, peer], lambda results, final: results[1] not in (None, 1), lambda results, final: results[1] == 1)]


# -- Windows ------------------------------------------------------------------------------------------

OPEN = steps(DIRECT, 'begin_window', open='->ring->window, window', behind_open='atomic_thread_fence(')
CLOSE = steps(DIRECT, 'close_window', close='->ring->window, 0')
KEY = steps(BOARD, 'copy_region', key='&entry->key')
WITHDRAW = steps(EXTENT, 'shm_port_withdraw_region', withdraw='&entry->key, 0')
LOOK = steps(WINDOW, 'look', look='&inbound->ring->window')
THERE = 0   # A key that was on the board before.


def in_window(o, number):
    """A peer's access: windows have odd numbers, and closed ones even numbers."""
    yield W('window', 2 * number - 1, o['open'])
    yield F(o['behind_open'])
    reached = (yield R('key', o['key'])) == THERE
    if reached:
        yield W('memory', 5, 'na')
    yield W('window', 2 * number, o['close'])
    return reached


@model('a window: memory that was withdrawn is not reached when its window is closed', OPEN, CLOSE, KEY, WITHDRAW, NOTE, LOOK,
       spare={'withdraw': 'the fence behind it orders it', 'key': 'what the copy needs: see the board',
              'open': 'one window has none before it'})
def window(o):
    def peer():
        return (yield from in_window(o, 1))

    def owner():
        yield W('key', 1, o['withdraw'])
        yield F(o['note'])
        if (yield R('window', o['look'])) % 2:
            return AWAY     # It waits.
        yield W('memory', 9, 'na')  # It belongs to the program again.
    return [([peer, owner], lambda results, final: final.get('memory') == 5, lambda results, final: results[0]),
            ([peer, owner], lambda results, final: False, lambda results, final: not results[0])]


@model('a window: nor when it is open anew', OPEN, CLOSE, KEY, WITHDRAW, NOTE, LOOK,
       spare={'withdraw': 'the fence behind it orders it', 'key': 'what the copy needs: see the board',
              'close': 'the next window is opened with release'})
def next_window(o):
    def peer():
        first = yield from in_window(o, 1)
        return first, (yield from in_window(o, 2))

    def owner():
        yield W('key', 1, o['withdraw'])
        yield F(o['note'])
        before = yield R('window', o['look'])
        if before % 2 == 0:
            return AWAY     # The model above.
        if (yield R('window', o['look'])) != 3 or before == 3:
            return AWAY
        yield W('memory', 9, 'na')
    return [([peer, owner], lambda results, final: final.get('memory') == 5, lambda results, final: results[0][0])]


@model("pages are exchanged while no peer is in there, and it finds the extent's number with the key", OPEN, CLOSE,
       steps(BOARD, 'copy_region', key='&entry->key', extent='GET(entry->extent)', check='is_still('), STILL,
       steps(EXTENT, 'hide', hide='&entry->key, 0', noted='shm_note_withdrawal('), NOTE, LOOK,
       steps(EXTENT, 'lend', exchange='exchange(port', attach='attach(entry, extent)', show='show(&hidden)'),
       steps(EXTENT, 'attach', attach='&entry->extent, extent->number'),
       steps(EXTENT, 'show', show='&hidden->entry[i]->key'),
       spare={'hide': 'the fence behind it orders it', 'attach': 'the key is stored behind it, with release',
              'open': 'one window has none before it', 'still': 'the window does what it would'})
def exchange(o):
    # key: 0 and 2, it is there; 1, it is not.
    def peer():
        reached = None
        yield W('window', 1, o['open'])
        yield F(o['behind_open'])
        before = yield R('key', o['key'])
        if before != 1:
            extent = yield R('extent', o['extent'])
            yield F(o['still'])
            if (yield R('key', o['again'])) != 1:
                reached = int(before), int(extent)
                yield W('new' if extent else 'old', 5, 'na')
        yield W('window', 2, o['close'])
        return reached

    def owner():
        yield W('key', 1, o['hide'])
        yield F(o['note'])
        if (yield R('window', o['look'])) % 2:
            return AWAY
        yield W('new', (yield R('old', 'na')), 'na')
        yield W('extent', 1, o['attach'])
        yield W('key', 2, o['show'])
    return [([peer, owner], lambda results, final: results[0] in ((0, 1), (2, 0)) or final.get('old') == 5 and final['new'] != 5,
             lambda results, final: results[0] == (0, 0)),
            ([peer, owner], lambda results, final: False, lambda results, final: results[0] == (2, 1))]


# -- The lock -----------------------------------------------------------------------------------------

def meet():
    """A processor's part in a membarrier of another one."""
    yield F('sc')
    if (yield R('membarrier')) == 0:
        return False    # It has not begun.
    yield W('met', 1)
    yield F('sc')
    return True


def interrupted(steps_of_thread, at):
    """A thread that a membarrier meets before its step of this number, or behind its end."""
    def thread():
        body, answer, number = steps_of_thread(), None, 0
        try:
            while True:
                step = body.send(answer)
                if number == at and not (yield from meet()):
                    return AWAY
                number += 1
                answer = yield step
        except StopIteration as end:
            if number <= at and not (yield from meet()):
                return AWAY
            return end.value
    return thread


BIAS = (steps(LOCK, 'lock_take', first='&lock->bias_owner', inside='&seat->inside, 1', between='atomic_signal_fence(',
              second='&lock->bias_owner', outside_again='&seat->inside, 0'),
        steps(LOCK, 'lock_release', release='&seat->inside, 0'),
        steps(LOCK_C, 'revoke_bias', revoke='&lock->bias_owner, NULL', membarrier='membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)'),
        steps(LOCK_C, 'wait_until_outside', wait='&seat->inside'))
OWNER = 0   # bias_owner: the seat. 1: NULL.


@model('the lock: its bias owner, and who revokes the bias, are not inside together', *BIAS,
       spare={'first': 'the second look decides', 'second': 'the bias owner has seen all before it: it was the last holder',
              'outside_again': 'it was not inside'})
def lock(o):
    def owner():
        if (yield R('bias', o['first'])) != OWNER:
            return None
        if o['between']:
            yield W('inside', 1, o['inside'])
            second = yield R('bias', o['second'])
        else:   # A compiler may put them in this order.
            second = yield R('bias', o['second'])
            yield W('inside', 1, o['inside'])
        if second != OWNER:
            yield W('inside', 2, o['outside_again'])
            return None
        seen = yield R('data', 'na')
        yield W('data', 5, 'na')
        yield W('inside', 2, o['release'])
        return int(seen)

    def other():
        yield W('bias', 1, o['revoke'])
        if o['membarrier']:
            yield F('sc')
            yield W('membarrier', 1)
            if (yield R('met')) == 0:
                return AWAY
            yield F('sc')
        if (yield R('inside', o['wait'])) == 1:
            return AWAY
        yield W('data', 9, 'na')
    return [([interrupted(owner, at), other], lambda results, final: final.get('data') == 5 or results[0] == 9,
             lambda results, final, at=at: results[0] == (0 if at > 2 else None)) for at in range(7)]


# -- Copies -------------------------------------------------------------------------------------------

LAST = present(GUARD, 'GUARDED_LAST', barrier='"dmb ishst"')


def pieces(o, first, count, value):
    """The last pieces of a copy, each behind a barrier."""
    for at in range(first, first + count):
        yield F('dmb.st' if o['barrier'] else None)
        yield W(f'byte {at}', value)


def poller(*places):
    """A program that waits for the first of these, and reads the others."""
    def thread():
        if (yield R(places[0], 'acq')) == 0:
            return AWAY
        seen = []
        for place in places[1:]:
            seen.append(int((yield R(place))))
        return tuple(seen)
    return thread


@model('a guarded copy of arm64: who sees the last byte sees all', LAST,
       mentions(GUARD, 'GUARDED_LAST', 'dmb ishst', 'GUARDED_MOVE('),
       mentions(GUARD, 'guard_copy_last', 'GUARDED_LAST("ldr", "str", "x9")', 'GUARDED_LAST("ldr", "str", "w9")',
                'GUARDED_LAST("ldrh", "strh", "w9")', 'GUARDED_LAST("ldrb", "strb", "w9")'),
       mentions(GUARD, 'guard_copy', 'stp q2, q3', 'return guard_copy_last(to, from, bytes)'), models=INSTRUCTIONS)
def guarded(o):
    def copy(count):
        def thread():
            yield W('bulk 0', 1)
            yield W('bulk 1', 1)
            yield from pieces(o, 0, count, 1)
        return thread

    def flag():
        """Two WRITEs, the second of 8 bytes: these alone are looked at."""
        yield W('bulk 0', 1)
        yield from pieces(o, 0, 1, 1)
        yield from pieces(o, 1, 1, 1)
    return [([copy(1), poller('byte 0', 'bulk 1', 'bulk 0')], lambda results, final: 0 in results[1], lambda *_: True),
            ([copy(3), poller('byte 2', 'byte 1', 'byte 0', 'bulk 0')], lambda results, final: 0 in results[1], lambda *_: True),
            ([flag, poller('byte 1', 'byte 0', 'bulk 0')], lambda results, final: 0 in results[1], lambda *_: True)]


@model('a guarded compare and swap of arm64: counts each addition, and nothing moves across',
       mentions(GUARD, 'guard_compare_swap', 'ldxr x10', 'stlxr w11', 'cbnz w11', '652:', 'dmb ish'),
       present(GUARD, 'guard_compare_swap', store='stlxr w11', barrier='dmb ish'),
       mentions(MEMORY, 'atomic', 'guard_compare_swap('), models=INSTRUCTIONS)
def compare_swap(o):
    def swap(place, expected, wanted):
        seen = yield S(place, expected, wanted, 'rel' if o['store'] else 'rlx')
        yield F('dmb' if o['barrier'] else None)
        return int(seen)

    def add():
        guess = 0
        for _ in range(2):
            before = yield from swap('counter', guess, guess + 1)
            if before == guess:
                return before
            guess = before
        return AWAY

    def between(mine, word, theirs):
        def thread():
            yield W(mine, 1)
            yield from swap(word, 0, 1)
            return int((yield R(theirs)))
        return thread

    def unlock():
        yield W('data', 1)
        yield from swap('flag', 0, 1)
    return [([add, add], lambda results, final: final['counter'] != 2, lambda *_: True),
            ([between('x', 'a', 'y'), between('y', 'b', 'x')], lambda results, final: results == [0, 0], lambda *_: True),
            ([unlock, poller('flag', 'data')], lambda results, final: results[1] == (0,), lambda *_: True)]


@model("the kernel's copies: a piece of its own lands behind the others, as the kernel puts pages in between",
       mentions(MEMORY, 'copy_through_kernel', 'process_vm_writev(getpid(), local, 2, remote, 2, 0)'),
       present(DIRECT, 'copy_out', tail='cut_tail(remote, 1)'),
       mentions(DIRECT, 'copy_out', 'cut_tail(remote, 1)', 'cut_tail(local'), models=INSTRUCTIONS)
def kernel(o):
    def copy(of_one):
        """atomic_dec_and_test, which Linux calls fully ordered: one instruction, or exclusives and a barrier."""
        def thread():
            yield W('bulk 0', 1)
            yield W('bulk 1', 1)
            if o['tail']:
                if of_one:
                    yield X('pages', 1, 'acqrel', single=True)
                else:
                    yield X('pages', 1, 'rel')
                    yield F('dmb')
            yield W('byte 0', 1)
        return thread
    return [([copy(of_one), poller('byte 0', 'bulk 1', 'bulk 0')], lambda results, final: 0 in results[1], lambda *_: True)
            for of_one in (True, False)]


# -- Queues that programs map -------------------------------------------------------------------------

@model('a mapped completion is whole when its phase is there, and a descriptor when its doorbell is',
       steps(MAPPED, 'tell', rest='memcpy(place + sizeof(first)', phase='atomic_store_explicit('),
       steps(MAPPED, 'announced', doorbell='mine->memory + doorbell'),
       steps(MAPPED, 'take_send', descriptor='memcpy(entry, mine->memory'))
def mapped(o):
    def device():
        yield W('rest', 1, o['rest'])
        yield W('phase', 1, o['phase'])

    def program():
        if (yield R('phase', 'acq')) == 0:  # rdma-core: udma_from_device_barrier.
            return AWAY
        return int((yield R('rest', 'na')))

    def poster():
        yield W('descriptor', 1, 'na')
        yield F('rel')                      # rdma-core: udma_to_device_barrier.
        yield W('doorbell', 1)

    def taker():
        if (yield R('doorbell', o['doorbell'])) == 0:
            return AWAY
        return int((yield R('descriptor', o['descriptor'])))
    return [([device, program], lambda results, final: results[1] != 1, lambda *_: True),
            ([poster, taker], lambda results, final: results[1] != 1, lambda *_: True)]
