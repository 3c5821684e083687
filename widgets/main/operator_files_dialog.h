#pragma once

#include <QtWidgets/QDialog>

#include "engine/design/models/operator_files.h"

#include <string>
#include <vector>

class QLabel;
class QPushButton;
class QTreeWidget;

namespace planloom {

/// The operator files that a model was opened with; lets a person name others, and leave out those that were
/// named.
class OperatorFilesDialog : public QDialog
{
    Q_OBJECT
public:
    explicit OperatorFilesDialog(QWidget *parent = nullptr);

    /// @param files  absolute, in order
    /// @param model  beside which one of them may stand
    void setFiles(const std::vector<std::string> &files, const std::string &model);
    /// Why the model could not be opened with these files; empty if it could.
    void setProblem(const QString &text);

Q_SIGNALS:
    void addAsked();
    void removeAsked(const QString &path);
    void helpAsked();

private:
    void refresh();

    QTreeWidget *m_list;
    QLabel *m_problem;
    QPushButton *m_remove;
};

} // namespace planloom
