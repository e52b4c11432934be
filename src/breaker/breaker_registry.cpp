#include "trinco/breaker_registry.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "breaker/access.hpp"
#include "breaker/fleet_sync.hpp"
#include "core/names.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"

namespace trinco {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_possible = 1'000'000;

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept {
        return std::hash<std::string_view>()(s);
    }
};

void throw_if(const breaker_fault& why) {
    if (why.code) throw breaker_error(why.code, why.message);
}

// How long get() may wait for the store's thread, which only has to take a turn.
milliseconds patience(const breaker_options& o) {
    return o.store_timeout * 10;
}

// How long the destructor waits for it, after which the rest is left to it.
constexpr milliseconds closing_patience = std::chrono::seconds(2);

}  // namespace

struct breaker_registry::impl {
    registry_options options;
    mutable std::shared_mutex m;
    std::unordered_map<std::string, breaker_options, text_hash, std::equal_to<>> configured;
    std::unordered_map<std::string, std::unique_ptr<circuit_breaker>, text_hash, std::equal_to<>>
        breakers;
    std::shared_ptr<detail::store_state> store;  // null: this process alone
    // Made, used and ended on the loop's thread. This is its one owner: who refers to it from what
    // he posts does so weakly, or a copy that he forgot would end it on a thread of the caller's.
    std::shared_ptr<detail::fleet_sync> sync;
    detail::op last_words;  // what it still sends; that thread's, too

    [[nodiscard]] const breaker_options& options_of(std::string_view name) const {
        const auto mine = configured.find(name);
        return mine == configured.end() ? options.defaults : mine->second;
    }
    void check_options() const;
    void open_sync();
    void join(circuit_breaker& b) const;
    [[nodiscard]] bool close();
    void leave();
};

void breaker_registry::impl::check_options() const {
    if (const auto wrong = validate(options.defaults)) {
        throw breaker_error(make_error_code(errc::invalid),
                            "the defaults of the registry: " + wrong->message());
    }
    if (options.most < 1 || options.most > most_possible) {
        throw breaker_error(
            make_error_code(errc::invalid),
            "most is " + std::to_string(options.most) + "; allowed is 1 to 1000000 breakers");
    }
}

void breaker_registry::impl::open_sync() {
    if (!store) throw breaker_error(make_error_code(errc::invalid), "the store is empty");
    if (const auto error = store->check()) throw breaker_error(error, error.message());
    if (store->breakers() == nullptr) {
        throw breaker_error(make_error_code(errc::not_supported),
                            "the store " + store->url() + " keeps no breakers");
    }
    // What the loop may still run when this has given up owns all it uses.
    auto made = std::make_shared<std::shared_ptr<detail::fleet_sync>>();
    const auto error =
        detail::run_and_wait(store->on(), patience(options.defaults), [state = store, made] {
            *made =
                std::make_shared<detail::fleet_sync>(state->on(), *state->breakers(), state->who());
        });
    if (error) {
        // It ends where it began, should it come to be made.
        store->on().post([made = std::move(made), state = store] { made->reset(); });
        throw breaker_error(error, "the store's thread does not answer");
    }
    sync = std::move(*made);
}

void breaker_registry::impl::join(circuit_breaker& b) const {
    if (!store) return;
    auto& core = detail::breaker_access::core(b);
    (void)detail::run_and_wait(store->on(), patience(options.defaults),
                               [state = store, weak = std::weak_ptr(sync), &core] {
                                   const auto with = weak.lock();  // else the registry has left
                                   if (with && !core.in_fleet())
                                       core.join_fleet(state->on(), *with);
                               });
}

// On the loop's thread, or where none runs: every membership ends before the conversation.
void breaker_registry::impl::leave() {
    last_words.cancel();
    for (auto& [name, b] : breakers) detail::breaker_access::core(*b).leave_fleet();
    sync.reset();
}

