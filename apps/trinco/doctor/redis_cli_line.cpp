#include "apps/trinco/doctor/redis_cli_line.hpp"

#include "apps/trinco/command_line/shell_words.hpp"

namespace trinco::program::doctor {
namespace {

constexpr std::size_t longest = 4'000;  // a line to be pasted is of no use when it is cut

void add_tls(const trinco::detail::tls_settings& tls, std::vector<std::string>& to) {
    to.emplace_back("--tls");
    if (!tls.ca_file.empty()) to.insert(to.end(), {"--cacert", tls.ca_file});
    if (!tls.certificate_file.empty()) to.insert(to.end(), {"--cert", tls.certificate_file});
    if (!tls.key_file.empty()) to.insert(to.end(), {"--key", tls.key_file});
    if (!tls.verify) to.emplace_back("--insecure");
}

}  // namespace

std::string redis_cli_line(const trinco::detail::redis_target& target,
                           const trinco::detail::stream_address& server,
                           const std::vector<std::string>& command) {
    std::vector<std::string> words = {"redis-cli"};
    if (server.kind == trinco::detail::stream_address::kind_t::local) {
        words.insert(words.end(), {"-s", server.path});
    } else {
        words.insert(words.end(), {"-h", server.host, "-p", std::to_string(server.port)});
    }
    if (target.database != 0) words.insert(words.end(), {"-n", std::to_string(target.database)});
    if (target.tls) add_tls(*target.tls, words);
    if (!target.login.user.empty()) words.insert(words.end(), {"--user", target.login.user});
    if (!target.login.password.empty()) words.emplace_back("--askpass");
    words.insert(words.end(), command.begin(), command.end());
    return shell_words(words, longest);
}

}  // namespace trinco::program::doctor
