// "What if this took no time?"

#include "widgets/timeline/timeline_view.h"

#include <QtConcurrent/QtConcurrentRun>

#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/timeline_panel_text.h"

#include <algorithm>

namespace planloom {

struct TimelineView::WhatIfAnswer {
    TimelineSceneSnapshot scene{};
    WhatIf answer{};
    std::string what{};
};

bool TimelineView::canAskWhatIf() const
{
    return m_scene
        && (!m_selection->selected().empty() || (m_focus.valid() && m_focus.part == LanePart::Communication));
}

void TimelineView::askWhatIf()
{
    if (!canAskWhatIf())
        return;
    const TimelineAnalysisSnapshot &analysis = m_analyst->analysis();
    m_asksWhatIf = !m_analyst->deep();
    if (m_asksWhatIf) {
        needAnalysis(); // comes back here
        return;
    }
    // A communication by itself; else what is selected, in all its micro-batches, on all its devices.
    const bool alone = m_focus.valid() && m_focus.part == LanePart::Communication && m_focus.span >= 0;
    const auto span = static_cast<std::size_t>(std::max<std::int64_t>(m_focus.span, 0));
    std::vector<OperatorId> operators = m_selection->selected();
    std::string what = operators.size() == 1 ? shown()->graph().at(operators.front()).name
                                             : std::to_string(operators.size()) + " operators";
    if (alone) {
        const OperatorId served = shown()->operatorOf(span);
        operators = served.valid() ? std::vector<OperatorId>{served} : std::vector<OperatorId>{};
        what = labelOf(*shown(), span)
            + (served.valid() ? " of " + shown()->graph().at(served).name : std::string{});
    }
    m_whatIfStop.request_stop();
    m_whatIfStop = {};
    m_whatIfWatcher.setFuture(QtConcurrent::run(
        [scene = shown(), analysis, operators, what, alone, span, stop = m_whatIfStop.get_token()] {
            const SpanColumns &spans = scene->timeline->spans;
            std::vector<std::size_t> rows =
                operators.empty() ? std::vector<std::size_t>{span} : rowsOf(*scene, operators);
            const Instruction *wanted = scene->findInstruction(span);
            std::erase_if(rows, [&](std::size_t row) {
                const bool communicates = spans.queue[row] != QueueKind::Compute;
                const Instruction *instruction = scene->findInstruction(row);
                return communicates != alone || (alone && spans.queue[row] != spans.queue[span])
                    || (alone && wanted && instruction && instruction->kind != wanted->kind);
            });
            auto answer = std::make_shared<WhatIfAnswer>();
            answer->scene = scene;
            answer->what = what;
            answer->answer = stepWithout(*scene->timeline, analysis->dependencies, rows, stop);
            return std::shared_ptr<const WhatIfAnswer>(std::move(answer));
        }));
}

void TimelineView::takeWhatIf()
{
    if (m_whatIfWatcher.future().resultCount() == 0 || m_whatIfStop.stop_requested())
        return;
    const auto answer = m_whatIfWatcher.result();
    if (answer->scene != shown() || answer->answer.before == 0)
        return;
    showPanel(whatIfTable(*shown(), answer->answer, answer->what));
    m_wouldEnd = answer->answer.after;
    updateActions();
    viewport()->update();
}

} // namespace planloom
