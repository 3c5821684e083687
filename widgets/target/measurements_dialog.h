#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QTimer>
#include <QtWidgets/QDialog>

#include "engine/hardware/measured_cluster.h"

#include <memory>
#include <string>
#include <vector>

class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QTableWidget;

namespace planloom {

/// A cluster of times that were measured: files are chosen, the fit and its errors shown, and once a person
/// takes it, it is written to a file and is the design's. Files are read and figures fitted on a worker; the
/// newest choice wins.
class MeasurementsDialog : public QDialog
{
    Q_OBJECT
public:
    /// @param profile  what the design is planned for, perhaps with a size: of a file with times of several
    /// devices, those of it are shown first
    explicit MeasurementsDialog(const std::string &profile, QWidget *parent = nullptr);

    bool isFitting() const { return m_isAsked || m_pause.isActive(); }

Q_SIGNALS:
    /// The cluster was written. @param name  of the file, without its ending
    void saved(const std::string &name, const std::string &json);

private:
    /// What came of files.
    struct Fit {
        Measurements asked{};
        std::vector<std::string> devices{}; ///< Of the file of kernels.
        Result<MeasuredCluster> cluster;
        std::string path{}; ///< Where it could be written, where nothing is yet.
    };
    using FitSnapshot = std::shared_ptr<const Fit>;
    struct Saving {
        std::string path{};
        std::string json{};
        bool isThere = false; ///< There is a file already, and nothing was written.
        Result<void> outcome{};
    };

    static Fit fitOf(Measurements asked, const std::string &profile);
    static Saving written(const std::string &path, std::string json, bool replace);
    QLineEdit *addFile(QGridLayout *rows, const QString &label, const char *name, const QString &tip);
    void addChoices(QGridLayout *rows);
    void addSaving(QGridLayout *rows);
    QTableWidget *newErrorTable();
    Measurements wanted() const;
    void ask();
    void present();
    void showCluster(const MeasuredCluster &cluster);
    void showDevices(const Fit &fit);
    void say(const QString &words, bool isProblem);
    void browse(QLineEdit *line, bool save);
    void save();
    void takeSaved();

    std::string m_profile; ///< Without a size.
    QLineEdit *m_kernels = nullptr;
    QLineEdit *m_collectives = nullptr;
    QComboBox *m_device = nullptr;
    QComboBox *m_base = nullptr;
    QLabel *m_words = nullptr;
    QTableWidget *m_errors = nullptr;
    QLineEdit *m_path = nullptr;
    QPushButton *m_save = nullptr;
    QTimer m_pause; ///< While something is typed.
    FitSnapshot m_fit; ///< What is shown.
    bool m_isAsked = false; ///< A worker is at it, or what came of it has not been shown.
    std::string m_replaced; ///< The path of a file that the next click replaces.
    QFutureWatcher<FitSnapshot> m_watcher{this};
    QFutureWatcher<std::shared_ptr<const Saving>> m_saving{this};
};

} // namespace planloom
