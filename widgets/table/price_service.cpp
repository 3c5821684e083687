#include "widgets/table/price_service.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QEvent>

#include <algorithm>

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
            const bool fresh = price.state != RowPrice::State::Unknown && price.editsAgo == 0;
            if (line.row && line.row->enabled && !fresh)
                m_queue.push_back(m_rows->keyAt(row));
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
        TableDocument without = m_rows->document();
        if (!without.apply(planloom::setEnabled(without, {m_rows->lineAt(row)}, false)))
            continue;
        PlanRequest request;
        request.model = m_baseline->model;
        request.table = std::move(without);
        request.target = {m_cluster, m_clusterJson, m_deviceCount};
        request.upTo = PlanGrade::Timed;
        m_current = key;
        m_revision = m_engine.plan(std::move(request));
        return;
    }
    m_current = 0;
}

void PriceService::take(const PlanUpdateSnapshot &update)
{
    if (!update->final || update->revision != m_revision || m_current == 0)
        return;
    RowPrice price;
    if (update->isTimed()) {
        price.state = RowPrice::State::Known;
        price.seconds = m_baseline->summary.stepSeconds - update->summary.stepSeconds;
    } else {
        price.state = RowPrice::State::Needed;
        if (update->error) {
            price.remark = update->error->message;
        } else {
            const auto wrong = std::find_if(update->rows.begin(), update->rows.end(),
                [](const RowLine &row) { return row.report.error.has_value(); });
            if (wrong != update->rows.end())
                price.remark = "row " + std::to_string(wrong->line + 1) + " (" + wrong->text + ") needs it";
        }
    }
    const auto key = m_current;
    m_current = 0;
    m_rows->setPrice(key, price);
    if (!m_idle.isActive())
        next();
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
