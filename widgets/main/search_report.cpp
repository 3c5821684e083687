#include "widgets/main/search_report.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QToolTip>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/format.h"
#include "widgets/main/search_course.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostListed = 200; ///< Plans in the list: the fastest.
constexpr double kReach = 8; ///< Pixels around a dot that are the dot's.

QString secondsText(double seconds)
{
    return QString::fromStdString(formatSeconds(seconds));
}

QString bytesText(std::int64_t bytes)
{
    return QString::fromStdString(formatBytes(Bytes{bytes}));
}

QString planText(const SearchedPlan &plan)
{
    return QString::fromStdString(toString(plan.configuration));
}

/// Simulated where it was, else priced.
double stepOf(const SearchedPlan &plan)
{
    return plan.simulatedSeconds > 0 ? plan.simulatedSeconds : plan.seconds;
}

std::int64_t peakOf(const SearchedPlan &plan)
{
    return plan.simulatedSeconds > 0 ? plan.simulatedPeak : plan.peakBytes;
}

} // namespace

SearchChart::SearchChart(std::shared_ptr<const SearchResult> result, QWidget *parent)
    : QWidget(parent)
    , m_result(std::move(result))
{
    setMouseTracking(true);
    setMinimumHeight(fontMetrics().height() * 10);
    setAccessibleName(tr("Step time and peak memory of the plans that were searched"));
    for (const SearchedPlan &plan : m_result->seen) {
        m_mostSeconds = std::max(m_mostSeconds, std::min(stepOf(plan), 3 * m_result->best.simulatedSeconds));
        m_mostBytes = std::max(m_mostBytes, static_cast<double>(peakOf(plan)));
    }
    const auto limit = static_cast<double>(m_result->memoryLimit);
    if (limit < 2 * m_mostBytes) // else the line is far above all of them
        m_mostBytes = std::max(m_mostBytes, 1.05 * limit);
    m_mostBytes =
        std::min(m_mostBytes, std::max(2 * limit, static_cast<double>(m_result->best.simulatedPeak)));
}

QSize SearchChart::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 90, fontMetrics().height() * 14};
}

void SearchChart::choose(int plan)
{
    m_chosen = plan;
    update();
}

QRectF SearchChart::area() const
{
    const double line = fontMetrics().height();
    const double left = fontMetrics().horizontalAdvance(QStringLiteral("000.0 GiB")) + 12;
    return QRectF(left, line, width() - left - line, height() - 3.2 * line);
}

QPointF SearchChart::placeOf(int plan) const
{
    const SearchedPlan &own = m_result->seen[static_cast<std::size_t>(plan)];
    const QRectF in = area();
    const double x = m_mostSeconds > 0 ? std::min(1.0, stepOf(own) / m_mostSeconds) : 0;
    const double y = m_mostBytes > 0 ? std::min(1.0, static_cast<double>(peakOf(own)) / m_mostBytes) : 0;
    return {in.left() + x * in.width(), in.bottom() - y * in.height()};
}

