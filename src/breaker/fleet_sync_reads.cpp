// Reads for strict mode, and an operator's hand.
#include <algorithm>
#include <utility>

#include "breaker/fleet_sync_impl.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

namespace {

constexpr boot_clock::duration control_again = 50ms;

}  // namespace

op fleet_sync::impl::refresh(const member_ptr& m, completion<int> done) {
    auto reader = std::make_shared<completion<int>>(std::move(done));
    m->read_next.push_back(reader);
    if (m->reading.empty()) start_read(m);
    return op([reader] { reader->reset(); });
}

void fleet_sync::impl::start_read(const member_ptr& m) {
    const auto now = on.now();
    m->reading = std::exchange(m->read_next, {});
    news n;
    n.breaker = m->name;
    n.mine = m->current_view(now);
    n.own_stamp = m->own_stamp;
    n.options = m->own_stamp == 0        ? m->own_text
                : m->store_lacks_options ? m->governing_text
                                         : std::string{};
    ++stats.refreshes;
    const auto by = now + m->options.store_timeout;
    const news one[] = {std::move(n)};
    m->read = store.exchange(
        one, by, [this, m, now, by](std::error_code ec, const std::vector<verdict>& verdicts) {
            if (!ec && verdicts.size() != 1) ec = errc::invalid;
            if (ec) {
                unanswered(now, by);
                plan();
            } else {
                trips.answered(on.now() - now);
                answered();
                ec = verdicts.front().error;
                if (!ec) take_verdict(*m, verdicts.front(), now);
            }
            const auto readers = std::exchange(m->reading, {});
            if (m->owner != nullptr && !m->read_next.empty()) start_read(m);
            for (const auto& r : readers) {
                if (m->owner != nullptr && *r) (*r)(ec, 0);
            }
        });
}

op fleet_sync::impl::control(control_request request, deadline by, completion<view> done) {
    while (request.id == 0) request.id = on.random();
    if (request.who.empty()) request.who = who.instance;
    const auto id = request.id;
    auto shared = std::make_shared<completion<view>>(std::move(done));
    controls.insert_or_assign(id, control_call{std::move(request), by, shared, {}});
    try_control(id);
    return op([self = weak_from_this(), id] {
        if (const auto alive = self.lock()) alive->controls.erase(id);
    });
}

void fleet_sync::impl::try_control(std::uint64_t id) {
    auto& call = controls.at(id);
    const auto now = on.now();
    const auto try_by =
        std::min(call.by, now + std::max<boot_clock::duration>(store_timeout(), 100ms));
    call.attempt =
        store.control(call.request, try_by, [this, id, now](std::error_code ec, const view& v) {
            auto& mine = controls.at(id);
            const bool again =
                ec == errc::unavailable || ec == errc::busy || kind_of(ec) == error_kind::unknown;
            if (again && on.now() + control_again < mine.by) {
                mine.attempt = on.at(on.now() + control_again, [this, id] { try_control(id); });
                return;
            }
            const auto done = mine.done;
            const auto attempt = std::move(mine.attempt);
            const auto found = members.find(mine.request.breaker);
            const auto m = found == members.end() ? nullptr : found->second;
            controls.erase(id);
            if (!ec && m && learn(*m, v, now)) tell(*m);
            if (*done) (*done)(ec, ec ? view{} : v);
        });
}

}  // namespace trinco::detail
