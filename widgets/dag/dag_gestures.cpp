#include "widgets/dag/dag_gestures.h"

#include <utility>

namespace planloom {

void DagGestures::setHost(GestureHost *host)
{
    if (host == m_host)
        return;
    abandon();
    m_host = host;
}

GestureContextSnapshot DagGestures::context() const
{
    return m_host ? m_host->gestureContext() : nullptr;
}

PreviewSnapshot DagGestures::preview() const
{
    const auto preview = m_host && m_proposal ? m_host->currentPreview() : nullptr;
    const bool current =
        preview && preview->proposal.words == m_proposal->words && preview->proposal.edit == m_proposal->edit;
    return current ? preview : nullptr;
}

bool DagGestures::isBlocked() const
{
    const auto now = preview();
    return now && moodOf(*now) == GhostMood::Blocked;
}

QString DagGestures::tag(const QString &key) const
{
    if (!m_proposal)
        return {};
    QString text = QString::fromStdString(m_proposal->words);
    const auto preview = this->preview();
    if (preview) {
        const QString tag = tagOf(*preview);
        if (!tag.isEmpty())
            text = tag;
    }
    const auto add = [&text](const std::string &sentence) {
        const QString more = QString::fromStdString(sentence);
        if (more.isEmpty() || text.contains(more))
            return;
        text += text.isEmpty() ? more : QStringLiteral(" · ") + more;
    };
    if (m_proposal->refusal)
        add(m_proposal->refusal->message);
    for (const auto &words : m_proposal->yieldingWords)
        add(words);
    if (preview) {
        for (const QString &line : wordsOfRowsInTheWay(*preview, m_way, key))
            text += QLatin1Char('\n') + line;
    }
    return text;
}

void DagGestures::toggleRowsInTheWay()
{
    const auto now = context();
    if (active() && now && m_way.toggle(*now) && m_proposal)
        show();
}

void DagGestures::answered()
{
    const auto now = context();
    const auto said = preview();
    if (active() && now && said && m_way.learn(*now, *said))
        show();
}

void DagGestures::begin(Kind kind, std::vector<OperatorId> operators)
{
    abandon();
    m_kind = kind;
    m_operators = std::move(operators);
}

void DagGestures::beginSplit(
    std::vector<OperatorId> operators, OperatorId on, std::vector<DimensionChip> chips, std::int32_t chip)
{
    begin(Kind::Split, std::move(operators));
    m_on = on;
    m_chips = std::move(chips);
    m_chip = chip;
    m_splitKind = SplitKind::Dimension;
    m_parts = 1;
    m_partsFixed = false;
    m_typed = 0;
    m_pulled = 0;
    m_pushed = false;
    m_axis.clear();
}

std::vector<std::int32_t> DagGestures::counts() const
{
    if (m_splitKind == SplitKind::Dimension && m_chip >= 0)
        return m_chips[static_cast<std::size_t>(m_chip)].counts;
    const auto now = context();
    return now ? replicaCounts(now->deviceCount, now->mesh) : std::vector<std::int32_t>{};
}

void DagGestures::push()
{
    if (std::exchange(m_pushed, true))
        return;
    propose();
}

void DagGestures::pull(double distance)
{
    m_pulled = distance;
    if (std::exchange(m_pushed, false))
        nothing(); // it is not put together after all
    if (m_partsFixed && m_proposal)
        return;
    const auto now = context();
    const std::int32_t parts = m_partsFixed ? m_parts : now ? snapParts(distance, counts(), now->mesh) : 1;
    // What can't be cut at all is refused for two parts, so that the reason is told.
    const std::int32_t wanted = parts == 1 && distance > kPullStart ? 2 : parts;
    if (wanted == m_parts && m_proposal)
        return;
    m_parts = wanted;
    propose();
}

void DagGestures::setChip(std::int32_t chip)
{
    m_chip = chip;
    propose();
}

void DagGestures::setSplitKind(SplitKind kind)
{
    if (kind == m_splitKind)
        return;
    m_splitKind = kind;
    if (m_partsFixed) {
        propose();
        return;
    }
    m_proposal.reset();
    pull(m_pulled);
}

void DagGestures::setParts(std::int32_t parts)
{
    m_partsFixed = true;
    m_parts = parts;
    propose();
}

void DagGestures::stepParts(std::int32_t by)
{
    m_typed = 0;
    setParts(planloom::stepParts(m_parts, counts(), by));
}

void DagGestures::typeDigit(std::int32_t digit)
{
    if (m_typed > 9999 || (m_typed == 0 && digit == 0))
        return;
    m_typed = m_typed * 10 + digit;
    setParts(m_typed);
}

void DagGestures::forgetParts()
{
    m_typed = 0;
    m_partsFixed = false;
    m_proposal.reset();
    pull(m_pulled);
}

void DagGestures::setAxis(const std::string &axis)
{
    m_axis = axis;
    propose();
}

void DagGestures::beginPlace(std::vector<OperatorId> all, std::vector<OperatorId> onlyThis)
{
    begin(Kind::Place, all);
    m_all = std::move(all);
    m_this = std::move(onlyThis);
    m_onlyThis = false;
    m_replicate = false;
    m_target.reset();
}

void DagGestures::aimAt(const std::optional<PlaceTarget> &target)
{
    if (target == m_target)
        return;
    m_target = target;
    propose();
}

void DagGestures::setReplicate(bool replicate)
{
    if (replicate == m_replicate)
        return;
    m_replicate = replicate;
    propose();
}

void DagGestures::setOnlyThis(bool onlyThis)
{
    if (onlyThis == m_onlyThis)
        return;
    m_onlyThis = onlyThis;
    m_operators = onlyThis ? m_this : m_all;
    propose();
}

void DagGestures::beginOrder(std::vector<OperatorId> operators)
{
    begin(Kind::Order, std::move(operators));
    m_second.clear();
}

void DagGestures::aimAtOperators(std::vector<OperatorId> second)
{
    if (second == m_second)
        return;
    m_second = std::move(second);
    propose();
}

void DagGestures::beginRetarget(std::int32_t line, OrderEnd end)
{
    begin(Kind::Retarget, {});
    m_line = line;
    m_end = end;
    m_second.clear();
    m_selectors.reset();
}

void DagGestures::aimEndAt(std::vector<OperatorId> operators)
{
    if (operators == m_second && !m_selectors)
        return;
    m_second = std::move(operators);
    m_selectors.reset();
    propose();
}

void DagGestures::setOrderSelectors(Selector first, Selector second)
{
    m_selectors.emplace(std::move(first), std::move(second));
    propose();
}

void DagGestures::beginStage(std::vector<OperatorId> operators)
{
    begin(Kind::Stage, std::move(operators));
    m_stage = -1;
}

void DagGestures::setStage(std::int32_t stage)
{
    m_stage = stage;
    propose();
}

Proposal DagGestures::make(const GestureContext &context) const
{
    switch (m_kind) {
    case Kind::Split: {
        SplitGesture gesture;
        gesture.operators = m_operators;
        gesture.on = m_on;
        gesture.kind = m_splitKind;
        if (m_splitKind == SplitKind::Dimension && m_chip >= 0)
            gesture.dimension = m_chips[static_cast<std::size_t>(m_chip)].dimension;
        gesture.parts = m_pushed ? 1 : m_parts;
        gesture.axis = m_axis;
        return proposeSplit(context, gesture);
    }
    case Kind::Place: {
        PlaceGesture gesture = placeGesture(*m_target, m_operators);
        gesture.replicate = m_replicate;
        return proposePlace(context, gesture);
    }
    case Kind::Order: {
        OrderGesture gesture;
        gesture.first = m_operators;
        gesture.second = m_second;
        return proposeOrder(context, gesture);
    }
    case Kind::Stage:
        return proposeStage(context, m_operators, StageId{m_stage});
    case Kind::Retarget:
        return m_selectors ? proposeOrderRow(context, m_line, m_selectors->first, m_selectors->second)
                           : proposeRetarget(context, m_line, m_end, m_second);
    case Kind::None:
        break;
    }
    return {};
}

void DagGestures::propose()
{
    const auto now = context();
    const bool aimed = (m_kind == Kind::Split && (m_parts > 1 || !m_axis.empty() || m_partsFixed || m_pushed))
        || (m_kind == Kind::Place && m_target) || (m_kind == Kind::Order && !m_second.empty())
        || (m_kind == Kind::Stage && m_stage >= 0)
        || (m_kind == Kind::Retarget && (m_selectors || !m_second.empty()));
    if (!now || !aimed) {
        nothing();
        return;
    }
    m_way.setBase(make(*now));
    show();
}

void DagGestures::show()
{
    m_proposal = m_way.proposal();
    m_host->preview(*m_proposal);
}

void DagGestures::nothing()
{
    const bool had = m_proposal.has_value();
    m_proposal.reset();
    if (had && m_host)
        m_host->endPreview();
}

bool DagGestures::commit()
{
    const auto proposal = std::exchange(m_proposal, std::nullopt);
    m_kind = Kind::None;
    m_way.reset();
    if (!m_host)
        return false;
    if (proposal && proposal->accepted())
        return m_host->commit(*proposal);
    m_host->endPreview();
    return false;
}

void DagGestures::abandon()
{
    const bool was = m_kind != Kind::None;
    m_kind = Kind::None;
    m_proposal.reset();
    m_way.reset();
    m_second.clear();
    m_selectors.reset();
    m_target.reset();
    if (was && m_host)
        m_host->endPreview();
}

void DagGestures::contextChanged()
{
    if (active() && m_proposal)
        propose();
}

} // namespace planloom
