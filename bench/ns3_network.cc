/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ns3_network - the incumbent: packets per second of wall time that ns-3 moves through a network.
 *
 * Usage: network TOPOLOGY --graph | ns3_network PACKETS [SEED]
 * The nodes, switches, links and routes are those of our own run (bench/network.c): point-to-point
 * links of 100 Gb/s and 100 ns. Each node sends PACKETS / nodes packets of 24 to 512 bytes back to
 * back, each to a random other node. Prints one JSON line; fails if a packet is lost or misled.
 *
 * As in ns3_switch.cc: real bytes, which the source writes and the sink compares; ns-3's own
 * devices, channels and output queues, no IP; a source without events of its own; the scheduler
 * that was fastest. A switch looks its output up in a table by the destination that the first word
 * of the payload names, and sends the packet on.
 */
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t PPP_BYTES = 2;
constexpr uint32_t OVERHEAD_BYTES = 16; /* of a packet beside its payload, PPP's included */
constexpr uint32_t WORDS_MOST = 62;     /* of payload, 8 bytes each */
constexpr uint16_t ETHER_TYPE = 0x0800; /* one of the two that PointToPointNetDevice can carry */
constexpr uint16_t PPP_TYPE = 0x0021;   /* what it makes of that on the wire */
constexpr uint64_t MAX_PACKETS = 1ull << 40;

/* The same pattern as sim/traffic.c: what follows the first word follows from it. */
void Fill(uint64_t *words, uint32_t count, uint64_t name)
{
    uint64_t key = (name ^ name >> 32) * 0xd6e8feb86659fd93ull;
    key ^= key >> 32;
    words[0] = name;
    for (uint32_t i = 1; i < count; i++) {
        words[i] = key + i * 0x9e3779b97f4a7c15ull;
    }
}

struct Sink {
    uint64_t expected = 0; /* packets that sources made for this node */
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint64_t wrong = 0;

    bool Receive(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address &)
    {
        uint64_t got[WORDS_MOST];
        uint64_t made[WORDS_MOST];
        uint32_t words = (packet->GetSize() + PPP_BYTES - OVERHEAD_BYTES) / 8;
        packet->CopyData(reinterpret_cast<uint8_t *>(got), 8 * words);
        Fill(made, words, got[0]);
        wrong += std::memcmp(got, made, 8 * words) != 0;
        packets++;
        bytes += packet->GetSize() + PPP_BYTES;
        return true;
    }
};

std::vector<Sink> sinks;
const Address anyone; /* a point-to-point device does not look at the address it sends to */
uint64_t random_state;
uint64_t bytes_made;

/* xorshift64: ns-3's own generator would cost more, and its quality is of no use here. */
uint32_t RandomBelow(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<uint32_t>(((random_state >> 32) * bound) >> 32);
}

Ptr<Packet> MakePacket(uint32_t to, uint64_t number)
{
    uint64_t words[WORDS_MOST + OVERHEAD_BYTES / 8];
    uint32_t count = 1 + RandomBelow(WORDS_MOST);
    Fill(words, count, static_cast<uint64_t>(to) << 40 | number);
    Ptr<Packet> packet = Create<Packet>(reinterpret_cast<uint8_t *>(words),
                                        8 * count + OVERHEAD_BYTES - PPP_BYTES);
    bytes_made += packet->GetSize() + PPP_BYTES;
    PppHeader header; /* Send() would add it, but these packets do not come by Send() */
    header.SetProtocol(PPP_TYPE);
    packet->AddHeader(header);
    return packet;
}

class SourceQueue : public Queue<Packet>
{
  public:
    SourceQueue(uint32_t node, uint64_t packets) : m_node(node), m_left(packets)
    {
    }

    /* The one packet offered is what wakes the device up; it sends one of ours instead. */
    bool Enqueue(Ptr<Packet>) override
    {
        return true;
    }

    Ptr<Packet> Dequeue() override
    {
        if (m_left == 0) {
            return nullptr;
        }
        m_left--;
        uint32_t to = RandomBelow(static_cast<uint32_t>(sinks.size()) - 1);
        to += to >= m_node;
        sinks[to].expected++;
        return MakePacket(to, m_left);
    }

    Ptr<Packet> Remove() override
    {
        return nullptr;
    }

    Ptr<const Packet> Peek() const override
    {
        return nullptr;
    }

  private:
    uint32_t m_node;
    uint64_t m_left;
};

struct Switch {
    std::vector<Ptr<NetDevice>> outputs;
    std::vector<uint32_t> routes; /* by destination: index of the output */

    bool Forward(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address &)
    {
        uint64_t name;
        packet->CopyData(reinterpret_cast<uint8_t *>(&name), sizeof name);
        return outputs[routes[name >> 40]]->Send(packet->Copy(), anyone, ETHER_TYPE);
    }
};

/* A port of the graph, and the one at the other end of its link. */
struct Port {
    uint32_t peer, peer_port;
    Ptr<PointToPointNetDevice> device;
};

