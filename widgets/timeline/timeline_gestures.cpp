#include "widgets/timeline/timeline_gestures.h"

#include "engine/design/schedules/block_move.h"
#include "widgets/timeline/timeline_holds.h"

#include <algorithm>

namespace planloom {

namespace {

Proposal refusedBy(std::string words, std::string sentence)
{
    Proposal proposal;
    proposal.words = std::move(words);
    proposal.refusal = Error{ErrorCode::InvalidInput, std::move(sentence), {}, {}};
    return proposal;
}

/// Why something that runs once per step can't be moved.
Proposal fixedProposal(const TimelineBlock *block)
{
    const SegmentKind kind = block ? block->kind : SegmentKind::Prologue;
    return refusedBy("move",
        kind == SegmentKind::Optimizer
            ? "the optimizer step follows the operators whose weights it updates: move those"
            : kind == SegmentKind::Reduce
            ? "gradients are reduced as soon as the backward operators that make them are done: move those"
            : kind == SegmentKind::WeightGradient
            ? "gradients of weights fill the time that other blocks leave: move those"
            : "this runs once per step: only forward and backward blocks can be moved");
}

const TimelineBlock *blockOf(const TimelineCanvas &canvas, const TimelineHit &hit)
{
    if (hit.row < 0 || hit.block < 0)
        return nullptr;
    const TimelineRow &row = (*canvas.rows)[static_cast<std::size_t>(hit.row)];
    const DeviceLane &lane = canvas.laneOf(row);
    return static_cast<std::size_t>(hit.block) < lane.blocks.size()
        ? &lane.blocks[static_cast<std::size_t>(hit.block)]
        : nullptr;
}

} // namespace

BlockRef refOf(const TimelineBlock &block)
{
    return {block.stage, isBackward(block.kind) ? Direction::Backward : Direction::Forward, block.microBatch,
        block.part};
}

void TimelineGestures::setHost(GestureHost *host)
{
    abandon();
    forgetKeys();
    m_host = host;
}

bool TimelineGestures::press(const TimelineCanvas &canvas, const TimelineHit &hit, double x, int y,
    const std::vector<OperatorId> &selected)
{
    abandon();
    if (!m_host || !hit.movable())
        return false;
    m_context = m_host->gestureContext();
    if (!m_context)
        return false;
    m_pressed = true;
    m_hit = hit;
    m_x = x;
    m_y = y;
    m_selected = selected;
    m_splitOn = {};
    m_probed = 0;
    holdPiece(canvas);
    m_operator = hit.span >= 0 ? canvas.scene->operatorOf(static_cast<std::size_t>(hit.span)) : OperatorId{};
    return true;
}

bool TimelineGestures::move(const TimelineCanvas &canvas, double x, int y, GestureModifiers modifiers)
{
    if (!m_pressed)
        return false;
    if (!dragging()) {
        const DragLock lock = dragLockOf(x - m_x, y - m_y);
        if (lock == DragLock::None)
            return false;
        m_ghost.sourceRow = m_hit.row;
        if (m_hit.part == HitPart::BracketEnd)
            m_ghost.drag = TimelineDrag::InFlight;
        else if (m_hit.part == HitPart::LaneEdge)
            m_ghost.drag = TimelineDrag::Spread;
        else if (lock == DragLock::Horizontal)
            m_ghost.drag = TimelineDrag::Order;
        else
            m_ghost.drag = m_hit.part == HitPart::SpanEdge ? TimelineDrag::Spread : TimelineDrag::Place;
    }
    take(canvas, modifiers);
    switch (m_ghost.drag) {
    case TimelineDrag::Place:
        moveTo(canvas, y, modifiers);
        break;
    case TimelineDrag::Order:
        orderTo(canvas, x, modifiers);
        break;
    case TimelineDrag::Spread:
        spreadTo(canvas, y);
        break;
    case TimelineDrag::InFlight:
        bracketTo(canvas, x);
        break;
    case TimelineDrag::None:
    case TimelineDrag::Axis:
    case TimelineDrag::Line:
        break;
    }
    return true;
}

void TimelineGestures::take(const TimelineCanvas &canvas, GestureModifiers modifiers)
{
    if (m_taken == modifiers)
        return;
    m_taken = modifiers;
    ++m_takes;
    m_ghost.operators.clear();
    m_ghost.spans.clear();
    m_ghost.stage = {};
    const TimelineBlock *block = blockOf(canvas, m_hit);
    if (m_ghost.drag == TimelineDrag::InFlight)
        return;
    if (m_ghost.drag == TimelineDrag::Order) {
        // What is taken along is marked in `orderTo`: it depends on whether the caret is among blocks or
        // spans.
        m_ghost.operators = m_operator.valid() ? forwardOperators(m_context->graph(), {m_operator})
                                               : std::vector<OperatorId>{};
        return;
    }
    const bool wholeStage = m_hit.part == HitPart::Block || m_hit.part == HitPart::Folded
        || (modifiers.shift && m_ghost.drag == TimelineDrag::Place);
    if (wholeStage && block && block->isOrdered()) {
        m_ghost.stage = block->stage;
        m_ghost.operators = operatorsOfStage(*m_context, block->stage);
        return;
    }
    std::vector<OperatorId> operators{m_operator};
    if (m_hit.part == HitPart::LaneEdge)
        operators = operatorsOfRow(canvas, m_hit.row);
    else if (std::binary_search(m_selected.begin(), m_selected.end(), m_operator))
        operators = m_selected; // all that is selected goes together
    m_ghost.operators = forwardOperators(m_context->graph(), operators);
    std::vector<OperatorId> both = m_ghost.operators;
    for (const OperatorId op : m_ghost.operators) {
        if (m_context->graph().at(op).mirror.valid())
            both.push_back(m_context->graph().at(op).mirror);
    }
    std::sort(both.begin(), both.end());
    constexpr std::size_t kMostMarked = 20'000; // what is gathered and sorted in about a millisecond
    if (rowCountOf(*canvas.scene, both) <= kMostMarked)
        m_ghost.spans = rowsOf(*canvas.scene, both);
}

void TimelineGestures::show(Key key, Proposal proposal)
{
    m_key = key;
    m_ghost.atHome = false;
    m_rounds = 0;
    m_ghost.kept.reset();
    if (m_ghost.drag == TimelineDrag::Order && m_policy == FollowersPolicy::KeepOrder && !proposal.refusal)
        m_ghost.kept.emplace();
    m_way.setBase(std::move(proposal));
    previewWay();
}

void TimelineGestures::showHome(Key key)
{
    m_key = key;
    m_ghost.atHome = true;
    m_refused.reset();
    m_ghost.illegalBegin = m_ghost.illegalEnd = 0;
    m_proposal.reset();
    m_host->endPreview();
}

void TimelineGestures::moveTo(const TimelineCanvas &canvas, int y, GestureModifiers modifiers)
{
    m_ghost.target = laneTargetAt(canvas, y);
    const std::int64_t span = static_cast<std::int64_t>(m_ghost.target.devices.size());
    const Key key{m_ghost.target.row, span, modifiers};
    if (m_key == key)
        return;
    if (!m_ghost.target.valid() || m_ghost.target.row == m_hit.row) {
        showHome(key);
        return;
    }
    if (m_ghost.operators.empty()) {
        show(key, fixedProposal(blockOf(canvas, m_hit)));
        return;
    }
    show(key,
        proposePlace(*m_context,
            {.operators = m_ghost.operators, .devices = m_ghost.target.devices, .replicate = modifiers.alt}));
}

Proposal TimelineGestures::orderProposal(
    const TimelineCanvas &canvas, std::size_t caret, GestureModifiers modifiers) const
{
    const TimelineRow &row = (*canvas.rows)[static_cast<std::size_t>(m_hit.row)];
    const DeviceLane &lane = canvas.laneOf(row);
    if (m_ghost.amongPieces) {
        if (const auto piece = pieceMove(canvas, caret, modifiers))
            return proposePieceMove(*m_context, *piece);
        if (!m_ghost.amongSpans)
            return {};
    }
    if (m_ghost.amongSpans) {
        const auto own = static_cast<std::size_t>(m_hit.span);
        const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(m_hit.block)];
        const OperatorId neighbour = canvas.scene->operatorOf(besideCaret(*canvas.scene, block, own, caret));
        const std::int32_t microBatch = modifiers.alt ? canvas.scene->timeline->spans.microBatch[own] : -1;
        const Proposal proposal = proposeOrder(*m_context,
            {.first = {caret <= own ? m_operator : neighbour},
                .second = {caret <= own ? neighbour : m_operator},
                .microBatch = microBatch});
        return modifiers.control
            ? holdingSpan(*m_context, *canvas.scene, block, own, caret, modifiers.alt, proposal)
            : proposal;
    }
    const auto own = static_cast<std::size_t>(m_hit.block);
    if (modifiers.shift && modifiers.control)
        return caret < lane.blocks.size()
            ? proposeSideBySide(*m_context, refOf(lane.blocks[own]), refOf(lane.blocks[caret]))
            : Proposal{};
    if (modifiers.shift) {
        std::vector<BlockRef> between;
        for (std::size_t i = std::min(own, caret); i <= std::max(own, caret) && i < lane.blocks.size(); ++i) {
            if (lane.blocks[i].isOrdered())
                between.push_back(refOf(lane.blocks[i]));
        }
        return proposeSwap(*m_context, between, modifiers.alt);
    }
    const BlockMove move = blockMoveTo(lane, own, caret);
    if (!move.changes())
        return {};
    const BlockRef first = refOf(lane.blocks[static_cast<std::size_t>(move.first)]);
    const BlockRef second = refOf(lane.blocks[static_cast<std::size_t>(move.second)]);
    if (m_unit > 0 && !modifiers.alt)
        return proposeUnitMove(*m_context, *canvas.scene->plan,
            {.first = first,
                .second = second,
                .movesSecond = static_cast<std::size_t>(move.second) == own,
                .unit = m_unit});
    const Proposal proposal = proposeBlockOrder(*m_context, first, second, modifiers.alt);
    return modifiers.control ? holdingBlock(*m_context, lane, own, caret, modifiers.alt, proposal) : proposal;
}

