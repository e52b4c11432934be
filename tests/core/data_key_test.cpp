#include "core/lock/data_key.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/lock/once.hpp"
#include "core/names.hpp"

namespace trinco::detail {
namespace {

TEST(DataKey, HasAColonBeforeAnySlash) {
    for (const std::string& good :
         {std::string("a:"), std::string("accounts:7"), std::string("stock:blue/left"),
          std::string("a:b:c//d/"), "k:" + std::string(max_data_key - 2, 'x')}) {
        EXPECT_FALSE(check_data_key(good).has_value()) << good;
        EXPECT_TRUE(is_data_key(good)) << good;
    }
    for (const std::string& bad :
         {std::string(), std::string("accounts"), std::string(":7"), std::string("/a:7"),
          std::string("accounts/7:left"), std::string("trinco:7"),
          std::string("trinco:records/once/a"), std::string("a: 7"), std::string("a:\n"),
          std::string("a:\0b", 4), std::string("a:\xc3\xa9"),
          "k:" + std::string(max_data_key - 1, 'x')}) {
        const auto said = check_data_key(bad);
        ASSERT_TRUE(said.has_value()) << bad;
        EXPECT_NE(said->find("1 to 256"), std::string::npos) << "what is allowed: " << *said;
    }
}

// What etcdctl and Go wait for is whatever lies under NAME/.
TEST(DataKey, IsBeneathNoLockAndIsNoRecord) {
    const std::string key = "a:b/c.d/e";
    for (std::size_t i = 0; i < key.size(); ++i) {
        if (key[i] != '/') continue;
        EXPECT_TRUE(check_lock_name(key.substr(0, i)).has_value()) << i;
    }
    for (const char* of : {"a", "invoice/42", ".x"}) EXPECT_FALSE(is_data_key(once_key_of(of)));
}

}  // namespace
}  // namespace trinco::detail
