// The processes of the fleet's proofs that are ours.
//
//     fleet_child fleet OPTIONS BREAKERS DEPENDENCY THREADS  INSTANCE VOTER URL ...
//         Several instances of the library in one process. OPTIONS are key=value pairs as they
//         travel to a store, joined by commas; BREAKERS names joined by commas; DEPENDENCY the
//         driver's socket, or -; THREADS call each breaker of each instance. Says a line of JSON
//         for each event (`at`: since when calls have met it), and obeys lines on stdin, where * is
//         every instance or breaker:
//             load INSTANCE BREAKER inside RATE SHARE     calls a second, share of failures
//             load INSTANCE BREAKER outside RATE          of the dependency
//             trip|reset INSTANCE BREAKER
//             force INSTANCE BREAKER MS                   open, for so long
//             burst INSTANCE BREAKER N                    so many successes at once
//             report                                      a line about each instance's breakers
//             hold                                        events and answers to trip are kept
//             tell                                        those that were kept
//             close                                       sends what there is and ends
//     fleet_child count URL INSTANCE VOTER BREAKER BATCHES [careless]
//         Gives the store batches of successes at its contract, each until it is acknowledged, and
//         says a line for each: the sum so far. A careless one calls a repeated batch a new one.
//     fleet_child crowd URL BREAKER N PREFIX  so many processes, one after another, of one instance
//         each (PREFIX-0 and on), that come, count one and go
//     fleet_child inspect URL BREAKER        a line of JSON about the record
//     fleet_child listen SOCKET CHANNEL [epoll]  says when each message arrives, and does nothing
//         else; with a last word it waits as whoever waits for more than this
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/breaker_options_table.hpp"
#include "tests/redis_fleet/fleet_calls.hpp"
#include "tests/redis_fleet/fleet_store.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/redis.hpp"

namespace trinco::fleet_test {

using namespace std::chrono_literals;

store open_store(const std::string& url, const std::string& instance, const std::string& voter) {
    store_settings settings;
    settings.instance = instance;
    settings.voter = voter;
    return open(url, {drivers::redis()}, settings);
}

namespace {

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);) parts.push_back(part);
    return parts;
}

