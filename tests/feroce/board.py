"""A FERoCE front end of its own, for tests of the receiver: plain sockets and the formats of the public Verilog.

It knows nothing of nonic's code: layouts, ICRC and PSNs are written down here a second time.
"""
import select
import socket
import struct
import time
import zlib

CM, CM_FROM, DATA_FROM, ROCE = 0x4321, 0x8765, 0x8657, 4791
OPEN, CLOSE, ACK, NO_QP, NAK, ERROR = 1, 4, 1, 2, 3, 7
SEND, WRITE = 0, 6  # The first opcode of each: FIRST, MIDDLE, LAST, LAST with immediate, ONLY, ONLY with it.
IMMEDIATE = 12345678
SO_NO_CHECK, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 11, 10, 2


def ip_octets(text):
    return socket.inet_aton(text)


class Side:
    """Half of a connection manager's message."""

    def __init__(self, qpn=0, psn=0, rkey=0, address=0, ip='0.0.0.0'):
        self.qpn, self.psn, self.rkey, self.address, self.ip = qpn, psn, rkey, address, ip

    def encode(self, version):
        if version == 2:
            return struct.pack('<IIIQ', self.qpn, self.psn, self.rkey, self.address) + ip_octets(self.ip)[::-1]
        return struct.pack('>IIIQ', self.qpn, self.psn, self.rkey, self.address) + ip_octets(self.ip)

    @staticmethod
    def decode(octets, version):
        ip = octets[20:24][::-1] if version == 2 else octets[20:24]
        return Side(*struct.unpack('<IIIQ' if version == 2 else '>IIIQ', octets[:20]), socket.inet_ntoa(ip))


class Message:
    def __init__(self, request, local, remote, ack=None, port=CM, version=3):
        self.request, self.local, self.remote, self.ack, self.port = request, local, remote, ack, port
        self.version = version

    def encode(self):
        first = 1 | self.request << 1 | (0 if self.ack is None else 1 << 4 | self.ack << 5)
        order = '<' if self.version == 2 else '>'
        return bytes([first]) + self.local.encode(self.version) + self.remote.encode(self.version) + \
            struct.pack(order + 'H', self.port) + bytes(13)

    @staticmethod
    def decode(octets, version=3):
        assert len(octets) == 64, len(octets)
        order = '<' if version == 2 else '>'
        return Message(octets[0] >> 1 & 7, Side.decode(octets[1:25], version), Side.decode(octets[25:49], version),
                       octets[0] >> 5 if octets[0] & 0x10 else None, struct.unpack(order + 'H', octets[49:51])[0],
                       version)


class QueuePair:
    def __init__(self, qpn, remote):
        self.qpn, self.remote, self.psn = qpn, remote, remote.psn
        self.word = 0


