"""Views of traces for GTKWave, as `nonic hdl` writes them beside a trace."""
import os
import re
import shutil
import subprocess

from checks import check

BITS = ['clk', 'rst', *(f'{way}_axis_t{name}' for way in 'sm' for name in ('valid', 'ready', 'last', 'user'))]


def names_in(trace):
    """The names of all signals, as GTKWave shows them, by its own reader; None: it is not installed."""
    if shutil.which('fst2vcd') is None:
        return None
    text = subprocess.run(['fst2vcd', '-f', trace], capture_output=True, text=True, timeout=120).stdout
    names, scopes = set(), []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ['$scope']:
            scopes.append(words[2])
        elif words[:1] == ['$upscope']:
            scopes.pop()
        elif words[:1] == ['$var']:
            names.add('.'.join(scopes) + '.' + ''.join(words[4:-1]))
        elif words[:1] == ['$enddefinitions']:
            break
    return names


def check_clocks(trace, periods):
    """FER-131: a trace has each rising edge of each clock at its time, in ps, from the first one on."""
    if shutil.which('fst2vcd') is None:
        print('skipped: no fst2vcd (gtkwave)')
        return
    lines = subprocess.run(['fst2vcd', '-f', trace], capture_output=True, text=True, timeout=120).stdout.splitlines()
    marks = {}
    for line in lines:
        words = line.split()
        if words[:1] == ['$var'] and words[4] in periods:
            marks.setdefault(f'1{words[3]}', words[4])
    rises, now = {name: [] for name in periods}, 0
    for line in lines:
        if line[:1] == '#':
            now = int(line[1:])
        elif line in marks:
            rises[marks[line]].append(now)
    for name, times in rises.items():
        check(f'FER-131: the trace has each edge of {name} at its time', len(times) > 1000 and
              times == [(i + 1) * periods[name] for i in range(len(times))], times[:5])


def named(scope, names, buses):
    return {f'{scope}.{name}' for name in names} | {f'{scope}.{name}[{bits - 1}:0]' for name, bits in buses.items()}


def expected(scope, width):
    """A width of None: a nonic_xgmii."""
    if width is None:
        buses = {'xgmii_txd': 64, 'xgmii_txc': 8, 'xgmii_rxd': 64, 'xgmii_rxc': 8, 'tx_packet': 32, 'rx_packet': 32}
        return named(scope, ['clk', 'rst', 'link_up'], buses)
    buses = {'tx_packet': 32, 'rx_packet': 32, 'pause': 9}
    for way in 'sm':
        buses |= {f'{way}_axis_tdata': width, f'{way}_axis_tkeep': width // 8}
    return named(scope, BITS, buses)


def check_view(what, trace, marked_ps, ports):
    """FER-172. `ports`: the scope of each, and its width."""
    view = trace.removesuffix('.fst') + '.gtkw'
    with open(view) as file:
        text = file.read()
    shown = [line for line in text.splitlines() if re.match(r'[^[@*-]', line)]
    paths = re.findall(r'^\[(?:dump|save)file\] "(.*)"$', text, re.M)
    wanted = set().union(*(expected(*port) for port in ports))
    check(f'FER-172: {what}: the view of the trace has the signals of each port', set(shown) == wanted and
          len(shown) == len(wanted) and paths == [os.path.realpath(trace), os.path.realpath(view)], text)
    begin = int(re.search(r'^\[timestart\] (\d+)$', text, re.M)[1])
    marker = re.search(r'^\*-\d+\.0+ (\d+)((?: -1)*)$', text, re.M)
    check(f'FER-172: {what}: and its marker', int(marker[1]) == marked_ps and marker[2] == ' -1' * 26 and
          max(0, marked_ps - 200000) <= begin <= marked_ps, f'{marked_ps}\n{text}')
    names = names_in(trace)
    if names is None:
        print('skipped: no fst2vcd (gtkwave)')
    else:
        check(f'FER-172: {what}: the trace has them all', wanted <= names, sorted(wanted - names)[:5] + sorted(names)[:40])
