"""The facts that dev/csrna-facts checks: what nonic's laboratory takes from the model of csRNA.

A check gets the sources and yields the places where it found what the fact rests on; what is not
there raises Absent. In a pattern a blank stands for any white space, or none.
"""
import re

COMMIT = "cd075c6"
NIC = "src/dev/rdma/hangu_rnic.cc"
HEADER = "src/dev/rdma/hangu_rnic.hh"
DEFS = "src/dev/rdma/hangu_rnic_defs.hh"
PARAMS = "src/dev/rdma/Rnic.py"
SWITCH = "src/dev/net/etherswitch.cc"
PACKET = "src/dev/net/etherpkt.hh"
ETHERNET = "ext/dnet/eth.h"
OPTIONS = "configs/common/Options.py"
ATOMIC = "src/cpu/simple/AtomicSimpleCPU.py"
SYSTEM = "configs/example/rdma/hangu_rnic_se.py"
RUN = "scripts/run_hangu.py"
SWEEP = "scripts/analysis.py"
SERVER = "tests/test-progs/hangu-rnic/src/server.c"
LIBRARY = "tests/test-progs/hangu-rnic/src/libhgrnic.c"
TEST = "tests/test-progs/hangu-rnic/src/librdma.h"

FACTS = []


class Absent(Exception):
    """The sources lack what a fact rests on."""


def fact(section, says, nonic, otherwise=None):
    """says: the fact. nonic: what nonic makes of it. otherwise: what says does not hold; this is
    what stands there instead, and what the check looks for."""
    def keep(check):
        FACTS.append((section, says, nonic, otherwise, check))
        return check
    return keep


# -- PCIe ------------------------------------------------------------------------------------------

PCIE = "PCIe"


@fact(PCIE,
      "Reads and writes have an engine each: each arms its own event again when its own access is "
      "through, so the two run side by side.",
      "PCIe has two directions, each busy with its own accesses.")
def two_engines(tree):
    for mine, other in (("Read", "Write"), ("Write", "Read")):
        engine = tree.nic(f"DmaEngine::dma{mine}Processing")
        yield engine.has(rf"\bschedule\(dma{mine}Event, curTick\(\) \+ bwDelay\)")
        engine.lacks(rf"schedule\(dma{other}Event, curTick\(\) \+ bwDelay\)")


@fact(PCIE,
      "An access keeps its engine busy for (bytes + 32) / bandwidth; it is complete that time and "
      "a fixed delay after its start.",
      "The same; 32 is the parameter `access`.")
def access_cost(tree):
    for name in ("Read", "Write"):
        yield tree.nic(f"DmaEngine::dma{name}Processing").has(
            r"bwDelay = .{0,12}size \+ 32\) \* \S*pciBandwidth",
            rf"delay = rnic->dma{name}Delay \+ bwDelay", r"schd = curTick\(\) \+ delay")


@fact(PCIE,
      "The fixed delay is 500 ns for a read, 250 ns for a write.",
      "The same: `read` and `write`.")
def delays(tree):
    yield tree.file(PARAMS).has(r"dma_read_delay = Param\.Latency\('500ns'")
    yield tree.file(PARAMS).has(r"dma_write_delay = Param\.Latency\('250ns'")


@fact(PCIE,
      "Nobody waits for a write's 250 ns: that event only takes the record out of its FIFO, and "
      "the bytes are handed to memory in the next cycle.",
      "A write's bytes are there 250 ns after it began.")
def posted_writes(tree):
    yield tree.nic("DmaEngine::dmaWriteCplProcessing").lacks(
        r"schedule\((?!dmaWriteCplEvent)|dmaWrite\(")
    yield tree.nic("DmaEngine::dmaChnlProc").has(r"rnic->dmaWrite\([^;]*nullptr")
    yield tree.nic("DmaEngine::dmaWriteProcessing").has(
        r"schedule\(dmaChnlProcEvent, curTick\(\) \+ rnic->clockPeriod")


@fact(PCIE,
      "Context reads and write-backs wait in one FIFO, in one order: a write-back at its head "
      "holds up the reads behind it until the write engine takes it, and the other way round.",
      "The same.")
def one_fifo(tree):
    yield tree.nic("QpcModule::loadMem").has(r"cacheDmaAccessFifo\.push")
    yield tree.nic("QpcModule::storeMem").has(r"reqType = 1", r"cacheDmaAccessFifo\.push")
    for name, foreign in (("Read", 1), ("Write", 0)):
        yield tree.nic(f"DmaEngine::dma{name}Processing").has(
            rf"cacheDmaAccessFifo\.front\(\)->reqType == {foreign}", r"isEmpty\[0\] = true")


