// Whether what was seen is still so, asked for by many at once.
//
// A watch can lose an event, so that whoever waits or holds looks by itself now and then. Nearly
// always nothing has changed: its entries are there, and so is the one that is in its way. To know
// that takes a comparison or two, of which a transaction carries a hundred, where a look is a
// request of its own: ten thousand who wait ask for two hundred things every few seconds. Only when
// one of a transaction does not hold, those who share it look.
//
// The loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/loop.hpp"
#include "store/etcd/etcd_pauses.hpp"
#include "store/etcd/etcd_rpc.hpp"

namespace trinco::detail::etcd {

class etcd_glances {
public:
    // `link`: null once there is none any more.
    etcd_glances(loop& on, std::function<rpc*()> link) : on_(on), link_(std::move(link)) {}
    etcd_glances(const etcd_glances&) = delete;
    etcd_glances& operator=(const etcd_glances&) = delete;

    // Asks each time that `every` has passed, or up to half a second sooner, together with others.
    // `changed`: one of these, or of the others', does not hold any more, or must not be asked;
    // called once, as the last. While nobody answers it is silent. For as long as the op lives.
    [[nodiscard]] op keep(std::vector<comparison> still, boot_clock::duration every,
                          unique_function<void()> changed);
    void stop() noexcept;

private:
    using id = std::uint64_t;
    using due_map = std::multimap<boot_clock::time_point, id>;
    struct one {
        std::vector<comparison> still;
        boot_clock::duration every{};
        unique_function<void()> changed;
        due_map::iterator due;
        bool asked = false;  // and not in due_
    };

    void due_at(id n, one& o, boot_clock::time_point when);
    void arm();
    void ask_those_due();
    void ask(std::vector<id> together);
    void answered(id request, const std::vector<id>& together, std::error_code error, bool same);

    loop& on_;
    const std::function<rpc*()> link_;
    std::unordered_map<id, one> all_;
    due_map due_;
    id next_ = 1;
    op timer_;
    boot_clock::time_point armed_ = boot_clock::time_point::max();
    std::map<id, op> asking_;
    reading_pauses pauses_;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::etcd
