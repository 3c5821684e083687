#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QStringList>

#include "engine/traces/calibration/span_fit.h"
#include "widgets/trace/trace_document.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// Lines of a table, each with the event that it is about.
struct TraceLines {
    std::vector<QStringList> lines{};
    std::vector<std::optional<std::pair<std::uint32_t, std::uint32_t>>>
        places{}; ///< By line; as `TracePlace`.
};

/// Where the time of each rank goes, in shares of its window.
QStringList rankColumns();
TraceLines rankLines(const TraceDocument &document);
/// The slowest collectives with who came last; the place is that of the last one.
QStringList collectiveColumns();
TraceLines collectiveLines(const TraceDocument &document, std::size_t most = 200);
/// Measured over predicted: totals by kind with what only one side has, then the worst spans,
QStringList matchColumns();
/// and what only one side has, span by span.
TraceLines matchLines(const TraceMatch &match);
/// How much of it was matched, and the step on either side: for the line above the lanes.
QString matchSentence(const TraceMatch &match);

/// How far each kind was from the spans before the cluster was fitted to them, and is now.
QStringList fitColumns();
TraceLines fitLines(const SpanFit &fit);
QString fitSentence(const SpanFit &fit);

/// A table of such lines. Texts stand left in the first column, figures right in all others.
class TraceTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    explicit TraceTableModel(QStringList columns, QObject *parent = nullptr);

    void setLines(TraceLines lines);
    std::optional<std::pair<std::uint32_t, std::uint32_t>> placeAt(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    QStringList m_columns;
    TraceLines m_lines;
};

} // namespace planloom
