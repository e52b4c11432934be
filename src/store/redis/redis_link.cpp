#include "store/redis/redis_link.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"
#include "store/redis/redis_link_impl.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_alone.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t write_most = 256 * 1024;  // what waits behind it counts as not sent
constexpr std::size_t held_most = 64 * 1024;
constexpr std::size_t held_room = 512;  // what is held first asks for no memory
constexpr auto settled_after = 1s;      // up for that long: waits begin small again

using entry = link_entry;
using entry_ptr = std::shared_ptr<entry>;

bool is_message(const resp_reply& reply) {
    if (!reply.is(resp_reply::kind_t::array) || reply.elements.empty()) return false;
    const auto& kind = reply.elements.front().text;
    return kind == "message" || kind == "pmessage" || kind == "smessage";
}

// Without pings, which nobody waits for.
std::size_t number_of_requests(const std::deque<entry_ptr>& entries) {
    return static_cast<std::size_t>(std::count_if(
        entries.begin(), entries.end(), [](const auto& e) { return static_cast<bool>(e->done); }));
}

}  // namespace

// ---- requests ---------------------------------------------------------------------------------

op redis_link::impl::request(std::string command, deadline by, completion<resp_reply> done) {
    const auto e = std::make_shared<entry>();
    e->done = std::move(done);
    const auto dropper = [weak = weak_from_this(), e] {
        if (const auto self = weak.lock()) self->drop(*e);
    };
    std::optional<errc> refused;
    if (command.empty()) refused = errc::invalid;
    if (denied && now_in != state::up) refused = errc::denied;
    if (queued.size() - queued_dead + awaited.size() >= options.requests_most ||
        queued_bytes + command.size() > options.bytes_most) {
        refused = errc::busy;
    }
    if (refused) {
        fail_later({e}, *refused);
        return op(dropper);
    }
    e->bytes = std::move(command);
    queued_bytes += e->bytes.size();
    e->timer = on.at(by, [weak = weak_from_this(), raw = e.get()] {
        if (const auto self = weak.lock()) self->overdue(*raw);
    });
    queued.push_back(e);
    if (now_in == state::up) {
        flush_later();
    } else {
        demand();
    }
    return op(dropper);
}

void redis_link::impl::overdue(entry& e) {
    auto done = std::move(e.done);
    const bool unsent = !e.bytes.empty();
    if (TRINCO_MUTANT("redis_late_reply_goes_to_the_next") && !unsent) {
        std::erase_if(awaited, [&](const entry_ptr& one) { return one.get() == &e; });
    }
    forget(e);
    if (done) done(unsent ? errc::unavailable : errc::unknown_outcome, {});
}

void redis_link::impl::drop(entry& e) {
    const auto dropped = std::move(e.done);
    e.timer.cancel();
    forget(e);
}

// An unsent entry that nobody waits for will not be sent; one that was sent keeps its place.
void redis_link::impl::forget(entry& e) {
    if (e.bytes.empty()) return;
    queued_bytes -= e.bytes.size();
    e.bytes.clear();
    // Not one by one: all of a long queue may be forgotten in one turn.
    if (++queued_dead * 2 <= queued.size()) return;
    std::erase_if(queued, [](const entry_ptr& one) { return one->bytes.empty(); });
    queued_dead = 0;
}

void redis_link::impl::fail_later(std::deque<entry_ptr> entries, std::error_code error) {
    for (const auto& e : entries) e->timer.cancel();
    const auto unknown = error == errc::unknown_outcome ? number_of_requests(entries) : 0;
    failing += unknown;
    later([entries = std::move(entries), error, unknown](impl& self) {
        for (const auto& e : entries) {
            auto done = std::move(e->done);
            if (done) done(error, {});
            if (self.gone) return;
        }
        self.failing -= unknown;
    });
}

// ---- connecting -------------------------------------------------------------------------------

