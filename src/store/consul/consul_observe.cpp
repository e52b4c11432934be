// Observing the holder of a name: its key is watched, and read again now and then besides.
#include <algorithm>

#include "core/backoff.hpp"
#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration look_every = 5s;
constexpr backoff pauses{.first = 200ms, .longest = 2'000ms};

class observing : public conversation<observing, int> {
public:
    observing(std::string_view name, unique_function<void(std::optional<entry>)> seen)
        : name_(name), seen_(std::move(seen)) {}

    void start() {
        key_ = known().key_of(name_);
        watch_ = link().watch(
            {key_, false, false},
            [weak = weak_from_this()](const read_reply&) {
                const auto self = weak.lock();
                if (self && !self->over()) self->nudged();
            },
            [](std::error_code) {});  // the looks that are due must do
        read();
    }

private:
    void nudged() {
        if (reads_) {
            again_ = true;
        } else {
            read();
        }
    }
    void read() {
        timer_.cancel();
        reads_ = true;
        again_ = false;
        request_ =
            read_keys(known_ptr(), {key_}, known().on().now() + patience, then(&observing::found));
    }
    void found(std::error_code error, found_keys keys) {
        if (error) return failed();
        head_ = {};
        const auto& kv = keys[0];
        if (kv && !kv->session.empty() && kv->flags != semaphore_flags) head_ = *kv;
        const bool news = !told_ || told_->modify_index != head_.modify_index;
        if (!news || head_.key.empty()) return tell(news, {});
        request_ = link().facts(head_.session, known().on().now() + patience,
                                then(&observing::session_read));
    }
    void session_read(std::error_code error, std::optional<session_facts> facts) {
        if (error) return failed();
        tell(true, facts.value_or(session_facts()));
    }
    void tell(bool news, const session_facts& session) {
        reads_ = false;
        failures_ = 0;
        read_after(again_ ? boot_clock::duration() : look_every);
        if (!news) return;
        told_ = head_;
        if (head_.key.empty()) return seen_(std::nullopt);
        auto row = row_of(known(), head_, name_);
        add_session(row, session);
        seen_(std::move(row));
    }
    void failed() {
        reads_ = false;
        read_after(pauses.wait(failures_++, known().on().random()));
    }
    void read_after(boot_clock::duration wait) {
        timer_ = known().on().after(wait, then(&observing::read));
    }

    const std::string name_;
    unique_function<void(std::optional<entry>)> seen_;
    std::string key_;
    key_value head_;
    std::optional<key_value> told_;
    bool reads_ = false;
    bool again_ = false;
    std::uint32_t failures_ = 0;
    op watch_;
    op timer_;
};

}  // namespace

op observe_name(const claims_ptr& known, std::string_view name,
                unique_function<void(std::optional<entry>)> seen) {
    return observing::begin(
        known, deadline::max(), [](std::error_code, int) {}, name, std::move(seen));
}

}  // namespace trinco::detail::consul
