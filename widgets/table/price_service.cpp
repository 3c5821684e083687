#include "widgets/table/price_service.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QEvent>

#include "engine/design/explain/free_decisions.h"
#include "engine/design/models/model_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace planloom {

namespace {

constexpr int kIdleMilliseconds = 1000;

} // namespace

PriceService::PriceService(ConstraintTableModel *rows, QObject *parent)
    : QObject(parent)
    , m_rows(rows)
{
    m_idle.setSingleShot(true);
    m_idle.setInterval(kIdleMilliseconds);
    connect(&m_idle, &QTimer::timeout, this, &PriceService::begin);
    connect(&m_engine, &EngineService::planUpdated, this, &PriceService::take);
    connect(&m_engine, &EngineService::modelOpened, this, &PriceService::plan);
    connect(&m_engine, &EngineService::modelFailed, this,
        [this](const ModelSource &, const Error &error) { finishNeeded(error.message); });
    connect(&m_engine, &EngineService::sizesAsked, this,
        [this](const ModelSource &, const std::vector<InputDimension> &dimensions) {
            std::vector<InputDimension> open;
            std::copy_if(dimensions.begin(), dimensions.end(), std::back_inserter(open),
                [](const InputDimension &each) { return each.size == 0; });
            finishNeeded("the model does not say the size of " + namesText(open));
        });
    QCoreApplication::instance()->installEventFilter(this);
}

void PriceService::setEnabled(bool enabled)
{
    if (enabled == m_enabled)
        return;
    m_enabled = enabled;
    if (!enabled) {
        const PlanUpdateSnapshot baseline = m_baseline;
        interrupt();
        m_baseline = baseline;
        m_rows->clearPrices();
    } else if (m_baseline) {
        m_idle.start();
    }
}

void PriceService::interrupt()
{
    m_idle.stop();
    m_queue.clear();
    m_baseline = nullptr;
    if (m_current != 0) {
        m_current = 0;
        m_engine.stop();
    }
}

void PriceService::setBaseline(const PlanUpdateSnapshot &update, const std::string &cluster,
    std::int32_t deviceCount, const std::string &clusterJson)
{
    interrupt();
    m_baseline = update;
    m_cluster = cluster;
    m_clusterJson = clusterJson;
    m_deviceCount = deviceCount;
    if (m_enabled)
        m_idle.start();
}

void PriceService::begin()
{
    if (!m_enabled || !m_baseline || !m_baseline->scene || m_current != 0)
        return;
    if (m_queue.empty()) {
        for (int row = 0; row < m_rows->rowCount(); ++row) {
            const TableLine &line = m_rows->tableLineAt(row);
            const RowPrice &price = m_rows->priceAt(row);
            const bool fresh = price.isFound() && price.editsAgo == 0;
            if (!line.row || !line.row->enabled || line.row->origin == RowOrigin::Solver || fresh)
                continue;
            m_queue.push_back(m_rows->keyAt(row));
            if (!price.isFound())
                m_rows->setPrice(m_queue.back(), {.state = RowPrice::State::Asked});
        }
    }
    next();
}

void PriceService::next()
{
    while (!m_queue.empty()) {
        const auto key = m_queue.front();
        m_queue.pop_front();
        const int row = m_rows->rowOfKey(key);
        if (row < 0)
            continue;
        m_without = m_rows->document();
        if (!m_without.apply(planloom::setEnabled(m_without, {m_rows->lineAt(row)}, false)))
            continue;
        m_current = key;
        const OpenedModel &model = *m_baseline->model;
        const TableLine &line = m_rows->tableLineAt(row);
        ModelSource other = model.source;
        if (line.row && isModelRow(line.row->rule))
            other.options =
                withRows(withoutRow(other.options, line.row->rule, *model.graph), m_without, *model.graph);
        if (isOpenedAs(other.options, model.source.options, model.source.source))
            plan(m_baseline->model);
        else
            m_engine.open(other);
        return;
    }
    m_current = 0;
}

void PriceService::plan(const ModelSnapshot &model)
{
    if (m_current == 0)
        return;
    PlanRequest request;
    request.model = model;
    request.table = m_without;
    request.target = {m_cluster, m_clusterJson, m_deviceCount};
    request.upTo = PlanGrade::Timed;
    request.search = !linesOfSearch(m_without).empty();
    request.memory = m_searches;
    m_revision = m_engine.plan(std::move(request));
}

void PriceService::finish(const RowPrice &price)
{
    const auto key = std::exchange(m_current, 0);
    m_rows->setPrice(key, price);
    if (!m_idle.isActive())
        next();
}

void PriceService::finishNeeded(const std::string &why)
{
    if (m_current == 0)
        return;
    RowPrice price;
    price.state = RowPrice::State::Needed;
    price.remark = why;
    finish(price);
}

void PriceService::take(const PlanUpdateSnapshot &update)
{
    if (!update->final || update->revision != m_revision || m_current == 0)
        return;
    if (!update->isTimed()) {
        const auto wrong = std::find_if(update->rows.begin(), update->rows.end(),
            [](const RowLine &row) { return row.report.error.has_value(); });
        finishNeeded(update->error ? update->error->message
                : wrong == update->rows.end()
                ? std::string()
                : "row " + std::to_string(wrong->line + 1) + " (" + wrong->text + ") needs it");
        return;
    }
    RowPrice price;
    price.state = RowPrice::State::Known;
    price.seconds = m_baseline->summary.stepSeconds - update->summary.stepSeconds;
    finish(price);
}

bool PriceService::eventFilter(QObject *watched, QEvent *event)
{
    switch (event->type()) {
    case QEvent::KeyPress:
    case QEvent::MouseButtonPress:
    case QEvent::MouseMove:
    case QEvent::Wheel:
        // The row under way is finished; the others wait until the person is idle again.
        if (m_baseline && m_enabled)
            m_idle.start();
        break;
    default:
        break;
    }
    return QObject::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_price_service.cpp"
