#include "sim/fleet_judge.hpp"

#include <algorithm>

#include "trinco/breaker_events.hpp"

namespace trinco::sim {

using detail::counts;

namespace {

[[nodiscard]] counts sum_of(const detail::news& n) {
    counts all = n.stale;
    for (const auto& s : n.slices) all += s.n;
    return all;
}

[[nodiscard]] bool same_batch(const detail::news& a, const detail::news& b) {
    const auto same_slice = [](const detail::slice& x, const detail::slice& y) {
        return x.n == y.n && x.age == y.age;
    };
    return a.mine.era == b.mine.era && a.mine.rev == b.mine.rev && a.stale == b.stale &&
           std::equal(a.slices.begin(), a.slices.end(), b.slices.begin(), b.slices.end(),
                      same_slice);
}

// Whether each number of a is at most that of b.
[[nodiscard]] bool within(const counts& a, const counts& b) {
    return a.success <= b.success && a.failure <= b.failure && a.slow_success <= b.slow_success &&
           a.slow_failure <= b.slow_failure && a.ignored <= b.ignored && a.rejected <= b.rejected;
}

}  // namespace

std::string text_of(const counts& n) {
    return std::to_string(n.success) + " ok " + std::to_string(n.failure) + " failed " +
           std::to_string(n.ignored) + " ignored " + std::to_string(n.rejected) + " rejected";
}

std::string fleet_judge::time() const {
    const auto since_start = world_.now().time_since_epoch() - std::chrono::hours(24);
    return std::to_string(
        std::chrono::duration_cast<std::chrono::milliseconds>(since_start).count());
}

void fleet_judge::note(const std::string& what) {
    world_.note(time() + " ms  " + what);
}

void fleet_judge::violated(const std::string& what) {
    violations_.push_back("at " + time() + " ms: " + what);
    note("VIOLATION " + what);
}

void fleet_judge::learnt(const std::string& instance, detail::era_t& last, const detail::view& v) {
    if (last == v.era) return;
    note(instance + " learns era " + std::to_string(v.era) + " after " + std::to_string(last) +
         ": " + std::string(trinco::text_of(v.state)) + ", " + v.reason);
    last = v.era;
}

void fleet_judge::granted(const std::string& instance, std::uint64_t token,
                          boot_clock::time_point expires) {
    if (settled_.contains(token)) return;
    const auto now = world_.now();
    std::erase_if(probes_, [now](const auto& p) { return p.second <= now; });
    if (expires > now) probes_[token] = expires;
    ++seen_.grants;
    const auto at_once = static_cast<std::uint32_t>(probes_.size());
    seen_.most_at_once = std::max(seen_.most_at_once, at_once);
    note("grant to " + instance + ", " + std::to_string(at_once) + " at once");
    if (at_once > most_probes_) {
        violated("B1: " + std::to_string(at_once) + " unexpired probes, " +
                 std::to_string(most_probes_) + " allowed; the last granted to " + instance);
    }
}

void fleet_judge::settled(std::uint64_t token) {
    probes_.erase(token);
    settled_.insert(token);
}

void fleet_judge::sent(const std::string& instance, const detail::news& n) {
    if (n.seq == 0) {
        if (!n.slices.empty() || !n.stale.empty()) violated("B5: counts without a seq");
        return;
    }
    const auto [at, is_new] = unanswered_.try_emplace({instance, n.seq}, open_batch{n, false});
    ++(is_new ? seen_.batches : seen_.retries);
    if (!is_new && !same_batch(at->second.first, n)) {
        violated("B5: " + instance + " sent batch " + std::to_string(n.seq) +
                 " again with other contents");
    }
}

void fleet_judge::acknowledged(const std::string& instance, std::uint64_t seq) {
    const auto found = unanswered_.find({instance, seq});
    if (seq == 0 || found == unanswered_.end()) return;
    const auto all = sum_of(found->second.first);
    counted_ += all;
    seen_.outcomes += all.judged();
    unanswered_.erase(found);
}

counts fleet_judge::unknown() const {
    counts n;
    for (const auto& [key, batch] : unanswered_) n += sum_of(batch.first);
    return n;
}

void fleet_judge::check_totals(const counts& record) {
    if (within(counted_, record) && within(record, counted_ + unknown())) return;
    violated("B5: the record holds " + text_of(record) + "; acknowledged are " + text_of(counted_) +
             ", of unknown fate " + text_of(unknown()));
}

// ---- the watched store --------------------------------------------------------------------------

watched_breakers::watched_breakers(fleet_judge& judge, node& at, std::string instance,
                                   std::unique_ptr<detail::breaker_store> store)
    : judge_(judge), at_(at), instance_(std::move(instance)), store_(std::move(store)) {}

op watched_breakers::exchange(std::span<const detail::news> batch, detail::deadline by,
                              detail::completion<std::vector<detail::verdict>> done) {
    std::vector<std::uint64_t> seqs;
    for (const auto& n : batch) {
        judge_.sent(instance_, n);
        seqs.push_back(n.seq);
    }
    return store_->exchange(batch, by,
                            [this, seqs = std::move(seqs), done = std::move(done)](
                                std::error_code ec, std::vector<detail::verdict> verdicts) mutable {
                                for (std::size_t i = 0; !ec && i < verdicts.size(); ++i) {
                                    if (verdicts[i].error) continue;
                                    judge_.acknowledged(instance_, seqs[i]);
                                    judge_.learnt(instance_, era_, verdicts[i].fleet);
                                }
                                done(ec, std::move(verdicts));
                            });
}

op watched_breakers::look(const detail::look_request& request, detail::deadline by,
                          detail::completion<detail::glance> done) {
    return store_->look(
        request, by,
        [this, done = std::move(done)](std::error_code ec, const detail::glance& seen) mutable {
            if (!ec && !seen.exchange_first) judge_.learnt(instance_, era_, seen.fleet);
            done(ec, seen);
        });
}

op watched_breakers::probe(const detail::probe_request& request, detail::deadline by,
                           detail::completion<detail::probe_reply> done) {
    if (request.step != detail::probe_step::take) judge_.settled(request.token);
    return store_->probe(
        request, by,
        [this, takes = request.step == detail::probe_step::take, token = request.token,
         expires = at_.now() + request.lease,
         done = std::move(done)](std::error_code ec, const detail::probe_reply& reply) mutable {
            if (!ec) judge_.learnt(instance_, era_, reply.fleet);
            done(ec, reply);
            // Unless the instance did not want it any more.
            if (!ec && takes && reply.granted) judge_.granted(instance_, token, expires);
        });
}

op watched_breakers::control(const detail::control_request& request, detail::deadline by,
                             detail::completion<detail::view> done) {
    return store_->control(request, by, std::move(done));
}

op watched_breakers::inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                             detail::deadline by, detail::completion<detail::page> done) {
    return store_->inspect(prefix, from, rows, by, std::move(done));
}

op watched_breakers::subscribe(unique_function<void(const detail::notice&)> on_notice) {
    return store_->subscribe(
        [this, on_notice = std::move(on_notice)](const detail::notice& n) mutable {
            if (n.kind == detail::notice::kind_t::changed) judge_.learnt(instance_, era_, n.fleet);
            if (n.kind == detail::notice::kind_t::new_server) {
                judge_.note(instance_ + " meets a new server");
            }
            on_notice(n);
        });
}

op watched_breakers::stop(detail::deadline by, detail::completion<int> done) {
    return store_->stop(by, std::move(done));
}

}  // namespace trinco::sim
