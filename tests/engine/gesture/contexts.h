#pragma once

#include "engine/gallery/gallery.h"
#include "engine/gesture/gesture.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_matcher.h"
#include "tests/engine/table/models.h"

#include <map>
#include <string>

namespace planloom {

/// A state of the design, made of a model and the text of a table.
inline GestureContext contextOf(
    const std::shared_ptr<const SelectorIndex> &index, std::int32_t devices, TableDocument document)
{
    GestureContext context;
    context.document = std::move(document);
    const ConstraintTable table = context.document.table();
    static_cast<RowSetting &>(context) = settingOf(index->snapshot(), devices, table);
    auto completion = completePlan(context.model, devices, table);
    EXPECT_TRUE(completion) << describe(completion.error());
    if (completion && completion->plan.graph)
        context.plan = std::make_shared<const Plan>(std::move(completion->plan));
    return context;
}

inline GestureContext contextOf(
    const std::shared_ptr<const SelectorIndex> &index, std::int32_t devices, std::string_view text)
{
    return contextOf(index, devices, TableDocument(text));
}

inline std::shared_ptr<const SelectorIndex> indexOf(std::string_view spec)
{
    return std::make_shared<const SelectorIndex>(zooTraining(spec));
}

inline const std::string kModel = "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8&fused=0";

/// A design of that model.
inline GestureContext gpt(std::int32_t devices, std::string_view text)
{
    static const auto index = indexOf(kModel);
    return contextOf(index, devices, text);
}

/// The forward operators that a selector selects.
inline std::vector<OperatorId> forward(const GestureContext &context, std::string_view selector)
{
    const auto parsed = parseSelector(selector);
    EXPECT_TRUE(parsed) << selector;
    return forwardOnes(context.graph(), context.index().select(*parsed));
}

inline OperatorId one(const GestureContext &context, std::string_view name)
{
    const OperatorId op = context.index().findOperator(name);
    EXPECT_TRUE(op.valid()) << name;
    return op;
}

/// The table's text after a proposal; fails the test if it was refused.
inline std::string after(const GestureContext &context, const Proposal &proposal)
{
    EXPECT_FALSE(proposal.refusal) << describe(*proposal.refusal);
    TableDocument document = context.document;
    const auto done = document.apply(proposal.edit);
    EXPECT_TRUE(done) << describe(done.error());
    return document.text();
}

inline std::string refusal(const Proposal &proposal)
{
    EXPECT_TRUE(proposal.refusal);
    EXPECT_TRUE(proposal.edit.empty());
    return proposal.refusal ? proposal.refusal->message : std::string{};
}

} // namespace planloom
