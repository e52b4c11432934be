// Where a machine keeps what it knows of one server: three namespaces of its store local:, which no
// other server and no other database of the same one has a part in. Pure.
//
//   shop:stand-in:1f3c9a02, shop:mirror:1f3c9a02, shop:server:1f3c9a02
//
// The number is of the server: 32 bits, FNV-1a, of its URL without user, password and options but
// db=, and so the same for everybody who names the server alike. Another spelling of it (with the
// port that is the default) is another server. A namespace that is too long to be lengthened is
// hashed with it: stand-in:0123456789abcdef, 64 bits. None ever changes: a file outlives the
// program's versions.
#pragma once

#include <string>
#include <string_view>

namespace trinco::program {

struct mirror_names {
    std::string stand_in;  // decides while the server is away
    std::string memory;    // what the server said last
    std::string server;    // the options that it said, and whether it can be asked
};

// `url`: of a server, with its secrets.
[[nodiscard]] mirror_names mirror_names_of(std::string_view url, std::string_view name_space);

}  // namespace trinco::program
