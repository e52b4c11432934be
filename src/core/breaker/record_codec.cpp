#include "core/breaker/record_codec.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/breaker/record_steps.hpp"

namespace trinco::detail {
namespace {

constexpr std::string_view magic = "TR";
constexpr std::size_t checksum_size = 8;
// Beside the bounds of record_steps.hpp.
constexpr std::size_t max_leases = 1'000;
constexpr std::size_t max_cells = 64;
constexpr std::size_t max_name = 64;
constexpr std::size_t max_text = 4'096;

std::uint64_t checksum(std::string_view bytes) noexcept {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : bytes) h = (h ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
    return h;
}

// One walk over the members serves both directions, so that they cannot differ. Each way() of the
// two archives takes its argument by reference; the reader's say by `good` whether all was sound.
class writer {
public:
    static constexpr bool reads = false;
    std::string bytes;

    void number(std::uint64_t n) {
        for (; n >= 0x80; n >>= 7U) bytes += static_cast<char>((n & 0x7fU) | 0x80U);
        bytes += static_cast<char>(n);
    }
    void text(std::string_view s, std::size_t) {
        number(s.size());
        bytes += s;
    }
    static constexpr bool good = true;
};

class reader {
public:
    static constexpr bool reads = true;
    std::string_view rest;
    bool good = true;

    void number(std::uint64_t& n) {
        n = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (rest.empty()) return fail();
            const auto byte = static_cast<std::uint8_t>(rest.front());
            rest.remove_prefix(1);
            const std::uint64_t part = byte & 0x7fU;
            if (shift == 63 && part > 1) return fail();
            n |= part << shift;
            if (byte < 0x80) return;
        }
        fail();
    }
    void text(std::string& s, std::size_t most) {
        std::uint64_t size = 0;
        number(size);
        if (size > most || size > rest.size()) return fail();
        s.assign(rest.substr(0, static_cast<std::size_t>(size)));
        rest.remove_prefix(static_cast<std::size_t>(size));
    }
    void fail() {
        good = false;
        rest = {};
    }
};

template <class A, class T>
void unsigned_number(A& a, T& n) {
    if constexpr (A::reads) {
        std::uint64_t wide = 0;
        a.number(wide);
        if (wide > std::numeric_limits<T>::max()) return a.fail();
        n = static_cast<T>(wide);
    } else {
        a.number(n);
    }
}

template <class A, class T>
void signed_number(A& a, T& n) {
    if constexpr (A::reads) {
        std::uint64_t folded = 0;
        a.number(folded);
        n = static_cast<std::int64_t>((folded >> 1U) ^ (~(folded & 1U) + 1U));
    } else {
        const std::int64_t value = n;
        a.number((static_cast<std::uint64_t>(value) << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0U));
    }
}

template <class A, class T>
void time(A& a, T& t) {
    if constexpr (A::reads) {
        std::int64_t n = 0;
        signed_number(a, n);
        t = store_time(n);
    } else {
        const std::int64_t n = t.count();
        signed_number(a, n);
    }
}

template <class A, class T>
void flag(A& a, T& b) {
    std::uint8_t n = b ? 1 : 0;
    unsigned_number(a, n);
    if constexpr (A::reads) {
        if (n > 1) return a.fail();
        b = n == 1;
    }
}

template <class A, class E>
void enumerator(A& a, E& e, std::remove_const_t<E> last) {
    auto n = static_cast<std::uint8_t>(e);
    unsigned_number(a, n);
    if constexpr (A::reads) {
        if (n > static_cast<std::uint8_t>(last)) return a.fail();
        e = static_cast<E>(n);
    }
}

template <class A, class C>
void tally(A& a, C& n) {
    unsigned_number(a, n.success);
    unsigned_number(a, n.failure);
    unsigned_number(a, n.slow_success);
    unsigned_number(a, n.slow_failure);
    unsigned_number(a, n.ignored);
    unsigned_number(a, n.rejected);
}

// Of `cells` the number of them, then those that hold something with their place.
template <class A, class W>
void window(A& a, W& w) {
    std::uint64_t size = w.cells.size();
    unsigned_number(a, size);
    if constexpr (A::reads) {
        if (size > max_cells) return a.fail();
        w.cells.resize(static_cast<std::size_t>(size));
    }
    if (size == 0) {
        signed_number(a, w.newest);
        return tally(a, w.sum);
    }
    std::uint64_t filled = 0;
    for (const auto& c : w.cells) {
        if (!(c == slice_window::cell{})) ++filled;
    }
    unsigned_number(a, filled);
    if constexpr (A::reads) {
        for (; filled > 0 && a.good; --filled) {
            std::uint64_t at = 0;
            a.number(at);
            if (at >= size) return a.fail();
            auto& c = w.cells[static_cast<std::size_t>(at)];
            signed_number(a, c.number);
            tally(a, c.n);
        }
    } else {
        for (std::size_t at = 0; at < w.cells.size(); ++at) {
            const auto& c = w.cells[at];
            if (c == slice_window::cell{}) continue;
            a.number(at);
            signed_number(a, c.number);
            tally(a, c.n);
        }
    }
    signed_number(a, w.newest);
    tally(a, w.sum);
}

template <class A, class L, class F>
void list(A& a, L& all, std::size_t most, const F& one) {
    std::uint64_t size = all.size();
    unsigned_number(a, size);
    if constexpr (A::reads) {
        // Each element takes bytes of its own: a number that lies makes nothing large.
        if (size > most || size > a.rest.size()) return a.fail();
        all.resize(static_cast<std::size_t>(size));
    }
    for (auto& x : all) {
        if (!a.good) return;
        one(x);
    }
}

template <class A, class R>
void options(A& a, R& r) {
    a.text(r.options, max_text);
    if constexpr (A::reads) {
        std::string rules;
        a.text(rules, max_text);
        if (!a.good) return;
        const auto parsed = parse_policy(rules.empty() ? r.options : rules, policy{});
        if (const auto* p = std::get_if<policy>(&parsed)) {
            r.rules = *p;
        } else {
            a.fail();
        }
    } else {
        const auto parsed = parse_policy(r.options, policy{});
        const auto* const p = std::get_if<policy>(&parsed);
        a.text(p != nullptr && *p == r.rules ? std::string() : to_text(r.rules), max_text);
    }
    unsigned_number(a, r.options_stamp);
    a.text(r.configured_options, max_text);
    unsigned_number(a, r.configured_stamp);
    a.text(r.set_options, max_text);
    time(a, r.set_until);
}

template <class A, class R>
void state(A& a, R& r) {
    time(a, r.clock);
    time(a, r.skew);
    unsigned_number(a, r.era);
    unsigned_number(a, r.rev);
    enumerator(a, r.state, breaker_state::half_open);
    time(a, r.until);
    time(a, r.since);
    unsigned_number(a, r.backoff_level);
    a.text(r.reason, max_text);
    enumerator(a, r.over, override_kind::observing);
    a.text(r.over_reason, max_text);
    time(a, r.over_until);
}

template <class A, class R>
void probes(A& a, R& r) {
    list(a, r.leases, max_leases, [&](auto& x) {
        unsigned_number(a, x.token);
        unsigned_number(a, x.era);
        time(a, x.deadline);
        a.text(x.voter, max_name);
    });
    list(a, r.settled, steps::max_settled, [&](auto& x) {
        unsigned_number(a, x.token);
        time(a, x.at);
        flag(a, x.granted);
    });
    unsigned_number(a, r.reclaimed);
    time(a, r.set_aside_at);
    time(a, r.taken_over_at);
    time(a, r.forgot_at);
}

template <class A, class R>
void parties(A& a, R& r) {
    list(a, r.voters, steps::max_voters, [&](auto& x) {
        a.text(x.name, max_name);
        time(a, x.heard);
        window(a, x.window);
        time(a, x.asked);
        unsigned_number(a, x.probes_succeeded);
        unsigned_number(a, x.probes_failed);
        time(a, x.settled_at);
        flag(a, x.set_aside);
    });
    list(a, r.instances, steps::max_instances, [&](auto& x) {
        a.text(x.name, max_name);
        a.text(x.voter, max_name);
        time(a, x.heard);
        unsigned_number(a, x.last_seq);
        unsigned_number(a, x.own_stamp);
        window(a, x.window);
    });
    unsigned_number(a, r.live_instances);
    time(a, r.swept_at);
    list(a, r.controls, steps::max_controls, [&](auto& x) {
        unsigned_number(a, x.id);
        time(a, x.at);
    });
}

template <class A, class R>
void walk(A& a, R& r) {
    state(a, r);
    options(a, r);
    window(a, r.window);
    window(a, r.recent);
    time(a, r.suspect_since);
    tally(a, r.totals);
    probes(a, r);
    parties(a, r);
}

// Both lists of parties are searched by name.
template <class L>
bool is_sorted_by_name(const L& all) {
    return std::adjacent_find(all.begin(), all.end(), [](const auto& x, const auto& y) {
               return x.name >= y.name;
           }) == all.end();
}

}  // namespace

