"""A host of FERoCE's board, of plain sockets: written from the formats of the public Verilog and receiver alone.

It shares no code with nonic: messages are packed by hand, the ICRC is zlib's CRC-32 over what IBTA A17.3.3 lists. It
opens queue pairs, judges every packet as a responder does (IBTA 9.7.5), and compares every byte.
"""
import os
import socket
import struct
import time
import zlib

CM_PORT, CM_FROM, ROCE_PORT = 0x4321, 0x8765, 4791
NULL, OPEN, INFO, MODIFY, CLOSE = range(5)
ACK, NO_QP, NAK, ERROR = 1, 2, 3, 7
SIDE = '>IIIQ4s'
MASK = 0xffffff
NAMES = {0x00: 'SEND_FIRST', 0x01: 'SEND_MIDDLE', 0x02: 'SEND_LAST', 0x03: 'SEND_LAST_IMM', 0x04: 'SEND_ONLY',
         0x05: 'SEND_ONLY_IMM', 0x06: 'WRITE_FIRST', 0x07: 'WRITE_MIDDLE', 0x08: 'WRITE_LAST', 0x09: 'WRITE_LAST_IMM',
         0x0a: 'WRITE_ONLY', 0x0b: 'WRITE_ONLY_IMM'}


def ip(text):
    return socket.inet_aton(text)


class Side:
    def __init__(self, qpn=0, psn=0, rkey=0, address=0, ip='0.0.0.0'):
        self.qpn, self.psn, self.rkey, self.address, self.ip = qpn, psn, rkey, address, ip

    def pack(self, version):
        if version == 3:
            return struct.pack(SIDE, self.qpn, self.psn, self.rkey, self.address, ip(self.ip))
        return struct.pack('<IIIQ4s', self.qpn, self.psn, self.rkey, self.address, ip(self.ip)[::-1])

    def key(self):
        return self.qpn, self.psn, self.rkey, self.address, self.ip


def side_of(octets, version):
    qpn, psn, rkey, address, where = struct.unpack(SIDE if version == 3 else '<IIIQ4s', octets)
    return Side(qpn & MASK, psn & MASK, rkey, address, socket.inet_ntoa(where if version == 3 else where[::-1]))


def message(request, local=None, remote=None, port=CM_PORT, meta=None, valid=1, ack=None, version=3):
    """A connection manager's message; meta: (write, immediate, length, count, frequency)."""
    order = '>' if version == 3 else '<'
    octets = bytes([valid | request << 1 | (0 if ack is None else 0x10 | ack << 5)])
    octets += (local or Side()).pack(version) + (remote or Side()).pack(version) + struct.pack(order + 'H', port)
    write, immediate, length, count, frequency = meta or (0, 0, 0, 0, 0)
    flags = (3 | immediate << 2 | write << 3) if meta else 0
    return octets + bytes([flags]) + struct.pack(order + 'III', length, count, frequency)


class Reply:
    def __init__(self, octets, version=3):
        self.octets = octets
        self.valid, self.request = octets[0] & 1, octets[0] >> 1 & 7
        self.ack_valid, self.ack = octets[0] >> 4 & 1, octets[0] >> 5
        self.local, self.remote = side_of(octets[1:25], version), side_of(octets[25:49], version)
        self.port = int.from_bytes(octets[49:51], 'big' if version == 3 else 'little')
        self.rest = octets[51:]


def icrc(source, source_port, destination, datagram, identification=0):
    """The ICRC of a UDP payload from its BTH on; its last four octets do not count."""
    total = 20 + 8 + len(datagram)
    header = struct.pack('>BBHHHBBH4s4s', 0x45, 0xff, total, identification, 0x4000, 0xff, 17, 0xffff, ip(source),
                         ip(destination))
    udp = struct.pack('>HHHH', source_port, ROCE_PORT, 8 + len(datagram), 0xffff)
    covered = bytearray(datagram[:-4])
    covered[4] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + header + udp + bytes(covered)))


