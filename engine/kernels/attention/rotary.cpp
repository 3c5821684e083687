#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/movement/pick_plans.h"

#include <vector>

namespace planloom {

namespace {

/// Where the partner of each element of the last dimension lies, and the sign it enters with: the halves are
/// rotated into one another, or neighbours where `interleaved` (RoFormer, arXiv:2104.09864).
struct Partner {
    std::int64_t at = 0;
    int sign = 1;
};

std::vector<Partner> partners(bool interleaved, std::int64_t width)
{
    std::vector<Partner> made(static_cast<std::size_t>(width));
    const std::int64_t half = width / 2;
    for (std::int64_t i = 0; i < width; ++i) {
        const bool first = interleaved ? i % 2 == 0 : i < half;
        const std::int64_t distance = interleaved ? 1 : half;
        made[static_cast<std::size_t>(i)] = {first ? i + distance : i - distance, first ? -1 : 1};
    }
    return made;
}

/// Offsets of cos and sin for every row of x (a row is its last dimension), and their steps along it.
struct Angles {
    LoopNest<3> rows;
    std::int64_t cosStep;
    std::int64_t sinStep;
};

Angles anglesOf(const Shape &x, const Shape &cosine, const Shape &sine)
{
    const Shape cosStrides = broadcastStrides(cosine, x);
    const Shape sinStrides = broadcastStrides(sine, x);
    Shape rows = x;
    rows.back() = 1;
    return {
        LoopNest<3>(rows, {denseStrides(x), cosStrides, sinStrides}), cosStrides.back(), sinStrides.back()};
}

/// Element i of x is turned by what its partner is, with a sign; so, backward, the partner gets i's gradient
/// with that sign.
template<typename T> void turn(const RotaryPlan &plan, const std::vector<Partner> &partner, bool isBackward)
{
    const Angles angles = anglesOf(plan.x->shape, plan.cosine->shape, plan.sine->shape);
    angles.rows.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t r = 0; r < count; ++r) {
            const T *from = elements<const T>(*plan.x) + at[0] + r * steps[0];
            const T *c = elements<const T>(*plan.cosine) + at[1] + r * steps[1];
            const T *s = elements<const T>(*plan.sine) + at[2] + r * steps[2];
            T *to = elements<T>(*plan.made) + at[0] + r * steps[0];
            for (std::int64_t i = 0; i < std::ssize(partner); ++i) {
                const Partner &p = partner[static_cast<std::size_t>(i)];
                to[i] = from[i] * c[i * angles.cosStep]
                    + static_cast<T>(isBackward ? -p.sign : p.sign) * from[p.at]
                        * s[(isBackward ? p.at : i) * angles.sinStep];
            }
        }
    });
}

Result<void> rotaryForward(const KernelCall &call, const RotaryPlan &plan)
{
    const auto partner = partners(plan.interleaved, plan.x->shape.back());
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) { turn<T>(plan, partner, false); });
}

Result<void> rotaryBackward(const KernelCall &call, const RotaryPlan &plan)
{
    const Buffer *dy = plan.x;
    const Buffer *dcos = plan.dcos;
    const Buffer *dsin = plan.dsin;
    const std::int64_t width = dy->shape.back();
    const auto partner = partners(plan.interleaved, width);
    return withFloat(call, dy->dataType, [&]<typename T>(T) {
        if (plan.made != nullptr)
            turn<T>(plan, partner, true);
        if (dcos == nullptr && dsin == nullptr)
            return;
        const Angles angles = anglesOf(
            dy->shape, (dcos != nullptr ? dcos : dsin)->shape, (dsin != nullptr ? dsin : dcos)->shape);
        std::vector<double> cosSums(dcos == nullptr ? 0 : static_cast<std::size_t>(elementCount(*dcos)), 0.0);
        std::vector<double> sinSums(dsin == nullptr ? 0 : static_cast<std::size_t>(elementCount(*dsin)), 0.0);
        angles.rows.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
            for (std::int64_t r = 0; r < count; ++r) {
                const T *gradient = elements<const T>(*dy) + at[0] + r * steps[0];
                const T *value = elements<const T>(*plan.value) + at[0] + r * steps[0];
                for (std::int64_t i = 0; i < width; ++i) {
                    const Partner &p = partner[static_cast<std::size_t>(i)];
                    if (dcos != nullptr)
                        cosSums[static_cast<std::size_t>(at[1] + r * steps[1] + i * angles.cosStep)] +=
                            static_cast<double>(gradient[i] * value[i]);
                    if (dsin != nullptr)
                        sinSums[static_cast<std::size_t>(at[2] + r * steps[2] + i * angles.sinStep)] +=
                            static_cast<double>(static_cast<T>(p.sign) * gradient[i] * value[p.at]);
                }
            }
        });
        if (dcos != nullptr)
            storeSums<T>(cosSums, *dcos);
        if (dsin != nullptr)
            storeSums<T>(sinSums, *dsin);
    });
}

} // namespace

void addRotaryKernels(KernelTable &table)
{
    table.add(
        {OperatorKind::Rotary}, planned<planRotary, rotaryForward>, planned<planRotary, rotaryBackward>);
}

} // namespace planloom
