// guarded_http: calls a URL through a circuit breaker, and shows what the breaker does.
//
// The use of the library is in guard_one_call and run; the rest is what any program that makes
// many HTTP calls needs. `guarded_http --help` explains the options, `guarded_http --demo` shows
// the story.
#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "flaky_server.hpp"
#include "guarded_http_args.hpp"
#include "guarded_http_report.hpp"
#include "trinco/circuit_breaker.hpp"

namespace guarded_http {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t callers_max = 256;

// ---- HTTP -------------------------------------------------------------------------------------

struct answer {
    fate how = fate::failed;
    std::string why;  // it failed
};

// libcurl names what TLS failed at, but not where to look.
std::string what_to_check(CURLcode result) {
    switch (result) {
        case CURLE_SSL_CONNECT_ERROR:
            return " (does the server speak https on this port, and a version of TLS that this "
                   "machine allows?)";
        case CURLE_PEER_FAILED_VERIFICATION:
            return " (is the server's certificate for this host name, in date, and by an authority "
                   "that this machine trusts?)";
        case CURLE_SSL_CACERT_BADFILE:
            return " (are the certificates of the authorities installed on this machine?)";
        default: return {};
    }
}

// One connection, used by one thread.
class http_client {
public:
    http_client(const std::string& url, std::chrono::milliseconds timeout, std::stop_token stop)
        : curl_(::curl_easy_init()), stop_(std::move(stop)) {
        if (!curl_) throw std::runtime_error("libcurl has no memory");
        auto* c = curl_.get();
        ::curl_easy_setopt(c, CURLOPT_URL, url.c_str());
        ::curl_easy_setopt(c, CURLOPT_USERAGENT, "guarded_http");
        ::curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
        ::curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name server
        ::curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
        ::curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, &http_client::discard);
        ::curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
        ::curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, &http_client::go_on);
        ::curl_easy_setopt(c, CURLOPT_XFERINFODATA, &stop_);
    }

    [[nodiscard]] answer get() {
        const auto result = ::curl_easy_perform(curl_.get());
        if (result == CURLE_OPERATION_TIMEDOUT) return {fate::failed, "no answer in time"};
        if (result == CURLE_ABORTED_BY_CALLBACK) return {fate::stopped, {}};
        if (result != CURLE_OK) {
            return {fate::failed,
                    std::string(::curl_easy_strerror(result)) + what_to_check(result)};
        }
        long status = 0;
        ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
        // A 4xx says that the request was wrong; the server is well. Only 429 is a cry for rest.
        if (status < 500 && status != 429) return {fate::ok, {}};
        return {fate::failed, "status " + std::to_string(status)};
    }

private:
    static std::size_t discard(char*, std::size_t size, std::size_t n, void*) { return size * n; }
    static int go_on(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<std::stop_token*>(stop)->stop_requested() ? 1 : 0;
    }

    struct cleanup {
        void operator()(CURL* c) const noexcept { ::curl_easy_cleanup(c); }
    };
    std::unique_ptr<CURL, cleanup> curl_;
    std::stop_token stop_;
};

// ---- the guarded call -------------------------------------------------------------------------

void guard_one_call(trinco::circuit_breaker& breaker, http_client& server, report& seen) {
    seen.call_begins();
    const auto begin = clock::now();
    auto permit = breaker.try_acquire();
    if (!permit) {
        // Where another program would give its friendly answer: from a cache, or "try again in
        // permit.refusal().retry_after".
        seen.call_ended(fate::refused, clock::now() - begin, false, {});
        return;
    }
    const bool probe = permit.is_probe();
    const auto got = server.get();
    switch (got.how) {
        case fate::ok: permit.success(); break;
        case fate::failed: permit.failure(); break;
        default: permit.ignore(); break;  // we gave up ourselves: the server is not to blame
    }
    seen.call_ended(got.how, clock::now() - begin, probe, got.why);
}

// ---- many of them -----------------------------------------------------------------------------

// Threads that make calls. Each waits for its answer, so there are as many as may hang at once.
class callers {
public:
    callers(const settings& s, const std::string& url, trinco::circuit_breaker& breaker,
            report& seen) {
        const auto at_once = s.rate * std::chrono::duration<double>(s.timeout).count() + 2;
        const auto n = std::min(callers_max, static_cast<std::size_t>(std::ceil(at_once)));
        for (std::size_t i = 0; i < n; ++i) {
            threads_.emplace_back([this, &s, url, &breaker, &seen](const std::stop_token& stop) {
                http_client server(url, s.timeout, stop);
                while (wait_for_work(stop)) {
                    guard_one_call(breaker, server, seen);
                    const std::lock_guard hold(m_);
                    --busy_;
                }
            });
        }
    }

