// Judges a fleet of breakers by the invariants of GUARANTEES: it stands between each instance and
// its store, and sees what was sent and what was learnt.
//
//   B1   never more than N unexpired probes in the whole fleet: granted to an instance, not settled
//        by it, and before the deadline at which they count as failed
//   B5   a batch is sent again unchanged; counted once: the record's totals hold every acknowledged
//        batch, and beyond them at most the ones whose fate is unknown
//
// What else is to be judged (states, agreement, liveness) is the scenario's, which reports it here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/lossy_breakers.hpp"
#include "sim/world.hpp"

namespace trinco::sim {

class fleet_judge {
public:
    explicit fleet_judge(world& w) : world_(w) {}

    // ---- probes
    void limit_probes(std::uint32_t n) noexcept { most_probes_ = n; }
    void granted(const std::string& instance, std::uint64_t token, boot_clock::time_point expires);
    void settled(std::uint64_t token);

    // ---- batches
    void sent(const std::string& instance, const detail::news& n);
    void acknowledged(const std::string& instance, std::uint64_t seq);
    // Against the record's totals; `reported`: what the fleet's instances say they have sent in
    // all.
    void check_totals(const counts& record);
    [[nodiscard]] const counts& counted() const noexcept { return counted_; }
    [[nodiscard]] counts unknown() const;

    // What instance learnt; enters the history when the era is another than the last one, which
    // the instance keeps.
    void learnt(const std::string& instance, detail::era_t& last, const detail::view& v);
    // Into the history, with the time.
    void note(const std::string& what);
    void violated(const std::string& what);
    [[nodiscard]] const std::vector<std::string>& violations() const noexcept {
        return violations_;
    }

    struct evidence {
        std::uint64_t grants = 0;
        std::uint32_t most_at_once = 0;
        std::uint64_t batches = 0;
        std::uint64_t retries = 0;
        std::uint64_t outcomes = 0;  // acknowledged
    };
    [[nodiscard]] const evidence& seen() const noexcept { return seen_; }

private:
    struct open_batch {
        detail::news first;
        bool acknowledged = false;
    };

    [[nodiscard]] std::string time() const;

    world& world_;
    std::uint32_t most_probes_ = 0;
    std::map<std::uint64_t, boot_clock::time_point> probes_;
    std::unordered_set<std::uint64_t> settled_;
    std::map<std::pair<std::string, std::uint64_t>, open_batch> unanswered_;
    counts counted_;
    evidence seen_;
    std::vector<std::string> violations_;
};

// A store as one instance sees it, with the judge looking on.
class watched_breakers final : public detail::breaker_store {
public:
    watched_breakers(fleet_judge& judge, node& at, std::string instance,
                     std::unique_ptr<detail::breaker_store> store);

    [[nodiscard]] op exchange(std::span<const detail::news> batch, detail::deadline by,
                              detail::completion<std::vector<detail::verdict>> done) override;
    [[nodiscard]] op look(const detail::look_request& request, detail::deadline by,
                          detail::completion<detail::glance> done) override;
    [[nodiscard]] op probe(const detail::probe_request& request, detail::deadline by,
                           detail::completion<detail::probe_reply> done) override;
    [[nodiscard]] op control(const detail::control_request& request, detail::deadline by,
                             detail::completion<detail::view> done) override;
    [[nodiscard]] op inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                             detail::deadline by, detail::completion<detail::page> done) override;
    [[nodiscard]] op subscribe(unique_function<void(const detail::notice&)> on_notice) override;
    [[nodiscard]] op stop(detail::deadline by, detail::completion<int> done) override;

private:
    fleet_judge& judge_;
    node& at_;
    std::string instance_;
    detail::era_t era_ = 0;  // as last learnt
    std::unique_ptr<detail::breaker_store> store_;
};

[[nodiscard]] std::string text_of(const counts& n);

}  // namespace trinco::sim