void redis_link::impl::connect() {
    retry_timer.cancel();
    now_in = state::connecting;
    began = on.now();
    ++connection;
    if (!options.find) return dial();
    find_op = options.find(began + options.find_within,
                           [weak = weak_from_this(), mine = connection](redis_found found) {
                               const auto self = weak.lock();
                               if (!self || self->gone || mine != self->connection) return;
                               if (auto* refusal = std::get_if<redis_refusal>(&found)) {
                                   return self->broken(std::move(*refusal));
                               }
                               self->to = std::get<stream_address>(std::move(found));
                               self->dial();
                           });
}

void redis_link::impl::dial() {
    const auto by = on.now() + options.connect_within;
    const auto mine = connection;
    connect_timer = on.at(by, [this] {
        broken({std::make_error_code(std::errc::timed_out),
                "the server at " + text_of(to) + " did not let us in within " +
                    std::to_string(options.connect_within.count()) + " ms"});
    });
    connect_op = streams.connect(
        to, by,
        [weak = weak_from_this(), mine](std::error_code error, std::unique_ptr<byte_stream> made) {
            const auto self = weak.lock();
            if (!self || self->gone || mine != self->connection) return;
            if (error) return self->broken({error, connect_sentence(self->to, error)});
            self->stream = std::move(made);
            self->greet();
        });
}

// Somebody wants something now.
void redis_link::impl::demand() {
    if (now_in != state::waiting || denied) return;
    const auto earliest = began + options.demand_pause;
    const auto now = on.now();
    if (now >= earliest) return connect();
    retry_in(earliest - now);
}

void redis_link::impl::retry_in(boot_clock::duration wait) {
    now_in = state::waiting;
    retry_timer = on.after(wait, [this] { connect(); });
}

void redis_link::impl::greet() {
    now_in = state::greeting;
    reader = resp_reader(options.limits);
    amid = false;
    last_heard = on.now();
    read();
    if (options.steps.empty()) return be_admitted();
    std::string all;
    for (std::size_t i = 0; i < options.steps.size(); ++i) {
        const auto e = std::make_shared<entry>();
        e->sent = last_heard;
        e->done = [this, i](std::error_code error, const resp_reply& reply) {
            if (!error) next_step(i, reply);
        };
        awaited.push_back(e);
        all += resp_command(options.steps[i].words);
    }
    write(std::move(all));
}

void redis_link::impl::next_step(std::size_t done, const resp_reply& reply) {
    const auto& step = options.steps[done];
    auto refusal = step.check ? step.check(reply) : refusal_of(step, reply);
    if (refusal) return broken(std::move(*refusal));
    if (done + 1 == options.steps.size()) be_admitted();
}

void redis_link::impl::be_admitted() {
    if (!options.doubted || !options.doubted()) return is_up();
    admit_op = options.admit(
        on.now() + options.admit_within,
        [weak = weak_from_this(), mine = connection](std::optional<redis_refusal> refusal) {
            const auto self = weak.lock();
            if (!self || self->gone || mine != self->connection) return;
            if (refusal) return self->broken(std::move(*refusal));
            self->is_up();
        });
}

void redis_link::impl::is_up() {
    now_in = state::up;
    connect_timer.cancel();
    connect_op.cancel();
    denied = false;
    up_since = pinged = on.now();
    if (was_up) ++traffic.reconnects;
    tell({.up = true, .again = std::exchange(was_up, true), .reason = {}});
    ping_later();
    flush_later();
}

void redis_link::impl::broken(redis_refusal reason) {
    const bool told_up = now_in == state::up;
    ++connection;
    hang_up();
    denied = reason.error == errc::denied;
    if (told_up && on.now() - up_since >= settled_after) attempt = 0;
    // Steps are nobody's requests, and theirs are not asked again.
    if (!told_up) awaited.clear();
    tell({.up = false, .again = false, .reason = std::move(reason)});
    const bool denies = TRINCO_MUTANT("redis_sent_is_called_not_sent");
    fail_later(std::exchange(awaited, {}), denies ? errc::unavailable : errc::unknown_outcome);
    if (TRINCO_MUTANT("redis_unsent_is_dropped")) queued.clear();
    if (denied || !options.keep_unsent) {
        for (const auto& e : queued) e->bytes.clear();
        queued_bytes = queued_dead = 0;
        fail_later(std::exchange(queued, {}), denied ? errc::denied : errc::unavailable);
    }
    if (denied) return retry_in(options.denied_retry);
    retry_in(options.retry.wait(attempt++, on.random()));
}

