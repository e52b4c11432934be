// Observing the holder of a name: the head of its queue is read, then its key is watched; while
// nobody is there, whatever is put under the name is. Read again now and then besides.
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration look_every = 5s;
constexpr boot_clock::duration patience = 5s;  // with one reading
constexpr boot_clock::duration retry_after = 300ms;

class observing : public conversation<observing, int> {
public:
    observing(std::string name, unique_function<void(std::optional<entry>)> seen)
        : name_(std::move(name)), seen_(std::move(seen)) {}

    void start() { read(); }

private:
    void read_later(boot_clock::duration wait) {
        timer_ = known().on().after(wait, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self && !self->over() && self->known().link() != nullptr) self->read();
        });
    }
    void nudged() {
        if (over()) return;
        if (reads_) {
            again_ = true;
        } else {
            read();
        }
    }

    void read() {
        timer_ = op();
        reads_ = true;
        again_ = false;
        range_request head;
        head.keys = queue_of(name_);
        head.order = range_request::order_t::ascend;
        head.by = range_request::by_t::create_revision;
        head.limit = depth_;
        txn_request ask;
        ask.success.emplace_back(head);
        request_ = link().txn(ask, known().on().now() + patience, then(&observing::was_read));
    }

    void was_read(std::error_code error, txn_reply reply) {
        if (error) return failed();
        const auto& all = reply.replies.at(0);
        head_ = {};
        for (const auto& kv : all.kvs) {
            const auto place = entry_of(kv);
            if (!place || place->name != name_) continue;
            head_ = kv;
            break;
        }
        if (head_.key.empty() && all.more) {
            depth_ = depth_ >= 1'024 ? 0 : depth_ * 8;
            return read();
        }
        revision_ = reply.revision;
        const bool news = !told_ || head_.create_revision != told_->create_revision ||
                          head_.mod_revision != told_->mod_revision;
        if (!news || head_.key.empty()) return tell(news, {});
        request_ = link().facts(head_.lease, false, known().on().now() + patience,
                                then(&observing::lease_read));
    }
    void lease_read(std::error_code error, lease_facts facts) {
        if (error) return failed();
        tell(true, std::max(facts.ttl, 0s));
    }

    void tell(bool news, std::chrono::seconds left) {
        reads_ = false;
        watch();
        read_later(again_ ? 0ms : look_every);
        if (!news) return;
        told_ = head_;
        if (head_.key.empty()) return seen_(std::nullopt);
        auto row = row_of(known(), head_, *entry_of(head_));
        row.holds = true;
        row.left = left;
        seen_(std::move(row));
    }

    void failed() {
        reads_ = false;
        read_later(retry_after);
    }

    void watch() {
        watch_request what;
        what.keys = head_.key.empty() ? queue_of(name_) : key_range{head_.key, {}};
        what.erasures = !head_.key.empty();
        if (watching_ && what.keys == watched_) return;
        watched_ = what.keys;
        watching_ = true;
        what.from_revision = revision_ + 1;
        watch_ = link().watch(
            what,
            [weak = weak_from_this()](const watch_news&) {
                if (const auto self = weak.lock()) self->nudged();
            },
            [weak = weak_from_this()](std::error_code error) {
                const auto self = weak.lock();
                if (!self) return;
                self->watching_ = false;
                if (error == errc::conflict) self->nudged();
            });
    }

    const std::string name_;
    unique_function<void(std::optional<entry>)> seen_;
    std::int64_t depth_ = 16;
    std::int64_t revision_ = 0;
    key_value head_;
    std::optional<key_value> told_;
    key_range watched_;
    bool watching_ = false;
    bool reads_ = false;
    bool again_ = false;
    op watch_;
    op timer_;
};

}  // namespace

op observe_name(const claims_ptr& known, std::string_view name,
                unique_function<void(std::optional<entry>)> seen) {
    return observing::begin(
        known, deadline::max(), [](std::error_code, int) {}, std::string(name), std::move(seen));
}

}  // namespace trinco::detail::etcd
