/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hold_others - the same as hold, in the queues that other simulators use: a binary heap of
 * (time, order, event), and a multimap by time. Prints one JSON object.
 *
 * usage: hold_others heap|map PENDING random|fixed
 */
#include "bench/hold.h"

#include <map>
#include <queue>
#include <vector>

struct event {
    void (*act)(struct hold *hold, uint64_t *delay_ps);
    char rest[32]; /* As large as an event of ours. */
};

static void again(struct hold *hold, uint64_t *delay_ps)
{
    *delay_ps = hold_delay_ps(hold);
}

struct entry {
    uint64_t at_ps, order;
    event *what;
    bool operator>(const entry &other) const
    {
        return at_ps != other.at_ps ? at_ps > other.at_ps : order > other.order;
    }
};

class heap {
    std::priority_queue<entry, std::vector<entry>, std::greater<entry>> entries;
    uint64_t order = 0;

public:
    void schedule(uint64_t at_ps, event *what) { entries.push({at_ps, order++, what}); }
    entry next()
    {
        const entry first = entries.top();
        entries.pop();
        return first;
    }
};

class map {
    std::multimap<uint64_t, event *> entries;

public:
    void schedule(uint64_t at_ps, event *what) { entries.emplace(at_ps, what); }
    entry next()
    {
        const auto first = entries.begin();
        const entry found = {first->first, 0, first->second};
        entries.erase(first);
        return found;
    }
};

template <typename Queue> static double measure(struct hold hold)
{
    Queue queue;
    std::vector<event> events(hold.pending, event{again, {}});
    for (auto &one : events) {
        queue.schedule(hold_delay_ps(&hold), &one);
    }
    double began = 0;
    for (uint64_t i = 0; i < 2 * hold.pending + hold.runs; i++) {
        if (i == 2 * hold.pending) {
            began = hold_now_s();
        }
        const entry first = queue.next();
        uint64_t delay_ps;
        first.what->act(&hold, &delay_ps);
        queue.schedule(first.at_ps + delay_ps, first.what);
    }
    return (hold_now_s() - began) / static_cast<double>(hold.runs) * 1e9;
}

int main(int count, char **arguments)
{
    const bool map_wanted = count > 1 && strcmp(arguments[1], "map") == 0;
    if (!map_wanted && (count < 2 || strcmp(arguments[1], "heap") != 0)) {
        fprintf(stderr, "usage: %s heap|map PENDING random|fixed\n", arguments[0]);
        return 2;
    }
    const struct hold hold = hold_parse(count - 1, arguments + 1);
    printf("{\"ns\": %.2f}\n", map_wanted ? measure<map>(hold) : measure<heap>(hold));
    return 0;
}
