#include "engine/runtime/devices/box_copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace planloom {
namespace {

std::vector<std::vector<float>> summandsOf(std::size_t number, std::size_t count)
{
    std::vector<std::vector<float>> summands(number, std::vector<float>(count));
    for (std::size_t k = 0; k < number; ++k)
        for (std::size_t i = 0; i < count; ++i) // of sizes so different that any other order rounds otherwise
            summands[k][i] =
                (k % 2 == 0 ? 1.0f : -1e-6f) * static_cast<float>(1 + (i * 7 + k * 13) % 101) / 3;
    return summands;
}

TEST(SumInto, AddsInTheOrderOfTheSummandsWhereverTheSumLies)
{
    for (const std::size_t count :
        {std::size_t{1}, std::size_t{2047}, std::size_t{2048}, std::size_t{5001}}) {
        for (std::size_t number = 1; number <= 10; ++number) {
            for (std::size_t place = 0; place <= number; ++place) { // the last one is apart from all
                SCOPED_TRACE(
                    testing::Message() << number << " summands of " << count << " numbers, into " << place);
                auto summands = summandsOf(number, count);
                std::vector<float> expected = summands[0];
                for (std::size_t k = 1; k < number; ++k)
                    for (std::size_t i = 0; i < count; ++i)
                        expected[i] += summands[k][i];
                summands.emplace_back(count);
                std::vector<const std::byte *> from;
                for (std::size_t k = 0; k < number; ++k)
                    from.push_back(reinterpret_cast<const std::byte *>(summands[k].data()));
                ASSERT_TRUE(sumInto(
                    reinterpret_cast<std::byte *>(summands[place].data()), from, count, DataType::Float32));
                EXPECT_EQ(summands[place], expected);
            }
        }
    }
}

} // namespace
} // namespace planloom
