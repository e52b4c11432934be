#include "trinco/circuit_breaker.hpp"

#include <utility>

#include "breaker/access.hpp"
#include "breaker/call_timer.hpp"
#include "breaker/engine.hpp"
#include "core/breaker_options_table.hpp"
#include "core/names.hpp"

namespace trinco {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t max_reason = 200;
constexpr milliseconds max_expiry = std::chrono::hours(24 * 30);

// To what a person would say of so long a time.
milliseconds rounded_up(milliseconds d) {
    using namespace std::chrono;
    if (d >= hours(48)) return ceil<hours>(d);
    if (d >= minutes(10)) return ceil<minutes>(d);
    if (d >= seconds(10)) return ceil<seconds>(d);
    return d;
}

std::string sentence(std::string_view breaker, const refusal& why) {
    std::string text = "Breaker \"";
    text += breaker;
    text += "\" refuses the call (";
    text += text_of(why.by);
    text += "): ";
    text += text_of(why.reason);
    text += " Retry in ";
    text += detail::duration_text(rounded_up(why.retry_after));
    text += '.';
    return text;
}

std::string valid_name(std::string name, const breaker_options& options) {
    const auto fault = detail::check_breaker(name, options);
    if (fault.code) throw breaker_error(fault.code, fault.message);
    return name;
}

bool operation_fits(std::string_view reason, milliseconds time) noexcept {
    return reason.size() <= max_reason && detail::is_one_line(reason) && time.count() >= 0 &&
           time <= max_expiry;
}

}  // namespace

namespace detail {

breaker_fault check_breaker(const std::string& name, const breaker_options& options) {
    if (auto wrong = check_breaker_name(name)) {
        return {make_error_code(errc::invalid), std::move(*wrong)};
    }
    if (const auto wrong = validate(options)) {
        return {make_error_code(errc::invalid), "breaker \"" + name + "\": " + wrong->message()};
    }
    return {};
}

}  // namespace detail

breaker_error::breaker_error(std::error_code code, std::string sentence)
    : std::system_error(code),
      sentence_(std::make_shared<const std::string>(std::move(sentence))) {}

breaker_open_error::breaker_open_error(std::string_view breaker, const trinco::refusal& why)
    : breaker_error(make_error_code(errc::breaker_open), sentence(breaker, why)), why_(why) {}

// ---- subscription ------------------------------------------------------------------------------

subscription::subscription(std::shared_ptr<detail::event_hub> hub, std::uint64_t id) noexcept
    : hub_(std::move(hub)), id_(id) {}

subscription::subscription(subscription&& other) noexcept
    : hub_(std::exchange(other.hub_, nullptr)), id_(other.id_) {}

subscription& subscription::operator=(subscription&& other) noexcept {
    if (this != &other) {
        if (hub_) hub_->remove(id_);
        hub_ = std::exchange(other.hub_, nullptr);
        id_ = other.id_;
    }
    return *this;
}

subscription::~subscription() {
    if (hub_) hub_->remove(id_);
}

// ---- circuit_breaker ---------------------------------------------------------------------------

circuit_breaker::circuit_breaker(std::string name, const breaker_options& options)
    : core_(std::make_unique<detail::engine>(valid_name(std::move(name), options), options)) {}

circuit_breaker::circuit_breaker(std::unique_ptr<detail::engine> core) noexcept
    : core_(std::move(core)) {}

circuit_breaker::~circuit_breaker() = default;

std::unique_ptr<circuit_breaker> circuit_breaker::make(std::string name,
                                                       const breaker_options& options,
                                                       breaker_fault& why) {
    why = detail::check_breaker(name, options);
    if (why.code) return nullptr;
    return detail::breaker_access::make(std::move(name), options);
}

const std::string& circuit_breaker::name() const noexcept {
    return core_->name();
}

const breaker_options& circuit_breaker::options() const noexcept {
    return core_->options();
}

permit circuit_breaker::try_acquire() noexcept {
    return core_->acquire();
}

breaker_state circuit_breaker::state() const {
    return core_->state();
}

snapshot circuit_breaker::snapshot() const {
    return core_->snapshot();
}

subscription circuit_breaker::on_event(std::function<void(const event&)> callback) {
    if (!callback) return {};
    const auto& hub = core_->events();
    return {hub, hub->add(std::move(callback))};
}

std::error_code circuit_breaker::operate(detail::control_verb verb, std::string_view reason,
                                         milliseconds time) {
    if (!operation_fits(reason, time)) return make_error_code(errc::invalid);
    return core_->operate(verb, reason, time);
}

std::error_code circuit_breaker::trip(std::string_view reason, milliseconds open_for) {
    return operate(detail::control_verb::trip, reason, open_for);
}

std::error_code circuit_breaker::reset(std::string_view reason) {
    return operate(detail::control_verb::reset, reason, {});
}

std::error_code circuit_breaker::force_open(std::string_view reason, milliseconds expires) {
    return operate(detail::control_verb::force_open, reason, expires);
}

std::error_code circuit_breaker::disable(std::string_view reason, milliseconds expires) {
    return operate(detail::control_verb::disable, reason, expires);
}

std::error_code circuit_breaker::observe(std::string_view reason, milliseconds expires) {
    return operate(detail::control_verb::observe, reason, expires);
}

std::error_code circuit_breaker::resume(std::string_view reason) {
    return operate(detail::control_verb::resume, reason, {});
}

// ---- the stop of one call ----------------------------------------------------------------------

circuit_breaker::call_stop::call_stop(circuit_breaker& owner) : owner_(owner) {
    const auto after = owner.options().call_timeout;
    if (after.count() == 0) return;
    source_ = std::stop_source();
    timer_ = owner.core_->timer().start(after, source_);
}

circuit_breaker::call_stop::~call_stop() {
    if (timer_ != 0) owner_.core_->timer().cancel(timer_);
}

}  // namespace trinco
