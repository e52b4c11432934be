// Requests that are answered once: sent when there is a way, repeated when that is safe, answered
// by their deadline. See consul_rpc.hpp for the rules.
//
// Each that is under way has a connection of its own, of which an agent by default takes 200 from
// one host: so few are sent at once, and the others wait here. What keeps sessions alive goes past
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>

#include "core/loop.hpp"
#include "net/http_client.hpp"
#include "store/consul/consul_way.hpp"
#include "store/member_way.hpp"

namespace trinco::detail::consul {

class consul_requests final : public way_user {
public:
    static constexpr std::size_t most = 1'000;
    static constexpr std::size_t at_once = 32;
    static constexpr std::size_t urgent_at_once = 16;  // besides

    consul_requests(loop& on, consul_way& way);
    ~consul_requests() override;

    struct request {
        consul_call what = {};
        bool changes = true;      // so it is sent again only when it was certainly not carried out
        bool repeatable = false;  // a change that may as well be made twice
        bool urgent = false;
    };
    // With 200, 404 or 409, as is_answer has it.
    [[nodiscard]] op start(request what, deadline by, completion<http_response> done);

    [[nodiscard]] bool waits() const override {
        return !usual_.waiting.empty() || !urgent_.waiting.empty();
    }
    void way_is_up() override;
    void way_is_hopeless(errc why) override;
    void drop_all();
    // What was answered cannot be read: the sentence of it.
    void cannot_read(errc code);
    // What the server last refused, or did not answer; empty since it did such a thing again.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_.sentence; }
    // Whether that is why something was told this error.
    [[nodiscard]] bool trouble_explains(const std::error_code& told) const;
    // Whether it would be told so because there is no way.
    [[nodiscard]] bool way_explains(const std::error_code& told) const;

private:
    struct one;
    void pump(std::uint64_t id);
    void over(one& r);
    struct waiting_line {
        std::size_t places = 0;
        std::size_t under_way = 0;
        std::set<std::uint64_t> waiting = {};  // for a way or a place; the oldest first
    };
    [[nodiscard]] waiting_line& line_of(const one& r) noexcept;
    void send(std::uint64_t id, one& r);
    void answered(std::uint64_t id, http_answer said);
    void repeat(std::uint64_t id, one& r);
    void half_over(std::uint64_t id);
    void leave(const one& r, const std::string& sentence);
    void too_late(std::uint64_t id);
    // In a turn of its own: whoever hears of it may end everything.
    void finish_later(std::uint64_t id, one& r, errc why);
    void finish(std::uint64_t id, std::error_code error) { finish(id, error, {}); }
    void finish(std::uint64_t id, std::error_code error, http_response reply);

    loop& loop_;
    consul_way& way_;
    std::unordered_map<std::uint64_t, std::unique_ptr<one>> all_;
    waiting_line usual_{at_once};
    waiting_line urgent_{urgent_at_once};
    std::uint64_t next_ = 0;
    deadline heard_{};  // the last answer of whatever kind
    struct trouble_of_request {
        std::string sentence = {};
        bool changes = false;
        errc code = errc::unavailable;
    };
    trouble_of_request trouble_;
    errc without_way_ = errc::unavailable;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::consul
