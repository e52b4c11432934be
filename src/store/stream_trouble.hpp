// Why there is no connection to a server, for people and for who decides what follows. Pure, but
// for a look at files that could not be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "net/tls_settings.hpp"

namespace trinco::detail {

struct stream_trouble {
    enum class kind_t : std::uint8_t {
        away,         // later it may be there
        misdirected,  // nor will it be there: no such server, no TLS, another name
        distrusted,   // nor will it: a certificate is not believed, theirs or ours
    };
    kind_t kind = kind_t::away;
    std::string sentence;  // without the server's name
};

// What the server is called.
struct server_words {
    std::string_view name;    // "etcd"
    std::string_view scheme;  // "etcd"; with TLS it has an s more
};

// `why` is of stream_factory or of a stream's first read; `tls`: as it was tried.
[[nodiscard]] stream_trouble trouble_of(std::error_code why, const std::optional<tls_settings>& tls,
                                        const server_words& words);
// It takes connections, and ends them without a word.
[[nodiscard]] std::string closes_sentence(const server_words& words);
// OpenSSL and others say that a file cannot be read, and not why. `otherwise`: why, if it can.
[[nodiscard]] std::string unreadable_file(const std::string& file, const std::string& otherwise);

}  // namespace trinco::detail
