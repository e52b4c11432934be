// Several servers of the simulator, each at an address of its own; where none is, nobody listens.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "scripted_server.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail::test {

class scripted_fleet final : public stream_factory {
public:
    explicit scripted_fleet(loop& on) : on_(on) {}

    // "a:1"; makes one when there is none yet.
    scripted_server& at(const std::string& address) {
        auto& one = servers_[address];
        if (!one) one = std::make_unique<scripted_server>(on_);
        return *one;
    }
    // Connections end, and nobody listens any more, until it is woken.
    void kill(const std::string& address) {
        at(address).otherwise = scripted_server::door::refuse;
        cut(address);
    }
    void wake(const std::string& address) { at(address).otherwise = scripted_server::door::open; }
    void cut(const std::string& address) {
        for (const auto& wire : at(address).wires) {
            if (wire->open) wire->reset();
        }
    }
    [[nodiscard]] std::size_t connections(const std::string& address) {
        std::size_t n = 0;
        for (const auto& wire : at(address).wires) n += wire->open ? 1 : 0;
        return n;
    }

    std::vector<std::string> asked;  // in the order of connecting

    op connect(const stream_address& to, deadline by,
               completion<std::unique_ptr<byte_stream>> done) override {
        const auto address = text_of(to);
        asked.push_back(address);
        const auto found = servers_.find(address);
        if (found != servers_.end()) return found->second->connect(to, by, std::move(done));
        return on_.after(std::chrono::milliseconds(1), [d = std::move(done)]() mutable {
            d(std::make_error_code(std::errc::connection_refused), nullptr);
        });
    }
    std::unique_ptr<stream_listener> listen(const stream_address&,
                                            std::error_code& error) override {
        error = std::make_error_code(std::errc::not_supported);
        return nullptr;
    }

private:
    loop& on_;
    std::map<std::string, std::unique_ptr<scripted_server>> servers_;
};

// ---- replies as bytes ---------------------------------------------------------------------------

inline std::string resp_text(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
inline std::string resp_list(const std::vector<std::string>& elements) {
    std::string all = "*" + std::to_string(elements.size()) + "\r\n";
    for (const auto& one : elements) all += one;
    return all;
}
inline std::string resp_texts(const std::vector<std::string>& texts) {
    std::vector<std::string> elements;
    for (const auto& one : texts) elements.push_back(resp_text(one));
    return resp_list(elements);
}

// ---- what a route says, and what became of its requests -----------------------------------------

struct asked {
    int times = 0;
    std::error_code error;
    resp_reply reply;
    boot_clock::time_point when;
    op interest;
};

}  // namespace trinco::detail::test
