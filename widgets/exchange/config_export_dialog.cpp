#include "widgets/exchange/config_export_dialog.h"

#include <QtCore/QTimer>
#include <QtGui/QClipboard>
#include <QtGui/QFontDatabase>
#include <QtGui/QGuiApplication>
#include <QtGui/QScreen>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include "engine/design/fullness.h"
#include "engine/interop/configs/rank_order.h"
#include "engine/table/table_text.h"
#include "widgets/common/qt_text.h"
#include "widgets/common/quantity_text.h"

#include <utility>

namespace planloom {

namespace {

constexpr int kTickMilliseconds = 200;

QString stepText(double seconds)
{
    return timeText(Nanoseconds{static_cast<std::int64_t>(seconds * 1e9)});
}

/// The ending that files of a syntax have.
QString suffixOf(ConfigSyntax syntax)
{
    switch (syntax) {
    case ConfigSyntax::Options:
    case ConfigSyntax::Overrides:
        return QStringLiteral("sh");
    case ConfigSyntax::Yaml:
        return QStringLiteral("yaml");
    case ConfigSyntax::Json:
        return QStringLiteral("json");
    case ConfigSyntax::Python:
        return QStringLiteral("py");
    }
    return {};
}

/// Rows that a person wrote or drew, which a search holds to.
ConstraintTable rowsOfHands(const ConstraintTable &table)
{
    ConstraintTable own;
    for (const Row &row : table.rows)
        if (row.origin == RowOrigin::Text || row.origin == RowOrigin::Gesture)
            own.rows.push_back(row);
    return own;
}

} // namespace

ConfigExportDialog::ConfigExportDialog(QWidget *parent)
    : QDialog(parent)
    , m_writing([this](const Written &written) { showWritten(written); })
    , m_search([this](const Found &found) { showFound(found); })
{
    setWindowTitle(tr("Export as a Framework's Config"));
    auto *layout = new QVBoxLayout(this);
    auto *top = new QHBoxLayout;
    layout->addLayout(top);
    m_format = new QComboBox(this);
    m_format->setObjectName(QStringLiteral("format"));
    for (const ConfigFormat &format : configFormats())
        m_format->addItem(toQString(format.name), toQString(format.meaning));
    auto *label = new QLabel(tr("For&mat"), this);
    label->setBuddy(m_format);
    top->addWidget(label);
    top->addWidget(m_format);
    m_words = new QLabel(this);
    m_words->setObjectName(QStringLiteral("words"));
    m_words->setWordWrap(true);
    top->addWidget(m_words, 1);
    auto *sides = new QSplitter(Qt::Horizontal, this);
    m_text = new QPlainTextEdit(this);
    m_text->setObjectName(QStringLiteral("config"));
    m_text->setAccessibleName(tr("The config"));
    m_text->setReadOnly(true);
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    sides->addWidget(m_text);
    m_unsaid = new QTreeWidget(this);
    m_unsaid->setObjectName(QStringLiteral("unsaid"));
    m_unsaid->setAccessibleName(tr("What the config leaves out"));
    m_unsaid->setHeaderLabels({tr("Left out"), tr("A step without it")});
    m_unsaid->setRootIsDecorated(false);
    m_unsaid->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    m_unsaid->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    m_unsaid->header()->setStretchLastSection(false);
    sides->addWidget(m_unsaid);
    sides->setSizes({3, 2});
    layout->addWidget(sides, 1);
    auto *searching = new QHBoxLayout;
    layout->addLayout(searching);
    m_find = new QPushButton(tr("&Find Best Plan It Says Whole"), this);
    m_find->setObjectName(QStringLiteral("find"));
    m_find->setAutoDefault(false);
    m_find->setToolTip(
        tr("Searches the fastest plan that fits among those that this format has words for. Rows "
           "that you wrote or drew hold; those of templates, imports and the solver give way"));
    searching->addWidget(m_find);
    m_searchWords = new QLabel(this);
    m_searchWords->setObjectName(QStringLiteral("searched"));
    m_searchWords->setWordWrap(true);
    searching->addWidget(m_searchWords, 1);
    m_use = new QPushButton(tr("&Use This Plan"), this);
    m_use->setObjectName(QStringLiteral("use"));
    m_use->setAutoDefault(false);
    m_use->setToolTip(tr("Its rows become the design's (one undo step)"));
    m_use->hide();
    searching->addWidget(m_use);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    m_copy = buttons->addButton(tr("&Copy"), QDialogButtonBox::ActionRole);
    m_copy->setObjectName(QStringLiteral("copy"));
    m_save = buttons->addButton(tr("&Save…"), QDialogButtonBox::ActionRole);
    m_save->setObjectName(QStringLiteral("save"));
    m_saveRanks = buttons->addButton(tr("Save &Rankfile…"), QDialogButtonBox::ActionRole);
    m_saveRanks->setObjectName(QStringLiteral("saveRanks"));
    m_saveRanks->setToolTip(
        tr("Which device each rank runs on, for mpirun: the framework numbers ranks otherwise "
           "than the plan numbers devices"));
    layout->addWidget(buttons);
    m_tick = new QTimer(this);
    m_tick->setInterval(kTickMilliseconds);
    connect(m_tick, &QTimer::timeout, this, &ConfigExportDialog::showProgress);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_format, &QComboBox::currentIndexChanged, this, [this] {
        setSearching(false);
        m_searchWords->clear();
        m_use->hide();
        write();
    });
    connect(m_find, &QPushButton::clicked, this, &ConfigExportDialog::findPlan);
    connect(m_use, &QPushButton::clicked, this, [this] {
        m_use->hide();
        Q_EMIT rowsAsked(m_foundWords, m_foundRows);
    });
    connect(m_copy, &QPushButton::clicked, this,
        [this] { QGuiApplication::clipboard()->setText(m_text->toPlainText()); });
    connect(m_save, &QPushButton::clicked, this, [this] {
        Q_EMIT saveAsked(toQString(format().name) + QLatin1Char('.') + suffixOf(format().syntax),
            m_text->toPlainText().toStdString());
    });
    connect(m_saveRanks, &QPushButton::clicked, this,
        [this] { Q_EMIT saveAsked(QStringLiteral("rankfile.txt"), m_ranks); });
    showWritten({});
    // On a small screen all of it is in sight, its frame too.
    resize(QSize(fontMetrics().averageCharWidth() * 140, fontMetrics().height() * 36)
               .boundedTo(screen()->availableSize() * 9 / 10));
}

