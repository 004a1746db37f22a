-- SPDX-License-Identifier: BSD-2-Clause
--
-- nonic_block - shows the packets of nonic's block transport in Wireshark and tshark (from 4.0 on).
--
-- docs/block-transport.md says what the fields mean. Opcodes 0xc4 to 0xce of UDP port 4791 are shown here; the rest
-- of the port goes to whoever had it before, which is Wireshark's own dissector of RoCEv2.
--
--     tshark -X lua_script:tools/wireshark/nonic_block.lua -r a.pcapng -Y nonic_block
--
-- Whether a packet's payload has the right length depends on the MTU. HELLO and WELCOME name it; for a capture that
-- begins later there is a preference (-o nonic_block.mtu:1024).

local PORT = 4791
local BTH, BXH, ANH, RECORD, HXH, GID, CXH, ICRC = 12, 16, 24, 16, 32, 16, 12, 4
local POSITIONS, WINDOW_MAX, PATHS_MAX, PAYLOAD_MAX = 64, 1024, 16, 4096
local LONGEST_HEADERS, PAYLOAD_STEP = 52, 64
local RECORDS_MAX, GIDS_MAX, RNR_CODES = 4, 3, 32
local VERSION = 1

local SEND, WRITE, READ, ATOMIC, DATA, ANSWER, PROBE, HELLO, WELCOME, CHALLENGE, RESPONSE =
    0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce
local RUN, REFUSED = 3, 4

local names = {
    [SEND] = 'SEND', [WRITE] = 'WRITE', [READ] = 'READ', [ATOMIC] = 'ATOMIC', [DATA] = 'DATA',
    [ANSWER] = 'ANSWER', [PROBE] = 'PROBE', [HELLO] = 'HELLO', [WELCOME] = 'WELCOME',
    [CHALLENGE] = 'CHALLENGE', [RESPONSE] = 'RESPONSE',
}
-- Bytes of headers, the BTH and what does not repeat.
local header_bytes = {
    [SEND] = BTH + BXH + 12, [WRITE] = BTH + BXH + 24, [READ] = BTH + BXH + 24, [ATOMIC] = BTH + BXH + 32,
    [DATA] = BTH + BXH, [ANSWER] = BTH + ANH, [PROBE] = BTH + BXH, [HELLO] = BTH + HXH, [WELCOME] = BTH + HXH,
    [CHALLENGE] = BTH + CXH, [RESPONSE] = BTH + CXH,
}
local states = {[0] = 'incomplete', [1] = 'no context', [2] = 'order', [3] = 'run', [4] = 'refused'}
local statuses = {[0] = 'none', [1] = 'RNR', [2] = 'invalid request', [3] = 'access', [4] = 'operational error'}
local kinds = {[0] = 'compare and swap', [1] = 'fetch and add', [2] = 'atomic WRITE'}
local mtu_codes = {[1] = '256 bytes', [2] = '512 bytes', [3] = '1024 bytes', [4] = '2048 bytes', [5] = '4096 bytes'}

local function has_payload(opcode) return opcode == SEND or opcode == WRITE or opcode == DATA end
local function is_greeting(opcode) return opcode == HELLO or opcode == WELCOME end
local function is_challenge(opcode) return opcode == CHALLENGE or opcode == RESPONSE end

-- ---- Fields ----------------------------------------------------------------------------------------------------

local protocol = Proto('nonic_block', 'nonic block transport')
local fields, list = {}, {}