@fact(PCIE,
      "Round robin picks the next read from four FIFOs (contexts, WQEs, payload, commands), the "
      "next write from three (contexts, payload, CQEs).",
      "One order for each direction.")
def arbitration(tree):
    yield tree.nic("DmaEngine::dmaReadProcessing").has(
        r"CHNL_NUM = 4", r"cacheDma", r"descDma", r"dataDma", r"ccuDma", r"readIdx % CHNL_NUM")
    yield tree.nic("DmaEngine::dmaWriteProcessing").has(
        r"CHNL_NUM = 3", r"cacheDma", r"dataDma", r"cqDma", r"writeIdx % CHNL_NUM")


@fact(PCIE,
      "Reads are answered in the order in which they were issued, whatever they read.",
      "The same.")
def read_order(tree):
    yield tree.nic("DmaEngine::dmaReadProcessing").has(r"dmaRdReq2RspFifo\.push")
    yield tree.nic("DmaEngine::dmaReadCplProcessing").has(
        r"dmaRdReq2RspFifo\.front", r"dmaRdReq2RspFifo\.pop")
    yield tree.type(HEADER, "DmaEngine").has(r"std::queue<DmaReqPtr> dmaRdReq2RspFifo")


@fact(PCIE,
      "PCIe moves 128 Gb/s.",
      "128 Gb/s, as the document says.",
      otherwise="its rate is kept in whole picoseconds a byte, 62 instead of 62.5: 129.0 Gb/s")
def whole_picoseconds(tree):
    yield tree.file(HEADER).has(r"uint32_t\s+pciBandwidth")
    yield tree.file(NIC).has(r"pciBandwidth\(p->pci_speed\)")
    yield tree.file(RUN).has(r'PCI_SPEED = "128Gbps"')


@fact(PCIE,
      "There is no memory on the board: the model has no parameter for it.",
      "On-board memory is ours: `board`, figure 9.")
def no_board(tree):
    nic = tree.file(PARAMS)
    names = {match.group(1) for match in nic.all(r"^\x20{4}(\w+) = Param\.")}
    expected = set("device mac_addr mpt_cache_num mtt_cache_num qpc_cache_cap cqc_cache_num "
                   "dma_read_delay dma_write_delay pci_speed ether_speed reorder_cap link_delay "
                   "cpu_num".split())
    if names != expected:
        raise Absent(f"other parameters: {sorted(names ^ expected)}")
    yield nic.has(r"class HanGuRnic")


# -- Wire ------------------------------------------------------------------------------------------

WIRE = "Wire"


@fact(WIRE,
      "A request is 12 bytes of addresses, 8 of BTH, 16 of RETH, and its data: no Ethernet type, "
      "IP or UDP header, no checksum.",
      "`framing` says which headers a packet carries.")
def framing(tree):
    yield tree.nic("RdmaEngine::dpuProcessing").has(
        r"length = ETH_ADDR_LEN \* 2 \+ getRdmaHeadSize")
    yield tree.nic("RdmaEngine::getRdmaHeadSize").has(
        r"OPCODE_RDMA_WRITE", r"PKT_BTH_SZ \+ PKT_RETH_SZ")
    yield tree.file(DEFS).has(r"PKT_BTH_SZ = 8;", r"PKT_RETH_SZ = 16;")
    yield tree.file(ETHERNET).has(r"define ETH_ADDR_LEN\s+6$")


@fact(WIRE,
      "An acknowledgement is 12 + 8 + 4 bytes.",
      "`framing` covers acknowledgements too.")
def acknowledgement(tree):
    yield tree.nic("RdmaEngine::wrRpuProcessing").has(
        r"length = ETH_ADDR_LEN \* 2 \+ PKT_BTH_SZ \+ PKT_AETH_SZ")
    yield tree.file(DEFS).has(r"PKT_AETH_SZ = 4;")


@fact(WIRE,
      "The switch takes time for the length of the packet, headers included.",
      "The same; `framing` has words for headers and for RoCEv2, too.",
      otherwise="it takes time for another member, simLength: the bytes of data alone in writes, "
                "the bytes asked for in read requests, nothing in acknowledgements and read "
                "responses")
