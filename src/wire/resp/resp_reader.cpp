#include "wire/resp/resp_reader.hpp"

// After the standard library's: hiredis' headers are C, and differ between 0.14 and 1.x. Only what
// both have is used, and what they declare differently is taken as it is declared.
#include <hiredis/hiredis.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

// Puts a reply together from what hiredis finds. It owns everything; hiredis gets marks only, so
// that nothing depends on when and whether hiredis frees.
class builder {
public:
    explicit builder(const resp_limits& limits) : limits_(limits) {}

    void* put(const redisReadTask* task, resp_reply value);
    void* put_array(const redisReadTask* task, std::size_t elements);
    void* refuse(resp_fault::kind_t kind, std::string sentence);
    [[nodiscard]] bool fits(std::size_t text);
    [[nodiscard]] resp_reply take();

    std::optional<resp_fault> fault;

private:
    const resp_limits& limits_;
    resp_reply root_;
    std::vector<resp_reply*> open_;  // the arrays around the next value, the innermost last
    std::vector<std::size_t> left_;  // how many values each of them still wants
    std::size_t elements_ = 0;       // in all arrays of this reply
};

void* builder::refuse(resp_fault::kind_t kind, std::string sentence) {
    if (!fault) fault = resp_fault{kind, std::move(sentence)};
    return nullptr;  // for hiredis: no memory; it stops
}

bool builder::fits(std::size_t text) {
    if (text <= limits_.text) return true;
    refuse(resp_fault::kind_t::too_big, "the server sent a text of " + std::to_string(text) +
                                            " bytes; at most " + std::to_string(limits_.text) +
                                            " are taken");
    return false;
}

void* builder::put(const redisReadTask*, resp_reply value) {
    resp_reply* place = &root_;
    if (!open_.empty()) {
        // Arrays have reserved their places: pointers to elements stay valid.
        place = &open_.back()->elements.emplace_back();
        --left_.back();
    }
    const bool opens = value.kind == resp_reply::kind_t::array && value.integer > 0;
    const auto wanted = static_cast<std::size_t>(value.integer);
    if (value.kind == resp_reply::kind_t::array) value.integer = 0;
    *place = std::move(value);
    if (opens) {
        place->elements.reserve(wanted);
        open_.push_back(place);
        left_.push_back(wanted);
    }
    while (!left_.empty() && left_.back() == 0) {
        open_.pop_back();
        left_.pop_back();
    }
    return this;
}

void* builder::put_array(const redisReadTask* task, std::size_t elements) {
    // Compared so that no length, however big, makes the sum wrap round.
    if (elements > limits_.elements - elements_) {
        return refuse(resp_fault::kind_t::too_big, "the server sent a reply of more than " +
                                                       std::to_string(limits_.elements) +
                                                       " elements");
    }
    if (open_.size() == limits_.depth) {
        return refuse(resp_fault::kind_t::too_big,
                      "the server sent arrays nested deeper than " + std::to_string(limits_.depth));
    }
    elements_ += elements;
    resp_reply value;
    value.kind = resp_reply::kind_t::array;
    value.integer = static_cast<std::int64_t>(elements);
    return put(task, std::move(value));
}

resp_reply builder::take() {
    open_.clear();
    left_.clear();
    elements_ = 0;
    return std::exchange(root_, {});
}

builder& builder_of(const redisReadTask* task) {
    return *static_cast<builder*>(task->privdata);
}

void* not_of_resp2(const redisReadTask* task) {
    return builder_of(task).refuse(resp_fault::kind_t::malformed,
                                   "the server sent a type of RESP3, which nobody asked for");
}

void* create_string(const redisReadTask* task, char* text, std::size_t size) {
    auto& to = builder_of(task);
    if (!to.fits(size)) return nullptr;
    if (task->type == REDIS_REPLY_STRING) {
        // hiredis skips two bytes after a text without looking at them: text points into its buffer
        // and they follow. Anything else there means that the length was wrong.
        if (text[size] != '\r' || text[size + 1] != '\n') {
            return to.refuse(resp_fault::kind_t::malformed,
                             "the server sent a text that does not end where its length says");
        }
    } else if (task->type != REDIS_REPLY_STATUS && task->type != REDIS_REPLY_ERROR) {
        return not_of_resp2(task);
    }
    auto value = resp_reply::of(std::string(text, size));
    if (task->type == REDIS_REPLY_ERROR) value.kind = resp_reply::kind_t::error;
    return to.put(task, std::move(value));
}