class Board:
    def __init__(self, address, mtu=4096, version=3):
        self.address, self.mtu, self.version = address, mtu, version
        self.pairs, self.next_qpn = {}, 256
        self.heard, self.rnr, self.naks, self.resent = [], 0, 0, 0
        self.deaf_to = lambda message: False  # Which requests are lost.
        self.mute_for = lambda message: False  # Which replies are lost.
        self.spoil = lambda psn, payload: payload
        self.cm, self.cm_from, self.data, self.roce = (self.socket_at(port) for port in
                                                       (CM, CM_FROM, DATA_FROM, ROCE))
        self.data.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        self.data.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)

    def socket_at(self, port):
        at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        at.bind((self.address, port))
        return at

    def close(self):
        for at in self.cm, self.cm_from, self.data, self.roce:
            at.close()

    # -- The connection manager ----------------------------------------------------------------------

    def answer(self, asked):
        """Carries out a request, and gives the board's reply."""
        ack, local = ACK, Side(asked.remote.qpn, ip=self.address)
        if asked.request == OPEN:
            local.qpn, self.next_qpn = self.next_qpn, self.next_qpn + 1
            self.pairs[local.qpn] = QueuePair(local.qpn, asked.local)
        elif asked.request == CLOSE:
            ack = ACK if self.pairs.pop(asked.remote.qpn, None) else ERROR
        return Message(asked.request, local, asked.local, ack, version=self.version)

    def serve(self, until, seconds=20):
        """Answers requests until the condition holds."""
        end = time.monotonic() + seconds
        while not until():
            ready, _, _ = select.select([self.cm], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            octets, _ = self.cm.recvfrom(2048)
            asked = Message.decode(octets, self.version)
            self.heard.append(asked)
            if asked.ack is not None or self.deaf_to(asked):
                continue
            reply = self.answer(asked)
            if not self.mute_for(reply):
                self.cm_from.sendto(reply.encode(), (asked.local.ip, asked.port))
        return True

    def ask(self, request, local, host, remote=None, seconds=2.0, times=1):
        """As a master: a request, and the replies to it within the time."""
        message = Message(request, local, remote or Side(ip=host), version=self.version)
        for _ in range(times):
            self.cm_from.sendto(message.encode(), (host, CM))
        replies, end = [], time.monotonic() + seconds
        while len(replies) < times:
            ready, _, _ = select.select([self.cm], [], [], max(0, end - time.monotonic()))
            if not ready:
                break
            replies.append(Message.decode(self.cm.recvfrom(2048)[0], self.version))
        return replies

    def open_at(self, host, qpn=None):
        """As a master: a queue pair of the host's."""
        qpn = qpn or self.next_qpn
        self.next_qpn = max(self.next_qpn, qpn + 1)
        replies = self.ask(OPEN, Side(qpn, ip=self.address), host)
        assert len(replies) == 1 and replies[0].ack == ACK, [r.ack for r in replies]
        self.pairs[qpn] = QueuePair(qpn, replies[0].local)
        return self.pairs[qpn]

    # -- Data ----------------------------------------------------------------------------------------

    def packet(self, pair, opcode, psn, payload, reth=b'', immediate=b''):
        bth = struct.pack('>BBHII', opcode, 0x40, 0xffff, pair.remote.qpn, 0x80000000 | psn)
        body = bth + reth + immediate + payload
        length = 8 + len(body) + 4
        ip = struct.pack('>BBHHHBBH', 0x45, 0xff, 20 + length, 0, 0x4000, 0xff, 17, 0xffff) + \
            ip_octets(self.address) + ip_octets(pair.remote.ip)
        udp = struct.pack('>HHHH', DATA_FROM, ROCE, length, 0xffff)
        masked = body[:4] + b'\xff' + body[5:]
        return body + struct.pack('<I', zlib.crc32(b'\xff' * 8 + ip + udp + masked))

    def packets(self, pair, kind, payload, offset, immediate):
        cuts = [payload[at:at + self.mtu] for at in range(0, len(payload), self.mtu)]
        reth = struct.pack('>QII', pair.remote.address + offset, pair.remote.rkey, len(payload))
        for i, cut in enumerate(cuts):
            first, last = i == 0, i == len(cuts) - 1
            step = (4 if first else 2) + immediate if last else 0 if first else 1
            psn = (pair.psn + i) & 0xffffff
            yield self.packet(pair, kind + step, psn, self.spoil(psn, cut), reth if first and kind == WRITE else b'',
                              struct.pack('>I', IMMEDIATE) if last and immediate else b'')

    def send(self, pair, kind, payload, offset=0, immediate=False, seconds=20):
        """A message; goes back to what is not acknowledged until all of it is."""
        packets = list(self.packets(pair, kind, payload, offset, immediate))
        done, sent, end, quiet = 0, 0, time.monotonic() + seconds, time.monotonic() + 0.3
        while done < len(packets) and time.monotonic() < end:
            while sent < min(len(packets), done + 16):
                self.data.sendto(packets[sent], (pair.remote.ip, ROCE))
                sent += 1
            ready, _, _ = select.select([self.roce], [], [], max(0, quiet - time.monotonic()))
            if not ready:
                self.resent += sent - done
                sent, quiet = done, time.monotonic() + 0.3
                continue
            octets, _ = self.roce.recvfrom(4096)
            qpn, = struct.unpack('>I', octets[4:8])
            if octets[0] != 0x11 or qpn & 0xffffff != pair.qpn:
                continue
            psn, syndrome = struct.unpack('>I', octets[8:12])[0] & 0xffffff, octets[12] >> 5 & 3
            at = (psn - pair.psn) & 0xffffff
            if syndrome == 0 and at < len(packets):
                done, quiet = max(done, at + 1), time.monotonic() + 0.3
            elif syndrome == 1:
                self.rnr += 1
                time.sleep(0.001)
                sent = at if at < len(packets) else done
            elif syndrome == 3:
                self.naks += 1
                if octets[12] & 0x1f:
                    return False
                sent = at if at < len(packets) else done
        pair.psn = (pair.psn + len(packets)) & 0xffffff
        return done == len(packets)

    def counter(self, pair, length):
        """The next words of the queue pair's pattern."""
        words = range(pair.word, pair.word + length // 4)
        pair.word += length // 4
        return struct.pack(f'<{length // 4}I', *words)
