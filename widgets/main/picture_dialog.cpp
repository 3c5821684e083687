#include "widgets/main/picture_dialog.h"

#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QPushButton>

#include <algorithm>

namespace planloom {

PictureDialog::PictureDialog(bool selection, QWidget *parent)
    : QDialog(parent)
    , m_what(new QComboBox(this))
    , m_part(new QComboBox(this))
    , m_theme(new QComboBox(this))
    , m_format(new QComboBox(this))
    , m_scale(new QDoubleSpinBox(this))
{
    setWindowTitle(tr("Export Picture"));
    m_what->addItems({tr("DAG"), tr("Timeline")});
    m_part->addItem(tr("All of it"), static_cast<int>(PicturePart::Whole));
    m_part->addItem(tr("What is in sight"), static_cast<int>(PicturePart::InSight));
    if (selection)
        m_part->addItem(tr("What is selected"), static_cast<int>(PicturePart::Selection));
    m_theme->addItem(tr("Light"), static_cast<int>(PictureTheme::Light));
    m_theme->addItem(tr("Dark"), static_cast<int>(PictureTheme::Dark));
    m_theme->addItem(tr("Print (on white)"), static_cast<int>(PictureTheme::Print));
    m_format->addItem(tr("PNG (pixels)"), QStringLiteral("png"));
    m_format->addItem(tr("SVG (vectors)"), QStringLiteral("svg"));
    m_format->addItem(tr("PDF (vectors)"), QStringLiteral("pdf"));
    m_scale->setRange(0.5, 32);
    m_scale->setSingleStep(0.5);
    m_scale->setValue(2);
    m_scale->setSuffix(QStringLiteral("×"));
    auto *form = new QFormLayout(this);
    for (const auto &[text, widget] :
        {std::pair<QString, QWidget *>{tr("&Picture of"), m_what}, {tr("P&art"), m_part},
            {tr("&Theme"), m_theme}, {tr("&Format"), m_format}, {tr("&Scale"), m_scale}}) {
        form->addRow(text, widget);
        widget->setAccessibleName(QString(text).remove(QLatin1Char('&')));
    }
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    auto *save = buttons->addButton(tr("&Export…"), QDialogButtonBox::AcceptRole);
    save->setDefault(true);
    form->addRow(buttons);
    const auto refresh = [this] { m_scale->setEnabled(m_format->currentIndex() == 0); };
    connect(m_format, &QComboBox::currentIndexChanged, this, refresh);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        const PictureChoice made = choice();
        accept();
        Q_EMIT chosen(made);
    });
    refresh();
}

PictureChoice PictureDialog::choice() const
{
    PictureChoice choice;
    choice.timeline = m_what->currentIndex() == 1;
    choice.part = static_cast<PicturePart>(m_part->currentData().toInt());
    choice.theme = static_cast<PictureTheme>(m_theme->currentData().toInt());
    choice.suffix = m_format->currentData().toString();
    choice.scale = m_scale->value();
    return choice;
}

void PictureDialog::setChoice(const PictureChoice &choice)
{
    m_what->setCurrentIndex(choice.timeline ? 1 : 0);
    m_part->setCurrentIndex(std::max(0, m_part->findData(static_cast<int>(choice.part))));
    m_theme->setCurrentIndex(m_theme->findData(static_cast<int>(choice.theme)));
    m_format->setCurrentIndex(m_format->findData(choice.suffix));
    m_scale->setValue(choice.scale);
}

} // namespace planloom

#include "moc_picture_dialog.cpp"