// Number is int in 0.14 and size_t in 1.x.
template <class Number>
void* create_array(const redisReadTask* task, Number elements) {
    if (task->type != REDIS_REPLY_ARRAY) return not_of_resp2(task);
    return builder_of(task).put_array(task, static_cast<std::size_t>(elements));
}

void* create_integer(const redisReadTask* task, long long number) {
    return builder_of(task).put(task, resp_reply::of(static_cast<std::int64_t>(number)));
}

void* create_nil(const redisReadTask* task) {
    return builder_of(task).put(task, {});
}

void free_nothing(void*) {}

// 1.x has more kinds, and would take a missing function for consent.
template <class Functions>
void refuse_what_is_new(Functions& f) {
    if constexpr (requires { f.createDouble; }) {
        f.createDouble = [](const redisReadTask* task, double, char*, std::size_t) {
            return not_of_resp2(task);
        };
    }
    if constexpr (requires { f.createBool; }) {
        f.createBool = [](const redisReadTask* task, int) { return not_of_resp2(task); };
    }
}

redisReplyObjectFunctions functions_of_ours() {
    redisReplyObjectFunctions f{};
    f.createString = create_string;
    f.createArray = create_array;
    f.createInteger = create_integer;
    f.createNil = create_nil;
    f.freeObject = free_nothing;
    refuse_what_is_new(f);
    return f;
}

struct reader_end {
    void operator()(redisReader* r) const noexcept { ::redisReaderFree(r); }
};

}  // namespace

std::string_view resp_reply::error_word() const noexcept {
    if (kind != kind_t::error) return {};
    const std::string_view all = text;
    return all.substr(0, all.find(' '));
}

struct resp_reader::impl {
    explicit impl(const resp_limits& l) : limits(l), build(limits) {
        static redisReplyObjectFunctions functions = functions_of_ours();
        reader.reset(::redisReaderCreateWithFunctions(&functions));
        if (!reader) throw std::bad_alloc();
        reader->privdata = &build;
    }
    const resp_limits limits;
    builder build;
    std::unique_ptr<redisReader, reader_end> reader;
    std::size_t pending = 0;  // bytes that are in no reply yet
};

resp_reader::resp_reader(const resp_limits& limits) : impl_(std::make_unique<impl>(limits)) {}
resp_reader::resp_reader(resp_reader&&) noexcept = default;
resp_reader& resp_reader::operator=(resp_reader&&) noexcept = default;
resp_reader::~resp_reader() = default;

void resp_reader::feed(std::string_view bytes) {
    if (impl_->build.fault || bytes.empty()) return;
    if (::redisReaderFeed(impl_->reader.get(), bytes.data(), bytes.size()) != REDIS_OK) {
        throw std::bad_alloc();
    }
    impl_->pending += bytes.size();
}

std::optional<resp_reply> resp_reader::next() {
    auto& in = *impl_;
    if (in.build.fault || in.pending == 0) return {};
    void* mark = nullptr;
    if (::redisReaderGetReply(in.reader.get(), &mark) != REDIS_OK) {
        // Ours says more than hiredis', which takes a refusal for lack of memory.
        in.build.refuse(
            resp_fault::kind_t::malformed,
            "the server sent what is no reply of Redis: " +
                detail::quoted(std::string_view(in.reader->errstr), sizeof in.reader->errstr));
        return {};
    }
    if (mark != nullptr) {
        in.pending = in.reader->len - in.reader->pos;
        return in.build.take();
    }
    if (in.pending > in.limits.bytes) {
        in.build.refuse(
            resp_fault::kind_t::too_big,
            "the server sent a reply of more than " + std::to_string(in.limits.bytes) + " bytes");
    }
    return {};
}

const resp_fault* resp_reader::fault() const noexcept {
    return impl_->build.fault ? &*impl_->build.fault : nullptr;
}

bool resp_reader::idle() const noexcept {
    return impl_->pending == 0;
}

}  // namespace trinco::detail
