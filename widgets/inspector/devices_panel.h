#pragma once

#include <QtWidgets/QTreeView>

#include "widgets/common/selection_model.h"
#include "widgets/design/workspace.h"

class QAction;

namespace planloom {

class DevicesModel;

/// The *Devices* dock: hosts, devices and mesh axes. Devices and axes are dragged from here onto operators;
/// Enter places what is selected on the device; a device's operators can be selected.
class DevicesPanel : public QTreeView
{
    Q_OBJECT
public:
    DevicesPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent = nullptr);

    QAction *placeAction() const { return m_placeAction; } ///< "devices.place"
    QAction *selectAction() const { return m_selectAction; } ///< "devices.select"
    QAction *freeAction() const { return m_freeAction; } ///< "devices.free"

private:
    void refresh();
    std::vector<DeviceId> chosenDevices() const;

    Workspace *m_workspace;
    SelectionModel *m_selection;
    DevicesModel *m_model;
    QAction *m_placeAction;
    QAction *m_selectAction;
    QAction *m_freeAction;
};

} // namespace planloom