/// Marks what goes to another place in time: a span, or all of a block.
void TimelineGestures::takeBlock(const TimelineCanvas &canvas, const TimelineBlock &block, bool amongSpans)
{
    m_ghost.amongSpans = amongSpans;
    m_ghost.spans.clear();
    m_ghost.operators =
        m_operator.valid() ? forwardOperators(m_context->graph(), {m_operator}) : std::vector<OperatorId>{};
    if (amongSpans) {
        m_ghost.spans.push_back(static_cast<std::size_t>(m_hit.span));
        return;
    }
    for (std::size_t span = block.rows.begin; span < block.rows.end; ++span) {
        if (canvas.scene->isIn(block, span))
            m_ghost.spans.push_back(span);
    }
}

/// Where the pointer would put it; moves the caret there.
TimelineGestures::OrderPlace TimelineGestures::placeAt(const TimelineCanvas &canvas, const DeviceLane &lane,
    const TimelineBlock &block, double time, GestureModifiers modifiers)
{
    const SpanColumns &spans = canvas.scene->timeline->spans;
    if (m_ghost.amongPieces) {
        m_ghost.caret =
            m_ghost.amongSpans ? spanCaretAt(spans, m_pair->rows, time) : pieceCaretAt(lane, *m_pair, time);
        const bool moves = pieceMove(canvas, m_ghost.caret->before, modifiers).has_value();
        if (moves || !m_ghost.amongSpans)
            return {moves ? OrderAmong::Pieces : OrderAmong::OwnPieces, m_held.begin, !moves};
    }
    if (m_ghost.amongSpans) {
        const auto own = static_cast<std::size_t>(m_hit.span);
        m_ghost.caret = spanCaretAt(spans, block.rows, time);
        // Parts of one operator have no order of their own.
        const std::size_t other = besideCaret(*canvas.scene, block, own, m_ghost.caret->before);
        return {OrderAmong::Spans, own,
            m_ghost.caret->before == own || m_ghost.caret->before == own + 1
                || canvas.scene->operatorOf(other) == m_operator};
    }
    const auto own = static_cast<std::size_t>(m_hit.block);
    if (modifiers.shift) {
        const std::size_t under = std::min(lane.firstBlockEndingAfter(time), lane.blocks.size() - 1);
        m_ghost.caret = Caret{under, static_cast<double>(lane.blocks[under].begin)};
        return {OrderAmong::Blocks, own, under == own || !lane.blocks[under].isOrdered()};
    }
    m_ghost.caret = blockCaretAt(lane, time);
    return {OrderAmong::Blocks, own, !blockMoveTo(lane, own, m_ghost.caret->before).changes()};
}

