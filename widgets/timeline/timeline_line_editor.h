#pragma once

#include <QtWidgets/QFrame>

#include "widgets/design/gesture_host.h"

#include <cstdint>
#include <string>
#include <vector>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QHBoxLayout;

namespace planloom {

/// What is typed in a line on the canvas.
enum class TimelineLine : std::uint8_t {
    Split, ///< "split [n] by [4] [ ] replicate [ ] value over [axis]"
    Replicate, ///< The same, replicating.
    Place, ///< "place on [3]"
    Order, ///< "run [before] [operator]"
    Filter, ///< "show lanes with [gpu 3]"
};

/// A one-line editor on the timeline: what the gesture of the same name does, by keyboard. Every change is
/// proposed at once, for its ghost; Enter accepts, Esc abandons.
class TimelineLineEditor : public QFrame
{
    Q_OBJECT
public:
    explicit TimelineLineEditor(QWidget *canvas);

    /// Opens for these operators (forward ones, not empty unless it filters).
    void open(TimelineLine line, GestureContextSnapshot context, std::vector<OperatorId> operators);
    void openFilter(const QString &text);
    TimelineLine line() const { return m_kind; }
    /// What it would write now.
    Proposal proposal() const;
    /// Moves it to its place on the canvas.
    void place();

Q_SIGNALS:
    void proposed(const planloom::Proposal &proposal);
    void filtered(const QString &text);
    void accepted();
    /// Alt+O: rows in the way are to be switched off too, or no more.
    void rowsOffToggled();
    void abandoned();

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    void clear();
    QLabel *word(const QString &text);
    QComboBox *choice(const char *name, const QString &accessible);
    QLineEdit *field(const char *name, const QString &accessible);
    void build();
    void buildSplit(bool replicate);
    void fillCounts();
    void propose();
    Proposal splitProposal() const;
    Proposal orderProposal() const;

    TimelineLine m_kind = TimelineLine::Place;
    GestureContextSnapshot m_context;
    std::vector<OperatorId> m_operators;
    std::vector<DimensionChip> m_chips; ///< Of the first operator, one for each dimension that is not locked.
    QHBoxLayout *m_layout;
    QComboBox *m_dimension = nullptr;
    QComboBox *m_count = nullptr;
    QComboBox *m_axis = nullptr;
    QComboBox *m_relation = nullptr;
    QCheckBox *m_replicate = nullptr;
    QCheckBox *m_value = nullptr;
    QLineEdit *m_text = nullptr;
    bool m_building = false;
};

} // namespace planloom
