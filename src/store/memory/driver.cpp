#include <unistd.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/names.hpp"
#include "core/quoted.hpp"
#include "store/driver.hpp"
#include "store/memory/memory_breakers.hpp"
#include "store/memory/memory_locks.hpp"
#include "trinco/memory.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t servers_max = 1'024;

// The servers of one memory() value, which live as long as it: a store may be closed and opened
// again.
class memory_driver final : public store_driver {
public:
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"memory"};
        return all;
    }

    [[nodiscard]] opened_stores open(const store_url& url, event_loop& on,
                                     std::string_view name_space,
                                     const breaker_identity& who) override {
        // A parent's thread may have held a mutex of these when the process was forked.
        if (::getpid() != owner_) {
            throw open_error(
                errc::forked,
                "the memory driver was made before fork; make another one in the child");
        }
        // The words are those of a name that becomes part of nothing but this map.
        if (!url.rest.empty() && check_namespace(url.rest)) {
            throw open_error(errc::invalid,
                             "the store's URL is " + detail::quoted(url.shown) +
                                 ", but after memory: there is nothing, or a name of 1 "
                                 "to 64 characters of A-Z a-z 0-9 . _ : -");
        }
        const std::lock_guard hold(m_);
        auto breakers = shared(breakers_, {url.rest, std::string(name_space)});
        auto locks = shared(locks_, url.rest);
        return {std::make_unique<memory_breakers>(on, std::move(breakers), who),
                std::make_unique<memory_locks>(on, std::move(locks))};
    }

private:
    // Under m_.
    template <class Key, class Server>
    static std::shared_ptr<Server> shared(std::map<Key, std::shared_ptr<Server>>& of,
                                          const Key& key) {
        if (const auto known = of.find(key); known != of.end()) return known->second;
        if (of.size() >= servers_max) {
            throw open_error(errc::busy, "this memory driver keeps " + std::to_string(servers_max) +
                                             " stores already; use fewer names or namespaces");
        }
        return of.emplace(key, std::make_shared<Server>()).first->second;
    }

    const ::pid_t owner_ = ::getpid();
    std::mutex m_;
    std::map<std::pair<std::string, std::string>, std::shared_ptr<memory_breaker_server>>
        breakers_;                                                      // by name and namespace
    std::map<std::string, std::shared_ptr<memory_lock_server>> locks_;  // by name
};

}  // namespace
}  // namespace trinco::detail

namespace trinco::drivers {

driver memory() {
    return driver(std::make_shared<detail::memory_driver>());
}

}  // namespace trinco::drivers
