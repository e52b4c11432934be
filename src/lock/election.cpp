#include "trinco/election.hpp"

#include "lock/make_shell.hpp"

namespace trinco {
namespace {

constexpr std::size_t longest_value = 4'096;

bool is_sound(std::string_view value) {
    return !value.empty() && value.size() <= longest_value;
}

[[noreturn]] void refuse(const std::string& name, std::string_view value) {
    throw lock_error(errc::invalid, "election '" + name + "': a value of " +
                                        std::to_string(value.size()) +
                                        " bytes; 1 to 4096 are allowed");
}

}  // namespace

election::election(session& on, std::string_view name)
    : lock_handle(detail::make_shell(
          on, "election", {{std::string(name), detail::claim_kind::exclusive, 0}}, {}, true)) {}

void election::campaign(std::string_view value, std::stop_token stop) {
    if (!is_sound(value)) refuse(name(), value);
    describe(value);
    wait(std::move(stop));
}

void election::campaign(std::string_view value, std::stop_token stop, std::error_code& error) {
    error = errc::invalid;
    if (!is_sound(value)) return;
    describe(value);
    wait(std::move(stop), error);
}

bool election::stand(std::string_view value, std::chrono::nanoseconds d) {
    if (!is_sound(value)) refuse(name(), value);
    describe(value);
    return wait_for(d);
}

bool election::stand(std::string_view value, std::chrono::nanoseconds d, std::error_code& error) {
    error = errc::invalid;
    if (!is_sound(value)) return false;
    describe(value);
    return wait_for(d, error);
}

void election::async_campaign(std::string_view value, std::function<void(std::error_code)> done) {
    if (!is_sound(value)) refuse(name(), value);
    describe(value);
    begin(std::move(done));
}

void election::proclaim(std::string_view value) {
    std::error_code error;
    if (!is_sound(value)) refuse(name(), value);
    publish(value, error);
    if (error) raise(error);
}

void election::proclaim(std::string_view value, std::error_code& error) {
    error = errc::invalid;
    if (is_sound(value)) publish(value, error);
}

void election::resign() noexcept {
    std::error_code ignored;
    resign(ignored);
}

}  // namespace trinco