void TimelineGestures::orderTo(const TimelineCanvas &canvas, double x, GestureModifiers modifiers)
{
    constexpr double kOutside = 12; // pixels beyond its block at which a span drags the block along
    const TimelineRow &row = (*canvas.rows)[static_cast<std::size_t>(m_hit.row)];
    const DeviceLane &lane = canvas.laneOf(row);
    const TimelineBlock *block = blockOf(canvas, m_hit);
    if (!block)
        return;
    const double time = canvas.axis.timeAt(x);
    const double margin = kOutside * canvas.axis.nanosecondsPerPixel;
    const bool single = m_hit.part == HitPart::Span || m_hit.part == HitPart::SpanEdge;
    const bool amongPieces = isAmongPieces(time, margin, modifiers);
    const bool amongSpans = single && !modifiers.shift
        && (amongPieces
            || (time >= static_cast<double>(block->begin) - margin
                && time <= static_cast<double>(block->end) + margin));
    if (amongSpans != m_ghost.amongSpans || amongPieces != m_ghost.amongPieces || m_ghost.spans.empty()) {
        m_ghost.amongPieces = amongPieces;
        takeBlock(canvas, *block, amongSpans);
    }
    if (!block->isOrdered()) {
        m_ghost.caret = blockCaretAt(lane, time);
        show({-2, -2, modifiers}, fixedProposal(block));
        return;
    }
    const OrderPlace place = placeAt(canvas, lane, *block, time, modifiers);
    const Key key{
        static_cast<std::int64_t>(m_ghost.caret->before), static_cast<std::int64_t>(place.among), modifiers};
    if (m_key == key)
        return;
    if (amongPieces)
        takePiece(canvas, place.among == OrderAmong::Pieces);
    if (!amongSpans && !amongPieces && !modifiers.shift) {
        beginProbe(lane, place.own, modifiers);
    } else {
        m_probe.reset();
        m_ghost.candidates.clear();
    }
    if (place.home) {
        showHome(key);
        return;
    }
    // A listed order keeps what follows by itself, and pieces only move where a row asks for it.
    const bool follows =
        place.among == OrderAmong::Spans || (place.among == OrderAmong::Blocks && m_unit == 0);
    m_followers = m_policy == FollowersPolicy::KeepOrder && follows
        ? followersAt(canvas, place.own, modifiers)
        : Followers{};
    Proposal proposal = orderProposal(canvas, m_ghost.caret->before, modifiers);
    const bool refused = proposal.refusal.has_value();
    show(key, std::move(proposal));
    if (refused && !modifiers.shift) {
        beginRefused(canvas, modifiers);
    } else {
        m_refused.reset();
        m_ghost.illegalBegin = m_ghost.illegalEnd = 0;
    }
}