void redis_link::impl::hang_up() {
    find_op.cancel();
    connect_op.cancel();
    connect_timer.cancel();
    admit_op.cancel();
    read_op.cancel();
    write_op.cancel();
    stuck_timer.cancel();
    ping_timer.cancel();
    held_timer.cancel();
    held.clear();
    stream.reset();
    writing = suspected = false;
}

void redis_link::impl::tell(redis_link_event event) {
    if (!changed) return;
    later([event = std::move(event)](impl& self) { self.changed(event); });
}

// ---- the connection ---------------------------------------------------------------------------

// Requests of one turn go out together.
void redis_link::impl::flush_later() {
    if (queued.empty() || std::exchange(flushing, true)) return;
    later([](impl& self) { self.flush(); });
}

void redis_link::impl::flush() {
    flushing = false;
    if (now_in != state::up || writing) return;
    std::string all;
    while (!queued.empty() && all.size() < write_most) {
        const auto e = std::move(queued.front());
        queued.pop_front();
        if (e->bytes.empty()) {
            --queued_dead;
            continue;
        }
        queued_bytes -= e->bytes.size();
        all += std::exchange(e->bytes, {});
        e->sent = on.now();
        ++traffic.requests;
        awaited.push_back(e);
    }
    if (!all.empty()) write(std::move(all));
}

// An error is not looked at: the end shows in reading, too, behind replies that came before it.
void redis_link::impl::write(std::string bytes) {
    writing = true;
    traffic.bytes_out += bytes.size();
    watch();
    write_op = stream->write(std::move(bytes),
                             [this, mine = connection](std::error_code error, std::size_t) {
                                 if (mine != connection) return;
                                 writing = false;
                                 if (!error) flush();
                             });
}

void redis_link::impl::read() {
    if (may_wait) held.reserve(held_room);
    read_op = stream->read_each([weak = weak_from_this(), mine = connection](
                                    std::error_code error, std::string_view bytes) {
        const auto self = weak.lock();
        if (!self || self->gone || mine != self->connection) return;
        if (error || bytes.empty()) return self->ended(error);
        self->came(bytes);
    });
}

void redis_link::impl::ended(std::error_code error) {
    const auto mine = connection;
    digest_held();
    if (gone || mine != connection) return;
    const auto at = text_of(to);
    if (error) return broken({error, "the connection to " + at + " broke"});
    broken({std::make_error_code(std::errc::connection_aborted),
            "the server at " + at + " ended the connection"});
}

void redis_link::impl::came(std::string_view bytes) {
    const auto mine = connection;
    last_heard = on.now();
    traffic.bytes_in += bytes.size();
    suspected = false;
    if (hold(bytes)) return;
    digest_held();
    if (!gone && mine == connection) digest(bytes);
}

// The first thing that every process of a machine does when all of them are told the same: as
// little as can be done, so that the last of them is not kept waiting by what the others do next.
bool redis_link::impl::hold(std::string_view bytes) {
    if (!may_wait || now_in != state::up || !awaited.empty() || amid) {
        return false;
    }
    if (held.size() + bytes.size() > held_most) return false;
    const auto message = resp_message_alone(bytes);
    if (!message || !may_wait(*message)) return false;
    if (held.empty()) {
        held_timer = on.at(last_heard + options.held_for, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->digest_held();
        });
    }
    held += bytes;
    return true;
}

void redis_link::impl::digest_held() {
    if (held.empty()) return;
    std::string all;
    all.reserve(held_room);
    held_timer.cancel();
    all.swap(held);
    digest(all);
}

