#pragma once

#include <QtCore/QStringList>
#include <QtWidgets/QWidget>

class QHBoxLayout;

namespace planloom {

class DagView;

/// Where the canvas is, as a path of groups: each a button that shows its group whole.
class DagBreadcrumbs : public QWidget
{
    Q_OBJECT
public:
    explicit DagBreadcrumbs(DagView *view, QWidget *parent = nullptr);

    /// Takes the place of the first label: the model's name as the window writes it; empty keeps the label.
    void setModelName(const QString &name);
    QStringList labels() const;

private:
    void rebuild(const QStringList &labels);

    DagView *m_view;
    QHBoxLayout *m_row;
    QStringList m_labels;
    QString m_modelName;
};

} // namespace planloom
