#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QDialog>

#include "engine/interop/configs/imported_design.h"
#include "widgets/common/latest_job.h"

#include <memory>
#include <optional>
#include <string>

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;
class QTreeWidget;

namespace planloom {

/// A launch script or config of a training framework, pasted or from a file, and beside it the design that it
/// makes: each row with the key that it follows from, and what was not understood. Read and planned on a
/// worker after every change of the text; nothing of it is run.
class ConfigImportDialog : public QDialog
{
    Q_OBJECT
public:
    /// @param text  that it begins with; of a file called `name`, or pasted where that is empty
    explicit ConfigImportDialog(const QString &text, const QString &name, QWidget *parent = nullptr);

    /// Whether rows can be taken into a design that is open.
    void setCanTakeRows(bool can);
    bool isReading() const { return m_pause.isActive() || m_job.isBusy(); }

Q_SIGNALS:
    /// A new design was asked for. @param rows  lines of a table
    void openAsked(
        const std::string &model, const std::string &cluster, int devices, const std::string &rows);
    void rowsAsked(const std::string &rows);

private:
    /// What came of a text.
    struct Reading {
        std::optional<ImportedConfig> config{};
        std::optional<ImportedDesign> design{};
        std::optional<Error> problem{}; ///< Why it is no config, or makes no design.
        double stepSeconds = 0; ///< 0 where it could not be planned.
        double fullness = 0; ///< As `fullnessOf`.
    };

    static Reading readingOf(
        const std::string &text, const ConfigOptions &options, const std::stop_token &stop);
    void buildChoices(class QGridLayout *grid);
    void chooseFile();
    void ask();
    void present(const Reading &reading);
    void listRows(const Reading &reading);
    void listRemarks(const ImportedConfig &config);
    void listKeys(const std::vector<KeyRemark> &remarks, const QString &title, bool isExpanded);
    void showLine(int line);

    QString m_name; ///< Of the file; its ending says the syntax.
    QPlainTextEdit *m_text = nullptr;
    QComboBox *m_format = nullptr;
    QComboBox *m_cluster = nullptr;
    QSpinBox *m_devices = nullptr;
    QLabel *m_words = nullptr;
    QTreeWidget *m_found = nullptr;
    QPushButton *m_open = nullptr;
    QPushButton *m_take = nullptr;
    QTimer m_pause; ///< While something is typed.
    Reading m_reading; ///< What is shown.
    bool m_canTakeRows = false;
    LatestJob<Reading> m_job;
};

} // namespace planloom