void TimelineGestures::spreadTo(const TimelineCanvas &canvas, int y)
{
    const std::int32_t home = rowOfOperators(canvas, m_ghost.operators);
    const std::int32_t first = home >= 0 ? std::min(home, m_hit.row) : m_hit.row;
    std::int32_t last = rowAt(*canvas.rows, y);
    if (last < 0)
        last = y < 0 ? first : static_cast<std::int32_t>(canvas.rows->size()) - 1;
    m_ghost.targetRows = deviceRowsBetween(*canvas.rows, first, std::max(last, first));
    const Key key{m_ghost.targetRows.empty() ? -1 : m_ghost.targetRows.back(), m_ghost.choice, {}};
    if (m_key == key)
        return;
    if (m_ghost.operators.empty()) {
        show(key, fixedProposal(blockOf(canvas, m_hit)));
        return;
    }
    std::vector<DeviceId> devices;
    for (const std::int32_t row : m_ghost.targetRows) {
        const auto &more = (*canvas.rows)[static_cast<std::size_t>(row)].devices;
        devices.insert(devices.end(), more.begin(), more.end());
    }
    std::sort(devices.begin(), devices.end());
    if (devices.empty()) {
        showHome(key);
        return;
    }
    const OperatorId on = splitOn(devices);
    m_ghost.choices.clear();
    for (const DimensionChip &chip : splitChoices(*m_context, on, static_cast<std::int32_t>(devices.size())))
        m_ghost.choices.push_back(chip.label);
    const auto &placed = canvas.scene->plan->placement;
    const auto at = static_cast<std::size_t>(on.index);
    std::vector<DeviceId> now = at < placed.size() ? placed[at] : std::vector<DeviceId>{};
    std::sort(now.begin(), now.end());
    if (now == devices && m_ghost.choice == 0) {
        showHome(key);
        return;
    }
    show(key,
        proposeSpread(*m_context,
            {.operators = m_ghost.operators,
                .on = on,
                .devices = std::move(devices),
                .choice = m_ghost.choice}));
}

