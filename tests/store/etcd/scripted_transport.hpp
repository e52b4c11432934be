// Members of etcd that say what a test lets them say, on virtual time; and their replies as bytes,
// written by hand, so that the numbers of etcd's fields stand here a second time.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/etcd/etcd_methods.hpp"
#include "store/etcd/etcd_transport.hpp"

namespace trinco::detail::test {

// The bytes of a message of Protocol Buffers.
class proto_bytes {
public:
    proto_bytes& number(unsigned field, std::int64_t value) {
        varint(field << 3);
        varint(static_cast<std::uint64_t>(value));
        return *this;
    }
    proto_bytes& text(unsigned field, const std::string& value) {
        varint((field << 3) | 2);
        varint(value.size());
        bytes_ += value;
        return *this;
    }
    operator std::string() const { return bytes_; }

private:
    void varint(std::uint64_t v) {
        for (; v > 127; v >>= 7) bytes_ += static_cast<char>((v & 127) | 128);
        bytes_ += static_cast<char>(v);
    }
    std::string bytes_;
};

class scripted_transport final : public etcd::transport {
public:
    struct asked {
        etcd::destination to;
        std::string method;
        std::string request;
        etcd::wire_metadata with;
        on_answer done;
    };
    struct opened {
        etcd::destination to;
        std::string method;
        etcd::wire_metadata with;
        std::vector<std::string> sent;
        on_message heard;
        on_end ended;
        bool gone = false;  // nobody listens any more
    };

    explicit scripted_transport(std::size_t members) : members_(members) {}

    [[nodiscard]] std::size_t endpoints() const noexcept override { return members_; }
    [[nodiscard]] std::string name(std::size_t endpoint) const override {
        return "m" + std::to_string(endpoint);
    }
    [[nodiscard]] op call(etcd::destination to, const char* method, std::string request,
                          etcd::wire_metadata with, deadline, on_answer done) override {
        const auto one = std::make_shared<asked>(
            asked{to, method, std::move(request), std::move(with), std::move(done)});
        calls.push_back(one);
        return op([one] { one->done = nullptr; });
    }
    [[nodiscard]] std::unique_ptr<etcd::wire_stream> open(etcd::destination to, const char* method,
                                                          etcd::wire_metadata with,
                                                          on_message heard, on_end ended) override {
        const auto one = std::make_shared<opened>(
            opened{to, method, std::move(with), {}, std::move(heard), std::move(ended)});
        streams.push_back(one);
        return std::make_unique<handle>(one);
    }
    [[nodiscard]] bool connected(etcd::destination to) const override {
        return up.count(to.endpoint) != 0;
    }
    void renew(etcd::destination) override {}
    [[nodiscard]] op stop(deadline, completion<int>) override { return {}; }

    // The member answers, unless nobody wants to know.
    static void answer(const std::shared_ptr<asked>& one, etcd::wire_status status,
                       std::string reply = {}) {
        if (auto done = std::exchange(one->done, nullptr))
            done(std::move(status), std::move(reply));
    }
    // The calls of this method that wait for an answer.
    [[nodiscard]] std::vector<std::shared_ptr<asked>> waiting(const char* method) const {
        std::vector<std::shared_ptr<asked>> all;
        for (const auto& one : calls) {
            if (one->done && one->method == method) all.push_back(one);
        }
        return all;
    }
    // The streams of this method that somebody listens to.
    [[nodiscard]] std::vector<std::shared_ptr<opened>> open_streams(const char* method) const {
        std::vector<std::shared_ptr<opened>> all;
        for (const auto& one : streams) {
            if (!one->gone && one->method == method) all.push_back(one);
        }
        return all;
    }

    std::vector<std::shared_ptr<asked>> calls;
    std::vector<std::shared_ptr<opened>> streams;
    std::set<std::size_t> up;  // members with a connection

private:
    class handle final : public etcd::wire_stream {
    public:
        explicit handle(std::shared_ptr<opened> of) : of_(std::move(of)) {}
        ~handle() override { of_->gone = true; }
        void send(std::string message) override { of_->sent.push_back(std::move(message)); }

    private:
        std::shared_ptr<opened> of_;
    };

    const std::size_t members_;
};

}  // namespace trinco::detail::test
