// Watches: blocking queries that are asked again and again, each answer being the state. See
// consul_rpc.hpp for the rules.
//
// Each that is asked keeps a connection, of which an agent by default takes 200 from one host. So
// at most 96 are asked at once. Where there are more they take turns of a second: then news come
// late, as they may; who waits looks by itself, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <unordered_map>

#include "core/loop.hpp"
#include "net/http_client.hpp"
#include "store/consul/consul_rpc.hpp"
#include "store/consul/consul_way.hpp"
#include "store/member_way.hpp"

namespace trinco::detail::consul {

class consul_watches final : public way_user {
public:
    static constexpr std::size_t most = 1'000;
    static constexpr std::size_t at_once = 96;

    consul_watches(loop& on, consul_way& way);
    ~consul_watches() override;

    [[nodiscard]] op start(read_request what, rpc::on_news news, rpc::on_over over);

    [[nodiscard]] bool waits() const override { return !due_.empty(); }
    void way_is_up() override;
    void way_is_hopeless(errc why) override;
    void drop_all();
    // The sentence, if it is why a watch ended with this error; else empty.
    [[nodiscard]] std::string why(const std::error_code& told) const {
        return told == trouble_.code ? trouble_.sentence : std::string();
    }

private:
    struct one;
    void later(std::uint64_t id, one& w, boot_clock::duration pause);
    void ask_due();
    void ask(std::uint64_t id, one& w);
    void give_way();
    void move();
    void answered(std::uint64_t id, http_answer said);
    void heard(std::uint64_t id, const http_response& response);
    void troubled(std::uint64_t id, const http_answer& said);
    void stop_asking(one& w);
    void drop(std::uint64_t id);
    void finish(std::uint64_t id, errc why);
    // In a turn of its own: whoever hears of an end may end everything.
    void finish_due(errc why);

    loop& loop_;
    consul_way& way_;
    std::unordered_map<std::uint64_t, std::shared_ptr<one>> all_;
    std::uint64_t next_ = 1;
    std::deque<std::uint64_t> due_;  // to be asked, when there is a way and a place
    std::size_t under_way_ = 0;
    op turn_;  // while is_turning_
    bool is_turning_ = false;
    boot_clock::time_point moved_{};
    op moving_;
    struct end {
        std::string sentence = {};
        errc code = errc::invalid;
    };
    end trouble_;  // the last one, until a watch is answered
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::consul
