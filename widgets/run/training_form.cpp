#include "widgets/run/training_form.h"

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtCore/QLocale>
#include <QtCore/QSignalBlocker>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolButton>

namespace planloom {

namespace {

constexpr int kMostWarmup = 1'000'000;

std::string absolutePath(const QString &text)
{
    const QString path = text.trimmed();
    return path.isEmpty() ? std::string{} : QDir::cleanPath(QFileInfo(path).absoluteFilePath()).toStdString();
}

} // namespace

TrainingForm::TrainingForm(QWidget *parent)
    : QWidget(parent)
    , m_form(new QFormLayout(this))
    , m_batches(new QComboBox(this))
    , m_dataRow(new QWidget(this))
    , m_data(new QLineEdit(m_dataRow))
    , m_browseData(new QToolButton(m_dataRow))
    , m_rate(new QLineEdit(this))
    , m_shape(new QComboBox(this))
    , m_warmup(new QSpinBox(this))
    , m_checkpoints(new QLineEdit(this))
    , m_every(new QSpinBox(this))
    , m_problem(new QLabel(this))
{
    m_batches->addItem(tr("The same in every step")); // in the order of BatchSource
    m_batches->addItem(tr("Drawn anew in every step"));
    m_batches->addItem(tr("From files"));
    m_batches->setAccessibleName(tr("Batches"));
    m_data->setPlaceholderText(tr("folder, .npz or .npy"));
    m_data->setAccessibleName(tr("Where the batches are"));
    m_data->setToolTip(tr("A folder with an .npz, or a folder of <input>.npy, for each step;\n"
                          "or arrays with the steps as their first dimension"));
    m_rate->setPlaceholderText(tr("as in the plan"));
    m_rate->setAccessibleName(tr("Learning rate"));
    m_shape->addItem(tr("constant")); // in the order of RateShape
    m_shape->addItem(tr("cosine"));
    m_shape->setAccessibleName(tr("Schedule of the learning rate"));
    m_shape->setToolTip(tr("Cosine: down to zero at the run's last step"));
    m_warmup->setRange(0, kMostWarmup);
    m_warmup->setSpecialValueText(tr("no warm-up"));
    m_warmup->setPrefix(tr("warm-up of "));
    m_warmup->setSuffix(tr(" steps"));
    m_warmup->setAccessibleName(tr("Steps of warm-up"));
    m_checkpoints->setPlaceholderText(tr("none are written"));
    m_checkpoints->setAccessibleName(tr("Folder of checkpoints"));
    m_checkpoints->setToolTip(tr("Weights and optimizer states, as step-N.safetensors"));
    m_every->setRange(0, kMostWarmup);
    m_every->setSpecialValueText(tr("one at the end"));
    m_every->setPrefix(tr("at the end and every "));
    m_every->setSuffix(tr(" steps"));
    m_every->setAccessibleName(tr("Steps from checkpoint to checkpoint"));

    const auto browse = [this](QToolButton *button, QLineEdit *edit, bool folder) {
        button->setText(QStringLiteral("…"));
        button->setAccessibleName(tr("Choose %1").arg(edit->accessibleName().toLower()));
        connect(button, &QToolButton::clicked, this, [this, edit, folder] { choosePath(edit, folder); });
    };
    auto *browseCheckpoints = new QToolButton(this);
    browse(m_browseData, m_data, false);
    browse(browseCheckpoints, m_checkpoints, true);
    const auto line = [](std::initializer_list<QWidget *> widgets) {
        auto *row = new QHBoxLayout;
        row->setContentsMargins(0, 0, 0, 0);
        for (QWidget *widget : widgets)
            row->addWidget(widget, qobject_cast<QToolButton *>(widget) ? 0 : 1);
        return row;
    };
    m_form->setContentsMargins(0, 0, 0, 0);
    const auto add = [&](const QString &text, std::initializer_list<QWidget *> widgets) {
        auto *label = new QLabel(text, this);
        label->setBuddy(*widgets.begin());
        m_form->addRow(label, line(widgets));
    };
    add(tr("&Batches"), {m_batches});
    m_dataRow->setLayout(line({m_data, m_browseData}));
    m_form->addRow(m_dataRow);
    add(tr("&Learning rate"), {m_rate, m_shape});
    add(QString(), {m_warmup});
    add(tr("C&heckpoints"), {m_checkpoints, browseCheckpoints});
    add(QString(), {m_every});
    m_problem->setObjectName(QStringLiteral("training.problem"));
    m_problem->setWordWrap(true);
    m_problem->setTextFormat(Qt::PlainText);
    m_form->addRow(m_problem);

    for (QComboBox *box : {m_batches, m_shape})
        connect(box, &QComboBox::currentIndexChanged, this, &TrainingForm::refresh);
    for (QLineEdit *edit : {m_data, m_rate, m_checkpoints})
        connect(edit, &QLineEdit::textChanged, this, &TrainingForm::refresh);
    for (QSpinBox *spin : {m_warmup, m_every})
        connect(spin, &QSpinBox::valueChanged, this, &TrainingForm::refresh);
    refresh();
}

TrainingRun TrainingForm::training() const
{
    TrainingRun training;
    training.batches = static_cast<BatchSource>(m_batches->currentIndex());
    if (training.batches == BatchSource::Files)
        training.data = absolutePath(m_data->text());
    bool isNumber = false;
    if (const double rate = QLocale::c().toDouble(m_rate->text().trimmed(), &isNumber); isNumber)
        training.learningRate = rate;
    const RateSchedule schedule{
        .shape = static_cast<RateShape>(m_shape->currentIndex()), .warmup = m_warmup->value()};
    if (schedule != RateSchedule{})
        training.schedule = schedule;
    training.checkpoints = absolutePath(m_checkpoints->text());
    training.every = training.checkpoints.empty() ? 0 : m_every->value();
    return training;
}

void TrainingForm::setTraining(const TrainingRun &training)
{
    const QSignalBlocker blocker(this);
    m_batches->setCurrentIndex(static_cast<int>(training.batches));
    m_data->setText(QString::fromStdString(training.data));
    m_rate->setText(training.learningRate ? QLocale::c().toString(*training.learningRate) : QString());
    const RateSchedule schedule = training.schedule.value_or(RateSchedule{});
    m_shape->setCurrentIndex(static_cast<int>(schedule.shape));
    m_warmup->setValue(static_cast<int>(schedule.warmup));
    m_checkpoints->setText(QString::fromStdString(training.checkpoints));
    m_every->setValue(training.every);
}

QString TrainingForm::problem() const
{
    bool isNumber = false;
    const QString rate = m_rate->text().trimmed();
    const double value = QLocale::c().toDouble(rate, &isNumber);
    if (!rate.isEmpty() && (!isNumber || !(value >= 0)))
        return tr("The learning rate is a number of at least 0, not “%1”.").arg(rate);
    const QString checkpoints = m_checkpoints->text().trimmed();
    if (!checkpoints.isEmpty() && QFileInfo::exists(checkpoints) && !QFileInfo(checkpoints).isDir())
        return tr("Checkpoints go into a folder, and %1 is a file.").arg(checkpoints);
    if (m_batches->currentIndex() != static_cast<int>(BatchSource::Files))
        return {};
    const QString data = m_data->text().trimmed();
    if (data.isEmpty())
        return tr("Say where the batches are, or take drawn ones.");
    if (!QFileInfo::exists(data))
        return tr("There is nothing at %1, where batches are to be read.").arg(data);
    return {};
}

void TrainingForm::refresh()
{
    const bool files = m_batches->currentIndex() == static_cast<int>(BatchSource::Files);
    m_form->setRowVisible(m_dataRow, files);
    m_every->setEnabled(!m_checkpoints->text().trimmed().isEmpty());
    const QString wrong = problem();
    m_problem->setText(QStringLiteral("✖ ") + wrong);
    m_form->setRowVisible(m_problem, !wrong.isEmpty());
    Q_EMIT changed();
}

void TrainingForm::choosePath(QLineEdit *edit, bool folder)
{
    auto *dialog = new QFileDialog(this, edit->accessibleName(), edit->text());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory); // a file of many steps is typed in
    dialog->setOption(QFileDialog::ShowDirsOnly, folder);
    connect(dialog, &QFileDialog::fileSelected, edit, &QLineEdit::setText);
    dialog->open();
}

} // namespace planloom

#include "moc_training_form.cpp"