-- The filter is nonic_block.NAME, and fields[NAME] the field.
local function field(kind, name, title, ...)
    fields[name] = ProtoField[kind]('nonic_block.' .. name, title, ...)
    list[#list + 1] = fields[name]
end

-- BTH.
field('uint8', 'opcode', 'Opcode', base.HEX, names)
field('bool', 'solicited', 'Solicited event', 8, nil, 0x80)
field('uint8', 'pad_count', 'Pad count', base.DEC, nil, 0x30)
field('uint8', 'tver', 'Transport header version', base.DEC, nil, 0x0f)
field('uint16', 'pkey', 'P_Key', base.HEX)
field('uint24', 'destination_qpn', 'Destination QPN', base.HEX)
field('bool', 'ack_request', 'An answer is wanted (A)', 8, nil, 0x80)
field('uint24', 'tsn', 'Transmission sequence number (TSN)', base.DEC)
field('uint24', 'answer_number', 'Number of the answer', base.DEC)
-- BXH.
field('uint32', 'session', 'Session', base.HEX)
field('uint32', 'bn', 'Block number (BN)', base.DEC)
field('uint32', 'index', 'Index of the block in its message', base.DEC)
field('uint32', 'position', 'Position', base.DEC, nil, 0xfc000000)
field('uint32', 'last_position', 'Last position of the block', base.DEC, nil, 0x03f00000)
field('bool', 'last_block', 'Last block of the message (M)', 32, nil, 0x00080000)
field('bool', 'early', 'May be placed early (D)', 32, nil, 0x00040000)
field('bool', 'has_immediate', 'The tag is immediate data (T)', 32, nil, 0x00020000)
field('bool', 'invalidates', 'The tag is a key to invalidate (K)', 32, nil, 0x00010000)
field('bool', 'resent', 'Sent again (R)', 32, nil, 0x00008000)
field('uint32', 'reserved', 'Reserved', base.HEX, nil, 0x00007000)
field('uint32', 'path', 'Path', base.DEC, nil, 0x00000f00)
field('uint32', 'round', 'Round', base.DEC, nil, 0x000000ff)
-- SXH, WXH, RXH, AXH.
field('uint64', 'va', 'Virtual address', base.HEX)
field('uint32', 'rkey', 'Remote key', base.HEX)
field('uint32', 'message_length', 'Message length', base.DEC)
field('uint32', 'rn', 'Receive number (RN)', base.DEC)
field('bytes', 'tag', 'Tag')
field('bytes', 'immediate', 'Immediate data')
field('uint32', 'invalidate_key', 'Key to invalidate', base.HEX)
field('uint64', 'wanted', 'Positions wanted', base.HEX)
field('uint32', 'kind', 'Kind of atomic', base.DEC, kinds)
field('uint64', 'swap_or_add', 'Swap, addend or value', base.HEX)
field('uint64', 'compare', 'Compare', base.HEX)
-- ANH and records.
field('uint32', 'base', 'Base', base.DEC)
field('uint32', 'receive_limit', 'Receive limit', base.DEC)
field('bool', 'more', 'More', 32, nil, 0x80000000)
field('bool', 'limit_void', 'Receive limit is void', 32, nil, 0x40000000)
field('bool', 'echo_void', 'Echo is void', 32, nil, 0x20000000)
field('bool', 'answers_probe', 'Answers a probe', 32, nil, 0x10000000)
field('uint32', 'echo_path', 'Path of the echo', base.DEC, nil, 0x0f000000)
field('uint32', 'echo_tsn', 'Echoed TSN', base.DEC, nil, 0x00ffffff)
field('uint32', 'echo_delay', 'Echo delay in ns', base.DEC)
field('uint8', 'status', 'Status', base.DEC, statuses)
field('uint8', 'rnr_code', 'RNR timer code', base.DEC)
field('uint8', 'ce_marked', 'CE-marked packets', base.DEC)
field('uint8', 'duplicates', 'Duplicates', base.DEC)
field('none', 'record', 'Record')
field('uint32', 'record.bn', 'Block number (BN)', base.DEC)
field('uint8', 'record.round', 'Last round seen', base.DEC)
field('uint8', 'record.state', 'State', base.DEC, states)
field('uint64', 'record.bitmap', 'Bitmap', base.HEX)
field('uint64', 'record.blocks', 'Blocks of which nothing is known', base.DEC)
-- HXH and GIDs.
field('uint8', 'version', 'Version', base.DEC)
field('uint8', 'gid_count', 'GIDs', base.DEC, nil, 0xf0)
field('bool', 'shared_receives', 'Shared receive queue', 8, nil, 0x01)
field('uint8', 'mtu', 'MTU', base.DEC, mtu_codes)
field('uint8', 'paths', 'Paths', base.DEC)
field('uint32', 'nonce', 'Nonce', base.HEX)
field('uint16', 'packet_payload', 'Payload of a packet (0: the MTU)', base.DEC)
field('bytes', 'zeroes', 'Zeroes, up to the length of the longest packet')
field('uint24', 'next_psn', 'Next PSN of the stream', base.DEC)
field('uint24', 'sender_qpn', 'QPN of the sender', base.HEX)
field('uint16', 'window', 'Window in blocks', base.DEC)
field('uint8', 'read_depth', 'READs and atomics at a time', base.DEC)
field('uint16', 'read_queue', 'READ blocks at a time', base.DEC)
field('ipv6', 'gid', 'GID')
-- CXH.
field('uint64', 'challenge', 'Number of the challenge', base.HEX)
-- Fields behind the headers.
field('bytes', 'payload', 'Payload')
field('bytes', 'pad', 'Pad')
field('uint32', 'icrc', 'Invariant CRC', base.HEX)
-- The session, as the capture shows it.
field('uint32', 'stream', 'Stream', base.DEC)
field('framenum', 'hello_frame', 'HELLO in', base.NONE, frametype.REQUEST)
field('framenum', 'welcome_frame', 'WELCOME in', base.NONE, frametype.RESPONSE)
field('framenum', 'echo_frame', 'Echoes the packet in', base.NONE, frametype.ACK)
field('uint64', 'offset', 'Offset of the payload in its message', base.DEC)
protocol.fields = list

local experts = {
    length = ProtoExpert.new('nonic_block.expert.length', 'Wrong length', expert.group.MALFORMED,
                             expert.severity.ERROR),
    reserved = ProtoExpert.new('nonic_block.expert.reserved', 'Reserved bits are not 0', expert.group.MALFORMED,
                               expert.severity.ERROR),
    unknown = ProtoExpert.new('nonic_block.expert.unknown', 'Unknown value', expert.group.MALFORMED,
                              expert.severity.ERROR),
    contradiction = ProtoExpert.new('nonic_block.expert.contradiction', 'The packet contradicts itself',
                                    expert.group.PROTOCOL, expert.severity.ERROR),
    cut = ProtoExpert.new('nonic_block.expert.cut', 'The capture has a part of the packet only',
                          expert.group.UNDECODED, expert.severity.NOTE),
    status = ProtoExpert.new('nonic_block.expert.status', 'The responder refuses a message',
                             expert.group.RESPONSE_CODE, expert.severity.WARN),
    resent = ProtoExpert.new('nonic_block.expert.resent', 'Sent again', expert.group.SEQUENCE,
                             expert.severity.NOTE),
}
protocol.experts = {
    experts.length, experts.reserved, experts.unknown, experts.contradiction, experts.cut, experts.status,
    experts.resent,
}

protocol.prefs.mtu = Pref.uint('MTU of streams whose HELLO is not in the capture', 0, '0: not known')

-- ---- Streams ---------------------------------------------------------------------------------------------------

local streams, stream_count, echoes

function protocol.init()
    streams, stream_count, echoes = {}, 0, {}
end

-- A session is one stream. It is found by its number alone, because its packets have several addresses.
local function stream_of(session)
    local stream = streams[session]
    if not stream then
        stream = {number = stream_count, sent = {}}
        stream_count = stream_count + 1
        streams[session] = stream
    end
    return stream
end

local function show_stream(packet)
    local stream, tree = packet.stream, packet.tree
    tree:add(fields.stream, stream.number):set_generated()
    if stream.hello and packet.opcode ~= HELLO then
        tree:add(fields.hello_frame, stream.hello):set_generated()
    end
    if stream.welcome and packet.opcode ~= WELCOME then
        tree:add(fields.welcome_frame, stream.welcome):set_generated()
    end
end

-- Which packet an answer echoes: the requester's last one with this path and TSN.
local function note_sent(packet)
    if not packet.pinfo.visited and packet.opcode ~= DATA then
        packet.stream.sent[packet.path * 0x1000000 + packet.tsn] = packet.pinfo.number
    end
end

local function show_echo(packet, path, tsn)
    local number = packet.pinfo.number
    if not packet.pinfo.visited then
        echoes[number] = packet.stream.sent[path * 0x1000000 + tsn]
    end
    if echoes[number] then
        packet.tree:add(fields.echo_frame, echoes[number]):set_generated()
    end
end

-- ---- Contradictions, as wire/block_judge.c judges them -----------------------------------------------------------

-- How far `to` is ahead of `from`, in numbers of 32 bits that wrap.
local function distance(from, to)
    local ahead = (to - from) % 0x100000000
    return ahead < 0x80000000 and ahead or ahead - 0x100000000
end

local function is_last(packet)
    return packet.last_block and packet.position == packet.last_position
end

-- Position, last position, M and index against the message's length.
local function judge_place(packet, mtu)
    if packet.position > packet.last_position then
        return 'the position lies behind the last one'
    end
    if not packet.last_block and packet.last_position ~= POSITIONS - 1 then
        return 'a block that is not the last one has 64 positions'
    end
    if not mtu or not packet.message_length then
        return nil
    end
    local begins = packet.index * POSITIONS * mtu
    local last_begins = begins + packet.last_position * mtu
    if packet.index ~= 0 and begins >= packet.message_length then
        return 'the message has no block of this index'
    end
    local goes_on = last_begins + mtu < packet.message_length
    if packet.last_block == goes_on or (packet.last_block and last_begins >= packet.message_length and
                                        last_begins ~= 0) then
        return 'last position and M do not follow from the message length'
    end
end

local function judge_payload(packet, mtu)
    if not mtu then
        return nil
    end
    local offset = (packet.index * POSITIONS + packet.position) * mtu
    local whole = packet.index == 0 and packet.last_position == 0
    local last, length = is_last(packet), packet.payload_length
    if packet.message_length then
        if length ~= (last and packet.message_length - offset or mtu) then
            return 'the payload is not as long as this place of the message'
        end
    elseif length > mtu or (not last and length ~= mtu) or (length == 0 and not whole) then
        return 'the payload is not as long as this place of the message'
    end
end

local function judge_tag(packet)
    local tagged = packet.has_immediate or packet.invalidates
    if tagged and not is_last(packet) then
        return 'T or K not in the last packet of the message'
    end
    if not tagged and packet.tag ~= 0 then
        return 'a tag with neither T nor K'
    end
    if packet.invalidates and (packet.has_immediate or packet.opcode == WRITE) then
        return 'K with T, or in a WRITE'
    end
end

local function judge_wanted(packet)
    local last = packet.last_position
    local low_mask = last >= 31 and 0xffffffff or 2 ^ (last + 1) - 1
    local high_mask = last < 32 and 0 or 2 ^ (last - 31) - 1
    if packet.wanted_low == 0 and packet.wanted_high == 0 then
        return 'no position is wanted'
    end
    if bit32.band(packet.wanted_low, bit32.bnot(low_mask)) ~= 0 or
       bit32.band(packet.wanted_high, bit32.bnot(high_mask)) ~= 0 then
        return 'a position is wanted that the block does not have'
    end
end

local function judge_single(packet)
    if packet.index ~= 0 or packet.position ~= 0 or packet.last_position ~= 0 then
        return 'index and positions are 0 here'
    end
end

-- The fault of a packet that has a BXH; nil: none.
local function judge(packet, mtu)
    local opcode = packet.opcode
    if opcode == SEND or opcode == WRITE then
        return judge_place(packet, mtu) or judge_payload(packet, mtu) or judge_tag(packet)
    end
    if packet.early or packet.has_immediate or packet.invalidates then
        return 'D, T and K belong to SEND and WRITE'
    end
    if opcode == DATA then
        return judge_place(packet, mtu) or judge_payload(packet, mtu)
    elseif opcode == READ then
        return packet.position ~= 0 and 'the position of a READ is 0' or judge_place(packet, mtu) or
               judge_wanted(packet)
    elseif opcode == ATOMIC then
        return judge_single(packet) or (not packet.last_block and 'an atomic is one block') or
               (not kinds[packet.kind] and 'unknown kind of atomic') or nil
    end
    local says = packet.last_block or packet.resent
    return judge_single(packet) or (says and 'a PROBE has neither M nor R') or nil
end

-- One record behind another: in BN order, apart, and inside the window.
local function judge_record(record, before, answer_base)
    local ahead = distance(answer_base, record.bn)
    if ahead < 0 and (record.state ~= REFUSED or ahead < -WINDOW_MAX) then
        return 'the record lies before base'
    end
    if ahead >= WINDOW_MAX or (record.state == RUN and record.blocks > WINDOW_MAX - ahead) then
        return 'the record lies beyond the window'
    end
    if record.state == RUN and record.blocks == 0 then
        return 'a run of no blocks'
    end
    if before and distance(before.bn + (before.state == RUN and before.blocks or 1), record.bn) < 0 then
        return 'records overlap, or are not in order'
    end
end

local function contradict(packet, item, what)
    if what then
        item:add_proto_expert_info(experts.contradiction, 'The packet contradicts itself: ' .. what)
    end
end

-- ---- Headers ---------------------------------------------------------------------------------------------------

local function dissect_bth(packet, tree)
    local tvb = packet.tvb
    local bth = tree:add(tvb(0, BTH), 'Base transport header')
    bth:add(fields.opcode, tvb(0, 1))
    for _, name in ipairs({'solicited', 'pad_count', 'tver'}) do
        bth:add(fields[name], tvb(1, 1))
    end
    local pkey = bth:add(fields.pkey, tvb(2, 2))
    bth:add(fields.destination_qpn, tvb(5, 3))
    bth:add(fields.ack_request, tvb(8, 1))
    bth:add(packet.opcode == ANSWER and fields.answer_number or fields.tsn, tvb(9, 3))
    packet.tsn = tvb(9, 3):uint()
    if tvb(2, 2):uint() ~= 0xffff or tvb(1, 1):bitfield(4, 4) ~= 0 then
        pkey:add_proto_expert_info(experts.unknown, 'P_Key is not 0xffff, or TVer is not 0')
    end
    if tvb(1, 1):bitfield(1, 1) ~= 0 or tvb(4, 1):uint() ~= 0 or tvb(8, 1):bitfield(1, 7) ~= 0 then
        bth:add_proto_expert_info(experts.reserved)
    end
end

local function dissect_bxh(packet, tree)
    local tvb = packet.tvb
    local word, at = tvb(BTH + 12, 4), tvb(BTH, BXH)
    local bxh = tree:add(at, 'Block header')
    bxh:add(fields.session, at(0, 4))
    bxh:add(fields.bn, at(4, 4))
    bxh:add(fields.index, at(8, 4))
    for _, name in ipairs({'position', 'last_position', 'last_block', 'early', 'has_immediate', 'invalidates'}) do
        bxh:add(fields[name], word)
    end
    local resent, reserved = bxh:add(fields.resent, word), bxh:add(fields.reserved, word)
    bxh:add(fields.path, word)
    bxh:add(fields.round, word)
    packet.bn, packet.index = at(4, 4):uint(), at(8, 4):uint()
    packet.position, packet.last_position = word:bitfield(0, 6), word:bitfield(6, 6)
    packet.last_block = word:bitfield(12, 1) == 1
    packet.early = word:bitfield(13, 1) == 1
    packet.has_immediate = word:bitfield(14, 1) == 1
    packet.invalidates = word:bitfield(15, 1) == 1
    packet.resent = word:bitfield(16, 1) == 1
    packet.path, packet.round = word:bitfield(20, 4), word:bitfield(24, 8)
    if packet.resent then
        resent:add_proto_expert_info(experts.resent)
    end
    if word:bitfield(17, 3) ~= 0 then
        reserved:add_proto_expert_info(experts.reserved)
    end
    packet.stream = stream_of(at(0, 4):uint())
    note_sent(packet)
    return bxh
end

-- Message length, RN and tag stand at the end of SXH and of WXH.
local function dissect_message(packet, tree, at)
    tree:add(fields.message_length, at(0, 4))
    tree:add(fields.rn, at(4, 4))
    local tag = tree:add(fields.tag, at(8, 4))
    if packet.has_immediate then
        tag:add(fields.immediate, at(8, 4))
    elseif packet.invalidates then
        tag:add(fields.invalidate_key, at(8, 4))
    end
    packet.message_length, packet.tag = at(0, 4):uint(), at(8, 4):uint()
end

local function dissect_target(tree, at)
    tree:add(fields.va, at(0, 8))
    tree:add(fields.rkey, at(8, 4))
end

local behind_bxh = {
    [SEND] = function(packet, tree, at)
        dissect_message(packet, tree:add(at, 'SEND header'), at)
    end,
    [WRITE] = function(packet, tree, at)
        local wxh = tree:add(at, 'WRITE header')
        dissect_target(wxh, at)
        dissect_message(packet, wxh, at(12, 12))
    end,
    [READ] = function(packet, tree, at)
        local rxh = tree:add(at, 'READ header')
        dissect_target(rxh, at)
        rxh:add(fields.message_length, at(12, 4))
        rxh:add(fields.wanted, at(16, 8))
        packet.message_length = at(12, 4):uint()
        packet.wanted_high, packet.wanted_low = at(16, 4):uint(), at(20, 4):uint()
    end,
    [ATOMIC] = function(packet, tree, at)
        local axh = tree:add(at, 'Atomic header')
        dissect_target(axh, at)
        axh:add(fields.kind, at(12, 4))
        axh:add(fields.swap_or_add, at(16, 8))
        axh:add(fields.compare, at(24, 8))
        packet.kind = at(12, 4):uint()
    end,
}

local function dissect_record(tree, at, before, answer_base, packet)
    local record = {
        bn = at(0, 4):uint(), state = at(5, 1):uint(), blocks = at(8, 4):uint() * 0x100000000 + at(12, 4):uint(),
    }
    local item = tree:add(fields.record, at)
    item:append_text(string.format(': BN %.0f, %s', record.bn, states[record.state] or 'unknown state'))
    item:add(fields['record.bn'], at(0, 4))
    item:add(fields['record.round'], at(4, 1))
    local state = item:add(fields['record.state'], at(5, 1))
    item:add(record.state == RUN and fields['record.blocks'] or fields['record.bitmap'], at(8, 8))
    if not states[record.state] then
        state:add_proto_expert_info(experts.unknown)
    end
    if at(6, 2):uint() ~= 0 then
        item:add_proto_expert_info(experts.reserved)
    end
    contradict(packet, item, judge_record(record, before, answer_base))
    return record
end

local function dissect_answer(packet, tree, records)
    local at = packet.tvb(BTH, ANH)
    local anh = tree:add(at, 'Answer header')
    anh:add(fields.session, at(0, 4))
    anh:add(fields.base, at(4, 4))
    anh:add(fields.receive_limit, at(8, 4))
    for _, name in ipairs({'more', 'limit_void', 'echo_void', 'answers_probe', 'echo_path', 'echo_tsn'}) do
        anh:add(fields[name], at(12, 4))
    end
    anh:add(fields.echo_delay, at(16, 4))
    local status, code = anh:add(fields.status, at(20, 1)), anh:add(fields.rnr_code, at(21, 1))
    anh:add(fields.ce_marked, at(22, 1))
    anh:add(fields.duplicates, at(23, 1))
    packet.base, packet.status = at(4, 4):uint(), at(20, 1):uint()
    if not statuses[packet.status] then
        status:add_proto_expert_info(experts.unknown)
    elseif packet.status ~= 0 then
        status:add_proto_expert_info(experts.status, 'The responder refuses a message: ' .. statuses[packet.status])
    end
    if at(21, 1):uint() >= RNR_CODES then
        code:add_proto_expert_info(experts.unknown)
    end
    packet.stream = stream_of(at(0, 4):uint())
    if at(12, 4):bitfield(2, 1) == 0 then
        show_echo(packet, at(12, 4):bitfield(4, 4), at(13, 3):uint())
    end
    local record
    for i = 0, records - 1 do
        record = dissect_record(tree, packet.tvb(BTH + ANH + i * RECORD, RECORD), record, packet.base, packet)
    end
end

local function note_greeting(packet, mtu_code, payload)
    local stream = packet.stream
    if packet.pinfo.visited then
        return
    end
    if packet.opcode == HELLO then
        stream.hello = stream.hello or packet.pinfo.number
    else
        stream.welcome = stream.welcome or packet.pinfo.number
    end
    if mtu_codes[mtu_code] then
        stream.mtu = payload ~= 0 and payload or 128 * 2 ^ mtu_code
    end
end

-- `gids` of them were captured.
local function dissect_hello(packet, tree, gids)
    local at = packet.tvb(BTH, HXH)
    local hxh = tree:add(at, packet.opcode == HELLO and 'HELLO header' or 'WELCOME header')
    hxh:add(fields.version, at(0, 1))
    local count = hxh:add(fields.gid_count, at(1, 1))
    hxh:add(fields.shared_receives, at(1, 1))
    local mtu, paths = hxh:add(fields.mtu, at(2, 1)), hxh:add(fields.paths, at(3, 1))
    hxh:add(fields.nonce, at(4, 4))
    hxh:add(fields.read_depth, at(8, 1))
    hxh:add(fields.next_psn, at(9, 3))
    hxh:add(fields.sender_qpn, at(13, 3))
    local window = hxh:add(fields.window, at(16, 2))
    hxh:add(fields.read_queue, at(18, 2))
    local payload = at(20, 2):uint()
    local carried = hxh:add(fields.packet_payload, at(20, 2))
    if at(1, 1):bitfield(4, 3) ~= 0 or at(12, 1):uint() ~= 0 or at(22, 2):uint() ~= 0 or
       at(24, 4):uint() ~= 0 or at(28, 4):uint() ~= 0 then
        hxh:add_proto_expert_info(experts.reserved)
    end
    if at(1, 1):bitfield(0, 4) ~= packet.items then
        contradict(packet, count, 'the length is that of another number of GIDs')
    end
    if not mtu_codes[at(2, 1):uint()] then
        contradict(packet, mtu, 'no such MTU')
    end
    if at(3, 1):uint() < 1 or at(3, 1):uint() > PATHS_MAX then
        contradict(packet, paths, '1 to 16 paths')
    end
    if packet.opcode == WELCOME and at(16, 2):uint() == 0 then
        window:append_text(' (refused: the stream stays RC)')
    elseif at(16, 2):uint() < 1 or at(16, 2):uint() > WINDOW_MAX then
        contradict(packet, window, 'a window has 1 to 1024 blocks')
    end
    for i = 0, gids - 1 do
        hxh:add(fields.gid, packet.tvb(BTH + HXH + i * GID, GID))
    end
    local mtu_bytes = 128 * 2 ^ at(2, 1):uint()
    if payload ~= 0 and (payload <= mtu_bytes or payload >= math.min(2 * mtu_bytes, PAYLOAD_MAX) or
                         payload % PAYLOAD_STEP ~= 0 or packet.items ~= 0) then
        contradict(packet, carried, 'a payload between this MTU and the next one, in steps of 64 bytes, without GIDs')
    elseif payload ~= 0 then
        local captured = packet.tvb:captured_len()
        hxh:add(fields.zeroes, packet.tvb(BTH + HXH, math.min(payload + LONGEST_HEADERS, captured) - BTH - HXH))
    end
    packet.stream = stream_of(at(4, 4):uint())
    note_greeting(packet, at(2, 1):uint(), payload)
end

local function dissect_challenge(packet, tree)
    local at = packet.tvb(BTH, CXH)
    local cxh = tree:add(at, 'Challenge header')
    cxh:add(fields.session, at(0, 4))
    cxh:add(fields.challenge, at(4, 8))
    packet.stream = stream_of(at(0, 4):uint())
end

-- ---- Packets ---------------------------------------------------------------------------------------------------

-- How many records or GIDs there are, and how many bytes payload and pad; and what is wrong with the length.
local function measure(packet, length)
    local more = length - header_bytes[packet.opcode] - ICRC
    local pad = packet.tvb(1, 1):bitfield(2, 2)
    local items_max = packet.opcode == ANSWER and RECORDS_MAX or is_greeting(packet.opcode) and GIDS_MAX
    local payload = is_greeting(packet.opcode) and packet.tvb(BTH + 20, 2):uint() or 0
    if payload ~= 0 and packet.tvb(BTH + 1, 1):bitfield(0, 4) == 0 then
        local zeroes = payload + LONGEST_HEADERS - BTH - HXH
        return 0, 0, (more ~= zeroes and 'not that of the longest packet') or (pad ~= 0 and 'pad without payload') or nil
    end
    if items_max then
        local wrong = more % RECORD ~= 0 or more / RECORD > items_max
        return math.min(math.floor(more / RECORD), items_max), 0, (wrong and 'not whole records or GIDs') or
               (pad ~= 0 and 'pad without payload') or nil
    end
    if not has_payload(packet.opcode) then
        return 0, more, (more ~= 0 and 'payload of a packet that has none') or (pad ~= 0 and 'pad without payload') or
               nil
    end
    local wrong = (more % 4 ~= 0 or pad > more) and 'wrong pad' or
                  (more - pad > PAYLOAD_MAX and 'more than 4096 bytes of payload') or nil
    return 0, more, wrong
end

local function dissect_payload(packet, tree, at, length)
    local tvb = packet.tvb
    local pad = math.min(tvb(1, 1):bitfield(2, 2), length)
    local captured = tvb:captured_len()
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

local function mtu_of(packet)
    local mtu = packet.stream.mtu or protocol.prefs.mtu
    return mtu > 0 and mtu or nil
end

local function describe(packet)
    local opcode = packet.opcode
    local text = names[opcode]
    if packet.bn then
        text = text .. string.format(' BN=%.0f', packet.bn)
        if opcode ~= PROBE then
            text = text .. string.format(' index=%.0f [%d/%d]', packet.index, packet.position, packet.last_position)
        end
        for _, flag in ipairs({{'last_block', 'M'}, {'early', 'D'}, {'has_immediate', 'T'}, {'invalidates', 'K'},
                               {'resent', 'R'}}) do
            text = text .. (packet[flag[1]] and ' ' .. flag[2] or '')
        end
    end
    if packet.base then
        text = text .. string.format(' base=%.0f', packet.base)
        if packet.status ~= 0 then
            text = text .. ' status=' .. (statuses[packet.status] or packet.status)
        end
    end
    return text
end

-- The headers are there. Returns where they end.
local function dissect_headers(packet, tree, items)
    local opcode = packet.opcode
    local ends = header_bytes[opcode] + items * RECORD
    if opcode == ANSWER then
        dissect_answer(packet, tree, items)
    elseif is_greeting(opcode) then
        dissect_hello(packet, tree, items)
    elseif is_challenge(opcode) then
        dissect_challenge(packet, tree)
    else
        packet.bxh = dissect_bxh(packet, tree)
        local dissect = behind_bxh[opcode]
        if dissect then
            dissect(packet, tree, packet.tvb(BTH + BXH, ends - BTH - BXH))
        end
    end
    return ends
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

-- Another version may have other lengths.
local function is_other_version(packet, tree)
    local tvb = packet.tvb
    if not is_greeting(packet.opcode) or tvb:captured_len() <= BTH or tvb(BTH, 1):uint() == VERSION then
        return false
    end
    tree:add(fields.version, tvb(BTH, 1)):add_proto_expert_info(experts.unknown, 'Another version of the transport')
    return true
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
    pinfo.cols.protocol = 'nonic block'
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
    show_stream(packet)
    if packet.bxh then
        local mtu = mtu_of(packet)
        contradict(packet, packet.bxh, not wrong and judge(packet, mtu) or nil)
        if mtu and has_payload(opcode) then
            local offset = (packet.index * POSITIONS + packet.position) * mtu
            tree:add(fields.offset, UInt64(offset % 0x100000000, math.floor(offset / 0x100000000))):set_generated()
        end
    end
    pinfo.cols.info = describe(packet)
    tree:append_text(', ' .. describe(packet))
    return tvb:captured_len()
end

DissectorTable.get('udp.port'):add(PORT, protocol)
