"""Shared by the tests of nonic's dissectors: captures that are written here, and what tshark shows of them."""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import ROOT  # noqa: E402

ICRC = bytes.fromhex('1c2c3c4c')


def script(name):
    return os.path.join(ROOT, 'tools', 'wireshark', name)


def ip_datagram(number, payload, back, ipv6=False):
    """From the requester's address, or `back` from the responder's."""
    udp = struct.pack('>HHHH', 49152 + number % 16, 4791, 8 + len(payload), 0) + payload
    if ipv6:
        return struct.pack('>IHBB', 6 << 28, len(udp), 17, 64) + bytes(15) + b'\1' + bytes(15) + b'\1' + udp
    ends = [bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2))]
    ends = ends[::-1] if back else ends
    return struct.pack('>BBHHHBBH', 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + ends[0] + ends[1] + udp


def capture(work, packets, snap=65535):
    """A file of IP packets, each cut to `snap` bytes."""
    path = os.path.join(work, 'packets.pcap')
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, snap, 101))
        for i, packet in enumerate(packets):
            kept = packet[:snap]
            file.write(struct.pack('<IIII', i, 0, len(kept), len(packet)) + kept)
    return path


def run_tshark(scripts, path, *words):
    """Its lines, and what it complains of. The packets over IPv6 have no checksum; any payload may be RPC to tshark."""
    options = ['-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '--disable-protocol', 'rpcordma']
    options += [word for one in scripts for word in ('-X', f'lua_script:{one}')]
    done = subprocess.run(['tshark', *options, '-r', path, *words], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if 'Running as user' not in line]
    return done.stdout.splitlines(), '\n'.join(said) + (f' status {done.returncode}' if done.returncode else '')


def run_rows(scripts, path, *names):
    """A list of values for each packet."""
    options = [word for name in names for word in ('-e', name)]
    lines, said = run_tshark(scripts, path, '-T', 'fields', '-E', 'separator=;', *options)
    return [line.split(';') for line in lines], said
