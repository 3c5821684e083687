#include "widgets/run/torch_python.h"

#include <QtCore/QFileInfo>
#include <QtCore/QSignalBlocker>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "widgets/common/qt_text.h"
#include "widgets/common/themed_icon.h"

#include <utility>

namespace planloom {

namespace {

constexpr double kMostProbeSeconds = 120; ///< A network disk, read for the first time, takes its time.

} // namespace

std::string whyNoTorch(const Error &error)
{
    return (error.where.empty() ? std::string{} : error.where + ": ") + error.message
        + ". Choose a Python that has PyTorch 2.6 or newer.";
}

QString torchWords(const Result<TorchProbe> &found)
{
    if (!found)
        return toQString(whyNoTorch(found.error()));
    // Any number of processes: one says what is wrong for all.
    if (const auto place = torchPlaceOf(*found, 1); !place)
        return toQString(whyNoTorch(place.error()));
    QStringList words{TorchPython::tr("Python %1").arg(toQString(found->pythonVersion)),
        TorchPython::tr("PyTorch %1").arg(toQString(found->torch))};
    if (!found->cuda.empty())
        words << TorchPython::tr("CUDA %1").arg(toQString(found->cuda));
    if (found->nccl)
        words << QStringLiteral("NCCL");
    words << (found->gpus > 0 ? toQString(counted(found->gpus, "GPU"))
                              : TorchPython::tr("on CPUs, by gloo: %1").arg(toQString(found->whyNoGpus)));
    return words.join(QStringLiteral(", "));
}

TorchPython::TorchPython(QWidget *parent)
    : QWidget(parent)
    , m_path(new QLineEdit(this))
    , m_words(new QLabel(this))
    , m_job([this](const TorchProbeSnapshot &found) {
        m_found = found;
        showWords();
        Q_EMIT changed();
    })
{
    m_path->setObjectName(QStringLiteral("torch.python"));
    m_path->setAccessibleName(tr("Python with PyTorch"));
    m_path->setPlaceholderText(toQString(pythonOnPath()));
    m_path->setToolTip(tr("The interpreter of an environment that has PyTorch 2.6 or newer"));
    m_words->setObjectName(QStringLiteral("torch.words"));
    m_words->setWordWrap(true);
    m_words->setTextFormat(Qt::PlainText);
    auto *browse = new QToolButton(this);
    browse->setText(QStringLiteral("…"));
    browse->setAccessibleName(tr("Choose the Python"));
    auto *again = new QToolButton(this);
    again->setObjectName(QStringLiteral("torch.askAgain"));
    again->setIcon(themedIcon(QLatin1String("redo")));
    again->setAccessibleName(tr("Ask it again"));
    again->setToolTip(tr("Ask it again what it has"));
    auto *line = new QHBoxLayout;
    line->addWidget(m_path, 1);
    line->addWidget(browse);
    line->addWidget(again);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(line);
    layout->addWidget(m_words);
    setFocusProxy(m_path);
    m_typing.setSingleShot(true);
    m_typing.setInterval(kTypingMilliseconds);
    connect(&m_typing, &QTimer::timeout, this, &TorchPython::askAnew);
    connect(m_path, &QLineEdit::textEdited, this, [this] {
        forget();
        m_typing.start();
        Q_EMIT chosen(m_path->text().trimmed());
    });
    connect(browse, &QToolButton::clicked, this, &TorchPython::choose);
    connect(again, &QToolButton::clicked, this, &TorchPython::askAnew);
}

void TorchPython::setPath(const QString &path)
{
    if (path == m_path->text())
        return;
    m_path->setText(path);
    forget();
}

QString TorchPython::path() const
{
    const QString typed = m_path->text().trimmed();
    return typed.isEmpty() ? m_path->placeholderText() : typed;
}

void TorchPython::ask()
{
    if (!m_found && !isAsking())
        askAnew();
}

void TorchPython::choose()
{
    auto *dialog = new QFileDialog(this, tr("Choose a Python That Has PyTorch"), QFileInfo(path()).path());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setOption(QFileDialog::DontResolveSymlinks); // an environment's Python is a link to another one
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &chosenPath) {
        setPath(chosenPath);
        Q_EMIT chosen(chosenPath);
        askAnew();
    });
    dialog->open();
}

void TorchPython::forget()
{
    m_job.cancel();
    m_found.reset();
    m_words->clear();
    Q_EMIT changed();
}

void TorchPython::askAnew()
{
    m_typing.stop();
    m_found.reset();
    const std::string python = path().toStdString();
    if (python.empty()) {
        m_found = std::make_shared<const Result<TorchProbe>>(Error{ErrorCode::NotFound,
            "there is no python3 on PATH", "choose a Python that has PyTorch", "torch.python"});
    } else {
        m_job.ask([python](const std::stop_token &stop) -> TorchProbeSnapshot {
            return std::make_shared<const Result<TorchProbe>>(probeTorch(python, kMostProbeSeconds, stop));
        });
    }
    showWords();
    Q_EMIT changed();
}

void TorchPython::showWords()
{
    if (m_job.isBusy())
        m_words->setText(tr("It is asked what it has…"));
    else
        m_words->setText(m_found ? torchWords(*m_found) : QString());
}

} // namespace planloom

#include "moc_torch_python.cpp"
