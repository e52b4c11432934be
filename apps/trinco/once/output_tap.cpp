#include "apps/trinco/once/output_tap.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "apps/trinco/exit_codes.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t held_back = 256 * 1'024;  // so much waits here before the command has to
constexpr std::size_t at_once = 4'096;          // PIPE_BUF: what poll promises does not block
constexpr int look_again = 20;                  // ms, whether nobody writes any more

}  // namespace

output_tap::~output_tap() {
    ending_ = true;
    end();
    if (from_ >= 0) ::close(from_);
    if (real_ >= 0) ::close(real_);
}

std::optional<problem> output_tap::open() {
    std::array<int, 2> ends{};
    std::fflush(stdout);
    real_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (real_ < 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return problem{exit_unavailable, "the command's output cannot be taken: " +
                                             std::generic_category().message(errno)};
    }
    from_ = ends[0];
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    return std::nullopt;
}

void output_tap::begin(std::size_t most) {
    ::dup2(real_, STDOUT_FILENO);
    carrier_ = std::thread([this, most] { carry(most); });
}

bool output_tap::read_some(std::size_t most) {
    std::array<char, 16 * 1'024> some{};
    const auto n = ::read(from_, some.data(), some.size());
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    if (n == 0) return false;
    const auto size = static_cast<std::size_t>(n);
    taken_.append(some.data(), std::min(size, most - taken_.size()));
    came_ += size;
    if (there_) waiting_.append(some.data(), size);
    return true;
}

void output_tap::write_some() {
    const auto n = ::write(STDOUT_FILENO, waiting_.data(), std::min(waiting_.size(), at_once));
    if (n > 0) {
        waiting_.erase(0, static_cast<std::size_t>(n));
    } else if (errno != EINTR && errno != EAGAIN) {
        there_ = false;
        waiting_.clear();
    }
}

void output_tap::carry(std::size_t most) {
    bool open = true;
    while (open || !waiting_.empty()) {
        const bool reads = open && (ending_ || waiting_.size() < held_back);
        std::array<::pollfd, 2> fds{::pollfd{reads ? from_ : -1, POLLIN, 0},
                                    ::pollfd{waiting_.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0}};
        ::poll(fds.data(), fds.size(), open && !reads ? look_again : -1);
        if (fds[0].revents != 0 && !read_some(most)) {
            open = false;
            complete_.set_value();
        }
        if (fds[1].revents != 0) write_some();
    }
}

void output_tap::take_rest() {
    ending_ = true;
    if (carrier_.joinable()) is_complete_.wait();
}

void output_tap::end() {
    if (carrier_.joinable()) carrier_.join();
}

}  // namespace trinco::program
