#pragma once

#include <QtWidgets/QDialog>

class QPlainTextEdit;

namespace planloom {

/// A page of help: a sentence, and what it is about, to read and to copy.
class HelpPage : public QDialog
{
    Q_OBJECT
public:
    HelpPage(const QString &title, const QString &introduction, QWidget *parent);

protected:
    /// @param content  below the sentence; becomes the page's
    /// @param text  what "Copy" copies
    void setContent(QWidget *content, const QString &text);
};

/// The script that makes a file of a user's PyTorch module: that of resources/export_model.py, as the README
/// has it.
QString exportScript();
/// What an operator file is, in Markdown: resources/operators.md.
QString operatorFileText();

/// Shows how a model of PyTorch becomes a file that opens here, with the script to copy.
class ExportHelp : public HelpPage
{
    Q_OBJECT
public:
    explicit ExportHelp(QWidget *parent = nullptr);

private:
    QPlainTextEdit *m_script;
};

/// Shows how an operator that Planloom does not know is described by a file.
class OperatorFileHelp : public HelpPage
{
    Q_OBJECT
public:
    explicit OperatorFileHelp(QWidget *parent = nullptr);
};

} // namespace planloom
