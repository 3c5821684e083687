#include "widgets/dag/layout_service.h"

#include "engine/base/background_disposal.h"
#include "widgets/dag/dag_nudges.h"

#include <QtConcurrent/QtConcurrentRun>

#include <utility>

namespace planloom {

namespace {

/// After so many failures in a row the helper is not started again.
constexpr int kMostFailures = 3;

} // namespace

/// What a worker made: a picture, or the frames whose layout the helper is to make first.
struct LayoutService::Job {
    DagPictureSnapshot picture{};
    std::map<LayoutKey, LayeredGraph> missing{};
};

DagPictureSnapshot makePicture(std::shared_ptr<const DagOutline> outline, DagState state,
    const TextMeasure &measure, LayoutCache &cache, DagFlow flow)
{
    DagPicture picture;
    picture.visible = visibleGraph(*outline, state);
    picture.scene = *composeScene(*outline, picture.visible, measure, layeredEngine(cache), flow);
    nudge(picture.scene, picture.visible, state);
    picture.outline = std::move(outline);
    picture.state = std::move(state);
    return sharedInBackground(std::move(picture));
}

LayoutService::LayoutService(QObject *parent)
    : QObject(parent)
    , m_cache(std::make_shared<LayoutCache>())
{
    m_budget.setSingleShot(true);
    m_budget.setInterval(kBudgetMilliseconds);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &LayoutService::takeJob);
    connect(&m_budget, &QTimer::timeout, this, &LayoutService::giveUpHelper);
    connect(&m_helper, &QProcess::readyReadStandardOutput, this, &LayoutService::readHelper);
    connect(&m_helper, &QProcess::errorOccurred, this, &LayoutService::giveUpHelper);
    connect(&m_helper, &QProcess::finished, this, [this] {
        if (m_sent)
            giveUpHelper();
    });
}

LayoutService::~LayoutService()
{
    m_stop.request_stop();
    m_helper.disconnect(this);
    m_helper.kill();
    m_helper.waitForFinished(1000);
}

void LayoutService::setHelper(const QString &program)
{
    m_helperProgram = program;
    m_failuresInRow = 0;
}

void LayoutService::setMeasure(TextMeasure measure)
{
    m_measure = std::move(measure);
}

void LayoutService::request(std::shared_ptr<const DagOutline> outline, DagState state, DagFlow flow)
{
    m_flow = flow;
    m_outline = std::move(outline);
    m_state = std::move(state);
    m_placed.clear();
    // What the helper has not begun belongs to a request that nobody waits for any more.
    while (m_queue.size() > (m_sent ? 1U : 0U))
        m_queue.pop_back();
    startJob();
}

void LayoutService::startJob()
{
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_busy = true;
    std::erase_if(m_placed, [this](const auto &each) { return m_cache->find(each.first) != nullptr; });
    const bool useHelper = !m_helperProgram.isEmpty() && m_failuresInRow < kMostFailures;
    m_watcher.setFuture(QtConcurrent::run([outline = m_outline, state = m_state, flow = m_flow,
                                              measure = m_measure, cache = m_cache, own = m_own,
                                              placed = m_placed, useHelper, stop = m_stop.get_token()] {
        auto job = std::make_shared<Job>();
        DagPicture picture;
        picture.visible = visibleGraph(*outline, state);
        const auto layered = layeredEngine(*cache, stop);
        const auto engine = [&](const LayeredGraph &graph) -> std::shared_ptr<const LayeredLayout> {
            const bool small = graph.nodes.size() >= 3 && graph.nodes.size() <= kMostHelperNodes
                && graph.edges.size() <= kMostHelperEdges;
            if (!useHelper || !small)
                return layered(graph);
            const LayoutKey key = keyOf(graph);
            if (auto known = cache->find(key))
                return known;
            if (const auto found = placed.find(key); found != placed.end()) {
                auto layout =
                    std::make_shared<const LayeredLayout>(wrapped(graph, routedLayout(graph, found->second)));
                cache->insert(key, layout);
                return layout;
            }
            if (own.contains(key))
                return layered(graph);
            job->missing.emplace(key, graph);
            return nullptr;
        };
        auto scene = composeScene(*outline, picture.visible, measure, engine, flow);
        if (scene) {
            picture.scene = std::move(*scene);
            nudge(picture.scene, picture.visible, state);
            picture.outline = outline;
            picture.state = state;
            job->picture = sharedInBackground(std::move(picture));
        }
        return job;
    }));
}

void LayoutService::takeJob()
{
    const auto job = m_watcher.result();
    if (job->picture) {
        m_busy = false;
        Q_EMIT ready(job->picture);
    } else {
        askHelper(std::move(job->missing));
    }
}

void LayoutService::askHelper(std::map<LayoutKey, LayeredGraph> missing)
{
    for (auto &[key, graph] : missing) {
        const bool underWay = !m_queue.empty() && m_queue.front().first == key;
        if (!underWay)
            m_queue.emplace_back(key, std::move(graph));
    }
    if (!m_sent)
        sendNext();
}

void LayoutService::sendNext()
{
    if (m_queue.empty()) {
        startJob(); // with what the helper has made in the meantime
        return;
    }
    if (m_helper.state() == QProcess::NotRunning) {
        m_reader = {};
        m_helper.setProgram(m_helperProgram);
        m_helper.setProcessChannelMode(QProcess::SeparateChannels);
        m_helper.setStandardErrorFile(QProcess::nullDevice());
        m_sent = true; // a failed start reports while it is being asked for
        m_helper.start();
        if (!m_sent)
            return;
    }
    m_sent = true;
    m_budget.start();
    const auto text = encode(LayoutRequest{.id = ++m_nextId, .graph = m_queue.front().second});
    m_helper.write(text.data(), static_cast<qint64>(text.size()));
}

void LayoutService::readHelper()
{
    const auto bytes = m_helper.readAllStandardOutput();
    m_reader.append({bytes.constData(), static_cast<std::size_t>(bytes.size())});
    for (;;) {
        bool found = false;
        const auto answer = m_reader.nextAnswer(found);
        if (!answer) {
            giveUpHelper();
            return;
        }
        if (!found)
            return;
        if (!m_sent || answer->id != m_nextId)
            continue;
        auto &[key, graph] = m_queue.front();
        if (answer->failure.empty() && answer->centres.size() == graph.nodes.size()) {
            m_placed.insert_or_assign(key, answer->centres);
            ++m_answers;
            m_failuresInRow = 0;
        } else {
            m_own.insert(key);
        }
        helperDone();
    }
}

void LayoutService::giveUpHelper()
{
    if (!m_sent)
        return;
    ++m_failures;
    ++m_failuresInRow;
    m_own.insert(m_queue.front().first);
    m_sent = false; // before the process ends, which reports again
    if (m_helper.state() != QProcess::NotRunning) {
        m_helper.kill();
        m_helper.waitForFinished(200);
    }
    if (m_failuresInRow >= kMostFailures)
        m_queue.resize(1);
    helperDone();
}

void LayoutService::helperDone()
{
    m_budget.stop();
    m_sent = false;
    m_queue.pop_front();
    // Not from here: this may run inside the process object's own signal.
    QMetaObject::invokeMethod(
        this,
        [this] {
            if (!m_sent && !m_watcher.isRunning())
                sendNext();
        },
        Qt::QueuedConnection);
}

} // namespace planloom

#include "moc_layout_service.cpp"
