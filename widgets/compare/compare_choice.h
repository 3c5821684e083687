#pragma once

#include <QtCore/QObject>

#include "sessions/history.h"

#include <vector>

namespace planloom {

/// Stands for the design as it is now, whatever step that is: a comparison with it follows every edit.
constexpr StepId kCurrentPlan = -1;

/// Which plans are compared: A, what all are measured against, then B, and up to four more. Shared by the
/// Plans dock and the comparison.
class CompareChoice : public QObject
{
    Q_OBJECT
public:
    static constexpr std::size_t kMost = 6;

    explicit CompareChoice(QObject *parent = nullptr);

    /// Steps, or kCurrentPlan; each once. The first is A, the second B.
    const std::vector<StepId> &plans() const { return m_plans; }
    bool isPair() const { return m_plans.size() >= 2; }
    StepId a() const { return m_plans.empty() ? 0 : m_plans[0]; }
    StepId b() const { return m_plans.size() < 2 ? kCurrentPlan : m_plans[1]; }
    /// 0 for A, 1 for B ...; -1 if it is not chosen.
    int indexOf(StepId step) const;

    /// Duplicates and all beyond kMost are left out.
    void setPlans(std::vector<StepId> plans);
    /// Puts `step` in A's place; if it was B, the two change places.
    void setA(StepId step);
    void setB(StepId step);
    /// @return false if there are kMost already
    bool setChosen(StepId step, bool chosen);
    void swap(); ///< A and B.

Q_SIGNALS:
    void changed();

private:
    void put(std::size_t place, StepId step);

    std::vector<StepId> m_plans{0, kCurrentPlan};
};

} // namespace planloom
