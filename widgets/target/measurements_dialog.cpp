#include "widgets/target/measurements_dialog.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QGridLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace planloom {

namespace {

constexpr int kTypingMilliseconds = 250;
constexpr int kMostNewNames = 1000;

QTableWidgetItem *cell(const QString &text, bool isFigure)
{
    auto *item = new QTableWidgetItem(text);
    if (isFigure)
        item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    return item;
}

QString percentWords(double share)
{
    return QStringLiteral("%1%").arg(100 * share, 0, 'f', 1);
}

/// A path beside the files of times at which there is nothing yet.
std::string newPath(const Measurements &asked, const std::string &name)
{
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(asked.kernels.empty() ? asked.collectives : asked.kernels).parent_path();
    std::string stem = splitFramework(name).first.substr(0, name.find(':'));
    std::replace(stem.begin(), stem.end(), '/', '-');
    std::error_code failure;
    for (int i = 1; i < kMostNewNames; ++i) {
        const fs::path path = folder / (stem + (i > 1 ? "-" + std::to_string(i) : "") + ".json");
        if (!fs::exists(fs::symlink_status(path, failure)))
            return path.string();
    }
    return {};
}

} // namespace

MeasurementsDialog::MeasurementsDialog(const std::string &profile, QWidget *parent)
    : QDialog(parent)
    , m_profile(profile.substr(0, profile.find(':')))
{
    setWindowTitle(tr("Cluster from Measurements"));
    auto *layout = new QVBoxLayout(this);
    auto *rows = new QGridLayout;
    layout->addLayout(rows);
    m_kernels = addFile(rows, tr("&Kernel timings"), "kernels",
        tr("JSON with times of products (\"matmul\"), causal attention, experts (\"moe\") and collectives, "
           "in "
           "rows of the columns that the file names; times in microseconds"));
    m_collectives = addFile(rows, tr("&Output of nccl-tests"), "collectives",
        tr("What all_reduce_perf, all_gather_perf, ... printed, one run after the other; in place of the "
           "collectives of the kernel timings"));
    addChoices(rows);
    m_words = new QLabel(this);
    m_words->setObjectName(QStringLiteral("words"));
    m_words->setWordWrap(true);
    m_words->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(m_words);
    m_errors = newErrorTable();
    layout->addWidget(m_errors, 1);
    auto *saving = new QGridLayout;
    layout->addLayout(saving);
    addSaving(saving);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    m_save = buttons->addButton(tr("&Save and Use"), QDialogButtonBox::ActionRole);
    m_save->setObjectName(QStringLiteral("save"));
    m_save->setToolTip(tr("Writes the cluster file and plans the design for it (one undo step)"));
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_save, &QPushButton::clicked, this, &MeasurementsDialog::save);
    m_pause.setSingleShot(true);
    m_pause.setInterval(kTypingMilliseconds);
    connect(&m_pause, &QTimer::timeout, this, &MeasurementsDialog::ask);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &MeasurementsDialog::present);
    connect(&m_saving, &QFutureWatcherBase::finished, this, &MeasurementsDialog::takeSaved);
    ask();
    resize(sizeHint().expandedTo({fontMetrics().averageCharWidth() * 110, fontMetrics().height() * 32}));
}

QLineEdit *MeasurementsDialog::addFile(
    QGridLayout *rows, const QString &label, const char *name, const QString &tip)
{
    const int row = rows->rowCount();
    auto *words = new QLabel(label, this);
    auto *line = new QLineEdit(this);
    line->setObjectName(QLatin1String(name));
    line->setToolTip(tip);
    line->setPlaceholderText(tr("none"));
    words->setBuddy(line);
    auto *browser = new QPushButton(tr("Choose…"), this);
    browser->setAutoDefault(false);
    browser->setAccessibleName(tr("Choose the file: %1").arg(QString(label).remove(QLatin1Char('&'))));
    rows->addWidget(words, row, 0);
    rows->addWidget(line, row, 1);
    rows->addWidget(browser, row, 2);
    connect(line, &QLineEdit::textChanged, &m_pause, qOverload<>(&QTimer::start));
    connect(browser, &QPushButton::clicked, this, [this, line] { browse(line, false); });
    return line;
}