def simulated_length(tree):
    yield tree.function(SWITCH, "Interface::switchingDelay").has(r"simLength \* ticksPerByte")
    tree.function(SWITCH, "Interface::switchingDelay").lacks(r"->length")
    yield tree.file(PACKET).has(r"explicit EthPacketData\(unsigned \w+\)[^{]*simLength\(0\)")
    yield tree.nic("RdmaEngine::rguProcessing").has(r"simLength \+= \w+->len;")
    for name in ("wrRpuProcessing", "rdRpuProcessing", "rcvRpuProcessing"):
        yield tree.nic("RdmaEngine::" + name).has(r"simLength = 0;")
    uses = tree.file(NIC).all(r"simLength")
    if len(uses) != 4:
        raise Absent(f"simLength is used in {len(uses)} places instead of 4")


@fact(WIRE,
      "A node sends at 100 Gb/s.",
      "The same; with the other words of `framing` it carries 100 Gb/s.",
      otherwise="only a port out of the switch takes that time; into the switch a node puts a "
                "packet a cycle, so a server that writes to many clients is never held up by its "
                "own link")
def free_uplink(tree):
    yield tree.function(SWITCH, "Interface::recvPacket").lacks(r"schedule|Delay")
    yield tree.function(SWITCH, "Interface::enqueue").has(
        r"reschedule\(txEvent, curTick\(\) \+ switchingDelay\(\)")
    send = tree.nic("RdmaEngine::sauProcessing")
    yield send.has(
        r"etherInt->sendPacket", r"schedule\(sauEvent, curTick\(\) \+ rnic->clockPeriod\(\)\)")
    send.lacks(r"curTick\(\) \+ bwDelay")
    yield tree.file(SYSTEM).has(
        r"etherswitch\.interface = rnicsys\[i\]\.platform\.rdma_nic\.interface")


@fact(WIRE,
      "A packet takes 1 us from node to node, beside its own length: the receiver adds it once, "
      "links and switch add none.",
      "`link`, from node to node.")
def link_delay(tree):
    yield tree.file(PARAMS).has(r"link_delay = Param\.Latency\('1us'")
    yield tree.nic("HanGuRnic::ethRxDelay").has(r"curTick\(\) \+ LinkDelay")
    yield tree.file(SYSTEM).has(r'etherswitch\.delay = "0us"')
    tree.file(SYSTEM).lacks(r"EtherLink")
    if len(tree.file(NIC).all(r"\+ LinkDelay")) != 1:
        raise Absent("the link's delay is added elsewhere too")


@fact(WIRE,
      "Nothing is sent again: the function that would do it returns at once, and the model ends "
      "at a sequence number that it does not expect.",
      "Retransmission is the live NIC's own.")
def no_retransmission(tree):
    again = tree.nic("RdmaEngine::reTransPkt")
    yield again.has(r"\{ return; \}")
    yield tree.nic("RdmaEngine::rruProcessing").has(r"lastPsn < ackPsn\) \{ panic")


@fact(WIRE,
      "A message is one packet of at most 4,096 bytes.",
      "The same: `payload`.")
def one_packet(tree):
    yield tree.nic("RdmaEngine::dpuProcessing").has(r"assert\(desc->len <= 4096\)")


# -- RDMA engine -----------------------------------------------------------------------------------

ENGINE = "RDMA engine"


@fact(ENGINE,
      "The send window is 100 packets for the whole NIC, all connections together.",
      "`window`; whether it counts for a NIC or a connection is a parameter.")
def window(tree):
    engine = tree.type(HEADER, "RdmaEngine")
    yield engine.has(r"\bwindowSize;", r"\bwindowCap;", r"windowCap\(100\)")
    yield tree.type(HEADER, "HanGuRnic").has(r"\bRdmaEngine rdmaEngine;")
    tree.type(DEFS, "WinMapElem").lacks(r"[wW]indow(Size|Cap)")
    yield tree.nic("RdmaEngine::rguProcessing").has(
        r"\+\+windowSize;", r"windowSize >= windowCap")


@fact(ENGINE,
      "A full window stops every request of the NIC, until an acknowledgement comes.",
      "The same.")
def window_full(tree):
    yield tree.nic("RdmaEngine::rgrrProcessing").has(
        r"isRspRecv\(\)\) \{ rruProcessing", r"isWindowBlocked\(\)\) \{ return;")


@fact(ENGINE,
      "The code reaches the 66.4 M messages a second that the document prints.",
      "The fitted `processing` gives this rate; with the model's window it does not come.",
      otherwise="100 packets in a round trip of at least 2 x 1 us are at most 50 M/s")
