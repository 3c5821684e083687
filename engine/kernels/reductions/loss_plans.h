#pragma once

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_plan.h"

namespace planloom {

// Losses over classes. A plan serves both directions: a buffer is null where its direction has none, where it
// is absent, or where it is not wanted. Labels are integers, one for each item.

/// CrossEntropy and NegativeLogLikelihood.
struct LossPlan {
    const Buffer *x = nullptr; ///< Logits; or logarithms of probabilities, which the gradient does not need.
    const Buffer *labels = nullptr;
    const Buffer *weights = nullptr; ///< By class.
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *made = nullptr;
    AxisView view{}; ///< Of x, along its classes.
    bool logits = true;
    bool isSum = true; ///< Of all items; else each has a loss of its own.
};
Planned<LossPlan> planLoss(const KernelCall &call);

/// ClassStatistics: of the classes that a part has, the log-sum-exp and the label's logit, if it is one.
struct ClassStatisticsPlan {
    const Buffer *x = nullptr;
    const Buffer *labels = nullptr;
    const Buffer *sums = nullptr;
    const Buffer *picked = nullptr;
    const Buffer *dSums = nullptr;
    const Buffer *dPicked = nullptr;
    const Buffer *dx = nullptr; ///< Null: forward.
    AxisView view{};
    std::int64_t classes = 0; ///< Of the whole operator.
    std::int64_t first = 0; ///< Class of this part.
};
Planned<ClassStatisticsPlan> planClassStatistics(const KernelCall &call);

/// ClassLoss, of statistics over all classes; and CountValid, the sum of the weights of its labels.
struct ClassLossPlan {
    const Buffer *sums = nullptr; ///< Backward: its gradient; as is `picked`.
    const Buffer *picked = nullptr;
    const Buffer *labels = nullptr;
    const Buffer *weights = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *made = nullptr;
    std::int64_t classes = 0; ///< As far as weights tell: without any, labels may be as large as they like.
    bool isSum = true;
};
Planned<ClassLossPlan> planClassLoss(const KernelCall &call);
Planned<ClassLossPlan> planCountValid(const KernelCall &call);

} // namespace planloom
