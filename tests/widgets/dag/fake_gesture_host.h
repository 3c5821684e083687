#pragma once

#include "widgets/design/gesture_host.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/plan/complete.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// A host that writes down what it is asked for. Commits change its table when `applies` is set.
class FakeGestureHost : public GestureHost
{
public:
    GestureContextSnapshot gestureContext() const override { return context; }
    void preview(const Proposal &proposal) override
    {
        previews.push_back(proposal);
        auto made = std::make_shared<Preview>();
        made->proposal = proposal;
        shown = std::move(made);
        Q_EMIT previewChanged();
    }
    PreviewSnapshot currentPreview() const override { return shown; }
    void endPreview() override
    {
        ++ended;
        shown = nullptr;
        Q_EMIT previewChanged();
    }
    bool commit(const Proposal &proposal, const QString & /*mergeKey*/) override
    {
        shown = nullptr;
        if (!proposal.accepted())
            return false;
        commits.push_back(proposal);
        auto next = std::make_shared<GestureContext>(*context);
        if (!next->document.apply(proposal.edit))
            qFatal("a proposal does not fit the table it was made for");
        context = std::move(next);
        Q_EMIT contextChanged();
        return true;
    }

    /// The engine's answer to what is shown.
    void answer(PlanUpdateSnapshot update, PlanUpdateSnapshot baseline)
    {
        auto made = std::make_shared<Preview>(*shown);
        made->update = std::move(update);
        made->baseline = std::move(baseline);
        made->final = true;
        shown = std::move(made);
        Q_EMIT previewChanged();
    }

    std::vector<Row> rows() const { return context->document.table().rows; }
    std::vector<OperatorId> selectedBy(const Row &row) const
    {
        auto operators = context->index().select(row.selector);
        std::erase_if(operators,
            [this](OperatorId op) { return context->graph().at(op).direction != Direction::Forward; });
        return operators;
    }

    GestureContextSnapshot context{};
    PreviewSnapshot shown{};
    std::vector<Proposal> previews{};
    std::vector<Proposal> commits{};
    int ended = 0;
};

constexpr const char *kGpt = "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=128&fused=0";

inline GraphSnapshot trainingStepOf(const char *spec)
{
    auto graph = buildZooModel(spec);
    if (!graph)
        qFatal("%s", describe(graph.error()).c_str());
    auto step = buildTrainingStep(*graph);
    if (!step)
        qFatal("%s", describe(step.error()).c_str());
    return std::make_shared<const Graph>(std::move(*step));
}

/// A design of `graph` with these rows on `devices` devices, planned where the rows hold.
inline GestureContextSnapshot designOf(
    const GraphSnapshot &graph, std::int32_t devices, const std::string &rows = {})
{
    auto context = std::make_shared<GestureContext>();
    context->document = TableDocument(rows);
    static_cast<RowSetting &>(*context) = settingOf(graph, devices, context->document.table());
    const auto cluster = clusterNamed("dgx-a100:" + std::to_string(devices));
    if (!cluster)
        qFatal("%s", describe(cluster.error()).c_str());
    context->cluster = *cluster;
    auto completion = completePlan(context->model, devices, context->document.table());
    if (completion && completion->plan.graph)
        context->plan = std::make_shared<const Plan>(std::move(completion->plan));
    return context;
}

} // namespace planloom
