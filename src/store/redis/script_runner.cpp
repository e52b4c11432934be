#include "store/redis/script_runner.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using fault_kind = reply_fault::kind_t;

// A server that cannot now is asked again after waits that begin with these.
constexpr backoff patience{10ms, 500ms};

constexpr auto told_recently = 50ms;

std::string command_of(const script_call& call, bool whole) {
    const auto keys = std::to_string(call.keys.size());
    std::vector<std::string_view> words;
    words.reserve(3 + call.keys.size() + call.arguments.size());
    words.emplace_back(whole ? "EVAL" : "EVALSHA");
    words.push_back(whole ? text_of(call.script) : name_of(call.script));
    words.emplace_back(keys);
    words.insert(words.end(), call.keys.begin(), call.keys.end());
    words.insert(words.end(), call.arguments.begin(), call.arguments.end());
    return resp_command(words);
}

}  // namespace

std::shared_ptr<const ready_call> make_ready(script_call call) {
    auto command = command_of(call, false);
    return std::make_shared<const ready_call>(ready_call{std::move(call), std::move(command)});
}

struct script_runner::one {
    std::shared_ptr<const ready_call> script;  // null: the two below are all
    std::string other_key;
    std::string other_command;
    deadline by;
    completion<resp_reply> done;
    bool alone = false;     // nobody waits for it
    bool whole = false;     // send the text of the script
    unsigned unknown = 0;   // times that a server did not know it
    bool in_doubt = false;  // it may have happened
    std::uint32_t tries = 0;
    op request;
    op timer;

    [[nodiscard]] const std::string& key() const {
        return script ? script->call.keys.front() : other_key;
    }
    [[nodiscard]] std::string command() const {
        if (!script) return other_command;
        return whole ? command_of(script->call, true) : script->command;
    }
};

script_runner::script_runner(loop& on, redis_route& by) : on_(on), route_(by) {}

script_runner::~script_runner() {
    *self_ = nullptr;
}

std::unique_ptr<script_runner::one> script_runner::make(std::shared_ptr<const ready_call> call,
                                                        deadline by, completion<resp_reply> done) {
    auto r = std::make_unique<one>();
    r->script = std::move(call);
    r->whole =
        r->script->call.script == redis_script::index;  // as short as its name and a round trip
    r->by = by;
    r->done = std::move(done);
    return r;
}

std::unique_ptr<script_runner::one> script_runner::make(std::string key,
                                                        const std::vector<std::string>& words,
                                                        deadline by, completion<resp_reply> done) {
    auto r = std::make_unique<one>();
    r->other_key = std::move(key);
    r->other_command = resp_command(words);
    r->by = by;
    r->done = std::move(done);
    return r;
}

op script_runner::run(std::shared_ptr<const ready_call> call, deadline by,
                      completion<resp_reply> done) {
    return interest_in(start(make(std::move(call), by, std::move(done))));
}

op script_runner::run(std::string key, const std::vector<std::string>& words, deadline by,
                      completion<resp_reply> done) {
    return interest_in(start(make(std::move(key), words, by, std::move(done))));
}

void script_runner::run_alone(script_call call, deadline by, completion<resp_reply> done) {
    start_alone(make(make_ready(std::move(call)), by, std::move(done)));
}

void script_runner::run_alone(std::string key, const std::vector<std::string>& words, deadline by) {
    start_alone(make(std::move(key), words, by, {}));
}

script_runner::id_t script_runner::start(std::unique_ptr<one> r) {
    const auto id = next_++;
    runs_.emplace(id, std::move(r));
    send(id);
    return id;
}

void script_runner::start_alone(std::unique_ptr<one> r) {
    r->alone = true;
    ++alone_;
    start(std::move(r));
}

op script_runner::interest_in(id_t id) {
    return op([weak = std::weak_ptr(self_), id]() noexcept {
        if (const auto self = weak.lock(); self && *self != nullptr) (*self)->forget(id);
    });
}

