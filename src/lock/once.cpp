#include "trinco/once.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/names.hpp"
#include "core/quoted.hpp"
#include "lock/once_call.hpp"

namespace trinco {
namespace {

using namespace std::chrono_literals;
using detail::once_call;
using detail::once_record;
using detail::once_step;
using detail::once_wishes;

constexpr std::chrono::seconds longest_keep{366 * 24h};

// A sentence about the first thing that is wrong; empty when nothing is.
std::string complaint(std::string_view key, const once_function& f, const once_options& o) {
    if (auto bad = detail::check_once_key(key)) return *bad;
    if (auto bad = detail::check_fingerprint(o.fingerprint)) return *bad;
    if (!f) return "the function that is to be run once is empty";
    if (o.keep < 0s || o.keep > longest_keep) {
        return "once option keep is " + std::to_string(o.keep.count()) +
               " s; allowed is 1 s to 366 days, and 0 for ever";
    }
    if (o.record_timeout < 0ms || o.record_timeout > 1h) {
        return "once option record_timeout is " + std::to_string(o.record_timeout.count()) +
               " ms; allowed is 0 ms to 1 h";
    }
    return {};
}

detail::once_settings settings_of(const detail::session_shell& on, std::string_view key,
                                  const once_options& o) {
    detail::once_settings s;
    s.key = key;
    s.label = detail::is_one_line(on.label()) ? on.label() : detail::quoted(on.label());
    s.wishes.fingerprint = o.fingerprint;
    s.wishes.retry_on_failure = o.retry_on_failure;
    using wish = once_wishes::interrupted_t;
    const bool again = o.on_interrupted == once_options::interrupted_t::rerun;
    s.wishes.on_interrupted = o.reconcile ? wish::ask : again ? wish::rerun : wish::tell;
    s.keep = o.keep;
    if (o.wait) {
        // Beyond a century nothing has to be added that might overflow.
        s.by = detail::boot_clock::now() +
               std::clamp<std::chrono::milliseconds>(*o.wait, 0ms, 24h * 36'500);
    }
    s.wall_clock = [] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::system_clock::now().time_since_epoch());
    };
    return s;
}

once_found ask(const once_options& o, const std::string& run_id) {
    try {
        return o.reconcile(run_id);
    } catch (...) {
        return {};
    }
}

struct ran {
    once_result result;
    std::error_code error;
    once_record found;  // of once_interrupted
};

// What f did, with nothing of it lost but what a record has no room for.
once_result run(const once_function& f, const once_run& as) {
    once_result r;
    r.ran = true;
    r.run_id = as.run_id;
    r.attempt = as.attempt;
    try {
        r.value = f(as);
    } catch (const std::exception& e) {
        r.failed = true;
        r.value = e.what();
        r.raised = std::current_exception();
    } catch (...) {
        r.failed = true;
        r.value = "it threw something that is no std::exception";
        r.raised = std::current_exception();
    }
    return r;
}

ran run_and_record(once_call& call, std::string_view key, const once_record& written,
                   const once_function& f, const once_options& o) {
    ran out;
    out.result = run(f, {std::string(key), written.run_id, written.attempt, call.lost()});
    bool failed = out.result.failed;
    std::string payload;
    if (out.result.value.size() <= detail::max_once_result) {
        payload = out.result.value;
    } else {
        payload = (failed ? "it failed, and its error has " : "it was done, but its result has ") +
                  std::to_string(out.result.value.size()) + " bytes, of which 65536 can be kept";
        failed = true;
    }
    out.error = call.finish(failed, std::move(payload), o.record_timeout);
    return out;
}

ran answer(once_record found) {
    ran out;
    out.result.failed = found.state == once_record::state_t::failed;
    out.result.value = std::move(found.payload);
    out.result.run_id = std::move(found.run_id);
    out.result.attempt = found.attempt;
    return out;
}

once_call::answer reconcile(once_call& call, const once_record& interrupted,
                            const once_options& o) {
    auto found = ask(o, interrupted.run_id);
    const bool again = found.what == once_found::what_t::not_done ||
                       (found.what == once_found::what_t::unknown &&
                        o.on_interrupted == once_options::interrupted_t::rerun);
    if (again) return call.settle(std::nullopt);
    if (found.what == once_found::what_t::unknown) return {{}, {once_step::tell, interrupted}};
    if (found.result.size() > detail::max_once_result) return {errc::invalid, {}};
    return call.settle(std::move(found.result));
}

ran carry_out(once_call& call, std::string_view key, const once_function& f,
              const once_options& o) {
    auto a = call.begin(o.stop);
    while (!a.error && a.turn.step == once_step::ask) a = reconcile(call, a.turn.record, o);
    if (a.error) return {{}, a.error, {}};
    switch (a.turn.step) {
        case once_step::begin: return run_and_record(call, key, a.turn.record, f, o);
        case once_step::answer: return answer(std::move(a.turn.record));
        case once_step::reused: return {{}, errc::key_reused, {}};
        default: return {{}, errc::once_interrupted, std::move(a.turn.record)};
    }
}

ran try_once(session& on, std::string_view key, const once_function& f, const once_options& o) {
    const auto shell = detail::lock_access::shell(on);
    if (!shell) return {{}, errc::invalid, {}};
    if (const auto error = shell->check()) return {{}, error, {}};
    if (shell->on_loop_thread()) return {{}, errc::would_deadlock, {}};
    const auto call = std::make_shared<once_call>(shell, settings_of(*shell, key, o));
    // Whatever happens the machine ends on the loop's thread.
    const std::shared_ptr<void> ending(nullptr, [&](void*) { call->end(); });
    return carry_out(*call, key, f, o);
}

[[noreturn]] void fail(const session& on, std::string_view key, const ran& r) {
    const std::string about = "once " + detail::quoted(key) + ": ";
    if (r.error != errc::once_interrupted) {
        const auto shell = detail::lock_access::shell(on);
        throw lock_error(r.error, about + (shell ? shell->reason(r.error) : r.error.message()));
    }
    throw once_interrupted_error(
        about + detail::quoted(r.found.owner) + " began it as run " + r.found.run_id +
            ", and died, or lost its lock, before it recorded an end; find out whether it was "
            "done, or is still being done, and record that with 'trinco records resolve'",
        r.found.owner, r.found.run_id, std::chrono::system_clock::time_point(r.found.since));
}

}  // namespace

once_interrupted_error::once_interrupted_error(std::string sentence, std::string owner,
                                               std::string run_id,
                                               std::chrono::system_clock::time_point since)
    : lock_error(errc::once_interrupted, std::move(sentence)),
      owner_(std::move(owner)),
      run_id_(std::move(run_id)),
      since_(since) {}

once_result once(session& on, std::string_view key, const once_function& f,
                 const once_options& options) {
    if (auto bad = complaint(key, f, options); !bad.empty()) {
        throw lock_error(errc::invalid, std::move(bad));
    }
    auto r = try_once(on, key, f, options);
    if (r.error) fail(on, key, r);
    return std::move(r.result);
}

once_result once(session& on, std::string_view key, const once_function& f,
                 const once_options& options, std::error_code& error) {
    if (!complaint(key, f, options).empty()) {
        error = errc::invalid;
        return {};
    }
    auto r = try_once(on, key, f, options);
    error = r.error;
    return std::move(r.result);
}

}  // namespace trinco