def window_bound(tree):
    cap = tree.type(HEADER, "RdmaEngine").number(r"windowCap\((\d+)\)")
    link_us = tree.file(PARAMS).number(r"link_delay = Param\.Latency\('(\d+)us'")
    if cap / (2 * link_us) != 50:
        raise Absent(f"{cap} packets and {link_us} us give another bound")
    yield tree.type(HEADER, "RdmaEngine").has(r"windowCap\(\d+\)")
    yield tree.file(PARAMS).has(r"link_delay")


@fact(ENGINE,
      "Every unit takes one cycle an item: all other times in the model are those of PCIe and of "
      "the link.",
      "`processing`, 15 cycles, is fitted to the document and has no counterpart here.")
def one_cycle(tree):
    whole = tree.file(NIC)
    when = r"\bschedule\([^;]*?, ((?:curTick|dma\w+Fifo|sched|dmaReq)[^;]*)\);"
    times = [match.group(1) for match in whole.all(when)]
    calls = len(whole.all(r"\b(?:re)?schedule\("))
    a_cycle = re.compile(r"curTick\(\) \+ (rnic->)?clockPeriod\(\)")
    rest = [time for time in times if not a_cycle.fullmatch(time)]
    cycle = len(times) - len(rest)
    expected = {"curTick() + bwDelay", "dmaReq->schd", "dmaRdReq2RspFifo.front()->schd",
                "dmaWrReq2RspFifo.front()->schd", "sched"}
    if set(rest) != expected or len(times) + 2 != calls or cycle < 50:
        raise Absent(f"{calls} events, {len(times)} known, other times: {sorted(set(rest))}")
    yield f"{whole.place().split(':')[0]}: {cycle} of {calls} schedulings"


@fact(ENGINE,
      "An acknowledgement asks for no context: the requester finds the window of its connection "
      "on the chip.",
      "The same; the way through the responder's requester is a parameter.")
def acknowledgements(tree):
    receive = tree.nic("RdmaEngine::rauProcessing")
    yield receive.has(
        r"== PKT_TRANS_ACK\)", r"ra2rgFifo\.push", r"else if \(rp2raIdxFifo\.size", r"postQpcReq")
    if len(receive.all("postQpcReq")) != 1:
        raise Absent("contexts are asked for in more than one place")
    yield tree.nic("RdmaEngine::rruProcessing").has(r"sndWindowList\[destQpn\]")
    tree.nic("RdmaEngine::rruProcessing").lacks(r"postQpcReq|qpcModule")


@fact(ENGINE,
      "The responder acknowledges a write in the cycle in which it posts the data: it does not "
      "wait until they are in memory.",
      "The same.")
def early_acknowledgement(tree):
    yield tree.nic("RdmaEngine::wrRpuProcessing").has(r"dataReqFifo\.push", r"txsauFifo\.push")


@fact(ENGINE,
      "Contexts are asked for once a doorbell (channel 0), once a WQE (channel 1), once a "
      "received request (channel 2).",
      "The same three channels.")
def context_requests(tree):
    yield tree.function(NIC, "HanGuRnic::doorbellProc").has(r"CXT_RREQ_SQ", r"postQpcReq")
    yield tree.nic("RdmaEngine::dduProcessing").has(
        r"CXT_RREQ_QP, CXT_CHNL_TX, \w+->qpn, 1,", r"postQpcReq", r"--this->dduDbell->num")
    yield tree.nic("RdmaEngine::rauProcessing").has(r"CXT_RREQ_QP, CXT_CHNL_RX", r"postQpcReq")
    yield tree.nic("QpcModule::qpcAccess").has(
        r"CHNL_NUM = 3", r"case 0: qpcReq = txQpAddr", r"case 1: qpcReq = txQpc",
        r"case 2: qpcReq = rxQpc")


@fact(ENGINE,
      "Each of the three units has as many indices as the out-of-order capacity; a unit without a "
      "free one waits, alone.",
      "The same: `oocap`.")
def indices(tree):
    yield tree.file(NIC).has(r"< p->reorder_cap;.{0,60}df2ccuIdxFifo\.push")
    yield tree.type(HEADER, "RdmaEngine").has(
        r"x < elemCap;.{0,80}dp2ddIdxFifo\.push.{0,80}rp2raIdxFifo\.push")
    yield tree.function(NIC, "HanGuRnic::doorbellProc").has(
        r"df2ccuIdxFifo\.size\(\) == 0\).{0,200}?return;")
    yield tree.nic("RdmaEngine::dduProcessing").has(
        r"dp2ddIdxFifo\.size\(\) == 0\).{0,200}?return;")