// Sends what was not sent, then leaves, all on the loop. False: its thread is in somebody's
// callback, or does not exist in this process, where the mutexes of the parent's threads are not to
// be touched; then everything has to stay. What is posted here comes before what the destructor
// posts then.
bool breaker_registry::impl::close() {
    if (store->check() == errc::forked) return false;
    struct ending {
        std::mutex m;
        std::condition_variable arrived;
        bool sent = false;
    };
    const auto end = std::make_shared<ending>();
    const auto bound = options.defaults.store_timeout;
    const auto started = detail::run_and_wait(store->on(), bound * 2, [this, end, bound] {
        last_words = sync->stop(store->on().now() + bound, [end](std::error_code, int) {
            const std::lock_guard hold(end->m);
            end->sent = true;
            end->arrived.notify_all();
        });
    });
    if (!started && !store->on().on_thread()) {
        std::unique_lock hold(end->m);
        end->arrived.wait_for(hold, bound * 2, [&end] { return end->sent; });
    }
    const auto left = detail::run_and_wait(store->on(), closing_patience, [this] { leave(); });
    if (!left) return true;
    // A loop that has ended runs nothing of ours either; one that is about to end still may.
    if (left == errc::unknown_outcome || !store->on().on_thread()) return false;
    leave();
    return true;
}

breaker_registry::breaker_registry(const registry_options& options)
    : impl_(std::make_unique<impl>()) {
    impl_->options = options;
    impl_->check_options();
}

breaker_registry::breaker_registry(const store& over, const registry_options& options)
    : breaker_registry(options) {
    impl_->store = detail::store_access::state(over);
    impl_->open_sync();
}

breaker_registry::~breaker_registry() {
    if (!impl_->sync || impl_->close()) return;
    const auto store = impl_->store;
    if (store->check()) {  // no thread comes by any more, and ours must not touch it
        static_cast<void>(impl_.release());
    } else {  // its thread ends it when it comes by, after all that was posted before
        store->on().post([late = std::move(impl_)] { late->leave(); });
    }
}

void breaker_registry::configure(std::string_view name, const breaker_options& options) {
    std::string key(name);
    throw_if(detail::check_breaker(key, options));
    const std::unique_lock hold(impl_->m);
    if (const auto made = impl_->breakers.find(name);
        made != impl_->breakers.end() && !(made->second->options() == options)) {
        throw breaker_error(make_error_code(errc::conflict),
                            "breaker \"" + key + "\" exists with other options");
    }
    if (!impl_->configured.contains(name) && impl_->configured.size() >= impl_->options.most) {
        throw breaker_error(
            make_error_code(errc::busy),
            "more than " + std::to_string(impl_->options.most) + " breakers configured");
    }
    impl_->configured.insert_or_assign(std::move(key), options);
}

circuit_breaker* breaker_registry::find(std::string_view name) const {
    const std::shared_lock hold(impl_->m);
    const auto made = impl_->breakers.find(name);
    return made == impl_->breakers.end() ? nullptr : made->second.get();
}

circuit_breaker* breaker_registry::get(std::string_view name, breaker_fault& why) {
    why = {};
    if (auto* const known = find(name)) return known;
    if (impl_->store) {
        if (const auto error = impl_->store->check()) {
            why = {error, error.message()};
            return nullptr;
        }
    }
    std::string key(name);
    if (auto wrong = detail::check_breaker_name(key)) {
        why = {make_error_code(errc::invalid), std::move(*wrong)};
        return nullptr;
    }
    circuit_breaker* made = nullptr;
    {
        const std::unique_lock hold(impl_->m);
        if (const auto known = impl_->breakers.find(name); known != impl_->breakers.end()) {
            return known->second.get();
        }
        if (impl_->breakers.size() >= impl_->options.most) {
            why = {make_error_code(errc::busy), "breaker \"" + key +
                                                    "\" would be one more than the registry's " +
                                                    std::to_string(impl_->options.most)};
            return nullptr;
        }
        auto fresh = detail::breaker_access::make(key, impl_->options_of(name));
        made = fresh.get();
        impl_->breakers.emplace(std::move(key), std::move(fresh));
    }
    impl_->join(*made);
    return made;
}

circuit_breaker& breaker_registry::get(std::string_view name) {
    breaker_fault why;
    auto* const b = get(name, why);
    throw_if(why);
    return *b;
}

std::vector<std::string> breaker_registry::names() const {
    std::vector<std::string> all;
    {
        const std::shared_lock hold(impl_->m);
        all.reserve(impl_->breakers.size());
        for (const auto& [name, b] : impl_->breakers) all.push_back(name);
    }
    std::sort(all.begin(), all.end());
    return all;
}

std::size_t breaker_registry::size() const {
    const std::shared_lock hold(impl_->m);
    return impl_->breakers.size();
}

store_report breaker_registry::report() const {
    if (!impl_->sync) return {};
    store_report r = impl_->sync->report(detail::boot_clock::now());
    r.store = impl_->store->url();
    return r;
}

}  // namespace trinco