std::string encode(const fleet_record& r) {
    writer w;
    w.bytes = magic;
    w.bytes += static_cast<char>(record_version);
    walk(w, r);
    std::uint64_t sum = checksum(w.bytes);
    for (std::size_t i = 0; i < checksum_size; ++i, sum >>= 8U) {
        w.bytes += static_cast<char>(sum & 0xffU);
    }
    return std::move(w.bytes);
}

std::optional<fleet_record> decode(std::string_view bytes) {
    const std::size_t head = magic.size() + 1;
    if (bytes.size() < head + checksum_size || !bytes.starts_with(magic)) return std::nullopt;
    if (static_cast<std::uint8_t>(bytes[magic.size()]) != record_version) return std::nullopt;
    const std::string_view body = bytes.substr(0, bytes.size() - checksum_size);
    std::uint64_t sum = checksum(body);
    for (const char c : bytes.substr(body.size())) {
        if (static_cast<std::uint8_t>(c) != (sum & 0xffU)) return std::nullopt;
        sum >>= 8U;
    }
    reader in;
    in.rest = body.substr(head);
    fleet_record r;
    walk(in, r);
    const bool sound =
        in.good && in.rest.empty() && is_sorted_by_name(r.voters) && is_sorted_by_name(r.instances);
    return sound ? std::optional(std::move(r)) : std::nullopt;
}

}  // namespace trinco::detail