void script_runner::send(id_t id) {
    one& r = *runs_.at(id);
    r.request = route_.request(r.key(), r.command(), r.by,
                               [this, id](std::error_code error, resp_reply reply) {
                                   answered(id, error, std::move(reply));
                               });
}

void script_runner::answered(id_t id, std::error_code error, resp_reply reply) {
    one& r = *runs_.at(id);
    if (!error) {
        if (reply.is(resp_reply::kind_t::error)) return refused(id, fault_of(reply));
        if (!r.alone) refusal_.clear();
        return finish(id, {}, std::move(reply));
    }
    if (error == errc::unknown_outcome) {
        r.in_doubt = true;
        if (on_.now() < r.by) return send(id);
    }
    finish(id, error, {});
}

void script_runner::refused(id_t id, const reply_fault& fault) {
    const one& r = *runs_.at(id);
    if (fault.kind != fault_kind::no_script && !r.alone) refusal_ = fault.why;
    switch (fault.kind) {
        case fault_kind::no_script: return learn(id);
        case fault_kind::elsewhere:
        case fault_kind::later: mistrust_later(r.key(), fault); return again(id);
        case fault_kind::final: return finish(id, fault.error, {});
    }
}

// A batch of a script that nobody knows carries its text once: the others come behind it in the
// pipeline. Only where that was another server's pipeline do they bring the text themselves.
void script_runner::learn(id_t id) {
    one& r = *runs_.at(id);
    if (!r.script || r.whole || r.unknown > 1) return finish(id, errc::unavailable, {});
    auto& told = told_[r.script->call.script];
    const auto now = on_.now();
    r.whole = r.unknown++ > 0 || now >= told + told_recently;
    if (r.whole) told = now;
    send(id);
}

// Not at once: the replies to the rest of the pipeline are here already.
void script_runner::mistrust_later(const std::string& key, const reply_fault& fault) {
    if (!mistrusted_.insert(key).second) return;
    redis_refusal why{errc::unavailable, fault.why, fault.kind == fault_kind::later};
    on_.post([weak = std::weak_ptr(self_), key, why = std::move(why)]() mutable {
        const auto self = weak.lock();
        if (!self || *self == nullptr) return;
        (*self)->mistrusted_.erase(key);
        (*self)->route_.mistrust(key, std::move(why));
    });
}

void script_runner::again(id_t id) {
    one& r = *runs_.at(id);
    const auto next = on_.now() + patience.wait(r.tries++, on_.random());
    r.unknown = 0;
    if (next < r.by) {
        r.timer = on_.at(next, [this, id] { send(id); });
    } else {
        r.timer = on_.at(r.by, [this, id] { finish(id, errc::unavailable, {}); });
    }
}

void script_runner::finish(id_t id, std::error_code error, resp_reply reply) {
    const auto found = runs_.find(id);
    // Taken out first: the completion may destroy its op, and the runner with it.
    const auto ended = std::move(found->second);
    runs_.erase(found);
    if (ended->alone) --alone_;
    if (idle_ && (runs_.empty() || (under_way() == 0 && !ended->alone))) {
        on_.post([weak = std::weak_ptr(self_)] {
            const auto self = weak.lock();
            if (self && *self != nullptr && (*self)->under_way() == 0 && (*self)->idle_) {
                (*self)->idle_();
            }
        });
    }
    // What is known not to have been done now may have been done by an earlier attempt.
    const bool doubtful = ended->in_doubt && error && kind_of(error) == error_kind::not_applied;
    if (doubtful) error = errc::unknown_outcome;
    if (ended->done) ended->done(error, std::move(reply));
}

bool script_runner::in_doubt() const noexcept {
    return std::any_of(runs_.begin(), runs_.end(),
                       [](const auto& run) { return run.second->in_doubt; });
}

void script_runner::forget(id_t id) {
    const auto found = runs_.find(id);
    if (found == runs_.end()) return;
    const auto dropped = std::move(found->second);
    runs_.erase(found);
}

}  // namespace trinco::detail
