// Who is alive, by the kernel's word: each session holds a lock on one byte of <file>-live through
// an open file description of its own, and is dead when nobody holds it. Unlike a pid, that means
// the same in every container, cannot be taken for another process's, and is inherited: a command
// that got the descriptor keeps the session alive until its last descendant is gone.
//
// The file stays empty; the byte's position is the session's number.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "store/local/local_file.hpp"

namespace trinco::detail {

class local_lives {
public:
    // Opens or makes the file, which whoever may use the database may use (`mode`). Throws
    // std::system_error.
    local_lives(std::string file, unsigned mode);

    // A descriptor that holds this byte. Throws when another holds it, which never happens with
    // numbers that are used once.
    [[nodiscard]] owned_descriptor hold(std::int64_t session) const;
    [[nodiscard]] bool is_alive(std::int64_t session) const;

    // The descriptors of this process's own sessions. Any thread.
    void keep(std::int64_t session, owned_descriptor held);
    void drop(std::int64_t session);
    void drop_all();
    // -1 when it is not one of ours.
    [[nodiscard]] int descriptor_of(std::int64_t session) const;
    [[nodiscard]] std::vector<std::int64_t> own() const;

private:
    [[nodiscard]] owned_descriptor open() const;

    std::string file_;
    owned_descriptor probe_;
    mutable std::mutex m_;
    std::map<std::int64_t, owned_descriptor> own_;
};

}  // namespace trinco::detail