def pattern(word, count):
    return b''.join(struct.pack('<I', (word + i) & 0xffffffff) for i in range(count // 4))


class Stream:
    """A responder's state of one queue pair."""

    def __init__(self, qpn, psn, memory):
        self.qpn, self.expected, self.memory = qpn, psn, memory
        self.board_qpn = None
        self.received = bytearray()  # Of SENDs, in order.
        self.messages, self.immediates, self.lengths = 0, [], []
        self.left = None  # Of a WRITE: where the next bytes go.
        self.asked = False
        self.nacks = self.duplicates = self.gaps = 0
        self.opcodes = set()
        self.coming = 0  # Bytes of the message so far.


class Link:
    """The connection manager's end of a host."""

    def __init__(self, address, board, version=3):
        self.address, self.board, self.version = address, board, version
        self.cm = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.cm.bind((address, CM_PORT))
        self.wrong = []  # Faults of the packets that the board sent.

    def tell(self, octets):
        self.cm.sendto(octets, (self.board, CM_PORT))

    def hear(self, timeout=2):
        self.cm.settimeout(timeout)
        try:
            octets, source = self.cm.recvfrom(2048)
        except (socket.timeout, BlockingIOError):
            return None
        if source != (self.board, CM_FROM) or len(octets) != 64:
            self.wrong.append(f'a reply of {len(octets)} octets from {source}')
        return Reply(octets, self.version)

    def ask(self, octets, timeout=2):
        self.tell(octets)
        return self.hear(timeout)


class Host(Link):
    def __init__(self, address, board, version=3, source_port=0x8657):
        super().__init__(address, board, version)
        self.source_port = source_port
        self.roce = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.roce.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.roce.bind((address, ROCE_PORT))
        self.roce.settimeout(0.01)
        self.streams = {}
        self.packets = self.wrong_icrcs = 0
        self.answers = 0  # Sent.
        self.lose = lambda: False
        self.mute = False
        self.segmented = False  # The identification may be an index.
        self.not_ready = 0  # Answer RNR until then.
        self.rnr_code = 1
        self.rnrs, self.arrivals = 0, []

    def close(self):
        self.cm.close()
        self.roce.close()

    # -- Connection manager

    def open(self, qpn, psn=0, memory=0, rkey=0x1234, address=0x10000000):
        stream = Stream(qpn, psn, bytearray(memory))
        stream.rkey, stream.address = rkey, address
        self.streams[qpn] = stream
        stream.side = Side(qpn, psn, rkey, address, self.address)
        reply = self.ask(message(OPEN, stream.side, version=self.version))
        if reply and reply.ack == ACK:
            stream.board_qpn = reply.local.qpn
        return reply

    def close_stream(self, stream):
        return self.ask(message(CLOSE, stream.side, Side(stream.board_qpn, ip=self.board), version=self.version))

    def start(self, stream, length, count, write=0, immediate=0, frequency=0):
        self.tell(message(NULL, remote=Side(stream.board_qpn), valid=0, version=self.version,
                          meta=(write, immediate, length, count, frequency)))

    # -- Responder

    def answer(self, stream, syndrome, psn):
        if self.lose() or self.mute:
            return
        self.answers += 1
        datagram = bytes([0x11, 0x40, 0xff, 0xff]) + struct.pack('>II', stream.board_qpn, psn & MASK)
        datagram += bytes([syndrome, 0, 0, 0]) + bytes(4)
        crc = icrc(self.address, ROCE_PORT, self.board, datagram)
        self.roce.sendto(datagram[:-4] + crc, (self.board, ROCE_PORT))

    def icrc_fits(self, datagram):
        for identification in range(64 if self.segmented else 1):
            if icrc(self.board, self.source_port, self.address, datagram, identification) == datagram[-4:]:
                return True
        return False

    def judge(self, datagram):
        """Everything of a packet that does not depend on the state; None: the packet is wrong."""
        opcode, flags, pkey, octet4 = struct.unpack_from('>BBHB', datagram)
        qpn = int.from_bytes(datagram[5:8], 'big')
        psn = int.from_bytes(datagram[9:12], 'big')
        stream = self.streams.get(qpn)
        if not self.icrc_fits(datagram):
            self.wrong_icrcs += 1
            return None
        old = self.source_port == 0x2123
        if opcode not in NAMES or flags != (0 if old else 0x40) or pkey != 0xffff or octet4 or datagram[8] != 0x80 or \
                stream is None:
            self.wrong.append(f'a packet that begins {datagram[:12].hex()}')
            return None
        return opcode, psn, stream

    def take(self, datagram):
        self.packets += 1
        judged = self.judge(datagram)
        if judged is None:
            return
        opcode, psn, stream = judged
        ahead = (psn - stream.expected + (1 << 23) & MASK) - (1 << 23)
        if ahead < 0:
            stream.duplicates += 1
            self.answer(stream, 0x1f, stream.expected - 1)
            return
        if time.monotonic() < self.not_ready:
            if ahead == 0 and not stream.asked:
                self.rnrs += 1
                self.answer(stream, 0x20 | self.rnr_code, stream.expected)
            return
        if ahead > 0:
            stream.gaps += 1
            if not stream.asked:
                stream.asked = True
                stream.nacks += 1
                self.answer(stream, 0x60, stream.expected)
            return
        stream.asked = False
        self.place(stream, NAMES[opcode], datagram)
        stream.opcodes.add(NAMES[opcode])
        stream.expected = (stream.expected + 1) & MASK
        self.answer(stream, 0x1f, psn)

    def place(self, stream, name, datagram):
        at = 12
        if name.startswith('WRITE') and ('FIRST' in name or 'ONLY' in name):
            address, rkey, length = struct.unpack_from('>QII', datagram, at)
            at += 16
            if rkey != stream.rkey or not stream.address <= address <= stream.address + len(stream.memory) - length:
                self.wrong.append(f'a WRITE to {address:#x} + {length} with key {rkey:#x}')
                return
            stream.left, stream.length = address - stream.address, length
        if 'IMM' in name:
            stream.immediates.append(datagram[at:at + 4])
            at += 4
        payload = datagram[at:-4]
        stream.coming += len(payload)
        if name.startswith('WRITE'):
            stream.memory[stream.left:stream.left + len(payload)] = payload
            stream.left += len(payload)
        else:
            stream.received += payload
        if 'LAST' in name or 'ONLY' in name:
            if name.startswith('WRITE') and stream.coming != stream.length:
                self.wrong.append(f'{stream.coming} bytes of a WRITE that said {stream.length}')
            stream.messages += 1
            stream.lengths.append(stream.coming)
            stream.coming = 0

    def serve(self, done, seconds):
        """Until done() or the time is over. True: it is done."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                return False
            try:
                datagram, source = self.roce.recvfrom(65536)
            except socket.timeout:
                continue
            if source != (self.board, self.source_port):
                self.wrong.append(f'a packet from {source}')
            elif not self.lose():
                self.arrivals.append(time.monotonic())
                self.take(datagram)
        return True


def free_addresses(count):
    """Loopback addresses that no other test of this machine uses now."""
    first = 10 + os.getpid() * 16
    return [f'127.{1 + (first + i >> 16) % 250}.{first + i >> 8 & 255}.{1 + (first + i) % 250}' for i in range(count)]
