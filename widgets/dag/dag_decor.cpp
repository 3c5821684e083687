#include "widgets/dag/dag_decor.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// Pictures up to this many boxes and operators are decorated at once: a millisecond or two.
constexpr std::size_t kSmall = 2500;

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

std::vector<OrderArrow> ordersOf(const DagPicture &picture, const Plan &plan)
{
    std::vector<OrderArrow> arrows;
    const auto boxOf = [&](OperatorId op) {
        const auto &units = picture.outline->unitOfOperator;
        const std::int32_t unit = op.valid() && at(op.index) < units.size() ? units[at(op.index)] : -1;
        return unit < 0 ? -1 : picture.visible.boxOfUnit[at(unit)];
    };
    for (const auto &order : plan.orders) {
        const OrderArrow arrow {boxOf(order.first), boxOf(order.second), order.row};
        if (arrow.from >= 0 && arrow.to >= 0 && arrow.from != arrow.to)
            arrows.push_back(arrow);
    }
    std::sort(arrows.begin(), arrows.end());
    arrows.erase(std::unique(arrows.begin(), arrows.end()), arrows.end());
    if (arrows.size() > DagDecor::kMostOrders)
        arrows.resize(DagDecor::kMostOrders);
    return arrows;
}

} // namespace

DagDecorSnapshot decorate(const DagDecorRequest &request)
{
    auto decor = std::make_shared<DagDecor>();
    const auto &picture = *request.picture;
    decor->picture = request.picture;
    if (request.last && request.last->picture == request.picture)
        decor->labels = request.last->labels;
    else
        decor->labels = labelsOf(picture.visible, picture.scene, *request.font);
    decor->colours =
        coloursOf(*picture.outline, picture.visible, *request.facts, request.colourBy, request.palette);
    if (request.facts->plan)
        decor->orders = ordersOf(picture, *request.facts->plan);
    return decor;
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
    if (picture.visible.boxes.size() <= kSmall && picture.outline->units.size() <= kSmall) {
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
