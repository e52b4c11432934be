// The token of a user, fetched when somebody needs one. Without a user there is nothing to fetch.
#pragma once

#include <string>
#include <string_view>

#include "core/loop.hpp"
#include "store/etcd/etcd_way.hpp"

namespace trinco::detail::etcd {

class etcd_login {
public:
    // `changed`: there is a token now, or it was refused.
    etcd_login(loop& on, etcd_way& way, std::string user, std::string password,
               unique_function<void()> changed);
    etcd_login(const etcd_login&) = delete;
    etcd_login& operator=(const etcd_login&) = delete;

    [[nodiscard]] bool has_user() const noexcept { return !user_.empty(); }
    // Whether requests can be sent, with token(), which may be empty.
    [[nodiscard]] bool is_ready() const noexcept { return ready_; }
    [[nodiscard]] const std::string& token() const noexcept { return token_; }
    // Refused within the last 5 s: a password costs the server a tenth of a second.
    [[nodiscard]] bool is_refused() const;
    // Fetches one, when the way is up and nothing is under way; else nothing happens.
    void want();
    // The server does not take this token any more. Ignored when there is a newer one.
    void expired(const std::string& used);
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

private:
    void answered(std::size_t endpoint, const wire_status& status, const std::string& reply);

    loop& loop_;
    etcd_way& way_;
    const std::string user_;
    const std::string password_;
    unique_function<void()> changed_;
    bool ready_ = false;
    bool asking_ = false;
    std::size_t asked_ = 0;  // which member
    std::string token_;
    std::string trouble_;
    deadline refused_until_{};
    op ask_;
};

}  // namespace trinco::detail::etcd
