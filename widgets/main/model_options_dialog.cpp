#include "widgets/main/model_options_dialog.h"

#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>

#include <utility>

namespace planloom {

ModelOptionsDialog::ModelOptionsDialog(const ModelOptions &options, QWidget *parent)
    : QDialog(parent)
    , m_before(options)
    , m_training(new QCheckBox(tr("&Plan a training step"), this))
    , m_optimizer(new QComboBox(this))
    , m_learningRate(new QLineEdit(this))
    , m_weightDecay(new QLineEdit(this))
    , m_clipNorm(new QLineEdit(this))
    , m_capacity(new QLineEdit(this))
    , m_wrong(new QLabel(this))
    , m_buttons(new QDialogButtonBox(QDialogButtonBox::Cancel, this))
{
    setWindowTitle(tr("Model Options"));
    m_training->setChecked(!options.inference);
    m_training->setToolTip(tr("Off, the forward pass alone is planned, as for inference."));
    m_optimizer->addItem(QStringLiteral("AdamW"), static_cast<int>(Optimizer::AdamW));
    m_optimizer->addItem(QStringLiteral("SGD"), static_cast<int>(Optimizer::Sgd));
    m_optimizer->setCurrentIndex(m_optimizer->findData(static_cast<int>(options.optimizer)));
    const auto written = valuesOf(options, WrittenOptions::All);
    m_learningRate->setText(QString::fromStdString(written.at("learning-rate")));
    m_weightDecay->setText(QString::fromStdString(written.at("weight-decay")));
    m_clipNorm->setText(QString::fromStdString(written.at("clip-norm")));
    m_clipNorm->setToolTip(
        tr("Gradients are scaled so that the norm over all of them is at most this; 0 leaves them as they "
           "are. The plan then holds the sums, the all-reduce and the scaling."));
    m_capacity->setText(QString::fromStdString(written.at(std::string(kCapacityOption))));
    m_capacity->setToolTip(
        tr("Room in every sample for what data choose, as the tokens of an expert: 1.25x is 1.25 "
           "times the expected load, 128 is so many, all as many as there can be."));
    m_wrong->setWordWrap(true);
    auto *form = new QFormLayout(this);
    form->addRow(m_training);
    for (const auto &[text, widget] : {std::pair<QString, QWidget *>{tr("&Optimizer"), m_optimizer},
             {tr("&Learning rate"), m_learningRate}, {tr("&Weight decay"), m_weightDecay},
             {tr("Clip &gradients at norm"), m_clipNorm}, {tr("Capacit&y"), m_capacity}}) {
        form->addRow(text, widget);
        widget->setAccessibleName(QString(text).remove(QLatin1Char('&')));
    }
    ModelOptions ofFile;
    ofFile.lossOutput = options.lossOutput;
    ofFile.dimensions = options.dimensions;
    if (const std::string words = describe(ofFile); !words.empty())
        form->addRow(tr("Of the file"), new QLabel(QString::fromStdString(words), this));
    form->addRow(m_wrong);
    m_buttons->addButton(tr("Open &Anew"), QDialogButtonBox::AcceptRole)->setDefault(true);
    form->addRow(m_buttons);
    connect(m_training, &QCheckBox::toggled, this, &ModelOptionsDialog::refresh);
    connect(m_learningRate, &QLineEdit::textChanged, this, &ModelOptionsDialog::refresh);
    connect(m_weightDecay, &QLineEdit::textChanged, this, &ModelOptionsDialog::refresh);
    connect(m_clipNorm, &QLineEdit::textChanged, this, &ModelOptionsDialog::refresh);
    connect(m_capacity, &QLineEdit::textChanged, this, &ModelOptionsDialog::refresh);
    connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_buttons, &QDialogButtonBox::accepted, this, [this] {
        const auto made = this->options();
        if (!made)
            return;
        accept();
        Q_EMIT chosen(*made);
    });
    refresh();
}

Result<ModelOptions> ModelOptionsDialog::options() const
{
    auto values = valuesOf(m_before, WrittenOptions::All);
    values["inference"] = m_training->isChecked() ? "0" : "1";
    values["optimizer"] = nameOf(static_cast<Optimizer>(m_optimizer->currentData().toInt()));
    values["learning-rate"] = m_learningRate->text().trimmed().toStdString();
    values["weight-decay"] = m_weightDecay->text().trimmed().toStdString();
    values["clip-norm"] = m_clipNorm->text().trimmed().toStdString();
    values[std::string(kCapacityOption)] = m_capacity->text().trimmed().toStdString();
    return modelOptionsOf(values);
}

void ModelOptionsDialog::refresh()
{
    for (QWidget *widget : {static_cast<QWidget *>(m_optimizer), static_cast<QWidget *>(m_learningRate),
             static_cast<QWidget *>(m_weightDecay), static_cast<QWidget *>(m_clipNorm)})
        widget->setEnabled(m_training->isChecked());
    const auto made = options();
    m_wrong->setText(made ? QString() : QString::fromStdString(made.error().message));
    for (QAbstractButton *button : m_buttons->buttons()) {
        if (m_buttons->buttonRole(button) == QDialogButtonBox::AcceptRole)
            button->setEnabled(made.has_value());
    }
}

} // namespace planloom

#include "moc_model_options_dialog.cpp"
