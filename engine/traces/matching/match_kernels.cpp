#include "engine/traces/matching/match_kernels.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace planloom {

namespace {

using Indices = std::vector<std::size_t>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr std::size_t kMostKernelPairs = 4'000'000;
/// What it costs to leave one out, beside the logarithm of how far two durations are apart.
constexpr float kGap = 1.0F;
constexpr float kMostCost = 1.8F; ///< Of a pair: less than leaving both out.

Indices anchorsOf(const std::vector<KernelStep> &steps)
{
    Indices anchors;
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].kind != KernelClass::Other)
            anchors.push_back(i);
    return anchors;
}

double sumOf(const std::vector<KernelStep> &steps, const Indices &anchors)
{
    double sum = 0;
    for (const std::size_t i : anchors)
        sum += static_cast<double>(steps[i].duration);
    return sum;
}

/// By the smallest sum of costs.
Pairs aligned(const std::vector<KernelStep> &plan, const Indices &a, const std::vector<KernelStep> &trace,
    const Indices &b)
{
    // Durations are compared as shares: machines may differ by a factor from what was predicted.
    const double scale = sumOf(trace, b) / std::max(1.0, sumOf(plan, a));
    const auto costOf = [&](std::size_t i, std::size_t j) {
        if (plan[a[i]].kind != trace[b[j]].kind)
            return 2 * kGap;
        const double predicted = std::max(1.0, static_cast<double>(plan[a[i]].duration) * scale);
        const double measured = std::max(1.0, static_cast<double>(trace[b[j]].duration));
        return std::min(kMostCost, static_cast<float>(std::abs(std::log(measured / predicted))));
    };
    const std::size_t n = a.size();
    const std::size_t m = b.size();
    std::vector<float> cost((n + 1) * (m + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> float & { return cost[i * (m + 1) + j]; };
    for (std::size_t i = n + 1; i-- > 0;)
        for (std::size_t j = m + 1; j-- > 0;) {
            if (i == n || j == m) {
                at(i, j) = static_cast<float>((n - i) + (m - j)) * kGap;
                continue;
            }
            at(i, j) = std::min({at(i + 1, j) + kGap, at(i, j + 1) + kGap, at(i + 1, j + 1) + costOf(i, j)});
        }
    Pairs pairs;
    for (std::size_t i = 0, j = 0; i < n && j < m;) {
        if (plan[a[i]].kind == trace[b[j]].kind && at(i, j) == at(i + 1, j + 1) + costOf(i, j))
            pairs.emplace_back(a[i++], b[j++]);
        else if (at(i, j) == at(i + 1, j) + kGap)
            ++i;
        else
            ++j;
    }
    return pairs;
}

} // namespace

KernelClass kernelClassOf(std::string_view name)
{
    static constexpr std::array<std::string_view, 5> kAttentions{
        "flash", "fmha", "attention", "sdpa", "sdp_"};
    static constexpr std::array<std::string_view, 14> kProducts{"gemm", "gemv", "matmul", "::mm", "::bmm",
        "::addmm", "::baddbmm", "::linear", "::einsum", "conv", "cutlass", "nvjet", "mmbackward", "xmma"};
    const std::string letters = lowerCase(name.substr(0, 256));
    const auto has = [&](std::string_view word) { return letters.find(word) != std::string::npos; };
    if (std::any_of(kAttentions.begin(), kAttentions.end(), has))
        return KernelClass::Attention;
    return std::any_of(kProducts.begin(), kProducts.end(), has) ? KernelClass::Product : KernelClass::Other;
}

std::vector<std::pair<std::size_t, std::size_t>> matchKernels(
    const std::vector<KernelStep> &plan, const std::vector<KernelStep> &trace)
{
    const Indices a = anchorsOf(plan);
    const Indices b = anchorsOf(trace);
    const std::size_t both = std::min(a.size(), b.size());
    bool isInOrder = a.size() == b.size() || a.size() > kMostKernelPairs / std::max<std::size_t>(b.size(), 1);
    for (std::size_t i = 0; i < both && isInOrder && a.size() == b.size(); ++i)
        isInOrder = plan[a[i]].kind == trace[b[i]].kind;
    if (!isInOrder)
        return aligned(plan, a, trace, b);
    Pairs pairs;
    for (std::size_t i = 0; i < both; ++i)
        if (plan[a[i]].kind == trace[b[i]].kind)
            pairs.emplace_back(a[i], b[i]);
    return pairs;
}

} // namespace planloom
