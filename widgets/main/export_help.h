#pragma once

#include <QtWidgets/QDialog>

class QPlainTextEdit;

namespace planloom {

/// The script that makes a file of a user's PyTorch module: that of resources/export_model.py, as the README
/// has it.
QString exportScript();

/// Shows how a model of PyTorch becomes a file that opens here, with the script to copy.
class ExportHelp : public QDialog
{
    Q_OBJECT
public:
    explicit ExportHelp(QWidget *parent = nullptr);

private:
    QPlainTextEdit *m_script;
};

} // namespace planloom
