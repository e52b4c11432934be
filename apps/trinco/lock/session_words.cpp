#include "apps/trinco/lock/session_words.hpp"

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "trinco/error.hpp"

namespace trinco::program {

std::string without_name(std::string_view sentence) {
    constexpr std::string_view name = "trinco: ";
    if (sentence.starts_with(name)) sentence.remove_prefix(name.size());
    return std::string(sentence);
}

std::string renewal_trouble(const store& at) {
    return locks_trouble(at, errc::unavailable);
}

void say_longer_ttl(const store& at, const session& of, std::chrono::seconds asked) {
    if (of.ttl() <= asked) return;
    const auto granted = duration_words(of.ttl());
    say("the store " + std::string(at.url()) + " grants no TTL below " + granted +
        ": what is held stays taken for " + granted + ", and not for " + duration_words(asked) +
        ", when this machine dies");
}

}  // namespace trinco::program