const ConfigFormat &ConfigExportDialog::format() const
{
    return configFormats()[static_cast<std::size_t>(m_format->currentIndex())];
}

void ConfigExportDialog::setFormat(const std::string &name)
{
    m_format->setCurrentIndex(std::max(0, m_format->findText(toQString(name))));
}

void ConfigExportDialog::setPlan(const std::optional<PlanRequest> &request)
{
    if (m_search.isBusy()) {
        setSearching(false);
        m_searchWords->setText(tr("The rows have changed: the search was given up."));
    }
    m_request = request;
    write();
}

void ConfigExportDialog::write()
{
    if (!m_request) {
        m_writing.cancel();
        showWritten({});
        return;
    }
    m_words->setText(tr("Writing…"));
    m_writing.ask([format = &format(), request = *m_request](
                      const std::stop_token &) { return writtenAs(*format, request); });
}

/// On a worker.
ConfigExportDialog::Written ConfigExportDialog::writtenAs(
    const ConfigFormat &format, const PlanRequest &request)
{
    Written written;
    written.config = writeConfig(format, request);
    const auto target = resolve(request.target);
    if (!written.config || written.config->ranks.empty() || !target)
        return written;
    const auto ranks =
        rankFileText(RankFile::OpenMpi, written.config->ranks, target->cluster.links.devicesPerNode);
    if (ranks)
        written.ranks = *ranks;
    return written;
}

void ConfigExportDialog::showWritten(const Written &written)
{
    m_unsaid->clear();
    m_ranks = written.ranks;
    m_saveRanks->setVisible(!m_ranks.empty());
    const bool isThere = m_request && written.config;
    m_copy->setEnabled(isThere);
    m_save->setEnabled(isThere);
    m_find->setEnabled(m_request.has_value());
    if (!isThere) {
        m_text->clear();
        m_words->setText(m_request ? QStringLiteral("✖ ") + toQString(describe(written.config.error()))
                                   : tr("There is no plan to export yet."));
        return;
    }
    const WrittenConfig &config = *written.config;
    m_text->setPlainText(toQString(config.text));
    QString words = config.isWhole ? tr("It says the plan whole: read again, it is the same plan.")
        : config.configSeconds > 0
        ? tr("It leaves something out: as it is written, a step takes %1 in place of %2.")
              .arg(stepText(config.configSeconds), stepText(config.planSeconds))
        : tr("It leaves something out.");
    if (!m_ranks.empty())
        words +=
            QLatin1Char(' ') + tr("Its ranks lie on other devices than are numbered so: see the rankfile.");
    m_words->setText(words);
    listUnsaid(config);
}

