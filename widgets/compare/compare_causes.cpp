#include "widgets/compare/compare_causes.h"

#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "engine/table/table_text.h"
#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"

#include <cstdlib>

namespace planloom {

namespace {

/// "3  split all : batch over dp", a line for each row; numbers are lines of the table, as everywhere.
QString rowsText(const PlanUpdate &update, const std::vector<RowId> &rows)
{
    QStringList lines;
    for (const RowId row : rows)
        lines << QStringLiteral("%1  %2")
                     .arg(update.rows[at(row)].line + 1)
                     .arg(toQString(update.rows[at(row)].text));
    return lines.join(QLatin1Char('\n'));
}

} // namespace

CompareCauses::CompareCauses(QWidget *parent)
    : QWidget(parent)
    , m_words(new QLabel(this))
    , m_list(new QTableWidget(0, ColumnCount, this))
{
    m_words->setMargin(4);
    m_words->setWordWrap(true);
    m_list->setObjectName(QStringLiteral("compareCauses"));
    m_list->setAccessibleName(tr("Rows that make the difference"));
    m_list->setHorizontalHeaderLabels(
        {tr("Rows of A"), tr("Rows of B"), tr("What differs"), tr("Time of their kernels")});
    m_list->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_list->horizontalHeader()->setSectionResizeMode(RowsA, QHeaderView::Stretch);
    m_list->horizontalHeader()->setSectionResizeMode(RowsB, QHeaderView::Stretch);
    m_list->horizontalHeader()->setSectionResizeMode(What, QHeaderView::ResizeToContents);
    m_list->horizontalHeader()->setSectionResizeMode(Kernels, QHeaderView::ResizeToContents);
    m_list->verticalHeader()->hide();
    m_list->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_list->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_list->setSelectionMode(QAbstractItemView::SingleSelection);
    m_list->setFrameShape(QFrame::NoFrame);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_words);
    layout->addWidget(m_list, 1);
    connect(m_list, &QTableWidget::itemSelectionChanged, this, [this] {
        const auto rows = m_list->selectionModel()->selectedRows();
        if (!m_result || rows.isEmpty())
            return;
        std::vector<OperatorId> operators;
        for (const OperatorDifference &each :
            m_result->causes[static_cast<std::size_t>(rows.front().row())].operators)
            if (each.b.valid())
                operators.push_back(each.b);
        Q_EMIT operatorsChosen(std::move(operators));
    });
}

int CompareCauses::count() const
{
    return m_result ? static_cast<int>(m_result->causes.size()) : 0;
}

void CompareCauses::setResult(const CompareSnapshot &result)
{
    const QSignalBlocker blocker(m_list);
    m_result = result;
    m_list->setRowCount(count());
    for (int row = 0; row < count(); ++row) {
        const DifferenceCause &cause = m_result->causes[static_cast<std::size_t>(row)];
        const auto operators = static_cast<std::int64_t>(cause.operators.size());
        QString what = tr("%1: %2").arg(toQString(counted(operators, "operator")), toQString(wordsOf(cause)));
        if (cause.a.empty() && cause.b.empty())
            what += tr(" (no row makes it)");
        else if (cause.inherited)
            what += tr(" (follows others)");
        const double change = static_cast<double>(cause.nanoseconds.value_or(0)) * 1e-9;
        const QString kernels = change == 0
            ? tr("the same")
            : (change > 0 ? tr("%1 more") : tr("%1 less")).arg(toQString(formatSeconds(std::abs(change))));
        const QString texts[ColumnCount] = {
            rowsText(*m_result->a, cause.a), rowsText(*m_result->b, cause.b), what, kernels};
        for (int column = 0; column < ColumnCount; ++column) {
            auto *item = new QTableWidgetItem(texts[column]);
            item->setToolTip(texts[column]);
            item->setTextAlignment(Qt::AlignLeft | Qt::AlignTop);
            m_list->setItem(row, column, item);
        }
    }
    m_list->resizeRowsToContents();
    m_words->setText(!m_result || !m_result->waterfall
            ? tr("Reasons are found once both plans have a timeline.")
            : count() == 0
            ? tr("No operator differs.")
            : tr("What makes operators differ: rows that one plan has and the other has not, the most "
                 "operators first. Choosing a line chooses its operators; the times are of all "
                 "devices together, waiting and communication left out."));
}

} // namespace planloom

#include "moc_compare_causes.cpp"
