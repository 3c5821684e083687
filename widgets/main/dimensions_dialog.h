#pragma once

#include <QtWidgets/QDialog>

#include "engine/graph/dimensions/input_dimension.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

class QSpinBox;

namespace planloom {

/// Asks for the sizes of a model's inputs: before it can be opened, and later, where they are knobs of the
/// design.
class DimensionsDialog : public QDialog
{
    Q_OBJECT
public:
    enum class Purpose : bool { Open, Change };
    /// @param dimensions  those without a size begin with a usual one
    /// @param problem  why the sizes did not do; empty if nothing is wrong
    DimensionsDialog(const std::vector<InputDimension> &dimensions, Purpose purpose, const QString &problem,
        QWidget *parent);
    /// As the fields say, by dimension.
    std::map<std::string, std::int64_t> sizes() const;

Q_SIGNALS:
    void chosen(const std::map<std::string, std::int64_t> &sizes);

private:
    std::vector<InputDimension> m_dimensions;
    std::vector<QSpinBox *> m_sizes; ///< By dimension.
};

} // namespace planloom
