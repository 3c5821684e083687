#include "widgets/exchange/config_import_dialog.h"

#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtGui/QFontDatabase>
#include <QtGui/QScreen>
#include <QtGui/QTextBlock>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QGridLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include "engine/design/fullness.h"
#include "engine/hardware/cluster.h"
#include "engine/table/table_text.h"
#include "widgets/common/qt_text.h"
#include "widgets/common/quantity_text.h"

#include <utility>

namespace planloom {

namespace {

constexpr int kTypingMilliseconds = 300;
constexpr int kLineRole = Qt::UserRole;
constexpr int kTextColumn = 0;
constexpr int kKeyColumn = 1;

QTreeWidgetItem *group(QTreeWidget *tree, const QString &title)
{
    auto *item = new QTreeWidgetItem(tree, {title});
    item->setFirstColumnSpanned(true);
    item->setExpanded(true);
    QFont bold = item->font(kTextColumn);
    bold.setBold(true);
    item->setFont(kTextColumn, bold);
    return item;
}

void addEntry(QTreeWidgetItem *parent, const QString &text, const QString &key, std::int32_t line)
{
    auto *item = new QTreeWidgetItem(parent, {text, key});
    item->setData(kTextColumn, kLineRole, line);
    item->setToolTip(kTextColumn, text);
    item->setToolTip(kKeyColumn, key);
}

/// "line:12" as 12; 0 elsewhere.
std::int32_t lineOf(const std::string &where)
{
    return where.starts_with("line:") ? std::atoi(where.c_str() + 5) : 0;
}

} // namespace

ConfigImportDialog::ConfigImportDialog(const QString &text, const QString &name, QWidget *parent)
    : QDialog(parent)
    , m_name(name)
    , m_job([this](const Reading &reading) { present(reading); })
{
    setWindowTitle(tr("Import a Launch Script or Config"));
    auto *layout = new QVBoxLayout(this);
    auto *grid = new QGridLayout;
    layout->addLayout(grid);
    buildChoices(grid);
    auto *sides = new QSplitter(Qt::Horizontal, this);
    m_text = new QPlainTextEdit(text, this);
    m_text->setObjectName(QStringLiteral("config"));
    m_text->setAccessibleName(tr("The launch script or config"));
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setPlaceholderText(
        tr("Paste a launch script of Megatron-LM, overrides of Megatron Bridge or verl, or "
           "a config of NeMo-RL, torchtitan, DeepSpeed, accelerate, nanotron or nnScaler.\n\n"
           "Nothing of it is run."));
    sides->addWidget(m_text);
    m_found = new QTreeWidget(this);
    m_found->setObjectName(QStringLiteral("found"));
    m_found->setAccessibleName(tr("The design that it makes"));
    m_found->setHeaderLabels({tr("Row"), tr("Follows from")});
    m_found->setRootIsDecorated(false);
    m_found->setUniformRowHeights(true);
    m_found->header()->setSectionResizeMode(kTextColumn, QHeaderView::Stretch);
    m_found->header()->setSectionResizeMode(kKeyColumn, QHeaderView::Interactive);
    m_found->header()->setStretchLastSection(false);
    sides->addWidget(m_found);
    layout->addWidget(sides, 1);
    m_words = new QLabel(this);
    m_words->setObjectName(QStringLiteral("words"));
    m_words->setWordWrap(true);
    m_words->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(m_words);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    m_open = buttons->addButton(tr("&Open as New Design"), QDialogButtonBox::ActionRole);
    m_open->setObjectName(QStringLiteral("open"));
    m_take = buttons->addButton(tr("&Take Rows"), QDialogButtonBox::ActionRole);
    m_take->setObjectName(QStringLiteral("take"));
    m_take->setToolTip(tr("Replaces the rows of the design that is open (one undo step)"));
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_open, &QPushButton::clicked, this, [this] {
        const PlanRequest &request = m_reading.design->request;
        Q_EMIT openAsked(request.model->source.source, request.target.cluster, request.target.deviceCount,
            request.table.text());
        accept();
    });
    connect(m_take, &QPushButton::clicked, this, [this] {
        Q_EMIT rowsAsked(m_reading.design->request.table.text());
        accept();
    });
    connect(m_found, &QTreeWidget::currentItemChanged, this, [this](const QTreeWidgetItem *item) {
        if (item)
            showLine(item->data(kTextColumn, kLineRole).toInt());
    });
    m_pause.setSingleShot(true);
    m_pause.setInterval(kTypingMilliseconds);
    connect(&m_pause, &QTimer::timeout, this, &ConfigImportDialog::ask);
    connect(m_text, &QPlainTextEdit::textChanged, &m_pause, qOverload<>(&QTimer::start));
    present({});
    if (!text.isEmpty())
        ask();
    // On a small screen all of it is in sight, its frame too.
    resize(QSize(fontMetrics().averageCharWidth() * 150, fontMetrics().height() * 38)
               .boundedTo(screen()->availableSize() * 9 / 10));
    m_found->setColumnWidth(kKeyColumn, fontMetrics().averageCharWidth() * 34);
}

