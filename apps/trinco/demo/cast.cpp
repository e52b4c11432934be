#include "apps/trinco/demo/cast.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "apps/trinco/exit_codes.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

// All that the child needs between fork and exec, where nothing may be allocated.
struct preparation {
    std::vector<std::string> words;
    std::vector<std::string> environment;
    std::string program;
    std::vector<char*> argv;
    std::vector<char*> envp;
    int in = -1;
    int out = -1;
    int errors = -1;
    ::pid_t parent = -1;
};

std::vector<std::string> environment_of(const role& as) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        const bool replaced = std::any_of(as.environment.begin(), as.environment.end(),
                                          [&](const auto& own) { return own.first == name; });
        const bool decides = name.starts_with("TRINCO_") || name.starts_with("ETCD_");
        if (!replaced && !decides) all.emplace_back(text);
    }
    for (const auto& [name, value] : as.environment) all.push_back(name + "=" + value);
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

[[noreturn]] void become(const preparation& with) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != with.parent) ::_exit(exit_cannot_execute);  // it died before that
    ::setsid();
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) ::sigaction(number, &usual, nullptr);
    ::sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::dup2(with.in, STDIN_FILENO) < 0 || ::dup2(with.out, STDOUT_FILENO) < 0 ||
        ::dup2(with.errors, STDERR_FILENO) < 0) {
        ::_exit(exit_cannot_execute);
    }
    ::execve(with.program.c_str(), with.argv.data(), with.envp.data());
    ::_exit(exit_cannot_execute);
}

problem no_process() {
    return {exit_unavailable, "a process of the demonstration could not be started: " +
                                  std::generic_category().message(errno)};
}

void close_all(std::initializer_list<int> descriptors) {
    for (const int descriptor : descriptors) {
        if (descriptor >= 0) ::close(descriptor);
    }
}

int code_of(int status) {
    return WIFSIGNALED(status) ? exit_signal + WTERMSIG(status) : WEXITSTATUS(status);
}

milliseconds left_until(steady::time_point end) {
    return std::max(0ms, std::chrono::ceil<milliseconds>(end - steady::now()));
}

}  // namespace

std::variant<cast, problem> cast::start(const role& as) {
    preparation with;
    with.words = as.words;
    with.program = as.program.empty() ? "/proc/self/exe" : as.program.string();
    with.words.insert(with.words.begin(),
                      as.program.empty() ? "trinco" : as.program.filename().string());
    with.environment = environment_of(as);
    with.argv = pointers_to(with.words);
    with.envp = pointers_to(with.environment);
    with.parent = ::getpid();

    // A socket for its stdin: writing to a pipe that nobody reads would raise SIGPIPE.
    std::array<int, 2> in = {-1, -1};
    std::array<int, 2> out = {-1, -1};
    const char* errors = as.errors.empty() ? "/dev/null" : as.errors.c_str();
    with.errors = ::open(errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (with.errors < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0 ||
        ::pipe2(out.data(), O_CLOEXEC) != 0) {
        const problem why = no_process();
        close_all({with.errors, in[0], in[1], out[0], out[1]});
        return why;
    }
    with.in = in[1];
    with.out = out[1];
    ::fcntl(out[0], F_SETFL, O_NONBLOCK);
    const ::pid_t pid = ::fork();
    if (pid == 0) become(with);
    if (pid < 0) {
        const problem why = no_process();
        close_all({with.errors, in[0], in[1], out[0], out[1]});
        return why;
    }
    close_all({with.errors, in[1], out[1]});
    return cast(pid, in[0], out[0]);
}

cast::cast(cast&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::exchange(other.in_, -1)),
      out_(std::exchange(other.out_, -1)),
      closed_(other.closed_),
      text_(std::move(other.text_)),
      code_(other.code_) {}

cast& cast::operator=(cast&& other) noexcept {
    if (this != &other) {
        end();
        pid_ = std::exchange(other.pid_, -1);
        in_ = std::exchange(other.in_, -1);
        out_ = std::exchange(other.out_, -1);
        closed_ = other.closed_;
        text_ = std::move(other.text_);
        code_ = other.code_;
    }
    return *this;
}

cast::~cast() {
    end();
}

void cast::end() noexcept {
    if (pid_ > 0 && !code_) {
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    pid_ = -1;
    close_all({std::exchange(in_, -1), std::exchange(out_, -1)});
}

void cast::fill() {
    std::array<char, 4096> block{};
    while (!closed_) {
        const ::ssize_t got = ::read(out_, block.data(), block.size());
        if (got > 0) {
            text_.append(block.data(), static_cast<std::size_t>(got));
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            closed_ = true;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

std::optional<std::string> cast::next_line() {
    std::size_t end = text_.find('\n');
    if (end == std::string::npos) {
        fill();
        end = text_.find('\n');
    }
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
}

std::optional<std::string> cast::next_line(milliseconds limit) {
    const auto end = steady::now() + limit;
    while (true) {
        if (auto line = next_line()) return line;
        const milliseconds left = left_until(end);
        if (closed_ || left == 0ms) return std::nullopt;
        ::pollfd readable{out_, POLLIN, 0};
        ::poll(&readable, 1, static_cast<int>(left.count()));
    }
}

bool cast::silent() const noexcept {
    return closed_ && text_.find('\n') == std::string::npos;
}

bool cast::say(std::string_view line) {
    const std::string text = std::string(line) + "\n";
    return ::send(in_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<::ssize_t>(text.size());
}

void cast::signal(int number) const {
    if (pid_ > 0 && !code_) ::kill(pid_, number);
}

std::optional<int> cast::ended() {
    if (code_ || pid_ < 0) return code_;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) code_ = code_of(status);
    return code_;
}

std::optional<int> cast::ended(milliseconds limit) {
    const auto end = steady::now() + limit;
    while (!ended() && steady::now() < end) {
        const ::timespec pause{0, 2'000'000};
        ::nanosleep(&pause, nullptr);
    }
    return code_;
}

}  // namespace trinco::program::demo
