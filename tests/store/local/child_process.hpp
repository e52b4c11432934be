// A child of a test: started with arguments, read line by line, killed when the test says so, and
// at the latest when it ends.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace trinco::detail::test {

class child_process {
public:
    // The program beside the test, or the one that the first argument names with a slash.
    child_process(const std::string& program, std::vector<std::string> arguments) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
        arguments.insert(arguments.begin(), program);
        std::vector<char*> words;
        for (auto& a : arguments) words.push_back(a.data());
        words.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ < 0) fail("fork");
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(ends[1], STDOUT_FILENO);
            ::execvp(words[0], words.data());
            ::_exit(127);
        }
        ::close(ends[1]);
        out_ = ends[0];
    }
    ~child_process() {
        signal(SIGKILL);
        wait();
        ::close(out_);
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;

    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }
    void signal(int number) const noexcept {
        if (pid_ > 0) ::kill(pid_, number);
    }
    // The exit status as of a shell: 128 + n for a signal.
    int wait() noexcept {
        if (pid_ <= 0) return status_;
        int raw = 0;
        while (::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
        }
        pid_ = 0;
        status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
        return status_;
    }
    // The next line that the child writes; nothing at its end or after that long.
    std::optional<std::string> line(std::chrono::milliseconds limit) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (true) {
            if (const auto at = text_.find('\n'); at != std::string::npos) {
                auto found = text_.substr(0, at);
                text_.erase(0, at + 1);
                return found;
            }
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                end - std::chrono::steady_clock::now());
            ::pollfd p{out_, POLLIN, 0};
            if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) == 0) return {};
            char some[4'096];
            const auto n = ::read(out_, some, sizeof some);
            if (n <= 0) return {};
            text_.append(some, static_cast<std::size_t>(n));
        }
    }

private:
    [[noreturn]] static void fail(const char* what) {
        throw std::system_error(errno, std::generic_category(), what);
    }

    ::pid_t pid_ = 0;
    int out_ = -1;
    int status_ = -1;
    std::string text_;
};

}  // namespace trinco::detail::test
