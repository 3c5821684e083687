#include "widgets/exchange/torch_export_dialog.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtCore/QStandardPaths>
#include <QtGui/QClipboard>
#include <QtGui/QFontDatabase>
#include <QtGui/QGuiApplication>
#include <QtGui/QStandardItemModel>
#include <QtWidgets/QCheckBox>
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
#include "engine/interop/torch/modules/modules_export.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr int kCommandLines = 3; ///< As the longest of the commands takes.
constexpr qsizetype kMostUnsaid = 8; ///< Lines that are shown of what PyTorch has no words for.

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
    , m_rows(new QFormLayout)
    , m_form(new QComboBox(this))
    , m_module(new QLineEdit(this))
    , m_leaveOut(new QCheckBox(tr("&Leave out the rows that PyTorch has no words for"), this))
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
    m_form->setObjectName(QStringLiteral("form"));
    m_form->setAccessibleName(tr("Written as"));
    m_form->addItems({tr("the plan's own programs, every instruction in its order"),
        tr("PyTorch's own words, on my module")});
    m_module->setObjectName(QStringLiteral("module"));
    m_module->setAccessibleName(tr("Module"));
    m_module->setPlaceholderText(QStringLiteral("package.module:make_model"));
    m_module->setToolTip(
        tr("A function without arguments that makes the module; its forward returns the loss"));
    m_leaveOut->setObjectName(QStringLiteral("leaveOut"));
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
    connect(m_module, &QLineEdit::textChanged, this, &TorchExportDialog::showCommand);
    connect(m_form, &QComboBox::currentIndexChanged, this, [this] {
        showForm();
        look();
    });
    connect(m_leaveOut, &QCheckBox::toggled, this, &TorchExportDialog::look);
    showForm();
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
    const auto add = [&](const QString &text, std::initializer_list<QWidget *> widgets) {
        auto *label = new QLabel(text, this);
        label->setBuddy(*widgets.begin());
        m_rows->addRow(label, line(widgets));
    };
    add(tr("Written &as"), {m_form});
    add(tr("&Module"), {m_module});
    m_rows->addRow(QString(), m_leaveOut);
    add(tr("&Folder"), {m_folder, browse});
    add(tr("W&eights"), {m_weights, m_seed});
    add(tr("&Data"), {m_data});
    m_rows->addRow(tr("Precision"), m_precision);
    add(tr("Started &by"), {m_starter});
    add(tr("&Command"), {m_command, copy});
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    m_write = buttons->addButton(tr("&Write"), QDialogButtonBox::ActionRole);
    m_write->setObjectName(QStringLiteral("write"));
    m_write->setDefault(true);
    connect(m_write, &QPushButton::clicked, this, &TorchExportDialog::write);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->addLayout(m_rows);
    layout->addWidget(m_words);
    layout->addStretch(1);
    layout->addWidget(buttons);
}

void TorchExportDialog::setPlan(const PlanUpdateSnapshot &plan, const std::optional<PlanRequest> &request)
{
    m_plan = plan && plan->scene ? plan->scene->plan : nullptr;
    m_request = request;
    if (m_plan)
        m_perNode = plan->cluster.links.devicesPerNode;
    look();
}

bool TorchExportDialog::inWords() const
{
    return m_form->currentIndex() == 1;
}

TorchExportDialog::Asked TorchExportDialog::asked() const
{
    return {m_plan, m_request, inWords(), m_leaveOut->isChecked(), m_module->text().trimmed().toStdString()};
}

void TorchExportDialog::look()
{
    if (!m_plan || (inWords() && !m_request)) {
        m_looking.cancel();
        showLook({.outcome = Error{ErrorCode::NotFound, "there is no plan to export yet"}});
        return;
    }
    m_words->setText(tr("Looking whether PyTorch has all that the plan does…"));
    m_write->setEnabled(false);
    m_looking.ask([asked = asked()](const std::stop_token &) {
        return asked.inWords ? lookForWords(asked) : lookAt(asked);
    });
}

