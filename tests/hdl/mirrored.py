#!/usr/bin/env python3
"""A peer of pong.sv made of stock parts: rdma-core's pyverbs on whatever libibverbs it is given.

Usage: nonic run --wire udp -- python3 tests/hdl/mirrored.py HALF FILE COUNT PMTU
HALF is the design's half of the connection, as `nonic hdl live` prints it; our own half is written to FILE. Sends COUNT
messages of random bytes, waits for each to come back, and prints "N messages, M bytes, every one right", or what was wrong.
"""
import os
import random
import sys
import time

from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096,
                           IBV_QPT_RC, IBV_WC_SUCCESS)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

MTUS = {256: IBV_MTU_256, 512: IBV_MTU_512, 1024: IBV_MTU_1024, 2048: IBV_MTU_2048, 4096: IBV_MTU_4096}
ROOM = 65536
SECONDS = 60


def dotted(gid):
    groups = gid.split(':')
    return '.'.join(str(octet) for octet in bytes.fromhex(groups[-2] + groups[-1]))


def gid_of(address):
    octets = bytes(10) + b'\xff\xff' + bytes(map(int, address.split('.')))
    return ':'.join(octets[at:at + 2].hex() for at in range(0, 16, 2))


class Peer:
    def __init__(self):
        self.context = Context(name=get_device_list()[0].name.decode())
        self.address = dotted(self.context.query_gid(1, 0).gid)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 8)
        self.memory = MR(self.pd, 2 * ROOM, IBV_ACCESS_LOCAL_WRITE)
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=2, max_recv_wr=2))
        self.attributes = QPAttr(port_num=1)
        self.qp = QP(self.pd, init, self.attributes)
        self.psn = random.getrandbits(24)

    def connect(self, half, pmtu):
        self.attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=GID(gid_of(half['ip'])), sgid_index=0))
        self.attributes.path_mtu = MTUS[pmtu]
        self.attributes.dest_qp_num = int(half['qpn'], 0)
        self.attributes.rq_psn = int(half['psn'], 0)
        self.attributes.sq_psn = self.psn
        self.attributes.max_dest_rd_atomic = self.attributes.max_rd_atomic = 1
        self.attributes.min_rnr_timer = 14
        self.attributes.timeout = 14
        self.attributes.retry_cnt = self.attributes.rnr_retry = 7
        self.qp.to_rts(self.attributes)

    def exchange(self, payload):
        """The message that comes back; None: nothing does, or a completion has an error."""
        self.memory.write(payload, len(payload))
        self.qp.post_recv(RecvWR(wr_id=1, num_sge=1, sg=[SGE(self.memory.buf + ROOM, ROOM, self.memory.lkey)]))
        self.qp.post_send(SendWR(wr_id=2, num_sge=1, sg=[SGE(self.memory.buf, len(payload), self.memory.lkey)]))
        found, left = None, {1, 2}
        end = time.monotonic() + SECONDS
        while left and time.monotonic() < end:
            for completion in self.cq.poll(8)[1]:
                if completion.status != IBV_WC_SUCCESS:
                    print(f'completion with status {completion.status}')
                    return None
                left.remove(completion.wr_id)
                if completion.wr_id == 1:
                    found = self.memory.read(completion.byte_len, ROOM)
        return found


def main():
    half = dict(word.split('=') for word in sys.argv[1].split())
    file, count, pmtu = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    peer = Peer()
    peer.connect(half, pmtu)
    with open(file, 'w') as out:
        out.write(f'ip={peer.address} qpn={peer.qp.qp_num:#x} psn={peer.psn:#x}\n')
    total = 0
    for number in range(count):
        payload = os.urandom(random.choice([1, 3, pmtu - 1, pmtu, pmtu + 1, random.randrange(1, ROOM), ROOM]))
        if peer.exchange(payload) != payload:
            print(f'message {number} of {len(payload)} bytes did not come back as it was')
            return 1
        total += len(payload)
    print(f'{count} messages, {total} bytes, every one right')
    return 0


sys.exit(main())