/// Whose dimensions a spread over `devices` offers: those of the operator that was pulled; of all that a lane
/// works on, the first operator by whose first dimension all of them can be split.
OperatorId TimelineGestures::splitOn(const std::vector<DeviceId> &devices)
{
    constexpr int kMostTries = 8; // proposals: a few milliseconds at worst
    if (const auto pulled = forwardOperators(m_context->graph(), {m_operator}); !pulled.empty())
        return pulled.front();
    const auto parts = static_cast<std::int32_t>(devices.size());
    const auto offers = [&](OperatorId op) {
        return !splitChoices(*m_context, op, parts).empty()
            && !proposeSpread(*m_context, {.operators = m_ghost.operators, .on = op, .devices = devices})
                    .refusal;
    };
    if (m_splitOn.valid() && offers(m_splitOn))
        return m_splitOn;
    int tries = 0;
    for (const OperatorId op : m_ghost.operators) {
        // Data of every micro-batch, not a table of positions or a mask: those are the same for all.
        if (m_context->batch().oncePerStep[static_cast<std::size_t>(op.index)]
            || splitChoices(*m_context, op, parts).empty())
            continue;
        if (offers(op)) {
            m_splitOn = op;
            return op;
        }
        if (++tries == kMostTries)
            break;
    }
    return m_ghost.operators.front();
}

bool TimelineGestures::digit(const TimelineCanvas &canvas, int digit)
{
    if (m_ghost.drag != TimelineDrag::Spread || digit < 1
        || static_cast<std::size_t>(digit) > m_ghost.choices.size() || m_ghost.targetRows.empty())
        return m_ghost.drag == TimelineDrag::Spread;
    m_ghost.choice = digit - 1;
    spreadTo(canvas, (*canvas.rows)[static_cast<std::size_t>(m_ghost.targetRows.back())].y + 1);
    return true;
}

