"""Captures as pcapng with one interface of Ethernet: written with ns, read with whatever unit they have."""
import struct


def write_capture(path, frames):
    """frames: (ns, bytes)."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack('<II', kind, len(body) + 12) + body + struct.pack('<I', len(body) + 12)

    with open(path, 'wb') as file:
        file.write(block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1)))
        file.write(block(1, struct.pack('<HHI', 1, 0, 0) + struct.pack('<HHB3xHH', 9, 1, 9, 0, 0)))
        for at, frame in frames:
            head = struct.pack('<IIIII', 0, at >> 32, at & 0xffffffff, len(frame), len(frame))
            file.write(block(6, head + frame))


def read_capture(path, times=False):
    """Frames; or (time, frame), in the unit of the file."""
    with open(path, 'rb') as file:
        data = file.read()
    frames, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from('<II', data, at)
        if kind == 6:
            count = struct.unpack_from('<I', data, at + 20)[0]
            frame = data[at + 28:at + 28 + count]
            high, low = struct.unpack_from('<II', data, at + 12)
            frames.append((high << 32 | low, frame) if times else frame)
        at += length
    return frames
