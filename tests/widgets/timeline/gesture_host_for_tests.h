#pragma once

#include <QtCore/QString>

#include "engine/graph/dimensions/batch.h"
#include "widgets/design/gesture_host.h"
#include "widgets/design/plan_update.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// The last of what the engine says of rows for a model of the zoo.
inline PlanUpdateSnapshot answered(
    const ModelSnapshot &model, const std::string &text, const std::string &gallery, std::int32_t devices)
{
    PlanRequest request;
    request.model = model;
    request.table = TableDocument(text);
    request.gallery = gallery;
    request.target = {"dgx-a100", {}, devices};
    PlanUpdateSnapshot last;
    makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
    return last;
}

/// A plan of these rows; null where they can't be carried out.
inline PlanUpdateSnapshot planned(
    const ModelSnapshot &model, const std::string &text, const std::string &gallery, std::int32_t devices)
{
    const PlanUpdateSnapshot last = answered(model, text, gallery, devices);
    return last && last->scene ? last : nullptr;
}

/// A gesture host that writes down what it is asked; previews are answered by the test.
class RecordingHost : public GestureHost
{
public:
    struct Commit {
        Proposal proposal{};
        QString mergeKey{};
    };

    RecordingHost(ModelSnapshot model, PlanUpdateSnapshot update, std::int32_t devices)
        : m_model(std::move(model))
        , m_update(std::move(update))
    {
        m_design = gestureContextOf(*m_model, m_update->table, devices);
        m_design.plan = m_update->plan;
        m_design.cluster = m_update->cluster;
        publish();
    }

    GestureContextSnapshot gestureContext() const override { return m_context; }

    void preview(const Proposal &proposal) override
    {
        previews.push_back(proposal);
        auto preview = std::make_shared<Preview>();
        preview->proposal = proposal;
        preview->linesBefore = m_design.document.lineCount();
        preview->baseline = m_update;
        m_preview = std::move(preview);
        Q_EMIT previewChanged();
    }

    PreviewSnapshot currentPreview() const override { return m_preview; }

    void endPreview() override
    {
        ++ended;
        m_preview.reset();
        Q_EMIT previewChanged();
    }

    bool commit(const Proposal &proposal, const QString &mergeKey = {}) override
    {
        m_preview.reset();
        if (!proposal.accepted() || !m_design.document.apply(proposal.edit))
            return false;
        commits.push_back({proposal, mergeKey});
        publish();
        Q_EMIT contextChanged();
        return true;
    }

    /// What the engine makes of the newest proposal.
    void answerPreview()
    {
        if (!m_preview)
            return;
        TableDocument document = m_design.document;
        if (!document.apply(m_preview->proposal.edit))
            return;
        auto preview = std::make_shared<Preview>(*m_preview);
        preview->update = answered(m_model, document.text(), {}, m_design.deviceCount);
        preview->final = true;
        m_preview = std::move(preview);
        Q_EMIT previewChanged();
    }

    std::string text() const { return m_design.document.text(); }
    PlanUpdateSnapshot replanned() const { return planned(m_model, text(), {}, m_design.deviceCount); }

    std::vector<Proposal> previews;
    std::vector<Commit> commits;
    int ended = 0;

private:
    void publish() { m_context = std::make_shared<const GestureContext>(m_design); }

    ModelSnapshot m_model;
    PlanUpdateSnapshot m_update;
    GestureContext m_design;
    GestureContextSnapshot m_context;
    PreviewSnapshot m_preview;
};

} // namespace planloom
