#include "trinco/guarded_write.hpp"

#include <algorithm>
#include <utility>

#include "core/lock/data_key.hpp"
#include "core/quoted.hpp"
#include "lock/lock_shell.hpp"

namespace trinco {
namespace {

using namespace std::chrono_literals;
using detail::lock_shell;
using detail::session_shell;

constexpr std::size_t most_changes = 64;
constexpr std::size_t longest_value = 128 * 1'024;
constexpr std::size_t most_bytes = 1'024 * 1'024;
constexpr std::chrono::seconds longest_keep = 366 * 24h;
constexpr auto slack = 500ms;  // beyond a deadline of the loop, for a busy machine

[[noreturn]] void refuse(std::string sentence) {
    throw lock_error(errc::invalid, "guarded write: " + std::move(sentence));
}

// `in_doubt`: an earlier commit of the same changes had no answer.
std::string sentence_of(const lock_shell* of, const std::error_code& error, bool in_doubt) {
    const std::string changed =
        in_doubt ? "an earlier commit, which had no answer, may have changed something"
                 : "nothing was changed";
    if (of == nullptr) return "guarded write: its lock is gone, and " + changed;
    std::string names;
    for (const auto& p : of->parts()) names += (names.empty() ? "'" : "', '") + p.name;
    std::string out = "guarded write under " + std::string(of->kind()) + " " + names + "': ";
    if (error == errc::lost) {
        return out + "the lock is not held any more, and " + changed +
               "; take it again, and read again what it guards";
    }
    if (error == errc::not_held) {
        return out + "the lock was not held when the write was made; take it first";
    }
    if (error == errc::conflict) {
        return out + "a key has another revision than the one told, and " + changed;
    }
    if (error == errc::invalid) return out + "there are no changes, or the store takes no such";
    return out + of->reason(error);
}

struct reading {
    detail::awaited told;
    std::optional<guarded_value> found;  // written before `told` is set
    detail::op request;                  // the loop's thread alone
};

void start(const std::shared_ptr<session_shell>& on, const std::shared_ptr<reading>& r,
           const std::string& key) {
    r->request = on->core()->store().read(
        key, on->on().now() + on->request_timeout(),
        [r](std::error_code error, std::optional<detail::record> found) {
            const auto ended = std::move(r->request);  // here, whoever drops the rest
            if (found) r->found = guarded_value{std::move(found->value), found->revision};
            r->told.set(error);
        });
}

std::error_code read(session& on, std::string_view key, std::optional<guarded_value>& found) {
    const auto shell = detail::lock_access::shell(on);
    if (!shell) return errc::invalid;
    if (const auto error = shell->check()) return error;
    if (shell->on_loop_thread()) return errc::would_deadlock;
    const auto r = std::make_shared<reading>();
    shell->on().post([shell, r, key = std::string(key)] { start(shell, r, key); });
    const auto patience = shell->request_timeout() + slack;
    if (!r->told.wait_until(std::chrono::steady_clock::now() + patience)) {
        r->told.set(errc::unavailable);
        shell->on().post([r] { r->request.cancel(); });
    }
    const auto error = r->told.error();
    if (!error) found = std::move(r->found);
    // Nothing was to happen, so nothing is unknown but the answer.
    return error == errc::unknown_outcome ? make_error_code(errc::unavailable) : error;
}

}  // namespace

guarded_write::guarded_write(const lock_handle& held)
    : of_(held.shell_), grant_(held.shell_->check() ? 0 : held.shell_->grant_number()) {}

guarded_write::~guarded_write() = default;
guarded_write::guarded_write(guarded_write&&) noexcept = default;
guarded_write& guarded_write::operator=(guarded_write&&) noexcept = default;

void guarded_write::add(std::string_view key, std::optional<std::string_view> value,
                        std::uint64_t if_revision) {
    if (auto bad = detail::check_data_key(key)) refuse(*std::move(bad));
    const bool twice = std::any_of(changes_.begin(), changes_.end(),
                                   [&](const detail::change& c) { return c.key == key; });
    if (twice) refuse("the key " + detail::quoted(key) + " is changed twice; once is allowed");
    if (changes_.size() == most_changes) refuse("more than 64 keys; at most 64 are allowed");
    const auto size = value ? value->size() : 0;
    if (size > longest_value) {
        refuse("the value of " + detail::quoted(key) + " has " + std::to_string(size) +
               " bytes; at most 131072 are allowed");
    }
    const auto all = bytes_ + key.size() + size;
    if (all > most_bytes) {
        refuse("keys and values have " + std::to_string(all) +
               " bytes together; at most 1048576 are allowed");
    }
    changes_.push_back(
        {std::string(key), value ? std::optional<std::string>(*value) : std::nullopt, if_revision});
    bytes_ = all;
}

guarded_write& guarded_write::put(std::string_view key, std::string_view value) {
    add(key, value, detail::any_revision);
    return *this;
}

guarded_write& guarded_write::put(std::string_view key, std::string_view value,
                                  std::uint64_t if_revision) {
    add(key, value, if_revision);
    return *this;
}

guarded_write& guarded_write::erase(std::string_view key) {
    add(key, std::nullopt, detail::any_revision);
    return *this;
}

guarded_write& guarded_write::erase(std::string_view key, std::uint64_t if_revision) {
    add(key, std::nullopt, if_revision);
    return *this;
}

guarded_write& guarded_write::keep_for(std::chrono::seconds d) {
    if (d < 0s || d > longest_keep) {
        refuse("keep_for is " + std::to_string(d.count()) +
               " s; allowed is 1 s to 366 days, and 0 for ever");
    }
    keep_ = d;
    return *this;
}

std::uint64_t guarded_write::commit() {
    std::error_code error;
    const auto revision = commit(error);
    if (error) throw lock_error(error, sentence_of(of_.lock().get(), error, in_doubt_));
    return revision;
}

std::uint64_t guarded_write::commit(std::error_code& error) {
    const auto of = of_.lock();
    error = of ? of->check() : make_error_code(grant_ == 0 ? errc::not_held : errc::lost);
    if (error) return 0;
    error = errc::invalid;
    if (changes_.empty()) return 0;
    const auto done = of->write(grant_, changes_, keep_);
    error = done.error;
    in_doubt_ = (in_doubt_ && error) || error == errc::unknown_outcome;
    return done.revision;
}

std::optional<guarded_value> read_guarded(session& on, std::string_view key) {
    if (auto bad = detail::check_data_key(key)) throw lock_error(errc::invalid, *std::move(bad));
    std::optional<guarded_value> found;
    if (const auto error = read(on, key, found)) {
        const auto of = detail::lock_access::shell(on);
        throw lock_error(error, "reading " + detail::quoted(key) + ": " +
                                    (of ? of->reason(error) : error.message()));
    }
    return found;
}

std::optional<guarded_value> read_guarded(session& on, std::string_view key,
                                          std::error_code& error) {
    std::optional<guarded_value> found;
    error = errc::invalid;
    if (!detail::check_data_key(key)) error = read(on, key, found);
    return found;
}

}  // namespace trinco
