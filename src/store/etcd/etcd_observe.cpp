// Observing the holder of a name: the head of its queue is read, page by page where keys that are
// no entries stand before it, then its key is watched; while nobody is there, whatever is put under
// the name is. Read again now and then besides.
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"
#include "store/etcd/etcd_pauses.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration look_every = 5s;
constexpr boot_clock::duration patience = 5s;  // with one reading
constexpr std::int64_t first_page = 16;
constexpr std::int64_t later_page = 4'000;  // keys alone

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
    void read_when_due() {
        timer_ = known().on().after(look_every, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (!self || self->over() || self->known().link() == nullptr) return;
            self->pauses_.have_watched();
            self->read();
        });
    }
    void nudged() {
        if (over()) return;
        pauses_.have_watched();
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
        revision_ = 0;
        behind_ = 0;
        read_page(first_page, false);
    }
    // The entry at the head may stand behind many keys that are none, whose values do not matter.
    void read_page(std::int64_t keys, bool keys_only) {
        range_request page;
        page.keys = queue_of(name_);
        page.order = range_request::order_t::ascend;
        page.by = range_request::by_t::create_revision;
        page.min_create_revision = behind_;
        page.limit = keys;
        page.keys_only = keys_only;
        ask(page, keys_only ? &observing::was_walked : &observing::was_read);
    }
    void ask(const range_request& what, void (observing::*step)(std::error_code, txn_reply)) {
        txn_request one;
        one.success.emplace_back(what);
        request_ = link().txn(one, known().on().now() + patience, then(step));
    }

    // The first of the page that is an entry of the name.
    [[nodiscard]] key_value head_of(const operation_reply& page) const {
        for (const auto& kv : page.kvs) {
            const auto place = entry_of(kv);
            if (place && place->name == name_) return kv;
        }
        return {};
    }
    void was_walked(std::error_code error, txn_reply reply) {
        if (error) return failed();
        const auto& page = reply.replies.at(0);
        if (const auto head = head_of(page); !head.key.empty()) {
            return ask(range_request{{head.key, {}}}, &observing::was_read);
        }
        if (page.more) return go_on(page);
        found({}, reply.revision);
    }
    // Keys of one revision may lie on two pages.
    void go_on(const operation_reply& page) {
        const bool stuck = behind_ == page.kvs.back().create_revision;
        behind_ = page.kvs.back().create_revision;
        page_ = stuck ? page_ * 2 : later_page;
        read_page(page_, true);
    }
    void was_read(std::error_code error, txn_reply reply) {
        if (error) return failed();
        const auto& page = reply.replies.at(0);
        auto head = head_of(page);
        if (head.key.empty() && page.more) {
            revision_ = reply.revision;
            return go_on(page);
        }
        // One that was walked to may be gone by now, and another one is the head.
        if (head.key.empty() && behind_ != 0) return failed();
        found(std::move(head), reply.revision);
    }

    void found(key_value head, std::int64_t revision) {
        head_ = std::move(head);
        // Watched from the first page on.
        if (revision_ == 0) revision_ = revision;
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
        pauses_.have_read();
        watch();
        if (again_) {
            read_later(0ms);
        } else {
            read_when_due();
        }
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
        read_later(pauses_.after_failure(known().on()));
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
                if (const auto self = weak.lock()) self->watch_over(error);
            });
    }
    void watch_over(std::error_code error) {
        watching_ = false;
        // A reading that is under way watches anew.
        if (over() || reads_ || error != errc::conflict) return;
        read_later(pauses_.after_compaction(known().on()));
    }

    const std::string name_;
    unique_function<void(std::optional<entry>)> seen_;
    std::int64_t revision_ = 0;
    std::int64_t behind_ = 0;  // as far as it was walked
    std::int64_t page_ = later_page;
    key_value head_;
    std::optional<key_value> told_;
    key_range watched_;
    bool watching_ = false;
    bool reads_ = false;
    bool again_ = false;
    reading_pauses pauses_;
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
