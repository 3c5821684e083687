// Ring attention: keys and values go round the devices, turn by turn.

#include "engine/frontend/graph_builder.h"
#include "engine/frontend/training.h"
#include "engine/frontend/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {
