#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>

#include "widgets/dag/dag_colours.h"
#include "widgets/dag/dag_text.h"
#include "widgets/dag/dag_traffic.h"
#include "widgets/dag/layout_service.h"
#include "widgets/scene/timeline_scene.h"

#include <map>
#include <memory>
#include <vector>

namespace planloom {

/// An order between two boxes that rows ask for, of operators in the same micro-batch.
struct OrderArrow {
    std::int32_t from = 0; ///< Box.
    std::int32_t to = 0; ///< Box.
    RowId row{};
    friend auto operator<=>(const OrderArrow &, const OrderArrow &) = default;
};

/// What is known of all that a box stands for, for words about it.
struct BoxFacts {
    std::int32_t operators = 0; ///< With the backward and optimizer ones folded into them.
    double seconds = -1; ///< Of one training step; negative if unknown.
    bool planned = false; ///< There is a plan, so that the next two say something.
    QString devices{}; ///< "0-3".
    std::int32_t rows = 0; ///< That act on some of its operators.
};
/// O(operators of the box).
BoxFacts factsOf(
    const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts, std::int32_t box);

/// What a picture is shown with.
struct DagDecor {
    DagPictureSnapshot picture{};
    DagLabels labels{};
    DagColours colours{};
    std::vector<OrderArrow> orders{}; ///< Ascending, each pair of boxes once a row; the first `kMostOrders`.
    static constexpr std::size_t kMostOrders = 500;
    TimelineSceneSnapshot scene{}; ///< The request's.
    std::vector<TrafficBadge> traffic{}; ///< Of what the scene communicates.
    /// Of boxes that stand for more than `kManyUnits` units, by box; of others, `factsOf` tells at once.
    std::map<std::int32_t, BoxFacts> facts{};
    static constexpr std::int32_t kManyUnits = 64;
    std::vector<std::int32_t>
        operatorsOnDevice{}; ///< By device: forward operators with a part there; empty without a plan.
};
using DagDecorSnapshot = std::shared_ptr<const DagDecor>;

/// What decor follows from.
struct DagDecorRequest {
    DagPictureSnapshot picture{};
    std::shared_ptr<const FontTable> font{};
    std::shared_ptr<const OperatorFacts> facts{};
    TimelineSceneSnapshot scene{}; ///< Of the same plan; null leaves communication out.
    ColourBy colourBy = ColourBy::Kind;
    Palette palette{};
    DagDecorSnapshot last{}; ///< Its labels are taken over where they are of the same picture and font.
};
/// O(boxes + operators).
DagDecorSnapshot decorate(const DagDecorRequest &request);

/// Makes decor, large ones off the GUI thread; the newest request wins.
class DagDecorator : public QObject
{
    Q_OBJECT
public:
    explicit DagDecorator(QObject *parent = nullptr);

    /// Small ones are ready before this returns.
    void request(DagDecorRequest request);
    bool isBusy() const { return m_busy; }
    void cancel();

Q_SIGNALS:
    void ready(planloom::DagDecorSnapshot decor);

private:
    QFutureWatcher<DagDecorSnapshot> m_watcher{this};
    bool m_busy = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::DagDecorSnapshot)
