#include "widgets/design/rows_in_the_way.h"

#include "engine/gesture/blocking.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <iterator>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostNamed = 3; ///< Rows; a tag is no table.

} // namespace

void RowsInTheWay::reset()
{
    *this = {};
}

void RowsInTheWay::setBase(Proposal base)
{
    if (base.edit == m_base.edit && base.words == m_base.words
        && base.refusal.has_value() == m_base.refusal.has_value())
        return;
    m_base = std::move(base);
    m_proposal = m_base;
    m_lines.clear(); // another place has other rows in its way
}

void RowsInTheWay::combine(const GestureContext &context)
{
    m_proposal = m_wished ? switchingOff(context, m_base, m_lines) : m_base;
}

bool RowsInTheWay::toggle(const GestureContext &context)
{
    m_wished = !m_wished;
    const TableEdit before = m_proposal.edit;
    combine(context);
    return m_proposal.edit != before;
}

bool RowsInTheWay::learn(const GestureContext &context, const Preview &preview)
{
    if (preview.proposal.edit != m_proposal.edit || moodOf(preview) != GhostMood::Blocked)
        return false;
    // Rows that are switched off stay where they are: lines of either preview are those of the other.
    const std::vector<std::int32_t> more = blockingLines(preview);
    std::vector<std::int32_t> all;
    std::set_union(m_lines.begin(), m_lines.end(), more.begin(), more.end(), std::back_inserter(all));
    if (all == m_lines)
        return false;
    m_lines = std::move(all);
    const TableEdit before = m_proposal.edit;
    combine(context);
    return m_proposal.edit != before;
}

QStringList wordsOfRowsInTheWay(const Preview &preview, const RowsInTheWay &rows, const QString &key)
{
    QStringList lines;
    const bool current = preview.proposal.edit == rows.proposal().edit;
    const std::vector<std::int32_t> blocking = current && moodOf(preview) == GhostMood::Blocked
        ? blockingLines(preview)
        : std::vector<std::int32_t>{};
    for (std::size_t i = 0; i < blocking.size() && i < kMostNamed; ++i) {
        const auto row = std::find_if(preview.update->rows.begin(), preview.update->rows.end(),
            [&](const RowLine &each) { return each.line == blocking[i]; });
        const QString text =
            row == preview.update->rows.end() ? QString() : QString::fromStdString(row->text);
        lines << (text.isEmpty() ? GestureHost::tr("in the way: row %1").arg(blocking[i] + 1)
                                 : GestureHost::tr("in the way: row %1, %2").arg(blocking[i] + 1).arg(text));
    }
    if (blocking.size() > kMostNamed)
        lines << GestureHost::tr("and %1 more").arg(blocking.size() - kMostNamed);
    if (key.isEmpty())
        return lines;
    const std::size_t off = rows.lines().size();
    if (rows.wished() && off == 0)
        lines << GestureHost::tr("%1: rows in the way are switched off too").arg(key);
    else if (rows.wished())
        lines << (off == 1 ? GestureHost::tr("%1 leaves it on") : GestureHost::tr("%1 leaves them on"))
                     .arg(key);
    else if (!blocking.empty())
        lines << (blocking.size() == 1 ? GestureHost::tr("%1 switches it off too")
                                       : GestureHost::tr("%1 switches them off too"))
                     .arg(key);
    return lines;
}

} // namespace planloom
