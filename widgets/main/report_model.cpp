#include "widgets/main/report_model.h"

#include <QtGui/QBrush>
#include <QtGui/QGuiApplication>
#include <QtGui/QPalette>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"

#include <algorithm>

namespace planloom {

namespace {

QString lineOf(const std::string &text, int line)
{
    std::size_t begin = 0;
    for (int i = 0; i < line && begin != std::string::npos; ++i) {
        begin = text.find('\n', begin);
        if (begin != std::string::npos)
            ++begin;
    }
    if (begin == std::string::npos)
        return {};
    return QString::fromStdString(text.substr(begin, text.find('\n', begin) - begin)).trimmed();
}

} // namespace

ReportModel::ReportModel(QObject *parent) : QAbstractTableModel(parent) { }

void ReportModel::setUpdate(const PlanUpdateSnapshot &update)
{
    std::vector<Entry> entries;
    if (update) {
        for (const RowLine &row : update->rows) {
            Entry entry{row.line, QString::fromStdString(row.text), row.report.selected, row.report.bound, tr("holds"),
                {}, false, false};
            if (row.report.error) {
                entry.error = true;
                entry.state = QString::fromStdString(row.report.error->message);
                entry.advice = QString::fromStdString(row.report.error->advice);
            } else if (!row.report.warning.empty()) {
                entry.warning = true;
                entry.state = QString::fromStdString(row.report.warning);
            }
            entries.push_back(std::move(entry));
        }
        for (const Error &error : update->textErrors) {
            const auto place = textPlaceOf(error);
            const int line = place ? place->line - 1 : 0;
            entries.push_back({line, lineOf(update->tableText, line), -1, -1, QString::fromStdString(error.message),
                QString::fromStdString(error.advice), true, false});
        }
        std::stable_sort(
            entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.line < b.line; });
    }
    if (entries == m_entries)
        return;
    beginResetModel();
    m_entries = std::move(entries);
    endResetModel();
}

int ReportModel::lineAt(int row) const
{
    return m_entries[static_cast<std::size_t>(row)].line;
}

bool ReportModel::isError(int row) const
{
    return m_entries[static_cast<std::size_t>(row)].error;
}

int ReportModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int ReportModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ReportModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const Entry &entry = m_entries[static_cast<std::size_t>(index.row())];
    if (role == Qt::DisplayRole) {
        switch (index.column()) {
        case Line:
            return entry.line + 1;
        case Row:
            return entry.row;
        case Selected:
            return entry.selected < 0 ? QString() : QString::fromStdString(formatCount(entry.selected));
        case Bound:
            return entry.bound < 0 ? QString() : QString::fromStdString(formatCount(entry.bound));
        case State:
            return entry.state;
        default:
            return {};
        }
    }
    if (role == Qt::ToolTipRole)
        return entry.advice.isEmpty() ? entry.state : entry.state + QLatin1Char('\n') + entry.advice;
    if (role == Qt::TextAlignmentRole && (index.column() == Line || index.column() == Selected || index.column() == Bound))
        return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    if (role == Qt::ForegroundRole && index.column() == State) {
        const bool dark = QGuiApplication::palette().color(QPalette::Window).lightnessF() < 0.5;
        const Palette &palette = dark ? darkPalette() : lightPalette();
        return QBrush(entry.error ? palette.error : entry.warning ? palette.warning : palette.success);
    }
    return {};
}

QVariant ReportModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Line:
        return tr("Line");
    case Row:
        return tr("Row");
    case Selected:
        return tr("Selects");
    case Bound:
        return tr("Binds");
    case State:
        return tr("State");
    default:
        return {};
    }
}

} // namespace planloom
