#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QProcess>
#include <QtCore/QTimer>

#include "widgets/dag/dag_scene.h"
#include "widgets/dag/layout_protocol.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stop_token>

namespace planloom {

/// An outline, what of it is in sight, and where: all that the view needs to paint.
struct DagPicture {
    std::shared_ptr<const DagOutline> outline{};
    DagState state{};
    VisibleGraph visible{};
    DagScene scene{};
};
using DagPictureSnapshot = std::shared_ptr<const DagPicture>;

/// Makes a picture at once with the layered layout alone; for export, tests and benchmarks.
DagPictureSnapshot makePicture(std::shared_ptr<const DagOutline> outline, DagState state,
    const TextMeasure &measure, LayoutCache &cache, DagFlow flow = DagFlow::Down);

/// Lays out what is in sight, never on the GUI thread; the newest request wins.
///
/// Frames of up to 400 boxes are laid out by Graphviz in a helper process (`planloom-layout`) that is kept
/// warm, larger ones by `layeredLayout` in a worker thread. A helper that takes longer than its budget is
/// killed, one that crashes or is missing is done without; the layered layout takes its place for what it was
/// asked. Layouts are kept by structure.
class LayoutService : public QObject
{
    Q_OBJECT
public:
    static constexpr std::size_t kMostHelperNodes = 400;
    static constexpr std::size_t kMostHelperEdges = 2000;
    static constexpr int kBudgetMilliseconds = 250; ///< Of one layout by the helper.

    explicit LayoutService(QObject *parent = nullptr);
    ~LayoutService() override;

    /// Program to start as helper; empty for none. Takes effect with the next request.
    void setHelper(const QString &program);
    void setMeasure(TextMeasure measure);
    void request(std::shared_ptr<const DagOutline> outline, DagState state, DagFlow flow = DagFlow::Down);
    bool isBusy() const { return m_busy; }
    /// Layouts the helper has delivered, and times it was given up on. For tests and the log.
    int helperAnswers() const { return m_answers; }
    int helperFailures() const { return m_failures; }

Q_SIGNALS:
    void ready(planloom::DagPictureSnapshot picture);

private:
    struct Job; // what a worker returns

    void startJob();
    void takeJob();
    void askHelper(std::map<LayoutKey, LayeredGraph> missing);
    void sendNext();
    void readHelper();
    void giveUpHelper();
    void helperDone();

    std::shared_ptr<LayoutCache> m_cache;
    TextMeasure m_measure;
    std::shared_ptr<const DagOutline> m_outline;
    DagState m_state;
    DagFlow m_flow = DagFlow::Down;
    std::stop_source m_stop;
    QFutureWatcher<std::shared_ptr<Job>> m_watcher{this};
    bool m_busy = false;

    QString m_helperProgram;
    QProcess m_helper;
    QTimer m_budget;
    LayoutReader m_reader;
    std::deque<std::pair<LayoutKey, LayeredGraph>> m_queue; ///< Not sent yet; the first is under way.
    std::set<LayoutKey> m_own; ///< What the helper failed on.
    /// What the helper has placed for this request, without edges yet: jobs draw those.
    std::map<LayoutKey, std::vector<LayoutPoint>> m_placed;
    std::int64_t m_nextId = 0;
    bool m_sent = false;
    int m_answers = 0;
    int m_failures = 0;
    int m_failuresInRow = 0;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::DagPictureSnapshot)
