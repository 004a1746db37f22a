-- SPDX-License-Identifier: BSD-2-Clause
--
-- nonic_srd - shows the packets of nonic's scalable reliable datagrams (SRD) in Wireshark and tshark (from 4.0 on).
--
-- wire/srd.h says what the fields mean. Opcodes 0xd0 to 0xd9 of UDP port 4791 are shown here; the rest of the port goes
-- to whoever had it before: another script, or Wireshark's own dissector of RoCEv2.
--
--     tshark -X lua_script:tools/wireshark/nonic_srd.lua -r a.pcapng -Y nonic_srd

local PORT = 4791
local BTH, FXH, SXH, RXH, DXH, AXH, RECORD, HXH, CXH, PXH, ICRC = 12, 32, 8, 24, 24, 32, 16, 64, 32, 72, 4
local PACKETS, WINDOW, WINDOW_LOG2, PAYLOAD_MAX = 64, 1024, 10, 4096
local CHUNK_STEP, CHUNK_LEAST = 64, 512
local RECORDS_MAX, WAIT_CODES = 3, 14
local SRD_PORT, VERSION = 0xfeff, 1

local SEND, WRITE, READ, DATA, ANSWER, HELLO, CHALLENGE, PROBE = 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7
local PATH_CHALLENGE, PATH_RESPONSE = 0xd8, 0xd9
local TAKEN, NO_RECEIVE, REFUSED = 0, 1, 2
local STALE = 3

local names = {
    [SEND] = 'SEND', [WRITE] = 'WRITE', [READ] = 'READ', [DATA] = 'DATA', [ANSWER] = 'ANSWER', [HELLO] = 'HELLO',
    [CHALLENGE] = 'CHALLENGE', [PROBE] = 'PROBE', [PATH_CHALLENGE] = 'PATH CHALLENGE', [PATH_RESPONSE] = 'PATH RESPONSE',
}
-- Bytes of headers, the BTH and what does not repeat.
local header_bytes = {
    [SEND] = BTH + FXH + SXH, [WRITE] = BTH + FXH + RXH, [READ] = BTH + FXH + RXH, [DATA] = BTH + DXH,
    [ANSWER] = BTH + AXH, [HELLO] = BTH + HXH, [CHALLENGE] = BTH + CXH, [PROBE] = BTH + FXH,
    [PATH_CHALLENGE] = BTH + PXH, [PATH_RESPONSE] = BTH + PXH,
}
local kinds = {[TAKEN] = 'taken', [NO_RECEIVE] = 'no receive', [REFUSED] = 'refused'}
local reasons = {[1] = 'answers a HELLO', [STALE] = 'the flow is not known'}
-- Those with which a target refuses.
local statuses = {
    [7] = 'rkey, right or bounds', [9] = 'no such queue pair', [11] = 'longer than the receive',
    [14] = 'no address handle for this peer', [18] = 'not created for that',
}

local function has_payload(opcode) return opcode == SEND or opcode == WRITE or opcode == DATA end
local function is_request(opcode) return opcode == SEND or opcode == WRITE or opcode == READ end

-- ---- Fields ----------------------------------------------------------------------------------------------------

local protocol = Proto('nonic_srd', 'nonic scalable reliable datagrams (SRD)')
local fields, list = {}, {}

