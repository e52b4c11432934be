// A server of the simulator behind byte streams: what it hears, and what it says and when, is the
// test's to decide.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/stream_factory.hpp"
#include "sim/world.hpp"

namespace trinco::detail::test {

// The server's side of a connection. The client's may be gone.
struct scripted_wire {
    explicit scripted_wire(loop& l) : on(l) {}

    loop& on;
    std::string came;   // from the client, and not taken yet
    bool open = true;   // for the client
    bool takes = true;  // false: what the client writes is not taken by the system

    // Cuts come[0...] into commands: their words, joined by blanks.
    std::vector<std::string> take_commands() {
        std::vector<std::string> commands;
        for (;;) {
            std::size_t at = 0;
            const auto number = [&](char mark) -> std::ptrdiff_t {
                const auto end = came.find("\r\n", at);
                if (end == std::string::npos || came[at] != mark) return -1;
                const auto n = std::stol(came.substr(at + 1, end - at - 1));
                at = end + 2;
                return n;
            };
            const auto words = came.empty() ? -1 : number('*');
            if (words < 0) return commands;
            std::string line;
            for (std::ptrdiff_t i = 0; i < words; ++i) {
                const auto size = at < came.size() ? number('$') : -1;
                if (size < 0 || at + static_cast<std::size_t>(size) + 2 > came.size()) {
                    return commands;
                }
                if (i > 0) line += ' ';
                line += came.substr(at, static_cast<std::size_t>(size));
                at += static_cast<std::size_t>(size) + 2;
            }
            came.erase(0, at);
            commands.push_back(std::move(line));
        }
    }

    void say(std::string bytes) { deliver({}, std::move(bytes)); }
    void end() { deliver({}, {}); }
    void reset() { deliver(std::make_error_code(std::errc::connection_reset), {}); }

    // ---- the client's -------------------------------------------------------------------------
    struct piece {
        std::error_code error;
        std::string bytes;
    };
    std::deque<piece> said;
    completion<std::string_view> reading;
    completion<std::size_t> writing;
    std::size_t written = 0;
    std::uint64_t reads = 0;  // an op drops its own only
    std::uint64_t writes = 0;

    void deliver(std::error_code error, std::string bytes) {
        said.push_back({error, std::move(bytes)});
        pump();
    }
    void pump() {
        if (!reading || said.empty()) return;
        const auto one = std::move(said.front());
        said.pop_front();
        auto done = std::move(reading);
        done(one.error, one.bytes);
    }
};

class scripted_stream final : public byte_stream {
public:
    scripted_stream(std::shared_ptr<scripted_wire> wire, std::function<void(scripted_wire&)> heard)
        : wire_(std::move(wire)), heard_(std::move(heard)) {}
    ~scripted_stream() override {
        wire_->open = false;
        wire_->reading.reset();
        wire_->writing.reset();
    }
    op read_some(completion<std::string_view> done) override {
        wire_->reading = std::move(done);
        wire_->on.post([wire = wire_] { wire->pump(); });
        return op([wire = wire_, mine = ++wire_->reads] {
            if (mine == wire->reads) wire->reading.reset();
        });
    }
    op write(std::string bytes, completion<std::size_t> done) override {
        wire_->writing = std::move(done);
        wire_->written = bytes.size();
        wire_->came += bytes;
        if (wire_->takes) {
            wire_->on.post([wire = wire_, heard = heard_] {
                auto written = std::move(wire->writing);
                if (written) written({}, wire->written);
                if (wire->open && heard) heard(*wire);
            });
        }
        return op([wire = wire_, mine = ++wire_->writes] {
            if (mine == wire->writes) wire->writing.reset();
        });
    }
    void finish() override {}
    void close() override {}

private:
    std::shared_ptr<scripted_wire> wire_;
    std::function<void(scripted_wire&)> heard_;
};

class scripted_server final : public stream_factory {
public:
    explicit scripted_server(loop& on) : on_(on) {}

    // How the next attempts to connect end; when there is nothing, well.
    enum class door { open, refuse, hang };
    std::deque<door> doors;
    door otherwise = door::open;
    // What the server does when something came; see answer_all.
    std::function<void(scripted_wire&)> heard;
    std::vector<std::shared_ptr<scripted_wire>> wires;  // one a connection
    std::vector<boot_clock::time_point> attempts;
    std::vector<stream_address> asked;
    std::vector<std::string> commands;  // that were answered by answer_all

    // Answers every command by f(command), at once.
    void answer_all(std::function<std::string(const std::string&)> f) {
        heard = [this, f = std::move(f)](scripted_wire& wire) {
            std::string all;
            for (auto& command : wire.take_commands()) {
                all += f(command);
                commands.push_back(std::move(command));
            }
            if (!all.empty()) wire.say(std::move(all));
        };
    }
    // With what was asked, as a status.
    void answer_with_the_command() {
        answer_all([](const std::string& command) { return "+" + command + "\r\n"; });
    }
    scripted_wire& last() { return *wires.back(); }

    op connect(const stream_address& to, deadline,
               completion<std::unique_ptr<byte_stream>> done) override {
        attempts.push_back(on_.now());
        asked.push_back(to);
        auto how = otherwise;
        if (!doors.empty()) {
            how = doors.front();
            doors.pop_front();
        }
        if (how == door::hang) return {};
        return on_.after(std::chrono::milliseconds(1), [this, how, d = std::move(done)]() mutable {
            if (how == door::refuse) {
                return d(std::make_error_code(std::errc::connection_refused), nullptr);
            }
            wires.push_back(std::make_shared<scripted_wire>(on_));
            d({}, std::make_unique<scripted_stream>(wires.back(), [this](scripted_wire& wire) {
                  if (heard) heard(wire);
              }));
        });
    }
    std::unique_ptr<stream_listener> listen(const stream_address&,
                                            std::error_code& error) override {
        error = std::make_error_code(std::errc::not_supported);
        return nullptr;
    }

private:
    loop& on_;
};

}  // namespace trinco::detail::test
