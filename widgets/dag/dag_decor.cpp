#include "widgets/dag/dag_decor.h"

#include "engine/base/background_disposal.h"
#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "widgets/dag/device_shelf.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// Pictures up to this many boxes and units are decorated at once: well below a millisecond.
constexpr std::size_t kSmall = 250;

std::vector<OrderArrow> ordersOf(const DagPicture &picture, const Plan &plan)
{
    std::vector<OrderArrow> arrows;
    const auto boxOf = [&](OperatorId op) {
        const auto &units = picture.outline->unitOfOperator;
        const std::int32_t unit = op.valid() && at(op.index) < units.size() ? units[at(op.index)] : -1;
        return unit < 0 ? -1 : picture.visible.boxOfUnit[at(unit)];
    };
    for (const auto &order : plan.orders) {
        // What runs before something of another micro-batch, as every order of two blocks does, has no place
        // here: the graph shows one micro-batch, in which the arrows would point backwards. The timeline
        // shows it.
        if (order.microBatchOffset != 0)
            continue;
        const OrderArrow arrow{boxOf(order.first), boxOf(order.second), order.row};
        if (arrow.from >= 0 && arrow.to >= 0 && arrow.from != arrow.to)
            arrows.push_back(arrow);
    }
    std::sort(arrows.begin(), arrows.end());
    arrows.erase(std::unique(arrows.begin(), arrows.end()), arrows.end());
    if (arrows.size() > DagDecor::kMostOrders)
        arrows.resize(DagDecor::kMostOrders);
    return arrows;
}

/// Facts of the boxes that stand for many units.
void tellLargeBoxes(DagDecor &decor, const OperatorFacts &facts)
{
    const auto &visible = decor.picture->visible;
    std::vector<std::int32_t> units(visible.boxes.size(), 0);
    for (std::size_t box = units.size(); box-- > 0;) {
        units[box] += visible.unitBegin[box + 1] - visible.unitBegin[box];
        if (visible.boxes[box].parent >= 0)
            units[at(visible.boxes[box].parent)] += units[box];
        if (units[box] > DagDecor::kManyUnits)
            decor.facts.emplace(static_cast<std::int32_t>(box),
                factsOf(*decor.picture->outline, visible, facts, static_cast<std::int32_t>(box)));
    }
}

} // namespace

BoxFacts factsOf(
    const DagOutline &outline, const VisibleGraph &visible, const OperatorFacts &facts, std::int32_t box)
{
    BoxFacts result;
    const std::size_t all = outline.graph->operators.size();
    const bool timed = facts.seconds.size() == all;
    result.planned = facts.plan && facts.plan->decisions.size() == all;
    std::vector<std::int32_t> devices;
    std::vector<std::int32_t> rows;
    const auto tidy = [](std::vector<std::int32_t> &values) {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
    };
    const auto operators = operatorsOf(outline, visible, box);
    result.operators = static_cast<std::int32_t>(operators.size());
    if (timed)
        result.seconds = 0;
    for (const auto op : operators) {
        if (timed)
            result.seconds += facts.seconds[at(op.index)];
        if (!result.planned)
            continue;
        const auto &decision = facts.plan->decisions[at(op.index)];
        for (const auto device : decision.devices)
            devices.push_back(device.index);
        for (const auto row : decision.rows)
            rows.push_back(row.index);
        if (devices.size() > 4096)
            tidy(devices);
        if (rows.size() > 4096)
            tidy(rows);
    }
    tidy(rows);
    result.rows = static_cast<std::int32_t>(rows.size());
    tidy(devices);
    if (result.planned)
        result.devices = QString::fromStdString(rangesOf(devices));
    return result;
}

DagDecorSnapshot decorate(const DagDecorRequest &request)
{
    DagDecor decor;
    const auto &picture = *request.picture;
    decor.picture = request.picture;
    if (request.last && request.last->picture == request.picture)
        decor.labels = request.last->labels;
    else
        decor.labels = labelsOf(picture.visible, picture.scene, *request.font);
    decor.colours =
        coloursOf(*picture.outline, picture.visible, *request.facts, request.colourBy, request.palette);
    if (const auto &plan = request.facts->plan) {
        decor.orders = ordersOf(picture, *plan);
        decor.operatorsOnDevice = operatorsOnDevices(*plan);
    }
    decor.scene = request.scene;
    if (request.scene && request.scene->plan && request.scene->plan->graph == picture.outline->graph)
        decor.traffic = trafficBadges(picture, request.scene->communication);
    tellLargeBoxes(decor, *request.facts);
    return sharedInBackground(std::move(decor));
}

DagDecorator::DagDecorator(QObject *parent)
    : QObject(parent)
{
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (!std::exchange(m_busy, false))
            return; // given up
        Q_EMIT ready(m_watcher.result());
    });
}

void DagDecorator::request(DagDecorRequest request)
{
    const auto &picture = *request.picture;
    const bool fewEdges = !request.scene || request.scene->communication.size() <= kSmall;
    if (picture.visible.boxes.size() <= kSmall && picture.outline->units.size() <= kSmall && fewEdges) {
        m_busy = false;
        Q_EMIT ready(decorate(request));
        return;
    }
    m_busy = true;
    m_watcher.setFuture(QtConcurrent::run([request = std::move(request)] { return decorate(request); }));
}

void DagDecorator::cancel()
{
    m_busy = false;
}

} // namespace planloom

#include "moc_dag_decor.cpp"
