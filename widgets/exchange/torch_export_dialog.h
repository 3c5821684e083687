#pragma once

#include <QtWidgets/QDialog>

#include "engine/design/make_plan.h"
#include "engine/interop/torch/starters.h"
#include "engine/interop/torch/torch_export.h"
#include "widgets/common/latest_job.h"
#include "widgets/design/plan_update.h"

#include <memory>
#include <optional>
#include <string>

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace planloom {

/// The plan as a folder of PyTorch code, as its own programs or in PyTorch's own words on the user's module:
/// what stands in it, how it is started, and what it cannot say. What can be said is found out, and written,
/// on workers.
class TorchExportDialog : public QDialog
{
    Q_OBJECT
public:
    explicit TorchExportDialog(QWidget *parent = nullptr);

    /// What is exported from now on; null while there is no plan.
    /// @param request  the rows that it was made from, which PyTorch's own words are read off
    void setPlan(const PlanUpdateSnapshot &plan, const std::optional<PlanRequest> &request);
    /// The folder that is offered among the user's documents, until a person says another one.
    void suggestFolder(const QString &name);
    void write();
    bool isBusy() const { return m_looking.isBusy() || m_writing.isBusy(); }

Q_SIGNALS:
    void written(const QString &sentence); ///< What was written, and where.

private:
    struct Asked {
        std::shared_ptr<const ExecutionPlan> plan{};
        std::optional<PlanRequest> request{};
        bool inWords = false; ///< PyTorch's own, on the user's module.
        bool leaveOut = false; ///< What those can't say.
        std::string module{};
    };
    /// What is known of a plan before it is written.
    struct Look {
        Result<void> outcome{};
        std::int32_t processes = 0;
        std::int32_t programs = 0;
        bool hasWeights = false; ///< All weights have values.
        std::string noWeights{}; ///< Else a weight that has none.
        QString precision{};
        QStringList unsaid{}; ///< Rows that PyTorch has no words for, and why.
    };
    struct Written {
        Result<void> outcome{};
        QString folder{};
        std::int32_t processes = 0;
        std::int32_t programs = 0;
    };

    static Look lookAt(const Asked &asked);
    static Look lookForWords(const Asked &asked);
    bool inWords() const;
    Asked asked() const;
    void look();
    void build();
    void showLook(const Look &look);
    void showForm();
    QString wordsOf(const Look &look) const;
    void showWritten(const Written &written);
    void showCommand();
    void showButtons();
    void chooseFolder();

    std::shared_ptr<const ExecutionPlan> m_plan;
    std::optional<PlanRequest> m_request{};
    std::int32_t m_perNode = 1;
    Look m_look{};
    QFormLayout *m_rows;
    QComboBox *m_form;
    QLineEdit *m_module;
    QCheckBox *m_leaveOut;
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
