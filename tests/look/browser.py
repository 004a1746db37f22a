"""A page in a headless Chromium: what it makes of the page, and what it complains of."""
import collections
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zlib

# dom: the page as the browser understood it. console: its complaints. width, colours: of a picture of the page, if one
# was wanted.
Seen = collections.namedtuple('Seen', 'dom console width colours')


def found():
    return shutil.which('chromium')


def chromium(profile, path, *words):
    """As root it has no sandbox, and needs none: the page has no script."""
    return subprocess.run(['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
                           '--disable-background-networking', f'--user-data-dir={profile}', '--enable-logging=stderr',
                           '--window-size=1200,2000', *words, f'file://{os.path.abspath(path)}'],
                          capture_output=True, text=True, timeout=120, env={**os.environ, 'HOME': profile})


def colours_of(path):
    """The width of a PNG, and how many colours its rows have: 8 bits a channel, without interlacing."""
    with open(path, 'rb') as file:
        data = file.read()
    width, height, depth, kind = struct.unpack('>IIBB', data[16:26])
    channels = {2: 3, 6: 4}[kind]
    at, packed = 8, b''
    while at < len(data):
        size, name = struct.unpack('>I4s', data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b'IDAT' else b''
        at += 12 + size
    assert depth == 8
    rows, step = zlib.decompress(packed), 1 + width * channels
    return width, len({rows[i * step + 1 + k:i * step + 1 + k + channels] for i in range(0, height, 7)
                       for k in range(0, width * channels, channels)})


def look(path, is_pictured):
    with tempfile.TemporaryDirectory() as profile:
        picture = os.path.join(profile, 'picture.png')
        dumped = chromium(profile, path, '--dump-dom')
        drawn = chromium(profile, path, f'--screenshot={picture}').stderr if is_pictured else ''
        console = re.findall(r'.*CONSOLE.*', dumped.stderr + drawn)
        return Seen(dumped.stdout, console, *(colours_of(picture) if is_pictured else (0, 0)))
