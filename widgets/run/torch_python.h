#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

#include "engine/interop/torch/launch/torch_probe.h"
#include "widgets/common/latest_job.h"

#include <memory>

class QLabel;
class QLineEdit;

namespace planloom {

/// What a Python said when it was asked; shared with workers.
using TorchProbeSnapshot = std::shared_ptr<const Result<TorchProbe>>;

/// The Python that runs exported plans: a person chooses it, a worker asks it what it has. Lives on the GUI
/// thread, never waits.
class TorchPython : public QWidget
{
    Q_OBJECT
public:
    static constexpr int kTypingMilliseconds = 500; ///< A path is asked when it rests for so long.

    explicit TorchPython(QWidget *parent = nullptr);

    /// Empty: the one of the virtual environment that is active, else the first on PATH.
    void setPath(const QString &path);
    QString path() const;
    /// Asks it, if nobody has since the path was changed.
    void ask();
    /// What it said; null before it is known.
    const TorchProbeSnapshot &found() const { return m_found; }
    bool isAsking() const { return m_job.isBusy() || m_typing.isActive(); }

Q_SIGNALS:
    void changed(); ///< The path, or what is known of it.
    void chosen(const QString &path); ///< By a person.

private:
    void choose();
    void forget();
    void askAnew();
    void showWords();

    QLineEdit *m_path;
    QLabel *m_words;
    QTimer m_typing;
    TorchProbeSnapshot m_found;
    LatestJob<TorchProbeSnapshot> m_job;
};

/// Why a Python runs no plans, in a sentence, with what would help a person in the window.
std::string whyNoTorch(const Error &error);

/// A Python in a line: "Python 3.11.2, PyTorch 2.8.0, CUDA 12.8, NCCL, 8 GPUs"; what is wrong with it, in a
/// sentence.
QString torchWords(const Result<TorchProbe> &found);

} // namespace planloom
