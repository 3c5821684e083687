#include "engine/search/memory/recompute_choice.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/gallery/usual_rows.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <vector>

namespace planloom {

namespace {

template<typename Visit> void forEachRecompute(const ConstraintTable &rows, Visit visit)
{
    for (const Row &row : rows.rows)
        if (const auto *rule = std::get_if<RecomputeRule>(&row.rule); rule && row.enabled)
            visit(row, *rule);
}

} // namespace

bool leavesRecomputation(const ConstraintTable &rows)
{
    bool isLeft = std::none_of(rows.rows.begin(), rows.rows.end(),
        [](const Row &row) { return row.enabled && std::holds_alternative<CoshardRule>(row.rule); });
    forEachRecompute(rows,
        [&](const Row &, const RecomputeRule &rule) { isLeft = isLeft || rule.when == Switched::Chosen; });
    return isLeft;
}

bool namesRecomputation(const ConstraintTable &rows)
{
    bool isNamed = false;
    bool isLeft = false;
    forEachRecompute(rows, [&](const Row &, const RecomputeRule &rule) {
        isNamed = isNamed || rule.when == Switched::Always;
        isLeft = isLeft || rule.when == Switched::Chosen;
    });
    return isNamed && !isLeft;
}

Result<ConstraintTable> recomputeChoice(
    const Model &model, const ConstraintTable &rows, RecomputeWord word, const std::vector<bool> &among)
{
    auto text = recomputeRow(model, nameOf(word));
    if (!text || text->empty())
        return ConstraintTable{};
    TRY(const ConstraintTable usual, parseTable(*text));
    const std::size_t count = model.graph->operators.size();
    std::vector<bool> taken(count, false); // by rows
    std::vector<bool> left(count, false);
    bool isLeft = false;
    forEachRecompute(rows, [&](const Row &row, const RecomputeRule &rule) {
        isLeft = isLeft || rule.when == Switched::Chosen;
        for (const OperatorId op : model.index->select(row.selector))
            (rule.when == Switched::Chosen ? left : taken)[at(op)] = true;
    });
    ConstraintTable chosen;
    for (const Row &row : usual.rows) {
        std::vector<OperatorId> operators;
        bool all = true;
        for (const OperatorId op : model.index->select(row.selector)) {
            if (model.graph->at(op).direction != Direction::Forward)
                continue;
            if (!taken[at(op)] && (!isLeft || left[at(op)]) && (among.empty() || among[at(op)]))
                operators.push_back(op);
            else
                all = false;
        }
        if (operators.empty())
            continue;
        chosen.rows.push_back(row);
        if (!all)
            chosen.rows.back().selector = stageSelector(*model.index, operators);
    }
    return chosen;
}

} // namespace planloom
