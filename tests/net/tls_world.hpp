// Certificates made for a test, and peers that speak TLS: OpenSSL's own program, which answers each
// line with the line reversed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trinco::detail::test {

// A folder with ca, other_ca (.pem, .key) and, signed by ca: server (for good.test and 127.0.0.1),
// old (the same, expired), client.
class certificates {
public:
    certificates() {
        std::string name = (std::filesystem::temp_directory_path() / "trinco-tls-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) return;
        folder_ = name;
        std::ofstream(folder_ / "make") << recipe;
        made_ = std::system(("cd " + name + " && sh -e ./make >log 2>&1").c_str()) == 0;
    }
    certificates(const certificates&) = delete;
    ~certificates() { std::filesystem::remove_all(folder_); }
    [[nodiscard]] bool made() const noexcept { return made_; }
    [[nodiscard]] std::string at(std::string_view name) const { return (folder_ / name).string(); }

private:
    static constexpr std::string_view recipe = R"(
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
for ca in ca other_ca; do
    key $ca
    openssl req -x509 -new -key $ca.key -subj "/CN=$ca" -days 3650 -out $ca.pem
done
cert() {
    key "$1"
    openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
    echo "subjectAltName=DNS:good.test,IP:127.0.0.1" >ext
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days "$2" \
        -extfile ext -out "$1.pem"
}
cert server 3650
cert old 0  # ends as it begins; OpenSSL from 3.4 on refuses less
cert client 3650
openssl ec -in client.key -aes128 -passout pass:x -out locked.key
)";
    std::filesystem::path folder_;
    bool made_ = false;
};

class tls_peer {
public:
    tls_peer(const certificates& of, const std::string& certificate,
             const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{"openssl",
                                       "s_server",
                                       "-accept",
                                       "127.0.0.1:0",
                                       "-rev",
                                       "-cert",
                                       of.at(certificate + ".pem"),
                                       "-key",
                                       of.at(certificate + ".key")};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<char*> raw;
        for (auto& word : words) raw.push_back(word.data());
        raw.push_back(nullptr);
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::dup2(::open("/dev/null", O_RDWR), STDIN_FILENO);
            ::dup2(STDIN_FILENO, STDERR_FILENO);
            ::execvp(raw[0], raw.data());
            ::_exit(127);
        }
        ::close(ends[1]);
        says_ = ends[0];
        wait_for_port();
    }
    tls_peer(const tls_peer&) = delete;
    ~tls_peer() {
        end();
        if (says_ >= 0) ::close(says_);
    }
    void end() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

private:
    // "ACCEPT 127.0.0.1:34567"
    void wait_for_port() {
        std::string said;
        std::array<char, 256> part{};
        for (;;) {
            const auto n = ::read(says_, part.data(), part.size());
            if (n <= 0) return;
            said.append(part.data(), static_cast<std::size_t>(n));
            const auto begin = said.find("ACCEPT ");
            if (begin == std::string::npos) continue;
            const auto end = said.find('\n', begin);
            if (end == std::string::npos) continue;
            const auto colon = said.rfind(':', end);
            port_ = static_cast<std::uint16_t>(std::stoi(said.substr(colon + 1, end - colon - 1)));
            return;
        }
    }

    ::pid_t pid_ = -1;
    int says_ = -1;
    std::uint16_t port_ = 0;
};

}  // namespace trinco::detail::test