    // Has one more call made; false when all wait for answers.
    [[nodiscard]] bool call() {
        const std::lock_guard hold(m_);
        if (busy_ + wanted_ >= threads_.size()) return false;
        ++wanted_;
        work_.notify_one();
        return true;
    }

    [[nodiscard]] std::size_t waiting() {
        const std::lock_guard hold(m_);
        return busy_;
    }

    // Ends calls under way as well; libcurl looks up once a second.
    void stop() {
        for (auto& t : threads_) t.request_stop();
        for (auto& t : threads_) t.join();
    }

private:
    [[nodiscard]] bool wait_for_work(const std::stop_token& stop) {
        std::unique_lock hold(m_);
        if (!work_.wait(hold, stop, [this] { return wanted_ > 0; }) || stop.stop_requested()) {
            return false;
        }
        --wanted_;
        ++busy_;
        return true;
    }

    std::mutex m_;
    std::condition_variable_any work_;
    std::size_t wanted_ = 0;  // calls that nobody has taken up yet
    std::size_t busy_ = 0;
    std::vector<std::jthread> threads_;
};

::sigset_t end_signals() {
    ::sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::sigaddset(&set, SIGTERM);
    return set;
}

// True when Ctrl-C came before that time.
bool interrupted_before(clock::time_point when) {
    const auto left = std::max<clock::duration>(when - clock::now(), 0ns);
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    const ::timespec wait{whole.count(), static_cast<long>((left - whole).count())};
    const auto set = end_signals();
    return ::sigtimedwait(&set, nullptr, &wait) > 0;
}

// Calls at the rate, until the time is over or Ctrl-C comes.
void keep_calling(const settings& s, callers& pool, trinco::circuit_breaker& breaker,
                  report& seen) {
    const auto between = std::chrono::duration_cast<clock::duration>(1s / s.rate);
    const auto begin = clock::now();
    const auto end = begin + s.run_for;
    auto next_call = begin;
    auto next_line = begin + 1s;
    while (!interrupted_before(std::min({next_call, next_line, end}))) {
        const auto now = clock::now();
        if (now >= next_line) {
            seen.second_ended(breaker.state(), pool.waiting());
            next_line = std::max(next_line + 1s, now);
            if (std::ferror(stdout) != 0) return;  // nobody would learn of the rest
        }
        if (now >= end) return;
        if (now < next_call) continue;
        if (!pool.call()) seen.call_skipped();
        next_call = std::max(next_call + between, now - 1s);  // after a pause no flood
    }
}

// The exit code: what was printed may have gone nowhere.
int end_of_output() {
    const bool failed = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !failed) return 0;
    std::fputs("guarded_http: the output cannot be written (is the disk full?)\n", stderr);
    return 1;
}

int run(const settings& s) {
    report seen(s);
    std::optional<flaky::server> demo;
    if (s.demo) {
        using enum flaky::mood;
        demo.emplace(
            std::vector<flaky::phase>{{healthy, 4s}, {hanging, 5s}, {failing, 3s}, {healthy}},
            std::uint16_t{0},
            flaky::server::watcher{[&](flaky::mood m) { seen.server_changed(flaky::to_string(m)); },
                                   {}});
    }
    const std::string url = demo ? demo->url() : s.url;

    // One breaker for one dependency, shared by all threads that call it.
    trinco::circuit_breaker breaker("the-server", s.breaker());
    const auto watching =
        breaker.on_event([&](const trinco::event& change) { seen.breaker_changed(change); });

    seen.introduce(url, breaker.options());
    if (demo) seen.server_changed("healthy");
    callers pool(s, url, breaker, seen);
    keep_calling(s, pool, breaker, seen);
    pool.stop();
    seen.finish(breaker.state());
    return end_of_output();
}

}  // namespace
}  // namespace guarded_http

int main(int argc, char** argv) {
    const auto parsed = guarded_http::parse(argc, argv);
    if (const auto* wrong = std::get_if<std::string>(&parsed)) {
        std::fprintf(stderr, "guarded_http: %s\n", wrong->c_str());
        return 64;
    }
    const auto& settings = std::get<guarded_http::settings>(parsed);
    if (settings.help) {
        std::fputs(std::string(guarded_http::help_text()).c_str(), stdout);
        return guarded_http::end_of_output();
    }
    // Before any thread begins, so that the signals come to interrupted_before alone.
    const auto signals = guarded_http::end_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::curl_global_init(CURL_GLOBAL_DEFAULT);
    try {
        return guarded_http::run(settings);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "guarded_http: %s\n", e.what());
        return 1;
    }
}