/// Of the form that is chosen.
void TorchExportDialog::showForm()
{
    const auto show = [this](QWidget *widget, bool shown) {
        for (int row = 0; row < m_rows->rowCount(); ++row) {
            QLayoutItem *field = m_rows->itemAt(row, QFormLayout::FieldRole);
            if (field->widget() == widget || (field->layout() && field->layout()->indexOf(widget) >= 0))
                m_rows->setRowVisible(row, shown);
        }
    };
    for (QWidget *widget : std::initializer_list<QWidget *>{m_module, m_leaveOut})
        show(widget, inWords());
    for (QWidget *widget : std::initializer_list<QWidget *>{m_weights, m_data, m_starter})
        show(widget, !inWords());
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
TorchExportDialog::Look TorchExportDialog::lookAt(const Asked &asked)
{
    const ExecutionPlan &plan = *asked.plan;
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

/// On a worker.
TorchExportDialog::Look TorchExportDialog::lookForWords(const Asked &asked)
{
    Look look{.hasWeights = true, .precision = precisionWords(*asked.plan)};
    const auto made = modulesExport(*asked.request, {.module = asked.module, .leaveOut = asked.leaveOut});
    if (!made) {
        look.outcome = made.error();
        return look;
    }
    look.processes = made->folder.world;
    for (const UnsaidRow &row : made->said.unsaid)
        look.unsaid << toQString(rowWords(row.row.index) + ": " + row.text);
    for (const std::string &reason : made->said.notes)
        look.unsaid << toQString(reason);
    return look;
}

/// What of the plan stands in the folder.
QString TorchExportDialog::wordsOf(const Look &look) const
{
    if (!look.outcome)
        return QStringLiteral("✖ ") + toQString(describe(look.outcome.error()));
    const QString processes =
        toQString(std::to_string(look.processes) + (look.processes == 1 ? " process" : " processes"));
    if (!inWords())
        return tr("%1, %2.").arg(processes, toQString(counted(look.programs, "distinct program")));
    if (look.unsaid.isEmpty())
        return tr("%1; PyTorch has words for all rows.").arg(processes);
    QStringList lines = look.unsaid.mid(0, kMostUnsaid);
    if (lines.size() < look.unsaid.size())
        lines << tr("and %1 more").arg(look.unsaid.size() - lines.size());
    return (look.processes > 0 ? tr("%1; left out, as PyTorch has no words for it:").arg(processes)
                               : tr("✖ PyTorch has no words for this; leave it out, or have the plan's own "
                                    "programs written:"))
        + QLatin1Char('\n') + lines.join(QLatin1Char('\n'));
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
    m_words->setText(wordsOf(look));
    showCommand();
    showButtons();
}

void TorchExportDialog::showCommand()
{
    const auto weights = static_cast<TorchWeights>(m_weights->currentIndex());
    m_seed->setVisible(weights == TorchWeights::Drawn && !inWords());
    m_command->setPlainText(m_look.processes == 0
            ? QString()
            : toQString(commandOf(
                {.starter = inWords() ? TorchStarter::Torchrun
                                      : kTorchStarters[static_cast<std::size_t>(m_starter->currentIndex())],
                    .processes = m_look.processes,
                    .perNode = m_perNode,
                    .weights = weights,
                    .data = static_cast<TorchData>(m_data->currentIndex()),
                    .seed = m_seed->value(),
                    .module = inWords() ? std::optional(m_module->text().trimmed().toStdString())
                                        : std::nullopt})));
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
    m_writing.ask([asked = asked(), plan = m_plan, folder, weights](const std::stop_token &) {
        Written written{.folder = folder};
        if (asked.inWords) {
            const auto made =
                modulesExport(*asked.request, {.module = asked.module, .leaveOut = asked.leaveOut});
            written.outcome = !made  ? Result<void>(made.error())
                : !made->isWritten() ? Result<void>(unsaidError(*made))
                                     : writeTorchFolder(made->folder, folder.toStdString());
            written.programs = 1;
            return written;
        }
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
        const QString sentence =
            tr("Wrote %1: %2 and check.py, which holds them against the model.")
                .arg(QDir::toNativeSeparators(written.folder),
                    inWords() ? tr("scripts") : toQString(counted(written.programs, "distinct program")));
        m_words->setText(sentence + QLatin1Char(' ') + tr("The command starts them there."));
        Q_EMIT this->written(sentence);
    } else {
        m_words->setText(QStringLiteral("✖ ") + toQString(describe(written.outcome.error())));
    }
    showButtons();
}

} // namespace planloom

#include "moc_torch_export_dialog.cpp"
