// What the canvas tells of its boxes, and how it finds them: tooltips and find.

#include "engine/base/ids.h"
#include "widgets/dag/dag_view.h"

#include "engine/graph/annotation/annotation.h"
#include "widgets/common/format.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_query.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QPromise>

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <utility>

namespace planloom {

bool DagView::event(QEvent *event)
{
    if (event->type() == QEvent::ShortcutOverride && m_gestures->dragging()) {
        event->accept(); // in the middle of a drag keys are the drag's own
        return true;
    }
    if (event->type() == QEvent::ShortcutOverride && m_gestures->focusedOrder() >= 0
        && static_cast<QKeyEvent *>(event)->key() == Qt::Key_F2) { // the type was checked
        event->accept(); // edits the order that has the focus
        return true;
    }
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type was checked
        const std::int32_t box = boxAt(help->pos());
        const bool onNode = box > 0
            && (!m_picture->visible.at(box).frame
                || m_camera.sceneY(help->pos().y())
                    < m_picture->scene.rects[at(box)].y + DagMetrics::kFrameHeader);
        if (const auto badge = trafficAt(help->pos()))
            QToolTip::showText(help->globalPos(), planloom::tooltipOf(traffic()[*badge]), this,
                trafficRect(*badge).toAlignedRect());
        else if (onNode)
            QToolTip::showText(help->globalPos(), tooltipOf(box), this, viewRect(box).toAlignedRect());
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

BoxFacts DagView::boxFacts(std::int32_t box) const
{
    if (m_decor) {
        if (const auto found = m_decor->facts.find(box); found != m_decor->facts.end())
            return found->second;
    }
    return factsOf(*m_outline, m_picture->visible, *m_facts, box);
}

QString DagView::tooltipOf(std::int32_t box) const
{
    const auto &shown = m_picture->visible.at(box);
    const auto &item = m_outline->at(shown.item);
    const auto text = [](const std::string &words) { return QString::fromStdString(words).toHtmlEscaped(); };
    QString html;
    const auto row = [&html](const QString &name, const QString &value) {
        html += QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(name, value);
    };
    const BoxFacts known = boxFacts(box);
    const auto facts = [&] {
        if (known.seconds >= 0)
            row(tr("Time a step"), text(formatSeconds(known.seconds)));
        if (known.planned)
            row(tr("Devices"), known.devices);
    };
    if (item.kind != OutlineItem::Kind::Operator) {
        const auto &labels = m_decor->labels;
        html = QStringLiteral("<b>%1</b><table>").arg(labels.titles[at(box)].toHtmlEscaped());
        if (item.scope.valid() && item.scope.index > 0)
            row(tr("Module"), text(pathOf(*m_graph, item.scope)));
        row(tr("Operators"), text(formatCount(known.operators)));
        facts();
        html +=
            QStringLiteral("</table><i>%1</i>")
                .arg(shown.frame ? tr("Double-click or E closes it.") : tr("Double-click or E opens it."));
        return html;
    }
    const auto &unit = m_outline->units[at(item.begin)];
    const auto &op = m_graph->at(unit.op);
    html = QStringLiteral("<b>%1</b><table>").arg(text(op.name));
    row(tr("Kind"), text(typeNameOf(op)) + QStringLiteral(", ") + nameOfDirection(op.direction).toLower());
    const auto tensors = [&](const QString &name, const std::vector<TensorId> &ids) {
        QStringList lines;
        for (const auto id : ids) {
            if (!id.valid())
                continue;
            if (lines.size() == 8) {
                lines.append(QStringLiteral("…"));
                break;
            }
            const auto &tensor = m_graph->at(id);
            lines.append(
                text(elided(tensor.name, 44)) + QStringLiteral(" &nbsp;") + text(formatType(tensor)));
        }
        if (!lines.isEmpty())
            row(name, lines.join(QStringLiteral("<br>")));
    };
    tensors(tr("Inputs"), op.inputs);
    tensors(tr("Outputs"), op.outputs);
    row(tr("Dimensions"), QStringLiteral("<code>%1</code>").arg(text(toString(op.annotation))));
    if (!op.annotationProblem.empty())
        row(tr("Kept whole"), text(op.annotationProblem));
    if (unit.backward.valid())
        row(tr("Backward"), text(m_graph->at(unit.backward).name));
    if (!unit.optimizers.empty())
        row(tr("Optimizer"),
            tr("%n step(s), %1", nullptr, static_cast<int>(unit.optimizers.size()))
                .arg(text(nameOf(m_graph->at(unit.optimizers.front()).kind))));
    if (op.sources.size() > 1)
        row(tr("Fused from"), tr("%n node(s)", nullptr, static_cast<int>(op.sources.size())));
    if (shown.copies > 1)
        row(tr("Stands for"), tr("%n copies", nullptr, shown.copies));
    facts();
    return html + QStringLiteral("</table>");
}

void DagView::openFind()
{
    placeFindBar();
    m_findBar->open();
    search(m_findBar->text());
}

void DagView::placeFindBar()
{
    m_findBar->adjustSize();
    m_findBar->move(std::max(0, width() - m_findBar->width() - 12), 10);
}

/// What a search found.
struct DagSearch {
    std::shared_ptr<const DagOutline> outline{};
    std::vector<OperatorId> operators{};
    std::vector<std::int32_t> units{}; ///< Ascending, each once.
    QString problem{};
};

namespace {

std::shared_ptr<const DagSearch> carryOut(const std::shared_ptr<const DagOutline> &outline,
    const std::string &text, DagQueryWorld world, const std::stop_token &stop)
{
    auto search = std::make_shared<DagSearch>();
    search->outline = outline;
    const auto query = parseDagQuery(text);
    if (!query) {
        search->problem = QString::fromStdString(query.error().message);
        return search;
    }
    if (!world.index)
        world.index = std::make_shared<const SelectorIndex>(outline->graph);
    search->operators = askDagQuery(*query, world, stop);
    for (const auto op : search->operators) {
        // A folded backward operator is found where it is shown only if its forward one is not what was asked
        // for.
        const std::int32_t unit = outline->unitOfOperator[at(op.index)];
        if (unit >= 0)
            search->units.push_back(unit);
    }
    std::sort(search->units.begin(), search->units.end());
    search->units.erase(std::unique(search->units.begin(), search->units.end()), search->units.end());
    return search;
}

/// Models up to this size are searched at once: well below a millisecond.
constexpr std::size_t kSmallModel = 2500;

} // namespace

void DagView::search(const QString &text)
{
    m_searchStop.request_stop();
    m_searchStop = std::stop_source{};
    m_searching = false;
    m_stepWhenFound = 0;
    m_matches.clear();
    m_found.clear();
    m_match = -1;
    const QString wanted = text.trimmed();
    if (!m_picture || wanted.isEmpty()) {
        m_findBar->setProblem({});
        m_findBar->setMatches(m_match, 0);
        refreshMarks();
        update();
        return;
    }
    DagQueryWorld world;
    if (const auto context = m_gestures->gestures().context();
        context && context->index().snapshot() == m_graph)
        world.index = context->model.index;
    world.plan = m_facts->plan;
    world.seconds = m_facts->seconds;
    auto job = [outline = m_picture->outline, words = wanted.toStdString(), world = std::move(world),
                   stop = m_searchStop.get_token()] { return carryOut(outline, words, world, stop); };
    m_searching = true;
    if (m_graph->operators.size() <= kSmallModel) {
        QPromise<std::shared_ptr<const DagSearch>> done;
        done.start();
        done.addResult(job());
        done.finish();
        m_searchWatcher.setFuture(done.future());
        takeSearch();
        return;
    }
    m_searchWatcher.setFuture(QtConcurrent::run(std::move(job)));
}

void DagView::takeSearch()
{
    if (!m_searching)
        return;
    m_searching = false;
    const auto search = m_searchWatcher.result();
    if (!m_picture || search->outline != m_picture->outline)
        return; // of a model that has gone
    m_matches = search->units;
    m_found = search->operators;
    m_findBar->setProblem(search->problem);
    m_findBar->setMatches(m_match, static_cast<int>(m_matches.size()));
    refreshMarks();
    update();
    Q_EMIT searched(static_cast<int>(m_matches.size()), search->problem);
    if (const int by = std::exchange(m_stepWhenFound, 0); by != 0)
        stepMatch(by);
}

void DagView::stepMatch(int by)
{
    if (m_searching) {
        m_stepWhenFound = by;
        return;
    }
    if (m_matches.empty() || !m_picture)
        return;
    const int count = static_cast<int>(m_matches.size());
    m_match = m_match < 0 ? (by > 0 ? 0 : count - 1) : (m_match + by + count) % count;
    m_findBar->setMatches(m_match, count);
    showOperator(m_outline->units[at(m_matches[at(m_match)])].op);
}

void DagView::selectMatches()
{
    std::vector<std::int32_t> units = m_matches;
    selectUnits(units);
}

void DagView::askRowFromMatches()
{
    const auto context = m_gestures->gestures().context();
    std::vector<OperatorId> forward;
    for (const auto op : m_found) {
        if (m_graph && m_graph->at(op).direction == Direction::Forward)
            forward.push_back(op);
    }
    if (forward.empty() || !context || context->graph().operators.size() != m_graph->operators.size()) {
        Q_EMIT noted(tr("Find forward operators first: rows are about them."));
        return;
    }
    Q_EMIT rowAsked(QString::fromStdString(toString(selectorFor(context->index(), forward))));
}

void DagView::findNext()
{
    stepMatch(1);
}

void DagView::findPrevious()
{
    stepMatch(-1);
}

void DagView::showOperator(OperatorId op)
{
    if (!m_picture || changing() || !op.valid() || at(op.index) >= m_outline->unitOfOperator.size())
        return;
    const std::int32_t unit = m_outline->unitOfOperator[at(op.index)];
    if (unit < 0)
        return;
    const auto &found = m_outline->units[at(unit)];
    std::vector<OperatorId> operators{found.op};
    if (found.backward.valid())
        operators.push_back(found.backward);
    operators.insert(operators.end(), found.optimizers.begin(), found.optimizers.end());
    // Only the way to it is opened; a copy of a stack is shown by the one that stands for all, if that is
    // open.
    remember();
    bool changed = false;
    std::int32_t shown = unit;
    const auto isMatch = [this](std::int32_t wanted) {
        return std::binary_search(m_matches.begin(), m_matches.end(), wanted);
    };
    for (bool again = true; again;) {
        again = false;
        for (const auto item : m_outline->pathTo(m_outline->units[at(shown)].item)) {
            const auto &around = m_outline->at(item);
            if (around.kind == OutlineItem::Kind::Operator)
                continue;
            if (around.kind == OutlineItem::Kind::Stack && !m_state.unstacked.contains(item)) {
                const std::int32_t stride = m_outline->at(around.children.front()).end - around.begin;
                const std::int32_t same = around.begin + (shown - around.begin) % stride;
                // A search that names this very copy, and not the one that stands for all, wants to see this
                // one.
                if (same != shown && isMatch(shown) && !isMatch(same)) {
                    m_state.unstacked.insert(item);
                    changed = true;
                } else if (same != shown) {
                    shown = same;
                    again = true;
                    break;
                }
            }
            changed |= m_state.open.insert(item).second;
        }
    }
    m_revealUnit = unit;
    m_selection->select(std::move(operators));
    if (changed || !m_picture || m_picture->state != m_state) {
        requestLayout();
        return;
    }
    const std::int32_t box = m_picture->visible.boxOfUnit[at(unit)];
    m_revealUnit.reset();
    m_camera.scale = std::max(m_camera.scale, 0.7);
    m_camera.centreOn(m_picture->scene.rects[at(box)], width(), height());
    setFocused(box, false);
    m_fitted = false;
    refreshMarks();
    cameraMoved();
}

} // namespace planloom