struct Graph {
    uint32_t nodes = 0, switches = 0;
    std::vector<std::vector<Port>> ports; /* by vertex: the nodes, then the switches */
    std::vector<Switch> forwards;

    bool Read()
    {
        if (!(std::cin >> nodes >> switches) || nodes < 2) {
            return false;
        }
        ports.resize(nodes + switches);
        forwards.resize(switches);
        for (auto &own : ports) {
            uint32_t degree;
            if (!(std::cin >> degree)) {
                return false;
            }
            own.resize(degree);
            for (Port &port : own) {
                std::cin >> port.peer >> port.peer_port;
            }
        }
        for (Switch &forward : forwards) {
            forward.routes.resize(nodes);
            for (uint32_t &route : forward.routes) {
                std::cin >> route;
            }
        }
        return !std::cin.fail();
    }
};

Ptr<PointToPointNetDevice> MakeDevice(Ptr<Node> node, Ptr<PointToPointChannel> channel,
                                      Ptr<Queue<Packet>> queue, NetDevice::ReceiveCallback receive)
{
    Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
    device->SetDataRate(DataRate(100000000000ull));
    device->SetAddress(Mac48Address::Allocate());
    device->Attach(channel);
    device->SetQueue(queue);
    node->AddDevice(device); /* sets a callback of its own, which the next line replaces */
    device->SetReceiveCallback(receive);
    return device;
}

bool ParseNumber(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    char *end;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *number >= least && *number <= most;
}

Ptr<PointToPointNetDevice> MakeEnd(Graph &graph, Ptr<PointToPointChannel> channel, uint32_t vertex,
                                   uint64_t packets)
{
    if (vertex < graph.nodes) {
        return MakeDevice(CreateObject<Node>(), channel, CreateObject<SourceQueue>(vertex, packets),
                          MakeCallback(&Sink::Receive, &sinks[vertex]));
    }
    Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, UINT32_MAX)); /* nothing is lost */
    return MakeDevice(CreateObject<Node>(), channel, queue,
                      MakeCallback(&Switch::Forward, &graph.forwards[vertex - graph.nodes]));
}

/* Every link is found at both of its ends; the first one makes it. */
void MakeLinks(Graph &graph, uint64_t packets)
{
    for (uint32_t v = 0; v < graph.ports.size(); v++) {
        for (Port &port : graph.ports[v]) {
            Port &other = graph.ports[port.peer][port.peer_port];
            if (!port.device) {
                Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
                channel->SetAttribute("Delay", TimeValue(NanoSeconds(100)));
                port.device = MakeEnd(graph, channel, v, packets);
                other.device = MakeEnd(graph, channel, port.peer, packets);
            }
            if (v >= graph.nodes) {
                graph.forwards[v - graph.nodes].outputs.push_back(port.device);
            }
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    uint64_t packets, seed = 1;
    Graph graph;
    if (argc < 2 || argc > 3 || !ParseNumber(argv[1], 1, MAX_PACKETS, &packets) ||
        (argc == 3 && !ParseNumber(argv[2], 0, UINT64_MAX, &seed)) || !graph.Read()) {
        fprintf(stderr, "usage: network TOPOLOGY --graph | ns3_network PACKETS [SEED]\n");
        return 2;
    }
    random_state = (seed + 1) * 0x9e3779b97f4a7c15ull | 1; /* xorshift must not start at zero */

    Time::SetResolution(Time::PS);
    ObjectFactory scheduler;
    scheduler.SetTypeId("ns3::PriorityQueueScheduler");
    Simulator::SetScheduler(scheduler);

    const uint64_t each = packets / graph.nodes;
    sinks.resize(graph.nodes);
    MakeLinks(graph, each);
    for (uint32_t node = 0; node < graph.nodes; node++) {
        graph.ports[node][0].device->Send(Create<Packet>(), anyone, ETHER_TYPE);
    }

    auto start = std::chrono::steady_clock::now();
    Simulator::Run();
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    uint64_t events = Simulator::GetEventCount();

    uint64_t delivered = 0;
    uint64_t bytes = 0;
    bool correct = true;
    for (const Sink &sink : sinks) {
        delivered += sink.packets;
        bytes += sink.bytes;
        correct = correct && sink.wrong == 0 && sink.packets == sink.expected;
    }
    correct = correct && delivered == each * graph.nodes && bytes == bytes_made;
    if (!correct) {
        fprintf(stderr, "ns3_network: packets lost or misdirected: %llu of %llu delivered\n",
                static_cast<unsigned long long>(delivered),
                static_cast<unsigned long long>(each * graph.nodes));
    }
    printf("{\"nodes\":%u,\"packets\":%llu,\"events\":%llu,\"wall_s\":%.6f,"
           "\"packets_per_s\":%.0f,\"events_per_s\":%.0f}\n",
           graph.nodes, static_cast<unsigned long long>(delivered),
           static_cast<unsigned long long>(events), wall, static_cast<double>(delivered) / wall,
           static_cast<double>(events) / wall);

    /* ns-3 may be torn down before our globals are, so they must hold nothing of it by then. */
    graph = Graph();
    Simulator::Destroy();
    return correct ? 0 : 1;
}
