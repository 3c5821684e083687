#pragma once

#include <QtWidgets/QComboBox>

#include <string>

namespace planloom {

class Workspace;

/// What is to train the model: one of the frameworks whose figures predictions can have, each with what it
/// takes for granted in its tool tip; or none. A choice is a step of the workspace's history.
class FrameworkChooser : public QComboBox
{
    Q_OBJECT
public:
    explicit FrameworkChooser(Workspace &workspace, QWidget *parent = nullptr);

protected:
    void wheelEvent(QWheelEvent *event) override; ///< Rolling by doesn't plan anew.

private:
    void showDesign();

    Workspace &m_workspace;
};

/// What a prediction with a framework takes for granted, as rich text; of an empty name, without one.
QString tipOfFramework(const std::string &name);

/// The framework whose figures a cluster's file has already; empty if it has none's.
std::string frameworkOfFile(const std::string &json);

/// What a design that goes to another cluster calls it: `name` with the framework it had. Not so where the
/// file has the figures of one, nor for this machine, whose figures are those of the runner.
std::string keepingFramework(const std::string &name, const std::string &json, const std::string &framework);

} // namespace planloom
