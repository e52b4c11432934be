// Requests that are answered once: sent when there is a way and a token, repeated when that is
// safe, answered by their deadline. See etcd_rpc.hpp for the rules.
//
// So many are sent at once that the server is never idle, and no more: the others wait here, where
// they cost little memory and are certainly not carried out when their time is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "core/loop.hpp"
#include "store/etcd/etcd_login.hpp"
#include "store/etcd/etcd_way.hpp"

namespace trinco::detail::etcd {

class etcd_requests final : public way_user {
public:
    static constexpr std::size_t most = 20'000;
    static constexpr std::size_t at_once = 256;

    etcd_requests(loop& on, etcd_way& way, etcd_login& login);
    ~etcd_requests() override;

    struct request {
        const char* method = "";
        std::string bytes = {};
        bool changes = true;    // so it is sent again only when it was certainly not carried out
        bool harmless = false;  // what it may have left ends by itself, so that nobody need know
    };
    struct answer {
        std::string bytes = {};
        // Of a change whose outcome is unknown: it was answered, and nothing of it lands later.
        bool settled = false;
    };
    [[nodiscard]] op start(request what, deadline by, completion<answer> done);

    void login_changed() { pump_all(); }
    [[nodiscard]] bool waits() const override { return !waiting_.empty(); }
    void way_is_up() override;
    void way_is_hopeless(errc why) override;
    void drop_all();
    // What the server last refused, or did not answer; empty since it did such a thing again.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_.sentence; }
    // Whether that is why something was told this error.
    [[nodiscard]] bool trouble_explains(const std::error_code& told) const;
    // Whether it would be told so because there is no way.
    [[nodiscard]] bool way_explains(const std::error_code& told) const;

private:
    struct one;
    void pump_all();
    void pump(std::uint64_t id);
    void over(one& r);
    void send(std::uint64_t id, one& r);
    void answered(std::uint64_t id, const wire_status& status, std::string reply);
    void repeat(std::uint64_t id, one& r);
    void half_over(std::uint64_t id);
    void too_late(std::uint64_t id);
    void have_trouble(const one& r, errc code, std::string sentence, bool settled = false);
    void finish(std::uint64_t id, std::error_code error) { finish(id, error, {}); }
    void finish(std::uint64_t id, std::error_code error, answer reply);

    loop& loop_;
    etcd_way& way_;
    etcd_login& login_;
    std::unordered_map<std::uint64_t, std::unique_ptr<one>> all_;
    std::set<std::uint64_t> waiting_;  // for a way, a token or others; the oldest first
    std::size_t under_way_ = 0;
    std::uint64_t next_ = 0;
    deadline heard_{};  // the last answer of whatever kind
    struct trouble_of_request {
        std::string sentence = {};
        std::string_view method = {};
        bool changes = false;
        errc code = errc::unavailable;
        bool settled = false;
    };
    trouble_of_request trouble_;
    errc without_way_ = errc::unavailable;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::etcd
