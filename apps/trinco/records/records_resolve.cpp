// `trinco records resolve`.
#include <array>
#include <chrono>
#include <utility>

#include "apps/trinco/command_line/confirmation.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/records/record_list.hpp"
#include "apps/trinco/records/records_commands.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/quoted.hpp"
#include "store/lock_store.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using state = detail::once_record::state_t;

constexpr auto patience = 5s;
constexpr int attempts = 5;
constexpr std::chrono::seconds longest_keep{366 * 24h};

class records_resolve final : public command {
public:
    void declare(arguments& to) override {
        to.positional("KEY", key_, "the key");
        to.optional_text("--done", done_, "RESULT", "it was done, and this is its result");
        to.optional_text("--failed", failed_, "ERROR", "it failed, and this is the error");
        to.flag("--not-done", not_done_,
                "it was not done: the next caller runs it, under the same run id");
        to.optional_text("--run", run_, "ID", "only if it is still this run");
        to.duration("--keep", keep_, {1'000ms, longest_keep},
                    "how long the answer is kept; whoever asks later runs it again");
        to.optional_text("--confirm", confirmed_, "KEY", "the key again, instead of the question");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
    }
    int run(std::span<const std::string>) override;

private:
    [[nodiscard]] std::optional<problem> contradiction() const;
    [[nodiscard]] std::optional<problem> obstacle(const record_row* row,
                                                  const records_scene& in) const;
    [[nodiscard]] detail::once_record resolved(detail::once_record from) const;
    [[nodiscard]] std::optional<problem> write(const records_scene& in, const record_row& was,
                                               const detail::once_record& now) const;

    std::string key_;
    std::optional<std::string> done_;
    std::optional<std::string> failed_;
    bool not_done_ = false;
    std::optional<std::string> run_;
    std::chrono::milliseconds keep_ = 24h;
    std::optional<std::string> confirmed_;
    std::string format_ = "table";
    store_flags where_;
};

std::optional<problem> records_resolve::contradiction() const {
    const int said = (done_ ? 1 : 0) + (failed_ ? 1 : 0) + (not_done_ ? 1 : 0);
    if (said != 1) {
        return problem{exit_usage,
                       "say what became of it, by one of --done RESULT, --failed ERROR and "
                       "--not-done"};
    }
    const std::string& text = done_ ? *done_ : failed_ ? *failed_ : std::string();
    if (text.size() > detail::max_once_result || !is_utf8(text)) {
        return problem{exit_usage, "the text has " + std::to_string(text.size()) +
                                       " bytes; at most 65536 of UTF-8 are kept"};
    }
    return std::nullopt;
}

std::optional<problem> records_resolve::obstacle(const record_row* row,
                                                 const records_scene& in) const {
    const std::string key = "the key " + detail::quoted(key_, 256);
    if (row == nullptr) {
        return problem{exit_usage, "nothing is recorded under " + key + " in the store " +
                                       std::string(in.at.url()) +
                                       "; 'trinco records ls' shows what is"};
    }
    if (!row->is) return problem{exit_usage, "what is kept under " + key + " is no record of once"};
    if (row->is->state != state::running) {
        return problem{exit_usage, key + " is " + std::string(state_word(*row)) +
                                       " already; only what was interrupted can be resolved"};
    }
    if (row->owner_lives && !is_run_by_its_owner(*row)) {
        return problem{exit_not_acquired,
                       key + " is taken by " + owner_words(*row->holder, 256) +
                           ", which asks for it or is about to run it; try again"};
    }
    if (row->owner_lives) {
        const auto life = life_words(*row, in.at.url());
        return problem{exit_not_acquired,
                       key + " is still run by " + detail::quoted(row->is->owner, 256) +
                           ", which lives" + (life.empty() ? "" : ", as far as is known" + life) +
                           "; wait until it has ended"};
    }
    if (run_ && *run_ != row->is->run_id) {
        return problem{exit_not_acquired,
                       key + " is another run by now: " + row->is->run_id + "; look again"};
    }
    return std::nullopt;
}

detail::once_record records_resolve::resolved(detail::once_record r) const {
    r.state = done_ ? state::done : failed_ ? state::failed : state::undone;
    r.payload = done_ ? *done_ : failed_ ? *failed_ : "";
    return r;
}

std::optional<problem> records_resolve::write(const records_scene& in, const record_row& was,
                                              const detail::once_record& now) const {
    const auto key = detail::once_key_of(in.scope.prefix + key_);
    const std::array<detail::change, 1> one{detail::change{key, detail::encode(now), was.revision}};
    // What is to be run again is not forgotten before that.
    const auto keep = not_done_ ? std::chrono::seconds(0)
                                : std::chrono::duration_cast<std::chrono::seconds>(keep_);
    bool in_doubt = false;
    std::error_code last;
    for (int i = 0; i < attempts; ++i) {
        const auto wrote = ask_locks<std::uint64_t>(
            in.at, patience, [&](detail::lock_store& locks, detail::deadline by, auto done) {
                return locks.write("", std::nullopt, one, keep, by, std::move(done));
            });
        if (!wrote.error) return std::nullopt;
        last = wrote.error;
        if (last == errc::conflict && in_doubt) {
            // Perhaps one's own, of which no answer came.
            const auto listed = list_records(in);
            const auto* const rows = std::get_if<std::vector<record_row>>(&listed);
            if (rows != nullptr && !rows->empty() && rows->front().is == now) return std::nullopt;
        }
        if (kind_of(last) != error_kind::unknown) break;
        in_doubt = true;
    }
    if (last == errc::conflict) {
        return problem{exit_not_acquired, "the record of " + detail::quoted(key_, 256) +
                                              " has changed in the meantime; look again"};
    }
    return store_problem(in.at, "write the record of " + detail::quoted(key_, 256),
                         after_attempts(in_doubt, last));
}

int records_resolve::run(std::span<const std::string>) {
    if (const auto bad = contradiction()) return complain(*bad);
    const auto scene = open_records(where_, {.beginning = key_, .whole_key = true});
    if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
    const auto& in = std::get<records_scene>(scene);
    const auto listed = list_records(in);
    if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
    const auto& rows = std::get<std::vector<record_row>>(listed);
    if (const auto bad = obstacle(rows.empty() ? nullptr : &rows.front(), in)) {
        return complain(*bad);
    }
    const auto& was = rows.front();
    const auto now = resolved(*was.is);
    const std::string as = not_done_ ? "not done, so that it is run again"
                           : done_   ? "done"
                                     : "failed";
    const confirmation asked{"this records for everybody that " + detail::quoted(key_, 256) +
                                 ", begun by " + detail::quoted(was.is->owner, 256) + ", is " + as,
                             key_, false, confirmed_};
    if (const auto bad = not_confirmed(asked)) return complain(*bad);
    if (const auto bad = write(in, was, now)) return complain(*bad);
    record_row shown = was;
    shown.is = now;
    if (format_ == "json") {
        return print(
            json_object().add("schema", 1).add_raw("record", record_json(shown).text()).text() +
            "\n");
    }
    return print(key_ + (format_ == "name" ? "" : ": " + as) + "\n");
}

}  // namespace

std::unique_ptr<command> make_records_resolve() {
    return std::make_unique<records_resolve>();
}

}  // namespace trinco::program