void ConfigExportDialog::listUnsaid(const WrittenConfig &config)
{
    const auto add = [this](const QString &words, const QString &figure) {
        auto *item = new QTreeWidgetItem(m_unsaid, {words, figure});
        item->setToolTip(0, words);
        item->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
    };
    for (const UnsaidRow &row : config.unsaid)
        add(tr("Row %1: %2").arg(row.row.index + 1).arg(toQString(row.text)),
            row.secondsWithout > 0 ? stepText(row.secondsWithout) : QString());
    for (const std::string &row : config.instead)
        add(tr("In place of it: %1").arg(toQString(row)), {});
    for (const std::string &note : config.notes)
        add(toQString(note), {});
    if (m_unsaid->topLevelItemCount() == 0)
        add(tr("Nothing"), {});
}

void ConfigExportDialog::findPlan()
{
    if (m_search.isBusy()) {
        setSearching(false);
        m_searchWords->setText(tr("The search was stopped."));
        return;
    }
    if (!m_request)
        return;
    m_progress = std::make_shared<Progress>();
    m_search.ask([format = &format(), request = *m_request, progress = m_progress](
                     const std::stop_token &stop) { return foundFor(*format, request, progress, stop); });
    setSearching(true);
}

void ConfigExportDialog::setSearching(bool searches)
{
    if (!searches)
        m_search.cancel();
    m_find->setText(searches ? tr("S&top Searching") : tr("&Find Best Plan It Says Whole"));
    m_use->hide();
    if (searches) {
        m_tick->start();
        showProgress();
    } else
        m_tick->stop();
}

void ConfigExportDialog::showProgress()
{
    const double best = m_progress ? m_progress->stepSeconds.load() : 0;
    m_searchWords->setText(best > 0 ? tr("Searching: %1 so far…").arg(stepText(best)) : tr("Searching…"));
}

/// On a worker.
ConfigExportDialog::Found ConfigExportDialog::foundFor(const ConfigFormat &format, const PlanRequest &request,
    const std::shared_ptr<Progress> &progress, const std::stop_token &stop)
{
    ConfigSearchOptions options;
    options.onBetter = [progress](const SaidPlan &plan) {
        if (plan.fits())
            progress->stepSeconds = plan.stepSeconds;
    };
    options.atHand = request.table.table();
    PlanRequest own = request;
    own.table = TableDocument(print(rowsOfHands(options.atHand)));
    Found found;
    found.plan = searchConfigs(format, own, options, stop);
    if (!found.plan)
        return found;
    PlanRequest any = own;
    any.search = true;
    any.upTo = PlanGrade::Timed;
    if (const auto best = planOf(any, stop); best && fullnessOf(**best) <= 1)
        found.bestOfAllSeconds = (*best)->summary.stepSeconds;
    return found;
}

void ConfigExportDialog::showFound(const Found &found)
{
    setSearching(false);
    if (!found.plan) {
        m_searchWords->setText(QStringLiteral("✖ ") + toQString(describe(found.plan.error())));
        return;
    }
    const SaidPlan &best = found.plan->best;
    QString words = best.fits() ? tr("%1, the best of %2 plans that %3 says whole.")
                                      .arg(stepText(best.stepSeconds))
                                      .arg(found.plan->planned)
                                      .arg(toQString(format().name))
                                : tr("None of %1 plans that %2 says whole fits the devices' memory.")
                                      .arg(found.plan->planned)
                                      .arg(toQString(format().name));
    if (best.fits() && found.bestOfAllSeconds > 0)
        words += QLatin1Char(' ')
            + (found.bestOfAllSeconds < best.stepSeconds
                    ? tr("Beyond it, the best of all plans that were found takes %1 (%2% less).")
                          .arg(stepText(found.bestOfAllSeconds))
                          .arg((1 - found.bestOfAllSeconds / best.stepSeconds) * 100, 0, 'f', 1)
                    : tr("Nothing better was found beyond it."));
    m_searchWords->setText(words);
    m_foundRows = best.request.table.text();
    m_foundWords = tr("best plan for %1").arg(toQString(format().name));
    m_use->setVisible(best.fits());
}

} // namespace planloom
