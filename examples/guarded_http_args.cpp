#include "guarded_http_args.hpp"

#include <curl/curl.h>

#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace guarded_http {
namespace {

using namespace std::chrono;
using namespace std::chrono_literals;

constexpr std::string_view help = R"(usage: guarded_http URL [options]
       guarded_http --demo

Calls URL at a steady rate through a circuit breaker, and prints what happens.

  A server that hangs takes its callers with it: each call waits for its timeout, and the waiting
  calls pile up. A circuit breaker watches the outcomes. When too many of the last calls failed or
  were slow it OPENS: calls are refused at once, and the server gets the rest it needs. After a
  while it is HALF OPEN: a few probes go through. They succeed: it CLOSES. They fail: it opens
  again, for longer.

  It does not have to wait for the first timeouts: a call that is still out after --slow-after
  counts as slow while it hangs.

what is called
  --rate 20           calls per second, 0.1 to 1000
  --for 30s           how long, 100ms to 24h; Ctrl-C ends earlier, with the summary
  --timeout 2s        a call gives up after this long, 10ms to 10m

when the breaker opens
  --failure-rate 0.5  failed (or slow) share of the calls in the window, above 0 to 1
  --minimum-calls 5   no share is judged below so many calls, 1 to 1000000
  --window 5s         the calls of this long are judged, 100ms to 1h
  --slow-after        a call is slow after this long, 1ms to below --timeout; half of it by default

how it recovers
  --open-for 2s       refuse for this long, 10ms to 5m; at first
  --backoff 2         each re-opening lasts this times longer, 1 to 10
  --probes 3          calls let through to try, 1 to 1000

  --json              one JSON object a line, for programs
  --demo              try it on a server of our own that is well, hangs, answers 503, recovers
  --help              this text

A failure is a timeout, no connection, no such host, or an answer of 429 or 500 and above. Other
4xx answers are successes: the server works, the request was wrong.
Durations are written 500ms, 2s, 5m, 1h. Ends with 0, 64 when the command line is wrong,
or 1 when it cannot go on, as when its output cannot be written.
)";

template <class T>
std::optional<T> number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<milliseconds> duration(std::string_view text) {
    struct unit {
        std::string_view name;
        milliseconds length;
    };
    static constexpr std::array units{unit{"ms", 1ms}, unit{"s", 1s}, unit{"m", 1min},
                                      unit{"h", 1h}};
    const auto digits = text.find_first_not_of("0123456789");
    if (digits == std::string_view::npos) return std::nullopt;
    const auto count = number<std::uint32_t>(text.substr(0, digits));
    for (const auto& u : units) {
        if (!count || text.substr(digits) != u.name) continue;
        return *count * u.length;
    }
    return std::nullopt;
}

// One option that takes a value: whether the text fits, and where it goes.
struct option {
    std::string_view name;
    std::string_view allowed;
    std::function<bool(std::string_view)> set;
};

std::function<bool(std::string_view)> within(milliseconds& to, milliseconds least,
                                             milliseconds most) {
    return [&to, least, most](std::string_view text) {
        const auto value = duration(text);
        if (!value || *value < least || *value > most) return false;
        to = *value;
        return true;
    };
}

template <class T>
std::function<bool(std::string_view)> within(T& to, T least, T most) {
    return [&to, least, most](std::string_view text) {
        const auto value = number<T>(text);
        if (!value || !(*value >= least && *value <= most)) return false;  // NaN fits nothing
        to = *value;
        return true;
    };
}