int SearchChart::planAt(QPointF place) const
{
    int nearest = -1;
    double least = kReach;
    for (int i = 0; i < static_cast<int>(m_result->seen.size()); ++i) {
        const QPointF away = placeOf(i) - place;
        const double distance = std::hypot(away.x(), away.y());
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    return nearest;
}

void SearchChart::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QPalette &colours = palette();
    const QRectF in = area();
    const double line = fontMetrics().height();
    QColor quiet = colours.color(QPalette::Text);
    quiet.setAlphaF(0.55F);
    QColor faint = quiet;
    faint.setAlphaF(0.25F);
    painter.setPen(faint);
    painter.drawLine(in.bottomLeft(), in.bottomRight());
    painter.drawLine(in.bottomLeft(), in.topLeft());
    painter.setPen(quiet);
    for (const double part : {0.0, 0.5, 1.0}) {
        const double x = in.left() + part * in.width();
        const QString time = secondsText(part * m_mostSeconds);
        const double wide = fontMetrics().horizontalAdvance(time);
        painter.drawText(QPointF(std::min(x - part * wide, width() - wide - 2.0), in.bottom() + line), time);
        const QString bytes = bytesText(static_cast<std::int64_t>(part * m_mostBytes));
        painter.drawText(QRectF(0, in.bottom() - part * in.height() - line, in.left() - 6, line + 2),
            Qt::AlignRight | Qt::AlignBottom, bytes);
    }
    painter.drawText(QRectF(in.left(), in.bottom() + line, in.width(), line + 4), Qt::AlignHCenter,
        tr("step (simulated where it was, else in the search's model)"));
    const auto limit = static_cast<double>(m_result->memoryLimit);
    if (limit <= m_mostBytes) {
        const double y = in.bottom() - limit / m_mostBytes * in.height();
        painter.setPen(QPen(quiet, 1, Qt::DashLine));
        painter.drawLine(QPointF(in.left(), y), QPointF(in.right(), y));
        painter.drawText(
            QPointF(in.left() + 4, y - 3), tr("memory %1").arg(bytesText(m_result->memoryLimit)));
    }
    QColor accent = colours.color(QPalette::Highlight);
    int best = -1;
    for (int i = 0; i < static_cast<int>(m_result->seen.size()); ++i) {
        const SearchedPlan &plan = m_result->seen[static_cast<std::size_t>(i)];
        const bool simulated = plan.simulatedSeconds > 0;
        if (simulated && plan.simulatedSeconds == m_result->best.simulatedSeconds
            && plan.simulatedPeak == m_result->best.simulatedPeak)
            best = i;
        painter.setPen(Qt::NoPen);
        painter.setBrush(simulated ? accent : faint);
        const double radius = simulated ? 4 : 2;
        painter.drawEllipse(placeOf(i), radius, radius);
    }
    painter.setBrush(Qt::NoBrush);
    if (best >= 0) {
        painter.setPen(QPen(accent, 2));
        painter.drawEllipse(placeOf(best), 8, 8);
    }
    if (m_chosen >= 0) {
        painter.setPen(QPen(colours.color(QPalette::Text), 1));
        painter.drawEllipse(placeOf(m_chosen), 6, 6);
    }
}

void SearchChart::mousePressEvent(QMouseEvent *event)
{
    if (const int plan = planAt(event->position()); plan >= 0)
        Q_EMIT chosen(plan);
}

bool SearchChart::event(QEvent *event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto *help = static_cast<QHelpEvent *>(event);
    if (const int plan = planAt(help->pos()); plan >= 0) {
        const SearchedPlan &own = m_result->seen[static_cast<std::size_t>(plan)];
        QToolTip::showText(help->globalPos(),
            tr("%1\n%2, %3 on the fullest device%4")
                .arg(planText(own), secondsText(stepOf(own)), bytesText(peakOf(own)),
                    own.simulatedSeconds > 0 ? tr(" (simulated)") : tr(" (in the search's model)")),
            this);
    } else {
        QToolTip::hideText();
    }
    return true;
}

QString SearchReport::sentence(const SearchResult &result)
{
    const QString found = tr("%1 takes %2 a step and %3 on its fullest device.")
                              .arg(planText(result.best), secondsText(result.best.simulatedSeconds),
                                  bytesText(result.best.simulatedPeak));
    const QString bound = result.best.isBeside
        ? tr("None of %1 configurations that are priced, with one part of a sequence on a device and keys "
             "gathered, is likely to be below %2.")
              .arg(result.configurations)
              .arg(secondsText(result.bound))
        : result.isOfOthers()
        ? tr("None of %1 configurations that partition all stages alike is likely to be below %2.")
              .arg(result.configurations)
              .arg(secondsText(result.bound))
        : tr(
            "None of %1 configurations is likely to be below %2: a better plan could save about %3% at most.")
              .arg(result.configurations)
              .arg(secondsText(result.bound))
              .arg(100 * result.gap(), 0, 'f', 1);
    if (result.cannotFit())
        return found
            + tr(" Nothing fits in %1: every plan takes %2 of some device at least; this is about the least "
                 "that was found.")
                  .arg(bytesText(result.memoryLimit), bytesText(result.leastNeeded));
    if (result.fits)
        return found + QLatin1Char(' ') + bound;
    return found
        + tr(" Nothing was found that fits in %1: this is the least.").arg(bytesText(result.memoryLimit));
}

