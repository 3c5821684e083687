#include "widgets/run/span_errors.h"

#include "widgets/common/format.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

SpanErrors spanErrors(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured, std::size_t most)
{
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
    const auto keyOf = [](const SpanColumns &spans, std::size_t row) {
        return Key{spans.device[row], spans.segment[row], spans.instruction[row], spans.microBatch[row]};
    };
    const auto instructionOf = [&plan](const Key &key) -> const Instruction & {
        return plan.devices[static_cast<std::size_t>(std::get<0>(key))]
            .segments[static_cast<std::size_t>(std::get<1>(key))]
            .instructions[static_cast<std::size_t>(std::get<2>(key))];
    };
    std::map<InstructionKind, SpanError> kinds;
    std::map<Key, double> before;
    for (std::size_t row = 0; row < predicted.spans.size(); ++row) {
        const Key key = keyOf(predicted.spans, row);
        const double seconds = static_cast<double>(predicted.spans.duration[row]) * 1e-9;
        before[key] += seconds;
        kinds[instructionOf(key).kind].predicted += seconds;
    }
    std::vector<SpanError> spans;
    for (auto &[kind, total] : kinds)
        total.count = 0;
    for (std::size_t row = 0; row < measured.spans.size(); ++row) {
        const Key key = keyOf(measured.spans, row);
        const Instruction &instruction = instructionOf(key);
        const double seconds = static_cast<double>(measured.spans.duration[row]) * 1e-9;
        SpanError &total = kinds.try_emplace(instruction.kind, SpanError{.count = 0}).first->second;
        total.measured += seconds;
        ++total.count;
        const auto found = before.find(key);
        if (found == before.end())
            continue;
        std::string what = nameOf(instruction.kind);
        if (instruction.op.valid())
            what += " of " + plan.graph->at(instruction.op).name;
        if (plan.microBatches > 1)
            what += ", micro-batch " + std::to_string(std::get<3>(key));
        spans.push_back({std::move(what), std::get<0>(key), instruction.op, 1, found->second, seconds});
    }
    const auto off = [](const SpanError &span) { return std::abs(span.measured - span.predicted); };
    const auto end = spans.begin() + static_cast<std::ptrdiff_t>(std::min(most, spans.size()));
    std::partial_sort(spans.begin(), end, spans.end(), [&](const SpanError &a, const SpanError &b) {
        return std::tuple(-off(a), a.device, a.what) < std::tuple(-off(b), b.device, b.what);
    });
    spans.erase(end, spans.end());
    SpanErrors errors;
    errors.worst = std::move(spans);
    for (auto &[kind, total] : kinds) {
        total.what = nameOf(kind);
        errors.kinds.push_back(std::move(total));
    }
    std::stable_sort(errors.kinds.begin(), errors.kinds.end(),
        [](const SpanError &a, const SpanError &b) { return a.measured > b.measured; });
    return errors;
}

void SpanErrorsModel::setErrors(const SpanErrors &errors)
{
    beginResetModel();
    m_lines = errors.kinds;
    m_lines.insert(m_lines.end(), errors.worst.begin(), errors.worst.end());
    endResetModel();
}

OperatorId SpanErrorsModel::operatorAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_lines[static_cast<std::size_t>(row)].op : OperatorId{};
}

int SpanErrorsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int SpanErrorsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant SpanErrorsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == What ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const SpanError &line = m_lines[static_cast<std::size_t>(index.row())];
    const auto seconds = [](double value) { return QString::fromStdString(formatSeconds(value)); };
    switch (index.column()) {
    case What:
        return line.device < 0 ? tr("all %1").arg(QString::fromStdString(line.what))
                               : QString::fromStdString(line.what);
    case Device:
        return line.device < 0 ? QString() : QString::number(line.device);
    case Count:
        return QString::number(line.count);
    case Predicted:
        return seconds(line.predicted);
    case Measured:
        return seconds(line.measured);
    default: {
        const double difference = line.measured - line.predicted;
        return (difference < 0 ? QStringLiteral("−") : QStringLiteral("+")) + seconds(std::abs(difference));
    }
    }
}

QVariant SpanErrorsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case What:
        return tr("Totals, and the worst spans");
    case Device:
        return tr("Device");
    case Count:
        return tr("Spans");
    case Predicted:
        return tr("Predicted");
    case Measured:
        return tr("Measured");
    default:
        return tr("Off by");
    }
}

} // namespace planloom

#include "moc_span_errors.cpp"