@fact(ENGINE,
      "The WQEs of one doorbell are read with one access of 32 bytes each.",
      "The same, `visit_wqes` at most.")
def wqe_read(tree):
    yield tree.nic("RdmaEngine::dfuProcessing").has(r"txDescLenSel\(dbell->num\) << 5")
    yield tree.nic("RdmaEngine::txDescLenSel").has(r"return \S+num;")


@fact(ENGINE,
      "The send queue's address is kept on the chip and contexts are fetched ahead (latency "
      "hiding).",
      "Built from the document's section 4.5 alone.",
      otherwise="the public code has neither: the address is read from the whole context, through "
                "the same cache, and a miss goes to memory")
def no_hiding(tree):
    yield tree.nic("QpcModule::qpcAccess").has(r"readProc\(this->chnlIdx, qpcReq\)")
    yield tree.nic("QpcModule::hitProc").has(
        r"readEntry\(qpcReq->num", r"chnlNum == 0", r"txQpAddrRspFifo\.push")
    for path in (NIC, HEADER):
        tree.file(path).lacks(r"(?i)pre_?fetch(?!ed)\w* \(|sqAddrTable|addrTable")


# -- Contexts --------------------------------------------------------------------------------------

CONTEXTS = "Contexts"


@fact(CONTEXTS,
      "The cache puts out the least recently used context, as the document says.",
      "`victims`: LRU as the document says, FIFO as the model does.",
      otherwise="it puts out the last one that an unordered_map's iteration comes to: the minimum "
                "with which each entry is compared never changes, and every entry passes")
def victims(tree):
    body = tree.nic("Cache<T>::replaceEntry")
    yield body.has(
        r"min = seq_end;", r"begin\(\)->first",
        r"min >= \w+->second\.second\) \{ \w+ = \w+->first; \}")
    if len(body.all(r"\bmin =[^=]")) != 1:
        raise Absent("the minimum changes")
    yield tree.type(HEADER, "Cache").has(
        r"unordered_map<uint32_t, std::pair<T\*, uint64_t> > cache")


@fact(CONTEXTS,
      "In GNU's library that last one is the oldest more often than not: nearly first in, first "
      "out. (Not from the sources: an imitation of that container with 300 places and the model's "
      "QPNs.)",
      "See above.")
