#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QThreadPool>
#include <QtCore/QTimer>

#include "sessions/session_file.h"
#include "widgets/design/engine_service.h"

#include <map>
#include <memory>
#include <string>

namespace planloom {

/// What a window works on: model, cluster, rows and the plan that follows from them, and the session file they are
/// kept in. Views read here and write here; every change asks the engine for a new plan.
class Workspace : public QObject
{
    Q_OBJECT
public:
    explicit Workspace(QObject *parent = nullptr);
    ~Workspace() override;

    /// Opens a model; rows are kept only if `keepRows`.
    void openModel(const ModelSource &source, bool keepRows = false);
    /// Opens a session file. Reading is quick and done here; importing its model is the engine's work.
    void openSession(const QString &path);
    /// Opens an .onnx file, a zoo name or a session, whichever it is.
    void openAny(const QString &pathOrSpec);
    /// Opens a model with a cluster and rows: what samples are made of. `gallery` takes the place of `rows`.
    void openWith(const ModelSource &source, const std::string &cluster, std::int32_t devices,
        const std::string &gallery, const std::string &rows = {});

    void setTableText(const std::string &text);
    void setCluster(const std::string &name);
    void setDeviceCount(std::int32_t count);
    /// Replaces the rows by those of a gallery plan.
    void applyGallery(const std::string &spec);
    void replan();
    void stopPlanning();

    /// Writes the session in a worker; `saved` or `problem` follows.
    void save(const QString &path);

    const ModelSnapshot &model() const { return m_model; }
    const std::string &tableText() const { return m_tableText; }
    const std::string &cluster() const { return m_cluster; }
    std::int32_t deviceCount() const { return m_deviceCount; }
    /// The last answer, whatever it says; null before the first.
    const PlanUpdateSnapshot &latest() const { return m_latest; }
    /// The last answer with a timeline; null before the first.
    const PlanUpdateSnapshot &lastGood() const { return m_lastGood; }
    /// The plan shown is not that of the rows as they are.
    bool isStale() const;
    bool isOpening() const { return m_engine.isOpening(); }
    bool isPlanning() const { return m_engine.isPlanning(); }
    bool isModified() const { return m_modified; }
    const QString &path() const { return m_path; } ///< Of the session; empty if there is none yet.
    QString title() const; ///< "gpt2_small_full", or the session's name.

    /// View state, kept in the session.
    std::map<std::string, std::string> &view() { return m_view; }

Q_SIGNALS:
    void modelChanged();
    void tableTextChanged(); ///< Not by `setTableText`: by a session or a gallery plan.
    void clusterChanged();
    void planChanged(); ///< `latest` changed.
    void stateChanged(); ///< Opening, planning, modified or the path changed.
    void problem(planloom::Error error);
    void saved(QString path);

private:
    using SaveOutcome = std::shared_ptr<const Result<void>>;

    void onModelOpened(const ModelSnapshot &model);
    void onPlanUpdated(const PlanUpdateSnapshot &update);
    void request(std::string gallery);
    void setModified(bool modified);
    void takeSaved();
    SessionData snapshot() const;

    EngineService m_engine;
    QThreadPool m_savePool;
    QFutureWatcher<SaveOutcome> m_saveWatcher;
    QTimer m_editTimer; ///< Gathers keystrokes.
    ModelSnapshot m_model;
    std::string m_tableText;
    std::string m_cluster = "dgx-a100";
    std::int32_t m_deviceCount = 4;
    std::string m_pendingGallery; ///< To apply once the model is open.
    PlanUpdateSnapshot m_latest;
    PlanUpdateSnapshot m_lastGood;
    std::uint64_t m_revision = 0; ///< Of the newest request.
    bool m_modified = false;
    std::uint64_t m_edits = 0;
    std::uint64_t m_editsSaving = 0; ///< m_edits when the save began.
    QString m_path;
    QString m_pathSaving;
    std::map<std::string, std::string> m_view;
};

} // namespace planloom