/// Whose times count, and what says the rest.
void MeasurementsDialog::addChoices(QGridLayout *rows)
{
    const auto add = [&](const QString &label, const char *name, const QString &tip) {
        const int row = rows->rowCount();
        auto *words = new QLabel(label, this);
        auto *choice = new QComboBox(this);
        choice->setObjectName(QLatin1String(name));
        choice->setToolTip(tip);
        words->setBuddy(choice);
        rows->addWidget(words, row, 0);
        rows->addWidget(choice, row, 1);
        connect(choice, &QComboBox::activated, this, &MeasurementsDialog::ask);
        return choice;
    };
    m_device = add(tr("&Device of the times"), "device",
        tr("The device whose times count, of a file with those of several"));
    m_base = add(
        tr("&Base"), "base", tr("Says what times can't: peaks, memory, and links that were not measured"));
    m_base->addItem(tr("the profile of the device"), QString());
    for (const std::string &name : clusterNames())
        m_base->addItem(toQString(name), toQString(name));
}

void MeasurementsDialog::addSaving(QGridLayout *rows)
{
    auto *words = new QLabel(tr("Sa&ve as"), this);
    m_path = new QLineEdit(this);
    m_path->setObjectName(QStringLiteral("path"));
    words->setBuddy(m_path);
    auto *browser = new QPushButton(tr("Choose…"), this);
    browser->setAutoDefault(false);
    browser->setAccessibleName(tr("Choose where the cluster file is saved"));
    rows->addWidget(words, 0, 0);
    rows->addWidget(m_path, 0, 1);
    rows->addWidget(browser, 0, 2);
    connect(browser, &QPushButton::clicked, this, [this] { browse(m_path, true); });
    connect(m_path, &QLineEdit::textChanged, this, [this] {
        m_replaced.clear();
        m_save->setEnabled(m_fit && m_fit->cluster && !m_path->text().trimmed().isEmpty());
    });
}

QTableWidget *MeasurementsDialog::newErrorTable()
{
    const QStringList columns{tr("Predicted"), tr("Times"), tr("Off in the median"), tr("Off at worst")};
    auto *table = new QTableWidget(0, static_cast<int>(columns.size()), this);
    table->setObjectName(QStringLiteral("errors"));
    table->setAccessibleName(tr("How far the cluster is from the times"));
    table->setHorizontalHeaderLabels(columns);
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    table->verticalHeader()->hide();
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setAlternatingRowColors(true);
    return table;
}

Measurements MeasurementsDialog::wanted() const
{
    return {m_kernels->text().trimmed().toStdString(), m_collectives->text().trimmed().toStdString(),
        m_device->currentData().toString().toStdString(), m_base->currentData().toString().toStdString()};
}

/// Without times there is nothing to fit: that is said, and no error.
void MeasurementsDialog::ask()
{
    m_pause.stop();
    m_save->setEnabled(false);
    if (m_isAsked)
        return; // what is wanted by then is asked for
    const Measurements asked = wanted();
    if (asked.kernels.empty() && asked.collectives.empty()) {
        m_fit.reset();
        m_device->clear();
        m_errors->setRowCount(0);
        say(tr("Choose times that were measured on a device: a cluster is fitted to them, and how far it is "
               "from them is shown here before it is used."),
            false);
        return;
    }
    m_fit.reset();
    say(tr("Reading and fitting…"), false);
    m_isAsked = true;
    m_watcher.setFuture(QtConcurrent::run(
        [asked, profile = m_profile] { return std::make_shared<const Fit>(fitOf(asked, profile)); }));
}

/// On a worker.
MeasurementsDialog::Fit MeasurementsDialog::fitOf(Measurements asked, const std::string &profile)
{
    Fit fit{std::move(asked), {}, Error{}, {}};
    if (!fit.asked.kernels.empty()) {
        auto devices = timedDevicesOf(fit.asked.kernels);
        if (!devices) {
            fit.cluster = std::move(devices).error();
            return fit;
        }
        fit.devices = *std::move(devices);
        const auto &all = fit.devices;
        std::string &chosen = fit.asked.device;
        if (std::find(all.begin(), all.end(), chosen) == all.end()) {
            const auto ours = std::find_if(all.begin(), all.end(),
                [&](const std::string &device) { return profileOfDevice(device) == profile; });
            chosen = all.empty() ? std::string() : ours != all.end() ? *ours : all.front();
        }
    } else {
        fit.asked.device.clear();
    }
    fit.cluster = measuredCluster(fit.asked);
    if (fit.cluster)
        fit.path = newPath(fit.asked, fit.cluster->fitted.cluster.name);
    return fit;
}

void MeasurementsDialog::present()
{
    const FitSnapshot fit = m_watcher.result();
    m_isAsked = false;
    Measurements now = wanted();
    const bool isChosenByFit =
        std::find(fit->devices.begin(), fit->devices.end(), now.device) == fit->devices.end();
    if (isChosenByFit || fit->asked.kernels.empty())
        now.device = fit->asked.device;
    if (now != fit->asked) {
        ask();
        return;
    }
    m_fit = fit;
    showDevices(*fit);
    m_errors->setRowCount(0);
    if (fit->cluster) {
        showCluster(*fit->cluster);
        return;
    }
    const Error &error = fit->cluster.error();
    say(error.where == "--base"
            ? tr("%1: choose a base, whose data sheet says what times can't.").arg(toQString(error.message))
            : toQString(describe(error)),
        true);
}