def oldest(tree):
    for count in (400, 3000, 51200):
        ranks = victim_ranks(count)
        old = sum(rank < 16 for rank in ranks) / len(ranks)
        new = sum(rank >= 280 for rank in ranks) / len(ranks)
        if ranks[len(ranks) // 2] > 0 or old < 0.6 or new > 0.02:
            raise Absent(f"of {count} connections {old:.0%} old, {new:.0%} new victims")
        yield (f"{count:,} connections in turn: {old:.0%} of the victims are among the oldest 16, "
               f"{new:.0%} among the newest 20")


@fact(CONTEXTS,
      "Every context that is put out is written back, changed or not, and nobody waits for it.",
      "The same, but only if it was changed.")
def write_back(tree):
    yield tree.nic("QpcModule::writeOne").has(
        r"lookupFull", r"replaceEntry", r"deleteEntry", r"storeMem\(paddr, qpc\)")
    yield tree.nic("QpcModule::storeMem").has(r"sizeof\(QpcResc\), nullptr")
    tree.nic("QpcModule::writeOne").lacks(r"(?i)dirty")


@fact(CONTEXTS,
      "First come, first served posts its write-backs too: its victims are written with no event, "
      "and the request goes on in the same cycle.",
      "The same.")
def blocking_write_back(tree):
    yield tree.nic("RescCache<T, S>::storeReq").has(r"rescSz, nullptr", r"reqType = 1")
    yield tree.nic("RescCache<T, S>::fetchRsp").has(r"storeReq\(", r"rrspFifo\.emplace")


@fact(CONTEXTS,
      "The code holds the first-come-first-served management of contexts that the document "
      "compares with.",
      "Built from the document; `policy`.",
      otherwise="contexts have the non-blocking one alone; what blocks is the cache of MPT, MTT "
                "and CQ contexts, which stops while one read is under way and puts out a random "
                "entry")
def blocking(tree):
    yield tree.nic("RescCache<T, S>::readProc").has(
        r"rreq2rrspFifo\.size\(\) \|\| reqFifo\.empty\(\)\) \{ return;")
    yield tree.nic("RescCache<T, S>::replaceScheme").has(r"random_mt\.random")
    module = tree.type(HEADER, "QpcModule")
    yield module.has(r"Cache<QpcResc> qpcCache;")
    module.lacks(r"RescCache")


@fact(CONTEXTS,
      "A context is read and moved on (sequence numbers, offsets) in one step; nothing is written "
      "to it later.",
      "A request reads or updates; the engine's state is the truth.")
def read_and_update(tree):
    yield tree.nic("QpcModule::hitProc").has(
        r"readEntry", r"chnlNum == 1", r"qpcTxUpdate", r"chnlNum == 2", r"qpcRxUpdate")
    tree.file(NIC).lacks(r"make_shared<CxtReqRsp>\( CXT_WREQ_QP")


@fact(CONTEXTS,
      "A request whose connection has one pending waits without a DMA of its own; a miss makes "
      "the record and one DMA; a hit is answered at once.",
      "The same (behaviours CSR-01 to CSR-04).")
def request_handling(tree):
    yield tree.nic("QpcModule::readProc").has(
        r"qpnHashMap\.find", r"reqCnt \+= 1", r"qpcReq, false\)", r"lookupHit", r"hitProc",
        r"qpcReq, true\)", r"qpnHashMap\.emplace")


@fact(CONTEXTS,
      "A DMA that has come back goes before the check of pending requests.",
      "The same (CSR-19).")
def responses_first(tree):
    yield tree.nic("QpcModule::qpcRspProc").has(
        r"if \(rnic->qpcDmaRdCplFifo\.size\(\)\)", r"else if \(isRspValidRun", r"get_elem_check")


@fact(CONTEXTS,
      "Pending requests are checked, one a cycle, as long as a connection whose context has come "
      "has one pending.",
      "The same.")
def checking(tree):
    yield tree.nic("QpcModule::isRspValidRun").has(r"rtnCnt != 0\) && pendStruct\.get_size\(\)")
    yield tree.nic("QpcModule::qpcRspProc").has(
        r"if \(isRspValidRun\(\)\) \{ if \(!qpcRspProcEvent\.scheduled", r"clockPeriod")


@fact(CONTEXTS,
      "The document does not say when the two pending FIFOs change places. In the code they do "
      "when the one to check is empty, and when the one that waits for DMA has run empty.",
      "Ours: when the one to check is empty and no check is under way.")
def swaps(tree):
    yield tree.nic("PendingStruct::get_elem_check").has(r"\[offlineIdx\]\.empty\(\)\) \{ swapIdx")
    yield tree.nic("PendingStruct::pop_elem").has(
        r"\[onlineIdx\]\.empty\(\) && .{0,40}offlineIdx.{0,40} swapIdx")
    for name in ("succ_elem_check", "push_elem_check"):
        yield tree.nic("PendingStruct::" + name).has(r"\[onlineIdx\]\.size\(\) == 0\) \{ swapIdx")


@fact(CONTEXTS,
      "The caches hold 40,000 MPT, 50,000 MTT entries and 2,000 CQ contexts.",
      "No translation misses.")
def translation(tree):
    yield tree.file(PARAMS).has(
        r"mpt_cache_num = Param\.Int\(40000,", r"mtt_cache_num = Param\.Int\(50000,",
        r"cqc_cache_num = Param\.Int\(2000,")


@fact(CONTEXTS,
      "These caches never miss.",
      "No translation misses, at any number of connections.",
      otherwise="each connection registers two regions, one of them for its send queue: those of "
                "the scripts' 15,360 connections fit; of the document's 51,200 not even the send "
                "queues' fit")
def translation_misses(tree):
    create = tree.function(LIBRARY, "ibv_create_batch_qp")
    yield create.has(r"ibv_reg_batch_mr\(context, mr_attr, batch_size \* 2\)")
    entries = r"_cache_num = Param\.Int\((\d+),"
    mpt, mtt = (tree.file(PARAMS).number(name + entries) for name in ("mpt", "mtt"))
    if not 2 * 15360 < mpt < mtt < 51200:
        raise Absent(f"{mpt} MPT and {mtt} MTT entries")
    yield tree.file(PARAMS).has(r"mpt_cache_num")


# -- Formats ---------------------------------------------------------------------------------------

FORMATS = "Formats"
SIZES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8}


