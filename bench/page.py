"""The figures of docs/performance.md: each block of them is written by the benchmark that measured it."""
import datetime
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'docs', 'performance.md')


def machine():
    with open('/proc/cpuinfo') as file:
        model = re.search(r'^model name\s*: (.*)$', file.read(), re.M)
    return f'{os.cpu_count()} processors ({model[1] if model else os.uname().machine}), {os.uname().sysname} {os.uname().release}'


def figure(value):
    """As a person writes it: two decimals of small ones, none of large ones."""
    if value is None:
        return ''
    if abs(value) >= 100:
        return f'{value:,.0f}'
    return f'{value:.2f}' if abs(value) < 10 else f'{value:.1f}'


def write(name, heading, rows):
    """Replaces the block `name`: the day, the machine and the command, then a table. `heading` has a cell and its
    alignment ('---' or '--:') for each column."""
    command = ' '.join([os.path.relpath(sys.argv[0]), *(word for word in sys.argv[1:] if word != '--write')])
    lines = [f'`{command}`, {datetime.date.today()}, {machine()}:', '',
             '| ' + ' | '.join(cell for cell, _ in heading) + ' |', '|' + '|'.join(align for _, align in heading) + '|',
             *('| ' + ' | '.join(row) + ' |' for row in rows)]
    with open(PAGE) as file:
        page = file.read()
    begin, end = f'<!-- {name} -->\n', f'<!-- end of {name} -->\n'
    first, last = page.index(begin) + len(begin), page.index(end)
    with open(PAGE, 'w') as file:
        file.write(page[:first] + '\n'.join(lines) + '\n' + page[last:])
