#pragma once

#include "engine/terminal/arguments.h"

namespace planloom::cli {

// Each verb prints its own result and returns the exit status, or the error that main prints.
Result<int> runInfo(const Arguments &arguments);
Result<int> runSolve(const Arguments &arguments);
Result<int> runSchedule(const Arguments &arguments);
Result<int> runSimulate(const Arguments &arguments);
Result<int> runFits(const Arguments &arguments);
Result<int> runCommunication(const Arguments &arguments);
Result<int> runReport(const Arguments &arguments);
Result<int> runCompare(const Arguments &arguments);
Result<int> runVerify(const Arguments &arguments);
Result<int> runRun(const Arguments &arguments);
Result<int> runCheckAnnotation(const Arguments &arguments);
Result<int> runImport(const Arguments &arguments);
Result<int> runExport(const Arguments &arguments);
Result<int> runTrace(const Arguments &arguments);
Result<int> runGallery(const Arguments &arguments);
Result<int> runRows(const Arguments &arguments);
Result<int> runCluster(const Arguments &arguments);
Result<int> runSession(const Arguments &arguments);
Result<int> runDoctor(const Arguments &arguments);
Result<int> runLesson(const Arguments &arguments);

} // namespace planloom::cli
