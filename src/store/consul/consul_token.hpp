// The ACL token that goes with each request: given, or the one line of a file, which is read again
// when the server refuses what it held before. A file that cannot be read then, since it is being
// replaced, say, takes nothing away: what was read last stays.
#pragma once

#include <optional>
#include <string>

namespace trinco::detail::consul {

class consul_token {
public:
    // Both may be empty: then there is none, and the agent's own counts. The file counts only where
    // no token is given.
    consul_token(std::string given, std::string file);

    // Reads the file, unless that was done. False: it is of no use, and trouble() says why.
    [[nodiscard]] bool is_ready();
    [[nodiscard]] const std::string& value() const noexcept { return value_; }
    // The server refused this one: whether there is another one by now.
    [[nodiscard]] bool has_other_than(const std::string& refused);
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

private:
    void read();
    // What is wrong with the file; nothing: its token is the value now.
    [[nodiscard]] std::optional<std::string> read_file();

    std::string value_;
    std::string file_;  // empty: the value stands
    std::string trouble_;
};

// What a token is made of: 1 to 1,024 printable letters of ASCII without blanks.
[[nodiscard]] bool is_token(const std::string& text) noexcept;

}  // namespace trinco::detail::consul
