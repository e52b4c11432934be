// The doorbell of one store object: a datagram socket beside the file, at which others ring when
// there is something to look at. A ring says nothing else, so one that cannot be delivered because
// another is still unread is not missed.
//
// The socket is a file, so that it reaches processes in other network namespaces, and it is named
// through its folder's descriptor, so that its path may be longer than an address allows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/local/local_file.hpp"

namespace trinco::detail {

class local_mail {
public:
    // Whether it will be possible to make one; throws as the constructor does.
    static void check(const std::string& folder, const std::string& name);
    // Binds the socket of this name in the folder; whoever may write to the database may ring.
    // Throws std::system_error.
    local_mail(const std::string& folder, std::string name, const local_rights& rights);
    ~local_mail();
    local_mail(const local_mail&) = delete;
    local_mail& operator=(const local_mail&) = delete;

    // To poll for reading.
    [[nodiscard]] int descriptor() const noexcept { return socket_; }
    // Takes every ring; whether there was one.
    bool take_all() noexcept;
    // Never waits. False when nobody is bound to that name any more; its file is then removed.
    bool ring(const std::string& other) noexcept;
    // Removes the socket's file; afterwards nobody can ring here. Any thread.
    void remove() const noexcept;
    // Removes what killed processes left in the folder: sockets whose name begins so, that were
    // made more than a minute ago and that nobody is bound to. Their names.
    std::vector<std::string> remove_dead(std::string_view beginning) noexcept;

private:
    [[nodiscard]] bool is_dead(const std::string& other) const noexcept;

    std::string name_;
    int folder_ = -1;
    int socket_ = -1;
};

}  // namespace trinco::detail
