// The way back: what the scripts answer, read with a check of each value.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/breaker/record.hpp"
#include "store/redis/script_protocol.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;
using kind = resp_reply::kind_t;

// Reads the elements of an array one after the other; the first that is not what is wanted spoils
// all.
class reading {
public:
    explicit reading(const resp_reply& of) : all_(of.elements), good_(of.is(kind::array)) {}

    [[nodiscard]] bool is_good() const noexcept { return good_; }
    // All was good, and nothing is left over.
    [[nodiscard]] bool is_done() const noexcept { return good_ && at_ == all_.size(); }

    [[nodiscard]] const resp_reply& next(kind wanted) {
        static const resp_reply nothing;
        if (!good_ || at_ >= all_.size() || !all_[at_].is(wanted)) {
            good_ = false;
            return nothing;
        }
        return all_[at_++];
    }
    void get(std::string& to) { to = next(kind::string).text; }
    template <class T>
    void number(T& to, std::uint64_t most = std::numeric_limits<T>::max()) {
        const std::int64_t x = next(kind::integer).integer;
        if (x < 0 || static_cast<std::uint64_t>(x) > most) good_ = false;
        if (good_) to = static_cast<T>(x);
    }
    void get(std::uint64_t& to) { number(to); }
    void get(std::uint32_t& to) { number(to); }
    void get(std::uint16_t& to) { number(to); }
    void get(std::uint8_t& to) { number(to); }
    void get(bool& to) { number(to, 1); }
    template <class E>
    void choice(E& to, E last) {
        std::uint8_t n = 0;
        number(n, static_cast<std::uint64_t>(last));
        to = static_cast<E>(n);
    }
    template <class Rep, class Period>
    void get(std::chrono::duration<Rep, Period>& to) {
        std::uint64_t n = 0;
        number(n, max_era);
        to = std::chrono::duration<Rep, Period>(static_cast<Rep>(n));
    }
    void get(counts& to) {
        reading in(next(kind::array));
        for (auto* x : {&to.success, &to.failure, &to.slow_success, &to.slow_failure, &to.ignored,
                        &to.rejected}) {
            in.get(*x);
        }
        good_ = good_ && in.is_done();
    }
    void get(view& to) {
        reading in(next(kind::array));
        in.get(to.era);
        in.get(to.rev);
        in.choice(to.state, breaker_state::half_open);
        in.get(to.remaining);
        in.get(to.backoff_level);
        in.choice(to.over, override_kind::observing);
        in.get(to.over_remaining);
        in.get(to.options_stamp);
        in.get(to.reason);
        good_ = good_ && in.is_done();
    }
    void get(share& to) {
        reading in(next(kind::array));
        in.get(to.instance);
        in.get(to.voter);
        in.get(to.window);
        in.get(to.heard);
        in.get(to.options_stamp);
        good_ = good_ && in.is_done();
    }

private:
    const std::vector<resp_reply>& all_;
    std::size_t at_ = 0;
    bool good_;
};

// The first word: `ok`, or why there is no more.
[[nodiscard]] std::error_code begin(reading& in) {
    const std::string& word = in.next(kind::string).text;
    if (word == "newer") return errc::not_supported;
    return word == "ok" ? std::error_code() : errc::invalid;
}

// Nothing of a reply that is not whole is used.
template <class T>
[[nodiscard]] script_answer<T> finished(const reading& in, script_answer<T> a) {
    if (in.is_done()) return a;
    script_answer<T> bad;
    bad.error = errc::invalid;
    return bad;
}

}  // namespace

script_answer<verdict> verdict_from(const resp_reply& reply) {
    script_answer<verdict> a;
    reading in(reply);
    a.error = begin(in);
    if (!a.error) {
        verdict& v = a.value;
        in.get(v.counted);
        in.get(v.own_stamp);
        in.get(v.set_aside);
        in.get(v.live);
        in.get(v.voters_failing);
        in.get(v.probes_left);
        in.get(v.next_exchange);
        in.get(v.send_options);
        in.get(v.options);
        in.get(v.window);
        in.get(v.fleet);
        in.get(a.published);
        in.get(a.lives);
        in.get(a.cost);
        v.cost = a.cost;
        a = finished(in, std::move(a));
    }
    a.value.error = a.error;
    return a;
}

script_answer<glance> glance_from(const resp_reply& reply) {
    script_answer<glance> a;
    reading in(reply);
    a.error = begin(in);
    if (a.error) return a;
    in.get(a.value.exchange_first);
    in.get(a.value.fleet);
    in.get(a.cost);
    a.value.cost = a.cost;
    return finished(in, std::move(a));
}

script_answer<probe_reply> probe_reply_from(const resp_reply& reply) {
    script_answer<probe_reply> a;
    reading in(reply);
    a.error = begin(in);
    if (a.error) return a;
    in.get(a.value.granted);
    in.get(a.value.retry_after);
    in.get(a.value.set_aside);
    in.get(a.value.live);
    in.get(a.value.fleet);
    in.get(a.published);
    in.get(a.lives);
    in.get(a.cost);
    return finished(in, std::move(a));
}

