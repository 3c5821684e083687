#include "widgets/exchange/torch_export_dialog.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtCore/QStandardPaths>
#include <QtGui/QClipboard>
#include <QtGui/QFontDatabase>
#include <QtGui/QGuiApplication>
#include <QtGui/QStandardItemModel>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "engine/design/models/reference.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr int kCommandLines = 3; ///< As the longest of the commands takes.

/// Number formats that operators compute in, each once.
QString precisionWords(const ExecutionPlan &plan)
{
    std::set<std::string> formats;
    for (const Precision &precision : plan.precisions)
        formats.insert(shortNameOf(precision.compute));
    if (formats.empty())
        formats.insert(shortNameOf(DataType::Float32));
    QStringList words;
    for (const std::string &format : formats)
        words << toQString(format);
    return TorchExportDialog::tr("as the plan's rows say: %1").arg(words.join(QStringLiteral(", ")));
}

QLabel *newWords(const char *name, QWidget *parent)
{
    auto *label = new QLabel(parent);
    label->setObjectName(QLatin1String(name));
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    return label;
}

} // namespace

TorchExportDialog::TorchExportDialog(QWidget *parent)
    : QDialog(parent)
    , m_folder(new QLineEdit(this))
    , m_weights(new QComboBox(this))
    , m_seed(new QSpinBox(this))
    , m_data(new QComboBox(this))
    , m_precision(newWords("precision", this))
    , m_starter(new QComboBox(this))
    , m_command(new QPlainTextEdit(this))
    , m_words(newWords("words", this))
    , m_looking([this](const Look &look) { showLook(look); })
    , m_writing([this](const Written &written) { showWritten(written); })
{
    setWindowTitle(tr("Export to PyTorch"));
    m_folder->setObjectName(QStringLiteral("folder"));
    m_folder->setAccessibleName(tr("Folder"));
    m_weights->setObjectName(QStringLiteral("weights"));
    m_weights->setAccessibleName(tr("Weights"));
    m_weights->addItems({tr("from the model's file"), tr("drawn, from seed"), tr("of a file that I name")});
    m_seed->setObjectName(QStringLiteral("seed"));
    m_seed->setAccessibleName(tr("Seed"));
    m_seed->setRange(0, std::numeric_limits<int>::max());
    m_seed->setValue(7);
    m_data->setObjectName(QStringLiteral("data"));
    m_data->setAccessibleName(tr("Data"));
    m_data->addItems({tr("my Dataset, in dataset.py"), tr("drawn anew in every step"),
        tr("one drawn batch in all steps")});
    m_data->setCurrentIndex(static_cast<int>(TorchData::Same));
    m_starter->setObjectName(QStringLiteral("starter"));
    m_starter->setAccessibleName(tr("Started by"));
    for (const TorchStarter starter : kTorchStarters)
        m_starter->addItem(toQString(nameOf(starter)));
    m_command->setObjectName(QStringLiteral("command"));
    m_command->setAccessibleName(tr("Command that starts it, in the folder"));
    m_command->setReadOnly(true);
    m_command->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_command->setTabChangesFocus(true);
    m_command->setFixedHeight(m_command->fontMetrics().lineSpacing() * kCommandLines + 12);
    build();
    connect(m_folder, &QLineEdit::textChanged, this, &TorchExportDialog::showButtons);
    for (QComboBox *choice : {m_weights, m_data, m_starter})
        connect(choice, &QComboBox::currentIndexChanged, this, &TorchExportDialog::showCommand);
    connect(m_seed, &QSpinBox::valueChanged, this, &TorchExportDialog::showCommand);
    showLook({.outcome = Error{ErrorCode::NotFound, "there is no plan to export yet"}});
    resize(fontMetrics().averageCharWidth() * 90, sizeHint().height());
}

void TorchExportDialog::build()
{
    const auto line = [](std::initializer_list<QWidget *> widgets) {
        auto *row = new QHBoxLayout;
        for (QWidget *widget : widgets)
            row->addWidget(widget, widget == *widgets.begin() ? 1 : 0);
        return row;
    };
    auto *browse = new QToolButton(this);
    browse->setText(QStringLiteral("…"));
    browse->setAccessibleName(tr("Choose the folder"));
    connect(browse, &QToolButton::clicked, this, &TorchExportDialog::chooseFolder);
    auto *copy = new QToolButton(this);
    copy->setObjectName(QStringLiteral("copy"));
    copy->setText(tr("Cop&y"));
    connect(copy, &QToolButton::clicked, this,
        [this] { QGuiApplication::clipboard()->setText(m_command->toPlainText()); });
    auto *form = new QFormLayout;
    const auto add = [&](const QString &text, std::initializer_list<QWidget *> widgets) {
        auto *label = new QLabel(text, this);
        label->setBuddy(*widgets.begin());
        form->addRow(label, line(widgets));
    };
    add(tr("&Folder"), {m_folder, browse});
    add(tr("W&eights"), {m_weights, m_seed});
    add(tr("&Data"), {m_data});
    form->addRow(tr("Precision"), m_precision);
    add(tr("Started &by"), {m_starter});
    add(tr("&Command"), {m_command, copy});
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    m_write = buttons->addButton(tr("&Write"), QDialogButtonBox::ActionRole);
    m_write->setObjectName(QStringLiteral("write"));
    m_write->setDefault(true);
    connect(m_write, &QPushButton::clicked, this, &TorchExportDialog::write);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->addLayout(form);
    layout->addWidget(m_words);
    layout->addStretch(1);
    layout->addWidget(buttons);
}