SearchReport::SearchReport(std::shared_ptr<const SearchResult> result, QWidget *parent)
    : QDialog(parent)
    , m_result(std::move(result))
{
    setWindowTitle(tr("Plans Searched"));
    setAttribute(Qt::WA_DeleteOnClose);
    auto *layout = new QVBoxLayout(this);
    auto *said = new QLabel(sentence(*m_result), this);
    said->setWordWrap(true);
    said->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(said);
    const double off = m_result->best.simulatedSeconds > 0
        ? std::abs(m_result->best.seconds / m_result->best.simulatedSeconds - 1)
        : 0;
    if (off > 0.05) {
        auto *warning = new QLabel(
            tr("The search's model is %1% off the simulated step here: its bound says less than usual.")
                .arg(100 * off, 0, 'f', 0),
            this);
        warning->setWordWrap(true);
        layout->addWidget(warning);
    }
    m_chart = new SearchChart(m_result, this);
    auto *charts = new QHBoxLayout;
    charts->addWidget(m_chart, 3);
    charts->addWidget(new SearchCourse(m_result, this), 2);
    layout->addLayout(charts, 1);
    m_list = new QTableWidget(this);
    m_list->setObjectName(QStringLiteral("searchedPlans"));
    layout->addWidget(m_list, 1);
    fill();
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    QPushButton *openButton = buttons->addButton(tr("&Open Plan"), QDialogButtonBox::ActionRole);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    const auto enable = [this, openButton] {
        const int row = m_list->currentRow();
        openButton->setEnabled(row >= 0 && row < m_list->rowCount()
            && m_result->seen[static_cast<std::size_t>(row)].rows != nullptr);
        openButton->setToolTip(
            openButton->isEnabled() ? QString() : tr("Only plans that were simulated have rows to open"));
    };
    connect(openButton, &QPushButton::clicked, this, [this] { open(m_list->currentRow()); });
    connect(m_list, &QTableWidget::cellDoubleClicked, this, [this](int row) { open(row); });
    connect(m_list, &QTableWidget::currentCellChanged, this, [this, enable](int row) {
        m_chart->choose(row);
        enable();
    });
    connect(m_chart, &SearchChart::chosen, this, [this](int plan) {
        if (plan < m_list->rowCount())
            m_list->selectRow(plan);
        else
            m_chart->choose(plan);
    });
    enable();
    resize(sizeHint().expandedTo({fontMetrics().averageCharWidth() * 150, fontMetrics().height() * 40}));
}

void SearchReport::fill()
{
    const int rows = std::min(kMostListed, static_cast<int>(m_result->seen.size()));
    m_list->setColumnCount(5);
    m_list->setHorizontalHeaderLabels({tr("Plan"), tr("Model"), tr("Simulated"), tr("Peak"), tr("Fits")});
    m_list->setRowCount(rows);
    m_list->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_list->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_list->setSelectionMode(QAbstractItemView::SingleSelection);
    m_list->verticalHeader()->hide();
    m_list->setAlternatingRowColors(true);
    for (int row = 0; row < rows; ++row) {
        const SearchedPlan &plan = m_result->seen[static_cast<std::size_t>(row)];
        const QString simulated =
            plan.simulatedSeconds > 0 ? secondsText(plan.simulatedSeconds) : QStringLiteral("–");
        const bool fits = peakOf(plan) <= m_result->memoryLimit;
        const QStringList texts{planText(plan), secondsText(plan.seconds), simulated, bytesText(peakOf(plan)),
            fits ? tr("yes") : tr("no")};
        for (int column = 0; column < texts.size(); ++column) {
            auto *item = new QTableWidgetItem(texts[column]);
            if (column > 0)
                item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            m_list->setItem(row, column, item);
        }
    }
    m_list->resizeColumnsToContents();
    m_list->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
}

void SearchReport::open(int row)
{
    if (row < 0 || row >= static_cast<int>(m_result->seen.size()))
        return;
    const SearchedPlan &plan = m_result->seen[static_cast<std::size_t>(row)];
    if (plan.rows)
        Q_EMIT opened(plan);
}

} // namespace planloom
