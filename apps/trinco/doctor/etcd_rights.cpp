#include "apps/trinco/doctor/etcd_rights.hpp"

#include <array>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/trinco/doctor/round_trips.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/distribution.hpp"
#include "apps/trinco/problem.hpp"
#include "core/quoted.hpp"
#include "store/etcd/etcd_layout.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;
namespace etcd = trinco::detail::etcd;

constexpr auto patience = 3s;
constexpr const char* trial_name = "trinco-doctor";
constexpr int rounds = 10;

std::string in_quotes(std::string_view text) {
    return trinco::detail::quoted(text, 200);
}

std::string grant_of(const std::string& beginning) {
    return "etcdctl role grant-permission ROLE --prefix=true readwrite " + beginning;
}

class trial {
public:
    trial(etcd_talk& with, const etcd_trial& where, examination& to)
        : with_(with),
          user_(where.target.user),
          url_prefix_(where.target.prefix),
          prefix_(where.prefix),
          keys_(url_prefix_ + prefix_),
          name_(keys_ + trial_name),
          to_(to) {}

    std::optional<seconds> run();

private:
    etcd_told<etcd::txn_reply> step(etcd::operation what) {
        etcd::txn_request ask;
        ask.success.push_back(std::move(what));
        return with_.ask<etcd::txn_reply>(patience, [ask](etcd::rpc& link, auto by, auto done) {
            return link.txn(ask, by, std::move(done));
        });
    }
    bool take_and_give_back();
    bool renew();
    void try_once();
    std::error_code use(const std::string& key);
    // False: it was said why.
    bool is_well(const std::error_code& error, std::string_view what);
    void say_denied(std::string_view what);

    etcd_talk& with_;
    const std::string& user_;
    const std::string& url_prefix_;
    const std::string& prefix_;
    const std::string keys_;  // what all names begin with
    const std::string name_;
    examination& to_;
    std::int64_t lease_ = 0;
    distribution commits_;
    distribution reads_;
};

std::optional<seconds> trial::run() {
    const auto granted = with_.ask<etcd::lease_reply>(
        patience,
        [](etcd::rpc& link, auto by, auto done) { return link.grant(1s, by, std::move(done)); });
    if (!is_well(granted.error, "be granted a lease")) return std::nullopt;
    lease_ = granted.value.id;
    const bool all_well = take_and_give_back() && renew();
    if (all_well) {
        to_.good("rights",
                 "locks" + (keys_.empty() ? "" : " whose names begin with " + in_quotes(keys_)) +
                     " can be taken, renewed and given back");
        judge_round_trips(commits_, reads_, to_);
        try_once();
    }
    static_cast<void>(with_.ask<int>(patience, [this](etcd::rpc& link, auto by, auto done) {
        return link.revoke(lease_, by, std::move(done));
    }));
    return granted.value.ttl;
}

bool trial::take_and_give_back() {
    const auto key = etcd::entry_key(name_, lease_, {1});
    for (int i = 0; i < rounds; ++i) {
        const auto put = step(etcd::put_request{key, "trinco doctor", lease_});
        if (!is_well(put.error, "write the key of a lock")) return false;
        const auto read = step(etcd::range_request{etcd::queue_of(name_)});
        if (!is_well(read.error, "read the queue of a lock")) return false;
        const auto erased = step(etcd::erase_request{{key, {}}});
        if (!is_well(erased.error, "erase the key of a lock")) return false;
        commits_.add(put.took);
        commits_.add(erased.took);
        reads_.add(read.took);
    }
    return true;
}

bool trial::renew() {
    const auto renewed = with_.ask<seconds>(patience, [this](etcd::rpc& link, auto by, auto done) {
        return link.keep_alive(lease_, by, std::move(done));
    });
    return is_well(renewed.error, "renew a lease");
}

bool trial::is_well(const std::error_code& error, std::string_view what) {
    if (!error) return true;
    to_.code = exit_code_of(error);
    if (error == errc::denied) {
        say_denied(what);
        return false;
    }
    const auto trouble = with_.trouble();
    to_.bad(
        "lock",
        "it could not " + std::string(what) + ": " + (trouble.empty() ? error.message() : trouble),
        "look at the log of etcd, and at the load of its disks");
    return false;
}

void trial::say_denied(std::string_view what) {
    if (user_.empty()) {
        return to_.bad("login", "etcd demands a user, and the URL names none",
                       "name one whose role may read and write the keys of the locks: "
                       "etcd://USER:PASSWORD@HOST in TRINCO_LOCKS or trinco.toml");
    }
    finding one{level::bad,
                "rights",
                "the user " + in_quotes(user_) + " may not " + std::string(what) + " (" +
                    in_quotes(name_) + ")",
                "let its role read and write all keys that locks have; or name with --prefix those "
                "that it may use",
                {}};
    if (!keys_.empty()) {
        one.commands = {grant_of(keys_)};
    }
    to_.add(std::move(one));
}

// The lock of a key of once, and its record, lie beside the locks and need rights of their own.
void trial::try_once() {
    const std::string lock = url_prefix_ + ".trinco/once/" + prefix_;
    const std::string record = url_prefix_ + std::string(etcd::records_prefix) + "once/" + prefix_;
    std::vector<std::string> missing;
    for (const bool is_lock : {true, false}) {
        const std::string& beginning = is_lock ? lock : record;
        const std::string name = beginning + trial_name;
        // Of this examination alone, as a lock's entry is: others may be made at the same time.
        const auto error = use(is_lock ? etcd::entry_key(name, lease_, {1})
                                       : name + "-" + etcd::lease_text(lease_));
        if (error == errc::denied) missing.push_back(beginning);
        if (error && error != errc::denied) return;  // the next examination shows it with locks
    }
    if (missing.empty()) return to_.good("once", "what 'trinco once' keeps can be written");
    std::string places;
    for (const auto& one : missing) places += (places.empty() ? "" : " nor ") + in_quotes(one);
    finding one{level::warn,
                "once",
                "the user " + in_quotes(user_) + " may not use what begins with " + places +
                    ": 'trinco once' and 'trinco records' are refused",
                "let its role read and write there, if they are wanted",
                {}};
    for (const auto& beginning : missing) one.commands.push_back(grant_of(beginning));
    to_.add(std::move(one));
}

// Written, read and erased in turn: each is a right.
std::error_code trial::use(const std::string& key) {
    for (auto& what : std::array<etcd::operation, 3>{
             etcd::put_request{key, "trinco doctor", lease_}, etcd::range_request{{key, {}}},
             etcd::erase_request{{key, {}}}}) {
        const auto told = step(std::move(what));
        if (told.error) return told.error;
    }
    return {};
}

}  // namespace

std::optional<seconds> try_locks(etcd_talk& with, const etcd_trial& where, examination& to) {
    return trial(with, where, to).run();
}

}  // namespace trinco::program::doctor
