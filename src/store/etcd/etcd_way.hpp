// Which member of etcd is used now (member_way.hpp): one that answered its status, has a leader,
// and is believed.
#pragma once

#include <cstddef>

#include "core/loop.hpp"
#include "store/etcd/etcd_transport.hpp"
#include "store/member_way.hpp"

namespace trinco::detail::etcd {

class etcd_way final : private way_members, public member_way {
public:
    etcd_way(loop& on, transport& by) : member_way(on, *this), by_(by) {}

    [[nodiscard]] transport& by() noexcept { return by_; }

private:
    [[nodiscard]] std::size_t count() const noexcept override { return by_.endpoints(); }
    [[nodiscard]] bool connected(std::size_t member) const override {
        return by_.connected({member, lane::requests});
    }
    [[nodiscard]] op ask(std::size_t member, deadline by,
                         unique_function<void(member_word)> done) override;

    transport& by_;
};

}  // namespace trinco::detail::etcd
