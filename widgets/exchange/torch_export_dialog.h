#pragma once

#include <QtWidgets/QDialog>

#include "engine/interop/torch/starters.h"
#include "engine/interop/torch/torch_export.h"
#include "widgets/common/latest_job.h"
#include "widgets/design/plan_update.h"

#include <memory>
#include <string>

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace planloom {

/// The plan as a folder of PyTorch code: what stands in it, how it is started, and what it cannot say. What
/// can be said is found out, and written, on workers.
class TorchExportDialog : public QDialog
{
    Q_OBJECT
public:
    explicit TorchExportDialog(QWidget *parent = nullptr);

    /// What is exported from now on; null while there is no plan.
    void setPlan(const PlanUpdateSnapshot &plan);
    /// The folder that is offered among the user's documents, until a person says another one.
    void suggestFolder(const QString &name);
    void write();
    bool isBusy() const { return m_looking.isBusy() || m_writing.isBusy(); }

Q_SIGNALS:
    void written(const QString &sentence); ///< What was written, and where.

private:
    /// What is known of a plan before it is written.
    struct Look {
        Result<void> outcome{};
        std::int32_t processes = 0;
        std::int32_t programs = 0;
        bool hasWeights = false; ///< All weights have values.
        std::string noWeights{}; ///< Else a weight that has none.
        QString precision{};
    };
    struct Written {
        Result<void> outcome{};
        QString folder{};
        std::int32_t processes = 0;
        std::int32_t programs = 0;
    };

    static Look lookAt(const ExecutionPlan &plan);
    void build();
    void showLook(const Look &look);
    void showWritten(const Written &written);
    void showCommand();
    void showButtons();
    void chooseFolder();

    std::shared_ptr<const ExecutionPlan> m_plan;
    std::int32_t m_perNode = 1;
    Look m_look{};
    QLineEdit *m_folder;
    QComboBox *m_weights;
    QSpinBox *m_seed;
    QComboBox *m_data;
    QLabel *m_precision;
    QComboBox *m_starter;
    QPlainTextEdit *m_command;
    QLabel *m_words;
    QPushButton *m_write;
    LatestJob<Look> m_looking;
    LatestJob<Written> m_writing;
};

} // namespace planloom
