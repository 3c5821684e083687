#include "engine/gesture/blocking.h"

#include <algorithm>

namespace planloom {

std::vector<std::int32_t> linesWrittenBy(const TableEdit &edit, std::int32_t lineCountBefore)
{
    std::vector<bool> written(static_cast<std::size_t>(std::max(lineCountBefore, 0)), false);
    for (const TableSplice &splice : edit.splices) {
        const auto begin = std::min(static_cast<std::size_t>(std::max(splice.line, 0)), written.size());
        const auto end = std::min(begin + splice.removed.size(), written.size());
        const auto at = written.erase(written.begin() + static_cast<std::ptrdiff_t>(begin),
            written.begin() + static_cast<std::ptrdiff_t>(end));
        written.insert(at, splice.inserted.size(), true);
    }
    std::vector<std::int32_t> lines;
    for (std::size_t line = 0; line < written.size(); ++line) {
        if (written[line])
            lines.push_back(static_cast<std::int32_t>(line));
    }
    return lines;
}

Proposal switchingOff(
    const GestureContext &context, const Proposal &proposal, const std::vector<std::int32_t> &lines)
{
    if (!proposal.accepted())
        return proposal;
    TableDocument wouldBe = context.document;
    if (!wouldBe.apply(proposal.edit))
        return proposal;
    std::vector<std::int32_t> on;
    for (const std::int32_t line : lines) {
        if (line >= 0 && line < wouldBe.lineCount()) {
            const TableLineSnapshot &text = wouldBe.lines()[static_cast<std::size_t>(line)];
            if (text->row && text->row->enabled)
                on.push_back(line);
        }
    }
    if (on.empty())
        return proposal;
    Proposal result = proposal;
    result.edit = joined(proposal.edit, setEnabled(wouldBe, on, false));
    std::string rows = on.size() == 1 ? "row " : "rows ";
    for (std::size_t i = 0; i < on.size(); ++i) {
        rows += (i == 0 ? "" : i + 1 == on.size() ? " and " : ", ") + std::to_string(on[i] + 1);
        result.yielding.push_back(on[i]);
    }
    result.words += ", " + rows + " off";
    result.yieldingWords.push_back(rows + (on.size() == 1 ? " is" : " are") + " switched off");
    return result;
}

} // namespace planloom
