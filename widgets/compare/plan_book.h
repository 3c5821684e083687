#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtGui/QImage>

#include "widgets/common/palette.h"
#include "widgets/compare/compare_choice.h"
#include "widgets/design/plan_update.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace planloom {

class Workspace;

/// What is known of one plan of the session, for lists.
struct PlanFacts {
    StepFigures figures{};
    double bubble = 0;
    std::int32_t rows = 0;
    std::int32_t devices = 0;
    std::int64_t memoryCap = 0; ///< Bytes a device has.
    QString why{}; ///< Why there is no plan; empty if there is.
    QString name{}; ///< What the plan is (`planNameOf`); empty until found.
    QImage picture{}; ///< Its timeline, small; null until painted.
    friend bool operator==(const PlanFacts &, const PlanFacts &) = default;
};

/// Gathers the facts of plans as they are asked for, one plan at a time, painted and named on a worker; keeps
/// facts, not plans.
class PlanBook : public QObject
{
    Q_OBJECT
public:
    explicit PlanBook(Workspace *workspace, QObject *parent = nullptr);
    ~PlanBook() override;

    /// Null until known. `step` may be kCurrentPlan.
    const PlanFacts *find(StepId step) const;
    /// Makes known what is not, in this order; what was wanted before is forgotten.
    void want(std::vector<StepId> steps);
    /// How pictures are painted: a change paints them anew.
    void setLooks(Theme theme, QSize size, qreal ratio);

Q_SIGNALS:
    void factsChanged(planloom::StepId step);

private:
    struct Painted {
        StepId step = 0;
        std::uint64_t generation = 0;
        QImage image{};
        QString name{};
    };
    void forget();
    void followCurrent();
    void askNext();
    void learn(StepId step, const PlanUpdateSnapshot &update);
    void paintNext();

    Workspace *m_workspace;
    std::map<StepId, PlanFacts> m_facts;
    std::vector<StepId> m_wanted; ///< In order; front is asked for.
    std::optional<StepId> m_asked;
    std::map<StepId, PlanUpdateSnapshot> m_unpainted; ///< Waiting for the painter.
    QFutureWatcher<Painted> m_painter{this};
    std::uint64_t m_generation = 0; ///< Of session and looks: older pictures are dropped.
    PlanUpdateSnapshot m_current; ///< That facts of kCurrentPlan are of.
    Theme m_theme = Theme::Light;
    QSize m_size{160, 36};
    qreal m_ratio = 1;
};

} // namespace planloom
