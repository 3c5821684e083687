#pragma once

#include <QtWidgets/QDialog>

#include "engine/interop/configs/config_search.h"
#include "engine/interop/configs/write_config.h"
#include "widgets/common/latest_job.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTimer;
class QTreeWidget;

namespace planloom {

/// The plan as a training framework's config, and what that leaves out, row by row with what a step takes
/// without it; and the best plan that the framework says whole. Written, planned and searched on workers.
class ConfigExportDialog : public QDialog
{
    Q_OBJECT
public:
    explicit ConfigExportDialog(QWidget *parent = nullptr);

    /// What is exported from now on; nothing while there is no plan. A search under way is given up.
    void setPlan(const std::optional<PlanRequest> &request);
    /// Chooses a format by its name.
    void setFormat(const std::string &name);
    /// Searches the best plan that the chosen format says whole.
    void findPlan();
    bool isBusy() const { return m_writing.isBusy() || m_search.isBusy(); }

Q_SIGNALS:
    /// The rows of a plan that was found are to be the design's. @param words  what it is
    void rowsAsked(const QString &words, const std::string &rows);
    /// @param suggestion  a name for the file
    void saveAsked(const QString &suggestion, const std::string &text);

private:
    struct Written {
        Result<WrittenConfig> config{Error{}};
        std::string ranks{}; ///< A rankfile, where ranks lie otherwise than devices are numbered.
    };
    struct Found {
        Result<ConfigSearch> plan{Error{}};
        double bestOfAllSeconds = 0; ///< 0 where it is not known.
    };
    /// What a search under way has to tell.
    struct Progress {
        std::atomic<double> stepSeconds{0}; ///< Of the best so far; 0 before the first.
    };

    static Written writtenAs(const ConfigFormat &format, const PlanRequest &request);
    static Found foundFor(const ConfigFormat &format, const PlanRequest &request,
        const std::shared_ptr<Progress> &progress, const std::stop_token &stop);
    const ConfigFormat &format() const;
    void write();
    void showWritten(const Written &written);
    void listUnsaid(const WrittenConfig &config);
    void showFound(const Found &found);
    void showProgress();
    void setSearching(bool searches);

    std::optional<PlanRequest> m_request{};
    QComboBox *m_format = nullptr;
    QPlainTextEdit *m_text = nullptr;
    QTreeWidget *m_unsaid = nullptr;
    QLabel *m_words = nullptr;
    QLabel *m_searchWords = nullptr;
    QPushButton *m_copy = nullptr;
    QPushButton *m_save = nullptr;
    QPushButton *m_saveRanks = nullptr;
    QPushButton *m_find = nullptr;
    QPushButton *m_use = nullptr;
    QTimer *m_tick = nullptr; ///< While a search is under way.
    std::string m_ranks; ///< Text of a rankfile; empty where ranks are devices.
    std::string m_foundRows;
    QString m_foundWords;
    std::shared_ptr<Progress> m_progress;
    LatestJob<Written> m_writing;
    LatestJob<Found> m_search;
};

} // namespace planloom
