#pragma once

#include "engine/graph/operator_files/operator_file.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace planloom::testing_support {

/// x * sigmoid(beta x) * scale as a body, and the same by the functions of the tests' library.
inline std::string swishFile()
{
    return R"(planloom-operators 1

# With a body, differentiated by itself.
operator test.ops::ScaledSwish
inputs      x, scale
outputs     y
attribute   beta = 1.0
annotation  b s h, h -> b s h
flops       14 * b * s * h
body
    z = Mul(x, beta)
    g = Sigmoid(z)
    m = Mul(x, g)
    y = Mul(m, scale)
end

# With a library, which keeps what its gradient reads.
operator test.ops::LibrarySwish
inputs      x, scale
outputs     y
saves       kept
attribute   beta = 1.0
annotation  b s h, h -> b s h, b s h
flops       14 * b * s * h
library     ")"
        + std::string(PLANLOOM_BINARY_DIR) + R"(/tests/liboperators_for_tests.so" scaled_swish
derivative  test.ops::LibrarySwishGradient(d.y, x, scale, kept) -> d.x, d.scale

operator test.ops::LibrarySwishGradient
inputs      dy, x, scale, kept
outputs     dx: like x, dscale: like scale
attribute   beta = 1.0
annotation  b+ s+ h, b+ s+ h, h, b+ s+ h -> b+ s+ h, h
workspace   8 * h
library     ")"
        + std::string(PLANLOOM_BINARY_DIR) + R"(/tests/liboperators_for_tests.so" scaled_swish_gradient
)";
}

inline std::vector<std::shared_ptr<const OperatorDefinition>> definitionsOf(const std::string &text)
{
    auto definitions = readOperatorFile(text, "test.ops");
    EXPECT_TRUE(definitions) << describe(definitions.error());
    return definitions.value_or(std::vector<std::shared_ptr<const OperatorDefinition>>{});
}

inline std::string testLibrary()
{
    return std::string(PLANLOOM_BINARY_DIR) + "/tests/liboperators_for_tests.so";
}

} // namespace planloom::testing_support