breaker_options options_from(const std::string& text) {
    breaker_options options;
    for (const auto& pair : split(text, ',')) {
        const auto equals = pair.find('=');
        bool is_known = false;
        for (const auto& row : detail::breaker_option_table()) {
            if (detail::wire_key(row) != pair.substr(0, equals)) continue;
            is_known = detail::set_from_wire(row, pair.substr(equals + 1), options);
        }
        if (!is_known) throw std::runtime_error("no such option: " + pair);
    }
    return options;
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

class json_line {
public:
    json_line& text(const char* key, std::string_view value) { return raw(key, in_quotes(value)); }
    template <class N>
    json_line& number(const char* key, N value) {
        return raw(key, std::to_string(value));
    }
    json_line& raw(const char* key, const std::string& value) {
        out_ += (out_.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + value;
        return *this;
    }
    [[nodiscard]] std::string str() const { return out_ + "}"; }
    void say() const {
        static std::mutex m;
        const std::lock_guard hold(m);
        std::puts(str().c_str());
        std::fflush(stdout);
    }

private:
    std::string out_;
};

// What a callback notes; it becomes a line when it is said.
struct noted_event {
    std::int64_t at = 0;
    std::string instance;
    std::string breaker;
    std::string reason;
    event_kind kind{};
    breaker_state from{};
    breaker_state to{};
    bool degraded = false;

    void say() const {
        json_line line;
        line.text("event", text_of(kind)).number("at", at).text("instance", instance);
        line.text("breaker", breaker).text("from", text_of(from)).text("to", text_of(to));
        line.text("reason", reason).number("degraded", degraded ? 1 : 0).say();
    }
};

// Says events and what was tripped as they come, or keeps them, so that saying them disturbs
// nobody: on two processors every line costs the instances that are told later.
class event_log {
public:
    void add(noted_event e) {
        const std::lock_guard hold(m_);
        if (!holds_) return e.say();
        kept_.push_back(std::move(e));
    }
    void add(json_line answer) {
        const std::lock_guard hold(m_);
        if (!holds_) return answer.say();
        answers_.push_back(std::move(answer));
    }
    void hold() {
        const std::lock_guard hold(m_);
        holds_ = true;
        kept_.reserve(1'000);
    }
    void tell() {
        const std::lock_guard hold(m_);
        for (const auto& line : answers_) line.say();
        for (const auto& e : kept_) e.say();
        answers_.clear();
        kept_.clear();
    }

private:
    std::mutex m_;
    bool holds_ = false;
    std::vector<json_line> answers_;
    std::vector<noted_event> kept_;
};
event_log told_events;

void add_durations(json_line& to, const std::string& of, const durations& d) {
    to.number((of + "_count").c_str(), d.count());
    to.number((of + "_p99_us").c_str(), d.percentile(0.99));
    to.number((of + "_max_us").c_str(), d.longest());
    to.number((of + "_long").c_str(), d.long_ones());
}

// One breaker of one instance, and who calls through it.
class guarded {
public:
    guarded(breaker_registry& from, std::string instance, std::string name,
            const std::string& dependency, int threads)
        : instance_(std::move(instance)),
          name_(std::move(name)),
          from_(from),
          breaker_(from.get(name_)),
          told_(breaker_.on_event([this](const event& e) { tell(e); })),
          calls_(breaker_, instance_, dependency, threads) {}

    [[nodiscard]] bool is(const std::string& instance, const std::string& name) const {
        return (instance == "*" || instance == instance_) && (name == "*" || name == name_);
    }
    [[nodiscard]] fleet_calls& calls() { return calls_; }
    [[nodiscard]] circuit_breaker& breaker() { return breaker_; }

    void burst(std::uint64_t n) {
        for (; n > 0; --n) {
            if (auto p = breaker_.try_acquire()) p.success();
        }
    }

    [[nodiscard]] std::string report() {
        const auto s = breaker_.snapshot();
        const auto t = calls_.take();
        json_line line;
        line.text("instance", instance_).text("breaker", name_).text("state", text_of(s.state));
        line.text("local", text_of(s.local_state)).text("reason", s.reason);
        line.text("fleet", s.fleet_state ? text_of(*s.fleet_state) : "unknown");
        line.number("degraded", s.degraded ? 1 : 0).number("live", s.live);
        line.number("retry_after_ms", s.retry_after.count());
        line.number("success", s.totals.success).number("failure", s.totals.failure);
        line.number("ignored", s.totals.ignored).number("rejected", s.totals.rejected);
        line.number("stale", s.stale).number("settled", calls_.settled());
        line.number("admitted", t.admitted).number("probes", t.probes);
        line.number("refused_open", t.open).number("refused_waiting", t.waiting);
        add_durations(line, "cached", t.cached);
        add_durations(line, "asked", t.asked);
        const auto store = from_.report();
        line.number("dropped", store.dropped.judged()).text("trouble", store.trouble);
        line.number("redirections", store.wire.redirections);
        return line.number("waited", t.waited).str();
    }

private:
    void tell(const event& e) const {
        const auto ago = std::chrono::steady_clock::now() - e.at;
        const auto at =
            now_us() - std::chrono::duration_cast<std::chrono::microseconds>(ago).count();
        told_events.add(
            noted_event{at, instance_, name_, e.reason, e.kind, e.from, e.to, e.now.degraded});
    }

    const std::string instance_;
    const std::string name_;
    breaker_registry& from_;
    circuit_breaker& breaker_;
    subscription told_;
    fleet_calls calls_;
};

struct instance {
    store where;
    std::unique_ptr<breaker_registry> breakers;
    std::vector<std::unique_ptr<guarded>> all;
};

class fleet_process {
public:
    explicit fleet_process(const std::vector<std::string>& words) {
        const auto options = options_from(words.at(2));
        const auto names = split(words.at(3), ',');
        const auto dependency = words.at(4) == "-" ? "" : words.at(4);
        const int threads = std::stoi(words.at(5));
        for (std::size_t at = 6; at + 2 < words.size(); at += 3) {
            auto& one = instances_.emplace_back();
            one.where = open_store(words[at + 2], words[at], words[at + 1]);
            registry_options of_all;
            of_all.defaults = options;  // its store_timeout bounds how long the end may take
            one.breakers = std::make_unique<breaker_registry>(one.where, of_all);
            for (const auto& name : names) {
                one.breakers->configure(name, options);
                one.all.push_back(
                    std::make_unique<guarded>(*one.breakers, words[at], name, dependency, threads));
            }
        }
        json_line().number("ready", instances_.size()).say();
    }

    int run() {
        for (std::string line; std::getline(std::cin, line) && line != "close";) obey(line);
        std::vector<std::thread> ends;
        for (auto& one : instances_) ends.emplace_back([&one] { close(one); });
        for (auto& t : ends) t.join();
        json_line().text("closed", "yes").say();
        return 0;
    }

private:
    // What it settled is known only when nobody calls any more.
    static void close(instance& one) {
        for (auto& g : one.all) g->calls().stop();
        for (auto& g : one.all) json_line().raw("last", g->report()).say();
        one.all.clear();
        one.breakers.reset();
        one.where.close();
    }

    void obey(const std::string& line) {
        const auto words = split(line, ' ');
        if (words.at(0) == "report") {
            std::string all;
            for (auto& one : instances_) {
                for (auto& g : one.all) all += (all.empty() ? "" : ", ") + g->report();
            }
            json_line().raw("report", "[" + all + "]").say();
            return;
        }
        if (words[0] == "hold") return told_events.hold();
        if (words[0] == "tell") return told_events.tell();
        each(words.at(1), words.at(2), [&](guarded& g) { obey(words, g); });
    }

    static void obey(const std::vector<std::string>& words, guarded& g) {
        if (words[0] == "load") {
            load what;
            what.is_outside = words.at(3) == "outside";
            what.rate = std::stod(words.at(4));
            if (!what.is_outside) what.failing = std::stod(words.at(5));
            g.calls().set(what);
        } else if (words[0] == "trip") {
            const auto at = now_us();
            const auto error = g.breaker().trip("drill");
            told_events.add(json_line().number("tripped", at).text("error", error.message()));
        } else if (words[0] == "reset") {
            const auto error = g.breaker().reset("drill");
            json_line().number("reset", now_us()).text("error", error.message()).say();
        } else if (words[0] == "force") {
            const auto error =
                g.breaker().force_open("drill", std::chrono::milliseconds(std::stoi(words.at(3))));
            json_line().number("forced", now_us()).text("error", error.message()).say();
        } else if (words[0] == "burst") {
            g.burst(std::stoull(words.at(3)));
            json_line().number("burst", now_us()).say();
        }
    }

    template <class F>
    void each(const std::string& instance, const std::string& name, F f) {
        for (auto& one : instances_) {
            for (auto& g : one.all) {
                if (g->is(instance, name)) f(*g);
            }
        }
    }

    std::vector<instance> instances_;
};

// True when it was acknowledged.
bool send(const store& s, detail::news& n) {
    using verdicts = std::vector<detail::verdict>;
    const auto got = ask<verdicts>(s, 200ms, [n](auto& to, auto by, auto done) {
        return to.exchange({&n, 1}, by, std::move(done));
    });
    if (got.error || got.value.at(0).error) return false;
    n.mine = got.value[0].fleet;
    return true;
}

int count(const std::vector<std::string>& words) {
    const auto s = open_store(words.at(2), words.at(3), words.at(4));
    const bool is_careless = words.size() > 7 && words[7] == "careless";
    std::minstd_rand random(std::random_device{}());
    std::uint64_t sum = 0;
    detail::news n;
    n.breaker = words.at(5);
    for (auto batches = std::stoull(words.at(6)); batches > 0; --batches) {
        const std::uint64_t some = 1 + random() % 100;
        n.slices = {{{some, 0, 0, 0, 0, 0}, 0ms}};
        ++n.seq;
        for (int pause = 1; !send(s, n); pause = std::min(2 * pause, 64)) {
            n.seq += is_careless;
            std::this_thread::sleep_for(std::chrono::milliseconds(pause));
        }
        sum += some;
        std::printf("%llu\n", static_cast<unsigned long long>(sum));
        std::fflush(stdout);
        std::this_thread::sleep_for(1ms);
    }
    return 0;
}

// Until it is acknowledged: a report may be repeated.
void send_surely(const store& s, detail::news& n) {
    for (int pause = 1; !send(s, n); pause = std::min(2 * pause, 64)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    }
}

int come_and_go(const std::string& url, const std::string& instance, const std::string& breaker) {
    const auto s = open_store(url, instance, "crowd");
    detail::news n;
    n.breaker = breaker;
    n.seq = 1;
    n.slices = {{{1, 0, 0, 0, 0, 0}, 0ms}};
    send_surely(s, n);
    return 0;
}

int crowd(const std::string& url, const std::string& breaker, int many, const std::string& prefix) {
    int well = 0;
    for (int k = 0; k < many; ++k) {
        const auto child = ::fork();
        if (child == 0) ::_exit(come_and_go(url, prefix + "-" + std::to_string(k), breaker));
        int status = 1;
        well += child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
    }
    std::printf("%d\n", well);
    return well == many ? 0 : 1;
}

int inspect(const std::string& url, const std::string& breaker) {
    const auto s = open_store(url, "inspector", "inspector");
    const auto got = ask<detail::page>(s, 2s, [breaker](auto& to, auto by, auto done) {
        return to.inspect(breaker, "", 1, by, std::move(done));
    });
    json_line line;
    if (got.error) {
        line.text("error", got.error.message()).say();
        return 1;
    }
    if (got.value.rows.empty()) {
        line.number("absent", 1).say();
        return 0;
    }
    const auto& row = got.value.rows[0];
    line.text("breaker", row.breaker).text("state", text_of(row.now.fleet.state));
    line.number("era", row.now.fleet.era).number("live", row.now.live);
    line.number("success", row.totals.success).number("failure", row.totals.failure);
    line.number("ignored", row.totals.ignored).number("rejected", row.totals.rejected);
    line.number("window", row.now.window.judged()).number("shares", row.shares.size()).say();
    return 0;
}

// As bare as a reader can be.
int listen(const std::string& path, const std::string& channel, bool by_epoll) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const std::string asked = "SUBSCRIBE " + channel + "\r\n";
    if (::connect(fd, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0 ||
        ::send(fd, asked.data(), asked.size(), MSG_NOSIGNAL) < 0) {
        return 1;
    }
    char bytes[4096];
    const int set = ::epoll_create1(0);
    ::epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    if (by_epoll) ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
    while ((!by_epoll || ::epoll_wait(set, &e, 1, -1) > 0) &&
           ::recv(fd, bytes, sizeof bytes, 0) > 0) {
        const auto at = now_us();
        std::this_thread::sleep_for(50ms);  // saying it must not disturb the others
        json_line().number("heard", at).say();
    }
    return 0;
}

int run(const std::vector<std::string>& words) {
    const std::string mode = words.size() > 1 ? words[1] : "";
    if (mode == "fleet" && words.size() > 8) return fleet_process(words).run();
    if (mode == "count" && words.size() > 6) return count(words);
    if (mode == "crowd" && words.size() > 5) {
        return crowd(words[2], words[3], std::stoi(words[4]), words[5]);
    }
    if (mode == "inspect" && words.size() > 3) return inspect(words[2], words[3]);
    if (mode == "listen" && words.size() > 3) return listen(words[2], words[3], words.size() > 4);
    std::fputs("fleet_child: fleet | count | crowd | inspect | listen\n", stderr);
    return 64;
}

}  // namespace
}  // namespace trinco::fleet_test

int main(int argc, char** argv) {
    try {
        return trinco::fleet_test::run({argv, argv + argc});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "fleet_child: %s\n", e.what());
        return 1;
    }
}