void redis_link::impl::digest(std::string_view bytes) {
    const auto mine = connection;
    amid = true;  // until all of it was heard
    reader.feed(bytes);
    while (auto reply = reader.next()) {
        answered(std::move(*reply));
        if (gone || mine != connection) return;
    }
    amid = !reader.idle();
    if (const auto* fault = reader.fault()) {
        return broken({std::make_error_code(std::errc::protocol_error), fault->sentence});
    }
    watch();
}

void redis_link::impl::answered(resp_reply reply) {
    if (heard && (awaited.empty() || is_message(reply))) return heard(std::move(reply));
    if (awaited.empty()) {
        return broken({std::make_error_code(std::errc::protocol_error),
                       "the server sent a reply that nobody asked for"});
    }
    const auto e = std::move(awaited.front());
    awaited.pop_front();
    e->timer.cancel();
    auto done = std::move(e->done);
    if (done) done({}, std::move(reply));
}

// Looks when nothing may have come for too long.
void redis_link::impl::watch() {
    if (awaited.empty()) return stuck_timer.cancel();
    if (suspected) return;
    const auto since = std::max(awaited.front()->sent, last_heard);
    stuck_timer = on.at(since + options.stuck_after, [this] { look(); });
}

void redis_link::impl::look() {
    if (awaited.empty()) return;
    // When we ourselves were paused, what came meanwhile is read first.
    if (!std::exchange(suspected, true)) {
        stuck_timer = on.after(options.stuck_after / 10, [this] { look(); });
        return;
    }
    broken({std::make_error_code(std::errc::timed_out),
            "the server at " + text_of(to) + " has not answered for " +
                std::to_string(options.stuck_after.count()) + " ms"});
}

void redis_link::impl::ping_later() {
    if (options.ping_after <= 0ms) return;
    ping_timer = on.at(std::max(last_heard, pinged) + options.ping_after, [this] {
        if (on.now() - last_heard >= options.ping_after) {
            pinged = on.now();
            if (awaited.empty() && queued.empty()) ping();
        }
        ping_later();
    });
}

void redis_link::impl::ping() {
    const auto e = std::make_shared<entry>();
    e->bytes = resp_command(std::vector<std::string>{"PING"});
    queued_bytes += e->bytes.size();
    queued.push_back(e);
    flush_later();
}

void redis_link::impl::close() {
    gone = true;
    ++connection;
    retry_timer.cancel();
    const auto unsent = std::exchange(queued, {});
    const auto sent = std::exchange(awaited, {});
    for (const auto* all : {&unsent, &sent}) {
        for (const auto& e : *all) {
            e->bytes.clear();
            e->timer.cancel();
            const auto dropped = std::move(e->done);
        }
    }
    hang_up();
}

// ---- the link ---------------------------------------------------------------------------------

redis_link::redis_link(loop& on, stream_factory& streams, stream_address to,
                       redis_link_options options, on_event changed, on_message heard)
    : impl_(std::make_shared<impl>(on, streams, std::move(to), std::move(options),
                                   std::move(changed), std::move(heard))) {
    impl_->connect();
}

redis_link::~redis_link() {
    impl_->close();
}

op redis_link::request(std::string command, deadline by, completion<resp_reply> done) {
    return impl_->request(std::move(command), by, std::move(done));
}

void redis_link::reconnect(redis_refusal reason, std::optional<stream_address> elsewhere) {
    if (elsewhere) impl_->to = std::move(*elsewhere);
    impl_->broken(std::move(reason));
}

void redis_link::wake() {
    impl_->demand();
}

bool redis_link::up() const noexcept {
    return impl_->now_in == impl::state::up;
}
bool redis_link::awaits() const noexcept {
    // The steps of a greeting are nobody's requests.
    return impl_->failing > 0 || (up() && number_of_requests(impl_->awaited) > 0);
}
link_traffic redis_link::traffic() const noexcept {
    return impl_->traffic;
}
const stream_address& redis_link::where() const noexcept {
    return impl_->to;
}

}  // namespace trinco::detail