def struct_bytes(part):
    """The size of a struct of plain integers; a union counts as its largest member struct."""
    text = part.text[part.start:part.end]
    text = re.sub(r"\w+\s*\([^;{}]*\)\s*\{(?:[^{}]|\{[^{}]*\})*\}", "", text)
    union = re.compile(r"union\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*;")
    total = 0
    for match in union.finditer(text):
        inner = match.group(1)
        structs = [fields_bytes(body) for body in re.findall(r"struct\s*\{([^{}]*)\}", inner)]
        single = [fields_bytes(line) for line in re.findall(r"uint\w+\s+\w+\s*;", inner)]
        total += max(structs or single)
    return total + fields_bytes(union.sub("", text))


def fields_bytes(text):
    found = re.findall(r"\b(uint\d+_t)\s+\w+\s*(?:\[(\d+)\])?\s*;", text)
    return sum(SIZES[kind] * int(count or 1) for kind, count in found)


def size_fact(name, says, nonic, expected):
    @fact(FORMATS, says, nonic)
    def check(tree):
        part = tree.type(DEFS, name)
        if struct_bytes(part) != expected:
            raise Absent(f"{part.place()} has {struct_bytes(part)} bytes")
        yield part.place()
    return check


size_fact("QpcResc",
          "A context is 256 bytes, 48 of them used: state, type, ring sizes, offsets in the "
          "rings, both identifiers, both QPNs, three sequence numbers, CQN, keys, Q_Key.",
          "256 bytes.",
          256)
size_fact("TxDesc",
          "A WQE is 32 bytes.",
          "32 bytes.",
          32)
size_fact("CqDesc",
          "A CQE is 12 bytes.",
          "16 bytes: ours.",
          12)


@fact(FORMATS,
      "A doorbell is one write of 8 bytes: operation (4 bits), offset (28), count (8), QPN (24).",
      "8 bytes.")
def doorbell(tree):
    yield tree.type(DEFS, "DOORBELL").has(
        r"\(opcode,0,4\)", r"\(offset,4,28\)", r"\(num,32,8\)", r"\(qpn,40,24\)")
    yield tree.function(NIC, "HanGuRnic::write").has(
        r"getSize\(\) == sizeof\(uint64_t\)", r"DoorbellFifo")


# -- Scripts and programs --------------------------------------------------------------------------

SCRIPTS = "Scripts and programs"


@fact(SCRIPTS,
      "The NIC's clock is 1 GHz (gem5's own default for a system; the scripts set none).",
      "`clock`.")
def clock(tree):
    yield tree.file(OPTIONS).has(r'"--sys-clock".{0,60}default=\'1GHz\'')
    tree.file(RUN).lacks(r"sys-clock")
    yield tree.file(SYSTEM).has(r"SrcClockDomain\(clock =\s*options\.sys_clock")


@fact(SCRIPTS,
      "10 cores of 2 GHz, Ethernet 100 Gb/s, PCIe 128 Gb/s.",
      "`cores`, `ethernet`, `pcie`.")
def settings(tree):
    yield tree.file(RUN).has(
        r"NUM_CPUS\s*=\s*10$", r'CPU_CLK\s*=\s*"2GHz"', r'EN_SPEED\s*=\s*"100Gbps"',
        r'PCI_SPEED\s*=\s*"128Gbps"')


@fact(SCRIPTS,
      "The sweep: 3 clients, 300 contexts in the cache, 1 to 512 connections for each core and "
      "client in powers of two, so at most 15,360 (the document: 10 clients, 51,200).",
      "`clients` and `qps`: both are reported.")
def sweep(tree):
    part = tree.file(SWEEP)
    counts = part.find(r"QP_NUM_LIST = \[([^\]]*)\]").group(1)
    counts = [int(number) for number in counts.split(",")]
    if sorted(counts) != [1 << power for power in range(10)]:
        raise Absent(f"connections {counts}")
    cores = tree.file(RUN).number(r"NUM_CPUS = (\d+)")
    if max(counts) * part.number(r"^CLIENT_NUM = (\d+)") * cores != 15360:
        raise Absent("the product is not 15,360")
    yield part.has(r"^CLIENT_NUM = 3$", r"^QP_CACHE_CAP = 300$", r"^QP_NUM_LIST")