void MeasurementsDialog::showDevices(const Fit &fit)
{
    m_device->clear();
    for (const std::string &device : fit.devices)
        m_device->addItem(toQString(device), toQString(device));
    m_device->setCurrentIndex(m_device->findData(toQString(fit.asked.device)));
    m_device->setEnabled(fit.devices.size() > 1);
}

void MeasurementsDialog::showCluster(const MeasuredCluster &cluster)
{
    const std::vector<FitError> &errors = cluster.fitted.errors;
    m_errors->setRowCount(static_cast<int>(errors.size()));
    for (int row = 0; row < m_errors->rowCount(); ++row) {
        const FitError &error = errors[static_cast<std::size_t>(row)];
        m_errors->setItem(row, 0, cell(toQString(error.kind), false));
        m_errors->setItem(row, 1, cell(QString::number(error.rows), true));
        m_errors->setItem(row, 2, cell(percentWords(error.median), true));
        m_errors->setItem(row, 3, cell(percentWords(error.worst), true));
    }
    const Cluster &made = cluster.fitted.cluster;
    QString words = tr("%1, %2 devices a node. Whatever was not measured is that of the base.")
                        .arg(toQString(made.device.name))
                        .arg(made.links.devicesPerNode);
    for (const auto &[format, rows] : cluster.unknown)
        words += QLatin1Char('\n')
            + tr("%1 times of the format \"%2\" were left out: Planloom does not have it.")
                  .arg(rows)
                  .arg(toQString(format));
    say(words, false);
    if (!m_path->isModified())
        m_path->setText(toQString(m_fit->path));
    m_save->setEnabled(!m_path->text().trimmed().isEmpty());
}

void MeasurementsDialog::say(const QString &words, bool isProblem)
{
    m_words->setText(isProblem ? QStringLiteral("✖ ") + words : words);
}

void MeasurementsDialog::browse(QLineEdit *line, bool save)
{
    auto *dialog = new QFileDialog(this, save ? tr("Save the cluster file") : tr("Times that were measured"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(save ? QFileDialog::AcceptSave : QFileDialog::AcceptOpen);
    dialog->setFileMode(save ? QFileDialog::AnyFile : QFileDialog::ExistingFile);
    dialog->setNameFilter(save  ? tr("Clusters (*.json)")
            : line == m_kernels ? tr("Kernel timings (*.json);;All files (*)")
                                : tr("Output of nccl-tests (*.txt *.log *.out);;All files (*)"));
    if (save)
        dialog->setDefaultSuffix(QStringLiteral("json"));
    if (!line->text().isEmpty())
        dialog->selectFile(line->text());
    connect(dialog, &QFileDialog::fileSelected, this, [this, line, save](const QString &path) {
        line->setText(path);
        line->setModified(true);
        if (save)
            m_replaced = path.toStdString(); // the file dialog has asked
    });
    dialog->open();
}

void MeasurementsDialog::save()
{
    if (!m_fit || !m_fit->cluster || m_saving.isRunning())
        return;
    const std::string path = m_path->text().trimmed().toStdString();
    m_save->setEnabled(false);
    m_saving.setFuture(QtConcurrent::run([path, replace = path == m_replaced, fit = m_fit] {
        return std::make_shared<const Saving>(written(path, toJson(fit->cluster->fitted.cluster), replace));
    }));
}

/// On a worker.
MeasurementsDialog::Saving MeasurementsDialog::written(
    const std::string &path, std::string json, bool replace)
{
    std::error_code failure;
    if (!replace && std::filesystem::exists(std::filesystem::symlink_status(path, failure)))
        return {path, {}, true, {}};
    auto outcome = writeFile(path, json);
    return {path, std::move(json), false, std::move(outcome)};
}

void MeasurementsDialog::takeSaved()
{
    const auto saving = m_saving.result();
    m_save->setEnabled(m_fit != nullptr);
    if (saving->isThere) {
        m_replaced = saving->path;
        say(tr("There is a file of this name already. \"Save and Use\" once more replaces it."), true);
    } else if (!saving->outcome) {
        say(toQString(describe(saving->outcome.error())), true);
    } else {
        Q_EMIT saved(std::filesystem::path(saving->path).stem().string(), saving->json);
        accept();
    }
}

} // namespace planloom

#include "moc_measurements_dialog.cpp"
