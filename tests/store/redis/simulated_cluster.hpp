// A cluster of the simulator: nodes that own slots, hand them over, send clients on, die and are
// replaced, and lag behind in what they know.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "scripted_fleet.hpp"
#include "store/redis/redis_slot.hpp"

namespace trinco::detail::test {

// Requests to it are the words "DO key number"; the answer is "node number".
class simulated_cluster {
public:
    simulated_cluster(loop& on, std::vector<std::string> names)
        : fleet(on), nodes(std::move(names)) {
        for (unsigned slot = 0; slot < redis_slots; ++slot) {
            owner.push_back(nodes[slot * nodes.size() / redis_slots]);
        }
        for (const auto& one : nodes) {
            lives[one] = std::to_string(lives.size() + 1);
            believes[one] = owner;
            fleet.at(one).answer_all([this, one](const std::string& c) { return answer(one, c); });
        }
    }

    // All nodes know what is so.
    void agree() {
        for (auto& [one, map] : believes) map = owner;
    }
    // A slot goes to another node, which knows it first; the others as soon as they `agree`.
    void hand_over(unsigned slot, const std::string& to) {
        believes[owner[slot]][slot] = to;
        owner[slot] = believes[to][slot] = to;
        importing.erase(slot);
    }

    scripted_fleet fleet;
    std::vector<std::string> nodes;
    std::vector<std::string> owner;
    std::map<std::string, std::vector<std::string>> believes;  // of each node
    std::map<unsigned, std::string> importing;                 // half handed over, to whom
    std::set<std::string> there;  // keys of such slots that have been moved already
    std::set<std::string> torn;   // keys of such slots of which a half has been moved
    std::map<std::string, std::string> lives;
    std::map<std::string, std::string> errors;    // instead of answers to DO
    std::map<std::string, std::string> refusals;  // instead of CLUSTER SLOTS
    std::vector<std::string> done;                // "node number", in their order
    std::vector<std::string> asked_for_map;       // who

private:
    std::string answer(const std::string& node, const std::string& command) {
        const bool asking = std::exchange(asking_[node], command == "ASKING");
        if (command == "CLUSTER SLOTS") return slots(node);
        if (command.starts_with("INFO")) return resp_text("run_id:" + lives[node] + "\r\n");
        if (command.starts_with("SUBSCRIBE")) return "*3\r\n+subscribe\r\n+x\r\n:1\r\n";
        if (!command.starts_with("DO ")) return "+OK\r\n";
        if (!errors[node].empty()) return "-" + errors[node] + "\r\n";
        const auto blank = command.find(' ', 3);
        const auto key = command.substr(3, blank - 3);
        return act(node, key, command.substr(blank + 1), asking);
    }
    std::string act(const std::string& node, const std::string& key, const std::string& number,
                    bool asking) {
        const auto slot = slot_of_key(key);
        const auto half = importing.find(slot);
        const bool is_half = half != importing.end();
        if (is_half && asking && node == half->second) {
            if (torn.contains(key)) return "-TRYAGAIN Multiple keys\r\n";
        } else if (believes[node][slot] != node) {
            return "-MOVED " + std::to_string(slot) + " " + believes[node][slot] + "\r\n";
        } else if (is_half && torn.contains(key)) {
            return "-TRYAGAIN Multiple keys\r\n";
        } else if (is_half && there.contains(key)) {
            return "-ASK " + std::to_string(slot) + " " + half->second + "\r\n";
        }
        done.push_back(node + " " + number);
        return "+" + node + " " + number + "\r\n";
    }
    std::string slots(const std::string& node) {
        asked_for_map.push_back(node);
        if (!refusals[node].empty()) return "-" + refusals[node] + "\r\n";
        std::vector<std::string> ranges;
        for (unsigned first = 0; first < redis_slots;) {
            const auto& whose = believes[node][first];
            unsigned last = first;
            while (last + 1 < redis_slots && believes[node][last + 1] == whose) ++last;
            const auto colon = whose.find(':');
            ranges.push_back(resp_list({":" + std::to_string(first) + "\r\n",
                                        ":" + std::to_string(last) + "\r\n",
                                        resp_list({resp_text(whose.substr(0, colon)),
                                                   ":" + whose.substr(colon + 1) + "\r\n"})}));
            first = last + 1;
        }
        return resp_list(ranges);
    }

    std::map<std::string, bool> asking_;
};

}  // namespace trinco::detail::test
