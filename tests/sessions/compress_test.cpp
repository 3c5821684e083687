#include "sessions/compress.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Compress, RoundTripsAndRefusesLies)
{
    for (const std::string &text : {std::string{}, std::string("a"), std::string(100'000, 'b')}) {
        const auto packed = deflated(text);
        ASSERT_TRUE(packed);
        const auto back = inflated(*packed, text.size(), 1 << 20);
        ASSERT_TRUE(back) << back.error().message;
        EXPECT_EQ(*back, text);
        EXPECT_FALSE(inflated(*packed, text.size() + 1, 1 << 20));
        EXPECT_EQ(inflated(*packed, std::size_t{1} << 40, 1 << 20).error().code, ErrorCode::ResourceLimit);
    }
    EXPECT_FALSE(inflated("rubbish", 7, 1 << 20));
    EXPECT_FALSE(inflated("x", 1 << 19, 1 << 20));
}

TEST(Compress, TheChecksumIsCrc32)
{
    EXPECT_EQ(checksum(""), 0U);
    EXPECT_EQ(checksum("123456789"), 0xCBF43926U); // the check value that every catalogue of CRCs gives
}

} // namespace
} // namespace planloom