void ConfigImportDialog::buildChoices(QGridLayout *grid)
{
    auto *file = new QPushButton(tr("Open &File…"), this);
    file->setObjectName(QStringLiteral("file"));
    file->setAutoDefault(false);
    connect(file, &QPushButton::clicked, this, &ConfigImportDialog::chooseFile);
    m_format = new QComboBox(this);
    m_format->setObjectName(QStringLiteral("format"));
    m_format->addItem(tr("the one with most keys that are known"), QString());
    for (const ConfigFormat &format : configFormats())
        m_format->addItem(toQString(format.name), toQString(format.name));
    m_cluster = new QComboBox(this);
    m_cluster->setObjectName(QStringLiteral("cluster"));
    m_cluster->setToolTip(tr("Profile of the devices, which no config names"));
    for (const std::string &name : clusterNames())
        m_cluster->addItem(toQString(name), toQString(name));
    m_cluster->setCurrentIndex(std::max(0, m_cluster->findData(toQString(ConfigOptions{}.cluster))));
    m_devices = new QSpinBox(this);
    m_devices->setObjectName(QStringLiteral("devices"));
    m_devices->setRange(0, 1 << 20);
    m_devices->setSpecialValueText(tr("as the file says"));
    m_devices->setToolTip(tr("Number of devices, where the file does not say"));
    int column = 0;
    const auto add = [&](const QString &label, QWidget *field) {
        auto *words = new QLabel(label, this);
        words->setBuddy(field);
        grid->addWidget(words, 0, column++);
        grid->addWidget(field, 0, column++);
    };
    grid->addWidget(file, 0, column++);
    add(tr("For&mat"), m_format);
    add(tr("C&luster"), m_cluster);
    add(tr("&Devices"), m_devices);
    grid->setColumnStretch(column, 1);
    for (QComboBox *choice : {m_format, m_cluster})
        connect(choice, &QComboBox::activated, &m_pause, [this] { m_pause.start(); });
    connect(m_devices, &QSpinBox::valueChanged, &m_pause, [this] { m_pause.start(); });
}

void ConfigImportDialog::setCanTakeRows(bool can)
{
    m_canTakeRows = can;
    m_take->setEnabled(can && m_reading.design);
}

void ConfigImportDialog::chooseFile()
{
    auto *dialog = new QFileDialog(this, tr("Open a launch script or config"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setNameFilter(tr("Launch scripts and configs (*.sh *.sbatch *.slurm *.args *.txt *.yaml *.yml "
                             "*.json *.toml *.py);;All files (*)"));
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString &path) {
        QFile file(path);
        if (!file.open(QIODevice::ReadOnly) || file.size() > static_cast<qint64>(kMostConfigBytes)) {
            m_words->setText(
                tr("✖ %1 can't be read: %2.")
                    .arg(QFileInfo(path).fileName(),
                        file.isOpen() ? tr("it is too long to be a config") : file.errorString()));
            return;
        }
        m_name = QFileInfo(path).fileName();
        m_text->setPlainText(QString::fromUtf8(file.readAll()));
    });
    dialog->open();
}

void ConfigImportDialog::ask()
{
    m_pause.stop();
    const std::string text = m_text->toPlainText().toStdString();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
        m_job.cancel();
        present({});
        return;
    }
    ConfigOptions options;
    options.format = m_format->currentData().toString().toStdString();
    options.fileName = m_name.toStdString();
    options.cluster = m_cluster->currentData().toString().toStdString();
    options.devices = m_devices->value();
    m_words->setText(tr("Reading…"));
    m_job.ask([text, options](const std::stop_token &stop) { return readingOf(text, options, stop); });
}

