// Other clients in the same queues, for tests with the name of a server as their parameter.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "etcd_real_store.hpp"
#include "tests/store/local/scratch_folder.hpp"

namespace trinco::detail::test {

// A process, and those that it begins, which end with the object.
class other_process {
public:
    explicit other_process(std::vector<std::string> words) {
        std::vector<char*> raw;
        for (auto& word : words) raw.push_back(word.data());
        raw.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::setpgid(0, 0);
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int nowhere = ::open("/dev/null", O_RDWR);
            for (const int to : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
                ::dup2(nowhere, to);
            }
            ::signal(SIGINT, SIG_DFL);
            ::execv(raw[0], raw.data());
            ::_exit(127);
        }
        ::setpgid(pid_, pid_);
    }
    other_process(const other_process&) = delete;
    other_process& operator=(const other_process&) = delete;
    ~other_process() {
        if (pid_ <= 0) return;
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    void interrupt() const { ::kill(pid_, SIGINT); }
    // Whether it has ended; then `code` is its exit code, -1 after a signal.
    bool ended(int* code = nullptr) {
        if (pid_ > 0) {
            int status = 0;
            if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
            pid_ = -1;
            code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        if (code != nullptr) *code = code_;
        return true;
    }

private:
    ::pid_t pid_ = -1;
    int code_ = -1;
};

class EtcdInterop : public EtcdStore {
protected:
    void SetUp() override { start(); }

    // etcdctl of the same version.
    [[nodiscard]] std::string etcdctl() const {
        const std::filesystem::path server(program_);
        return (server.parent_path() / ("etcdctl" + server.filename().string().substr(4))).string();
    }
    std::unique_ptr<other_process> run(std::vector<std::string> words) {
        words.insert(words.begin(), {etcdctl(), "--endpoints", server_->address()});
        return std::make_unique<other_process>(std::move(words));
    }
    [[nodiscard]] std::string file(const std::string& name) const {
        return (folder_.path() / name).string();
    }
    [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
        std::ifstream in(file(name));
        std::vector<std::string> out;
        for (std::string line; std::getline(in, line);) out.push_back(line);
        return out;
    }

    scratch_folder folder_;
};

}  // namespace trinco::detail::test
