#include "widgets/main/player.h"

#include <QtGui/QAction>
#include <QtWidgets/QMenu>

#include "engine/analyse/block_label.h"
#include "engine/hardware/device_word.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/common/themed_icon.h"
#include "widgets/dag/dag_view.h"
#include "widgets/memory/memory_panel.h"
#include "widgets/scene/running_now.h"
#include "widgets/timeline/timeline_colours.h"
#include "widgets/timeline/timeline_text.h"
#include "widgets/timeline/timeline_view.h"

#include <cmath>

namespace planloom {

namespace {

constexpr int kMemoryMilliseconds = 100; ///< Between two lists of live tensors.
constexpr std::size_t kMostMoves = 64; ///< That are drawn at once: more could not be told apart.
constexpr int kMostWords = 4; ///< Devices whose blocks the bar names.

/// From where to where what a communication sends goes on the graph.
PlayedMove moveOf(const TimelineScene &scene, const RunningSpan &span, const Palette &palette)
{
    PlayedMove move;
    move.share = span.share;
    const Instruction *instruction = scene.findInstruction(span.row);
    if (!instruction)
        return move;
    move.colour = communicationColour(palette, instruction->kind);
    const auto device = static_cast<std::size_t>(scene.timeline->spans.device[span.row]);
    const DeviceProgram &program = scene.plan->devices[device];
    if (const EdgeCommunication *edge =
            findEdge(scene.communication, instruction->op, tensorOf(program, *instruction))) {
        move.from = edge->from;
        move.to = edge->to;
    }
    return move;
}

} // namespace

Player::Player(TimelineView *timeline, DagView *dag, const MakeCommand &makeCommand, QObject *parent)
    : QObject(parent)
    , m_timeline(timeline)
    , m_dag(dag)
    , m_playback(this)
    , m_memoryLater(this)
{
    const auto add = [&](const char *id, const QString &text, const QKeySequence &key, const char *icon,
                         std::function<void()> act) {
        QAction *action = makeCommand(
            id, text, key.isEmpty() ? QList<QKeySequence>{} : QList<QKeySequence>{key}, std::move(act));
        if (icon)
            action->setIcon(themedIcon(QLatin1String(icon)));
        const QString keys = key.toString(QKeySequence::NativeText);
        const QString words = QString(text).remove(QLatin1Char('&'));
        action->setToolTip(keys.isEmpty() ? words : QStringLiteral("%1 (%2)").arg(words, keys));
        m_actions.push_back(action);
        return action;
    };
    m_play = add("play.play", tr("&Play"), Qt::SHIFT | Qt::Key_Space, "run", [this] { m_playback.toggle(); });
    QAction *forward = add(
        "play.forward", tr("Next &Block"), Qt::Key_Period, "play-next", [this] { m_playback.stepForward(); });
    QAction *back = add("play.back", tr("P&revious Block"), Qt::Key_Comma, "play-previous",
        [this] { m_playback.stepBack(); });
    add("play.faster", tr("&Faster"), Qt::SHIFT | Qt::Key_Period, nullptr,
        [this] { m_playback.setSpeed(m_playback.speed() * 2); });
    add("play.slower", tr("&Slower"), Qt::SHIFT | Qt::Key_Comma, nullptr,
        [this] { m_playback.setSpeed(m_playback.speed() / 2); });
    m_loop = add("play.loop", tr("&Loop"), {}, "play-loop", [] {});
    m_loop->setCheckable(true);
    connect(m_loop, &QAction::toggled, this, [this](bool on) { m_playback.setLoops(on); });
    QAction *stop = add("play.stop", tr("S&top Playing"), {}, "close", [this] { m_playback.stop(); });
    m_bar = new TransportBar(&m_playback, {back, m_play, forward, m_loop, stop});
    m_memoryLater.setSingleShot(true);
    m_memoryLater.setInterval(kMemoryMilliseconds);
    connect(&m_memoryLater, &QTimer::timeout, this, [this] {
        if (m_memory && m_playback.time())
            m_memory->setTime(std::llround(*m_playback.time()));
    });
    connect(&m_playback, &Playback::timeChanged, this, &Player::showMoment);
    connect(&m_playback, &Playback::stateChanged, this, &Player::showState);
    connect(m_timeline, &TimelineView::shownSceneChanged, this, [this] {
        m_playback.setScene(m_timeline->measured() ? m_timeline->measured() : m_timeline->scene());
        for (QAction *action : m_actions)
            action->setEnabled(m_playback.scene() != nullptr);
    });
    connect(m_timeline, &TimelineView::timeAsked, this,
        [this](Nanoseconds time) { m_playback.seek(static_cast<double>(time.count())); });
    connect(m_timeline, &TimelineView::timeCleared, this, [this] { m_playback.stop(); });
    for (QAction *action : m_actions)
        action->setEnabled(false);
    showState();
}

void Player::fill(QMenu *menu) const
{
    for (QAction *action : m_actions)
        menu->addAction(action);
}

void Player::setMemory(MemoryPanel *memory)
{
    m_memory = memory;
}

void Player::showState()
{
    m_play->setText(m_playback.isPlaying() ? tr("&Pause") : tr("&Play"));
    m_play->setIcon(themedIcon(m_playback.isPlaying() ? QStringLiteral("pause") : QStringLiteral("run")));
    m_loop->setChecked(m_playback.loops());
}

void Player::showMoment()
{
    const auto time = m_playback.time();
    if (!time) {
        m_timeline->setPlayhead({});
        m_dag->setMoment({});
        if (m_memory)
            m_memory->setTime(-1);
        return;
    }
    const TimelineScene &scene = *m_playback.scene();
    m_timeline->setPlayhead(Nanoseconds{std::llround(*time)});
    const Palette &palette = paletteFor(*m_dag);
    DagMoment moment;
    QStringList words;
    int more = 0;
    const std::string device = deviceWord(scene.cluster);
    for (const RunningSpan &span : runningAt(scene, *time)) {
        const auto of = static_cast<std::size_t>(scene.timeline->spans.device[span.row]);
        if (scene.timeline->spans.queue[span.row] != QueueKind::Compute) {
            if (moment.moves.size() < kMostMoves)
                moment.moves.push_back(moveOf(scene, span, palette));
            continue;
        }
        const DeviceLane &lane = scene.lanes[of];
        const std::int32_t block = lane.blockOf(span.row);
        if (block < 0)
            continue;
        const TimelineBlock &running = lane.blocks[static_cast<std::size_t>(block)];
        const QString label = toQString(labelOf(running));
        if (words.size() < kMostWords)
            words << tr("%1 on %2 %3").arg(label, toQString(device)).arg(of);
        else
            ++more;
        moment.operators.push_back({scene.operatorOf(span.row), label, passColour(palette, running.kind)});
    }
    if (more > 0)
        words << tr("and %1 more").arg(more);
    m_bar->setRunning(words.isEmpty() ? tr("nothing computes") : words.join(QStringLiteral(", ")));
    m_dag->setMoment(std::move(moment));
    if (m_memory && !m_memoryLater.isActive())
        m_memoryLater.start();
}

} // namespace planloom

#include "moc_player.cpp"
