#include "engine/plan/preferences.h"

#include "engine/base/words.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

class Applier
{
public:
    using Complete = std::function<Result<Completion>(const ConstraintTable &)>;

    Applier(const ConstraintTable &table, const Complete &complete)
        : m_table(table)
        , m_complete(complete)
    {
        m_applied.table = table;
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
            Row &row = m_applied.table.rows[i];
            if (row.preference <= 0)
                continue;
            row.preference = 0;
            if (row.enabled)
                m_order.push_back(static_cast<std::int32_t>(i));
        }
        std::stable_sort(m_order.begin(), m_order.end(),
            [&](std::int32_t a, std::int32_t b) { return weight(a) > weight(b); });
    }

    Result<AppliedRows> run()
    {
        TRY(Completion all, m_complete(m_applied.table));
        m_applied.completion = std::move(all);
        if (!firstError(m_applied.completion))
            return std::move(m_applied);
        const Completion tried = std::move(m_applied.completion);
        for (const std::int32_t row : m_order)
            rowAt(row).enabled = false;
        TRY(m_applied.completion, m_complete(m_applied.table));
        if (firstError(m_applied.completion)) {
            for (const std::int32_t row : m_order)
                m_applied.leftOut.push_back({row, "left out: the rows that must hold do not"});
        } else if (m_order.size() == 1) {
            leaveOut(m_order.front(), tried);
        } else {
            const std::size_t half = m_order.size() / 2; // all of them failed just now
            TRY_VOID(apply(0, half));
            TRY_VOID(apply(half, m_order.size()));
        }
        std::sort(m_applied.leftOut.begin(), m_applied.leftOut.end(),
            [](const auto &a, const auto &b) { return a.row < b.row; });
        return std::move(m_applied);
    }

private:
    std::int32_t weight(std::int32_t row) const
    {
        return m_table.rows[static_cast<std::size_t>(row)].preference;
    }
    Row &rowAt(std::int32_t row) { return m_applied.table.rows[static_cast<std::size_t>(row)]; }

    /// Applies those of `m_order` in [begin, end) that can hold; all at once where all can.
    Result<void> apply(std::size_t begin, std::size_t end)
    {
        if (begin == end)
            return {};
        for (std::size_t i = begin; i < end; ++i)
            rowAt(m_order[i]).enabled = true;
        TRY(Completion tried, m_complete(m_applied.table));
        if (!firstError(tried)) {
            m_applied.completion = std::move(tried);
            return {};
        }
        for (std::size_t i = begin; i < end; ++i)
            rowAt(m_order[i]).enabled = false;
        if (end - begin == 1) {
            leaveOut(m_order[begin], tried);
            return {};
        }
        const std::size_t half = begin + (end - begin) / 2;
        TRY_VOID(apply(begin, half));
        return apply(half, end);
    }

    /// @param tried  the completion with the row, which failed
    void leaveOut(std::int32_t row, const Completion &tried)
    {
        std::int32_t other = -1;
        const std::optional<Error> &own = tried.rows[static_cast<std::size_t>(row)].error;
        for (std::size_t i = 0; i < tried.rows.size() && other < 0; ++i) {
            if (static_cast<std::int32_t>(i) != row && tried.rows[i].error)
                other = static_cast<std::int32_t>(i);
        }
        std::string reason = "left out: ";
        if (other >= 0) {
            const std::int32_t heavier = weight(other);
            reason += rowWords(other) + " ("
                + (heavier > 0 ? "prefer " + std::to_string(heavier) : std::string("must"))
                + ") says otherwise";
        } else {
            reason += own ? own->message : firstError(tried)->message;
        }
        m_applied.leftOut.push_back({row, std::move(reason)});
    }

    const ConstraintTable &m_table;
    const Complete &m_complete;
    AppliedRows m_applied{};
    std::vector<std::int32_t> m_order{}; ///< Preferences that are on, the first to apply first.
};

} // namespace

bool hasPreferences(const ConstraintTable &table)
{
    return std::any_of(table.rows.begin(), table.rows.end(),
        [](const Row &row) { return row.enabled && row.preference > 0; });
}

Result<AppliedRows> appliedRows(
    const ConstraintTable &table, const std::function<Result<Completion>(const ConstraintTable &)> &complete)
{
    return Applier(table, complete).run();
}

Result<Completion> completeWithPreferences(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const Decider *decider, PrecisionPreset precision)
{
    TRY(AppliedRows applied, appliedRows(table, [&](const ConstraintTable &rows) {
        return completePlan(model, deviceCount, rows, decider, UseUnits::WhereLarge, precision);
    }));
    for (AppliedRows::LeftOut &left : applied.leftOut) {
        RowReport &report = applied.completion.rows[static_cast<std::size_t>(left.row)];
        report.leftOut = true;
        report.warning = std::move(left.reason);
    }
    return std::move(applied.completion);
}

} // namespace planloom