/// On a worker.
ConfigImportDialog::Reading ConfigImportDialog::readingOf(
    const std::string &text, const ConfigOptions &options, const std::stop_token &stop)
{
    Reading reading;
    auto config = readConfig(text, options);
    if (!config) {
        reading.problem = std::move(config).error();
        return reading;
    }
    reading.config = *std::move(config);
    auto design = designOf(*reading.config);
    if (!design) {
        reading.problem = std::move(design).error();
        return reading;
    }
    reading.design = *std::move(design);
    PlanRequest request = reading.design->request;
    request.upTo = PlanGrade::Timed;
    request.search = false;
    const auto answer = planOf(request, stop);
    if (!answer) {
        reading.problem = answer.error();
        return reading;
    }
    reading.stepSeconds = (*answer)->summary.stepSeconds;
    reading.fullness = fullnessOf(**answer);
    return reading;
}

void ConfigImportDialog::present(const Reading &reading)
{
    m_reading = reading;
    m_found->clear();
    m_open->setEnabled(reading.design.has_value());
    m_take->setEnabled(m_canTakeRows && reading.design);
    QStringList words;
    if (reading.config) {
        const ImportedConfig &config = *reading.config;
        words << tr("%1: %2 keys understood, %3 of no effect on plans, %4 unknown.")
                     .arg(toQString(config.format->meaning))
                     .arg(config.understood.size())
                     .arg(config.irrelevant.size())
                     .arg(config.unknown.size());
        if (reading.design)
            words << tr("%1 on %2.")
                         .arg(toQString(reading.design->request.model->source.source),
                             toQString(reading.design->request.target.cluster));
        listRemarks(config);
        listRows(reading);
        listKeys(config.irrelevant, tr("Of no effect on plans"), false);
    }
    if (reading.stepSeconds > 0)
        words << tr("A step takes %1; the fullest device holds %2% of its memory%3.")
                     .arg(timeText(Nanoseconds{static_cast<std::int64_t>(reading.stepSeconds * 1e9)}))
                     .arg(reading.fullness * 100, 0, 'f', 0)
                     .arg(reading.fullness > 1 ? tr(": it does not fit") : QString());
    if (reading.problem)
        words << QStringLiteral("✖ ") + toQString(describe(*reading.problem));
    m_words->setText(words.isEmpty() ? tr("Paste a text, or open a file: what it says is shown here before "
                                          "anything is taken from it.")
                                     : words.join(QLatin1Char('\n')));
}

void ConfigImportDialog::listRows(const Reading &reading)
{
    if (!reading.design)
        return;
    QTreeWidgetItem *rows = group(m_found, tr("Rows"));
    for (const ImportedRow &row : reading.design->rows)
        addEntry(rows, toQString(print(row.row)),
            row.key.empty()    ? tr("the framework's default")
                : row.line > 0 ? tr("%1, line %2").arg(toQString(row.key)).arg(row.line)
                               : toQString(row.key),
            row.line);
}

/// What needs a person's eye first.
void ConfigImportDialog::listRemarks(const ImportedConfig &config)
{
    if (!config.errors.empty()) {
        QTreeWidgetItem *errors = group(m_found, tr("Contradictions"));
        for (const Error &error : config.errors)
            addEntry(errors, toQString(error.message), toQString(error.where), lineOf(error.where));
    }
    listKeys(config.unknown, tr("Not understood"), true);
    if (!config.notes.empty()) {
        QTreeWidgetItem *notes = group(m_found, tr("Taken for granted"));
        for (const std::string &note : config.notes)
            addEntry(notes, toQString(note), {}, 0);
    }
}

void ConfigImportDialog::listKeys(
    const std::vector<KeyRemark> &remarks, const QString &title, bool isExpanded)
{
    if (remarks.empty())
        return;
    QTreeWidgetItem *parent = group(m_found, title);
    parent->setExpanded(isExpanded);
    for (const KeyRemark &remark : remarks)
        addEntry(parent, toQString(remark.why.empty() ? remark.key : remark.why),
            tr("%1, line %2").arg(toQString(remark.key)).arg(remark.line), remark.line);
}

/// Marks a line of the text, from 1.
void ConfigImportDialog::showLine(int line)
{
    const QTextBlock block = m_text->document()->findBlockByNumber(line - 1);
    if (line < 1 || !block.isValid())
        return;
    QTextCursor cursor(block);
    cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
    m_text->setTextCursor(cursor);
    m_text->ensureCursorVisible();
}

} // namespace planloom
