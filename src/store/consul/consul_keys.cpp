// Reading keys: one by itself; several in transactions, which refuse what is not there, so that
// those that are left are asked for again.
#include <algorithm>

#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::size_t keys_at_once = most_operations;

class reading_keys : public conversation<reading_keys, found_keys> {
public:
    explicit reading_keys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

    void start() {
        found_.resize(keys_.size());
        for (std::size_t i = 0; i < keys_.size(); ++i) open_.push_back(i);
        if (open_.empty()) return answer({}, {});
        ask();
    }

private:
    void ask() {
        if (open_.empty()) return finish({}, std::move(found_));
        if (open_.size() == 1 || at_once_ == 1) {
            request_ = link().read({keys_[open_.front()], false, true}, by_,
                                   then(&reading_keys::read_one));
            return;
        }
        txn_request what;
        const auto n = std::min(at_once_, open_.size());
        for (std::size_t i = 0; i < n; ++i) {
            operation get;
            get.verb = operation::verb_t::get;
            get.key = keys_[open_[i]];
            what.operations.push_back(std::move(get));
        }
        asked_ = n;
        request_ = link().txn(what, by_, then(&reading_keys::read_some));
    }
    void read_one(std::error_code error, read_reply reply) {
        if (error) return finish(error, {});
        take(std::move(reply.rows));
        open_.erase(open_.begin());
        ask();
    }
    void read_some(std::error_code error, txn_reply reply) {
        if (error == errc::busy) return ask_fewer();
        if (error) return finish(error, {});
        if (reply.applied) {
            take(std::move(reply.rows));
            // What there is no right to read is left out without a word.
            for (std::size_t i = 0; i < asked_; ++i) {
                if (found_[open_[i]]) continue;
                known().say(errc::denied, "the token may not read '" + keys_[open_[i]] + "'");
                return finish(errc::denied, {});
            }
            open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(asked_));
            return ask();
        }
        std::vector<std::size_t> absent;
        for (const auto& one : reply.refusals) {
            if (const auto why = known().final_word(one)) return finish(why, {});
            if (one.why != refusal_t::absent || one.operation >= asked_) {
                return finish(errc::invalid, {});
            }
            absent.push_back(open_[one.operation]);
        }
        if (absent.empty()) return finish(errc::invalid, {});
        std::erase_if(open_, [&](std::size_t i) {
            return std::find(absent.begin(), absent.end(), i) != absent.end();
        });
        ask();
    }
    // Their values may be too much for one answer.
    void ask_fewer() {
        at_once_ = asked_ / 2;
        ask();
    }
    void take(std::vector<key_value> rows) {
        for (auto& row : rows) {
            for (const auto i : open_) {
                if (keys_[i] == row.key) found_[i] = row;
            }
        }
    }

    const std::vector<std::string> keys_;
    found_keys found_;
    std::vector<std::size_t> open_;
    std::size_t at_once_ = keys_at_once;
    std::size_t asked_ = 0;
};

}  // namespace

op read_keys(const claims_ptr& known, std::vector<std::string> keys, deadline by,
             completion<found_keys> done) {
    return reading_keys::begin(known, by, std::move(done), std::move(keys));
}

}  // namespace trinco::detail::consul