void TimelineGestures::bracketTo(const TimelineCanvas &canvas, double x)
{
    const TimelineRow &row = (*canvas.rows)[static_cast<std::size_t>(m_hit.row)];
    const WarmUp &warmUp = canvas.laneOf(row).warmUp;
    const double time = canvas.axis.timeAt(x);
    m_ghost.inFlight = inFlightAt(warmUp, time, canvas.scene->plan->microBatches);
    m_ghost.stage = warmUp.stage;
    const double end = static_cast<double>(warmUp.end);
    const double begin = static_cast<double>(warmUp.begin);
    m_ghost.bracketEnd = m_ghost.inFlight <= warmUp.count
        ? begin + (end - begin) * m_ghost.inFlight / std::max(warmUp.count, 1)
        : end + static_cast<double>(warmUp.each) * (m_ghost.inFlight - warmUp.count);
    const Key key{m_ghost.inFlight, 0, {}};
    if (m_key == key)
        return;
    if (m_ghost.inFlight == warmUp.count)
        showHome(key);
    else
        show(key, proposeInFlight(*m_context, warmUp.stage, m_ghost.inFlight));
}

bool TimelineGestures::hoverAxis(
    const TimelineCanvas &canvas, int y, const std::string &axis, const std::vector<OperatorId> &selected)
{
    if (!m_host)
        return false;
    if (m_ghost.drag != TimelineDrag::Axis) {
        abandon();
        m_context = m_host->gestureContext();
        if (!m_context)
            return false;
        m_ghost.drag = TimelineDrag::Axis;
    }
    m_ghost.target = laneTargetAt(canvas, y);
    const Key key{m_ghost.target.row, 0, {}};
    if (m_key == key)
        return m_proposal && m_proposal->accepted();
    ++m_takes;
    m_ghost.operators = forwardOperators(m_context->graph(), selected);
    if (m_ghost.operators.empty() && m_ghost.target.valid()) {
        // Nothing is selected: what the lane works on.
        const std::vector<OperatorId> operators = operatorsOfRow(canvas, m_ghost.target.row);
        m_ghost.operators = forwardOperators(m_context->graph(), operators);
    }
    if (!m_ghost.target.valid()) {
        showHome(key);
        return false;
    }
    show(key, proposeAxis(*m_context, m_ghost.operators, axis));
    return m_proposal->accepted();
}

void TimelineGestures::type(const TimelineCanvas &canvas, const Proposal &proposal)
{
    if (!m_host)
        return;
    m_ghost = {};
    m_ghost.drag = TimelineDrag::Line;
    ++m_takes;
    m_ghost.operators = proposal.operators;
    constexpr std::size_t kMostMarked = 20'000;
    if (rowCountOf(*canvas.scene, proposal.operators) <= kMostMarked)
        m_ghost.spans = rowsOf(*canvas.scene, proposal.operators);
    m_ghost.atHome = false;
    m_way.setBase(proposal);
    previewWay();
}

bool TimelineGestures::drop()
{
    const std::optional<Proposal> proposal = std::move(m_proposal);
    const bool wanted = dragging() && !m_ghost.atHome && proposal && proposal->accepted();
    const bool order = m_ghost.drag == TimelineDrag::Order && m_policy == FollowersPolicy::KeepOrder;
    GestureHost *host = m_host;
    m_proposal.reset();
    if (!wanted) {
        abandon();
        return false;
    }
    m_pressed = false;
    m_ghost = {};
    m_key.reset();
    m_taken.reset();
    m_context.reset();
    m_way.reset();
    m_probe.reset();
    m_refused.reset();
    if (order)
        return commitOrder(*proposal, m_followers, QStringLiteral("timeline.drag:%1").arg(++m_orders));
    return host->commit(*proposal); // ends the preview
}

void TimelineGestures::abandon()
{
    const bool shown = dragging();
    ++m_takes;
    m_pressed = false;
    m_ghost = {};
    m_proposal.reset();
    m_way.reset();
    m_probe.reset();
    m_refused.reset();
    m_key.reset();
    m_taken.reset();
    m_context.reset();
    if (shown && m_host)
        m_host->endPreview();
}

} // namespace planloom
