#pragma once

#include <QtWidgets/QDialog>

#include "engine/design/models/model_options.h"

class QSortFilterProxyModel;

namespace planloom {

struct Graph;
class StoredTensorsModel;

/// Lists what a model's file stores as parameters, buffers and constants, with the reasons, and lets a person
/// choose otherwise. What is chosen becomes options of the model, and so a step of the design.
class StoredTensorsDialog : public QDialog
{
    Q_OBJECT
public:
    StoredTensorsDialog(const Graph &graph, const ModelOptions &options, QWidget *parent);
    StoredTensorsModel *model() const { return m_model; }

Q_SIGNALS:
    void chosen(const planloom::ModelOptions &options);

private:
    StoredTensorsModel *m_model;
    QSortFilterProxyModel *m_proxy;
};

} // namespace planloom