std::vector<option> options_of(settings& s) {
    return {
        {"--rate", "a number of calls per second from 0.1 to 1000", within(s.rate, 0.1, 1000.0)},
        {"--for", "a duration from 100ms to 24h", within(s.run_for, 100ms, 24h)},
        {"--timeout", "a duration from 10ms to 10m", within(s.timeout, 10ms, 10min)},
        {"--slow-after", "a duration from 1ms to below --timeout",
         within(s.slow_after, 1ms, 10min)},
        {"--failure-rate", "a share above 0, at most 1",
         within(s.failure_rate, std::numeric_limits<double>::denorm_min(), 1.0)},
        {"--minimum-calls", "a whole number from 1 to 1000000",
         within<std::uint32_t>(s.minimum_calls, 1, 1'000'000)},
        {"--window", "a duration from 100ms to 1h", within(s.window, 100ms, 1h)},
        {"--open-for", "a duration from 10ms to 5m", within(s.open_for, 10ms, 5min)},
        {"--backoff", "a number from 1 to 10", within(s.backoff, 1.0, 10.0)},
        {"--probes", "a whole number from 1 to 1000", within<std::uint32_t>(s.probes, 1, 1'000)},
    };
}

std::string quote(std::string_view text) {
    return std::string("'").append(text).append("'");
}

// What libcurl would say of it at each call.
std::string complaint_about_url(const std::string& url) {
    const std::unique_ptr<CURLU, decltype(&::curl_url_cleanup)> parts(::curl_url(),
                                                                      &::curl_url_cleanup);
    if (!parts) return "libcurl has no memory";
    const auto begin = "the URL is " + quote(shown(url)) + "; ";
    switch (::curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0)) {
        case CURLUE_OK: return {};
        case CURLUE_NO_HOST: return begin + "it needs a host, as in http://localhost:8080/";
        case CURLUE_BAD_PORT_NUMBER: return begin + "its port must be a number up to 65535";
        default:
            return begin + "it must be like http://host:port/path, without spaces: write them %20";
    }
}

// What remains to be checked when all is read.
std::string complaint_about(const settings& s) {
    if (s.url.empty() && !s.demo) {
        return "which URL? For example: guarded_http http://localhost:8080/ (or --demo, or --help)";
    }
    if (!s.url.empty() && s.demo) return "--demo brings its own server: leave the URL away";
    if (!s.demo && !s.url.starts_with("http://") && !s.url.starts_with("https://")) {
        return "the URL is " + quote(shown(s.url)) + "; it must begin with http:// or https://";
    }
    if (auto wrong = s.demo ? std::string() : complaint_about_url(s.url); !wrong.empty()) {
        return wrong;
    }
    if (s.slow_after >= s.timeout) {
        return "--slow-after is " + std::to_string(s.slow_after.count()) +
               "ms; it must be less than --timeout, which is " + std::to_string(s.timeout.count()) +
               "ms";
    }
    if (const auto wrong = trinco::validate(s.breaker())) return wrong->message();
    return {};
}

}  // namespace

trinco::breaker_options settings::breaker() const {
    trinco::breaker_options options;
    options.failure_rate = failure_rate;
    options.minimum_calls = minimum_calls;
    options.window = window;
    // Hanging calls shall open the breaker before they come back, so slow ones count like failed
    // ones, and permits still out after slow_call_after are slow already (overdue_after).
    options.slow_call_after = slow_after > 0ms ? slow_after : timeout / 2;
    options.slow_call_rate = failure_rate;
    options.call_timeout = timeout;
    options.open_for = open_for;
    options.open_backoff = backoff;
    options.half_open_probes = probes;
    options.probe_timeout = timeout;
    return options;
}

std::variant<settings, std::string> parse(int argc, const char* const* argv) {
    settings s;
    const std::span<const char* const> words(argv + 1, static_cast<std::size_t>(argc - 1));
    // The demonstration tells its story in 18 s; what is said on the command line still counts.
    for (const std::string_view word : words) {
        if (word != "--demo") continue;
        s.demo = true;
        s.run_for = 18s;
        s.window = 2s;
        s.open_for = 1s;
    }
    const auto options = options_of(s);
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string_view word = words[i];
        if (word == "--demo") continue;
        if (word == "--json") {
            s.json = true;
        } else if (word == "--help" || word == "-h") {
            s.help = true;
            return s;
        } else if (!word.starts_with("-")) {
            if (!s.url.empty())
                return "one URL at a time: " + quote(shown(word)) + " is a second one";
            s.url = word;
        } else {
            const auto equals = word.find('=');
            const auto name = word.substr(0, equals);
            const option* found = nullptr;
            for (const auto& o : options) {
                if (o.name == name) found = &o;
            }
            if (name == "--json" || name == "--demo" || name == "--help") {
                return std::string(name) + " takes no value: write it without " +
                       quote(word.substr(equals));
            }
            if (found == nullptr) {
                return "there is no option " + quote(name) + "; guarded_http --help shows them all";
            }
            if (equals == std::string_view::npos && i + 1 == words.size()) {
                return std::string(name) + " needs a value: " + std::string(found->allowed);
            }
            const std::string_view value =
                equals == std::string_view::npos ? words[++i] : word.substr(equals + 1);
            if (!found->set(value)) {
                return std::string(name) + " is " + quote(value) + "; it must be " +
                       std::string(found->allowed);
            }
        }
    }
    if (auto wrong = complaint_about(s); !wrong.empty()) return wrong;
    return s;
}

std::string shown(std::string_view url) {
    const auto slashes = url.find("//");
    const auto begin = slashes == std::string_view::npos ? 0 : slashes + 2;
    const auto at = url.rfind('@');
    const bool has_user = at != std::string_view::npos && at >= begin;
    auto out = std::string(url.substr(0, begin)) + (has_user ? "***" : "");
    const auto rest = url.substr(has_user ? at : begin);
    const auto query = rest.find_first_of("?#");
    out += rest.substr(0, query);
    return query == std::string_view::npos ? out : out + rest[query] + "***";
}

std::string_view help_text() noexcept {
    return help;
}

}  // namespace guarded_http
