#include "apps/trinco/doctor/etcd_rights.hpp"

#include <cstdint>
#include <system_error>
#include <utility>

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
constexpr int rounds = 10;
constexpr auto slow_commit = 50ms;  // a lock and its release are two of them

std::string quoted(std::string_view text) {
    return trinco::detail::quoted(text, 200);
}

class trial {
public:
    trial(etcd_talk& with, const etcd_trial& where, examination& to)
        : with_(with),
          user_(where.target.user),
          keys_(where.target.prefix + where.prefix),
          name_(keys_ + "trinco-doctor"),
          record_(where.target.prefix + std::string(etcd::records_prefix) + where.prefix +
                  "trinco-doctor"),
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
    void try_record();
    // False: it was said why.
    bool is_well(const std::error_code& error, std::string_view what);
    void say_denied(std::string_view what);
    void say_times();

    etcd_talk& with_;
    const std::string& user_;
    const std::string keys_;  // what all names begin with
    const std::string name_;
    const std::string record_;
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
        to_.good("rights", "locks" +
                               (keys_.empty() ? "" : " whose names begin with " + quoted(keys_)) +
                               " can be taken, renewed and given back");
        say_times();
        try_record();
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
    finding one{
        level::bad,
        "rights",
        "the user " + quoted(user_) + " may not " + std::string(what) + " (" + quoted(name_) + ")",
        "let its role read and write all keys that locks have; or name with --prefix those "
        "that it may use",
        {}};
    if (!keys_.empty()) {
        one.commands = {"etcdctl role grant-permission ROLE --prefix=true readwrite " + keys_};
    }
    to_.add(std::move(one));
}

void trial::say_times() {
    auto figures = json_object()
                       .add_raw("commit", json_of(commits_).text())
                       .add_raw("read", json_of(reads_).text());
    const std::string text = "a commit " + summary_of(commits_) + "; a read " + summary_of(reads_);
    if (commits_.p50() <= slow_commit) return to_.good("round-trip", text, std::move(figures));
    to_.add({level::warn, "round-trip", text,
             "a lock costs two commits, each a write to the disks of most members: bring members "
             "nearer to each other, and give them faster disks",
             std::move(figures)});
}

void trial::try_record() {
    const auto put = step(etcd::put_request{record_, "trinco doctor", lease_});
    const auto erased = put.error ? put : step(etcd::erase_request{{record_, {}}});
    if (!erased.error) return to_.good("once", "records of 'trinco once' can be written");
    if (erased.error != errc::denied) return;  // the next examination shows it with locks
    finding one{level::warn,
                "once",
                "the user " + quoted(user_) +
                    " may not write records: 'trinco once' and 'trinco records' are refused",
                "let its role read and write what begins with " + quoted(etcd::records_prefix) +
                    " behind the prefix of the URL, if they are wanted",
                {}};
    const auto beginning = record_.substr(0, record_.size() - name_.size() + keys_.size());
    one.commands = {"etcdctl role grant-permission ROLE --prefix=true readwrite " + beginning};
    to_.add(std::move(one));
}

}  // namespace

std::optional<seconds> try_locks(etcd_talk& with, const etcd_trial& where, examination& to) {
    return trial(with, where, to).run();
}

}  // namespace trinco::program::doctor