-- The filter is nonic_srd.NAME, and fields[NAME] the field.
local function field(kind, name, title, ...)
    fields[name] = ProtoField[kind]('nonic_srd.' .. name, title, ...)
    list[#list + 1] = fields[name]
end

-- BTH.
field('uint8', 'opcode', 'Opcode', base.HEX, names)
field('uint8', 'pad_count', 'Pad count', base.DEC, nil, 0x30)
field('uint8', 'tver', 'Transport header version', base.DEC, nil, 0x0f)
field('uint16', 'pkey', 'P_Key', base.HEX)
field('uint8', 'slot', 'Slot of the target', base.DEC)
field('uint16', 'port', 'SRD port', base.HEX)
field('bool', 'ack_request', 'An answer is wanted (A)', 8, nil, 0x80)
field('uint24', 'tsn', 'Transmission sequence number (TSN)', base.DEC)
field('uint24', 'answer_number', 'Number of the answer', base.DEC)
-- FXH and DXH.
field('uint32', 'flow', 'Flow', base.HEX)
field('uint64', 'tag', 'Tag', base.HEX)
field('uint32', 'psn', 'PSN', base.DEC)
field('uint16', 'back', 'PSNs back to the first whose verdict is open (BACK)', base.DEC)
field('uint8', 'index', 'Number of the packet in its instance (IDX)', base.DEC)
field('uint8', 'last', 'Number of the last one (LAST)', base.DEC)
field('uint16', 'source_qpn', 'Source QPN', base.HEX)
field('uint16', 'target_qpn', 'Destination QPN', base.HEX)
field('uint32', 'qkey', 'Q_Key', base.HEX)
field('uint32', 'path', 'Path', base.DEC, nil, 0xf0000000)
field('bool', 'has_immediate', 'With immediate data (I)', 32, nil, 0x08000000)
field('bool', 'resent', 'Sent again (R)', 32, nil, 0x04000000)
field('bool', 'unsolicited', 'Consumes no receive (U)', 32, nil, 0x02000000)
field('uint32', 'version', 'Version', base.DEC, nil, 0x00f00000)
field('uint16', 'chunk', 'Payload of all packets but the last (CHUNK)', base.DEC)
-- SXH and RXH.
field('uint32', 'message_length', 'Message length', base.DEC)
field('bytes', 'immediate', 'Immediate data')
field('uint64', 'va', 'Virtual address', base.HEX)
field('uint32', 'rkey', 'Remote key', base.HEX)
field('uint64', 'wanted', 'Packets wanted', base.HEX)
-- AXH and records.
field('uint32', 'cum', 'All PSNs before were taken (CUM)', base.DEC)
field('uint32', 'echo_path', 'Path of the echo', base.DEC, nil, 0xf0000000)
field('bool', 'more', 'More verdicts than there is room for (m)', 32, nil, 0x08000000)
field('bool', 'answers_probe', 'Answers a probe (p)', 32, nil, 0x04000000)
field('bool', 'echo_void', 'Echo is void (e)', 32, nil, 0x02000000)
field('uint32', 'echo_tsn', 'Echoed TSN', base.DEC, nil, 0x00ffffff)
field('uint32', 'echo_delay', 'Echo delay in ns', base.DEC)
field('uint8', 'ce_marked', 'CE-marked packets', base.DEC)
field('uint8', 'duplicates', 'Duplicates', base.DEC)
field('uint8', 'record_count', 'Records', base.DEC)
field('uint16', 'credits', 'Receives of the process (65535: not told)', base.DEC)
field('none', 'record', 'Record')
field('uint32', 'record.psn', 'PSN', base.DEC)
field('uint8', 'record.kind', 'Verdict', base.DEC, kinds)
field('uint8', 'record.status', 'Status', base.DEC, statuses)
field('uint8', 'record.wait_code', 'Wait code (64 us << n)', base.DEC)
field('uint64', 'record.bitmap', 'PSNs from there on', base.HEX)
-- HXH and CXH.
field('uint8', 'greeting_version', 'Version', base.DEC)
field('bytes', 'zeroes', 'Zeroes')
field('uint32', 'boot', 'Life of the process', base.HEX)
field('uint8', 'reason', 'Reason', base.DEC, reasons)
field('uint8', 'window_log2', 'Window, as a power of 2', base.DEC)
field('uint32', 'challenged_psn', 'PSN that was not known', base.DEC)
-- PXH.
field('uint64', 'path_number', 'Number, which the response repeats', base.HEX)
field('bool', 'of_target', 'From the process to which the flow leads (T)', 8, nil, 0x80)
field('uint8', 'gid_count', 'Addresses beside the first one', base.DEC, nil, 0x03)
field('uint8', 'path_version', 'Version', base.DEC, nil, 0xf0)
field('ipv6', 'gid', 'Address')
field('framenum', 'path_challenge_frame', 'PATH CHALLENGE in', base.NONE, frametype.REQUEST)
-- Fields behind the headers.
field('bytes', 'payload', 'Payload')
field('bytes', 'pad', 'Pad')
field('uint32', 'icrc', 'Invariant CRC', base.HEX)
-- The flow, as the capture shows it.
field('uint32', 'offset', 'Offset of the payload in its instance', base.DEC)
field('framenum', 'hello_frame', 'HELLO in', base.NONE, frametype.REQUEST)
field('framenum', 'challenge_frame', 'CHALLENGE in', base.NONE, frametype.RESPONSE)
field('framenum', 'echo_frame', 'Echoes the packet in', base.NONE, frametype.ACK)
field('framenum', 'judged_frame', 'Judges the packet in', base.NONE, frametype.ACK)
field('framenum', 'read_frame', 'READ in', base.NONE, frametype.REQUEST)
protocol.fields = list

local experts = {
    length = ProtoExpert.new('nonic_srd.expert.length', 'Wrong length', expert.group.MALFORMED, expert.severity.ERROR),
    reserved = ProtoExpert.new('nonic_srd.expert.reserved', 'Reserved bits are not 0', expert.group.MALFORMED,
                               expert.severity.ERROR),
    unknown = ProtoExpert.new('nonic_srd.expert.unknown', 'Unknown value', expert.group.MALFORMED,
                              expert.severity.ERROR),
    contradiction = ProtoExpert.new('nonic_srd.expert.contradiction', 'The packet contradicts itself',
                                    expert.group.PROTOCOL, expert.severity.ERROR),
    cut = ProtoExpert.new('nonic_srd.expert.cut', 'The capture has a part of the packet only',
                          expert.group.UNDECODED, expert.severity.NOTE),
    verdict = ProtoExpert.new('nonic_srd.expert.verdict', 'The target does not take a message',
                              expert.group.RESPONSE_CODE, expert.severity.WARN),
    stale = ProtoExpert.new('nonic_srd.expert.stale', 'The target does not know the flow', expert.group.RESPONSE_CODE,
                            expert.severity.WARN),
    resent = ProtoExpert.new('nonic_srd.expert.resent', 'Sent again', expert.group.SEQUENCE, expert.severity.NOTE),
}
protocol.experts = {
    experts.length, experts.reserved, experts.unknown, experts.contradiction, experts.cut, experts.verdict,
    experts.stale, experts.resent,
}

local function contradict(item, what)
    if what then
        item:add_proto_expert_info(experts.contradiction, 'The packet contradicts itself: ' .. what)
    end
end

local function reserve(item, is_zero)
    if not is_zero then
        item:add_proto_expert_info(experts.reserved)
    end
end

-- ---- Flows -----------------------------------------------------------------------------------------------------

local flows

function protocol.init()
    flows = {}
end

-- A flow is found by its number alone: processes draw it.
local function flow_of(number)
    flows[number] = flows[number] or {sent = {}, judged = {}, path = {}}
    return flows[number]
end

local function note(packet, list_name, key)
    if not packet.pinfo.visited then
        packet.flow[list_name][key] = packet.pinfo.number
    end
end

-- The newest packet of that name, as it was when this one was seen first: later ones may have the same name.
local seen = {}
local function recall(packet, list_name, key)
    local place = packet.pinfo.number .. list_name .. key
    if not packet.pinfo.visited then
        seen[place] = packet.flow[list_name][key]
    end
    return seen[place]
end

local function show_frame(packet, name, frame)
    if frame then
        packet.tree:add(fields[name], frame):set_generated()
    end
end

-- ---- Judging: as wire/srd_judge.c does ---------------------------------------------------------------------------

local function packets_of(bytes, chunk)
    return bytes == 0 and 1 or math.floor((bytes + chunk - 1) / chunk)
end

local function payload_fits(p)
    if p.index < p.last then
        return p.payload_length == p.chunk
    end
    return p.payload_length <= p.chunk and (p.payload_length ~= 0 or p.last == 0)
end

local function judge_send(p)
    if packets_of(p.message_length, p.chunk) ~= p.last + 1 then
        return 'IDX and LAST do not follow from the message length'
    elseif not payload_fits(p) or
           (p.index == p.last and p.payload_length ~= p.message_length - p.last * p.chunk) then
        return 'the payload is not as long as this place'
    end
    return p.unsolicited and 'U belongs to a WRITE' or nil
end

local function judge_write(p)
    local least = p.last * p.chunk + (p.index == p.last and p.payload_length or 1)
    if not payload_fits(p) or (p.payload_length == 0) ~= (p.message_length == 0) or
       (p.payload_length ~= 0 and p.message_length < least) then
        return 'the payload is not as long as this place'
    end
    return p.unsolicited and not p.has_immediate and 'U without immediate data' or nil
end

local function judge_read(p)
    local packets = packets_of(p.message_length, p.chunk)
    if p.last ~= 0 or packets > PACKETS then
        return 'a READ is one packet, for at most 64'
    elseif p.has_immediate or p.unsolicited then
        return 'I and U belong to other requests'
    end
    local there = p.message_length == 0 and 0 or packets
    for bit = 0, PACKETS - 1 do
        if p.wanted:rshift(bit):band(1) == UInt64(1) and bit >= there then
            return 'a packet is wanted that the segment does not have'
        end
    end
    return (p.wanted == UInt64(0)) ~= (there == 0) and 'no packet is wanted' or nil
end

local judges = {[SEND] = judge_send, [WRITE] = judge_write, [READ] = judge_read}

local function judge_chunk(p)
    return (p.chunk % CHUNK_STEP ~= 0 or p.chunk < CHUNK_LEAST or p.chunk > PAYLOAD_MAX) and
           'CHUNK is a multiple of 64, from 512 to 4096' or nil
end

local function judge_request(p)
    if p.last >= PACKETS or p.index > p.last then
        return 'IDX lies behind LAST, or there are more than 64 packets'
    elseif math.floor(p.target_qpn / 256) ~= p.slot then
        return 'the destination QPN is of another slot'
    end
    return judge_chunk(p) or judges[p.opcode](p)
end

-- ---- Headers -----------------------------------------------------------------------------------------------------

local function dissect_bth(packet, tree)
    local tvb = packet.tvb
    local bth = tree:add(tvb(0, BTH), 'Base transport header')
    bth:add(fields.opcode, tvb(0, 1))
    bth:add(fields.pad_count, tvb(1, 1))
    local tver, pkey = bth:add(fields.tver, tvb(1, 1)), bth:add(fields.pkey, tvb(2, 2))
    bth:add(fields.slot, tvb(5, 1))
    local port = bth:add(fields.port, tvb(6, 2))
    bth:add(fields.ack_request, tvb(8, 1))
    bth:add(packet.opcode == ANSWER and fields.answer_number or fields.tsn, tvb(9, 3))
    packet.slot, packet.tsn = tvb(5, 1):uint(), tvb(9, 3):uint()
    if tvb(1, 1):bitfield(4, 4) ~= 0 then
        tver:add_proto_expert_info(experts.unknown)
    end
    if tvb(2, 2):uint() ~= 0xffff then
        pkey:add_proto_expert_info(experts.unknown, 'Unknown value: every P_Key is 0xffff')
    end
    contradict(port, tvb(6, 2):uint() ~= SRD_PORT and 'SRD goes to port 0xfeff of a slot' or nil)
    reserve(bth, tvb(1, 1):bitfield(0, 2) == 0 and tvb(4, 1):uint() == 0 and tvb(8, 1):bitfield(1, 7) == 0)
end

local function dissect_flow(packet, tree, at)
    tree:add(fields.flow, at(0, 4))
    packet.flow = flow_of(at(0, 4):uint())
    packet.flow_number = at(0, 4):uint()
end

local function dissect_fxh(packet, tree)
    local at = packet.tvb(BTH, FXH)
    local fxh = tree:add(at, 'Flow header')
    dissect_flow(packet, fxh, at)
    fxh:add(fields.tag, at(4, 8))
    fxh:add(fields.psn, at(12, 4))
    local back = fxh:add(fields.back, at(16, 2))
    fxh:add(fields.index, at(18, 1))
    fxh:add(fields.last, at(19, 1))
    fxh:add(fields.source_qpn, at(20, 2))
    fxh:add(fields.target_qpn, at(22, 2))
    fxh:add(fields.qkey, at(24, 4))
    local word = at(28, 4)
    for _, name in ipairs({'path', 'has_immediate', 'unsolicited'}) do
        fxh:add(fields[name], word)
    end
    local resent, version = fxh:add(fields.resent, word), fxh:add(fields.version, word)
    fxh:add(fields.chunk, at(30, 2))
    packet.psn, packet.back = at(12, 4):uint(), at(16, 2):uint()
    packet.index, packet.last = at(18, 1):uint(), at(19, 1):uint()
    packet.source_qpn, packet.target_qpn = at(20, 2):uint(), at(22, 2):uint()
    packet.path, packet.chunk = word:bitfield(0, 4), at(30, 2):uint()
    packet.has_immediate, packet.resent = word:bitfield(4, 1) == 1, word:bitfield(5, 1) == 1
    packet.unsolicited = word:bitfield(6, 1) == 1
    if packet.resent then
        resent:add_proto_expert_info(experts.resent)
    end
    if word:bitfield(8, 4) ~= VERSION then
        version:add_proto_expert_info(experts.unknown, 'Unknown value: another version of SRD')
    end
    reserve(fxh, word:bitfield(7, 1) == 0 and word:bitfield(12, 4) == 0)
    contradict(back, packet.back >= WINDOW and 'further back than the window is long' or nil)
    note(packet, 'sent', packet.path * 0x1000000 + packet.tsn)
    if is_request(packet.opcode) then
        note(packet, 'judged', packet.psn)
    end
    return fxh
end

local function dissect_probe(packet, fxh)
    local at = packet.tvb(BTH, FXH)
    local empty = packet.last == 0 and packet.chunk == 0 and packet.target_qpn == 0 and
                  at(24, 4):uint() == 0 and at(28, 1):bitfield(4, 3) == 0 and packet.source_qpn % 256 == 0
    contradict(fxh, not empty and 'a PROBE speaks of a flow and a path alone' or nil)
end

local behind_fxh = {
    [SEND] = function(packet, tree, at)
        local sxh = tree:add(at, 'SEND header')
        sxh:add(fields.message_length, at(0, 4))
        sxh:add(fields.immediate, at(4, 4))
        packet.message_length = at(0, 4):uint()
        contradict(sxh, not packet.has_immediate and at(4, 4):uint() ~= 0 and 'immediate data without I' or nil)
    end,
    [WRITE] = function(packet, tree, at)
        local rxh = tree:add(at, 'WRITE header')
        rxh:add(fields.va, at(0, 8))
        rxh:add(fields.rkey, at(8, 4))
        rxh:add(fields.message_length, at(12, 4))
        rxh:add(fields.immediate, at(16, 4))
        packet.message_length = at(12, 4):uint()
        reserve(rxh, at(20, 4):uint() == 0)
        contradict(rxh, not packet.has_immediate and at(16, 4):uint() ~= 0 and 'immediate data without I' or nil)
    end,
    [READ] = function(packet, tree, at)
        local rxh = tree:add(at, 'READ header')
        rxh:add(fields.va, at(0, 8))
        rxh:add(fields.rkey, at(8, 4))
        rxh:add(fields.message_length, at(12, 4))
        rxh:add(fields.wanted, at(16, 8))
        packet.message_length, packet.wanted = at(12, 4):uint(), at(16, 8):uint64()
    end,
}

local function dissect_data(packet, tree)
    local at = packet.tvb(BTH, DXH)
    local dxh = tree:add(at, 'Data header')
    dissect_flow(packet, dxh, at)
    dxh:add(fields.tag, at(4, 8))
    dxh:add(fields.psn, at(12, 4))
    dxh:add(fields.index, at(16, 1))
    dxh:add(fields.chunk, at(18, 2))
    dxh:add(fields.path, at(20, 4))
    packet.psn, packet.index, packet.chunk = at(12, 4):uint(), at(16, 1):uint(), at(18, 2):uint()
    reserve(dxh, at(17, 1):uint() == 0 and at(20, 4):bitfield(4, 28) == 0)
    show_frame(packet, 'read_frame', recall(packet, 'judged', packet.psn))
    packet.header = dxh
end

local function dissect_record(packet, tree, at, base_psn)
    local psn, kind, status, code = at(0, 4):uint(), at(4, 1):uint(), at(5, 1):uint(), at(6, 1):uint()
    local item = tree:add(fields.record, at)
    item:append_text(string.format(': PSN %.0f, %s', psn, kinds[kind] or 'unknown verdict'))
    item:add(fields['record.psn'], at(0, 4))
    local verdict, why = item:add(fields['record.kind'], at(4, 1)), item:add(fields['record.status'], at(5, 1))
    local wait = item:add(fields['record.wait_code'], at(6, 1))
    item:add(fields['record.bitmap'], at(8, 8))
    if not kinds[kind] then
        verdict:add_proto_expert_info(experts.unknown)
    elseif kind == REFUSED and not statuses[status] then
        why:add_proto_expert_info(experts.unknown)
    elseif kind ~= TAKEN then
        verdict:add_proto_expert_info(experts.verdict, 'The target does not take a message: ' ..
                                      (kind == REFUSED and statuses[status] or 'no receive'))
    end
    if code >= WAIT_CODES then
        wait:add_proto_expert_info(experts.unknown)
    end
    reserve(item, (kind == REFUSED or status == 0) and (kind == NO_RECEIVE or code == 0) and at(7, 1):uint() == 0)
    contradict(item, at(15, 1):bitfield(7, 1) == 0 and 'a record says something of its own PSN' or nil)
    contradict(item, (psn - base_psn) % 0x100000000 >= WINDOW and 'a PSN out of the window' or nil)
    show_frame(packet, 'judged_frame', recall(packet, 'judged', psn))
    return string.format(' %s=%.0f', kinds[kind] or 'unknown', psn)
end

local function dissect_answer(packet, tree, records)
    local at = packet.tvb(BTH, AXH)
    local axh = tree:add(at, 'Answer header')
    dissect_flow(packet, axh, at)
    axh:add(fields.tag, at(4, 8))
    axh:add(fields.cum, at(12, 4))
    for _, name in ipairs({'echo_path', 'more', 'answers_probe', 'echo_void', 'echo_tsn'}) do
        axh:add(fields[name], at(16, 4))
    end
    axh:add(fields.echo_delay, at(20, 4))
    axh:add(fields.ce_marked, at(24, 1))
    axh:add(fields.duplicates, at(25, 1))
    local count = axh:add(fields.record_count, at(26, 1))
    axh:add(fields.credits, at(28, 2))
    packet.cum, packet.verdicts = at(12, 4):uint(), ''
    reserve(axh, at(16, 4):bitfield(7, 1) == 0 and at(27, 1):uint() == 0 and at(30, 2):uint() == 0)
    if at(26, 1):uint() ~= packet.items then
        contradict(count, 'the length is that of another number of records')
    end
    if at(16, 4):bitfield(6, 1) == 0 then
        local key = at(16, 4):bitfield(0, 4) * 0x1000000 + at(17, 3):uint()
        show_frame(packet, 'echo_frame', recall(packet, 'sent', key))
    end
    for i = 0, records - 1 do
        local said = dissect_record(packet, tree, packet.tvb(BTH + AXH + i * RECORD, RECORD), packet.cum)
        packet.verdicts = packet.verdicts .. said
    end
end

local function dissect_hello(packet, tree)
    local at = packet.tvb(BTH, HXH)
    local hxh = tree:add(at, 'HELLO header')
    dissect_flow(packet, hxh, at)
    hxh:add(fields.greeting_version, at(4, 1))
    hxh:add(fields.source_qpn, at(6, 2))
    hxh:add(fields.zeroes, at(8, HXH - 8))
    reserve(hxh, at(5, 1):uint() == 0 and at(7, 1):uint() == 0 and at(8, HXH - 8):bytes() == ByteArray.new(string.rep('00', HXH - 8)))
    if not packet.pinfo.visited then
        packet.flow.hello = packet.flow.hello or packet.pinfo.number
    end
end

local function dissect_challenge(packet, tree)
    local at = packet.tvb(BTH, CXH)
    local cxh = tree:add(at, 'Challenge header')
    dissect_flow(packet, cxh, at)
    cxh:add(fields.tag, at(4, 8))
    cxh:add(fields.boot, at(12, 4))
    cxh:add(fields.greeting_version, at(16, 1))
    local reason, window = cxh:add(fields.reason, at(17, 1)), cxh:add(fields.window_log2, at(18, 1))
    cxh:add(fields.challenged_psn, at(20, 4))
    packet.reason = at(17, 1):uint()
    if not reasons[packet.reason] then
        reason:add_proto_expert_info(experts.unknown)
    elseif packet.reason == STALE then
        reason:add_proto_expert_info(experts.stale)
    end
    if at(18, 1):uint() ~= WINDOW_LOG2 then
        window:add_proto_expert_info(experts.unknown)
    end
    reserve(cxh, at(19, 1):uint() == 0 and at(24, 4):uint() == 0 and at(28, 4):uint() == 0 and
                 (packet.reason == STALE or at(20, 4):uint() == 0))
    if not packet.pinfo.visited and packet.reason ~= STALE then
        packet.flow.challenge = packet.flow.challenge or packet.pinfo.number
    end
end

local function dissect_path(packet, tree)
    local at = packet.tvb(BTH, PXH)
    local pxh = tree:add(at, names[packet.opcode] .. ' header')
    dissect_flow(packet, pxh, at)
    pxh:add(fields.tag, at(4, 8))
    pxh:add(fields.path_number, at(12, 8))
    pxh:add(fields.source_qpn, at(20, 2))
    pxh:add(fields.of_target, at(22, 1))
    pxh:add(fields.gid_count, at(22, 1))
    local version, count = pxh:add(fields.path_version, at(23, 1)), at(22, 1):uint() % 4
    if at(23, 1):bitfield(0, 4) ~= VERSION then
        version:add_proto_expert_info(experts.unknown, 'Unknown value: another version of SRD')
    end
    for i = 0, count - 1 do
        pxh:add(fields.gid, at(24 + 16 * i, 16))
    end
    local unused = (3 - count) * 16
    reserve(pxh, at(21, 1):uint() == 0 and at(22, 1):bitfield(1, 5) == 0 and at(23, 1):bitfield(4, 4) == 0 and
                 (unused == 0 or at(72 - unused, unused):bytes() == ByteArray.new(string.rep('00', unused))))
    if packet.opcode == PATH_CHALLENGE then
        note(packet, 'path', at(12, 8):bytes():tohex())
    else
        show_frame(packet, 'path_challenge_frame', recall(packet, 'path', at(12, 8):bytes():tohex()))
    end
end

local others = {
    [DATA] = dissect_data, [HELLO] = dissect_hello, [CHALLENGE] = dissect_challenge, [PATH_CHALLENGE] = dissect_path,
    [PATH_RESPONSE] = dissect_path,
}

-- The headers are there. Returns where they end.
local function dissect_headers(packet, tree, items)
    local opcode = packet.opcode
    local ends = header_bytes[opcode] + items * RECORD
    if opcode == ANSWER then
        dissect_answer(packet, tree, items)
    elseif others[opcode] then
        others[opcode](packet, tree)
    else
        packet.header = dissect_fxh(packet, tree)
        if opcode == PROBE then
            dissect_probe(packet, packet.header)
        else
            behind_fxh[opcode](packet, tree, packet.tvb(BTH + FXH, ends - BTH - FXH))
        end
    end
    return ends
end

-- ---- Packets -----------------------------------------------------------------------------------------------------

-- How many records there are, how many bytes payload and pad; and what is wrong with the length.
local function measure(packet, length)
    local more = length - header_bytes[packet.opcode] - ICRC
    local pad = packet.tvb(1, 1):bitfield(2, 2)
    if packet.opcode == ANSWER then
        local wrong = more % RECORD ~= 0 or more / RECORD > RECORDS_MAX
        return math.min(math.floor(more / RECORD), RECORDS_MAX), 0, (wrong and 'not whole records') or
               (pad ~= 0 and 'pad without payload') or nil
    end
    if not has_payload(packet.opcode) then
        return 0, more, (more ~= 0 and 'payload of a packet that has none') or (pad ~= 0 and 'pad without payload') or
               nil
    end
    return 0, more, (more % 4 ~= 0 or pad > more) and 'wrong pad' or
                    (more - pad > PAYLOAD_MAX and 'more than 4096 bytes of payload') or nil
end

local function dissect_payload(packet, tree, at, length)
    local tvb = packet.tvb
    local pad, captured = math.min(tvb(1, 1):bitfield(2, 2), length), tvb:captured_len()
    local function add(name, from, count)
        count = math.min(count, captured - from)
        if count > 0 then
            tree:add(fields[name], tvb(from, count))
        end
    end
    packet.payload_length = length - pad
    add('payload', at, length - pad)
    add('pad', at + length - pad, pad)
    if captured == tvb:reported_len() then
        tree:add(fields.icrc, tvb(captured - ICRC, ICRC))
    end
end

local function describe(packet)
    local text = names[packet.opcode] .. string.format(' FLOW=0x%08x', packet.flow_number)
    if packet.psn then
        text = text .. string.format(' PSN=%.0f', packet.psn)
    end
    if packet.back then
        text = text .. string.format(' BACK=%d', packet.back)
    end
    if packet.last and packet.opcode ~= PROBE then
        text = text .. string.format(' [%d/%d] 0x%04x>0x%04x', packet.index, packet.last, packet.source_qpn,
                                     packet.target_qpn)
    elseif packet.opcode == DATA then
        text = text .. string.format(' [%d]', packet.index)
    end
    for _, flag in ipairs({{'has_immediate', 'I'}, {'resent', 'R'}, {'unsolicited', 'U'}}) do
        text = text .. (packet[flag[1]] and ' ' .. flag[2] or '')
    end
    if packet.cum then
        text = text .. string.format(' CUM=%.0f', packet.cum) .. packet.verdicts
    end
    return text .. (packet.reason == STALE and ' stale' or '')
end

-- Is all there that the headers need? Else says what is missing, and shows the bytes.
local function is_whole(packet, tree)
    local tvb = packet.tvb
    local captured, needed = tvb:captured_len(), header_bytes[packet.opcode]
    if tvb:reported_len() < needed + ICRC then
        tree:add_proto_expert_info(experts.length, 'Wrong length: fewer bytes than the headers')
    elseif captured < needed then
        tree:add_proto_expert_info(experts.cut)
    else
        return true
    end
    tree:add(fields.payload, tvb(0, captured))
    return false
end

-- HELLO and CHALLENGE of another version may have other fields.
local function is_other_version(packet, tree)
    local at = packet.opcode == HELLO and BTH + 4 or packet.opcode == CHALLENGE and BTH + 16
    if not at or packet.tvb:captured_len() <= at or packet.tvb(at, 1):uint() == VERSION then
        return false
    end
    tree:add(fields.greeting_version, packet.tvb(at, 1)):add_proto_expert_info(
        experts.unknown, 'Unknown value: another version of SRD')
    return true
end

local function judge(packet)
    if is_request(packet.opcode) then
        return judge_request(packet)
    elseif packet.opcode == DATA then
        return packet.index >= PACKETS and 'a READ has at most 64 packets' or judge_chunk(packet) or
               (packet.payload_length == 0 or packet.payload_length > packet.chunk) and
               'the payload is longer than CHUNK, or there is none' or nil
    end
end

local before = DissectorTable.get('udp.port'):get_dissector(PORT)

-- Datagrams that are not ours. Malformed bytes raise an error there, after they were marked; it is not this script's.
local function hand_on(tvb, pinfo, root)
    local good, used = pcall(before.call, before, tvb, pinfo, root)
    return good and used or tvb:captured_len()
end

function protocol.dissector(tvb, pinfo, root)
    local opcode = tvb:captured_len() > 0 and tvb(0, 1):uint()
    if not names[opcode] then
        return before and hand_on(tvb, pinfo, root) or 0
    end
    local tree = root:add(protocol, tvb())
    local packet = {opcode = opcode, tvb = tvb, pinfo = pinfo, tree = tree}
    pinfo.cols.protocol = 'nonic SRD'
    pinfo.cols.info = names[opcode]
    if is_other_version(packet, tree) or not is_whole(packet, tree) then
        return tvb:captured_len()
    end
    local items, length, wrong = measure(packet, tvb:reported_len())
    packet.items = items
    if header_bytes[opcode] + items * RECORD > tvb:captured_len() then
        tree:add_proto_expert_info(experts.cut)
        items = math.floor((tvb:captured_len() - header_bytes[opcode]) / RECORD)
    end
    dissect_bth(packet, tree)
    local ends = dissect_headers(packet, tree, items)
    if wrong then
        tree:add_proto_expert_info(experts.length, 'Wrong length: ' .. wrong)
    end
    dissect_payload(packet, tree, ends, length)
    if packet.header then
        contradict(packet.header, not wrong and judge(packet) or nil)
    end
    if has_payload(opcode) then
        tree:add(fields.offset, packet.index * packet.chunk):set_generated()
    end
    show_frame(packet, 'hello_frame', opcode ~= HELLO and packet.flow.hello)
    show_frame(packet, 'challenge_frame', opcode ~= CHALLENGE and packet.flow.challenge)
    pinfo.cols.info = describe(packet)
    tree:append_text(', ' .. describe(packet))
    return tvb:captured_len()
end

DissectorTable.get('udp.port'):add(PORT, protocol)
