#include "apps/trinco/stores/breaker_trouble.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "apps/trinco/command_line/shell_words.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "net/event_loop.hpp"
#include "store/breaker_store.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_line = 2'000;  // of a URL, so that it can be pasted whole

std::string plain_reason(const std::error_code& error) {
    if (error == errc::unknown_outcome) return "no answer in time";
    if (error == errc::unavailable) return "it cannot be reached, or does not serve now";
    if (error == errc::conflict) return "something else than a breaker lives under its key";
    if (error == errc::not_supported) {
        return "a later version of Trinco has written this breaker, or the server lacks a command";
    }
    return error.message();
}

int code_for(const std::error_code& error) {
    // 75 is "refused by the breaker" here, and 64 a mistake of whoever typed: neither fits.
    const bool is_of_store = error == errc::conflict || error == errc::not_supported;
    return is_of_store ? exit_unavailable : exit_code_of(error);
}

}  // namespace

std::string store_words(const settings& with) {
    std::vector<std::string> words;
    const bool is_secret = is_redis(with.breakers_url) && holds_password(with.breakers_url);
    if (!is_secret) words.insert(words.end(), {"--breakers", with.breakers_url});
    if (with.name_space != "default") {
        words.insert(words.end(), {"--namespace", with.name_space});
    }
    return words.empty() ? std::string() : " " + shell_words(words, longest_line);
}

std::string trouble_of(const store& at) {
    const auto state = detail::store_access::state(at);
    if (!state || state->breakers() == nullptr) return {};
    // Shared, because the loop may come to it when nobody waits any more.
    const auto said = std::make_shared<std::string>();
    const auto failed = detail::run_and_wait(
        state->on(), 1s, [said, of = state->breakers()] { *said = of->trouble(); });
    return failed ? std::string() : *said;
}

std::string reason_text(const std::error_code& error, const std::string& trouble) {
    return trouble.empty() ? plain_reason(error) : trouble;
}

problem breaker_problem(const store& at, std::string_view action, asked for_what,
                        const std::error_code& error, std::string_view words) {
    std::string text = "could not " + std::string(action) + " at " + std::string(at.url()) + ": " +
                       reason_text(error, trouble_of(at));
    if (for_what == asked::to_change) {
        text += error == errc::unknown_outcome
                    ? "; it may have happened: look what holds now before doing it again"
                    : "; nothing was changed";
    }
    return {code_for(error), text + "; 'trinco doctor" + std::string(words) + "' says more"};
}

}  // namespace trinco::program