void TorchExportDialog::setPlan(const PlanUpdateSnapshot &plan)
{
    m_plan = plan && plan->scene ? plan->scene->plan : nullptr;
    if (!m_plan) {
        m_looking.cancel();
        showLook({.outcome = Error{ErrorCode::NotFound, "there is no plan to export yet"}});
        return;
    }
    m_perNode = plan->cluster.links.devicesPerNode;
    m_words->setText(tr("Looking whether PyTorch has all that the plan does…"));
    m_write->setEnabled(false);
    m_looking.ask([plan = m_plan](const std::stop_token &) { return lookAt(*plan); });
}

void TorchExportDialog::suggestFolder(const QString &name)
{
    if (m_folder->isModified())
        return;
    const QString documents = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    QString last = name;
    last.replace(QLatin1Char('/'), QLatin1Char('-'));
    m_folder->setText(QDir(QFileInfo::exists(documents) ? documents : QDir::homePath()).filePath(last));
}

/// On a worker.
TorchExportDialog::Look TorchExportDialog::lookAt(const ExecutionPlan &plan)
{
    Look look{.hasWeights = true, .precision = precisionWords(plan)};
    for (const Tensor &tensor : plan.graph->tensors)
        if (tensor.role == TensorRole::Weight && !tensor.data
            && !(tensor.external && tensor.external->present) && look.hasWeights) {
            look.hasWeights = false;
            look.noWeights = tensor.name;
        }
    const auto made = exportTorch(plan);
    if (!made) {
        look.outcome = made.error();
        return look;
    }
    look.processes = made->world;
    look.programs = made->programs;
    return look;
}

void TorchExportDialog::showLook(const Look &look)
{
    m_look = look;
    m_precision->setText(look.precision);
    const auto ofModel = static_cast<int>(TorchWeights::OfModel);
    if (auto *items = qobject_cast<QStandardItemModel *>(m_weights->model())) {
        items->item(ofModel)->setEnabled(look.hasWeights);
        items->item(ofModel)->setToolTip(
            look.hasWeights ? QString() : tr("%1 has no values there").arg(toQString(look.noWeights)));
    }
    if (!look.hasWeights && m_weights->currentIndex() == ofModel)
        m_weights->setCurrentIndex(static_cast<int>(TorchWeights::Drawn));
    m_words->setText(look.outcome
            ? tr("%1, %2.").arg(
                toQString(std::to_string(look.processes) + (look.processes == 1 ? " process" : " processes")),
                toQString(counted(look.programs, "distinct program")))
            : QStringLiteral("✖ ") + toQString(describe(look.outcome.error())));
    showCommand();
    showButtons();
}

void TorchExportDialog::showCommand()
{
    const auto weights = static_cast<TorchWeights>(m_weights->currentIndex());
    m_seed->setVisible(weights == TorchWeights::Drawn);
    m_command->setPlainText(m_look.processes == 0
            ? QString()
            : toQString(
                commandOf({.starter = kTorchStarters[static_cast<std::size_t>(m_starter->currentIndex())],
                    .processes = m_look.processes,
                    .perNode = m_perNode,
                    .weights = weights,
                    .data = static_cast<TorchData>(m_data->currentIndex()),
                    .seed = m_seed->value()})));
}

void TorchExportDialog::showButtons()
{
    m_write->setEnabled(m_plan && m_look.outcome && m_look.processes > 0 && !isBusy()
        && !m_folder->text().trimmed().isEmpty());
}

void TorchExportDialog::chooseFolder()
{
    auto *dialog = new QFileDialog(this, tr("Folder to write"), QFileInfo(m_folder->text()).path());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &folder) {
        m_folder->setText(folder);
        m_folder->setModified(true);
    });
    dialog->open();
}

void TorchExportDialog::write()
{
    if (!m_plan || isBusy())
        return;
    const QString folder = QFileInfo(m_folder->text().trimmed()).absoluteFilePath();
    const bool weights = m_weights->currentIndex() == static_cast<int>(TorchWeights::OfModel);
    m_words->setText(tr("Writing…"));
    m_writing.ask([plan = m_plan, folder, weights](const std::stop_token &) {
        Written written{.folder = folder};
        const auto reference = referenceOf(*plan);
        if (!reference) {
            written.outcome = reference.error();
            return written;
        }
        const auto made = exportTorch(*plan, {.weights = weights, .reference = reference->get()});
        if (!made) {
            written.outcome = made.error();
            return written;
        }
        written.processes = made->world;
        written.programs = made->programs;
        written.outcome = writeTorchFolder(*made, folder.toStdString());
        return written;
    });
    showButtons();
}

void TorchExportDialog::showWritten(const Written &written)
{
    if (written.outcome) {
        const QString sentence = tr("Wrote %1: %2 and check.py, which holds them against the model.")
                                     .arg(QDir::toNativeSeparators(written.folder),
                                         toQString(counted(written.programs, "distinct program")));
        m_words->setText(sentence + QLatin1Char(' ') + tr("The command starts them there."));
        Q_EMIT this->written(sentence);
    } else {
        m_words->setText(QStringLiteral("✖ ") + toQString(describe(written.outcome.error())));
    }
    showButtons();
}

} // namespace planloom

#include "moc_torch_export_dialog.cpp"