@fact(SCRIPTS,
      "The out-of-order capacity of the sweep is 16, the document's choice.",
      "`oocap`, 16; swept.",
      otherwise="it is 64, and 100 where no script sets it; the responder looks at 100 places of "
                "a vector that has only as many as this capacity")
def capacity(tree):
    yield tree.file(SWEEP).has(r"^REORDER_CAP\s*=\s*64$")
    yield tree.file(PARAMS).has(r"reorder_cap = Param\.Int\(100,")
    yield tree.nic("RdmaEngine::rpuProcessing").has(r"i < 100;.{0,40}rs2rpVector\[i\]")


@fact(SCRIPTS,
      "Messages have 64 bytes.",
      "`payload`, 64.")
def message(tree):
    for name in ("WRDMA", "RRDMA"):
        match = tree.file(SERVER).find(rf'define TRANS_{name}_DATA "([^"]*)"')
        if len(match.group(1)) + 1 != 64:
            raise Absent(f"{len(match.group(1)) + 1} bytes")
    yield tree.file(SERVER).has(r"define TRANS_WRDMA_DATA")
    yield tree.function(SERVER, "svr_post_send").has(r"length = sizeof\(TRANS_WRDMA_DATA\)")


@fact(SCRIPTS,
      "For the rate, a connection's batch has (QPN mod 10) + 1 WQEs, the last one signalled; it "
      "is posted again when that completion comes.",
      "The same.")
def batches(tree):
    yield tree.file(TEST).has(r"define TEST_WR_NUM 10$")
    yield tree.function(SERVER, "throughput_test").has(
        r"qp_num % TEST_WR_NUM\) \+ 1", r"ibv_poll_cpl",
        r"svr_post_send\(.{0,80}qp_num % TEST_WR_NUM\) \+ 1")
    yield tree.function(SERVER, "svr_post_send").has(r"\(i == wr_num - 1\) \? WR_FLAG_SIGNALED : 0")


@fact(SCRIPTS,
      "For the latency, each core has one WQE under way, and goes through its connections once.",
      "The same, several times around.")
def latency(tree):
    yield tree.file(TEST).has(r"define LATENCY_WR_NUM 1$")
    yield tree.function(SERVER, "latency_test").has(
        r"i < num_client;", r"j < num_qp;", r"LATENCY_WR_NUM", r"while \(polling\)")


@fact(SCRIPTS,
      "A doorbell takes 250 ns.",
      "A doorbell takes `write`, 250 ns, and `software`, 390 ns, is fitted.",
      otherwise="the bridge has this delay, but the scripts name no processor, and the default "
                "one does not wait for its accesses: the NIC has the doorbell at once. So 250 ns "
                "for doorbell and CQE each are no part of the model's latency")
def doorbell_time(tree):
    yield tree.file(SYSTEM).has(r"iobridge = Bridge\(delay='250ns'\)")
    yield tree.file(OPTIONS).has(r'"--cpu-type".{0,40}default="AtomicSimpleCPU"')
    yield tree.file(ATOMIC).has(r"simulate_data_stalls = Param\.Bool\(False")
    tree.file(RUN).lacks(r"cpu-type")
    tree.file(SYSTEM).lacks(r"simulate_data_stalls")


# -- The order of GNU's unordered_map --------------------------------------------------------------

def victim_ranks(connections, capacity=300, cores=10):
    """Serve connections in turn through a cache that puts out the last one in the order of GNU's
    unordered_map (its keys whole numbers). Return the victims' ranks by age, 0 the oldest, sorted.

    A new node goes to the front of its bucket if that holds one, otherwise to the front of all; the
    table grows to the first prime from twice its size on. A QPN is a core's number and a count."""
    order, born, buckets, ranks = [], {}, 13, []
    bigger = {13: 29, 29: 59, 59: 127, 127: 257, 257: 541}

    def insert(keys, key):
        same = (at for at, other in enumerate(keys) if other % buckets == key % buckets)
        keys.insert(next(same, 0), key)

    for turn in range(max(connections, 3000) + 3000):
        at = turn % connections
        key = (at % cores << 16) + at // cores + 1
        if key in born:
            continue
        if len(order) == capacity:
            victim = order.pop()
            ranks.append(sum(other < born[victim] for other in born.values()))
            del born[victim]
        if len(order) == buckets:
            buckets = bigger[buckets]
            nodes, order = order, []
            for node in nodes:
                insert(order, node)
        insert(order, key)
        born[key] = turn
    return sorted(ranks[capacity:])
