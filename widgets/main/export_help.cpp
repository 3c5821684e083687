#include "widgets/main/export_help.h"

#include <QtCore/QFile>
#include <QtGui/QClipboard>
#include <QtGui/QFontDatabase>
#include <QtGui/QFontMetrics>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

QString exportScript()
{
    QFile file(QStringLiteral(":/planloom/export_model.py"));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QString::fromUtf8(file.readAll());
}

ExportHelp::ExportHelp(QWidget *parent)
    : QDialog(parent)
    , m_script(new QPlainTextEdit(exportScript(), this))
{
    setWindowTitle(tr("Model from PyTorch"));
    auto *layout = new QVBoxLayout(this);
    auto *text = new QLabel(
        tr("Planloom opens ONNX models (.onnx) and programs of torch.export.save (.pt2). This script "
           "writes both of a module with its loss inside; one of them is enough."),
        this);
    text->setWordWrap(true);
    layout->addWidget(text);
    m_script->setReadOnly(true);
    m_script->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_script->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_script->setAccessibleName(tr("Script"));
    const QFontMetrics metrics(m_script->font());
    m_script->setMinimumSize(metrics.horizontalAdvance(QLatin1Char('0')) * 110, metrics.height() * 18);
    layout->addWidget(m_script, 1);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto *copy = buttons->addButton(tr("&Copy"), QDialogButtonBox::ActionRole);
    layout->addWidget(buttons);
    connect(copy, &QPushButton::clicked, this,
        [this] { QGuiApplication::clipboard()->setText(m_script->toPlainText()); });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

} // namespace planloom
