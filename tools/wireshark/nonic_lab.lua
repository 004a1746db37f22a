-- SPDX-License-Identifier: BSD-2-Clause
--
-- nonic_lab - shows the packets of the laboratory's machines in Wireshark and tshark (from 4.0 on): those of FORTH's NIC
-- (USER0), of ExaNeSt's RDMA engine (USER1) and of Lant's network interface (USER3; to Wireshark USER2 is something else).
-- The packets of csRNA and FERoCE are RoCEv2, which Wireshark knows.
--
-- wire/forth.h, wire/exanest.h and wire/lant.h say what the fields mean.
--
--     nonic lab run exanest/reads --pcap a.pcapng
--     tshark -X lua_script:tools/wireshark/nonic_lab.lua -r a.pcapng -Y exanest.type==1

-- ---- Fields of 64-bit words ----------------------------------------------------------------------------------------

-- A machine's protocol. Its fields are parts of words; `little`: a word's lowest byte comes first.
local function machine(name, title, little)
    return {name = name, little = little, protocol = Proto(name, title), fields = {}, list = {}, parts = {}}
end

local function add_field(self, name, field)
    self.fields[name] = field
    self.list[#self.list + 1] = field
end

local yes_no = {[0] = 'no', [1] = 'yes'}

-- Bits `at` and up of a word.
local function part(self, name, title, at, bits, display, names)
    local kind = bits <= 32 and 'uint32' or 'uint64'
    add_field(self, name, ProtoField[kind](self.name .. '.' .. name, title, display or base.DEC,
                                           bits == 1 and yes_no or names))
    self.parts[name] = {at = at, mask = UInt64(1):lshift(bits) - UInt64(1), is_long = bits > 32}
end

local function bytes_field(self, name, title)
    add_field(self, name, ProtoField.bytes(self.name .. '.' .. name, title))
end

local function expert_of(self, name, title, group)
    return ProtoExpert.new(self.name .. '.expert.' .. name, title, group, expert.severity.ERROR)
end

-- All fields are known.
local function register(self)
    self.protocol.fields = self.list
    self.wrong_length = expert_of(self, 'length', 'Wrong length', expert.group.MALFORMED)
    self.wrong_code = expert_of(self, 'code', 'Wrong error code', expert.group.CHECKSUM)
    self.protocol.experts = {self.wrong_length, self.wrong_code}
end

-- Shows parts of a word, and returns their values.
local function show(self, tree, range, names)
    local word, values = self.little and range:le_uint64() or range:uint64(), {}
    for _, name in ipairs(names) do
        local found = self.parts[name]
        local value = word:rshift(found.at):band(found.mask)
        values[name] = value:tonumber()
        tree:add(self.fields[name], range, found.is_long and value or values[name])
    end
    return values
end

local function is_short(self, tvb, tree, bytes, what)
    if tvb:captured_len() >= bytes then
        return false
    end
    tree:add_proto_expert_info(self.wrong_length, 'Wrong length: ' .. what)
    return true
end

local function begin(self, tvb, pinfo, root, title)
    pinfo.cols.protocol = title
    return root:add(self.protocol, tvb())
end

local function tell(tree, pinfo, text)
    pinfo.cols.info = text
    tree:append_text(', ' .. text)
end

-- ---- Error codes ---------------------------------------------------------------------------------------------------

-- A CRC over `length` bytes from `from` on, highest bit first, `bits` wide.
local function crc_of(tvb, from, length, bits, polynomial, start)
    local crc, top, mask = start, 2 ^ (bits - 1), 2 ^ bits
    for i = from, from + length - 1 do
        crc = bit.bxor(crc, bit.lshift(tvb(i, 1):uint(), bits - 8)) % mask
        for _ = 1, 8 do
            local carries = crc >= top
            crc = (crc * 2) % mask
            crc = carries and bit.bxor(crc, polynomial) % mask or crc
        end
    end
    return crc
end

local function judge_code(self, item, name, found, expected)
    if found ~= expected then
        item:add_proto_expert_info(self.wrong_code, string.format('Wrong %s: %x is expected', name, expected))
    end
end

-- ---- FORTH: a header, its CRC, QWords of payload, their CRC ----------------------------------------------------------

local forth = machine('forth', "FORTH's NIC of 2006", false)
part(forth, 'is_credit', 'A credit', 63, 1)
part(forth, 'node', 'Node', 56, 7)
part(forth, 'remote_notification', 'Notification there', 54, 1)
part(forth, 'local_notification', 'Notification here', 53, 1)
part(forth, 'remote_interrupt', 'Interrupt there', 52, 1)
part(forth, 'words', 'QWords of payload', 32, 10)
part(forth, 'destination', 'PCI address there', 0, 32, base.HEX)
add_field(forth, 'header_crc', ProtoField.uint16('forth.header_crc', 'CRC of the header', base.HEX))
bytes_field(forth, 'payload', 'Payload')
add_field(forth, 'body_crc', ProtoField.uint32('forth.body_crc', 'CRC of the payload', base.HEX))
register(forth)

function forth.protocol.dissector(tvb, pinfo, root)
    local tree = begin(forth, tvb, pinfo, root, 'FORTH')
    if is_short(forth, tvb, tree, 16, 'fewer bytes than a header and two CRCs') then
        return tvb:captured_len()
    end
    local header = tree:add(tvb(0, 8), 'Header')
    local values = show(forth, header, tvb(0, 8), {'is_credit', 'node', 'remote_notification', 'local_notification',
                                                   'remote_interrupt', 'words', 'destination'})
    judge_code(forth, tree:add(forth.fields.header_crc, tvb(8, 2)), 'CRC of the header', tvb(8, 2):uint(),
               crc_of(tvb, 0, 8, 16, 0x1021, 0xffff))
    local payload = tvb:captured_len() - 16
    if payload > 0 then
        tree:add(forth.fields.payload, tvb(12, payload))
    end
    if payload ~= 8 * values.words then
        header:add_proto_expert_info(forth.wrong_length, 'Wrong length: the header says another one')
    end
    judge_code(forth, tree:add(forth.fields.body_crc, tvb(12 + payload, 4)), 'CRC of the payload',
               tvb(12 + payload, 4):uint(), crc_of(tvb, 12, payload, 32, 0x04c11db7, 0xffffffff))
    tell(tree, pinfo, string.format('%d bytes to node %d, 0x%08x%s%s%s', payload, values.node, values.destination,
                                    values.remote_notification == 1 and ', notification there' or '',
                                    values.local_notification == 1 and ', notification here' or '',
                                    values.remote_interrupt == 1 and ', interrupt' or ''))
    return tvb:captured_len()
end

-- ---- ExaNeSt: a header of 16 bytes, words of payload, a footer ---------------------------------------------------------

local exanest = machine('exanest', "ExaNeSt's RDMA engine", true)
local exanest_types = {
    [1] = 'write', [2] = 'read request', [3] = 'control', [4] = 'notification', [5] = 'zDMA read', [6] = 'zDMA write',
    [7] = 'zDMA response', [8] = 'acknowledgement', [9] = 'release', [10] = 'flow rate',
}
local exanest_statuses = {
    [0] = 'ACK', [1] = 'NACK: page fault', [2] = 'NACK: no context', [3] = 'NACK: CRC', [4] = 'NACK: decode error',
    [5] = 'NACK: mailbox full',
}
part(exanest, 'va', 'Virtual address', 0, 42, base.HEX)
part(exanest, 'fpga', 'FPGA', 42, 2)
part(exanest, 'z', 'Z', 44, 6)
part(exanest, 'y', 'Y', 50, 7)
part(exanest, 'x', 'X', 57, 7)
part(exanest, 'pdid', 'Protection domain (PDID)', 0, 16)
part(exanest, 'type', 'Type', 16, 5, base.DEC, exanest_types)
part(exanest, 'bytes', 'Bytes of payload', 21, 9)
part(exanest, 'has_footer', 'With a footer', 30, 1)
part(exanest, 'priority', 'Priority', 31, 1)
part(exanest, 'channel', 'Virtual channel', 32, 2)
part(exanest, 'aux', 'Sequence, or status and what for', 34, 14)
part(exanest, 'edc', 'Error code of the header (EDC)', 48, 16, base.HEX)
bytes_field(exanest, 'payload', 'Payload, with pad')
part(exanest, 'payload_crc', 'CRC of the payload', 0, 32, base.HEX)
part(exanest, 'tid', 'Transaction (TID)', 32, 10)
part(exanest, 'source_fpga', "Sender's FPGA", 42, 2)
part(exanest, 'source_z', "Sender's Z", 44, 6)
part(exanest, 'source_y', "Sender's Y", 50, 7)
part(exanest, 'source_x', "Sender's X", 57, 7)
part(exanest, 'sequence', 'Sequence', 0, 14)
part(exanest, 'first', 'The first one', 14, 1)
part(exanest, 'last', 'The last one', 15, 1)
part(exanest, 'notify', 'A notification is wanted', 16, 1)
part(exanest, 'path', 'Path', 17, 5)
part(exanest, 'status', 'Status', 22, 4, base.DEC, exanest_statuses)
part(exanest, 'crc8', 'CRC-8 of the footer', 56, 8, base.HEX)
register(exanest)

local function exanest_footer(tvb, tree, at)
    local footer = tree:add(tvb(at, 16), 'Footer')
    local values = show(exanest, footer, tvb(at, 8), {'payload_crc', 'tid', 'source_x', 'source_y', 'source_z',
                                                      'source_fpga'})
    for name, value in pairs(show(exanest, footer, tvb(at + 8, 8), {'sequence', 'first', 'last', 'notify', 'path',
                                                                   'status', 'crc8'})) do
        values[name] = value
    end
    judge_code(exanest, footer, 'CRC-8', values.crc8, crc_of(tvb, at + 4, 11, 8, 0x07, 0))
    return string.format(', TID %d, sequence %d from (%d,%d,%d) F%d%s%s', values.tid, values.sequence, values.source_x,
                         values.source_y, values.source_z, values.source_fpga + 1, values.first == 1 and ', first' or '',
                         values.last == 1 and ', last' or '')
end

function exanest.protocol.dissector(tvb, pinfo, root)
    local tree = begin(exanest, tvb, pinfo, root, 'ExaNeSt')
    if is_short(exanest, tvb, tree, 16, 'fewer bytes than a header') then
        return tvb:captured_len()
    end
    local header = tree:add(tvb(0, 16), 'Header')
    local target = show(exanest, header, tvb(0, 8), {'va', 'x', 'y', 'z', 'fpga'})
    local values = show(exanest, header, tvb(8, 8), {'pdid', 'type', 'bytes', 'has_footer', 'priority', 'channel',
                                                     'aux', 'edc'})
    judge_code(exanest, header, 'EDC', values.edc, crc_of(tvb, 0, 14, 16, 0x1021, 0xffff))
    local text = string.format('%s to (%d,%d,%d) F%d', exanest_types[values.type] or 'unknown type', target.x, target.y,
                               target.z, target.fpga + 1)
    local words = values.bytes == 0 and 0 or math.floor((target.va % 16 + values.bytes + 15) / 16)
    if tvb:captured_len() ~= 16 * (1 + words + values.has_footer) then
        header:add_proto_expert_info(exanest.wrong_length, 'Wrong length: the header says another one')
        return tvb:captured_len()
    end
    if words > 0 then
        tree:add(exanest.fields.payload, tvb(16, 16 * words))
        text = text .. string.format(', %d bytes', values.bytes)
    end
    if values.has_footer == 1 then
        text = text .. exanest_footer(tvb, tree, 16 + 16 * words)
    else
        text = text .. string.format(', %s, for %d', exanest_statuses[math.floor(values.aux / 1024)] or 'unknown status',
                                     values.aux % 1024)
    end
    tell(tree, pinfo, text)
    return tvb:captured_len()
end

-- ---- Lant: two or three flits of header, payload, two of footer ---------------------------------------------------------

local lant = machine('lant', "Lant's network interface", false)
local lant_types = {
    [1] = 'load', [2] = 'store', [3] = 'answer to a load', [4] = 'answer to a store', [5] = 'RDMA write',
    [6] = 'RDMA write, registers', [7] = 'RDMA write, unregistered', [8] = 'RDMA acknowledgement',
    [9] = 'completion notification', [10] = 'error report', [11] = 'atomic',
}
local lant_responses = {
    [0] = 'OKAY', [1] = 'EXOKAY', [2] = 'SLVERR', [3] = 'DECERR', [4] = 'NACK: CRC', [5] = 'NACK: link', [6] = 'locked',
    [7] = 'NACK: busy',
}
local lant_classes = {[0] = 'shared memory', [1] = 'RDMA', [2] = 'notification'}
part(lant, 'node', 'Node', 42, 22)
part(lant, 'type', 'Type', 38, 4, base.DEC, lant_types)
part(lant, 'payload_flits', 'Flits of payload', 31, 7)
part(lant, 'packets', 'Packets of the operation', 20, 11)
part(lant, 'age', 'Hops so far', 16, 4)
part(lant, 'epoch', 'Epoch', 14, 2)
part(lant, 'priority', 'Priority', 12, 2)
part(lant, 'lock', 'Exclusive', 11, 1)
part(lant, 'keyhole', 'Keyhole', 10, 1)
part(lant, 'extended', 'Three flits of header', 9, 1)
part(lant, 'address', 'Address there', 22, 42, base.HEX)
part(lant, 'strobe', 'Bytes of the beat', 14, 8, base.HEX)
part(lant, 'size', 'Binary logarithm of the bytes a beat', 11, 3)
part(lant, 'protection', 'Protection', 8, 3)
part(lant, 'keyhole_sequence', 'Packet of the keyhole', 32, 32)
part(lant, 'keyhole_total', 'Of so many', 7, 25)
part(lant, 'head_code', 'Error code', 0, 7, base.HEX)
bytes_field(lant, 'payload', 'Payload')
part(lant, 'source', 'Sender', 42, 22)
part(lant, 'class', 'Class', 40, 2, base.DEC, lant_classes)
part(lant, 'row', 'Row', 26, 14)
part(lant, 'response', 'Response', 23, 3, base.DEC, lant_responses)
part(lant, 'generation', 'Generation', 15, 8)
part(lant, 'bus_id', 'AXI identifier', 7, 8)
part(lant, 'operation', 'Operation', 52, 12, base.HEX)
part(lant, 'offset', 'Offset, in packets', 35, 17)
part(lant, 'attempt', 'Attempt', 32, 3)
part(lant, 'crc', 'CRC of the packet', 0, 32, base.HEX)
register(lant)

local function lant_footer(tvb, tree, at)
    local footer = tree:add(tvb(at, 16), 'Footer')
    local values = show(lant, footer, tvb(at, 8), {'source', 'class', 'row', 'response', 'generation', 'bus_id',
                                                   'head_code'})
    for name, value in pairs(show(lant, footer, tvb(at + 8, 8), {'operation', 'offset', 'attempt', 'crc'})) do
        values[name] = value
    end
    return values
end

function lant.protocol.dissector(tvb, pinfo, root)
    local tree = begin(lant, tvb, pinfo, root, 'Lant')
    if is_short(lant, tvb, tree, 32, 'fewer bytes than header and footer') then
        return tvb:captured_len()
    end
    local header = tree:add(tvb(0, 16), 'Header')
    local values = show(lant, header, tvb(0, 8), {'node', 'type', 'payload_flits', 'packets', 'age', 'epoch', 'priority',
                                                  'lock', 'keyhole', 'extended', 'head_code'})
    local head = 16 + 8 * values.extended
    if tvb:captured_len() ~= head + 8 * values.payload_flits + 16 then
        header:add_proto_expert_info(lant.wrong_length, 'Wrong length: the header says another one')
        return tvb:captured_len()
    end
    local target = show(lant, header, tvb(8, 8), {'address', 'strobe', 'size', 'protection', 'head_code'})
    if values.extended == 1 then
        show(lant, header, tvb(16, 8), {'keyhole_sequence', 'keyhole_total', 'head_code'})
    end
    if values.payload_flits > 0 then
        tree:add(lant.fields.payload, tvb(head, 8 * values.payload_flits))
    end
    local footer = lant_footer(tvb, tree, head + 8 * values.payload_flits)
    local response = footer.response ~= 0 and ', ' .. lant_responses[footer.response] or ''
    tell(tree, pinfo, string.format('%s from node %d to node %d, 0x%x, row %d, operation 0x%x, offset %d, %d flits%s',
                                    lant_types[values.type] or 'unknown type', footer.source, values.node,
                                    target.address, footer.row, footer.operation, footer.offset, values.payload_flits,
                                    response))
    return tvb:captured_len()
end

local encapsulations = DissectorTable.get('wtap_encap')
encapsulations:add(wtap.USER0, forth.protocol)
encapsulations:add(wtap.USER1, exanest.protocol)
encapsulations:add(wtap.USER3, lant.protocol)
