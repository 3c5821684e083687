#pragma once

#include <QtCore/QString>

#include "engine/graph/attributes.h"
#include "engine/graph/operators/operator_kind.h"

namespace planloom {

/// What operators of the kind do, a sentence or two; as resources/kinds.txt says.
QString meaningOfKind(OperatorKind kind);

/// "0.1", "\"tanh\"", "2, 2"; a long list is cut behind its first numbers.
QString attributeText(const Attribute &attribute);

} // namespace planloom
