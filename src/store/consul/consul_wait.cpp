// Awaiting the grant of a claim that contends by itself, and looking at it. What was taken by an
// answer that is older than a second is read again before it is called granted: who was not running
// meanwhile may have lost it.
#include <algorithm>

#include "core/backoff.hpp"
#include "core/mutant.hpp"
#include "store/consul/consul_calls.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration proof_lasts = 1s;
constexpr backoff pauses{.first = 200ms, .longest = 2'000ms};

class confirming : public conversation<confirming, grant> {
public:
    confirming(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    void start() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr || c->held.empty()) return refuse(errc::lost);
        serial_ = c->serial;
        std::vector<std::string> keys;
        for (const auto& one : c->held) keys.push_back(one.key);
        if (c->counts()) {
            keys.push_back(semaphore_key(known().settings().prefix, c->parts.front().name));
        }
        request_ = read_keys(known_ptr(), std::move(keys), by_, then(&confirming::found));
    }

private:
    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, {});
        auto* c = known().find(lease_, id_, serial_);
        const std::size_t more = c != nullptr && c->counts() ? 1 : 0;
        if (c == nullptr || c->held.size() + more != keys.size()) return finish(errc::lost, {});
        bool stands = more == 0 || has_place(keys.back(), c->held.front().id.session);
        for (std::size_t i = 0; i < c->held.size(); ++i) {
            stands = stands && keys[i] && is_entry(*keys[i], c->held[i].id);
        }
        if (!stands) {
            known().lose(lease_, id_);
            return finish(errc::lost, {});
        }
        for (std::size_t i = 0; i < c->held.size(); ++i) c->held[i].index = keys[i]->modify_index;
        finish({}, {c->tokens});
    }

    const std::string lease_;
    const claim_id id_;
    std::uint64_t serial_ = 0;
};

class awaiting : public conversation<awaiting, grant> {
public:
    awaiting(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    ~awaiting() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr) return refuse(errc::lost);
        serial_ = c->serial;
        listening_ = known().listen(lease_, id_, [weak = weak_from_this()](std::error_code gone) {
            const auto self = weak.lock();
            if (!self || self->over() || self->known().link() == nullptr) return;
            gone ? self->finish(errc::lost, {}) : self->look();
        });
        timer_ = known().on().at(known().on().now(), then(&awaiting::look));
    }

private:
    void look() {
        auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr || c->phase == claim_phase::leaving) return finish(errc::lost, {});
        if (c->phase != claim_phase::granted || confirms_) return;
        const auto proof = std::exchange(c->proven, std::nullopt);
        const bool young = proof && (TRINCO_MUTANT("consul_proof_kept") ||
                                     known().on().now() - *proof < proof_lasts);
        if (young) return finish({}, {c->tokens});
        confirms_ = true;
        confirmed_by_ = known().on().now() + patience;
        request_ = confirm(known_ptr(), lease_, id_, confirmed_by_, then(&awaiting::confirmed));
    }
    void confirmed(std::error_code error, grant g) {
        confirms_ = false;
        // The answer came in time and was not looked at: this process was not running.
        if (!error && known().on().now() > confirmed_by_) return look();
        if (!error || error == errc::lost) return finish(error, std::move(g));
        timer_ = known().on().after(pauses.wait(failures_++, known().on().random()),
                                    then(&awaiting::look));
    }

    const std::string lease_;
    const claim_id id_;
    std::uint64_t serial_ = 0;
    claims::listener_id listening_ = 0;
    bool confirms_ = false;
    deadline confirmed_by_{};
    std::uint32_t failures_ = 0;
    op timer_;
};

class verifying : public conversation<verifying, grant> {
public:
    verifying(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    ~verifying() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        if (known().find(lease_, id_) == nullptr) return refuse(errc::lost);
        listening_ = known().listen(lease_, id_, [weak = weak_from_this()](std::error_code gone) {
            const auto self = weak.lock();
            if (!self || self->over() || self->known().link() == nullptr) return;
            gone ? self->finish(errc::lost, {}) : self->look();
        });
        limit_ = known().on().at(by_, then(&verifying::over_time));
        timer_ = known().on().at(known().on().now(), then(&verifying::look));
    }

private:
    void look() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr || c->phase == claim_phase::leaving) return finish(errc::lost, {});
        if (asked_) return;
        if (c->phase == claim_phase::granted) {
            asked_ = true;
            request_ = confirm(known_ptr(), lease_, id_, by_, then(&verifying::confirmed));
            return;
        }
        // As long as nothing is known to be in the way it may be granted in a moment.
        const bool waits = c->phase == claim_phase::unsure || !c->obstacle.empty() ||
                           !known().in_line_behind(lease_, id_).empty();
        if (waits) finish(errc::conflict, {});
    }
    void confirmed(std::error_code error, grant g) { finish(error, std::move(g)); }
    void over_time() { finish(errc::unavailable, {}); }

    const std::string lease_;
    const claim_id id_;
    claims::listener_id listening_ = 0;
    bool asked_ = false;
    op limit_;
    op timer_;
};

}  // namespace

op confirm(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
           completion<grant> done) {
    return confirming::begin(known, by, std::move(done), lease, id);
}

op wait_for_grant(const claims_ptr& known, std::string_view lease, claim_id id,
                  completion<grant> done) {
    return awaiting::begin(known, deadline::max(), std::move(done), lease, id);
}

op verify_claim(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
                completion<grant> done) {
    return verifying::begin(known, by, std::move(done), lease, id);
}

}  // namespace trinco::detail::consul
