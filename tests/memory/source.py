"""The memory orders that stand in our sources, so that a model is about the code and not about what was meant.

A step is a text that a function must contain, in the order of the steps. If an atomic call has the text in its arguments, the
step is that call, and its order is the order of the call; otherwise it is an access that is not atomic.
"""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORDERS = {'relaxed': 'rlx', 'acquire': 'acq', 'release': 'rel', 'acq_rel': 'acqrel', 'seq_cst': 'sc'}
CALL = re.compile(r'\b(atomic_\w+|SET|GET)\s*\(')


class Fence(str):
    """The order of a fence."""


class Missing(Exception):
    """The source is not what the model is about any more."""


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return re.sub(r'/\*.*?\*/', ' ', file.read(), flags=re.S)


def closing(text, at):
    """The end of what begins with the bracket at `at`."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in '({') - (text[place] in ')}')
        if depth == 0:
            return place
    raise Missing('a bracket without an end')


def body(path, name):
    """The text of a function or a macro behind its head."""
    text = read(path)
    macro = re.search(rf'^#define {name}\b((?:.*\\\n)*.*)$', text, re.M)
    if macro:
        return macro.group(1)
    for found in re.finditer(rf'^[a-z][^\n;{{}}]*\b{name}\(', text, re.M):
        opened = text.find('{', closing(text, found.end() - 1))
        between = text[closing(text, found.end() - 1) + 1:opened]
        if not between.strip():
            return text[opened:closing(text, opened) + 1]
    raise Missing(f'{path} has no {name}')


def order_of(path, call, arguments):
    """A fence for the compiler alone is there or not."""
    if call in ('SET', 'GET'):
        return order_of(path, 'macro', body(path, call))
    named = re.findall(r'memory_order_(\w+)', arguments)
    order = ORDERS[named[-1]] if named else 'sc'
    return True if call == 'atomic_signal_fence' else Fence(order) if call == 'atomic_thread_fence' else order


def steps(path, name, **texts):
    """The order of each step, by its name."""
    text, at, found = body(path, name), 0, {}
    for step, wanted in texts.items():
        for call in CALL.finditer(text, at):
            end = closing(text, call.end() - 1)
            if wanted in text[call.start():end + 1]:
                found[step] = order_of(path, call.group(1), text[call.start():end + 1])
                at = end
                break
        else:
            place = text.find(wanted, at)
            if place < 0:
                raise Missing(f'{path}: {name} has no "{wanted}" behind its steps before')
            found[step], at = 'na', place + len(wanted)
    return found


def present(path, name, **texts):
    """Steps that are no calls, such as instructions: each is `True`."""
    return dict.fromkeys(steps(path, name, **texts), True)


def mentions(path, name, *texts):
    """Steps that a model is about, and that have no order."""
    steps(path, name, **{str(number): text for number, text in enumerate(texts)})
    return {}
