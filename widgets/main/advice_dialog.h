#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QPromise>
#include <QtWidgets/QDialog>

#include "engine/design/explain/free_decisions.h"
#include "engine/design/explain/suggestions.h"
#include "widgets/design/plan_update.h"

#include <optional>
#include <stop_token>
#include <vector>

class QLabel;
class QPushButton;
class QTabWidget;
class QTableWidget;

namespace planloom {

/// What no row decides and what was chosen there, to be kept as rows; and rows that would help, each with
/// what it would make of the plan, to be taken. What takes time is found on a worker; the newest plan wins.
class AdviceDialog : public QDialog
{
    Q_OBJECT
public:
    enum Page { FreePage, SuggestionPage };
    explicit AdviceDialog(QWidget *parent = nullptr);
    ~AdviceDialog() override;

    /// @param update  timed, with its scene; @param request  as it was asked for
    void setPlan(PlanUpdateSnapshot update, PlanRequest request);
    void showPage(Page page);
    bool isLooking() const { return m_watcher.isRunning(); }

Q_SIGNALS:
    /// A person takes an edit of the table of the plan shown.
    void taken(const QString &words, const planloom::TableEdit &edit, const planloom::TableDocument &table);

private:
    struct Advice {
        std::vector<FreeDecision> free{};
        StepLimits limits{};
        std::vector<HelpfulRow> helpful{};
        std::vector<ShrinkingRow> shrinking{};
        bool whole = false; ///< All rows that may help were tried.
    };
    using AdviceSnapshot = std::shared_ptr<const Advice>;

    /// First what is known at once, then all of it.
    static void advise(QPromise<AdviceSnapshot> &promise, const PlanUpdateSnapshot &update,
        const PlanRequest &request, const std::stop_token &stop);
    QWidget *newFreePage();
    QWidget *newSuggestionPage();
    void present(const AdviceSnapshot &advice);
    void fillFree();
    void fillSuggestions();
    void keep(bool all);
    void take();
    void enable();

    PlanUpdateSnapshot m_update;
    PlanRequest m_request;
    AdviceSnapshot m_advice;
    std::stop_source m_stop;
    QFutureWatcher<AdviceSnapshot> m_watcher{this};
    QTabWidget *m_pages = nullptr;
    QLabel *m_freeWords = nullptr;
    QTableWidget *m_free = nullptr;
    QPushButton *m_keepSelected = nullptr;
    QPushButton *m_keepAll = nullptr;
    QLabel *m_limits = nullptr;
    QTableWidget *m_rows = nullptr; ///< Helpful ones, then those that shrink.
    QPushButton *m_take = nullptr;
};

} // namespace planloom