script_answer<view> view_from(const resp_reply& reply) {
    script_answer<view> a;
    reading in(reply);
    a.error = begin(in);
    if (a.error) return a;
    in.get(a.value);
    in.get(a.published);
    in.get(a.lives);
    in.get(a.cost);
    return finished(in, std::move(a));
}

script_answer<std::optional<report>> report_from(const resp_reply& reply,
                                                 std::string_view breaker) {
    script_answer<std::optional<report>> a;
    if (reply.elements.size() == 1 && reply.elements[0].text == "absent") return a;
    reading in(reply);
    a.error = begin(in);
    if (a.error) return a;
    report& p = a.value.emplace();
    p.breaker = breaker;
    in.get(p.now.fleet);
    in.get(p.now.window);
    in.get(p.now.live);
    in.get(p.now.voters_failing);
    in.get(p.now.probes_left);
    in.get(p.now.next_exchange);
    in.get(p.options);
    in.get(p.options_set);
    in.get(p.set_remaining);
    in.get(p.totals);
    reading shares(in.next(kind::array));
    while (in.is_good() && shares.is_good() && !shares.is_done()) {
        shares.get(p.shares.emplace_back());
    }
    in.get(a.cost);
    p.now.cost = a.cost;
    if (!shares.is_done()) a.error = errc::invalid;
    return a.error ? script_answer<std::optional<report>>{a.error, {}, true, {}, {}}
                   : finished(in, std::move(a));
}

namespace {

// Reads the words of a notice, as `reading` reads the elements of a reply. In place and without
// calling anything, because every process of the fleet waits for this when the breaker opens.
class words {
public:
    explicit words(std::string_view text) : left_(text) {}

    [[nodiscard]] bool is_good() const noexcept { return good_; }
    [[nodiscard]] std::string_view next() noexcept {
        std::size_t end = 0;
        while (end < left_.size() && left_[end] != ' ') ++end;
        const std::string_view word = left_.substr(0, end);
        left_.remove_prefix(std::min(end + 1, left_.size()));
        return word;
    }
    [[nodiscard]] std::string_view rest() const noexcept { return left_; }

    [[nodiscard]] std::uint64_t number(std::uint64_t most) noexcept {
        const std::string_view digits = next();
        std::uint64_t x = 0;
        if (digits.empty() || digits.size() > digits_most) good_ = false;
        for (const char c : digits) {
            const auto digit = static_cast<unsigned char>(c - '0');
            if (digit > 9) good_ = false;
            x = x * 10 + digit;
        }
        if (x > most) good_ = false;
        return good_ ? x : 0;
    }
    template <class E>
    [[nodiscard]] E choice(E last) {
        return static_cast<E>(number(static_cast<std::uint64_t>(last)));
    }
    [[nodiscard]] milliseconds duration() { return milliseconds(number(max_era)); }

private:
    static constexpr std::size_t digits_most = 19;  // no number of so many overflows

    std::string_view left_;
    bool good_ = true;
};

bool is_changed(std::string_view word) noexcept {
    constexpr std::string_view changed = "changed";
    return word.size() == changed.size() &&
           std::memcmp(word.data(), changed.data(), changed.size()) == 0;
}

}  // namespace

std::optional<opening> opening_from(std::string_view message) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    words in(message);
    if (!is_changed(in.next())) return {};
    opening o;
    o.breaker = in.next();
    o.era = in.number(most);
    (void)in.next();  // rev
    if (in.choice(breaker_state::half_open) != breaker_state::open) return {};
    o.remaining = in.duration();
    (void)in.next();  // backoff level
    if (in.choice(override_kind::observing) != override_kind::none) return {};
    (void)in.next();  // its time
    (void)in.next();  // options
    o.reason = in.rest();
    if (!in.is_good() || o.remaining <= milliseconds(0)) return {};
    return o;
}

std::optional<notice> notice_from(std::string_view message) {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    std::optional<notice> read(std::in_place);
    words in(message);
    const auto kind_word = in.next();
    if (kind_word == "flush") {
        read->kind = notice::kind_t::flush;
    } else if (!is_changed(kind_word)) {
        return std::nullopt;
    }
    read->breaker = in.next();
    view& v = read->fleet;
    v.era = in.number(most);
    v.rev = in.number(most);
    v.state = in.choice(breaker_state::half_open);
    v.remaining = in.duration();
    v.backoff_level = static_cast<decltype(v.backoff_level)>(
        in.number(std::numeric_limits<decltype(v.backoff_level)>::max()));
    v.over = in.choice(override_kind::observing);
    v.over_remaining = in.duration();
    v.options_stamp = in.number(most);
    v.reason = in.rest();
    if (!in.is_good() || read->breaker.empty()) read.reset();
    return read;
}

}  // namespace trinco::detail
