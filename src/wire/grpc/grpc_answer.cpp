#include "wire/grpc/grpc_answer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace trinco::detail {
namespace {

constexpr std::size_t prefix_size = 5;
constexpr std::size_t reserved_most = 64 * 1024;  // before any of it has come
constexpr std::string_view content = "application/grpc";

}  // namespace

void grpc_answer::field(std::string_view name, std::string_view value) {
    if (name == ":status") {
        http_ = 0;
        std::from_chars(value.data(), value.data() + value.size(), http_);
    } else if (name == "content-type") {
        // With what follows: "application/grpc+proto", "application/grpc;charset".
        is_grpc_ = value.substr(0, content.size()) == content &&
                   (value.size() == content.size() || value[content.size()] == '+' ||
                    value[content.size()] == ';');
    } else if (name == "grpc-status") {
        has_status_ = true;
        status_.code = grpc_code_of(value);
    } else if (name == "grpc-message") {
        status_.text = grpc_text_of(value);
    }
}

void grpc_answer::fields_end() {
    if (has_head_) return;
    if (http_ >= 100 && http_ < 200) return;  // the answer itself is still to come
    has_head_ = true;
    if (!has_status_ && (http_ != 200 || !is_grpc_)) fault_ = fault_t::not_grpc;
}

// Takes of it what belongs to the next message's prefix; returns the rest.
std::string_view grpc_answer::prefix(std::string_view bytes) {
    const auto n = std::min(bytes.size(), prefix_size - prefix_.size());
    prefix_ += bytes.substr(0, n);
    if (prefix_.size() < prefix_size) return {};
    for (std::size_t i = 1; i < prefix_size; ++i) {
        left_ = left_ << 8 | static_cast<unsigned char>(prefix_[i]);
    }
    if (prefix_[0] != 0) fault_ = fault_t::compressed;  // nobody was asked to
    if (left_ > most_) fault_ = fault_t::too_large;
    prefix_.clear();
    in_message_ = true;
    if (fault_ == fault_t::none) message_.reserve(std::min(left_, reserved_most));
    return bytes.substr(n);
}

void grpc_answer::data(std::string_view bytes) {
    while (fault_ == fault_t::none && !bytes.empty()) {
        if (!in_message_) {
            bytes = prefix(bytes);
            if (!in_message_ || fault_ != fault_t::none) return;
        }
        const auto n = std::min(bytes.size(), left_);
        message_ += bytes.substr(0, n);
        left_ -= n;
        bytes.remove_prefix(n);
        if (left_ > 0) return;
        in_message_ = false;
        whole_.push_back(std::exchange(message_, {}));
    }
}

std::vector<std::string> grpc_answer::take() {
    return std::exchange(whole_, {});
}

grpc_verdict grpc_answer::verdict() const {
    using by = grpc_verdict::by_t;
    switch (fault_) {
        case fault_t::not_grpc:
            return {by::not_grpc,
                    {grpc_code_of_http(http_),
                     "it answers as HTTP does (" + std::to_string(http_) + "), and not as gRPC"}};
        case fault_t::too_large:
            return {by::too_large,
                    {grpc_code::resource_exhausted,
                     "its answer is larger than " + std::to_string(most_ / 1024 / 1024) + " MiB"}};
        case fault_t::compressed:
            return {by::broken, {grpc_code::internal, "its answer is compressed"}};
        case fault_t::none: break;
    }
    if (!has_status_) {
        return {by::broken, {grpc_code::internal, "its answer ended without a status"}};
    }
    const bool is_cut = in_message_ || !prefix_.empty();
    if (is_cut && status_.code == grpc_code::ok) {
        return {by::broken, {grpc_code::internal, "its answer ended within a message"}};
    }
    return {by::server, status_};
}

}  // namespace trinco::detail
