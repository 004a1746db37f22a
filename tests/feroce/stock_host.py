#!/usr/bin/env python3
"""A receiver of a front end's SENDs made of stock parts: rdma-core's pyverbs on whatever libibverbs it is given.

Usage: nonic run --wire udp -- python3 tests/feroce/stock_host.py BOARD LENGTH COUNT PMTU
It shares no code with nonic's receiver. Prints "N messages, M bytes, every one right", or what was wrong.
"""
import os
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
from pyverbs.wr import RecvWR, SGE

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import host as feroce

MTUS = {256: IBV_MTU_256, 512: IBV_MTU_512, 1024: IBV_MTU_1024, 2048: IBV_MTU_2048, 4096: IBV_MTU_4096}
BUFFERS = 16
SECONDS = 30


class Receiver:
    def __init__(self, length):
        self.length = length
        self.context = Context(name=get_device_list()[0].name.decode())
        self.gid = self.context.query_gid(1, 0).gid
        self.pd = PD(self.context)
        self.cq = CQ(self.context, BUFFERS)
        self.memory = MR(self.pd, length * BUFFERS, IBV_ACCESS_LOCAL_WRITE)
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=1, max_recv_wr=BUFFERS))
        self.attributes = QPAttr(port_num=1)
        self.qp = QP(self.pd, init, self.attributes)
        for index in range(BUFFERS):
            self.post(index)

    def post(self, index):
        part = SGE(self.memory.buf + index * self.length, self.length, self.memory.lkey)
        self.qp.post_recv(RecvWR(wr_id=index, num_sge=1, sg=[part]))

    def connect(self, board, remote_qpn, pmtu):
        octets = bytes(10) + b'\xff\xff' + feroce.ip(board)
        gid = ':'.join(octets[at:at + 2].hex() for at in range(0, 16, 2))
        route = GlobalRoute(dgid=GID(gid), sgid_index=0)
        self.attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        self.attributes.path_mtu = MTUS[pmtu]
        self.attributes.dest_qp_num = remote_qpn
        self.attributes.max_dest_rd_atomic = 1
        self.attributes.min_rnr_timer = 14  # 1 ms: Python is slow.
        self.attributes.rq_psn = 0
        self.qp.to_rts(self.attributes)

    def receive(self, count):
        """The number of right bytes in `count` messages, one after another; None: not all came."""
        taken = 0
        end = time.monotonic() + SECONDS
        while taken < count:
            if time.monotonic() > end:
                print(f'{taken} of {count} messages after {SECONDS} s')
                return None
            for completion in self.cq.poll(BUFFERS)[1]:
                if completion.status != IBV_WC_SUCCESS:
                    print(f'completion with status {completion.status}')
                    return None
                index = completion.wr_id
                found = self.memory.read(completion.byte_len, index * self.length)
                if found != feroce.pattern(taken * self.length // 4, self.length):
                    print(f'message {taken} has a wrong byte, or {completion.byte_len} bytes')
                    return None
                taken += 1
                self.post(index)
        return taken * self.length


def main():
    board, (length, count, pmtu) = sys.argv[1], map(int, sys.argv[2:5])
    receiver = Receiver(length)
    groups = receiver.gid.split(':')
    address = '.'.join(str(octet) for octet in bytes.fromhex(groups[-2] + groups[-1]))
    link = feroce.Link(address, board)
    side = feroce.Side(receiver.qp.qp_num, 0, 0, 0, address)
    reply = link.ask(feroce.message(feroce.OPEN, side))
    if reply is None or reply.ack != feroce.ACK:
        print('the board did not open a queue pair')
        return 1
    receiver.connect(board, reply.local.qpn, pmtu)
    remote = feroce.Side(reply.local.qpn, ip=board)
    link.tell(feroce.message(feroce.NULL, remote=remote, valid=0, meta=(0, 0, length, count, 0)))
    received = receiver.receive(count)
    link.ask(feroce.message(feroce.CLOSE, side, remote))
    if received is None:
        return 1
    print(f'{count} messages, {received} bytes, every one right')
    return 0


sys.exit(main())
