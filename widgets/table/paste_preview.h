#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QFrame>

#include "widgets/design/plan_update.h"
#include "widgets/table/row_clipboard.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

class QAction;
class QLabel;
class QListWidget;
class QToolButton;

namespace planloom {

/// What the lines of a paste would act on.
struct PasteReach {
    /// By line: operators its row selects; kNoRow, kWholePlan.
    std::vector<std::int64_t> operators{};
    std::int64_t bound = 0; ///< Rows that select operators, or are about the whole plan.
    std::int64_t unbound = 0; ///< Rows that select none.
    std::int64_t unreadable = 0; ///< Lines that are no rows.
    std::int64_t reached = 0; ///< Forward operators that any row selects.
    static constexpr std::int64_t kRemark = -3;
    static constexpr std::int64_t kWholePlan = -2;
    static constexpr std::int64_t kNoRow = -1;
};

/// Binds the lines of a paste to a model. O(selectors x operators). Thread-safe; stops early if asked to.
PasteReach reachOf(
    const OpenedModel &model, const std::vector<std::string> &lines, std::stop_token stop = {});

/// Rows about to be pasted: what each will bind, before anything is written. Enter or *Paste* writes them,
/// Escape or *Cancel* leaves the table as it is.
class PastePreview : public QFrame
{
    Q_OBJECT
public:
    explicit PastePreview(QWidget *parent = nullptr);
    ~PastePreview() override;

    /// Shows what is to be pasted and takes the focus; what it binds is found on a worker.
    void show(const PastedRows &pasted, const ModelSnapshot &model);
    bool isOpen() const { return !isHidden(); }
    const PastedRows &pasted() const { return m_pasted; }
    /// "3 rows, 2 of them bind 24 operators, 1 binds none".
    QString summary() const;
    QListWidget *list() const { return m_list; }
    QToolButton *applyButton() const { return m_apply; }
    QToolButton *cancelButton() const { return m_cancel; }

Q_SIGNALS:
    void accepted();
    void rejected();

protected:
    void keyPressEvent(QKeyEvent *event) override;

private:
    void take();
    void leave(bool apply);

    PastedRows m_pasted;
    std::stop_source m_stop;
    QFutureWatcher<std::shared_ptr<const PasteReach>> m_watcher{this};
    QLabel *m_summary;
    QListWidget *m_list;
    QToolButton *m_apply;
    QToolButton *m_cancel;
};

} // namespace planloom
