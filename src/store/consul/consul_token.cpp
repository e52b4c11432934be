#include "store/consul/consul_token.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/quoted.hpp"
#include "net/own_descriptor.hpp"
#include "store/stream_trouble.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::size_t longest = 1'024;

}  // namespace

bool is_token(const std::string& text) noexcept {
    return !text.empty() && text.size() <= longest &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

consul_token::consul_token(std::string given, std::string file) : value_(std::move(given)) {
    if (value_.empty()) file_ = std::move(file);
}

bool consul_token::is_ready() {
    if (!file_.empty() && value_.empty()) read();
    return trouble_.empty();
}

bool consul_token::has_other_than(const std::string& refused) {
    if (!file_.empty() && value_ == refused) read();
    return trouble_.empty() && value_ != refused;
}

void consul_token::read() {
    const auto wrong = read_file();
    trouble_ = wrong && value_.empty() ? "the token is not known: " + *wrong : std::string();
}

std::optional<std::string> consul_token::read_file() {
    // A pipe would be waited for, by the thread of all.
    const own_descriptor file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct ::stat is {};
    if (file.get() >= 0 && ::fstat(file.get(), &is) == 0 && !S_ISREG(is.st_mode)) {
        return "the file " + detail::quoted(file_, 256) + " cannot be read: it is no regular file";
    }
    std::string text(longest + 3, '\0');
    const auto n = file.get() < 0 ? -1 : ::read(file.get(), text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (!is_token(text)) return unreadable_file(file_, "it is not one line with a token");
    value_ = std::move(text);
    return std::nullopt;
}

}  // namespace trinco::detail::consul
