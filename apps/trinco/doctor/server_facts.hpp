// What a Redis says about itself, and what that means for breakers. Pure.
//
// What a server does not say (INFO or CONFIG may be denied) is not known, and not judged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

class server_facts {
public:
    // "key:value" lines, as INFO answers them. May be called with several sections.
    void read_info(std::string_view text);
    // One answer of CONFIG GET.
    void set_config(std::string key, std::string value);

    [[nodiscard]] bool empty() const noexcept { return said_.empty(); }
    [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string& key) const;

private:
    std::map<std::string, std::string> said_;
};

// Each adds what it can tell, or nothing.
void judge_version(const server_facts& facts, examination& to);
void judge_role(const server_facts& facts, examination& to);
// "eviction" and "memory". `writes_refused`: a write was just answered with OOM.
void judge_memory(const server_facts& facts, bool writes_refused, examination& to);
// `writes_refused`: a write was just answered with MISCONF.
void judge_persistence(const server_facts& facts, bool writes_refused, examination& to);
void judge_replicas(const server_facts& facts, examination& to);

}  // namespace trinco::program::doctor
