#include "widgets/main/export_help.h"

#include "engine/design/models/operator_files.h"

#include <QtCore/QFile>
#include <QtGui/QClipboard>
#include <QtGui/QFontDatabase>
#include <QtGui/QFontMetrics>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

namespace {

QString resourceText(const QString &name)
{
    QFile file(QStringLiteral(":/planloom/") + name);
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QString::fromUtf8(file.readAll());
}

} // namespace

QString exportScript()
{
    return resourceText(QStringLiteral("export_model.py"));
}

QString operatorFileText()
{
    return resourceText(QStringLiteral("operators.md"));
}

HelpPage::HelpPage(const QString &title, const QString &introduction, QWidget *parent)
    : QDialog(parent)
{
    setWindowTitle(title);
    auto *layout = new QVBoxLayout(this);
    auto *text = new QLabel(introduction, this);
    text->setWordWrap(true);
    text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(text);
}

void HelpPage::setContent(QWidget *content, const QString &text)
{
    layout()->addWidget(content);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto *copy = buttons->addButton(tr("&Copy"), QDialogButtonBox::ActionRole);
    layout()->addWidget(buttons);
    connect(copy, &QPushButton::clicked, this, [text] { QGuiApplication::clipboard()->setText(text); });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

ExportHelp::ExportHelp(QWidget *parent)
    : HelpPage(tr("Model from PyTorch"),
        tr("Planloom opens ONNX models (.onnx) and programs of torch.export.save (.pt2). This script "
           "writes both of a module with its loss inside; one of them is enough."),
        parent)
    , m_script(new QPlainTextEdit(exportScript(), this))
{
    m_script->setReadOnly(true);
    m_script->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_script->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_script->setAccessibleName(tr("Script"));
    const QFontMetrics metrics(m_script->font());
    m_script->setMinimumSize(metrics.horizontalAdvance(QLatin1Char('0')) * 110, metrics.height() * 18);
    setContent(m_script, m_script->toPlainText());
}

OperatorFileHelp::OperatorFileHelp(QWidget *parent)
    : HelpPage(tr("Operator Files"),
        tr("An operator that Planloom does not know can be described by a text file: MODEL.ops beside the "
           "model, "
           "any *.ops in %1, or one that File > Operator Files names.")
            .arg(QString::fromStdString(userOperatorFolder().string())),
        parent)
{
    auto *page = new QTextBrowser(this);
    page->setMarkdown(operatorFileText());
    page->setOpenLinks(false);
    page->setAccessibleName(tr("How to write an operator file"));
    const QFontMetrics metrics(page->font());
    page->setMinimumSize(metrics.horizontalAdvance(QLatin1Char('0')) * 110, metrics.height() * 28);
    setContent(page, operatorFileText());
}

} // namespace planloom
